//! HTTP/1.1 over a socket with one request per connection, for well-behaved and for rude readers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum number of bytes read of a response; the rest is left unread.
const MOST: u64 = 256 << 20;

/// Opens a connection and sends a request without waiting for the response.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    body: Option<&str>,
    patience: Duration,
) -> io::Result<TcpStream> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    if let Some(body) = body {
        let kind =
            if body.starts_with('{') { "application/json" } else { "application/x-www-form-urlencoded" };
        head.push_str(&format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    head.push_str(body.unwrap_or_default());
    let mut stream = open(address, patience)?;
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// Opens a connection with timeouts.
pub(crate) fn open(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Sends a request and reads the whole response. Returns its status and body.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    target: &str,
    body: Option<&str>,
    patience: Duration,
) -> io::Result<(u16, Vec<u8>)> {
    let stream = send(address, method, target, body, patience)?;
    let mut all = Vec::new();
    stream.take(MOST).read_to_end(&mut all)?;
    let status = all.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("{} bytes that are no answer", all.len())))?;
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    Ok((status, all.split_off(end)))
}

/// Sends a `GET` and reads the whole response.
pub(crate) fn get(address: SocketAddr, target: &str, patience: Duration) -> io::Result<(u16, Vec<u8>)> {
    ask(address, "GET", target, None, patience)
}
