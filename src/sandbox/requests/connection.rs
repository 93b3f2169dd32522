//! TCP connections that a fault can cut, and a listener that can close for a while.
//!
//! The server sees an ordinary listener. Each connection has a [`Cut`], which the request handler gets as connection
//! info; once it is triggered, nothing more reaches the client and the connection closes. A restart triggers the cuts
//! of all connections at once. This module knows nothing of the requests.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::clock::{Clock, later};

/// Most connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long the listener waits before it retries to bind its port.
const RETRY: Duration = Duration::from_millis(20);

/// Closes or resets one connection.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    thrown: CancellationToken,
    resets: Arc<AtomicBool>,
}

impl Cut {
    /// Closes the connection. The response in progress does not arrive.
    pub(crate) fn close(&self) {
        self.thrown.cancel();
    }

    /// Resets the connection (RST). The response in progress does not arrive.
    pub(crate) fn reset(&self) {
        self.resets.store(true, Ordering::Release);
        self.thrown.cancel();
    }
}

/// All connections of a server, and until when its listener is closed.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    clock: Clock,
    /// The parent token of the cuts of all open connections.
    open: Arc<Mutex<CancellationToken>>,
    closed_until: watch::Sender<Option<Timestamp>>,
}

impl Connections {
    /// Returns an empty set of connections with an open listener.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, open: Arc::default(), closed_until: watch::Sender::new(None) }
    }

    /// Closes all connections, and closes the listener for `time`.
    pub(crate) fn restart(&self, time: Duration) {
        // Close the listener first: a connection accepted in between either has the old token or is dropped.
        self.closed_until.send_replace(Some(later(self.clock.now(), time)));
        std::mem::take(&mut *self.open.lock()).cancel();
    }
}

/// A listener that can close for a while, and whose connections can be cut.
pub(crate) struct CuttableListener {
    /// `None` while the server does not listen.
    listener: Option<TcpListener>,
    address: SocketAddr,
    connections: Connections,
    closed_until: watch::Receiver<Option<Timestamp>>,
}

impl CuttableListener {
    /// Returns an open listener.
    pub(crate) fn new(listener: TcpListener, address: SocketAddr, connections: Connections) -> Self {
        let closed_until = connections.closed_until.subscribe();
        Self { listener: Some(listener), address, connections, closed_until }
    }

    /// Closes the listener until the server listens again.
    async fn stay_closed(&mut self, until: Timestamp) {
        self.listener = None;
        // A socket that is bound but does not listen reserves the port: connecting is refused, and no one else can bind
        // it.
        let mut socket = bind(self.address);
        self.connections.clock.wait_until(until).await;
        self.listener = loop {
            match socket.and_then(|socket| socket.listen(BACKLOG)) {
                Ok(listener) => break Some(listener),
                Err(error) => {
                    tracing::warn!(address = %self.address, %error, "the sandbox cannot listen again yet");
                    tokio::time::sleep(RETRY).await;
                    socket = bind(self.address);
                }
            }
        };
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A connection that can be cut.
pub(crate) struct Connection {
    stream: TcpStream,
    cut: Cut,
    thrown: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    fn new(stream: TcpStream, thrown: CancellationToken) -> Self {
        let cut = Cut { thrown: thrown.clone(), resets: Arc::default() };
        Self { stream, cut, thrown: Box::pin(thrown.cancelled_owned()) }
    }

    /// Fails once the connection is cut. Otherwise registers to be woken when it is.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.thrown.is_cancelled() || self.thrown.as_mut().poll(cx).is_ready() {
            if self.cut.resets.load(Ordering::Acquire) {
                // If this fails, the client sees a normal close; the connection ends either way.
                let _ = self.stream.set_zero_linger();
            }
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl Listener for CuttableListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Some(listener) = &mut self.listener else {
                let until = *self.closed_until.borrow_and_update();
                self.stay_closed(until.unwrap_or(Timestamp::MIN)).await;
                continue;
            };
            tokio::select! {
                biased;
                _ = self.closed_until.changed() => self.listener = None,
                (stream, address) = Listener::accept(listener) => {
                    let thrown = self.connections.open.lock().child_token();
                    if self.closed_until.has_changed().unwrap_or(false) {
                        continue;
                    }
                    // Without it small responses wait for acknowledgements. A failure costs only time.
                    let _ = stream.set_nodelay(true);
                    return (Connection::new(stream, thrown), address);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Cut {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().cut.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
