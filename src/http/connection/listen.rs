//! The listening socket: allowed addresses, number of connections, shutdown.
//!
//! HTTP/1.1, plain or within TLS. `Server` has checked that the address may be listened on. A TLS handshake is part of what a
//! connection may take, and must end in the time of a request head.
//!
//! No connection stays open idle: a request head must arrive in time ([`Limits::header_patience`]), and a response
//! must be read ([`Limits::write_patience`], see `patient`).
//!
//! When all [`Limits::connections`] are in use, [`Limits::reserve`] more are accepted, which serve only the health
//! paths; anything else gets a 503. Such a connection serves one request and is closed after
//! [`Limits::reserve_patience`], whatever it does: it holds little memory, and a crowd of idle ones is gone before a
//! probe times out. Beyond both limits, connections wait to be accepted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authority::Certified;
use crate::connection::patient::WriteTimeoutStream;
use crate::connection::socket;
use crate::error::ServeError;
use crate::middleware::Peer;
use crate::server::{Limits, Routers};
use crate::tls::{Tls, client};

/// Largest head of a request, in bytes; hyper answers 431 beyond it. A token has up to 16 KiB, and may come behind a proxy
/// with headers of its own. It is also what a connection buffers at most in either direction.
const LARGEST_HEAD: usize = 64 * 1024;

/// A server that is bound to its address, ready to serve.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    routers: Routers,
    limits: Limits,
    end_feeds: CancellationToken,
}

impl Bound {
    pub(crate) async fn bind(
        address: SocketAddr,
        tls: Option<Tls>,
        routers: Routers,
        limits: Limits,
        end_feeds: CancellationToken,
    ) -> Result<Self, ServeError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse { address },
            _ => ServeError::Bind { address, source },
        };
        let listener = socket::listen(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address: bound, tls: tls.map(Arc::new), routers, limits, end_feeds })
    }

    /// Returns the bound address, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the TLS of the listener, if it has one.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Serves until `stop` is cancelled, then lets requests in flight finish within [`Limits::stop_patience`].
    pub fn serve(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.serve_inner(stop))
    }

    async fn serve_inner(self, stop: CancellationToken) {
        let limits = self.limits;
        let connections = TaskTracker::new();
        let slots = Arc::new(Semaphore::new(limits.connections.max(1)));
        let places = Arc::new(Semaphore::new(limits.connections.max(1).saturating_add(limits.reserve)));
        let give_up = CancellationToken::new();
        let accepting = async {
            while let Ok(place) = Arc::clone(&places).acquire_owned().await {
                let (stream, peer) = next(&self.listener).await;
                let slot = Arc::clone(&slots).try_acquire_owned().ok();
                let router = if slot.is_some() { &self.routers.all } else { &self.routers.health };
                let serving = Serving {
                    // An IPv4 peer of a socket of both families has an address of IPv6.
                    peer: Peer(peer.ip().to_canonical()),
                    user: None,
                    router: router.clone(),
                    limits,
                    of_reserve: slot.is_none(),
                    stop: stop.clone(),
                };
                let serving = serving.accept(stream, self.tls.clone());
                let give_up = give_up.clone();
                connections.spawn(async move {
                    give_up.run_until_cancelled(serving).await;
                    // In this order, so that whoever gets the place finds the slot free, too.
                    drop(slot);
                    drop(place);
                });
            }
        };
        stop.run_until_cancelled(accepting).await;
        self.end_feeds.cancel();
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(self.limits.stop_patience, connections.wait()).await.is_err() {
            tracing::warn!(n_connections = connections.len(), "connections cut off at shutdown");
            give_up.cancel();
            connections.wait().await;
        }
    }
}

/// Accepts a connection. Retries on errors: they concern one connection, or pass with time.
async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "connection not accepted");
                // Out of file descriptors: the next attempt fails at once, until another descriptor is closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A connection to be served. One of the reserve gets one request and little time.
struct Serving {
    peer: Peer,
    /// The user of the client's certificate.
    user: Option<Certified>,
    router: Router,
    limits: Limits,
    of_reserve: bool,
    stop: CancellationToken,
}

impl Serving {
    /// Serves a connection to its end, after the handshake where there is TLS.
    async fn accept(mut self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        let limits = self.limits;
        let stream = WriteTimeoutStream::new(stream, limits.write_patience);
        let Some(tls) = tls else { return self.serve(stream).await };
        let handshake = async {
            // Now and then this reads small files.
            let config = tokio::task::spawn_blocking(move || tls.config()).await.ok()?;
            TlsAcceptor::from(config).accept(stream).await.map_err(|error| ended(&error)).ok()
        };
        let patience = if self.of_reserve { limits.reserve_patience } else { limits.header_patience };
        let handshake = tokio::time::timeout(patience, handshake);
        let Some(Ok(Some(stream))) = self.stop.clone().run_until_cancelled(handshake).await else { return };
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        self.user = certificate.and_then(client::user).map(Certified);
        self.serve(stream).await;
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Self { peer, user, router, limits, of_reserve, stop } = self;
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(limits.header_patience).keep_alive(!of_reserve);
        // The number of headers is bounded by hyper: 100.
        builder.max_buf_size(LARGEST_HEAD);
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            if let Some(user) = &user {
                request.extensions_mut().insert(user.clone());
            }
            router.call(request)
        });
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let too_long = async {
            if of_reserve {
                tokio::time::sleep(limits.reserve_patience).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let served = tokio::select! {
            served = serving.as_mut() => served,
            () = too_long => return,
            () = stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = served {
            ended(&error);
        }
    }
}

fn ended(error: &(dyn std::error::Error + 'static)) {
    tracing::trace!(error, "connection ended");
}
