//! The listening socket: allowed addresses, number of connections, shutdown.
//!
//! Plain HTTP/1.1 on loopback. There is no TLS and no authentication, so no other address is accepted.
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
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::patient::WriteTimeoutStream;
use crate::error::ServeError;
use crate::middleware::Peer;
use crate::server::{Limits, Routers};

/// A server that is bound to its address, ready to serve.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    routers: Routers,
    limits: Limits,
    end_feeds: CancellationToken,
}

impl Bound {
    pub(crate) async fn bind(
        address: SocketAddr,
        routers: Routers,
        limits: Limits,
        end_feeds: CancellationToken,
    ) -> Result<Self, ServeError> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::NotLoopback { address });
        }
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse { address },
            _ => ServeError::Bind { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address: bound, routers, limits, end_feeds })
    }

    /// Returns the bound address, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled, then lets requests in flight finish within [`Limits::stop_patience`].
    pub async fn serve(self, stop: CancellationToken) {
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
                let peer = Peer(peer.ip());
                let serving =
                    connection((stream, peer), router.clone(), limits, slot.is_none(), stop.clone());
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

/// Serves a connection to its end. A connection of the reserve gets one request and little time.
async fn connection(
    (stream, peer): (TcpStream, Peer),
    router: Router,
    limits: Limits,
    of_reserve: bool,
    stop: CancellationToken,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header_patience).keep_alive(!of_reserve);
    let stream = TokioIo::new(WriteTimeoutStream::new(stream, limits.write_patience));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let serving = builder.serve_connection(stream, service);
    let mut serving = std::pin::pin!(serving);
    let too_long = async {
        if of_reserve {
            tokio::time::sleep(limits.reserve_patience).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = too_long => return,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(error = &error as &dyn std::error::Error, "connection ended");
    }
}
