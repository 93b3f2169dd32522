//! HTTP clients for the API server that detect dead connections.
//!
//! kube uses HTTP/1.1, so each watch has its own connection and a dead one affects nothing else. But kube sets no
//! socket options, and then it takes a quarter of an hour to detect a vanished peer. TCP keepalive detects it after
//! about ten seconds, on idle pooled connections, too. Requests are not retried here: kube's retry policy would
//! silently wait as long as any `Retry-After` says.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Request;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tower::util::{MapRequestLayer, Oneshot};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use crate::connection::bearer_token::BearerToken;

/// Time limit for establishing a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Idle time before the first keepalive.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Pause between two unanswered keepalives.
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(2);
/// Unanswered keepalives after which a connection counts as dead.
const KEEPALIVE_TRIES: u32 = 3;
/// Time limit for the peer to acknowledge sent data.
const CONFIRM: Duration = Duration::from_secs(10);
/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Handle to the connection pools of clients.
#[derive(Clone, Default)]
pub struct Pools(Vec<Arc<dyn Fn() + Send + Sync>>);

impl Pools {
    /// Discards idle connections; requests in flight continue. Idle connections that something on the way has
    /// forgotten look like good ones. There may be dozens, and each would cost a time-out.
    pub(crate) fn renew(&self) {
        for renew in &self.0 {
            renew();
        }
    }

    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// A service that can be replaced by a new instance.
#[derive(Clone)]
struct Renewable<S>(Arc<ArcSwap<S>>);

impl<R, S: Service<R> + Clone> Service<R> for Renewable<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Oneshot<S, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        S::clone(&self.0.load()).oneshot(request)
    }
}

/// Returns a configuration that does not ask for the system's certificate authorities when the server is reached without TLS:
/// an image may have none, and looking for them is an error then.
fn with_roots_it_needs(config: &Config) -> Config {
    let mut config = config.clone();
    if config.cluster_url.scheme_str() == Some("http") {
        config.root_cert.get_or_insert_default();
    }
    config
}

/// Changes requests that have their credentials.
pub(crate) type Change = fn(Request<Body>) -> Request<Body>;

/// Creates a client and the handle to its pool. `token` is added to requests, if it is given.
pub(crate) fn client(config: &Config, token: Option<BearerToken>) -> Result<(Client, Pools), kube::Error> {
    changing_client(config, token, |request| request)
}

/// Does the same; `change` sees every request last.
pub(crate) fn changing_client(
    config: &Config,
    token: Option<BearerToken>,
    change: Change,
) -> Result<(Client, Pools), kube::Error> {
    let mut connector = HttpConnector::new();
    // The layer above adds TLS where the URL asks for it.
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_AGAIN));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    connector.set_tcp_user_timeout(Some(CONFIRM));
    let connector = with_roots_it_needs(config).rustls_https_connector_with_connector(connector)?;
    let make = move || {
        Builder::new(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build::<_, Body>(connector.clone())
    };
    let http = Arc::new(ArcSwap::from_pointee(make()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .option_layer(token)
        .layer(config.extra_headers_layer()?)
        .layer(MapRequestLayer::new(change))
        .map_err(BoxError::from)
        .service(Renewable(http.clone()));
    let pools = Pools(vec![Arc::new(move || http.store(Arc::new(make())))]);
    Ok((Client::new(service, config.default_namespace.clone()), pools))
}
