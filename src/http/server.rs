//! Builds the server: checks the registrations, and makes a router and a listening socket of them.
//!
//! It is generic: it serves a state `S` behind a function, and the routes that read it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use pellucid_model::time::Now;
use pellucid_model::{Published, Viewer};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::access::gate::Gate;
use crate::access::redaction::{FieldNames, Redact, Redactor};
use crate::access::share::Share;
use crate::authority::Authority;
use crate::body::BodyBudget;
use crate::connection::listen::Bound;
use crate::connection::pool::{Pool, Times};
use crate::connection::response_budget::ResponseBudget;
use crate::error::{BuildError, ServeError};
use crate::middleware::{self, Observe, Observed};
use crate::path_entry::PathEntry;
use crate::read::{self, Load, Reader};
use crate::recent::Recent;
use crate::registration::endpoint::Endpoint;
use crate::registration::openapi::{check_schemas, describe, field_names};
use crate::registration::operation::{self, Operation};
use crate::registration::route::{Method, Route};
use crate::standard::flags::{self, Flagged, Switch};
use crate::standard::health::{self, HealthCheck};
use crate::standard::{Configz, Document, Renderer, Standard, Version, all_operations};
use crate::stream::Streams;
use crate::tls::Tls;

/// Returns the current time. The server reads no clock of its own.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// Default time limit of a read; the OpenAPI document states it.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(10);

/// Limits of the server. Every resource has one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of reads that run at once.
    pub reads: usize,
    /// Number of reads that wait for their turn; further ones get 429.
    pub reads_waiting: usize,
    /// Number of long reads that wait for their turn, while one runs; further ones get 429. Long reads with a request
    /// body have as many places and a thread of their own, because the client decides what they cost.
    pub long_reads_waiting: usize,
    /// Time that a read waits for its turn before it gets 429.
    pub turn_patience: Duration,
    /// Time that a read may run before it is given up with 503.
    pub read_patience: Duration,
    /// Shortest time after which what costly lists share is worked out anew, while somebody asks for it.
    pub renewal: Duration,
    /// Number of requests that wait for a generation; further ones get 429.
    pub generation_waiting: usize,
    /// Time that a request waits for a generation before it gets 503.
    pub generation_patience: Duration,
    /// Maximum body size of a switch request, in bytes.
    pub flag_body: usize,
    /// Maximum JSON body size of a read, in bytes.
    pub question_body: usize,
    /// Maximum size of the JSON bodies of all reads that arrive, wait or are answered, in bytes; further ones wait while they
    /// have time to arrive, and get 429.
    pub question_bytes: usize,
    /// Time limit for a request body to arrive.
    pub body_patience: Duration,
    /// Time limit for a request head to arrive; idle connections are closed after it, too.
    pub header_patience: Duration,
    /// Time that a response may stall because the peer does not read it.
    pub write_patience: Duration,
    /// Maximum size of all read responses that peers have not taken yet, in bytes; further ones get 503. Metrics,
    /// configuration and the list of switches have as much together.
    pub answer_bytes: usize,
    /// Number of ordinary connections open at once.
    pub connections: usize,
    /// Number of further connections, which serve only health paths. Others wait to be accepted.
    pub reserve: usize,
    /// Time that a connection of the reserve may stay open.
    pub reserve_patience: Duration,
    /// Number of feeds followed at once; further ones get 429.
    pub followers: usize,
    /// Time that requests in flight may take to finish at shutdown.
    pub stop_patience: Duration,
    /// What one user may take, where users are known.
    pub share: Share,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reads: 2,
            reads_waiting: 256,
            long_reads_waiting: 32,
            turn_patience: Duration::from_secs(10),
            read_patience: READ_PATIENCE,
            renewal: Duration::from_millis(500),
            generation_waiting: 256,
            generation_patience: Duration::from_secs(5),
            flag_body: 4096,
            question_body: 256 * 1024,
            question_bytes: 32 << 20,
            body_patience: Duration::from_secs(5),
            header_patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(10),
            answer_bytes: 64 << 20,
            connections: 128,
            reserve: 256,
            // Half of the usual probe timeout: a probe may wait behind one reserve full of idle connections.
            reserve_patience: Duration::from_millis(500),
            followers: 32,
            stop_patience: Duration::from_secs(6),
            share: Share::default(),
        }
    }
}

/// Configuration for [`Server::new`].
pub struct Parts<S> {
    /// All registered reads.
    pub routes: Vec<Route<S>>,
    /// Returns the current snapshot. Called once per read request, and more often only while it waits.
    pub load: Load<S>,
    /// Receives the generation after each publication, once `load` returns that snapshot.
    pub published: watch::Receiver<u64>,
    /// Runtime switches under `/debug/flags`.
    pub switches: Vec<Arc<dyn Switch>>,
    /// Health checks, in the order in which they are listed.
    pub health: Vec<HealthCheck>,
    /// Renders `/metrics`.
    pub metrics: Renderer,
    /// Renders `/metrics/resources`.
    pub resource_metrics: Renderer,
    /// Returns the body of `/configz`.
    pub configz: Configz,
    /// Body of `/version`.
    pub version: Version,
    /// Clock for request times.
    pub now: Clock,
    /// Called for every response, for metrics.
    pub observe: Observe,
    /// Limits of the server.
    pub limits: Limits,
    /// Says who may do what; `None` on a loopback address, where whoever reaches it may do all.
    pub authority: Option<Arc<dyn Authority>>,
    /// Says which names a viewer may not see.
    pub redact: Redact<S>,
}

/// The routers of the two kinds of connections.
#[derive(Clone)]
pub(super) struct Routers {
    /// For ordinary connections: all paths.
    pub(super) all: Router,
    /// For connections of the reserve: the health paths.
    pub(super) health: Router,
}

/// A server with valid registrations, ready to bind.
pub struct Server {
    routers: Routers,
    limits: Limits,
    /// Ends the feeds that are being followed.
    end_feeds: CancellationToken,
    /// Whether users are asked for.
    is_guarded: bool,
}

impl Server {
    /// Checks the registrations and builds the router. Fails when registrations are invalid or collide.
    pub fn new<S>(parts: Parts<S>) -> Result<Self, BuildError>
    where
        S: Published + Send + Sync + 'static,
    {
        let operations = all_operations(&parts.routes);
        check(&operations)?;
        check_names(&parts)?;
        check_schemas(&operations)?;
        let limits = parts.limits;
        let authority = parts.authority.clone();
        let gate = authority.map(|authority| Arc::new(Gate::new(authority, limits.share)));
        let observed =
            Arc::new(Observed::new(Arc::clone(&parts.now), Arc::clone(&parts.observe), gate.is_some()));
        let checks: Arc<[HealthCheck]> = parts.health.as_slice().into();
        let end_feeds = CancellationToken::new();
        let mut endpoints = endpoints(parts, &operations, &end_feeds);
        endpoints.extend(health::endpoints(&checks));
        let unknown = gate.clone();
        let unknown = any(move |request: Request| middleware::unknown(unknown.clone(), request));
        let all = route(endpoints, gate.as_ref()).fallback(unknown);
        let all = middleware::layered(all, Arc::clone(&observed));
        let health = route(health::endpoints(&checks), gate.as_ref()).fallback(middleware::crowded);
        let health = middleware::layered(health, observed);
        Ok(Self { routers: Routers { all, health }, limits, end_feeds, is_guarded: gate.is_some() })
    }

    /// Binds a loopback address for plain HTTP; port 0 takes any free one. Fails for other addresses, and when the port is
    /// taken.
    pub async fn bind(&self, address: SocketAddr) -> Result<Bound, ServeError> {
        self.bound(address, None).await
    }

    /// Binds an address for HTTPS. Fails for an address that other machines reach unless users are asked for.
    pub async fn bind_tls(&self, address: SocketAddr, tls: Tls) -> Result<Bound, ServeError> {
        self.bound(address, Some(tls)).await
    }

    /// Binds an address for HTTPS that whoever reaches it may use. This is for servers whose clients have no identity, such as
    /// the API server when it calls a webhook.
    pub async fn bind_tls_for_all(&self, address: SocketAddr, tls: Tls) -> Result<Bound, ServeError> {
        Bound::bind(address, Some(tls), self.routers.clone(), self.limits, self.end_feeds.clone()).await
    }

    async fn bound(&self, address: SocketAddr, tls: Option<Tls>) -> Result<Bound, ServeError> {
        let is_safe = tls.is_some() && self.is_guarded;
        if !is_safe && !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::NotLoopback { address });
        }
        Bound::bind(address, tls, self.routers.clone(), self.limits, self.end_feeds.clone()).await
    }
}

/// Returns all endpoints except the health checks.
fn endpoints<S>(parts: Parts<S>, operations: &[Operation], end_feeds: &CancellationToken) -> Vec<Endpoint>
where
    S: Published + Send + Sync + 'static,
{
    let limits = parts.limits;
    // Metrics, configuration and switches have their own pool: a rush of reads must not block monitoring, or keep
    // anyone from turning off a costly switch.
    let chores = Arc::new(Pool::new(2, 16));
    // For the same reason they have room of their own for what is not read yet.
    let of_chores = Arc::new(ResponseBudget::new(limits.answer_bytes, limits.write_patience));
    let times = Times { turn: limits.turn_patience, run: limits.read_patience };
    let (load, redact) = (Arc::clone(&parts.load), Arc::clone(&parts.redact));
    let described = operations.to_vec();
    let fields: FieldNames = Arc::new(LazyLock::new(Box::new(move || field_names(&described))));
    let of_fields = Arc::clone(&fields);
    let redactor: Arc<dyn Fn(&Viewer) -> Redactor + Send + Sync> =
        Arc::new(move |viewer| Redactor::of(viewer, &of_fields, || redact(&load(), viewer)));
    let reader = Arc::new(Reader {
        redact: parts.redact,
        field_names: fields,
        load: parts.load,
        published: parts.published,
        pool: Pool::new(limits.reads, limits.reads_waiting).within(times),
        long: Pool::new(1, limits.long_reads_waiting).within(times),
        questions: Pool::new(1, limits.long_reads_waiting).within(times),
        waiters: Semaphore::new(limits.generation_waiting),
        patience: limits.generation_patience,
        body_limit: limits.question_body,
        body_patience: limits.body_patience,
        bodies: BodyBudget::new(limits.question_bytes.max(limits.question_body)),
        streams: Streams {
            followers: Arc::new(Semaphore::new(limits.followers)),
            // As many places as connections, so no feed is turned away.
            pool: Pool::new(1, limits.connections),
            stop: end_feeds.clone(),
        },
        response_budget: ResponseBudget::new(limits.answer_bytes, limits.write_patience),
        walks: Arc::default(),
        recent: Recent::new(limits.renewal),
    });
    let mut switches = parts.switches;
    switches.sort_by(|left, right| left.name().cmp(right.name()));
    let (pool, body_limit, body_patience) = (Arc::clone(&chores), limits.flag_body, limits.body_patience);
    let flagged = Arc::new(Flagged {
        switches,
        pool,
        body_limit,
        body_patience,
        redactor: Arc::clone(&redactor),
        response_budget: Arc::clone(&of_chores),
    });
    let standard = Standard {
        operations,
        document: document(operations, &parts.version.git_version),
        services: json(&operation::services(operations)),
        version: parts.version,
        configz: parts.configz,
        metrics: parts.metrics,
        resource_metrics: parts.resource_metrics,
        pool: chores,
        redactor,
        response_budget: of_chores,
    };
    let reads = parts.routes.into_iter().map(|route| read::endpoint(route, &reader));
    reads.chain(standard.endpoints()).chain(flags::endpoints(&flagged)).collect()
}

/// Returns the OpenAPI document, which is made when somebody reads it: few do, and it is a third of what a start costs
/// in a build for tests. The schemas have been checked.
fn document(operations: &[Operation], version: &str) -> Document {
    let (operations, version) = (operations.to_vec(), version.to_owned());
    Arc::new(LazyLock::new(Box::new(move || {
        describe(&operations, &version).map(|document| json(&document)).unwrap_or_default()
    })))
}

/// Serialises plain data, which cannot fail.
fn json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn route(endpoints: Vec<Endpoint>, gate: Option<&Arc<Gate>>) -> Router {
    let mut by_path: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
    for endpoint in endpoints {
        by_path.entry(endpoint.operation.positional()).or_default().push(endpoint);
    }
    let mut router = Router::new();
    for (path, endpoints) in by_path {
        let template = endpoints.first().map(|first| first.operation.path.clone()).unwrap_or_default();
        let entry = Arc::new(PathEntry::new(&template, endpoints, gate.cloned()));
        router = router.route(
            &path,
            any(move |request: Request| {
                let entry = Arc::clone(&entry);
                async move { entry.answer(request).await }
            }),
        );
    }
    router
}

/// Rejects operations that the router would panic on, or that collide with another.
fn check(operations: &[Operation]) -> Result<(), BuildError> {
    let mut seen: BTreeMap<(Method, String), &Operation> = BTreeMap::new();
    for operation in operations {
        operation.check()?;
        let place = (operation.method, operation.positional());
        if let Some(other) = seen.insert(place, operation) {
            return Err(BuildError::Duplicate {
                method: operation.method.as_str(),
                path: operation.path.clone(),
                other: other.path.clone(),
            });
        }
    }
    Ok(())
}

fn check_names<S>(parts: &Parts<S>) -> Result<(), BuildError> {
    let unique = |what, mut names: Vec<&str>| {
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(BuildError::Name { what, name: pair[0].to_owned() }),
            None => Ok(()),
        }
    };
    unique("switches", parts.switches.iter().map(|switch| switch.name()).collect())?;
    unique("health checks", parts.health.iter().map(|check| check.name.as_str()).collect())
}
