//! Opens the listening socket: `[::]` is every address of both families.
//!
//! That is what components of Kubernetes listen on, and the only wildcard that pods of a cluster with IPv6 alone are reached by.
//! tokio leaves it to the system whether such a socket takes IPv4 too, so the socket is made here.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

/// Connections that wait to be accepted, as in tokio.
const WAITING: i32 = 1024;

/// Listens on an address. Where the system has no IPv6, `[::]` is `0.0.0.0`.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = or_ipv4(address, open)?;
    TcpListener::from_std(listener)
}

fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    // Elsewhere than on Unix it would let two processes share a port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(WAITING)?;
    Ok(socket.into())
}

/// Opens an address, or all of IPv4 where it is all of both families and that is not to be had.
fn or_ipv4<T>(address: SocketAddr, open: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    use io::ErrorKind::{AddrInUse, PermissionDenied};
    match open(address) {
        // Which error says that there is no IPv6 depends on how it was switched off.
        Err(error)
            if address.ip() == Ipv6Addr::UNSPECIFIED
                && !matches!(error.kind(), AddrInUse | PermissionDenied) =>
        {
            tracing::info!(%error, "no IPv6 here, so only IPv4 is listened on");
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let address = listen("[::]:0".parse().unwrap()).unwrap().local_addr().unwrap();
        let listener = listen(address).expect("the port is free again");
        for of in ["127.0.0.1", "[::1]"] {
            // A machine without IPv6 has the first alone.
            if of == "127.0.0.1" || address.is_ipv6() {
                TcpStream::connect(format!("{of}:{}", address.port())).expect(of);
            }
        }
        assert_eq!(listen(address).expect_err("it is taken").kind(), io::ErrorKind::AddrInUse);
        drop(listener);
    }

    #[test]
    fn without_ipv6_all_addresses_are_those_of_ipv4() {
        let opened = |address: &str, kind: io::ErrorKind| {
            let open = |address: SocketAddr| match address.is_ipv6() {
                true => Err(io::Error::from(kind)),
                false => Ok(address.to_string()),
            };
            or_ipv4(address.parse().unwrap(), open).map_err(|error| error.kind())
        };
        let unsupported = io::ErrorKind::Unsupported;
        assert_eq!(opened("[::]:80", unsupported), Ok("0.0.0.0:80".to_owned()));
        assert_eq!(opened("[::1]:80", unsupported), Err(unsupported), "another address was meant");
        assert_eq!(opened("[::]:80", io::ErrorKind::AddrInUse), Err(io::ErrorKind::AddrInUse));
        assert_eq!(opened("127.0.0.1:80", unsupported), Ok("127.0.0.1:80".to_owned()));
    }
}
