//! A client over TLS, which sends what it is told and shows the bytes that come back.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::common::PATIENCE;
use crate::common::client::{Reply, read_all};

/// Who asks, and where.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    config: Arc<ClientConfig>,
    /// Lines of every request's head.
    headers: String,
}

impl Caller {
    /// Asks a server whose certificate this authority signed; with a certificate and key of the client, if given.
    pub(crate) fn new(address: SocketAddr, authority: &str, identity: Option<(&str, &str)>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        Self { address, config: Arc::new(config), headers: String::new() }
    }

    /// Does the same with a token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        self.with_header(&format!("Authorization: Bearer {token}"))
    }

    /// Does the same with a further header.
    pub(crate) fn with_header(&self, line: &str) -> Self {
        Self { headers: format!("{}{line}\r\n", self.headers), ..self.clone() }
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        self.send("GET", target, "", "")
    }

    pub(crate) fn put(&self, target: &str, body: &str) -> Reply {
        self.send("PUT", target, "Content-Type: text/plain\r\n", body)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Reply {
        self.send("POST", target, "Content-Type: application/json\r\n", &body.to_string())
    }

    pub(crate) fn send(&self, method: &str, target: &str, headers: &str, body: &str) -> Reply {
        let text = self.head(method, target, headers, body.len()) + body;
        let mut stream = self.connect().expect("the handshake succeeds");
        std::io::Write::write_all(&mut stream, text.as_bytes()).expect("the request is sent");
        read_all(&mut stream)
    }

    /// Returns the head of a request.
    pub(crate) fn head(&self, method: &str, target: &str, headers: &str, length: usize) -> String {
        format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}{headers}Content-Length: {length}\r\n\r\n",
            self.address, self.headers
        )
    }

    /// Connects, or says why the handshake failed.
    pub(crate) fn connect(&self) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut tcp = TcpStream::connect(self.address)?;
        tcp.set_read_timeout(Some(Duration::from_secs(20)))?;
        let name = ServerName::from(self.address.ip());
        let mut session = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut tcp)?;
        }
        Ok(StreamOwned::new(session, tcp))
    }

    /// Reads a path again with every newer generation until its body satisfies a condition.
    pub(crate) fn wait(&self, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let (end, mut generation) = (Instant::now() + PATIENCE, 0);
        let sign = if path.contains('?') { '&' } else { '?' };
        loop {
            let reply = self.get(&format!("{path}{sign}minGeneration={generation}"));
            let body = if reply.status == 200 { reply.json() } else { Value::Null };
            if !body.is_null() && wanted(&body) {
                return body;
            }
            assert!(Instant::now() < end, "{what} did not come about: {path} says {}", reply.text());
            generation = reply.header("x-snapshot-generation").parse::<u64>().map_or(generation, |g| g + 1);
        }
    }
}
