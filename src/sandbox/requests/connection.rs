//! TCP connections that a fault can cut, and a listener that can be away for a time.
//!
//! The server sees an ordinary listener; each connection carries a switch that the request handler gets as
//! connection info. Once it is thrown, nothing more reaches the client and the connection closes. A restart throws
//! the switches of all connections at once. What the requests are about is not known here.

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

/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long the listener waits before it tries again to have its port back.
const RETRY: Duration = Duration::from_millis(20);

/// Cuts one connection.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    thrown: CancellationToken,
    resets: Arc<AtomicBool>,
}

impl Cut {
    /// Closes the connection: the answer that is being written will not arrive.
    pub(crate) fn close(&self) {
        self.thrown.cancel();
    }

    /// Resets the connection: the client sees a reset instead of an end.
    pub(crate) fn reset(&self) {
        self.resets.store(true, Ordering::Release);
        self.thrown.cancel();
    }
}

/// All connections of a server, and until when it does not listen.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    clock: Clock,
    /// The parent of the switches of all connections that are open.
    open: Arc<Mutex<CancellationToken>>,
    closed_until: watch::Sender<Option<Timestamp>>,
}

impl Connections {
    /// Returns no connections, with a listener that is there.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, open: Arc::default(), closed_until: watch::Sender::new(None) }
    }

    /// Closes all connections, and the listener for a time.
    pub(crate) fn restart(&self, time: Duration) {
        // First the listener: a connection accepted in between gets either the old switch or none.
        self.closed_until.send_replace(Some(later(self.clock.now(), time)));
        std::mem::take(&mut *self.open.lock()).cancel();
    }
}

/// Accepts connections with a switch.
pub(crate) struct Door {
    /// None while the server does not listen.
    listener: Option<TcpListener>,
    address: SocketAddr,
    connections: Connections,
    closed_until: watch::Receiver<Option<Timestamp>>,
}

impl Door {
    /// Returns a door that is open.
    pub(crate) fn new(listener: TcpListener, address: SocketAddr, connections: Connections) -> Self {
        let closed_until = connections.closed_until.subscribe();
        Self { listener: Some(listener), address, connections, closed_until }
    }

    /// Lets go of the listener until the server listens again.
    async fn stay_closed(&mut self, until: Timestamp) {
        self.listener = None;
        // Bound without listening, the port is kept: connecting to it is refused, and nobody else gets it.
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

/// A connection with a switch.
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

    /// Fails once the switch is thrown, and otherwise sees to being woken when it is.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.thrown.is_cancelled() || self.thrown.as_mut().poll(cx).is_ready() {
            if self.cut.resets.load(Ordering::Acquire) {
                // Without it the client sees an ordinary end; the connection closes either way.
                let _ = self.stream.set_zero_linger();
            }
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl Listener for Door {
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
                    // Without it small answers wait for acknowledgements; a failure only costs time.
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

impl Connected<IncomingStream<'_, Door>> for Cut {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
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
