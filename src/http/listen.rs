//! The socket: where it may listen, how many it serves, and how it stops.
//!
//! Plain HTTP/1.1 on loopback. TLS and authentication are not here, so no other address is accepted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::ServeError;
use super::server::Limits;

/// A server that has its port and waits to be run.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    limits: Limits,
}

impl Bound {
    pub(super) async fn bind(
        address: SocketAddr,
        router: Router,
        limits: Limits,
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
        Ok(Self { listener, address: bound, router, limits })
    }

    /// Returns the address it has; with port 0 this is where the real port is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until told to stop, then lets requests under way finish for a bounded time.
    pub async fn serve(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let slots = Arc::new(Semaphore::new(self.limits.connections.max(1)));
        let give_up = CancellationToken::new();
        let accepting = async {
            while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
                let stream = next(&self.listener).await;
                let serving =
                    connection(stream, self.router.clone(), self.limits.header_patience, stop.clone());
                let give_up = give_up.clone();
                connections.spawn(async move {
                    let _slot = slot;
                    give_up.run_until_cancelled(serving).await;
                });
            }
        };
        stop.run_until_cancelled(accepting).await;
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(self.limits.stop_patience, connections.wait()).await.is_err() {
            tracing::warn!(n_connections = connections.len(), "connections cut off at shutdown");
            give_up.cancel();
            connections.wait().await;
        }
    }
}

/// Accepts a connection. Errors belong to the connection that failed or pass with time.
async fn next(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "connection not accepted");
                // Out of file descriptors: the next attempt fails at once too, until another one closes.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router, header_patience: Duration, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_patience);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(error = &error as &dyn std::error::Error, "connection ended");
    }
}
