//! The server: registrations in, a router and a listening socket out.
//!
//! It knows nothing of pods and nodes. What it serves is a `S` behind a function, and routes that read it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use pellucid_model::Published;
use pellucid_model::time::Now;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

use crate::connection::listen::Bound;
use crate::connection::middleware::{self, Observe, Observed};
use crate::connection::pool::{Pool, Times};
use crate::connection::unread::Unread;
use crate::error::{BuildError, ServeError};
use crate::read::{self, Load, Reader};
use crate::registration::endpoint::{Endpoint, PathEntry};
use crate::registration::openapi::describe;
use crate::registration::operation::{self, Operation};
use crate::registration::route::{Method, Route};
use crate::standard::flags::{self, Flagged, Switch};
use crate::standard::health::{self, HealthCheck};
use crate::standard::{Configz, Renderer, Standard, Version};
use crate::stream::Streams;

/// Reads the clock. The server has none of its own.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// How long a read may take, as the documentation says.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(10);

/// How much of everything. None of it is unbounded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reads that run at once.
    pub reads: usize,
    /// Reads that wait for their turn; beyond it 429.
    pub reads_waiting: usize,
    /// Reads that compute for long and wait for their turn, one running at a time; beyond it 429. Questions with a body
    /// have as many places again and a thread of their own, because what they cost is up to who asks.
    pub long_reads_waiting: usize,
    /// How long a read waits for its turn before 429.
    pub turn_patience: Duration,
    /// How long a read may take before it is given up with 503.
    pub read_patience: Duration,
    /// Requests that wait for a generation; beyond it 429.
    pub generation_waiting: usize,
    /// How long a request waits for a generation before 503.
    pub generation_patience: Duration,
    /// The longest body of a switch, in bytes.
    pub flag_body: usize,
    /// The longest JSON body of a question, in bytes. As many may be held as reads wait.
    pub question_body: usize,
    /// How long a body may take to arrive.
    pub body_patience: Duration,
    /// How long a request head may take to arrive; idle connections are closed after it.
    pub header_patience: Duration,
    /// How long an answer under way may stand still because the peer does not read it.
    pub write_patience: Duration,
    /// The most bytes of all answers to reads that peers have not taken yet; beyond it 503.
    pub answer_bytes: usize,
    /// Connections open at once.
    pub connections: usize,
    /// Connections beyond these on which only health paths are answered; more wait to be accepted.
    pub reserve: usize,
    /// How long a connection of the reserve may stay open.
    pub reserve_patience: Duration,
    /// Feeds that may be followed at once; beyond it 429.
    pub followers: usize,
    /// How long requests under way may take to finish at shutdown.
    pub stop_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reads: 2,
            reads_waiting: 256,
            long_reads_waiting: 32,
            turn_patience: Duration::from_secs(10),
            read_patience: READ_PATIENCE,
            generation_waiting: 256,
            generation_patience: Duration::from_secs(5),
            flag_body: 4096,
            question_body: 256 * 1024,
            body_patience: Duration::from_secs(5),
            header_patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(10),
            answer_bytes: 64 << 20,
            connections: 128,
            reserve: 256,
            // Half of the usual timeout of a probe, which may wait behind one reserve full of idle connections.
            reserve_patience: Duration::from_millis(500),
            followers: 32,
            stop_patience: Duration::from_secs(6),
        }
    }
}

/// Everything a server is made of.
pub struct Parts<S> {
    /// The reads.
    pub routes: Vec<Route<S>>,
    /// Returns what is published now. Called once per request that reads, more often only while it waits.
    pub load: Load<S>,
    /// Sent to after each publication, once `load` returns it; the value is the generation.
    pub published: watch::Receiver<u64>,
    /// The runtime switches.
    pub switches: Vec<Arc<dyn Switch>>,
    /// The health checks, in the order in which they are listed.
    pub health: Vec<HealthCheck>,
    /// `/metrics`.
    pub metrics: Renderer,
    /// `/metrics/resources`.
    pub resource_metrics: Renderer,
    /// `/configz`.
    pub configz: Configz,
    /// `/version`.
    pub version: Version,
    /// The clock.
    pub now: Clock,
    /// Told of every answer, for metrics.
    pub observe: Observe,
    /// The bounds.
    pub limits: Limits,
}

/// What is served where.
#[derive(Clone)]
pub(super) struct Routers {
    /// On an ordinary connection.
    pub(super) all: Router,
    /// On a connection of the reserve: the health paths.
    pub(super) health: Router,
}

/// A server whose registrations have been checked.
pub struct Server {
    routers: Routers,
    document: OpenApi,
    limits: Limits,
    /// Ends the feeds that are followed.
    end_feeds: CancellationToken,
}

impl Server {
    /// Checks the registrations and builds the router.
    pub fn new<S>(parts: Parts<S>) -> Result<Self, BuildError>
    where
        S: Published + Send + Sync + 'static,
    {
        let operations = operation::all(&parts.routes);
        check(&operations)?;
        check_names(&parts)?;
        let document = describe(&operations, &parts.version.git_version)?;
        let limits = parts.limits;
        let observed = Arc::new(Observed::new(Arc::clone(&parts.now), Arc::clone(&parts.observe)));
        let checks: Arc<[HealthCheck]> = parts.health.as_slice().into();
        let end_feeds = CancellationToken::new();
        let mut endpoints = endpoints(parts, &operations, &document, &end_feeds);
        endpoints.extend(health::endpoints(&checks));
        let all = middleware::layered(route(endpoints).fallback(middleware::unknown), Arc::clone(&observed));
        let health =
            middleware::layered(route(health::endpoints(&checks)).fallback(middleware::crowded), observed);
        Ok(Self { routers: Routers { all, health }, document, limits, end_feeds })
    }

    /// Returns the OpenAPI document that it serves.
    pub fn document(&self) -> &OpenApi {
        &self.document
    }

    /// Returns the router, to be called without a socket.
    pub fn router(&self) -> Router {
        self.routers.all.clone()
    }

    /// Takes a port on a loopback address; port 0 takes any free one.
    pub async fn bind(&self, address: SocketAddr) -> Result<Bound, ServeError> {
        Bound::bind(address, self.routers.clone(), self.limits, self.end_feeds.clone()).await
    }
}

/// Returns all endpoints but those of the health checks.
fn endpoints<S>(
    parts: Parts<S>,
    operations: &[Operation],
    document: &OpenApi,
    end_feeds: &CancellationToken,
) -> Vec<Endpoint>
where
    S: Published + Send + Sync + 'static,
{
    let limits = parts.limits;
    // Metrics, configuration and switches have a pool of their own: a rush of reads must not blind the
    // monitoring, nor keep anybody from turning a costly switch off.
    let chores = Arc::new(Pool::new(2, 16));
    let times = Times { turn: limits.turn_patience, run: limits.read_patience };
    let reader = Arc::new(Reader {
        load: parts.load,
        published: parts.published,
        pool: Pool::new(limits.reads, limits.reads_waiting).within(times),
        long: Pool::new(1, limits.long_reads_waiting).within(times),
        questions: Pool::new(1, limits.long_reads_waiting).within(times),
        waiters: Semaphore::new(limits.generation_waiting),
        patience: limits.generation_patience,
        body_limit: limits.question_body,
        body_patience: limits.body_patience,
        streams: Streams {
            followers: Arc::new(Semaphore::new(limits.followers)),
            // No more wait than there are connections: none is sent away.
            pool: Pool::new(1, limits.connections),
            stop: end_feeds.clone(),
        },
        unread: Unread::new(limits.answer_bytes, limits.write_patience),
    });
    let mut switches = parts.switches;
    switches.sort_by(|left, right| left.name().cmp(right.name()));
    let flagged = Arc::new(Flagged {
        switches,
        pool: Arc::clone(&chores),
        body_limit: limits.flag_body,
        body_patience: limits.body_patience,
    });
    let standard = Standard {
        operations,
        document: json(document),
        services: json(&operation::services(operations)),
        version: parts.version,
        configz: parts.configz,
        metrics: parts.metrics,
        resource_metrics: parts.resource_metrics,
        pool: chores,
    };
    let mut endpoints: Vec<Endpoint> =
        parts.routes.iter().map(|route| read::endpoint(route, &reader)).collect();
    endpoints.extend(standard.endpoints());
    endpoints.extend(flags::endpoints(&flagged));
    endpoints
}

/// Serialises plain data of our own, which cannot fail.
fn json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn route(endpoints: Vec<Endpoint>) -> Router {
    let mut by_path: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
    for endpoint in endpoints {
        by_path.entry(endpoint.operation.positional()).or_default().push(endpoint);
    }
    let mut router = Router::new();
    for (path, endpoints) in by_path {
        let template = endpoints.first().map(|first| first.operation.path.clone()).unwrap_or_default();
        let entry = Arc::new(PathEntry::new(&template, endpoints));
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

/// Refuses what the router would panic on, and what two registrations would fight over.
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
