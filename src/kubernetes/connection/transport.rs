//! HTTP clients of the API server whose connections notice that the other side is gone.
//!
//! kube speaks HTTP/1.1, so each watch has a connection of its own and a dead one takes nothing else with it. But kube
//! leaves the sockets as they are, and then a peer that vanished shows after a quarter of an hour. Keepalive shows it
//! after about ten seconds, on connections that idle in the pool too. Requests are not tried again in here: kube's
//! policy waits as long as any `Retry-After` says, unseen.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tower::filter::AsyncFilterLayer;
use tower::util::Oneshot;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use crate::connection::exec_plugin::ExecPlugin;

/// For the connection to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// Idle before the first keepalive.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Between two keepalives that are not answered.
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(2);
/// Unanswered keepalives before the connection counts as dead.
const KEEPALIVE_TRIES: u32 = 3;
/// For the other side to confirm what was sent.
const CONFIRM: Duration = Duration::from_secs(10);
/// Before an idle connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Forgets the idle connections of clients.
#[derive(Clone, Default)]
pub struct Pools(Vec<Arc<dyn Fn() + Send + Sync>>);

impl Pools {
    /// Lets what is under way go on, and makes new connections for everything else. Idle connections that something
    /// on the way forgot cannot be told from good ones, and there may be dozens, each of which would cost a time-out.
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

/// A service that can be replaced by a new one of the same make.
struct Renewable<S>(Arc<ArcSwap<S>>);

impl<S> Clone for Renewable<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

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

/// Makes a client and the handle of its connections. `plugin` adds its token to requests.
pub(crate) fn client(config: &Config, plugin: Option<ExecPlugin>) -> Result<(Client, Pools), kube::Error> {
    let mut connector = HttpConnector::new();
    // The layer above makes TLS of it where the URL says so.
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_AGAIN));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    connector.set_tcp_user_timeout(Some(CONFIRM));
    let connector = config.rustls_https_connector_with_connector(connector)?;
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
        .option_layer(plugin.map(AsyncFilterLayer::new))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Renewable(http.clone()));
    let pools = Pools(vec![Arc::new(move || http.store(Arc::new(make())))]);
    Ok((Client::new(service, config.default_namespace.clone()), pools))
}
