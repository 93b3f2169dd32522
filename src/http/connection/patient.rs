//! A socket whose writes fail when the peer does not read.
//!
//! A response in flight holds its body in memory. When the system accepts no byte of it for some time, the write fails
//! and the connection is reset, which frees the system's own buffer as well. The system reports room only when a good
//! part of that buffer is free, so reading byte by byte does not help.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A connection whose writes must make progress.
pub(crate) struct WriteTimeoutStream {
    stream: TcpStream,
    patience: Duration,
    /// Timer, set while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    /// Wraps a connection. A write may stall for `patience`.
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, deadline: None }
    }

    /// Returns the stream's result, or an error when it has been pending for too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, said: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if said.is_ready() {
            self.deadline = None;
            return said;
        }
        let patience = self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // Zero linger discards the unsent rest. If it cannot be set, the system keeps sending that.
        let _ = self.stream.set_zero_linger();
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read its answer")))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, said)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, said)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A TCP stream has nothing to flush, and its shutdown does not wait for the peer.

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
