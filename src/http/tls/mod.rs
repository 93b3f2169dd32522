//! TLS of the listener: its certificate, and the certificates of clients.
//!
//! `material` is what is read from files and made of it; `client` says which user a client's certificate names. Files are
//! looked at again when a connection comes in and the last look is some seconds old, so a renewed certificate needs no
//! restart, and an unusable one leaves the old one in force. Clients need no certificate; one that is shown must be signed
//! by a known authority.

pub(crate) mod client;
mod material;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::tls::material::{Material, fingerprint};

/// How long the files are not looked at again.
const LOOK: Duration = Duration::from_secs(3);

/// Where the server's certificate comes from.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// PEM files: the chain, the server's own certificate first, and its private key.
    Files {
        /// File of the chain.
        certificate: PathBuf,
        /// File of the private key.
        key: PathBuf,
    },
    /// Made at the start, for these host names and addresses, and known by its fingerprint alone.
    SelfSigned {
        /// Host names and addresses.
        names: Vec<String>,
    },
}

/// The authorities that sign certificates of clients.
#[derive(Clone, Debug, Default)]
pub struct ClientCa {
    /// PEM file.
    pub file: Option<PathBuf>,
    /// PEM text that the cluster publishes; empty when it publishes none.
    pub cluster: Option<watch::Receiver<String>>,
}

/// Why there is no TLS. Each names what was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {what} {file}: {cause}")]
    Unreadable {
        /// What the file should hold.
        what: &'static str,
        /// Path of the file.
        file: String,
        /// Error of the operating system.
        cause: String,
    },
    /// A certificate, key or authority cannot be used.
    #[error("{what} of {from} cannot be used: {cause}")]
    Unusable {
        /// The certificate, the key or the authority.
        what: &'static str,
        /// The file, or where else it comes from.
        from: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// TLS of a listener, which follows its files.
pub struct Tls {
    certificate: Certificate,
    client_ca: ClientCa,
    state: Mutex<State>,
}

struct State {
    config: Arc<ServerConfig>,
    /// What was read last, usable or not, or why it was not read.
    last: Result<Material, TlsError>,
    looked: Instant,
    fingerprint: String,
}

impl Tls {
    /// Reads or makes the certificate. Fails when it cannot be used.
    pub fn new(certificate: Certificate, client_ca: ClientCa) -> Result<Self, TlsError> {
        let material = Material::first(&certificate, &client_ca)?;
        let config = Arc::new(material.config()?);
        let fingerprint = fingerprint(&material.chain()?);
        let state = State { config, last: Ok(material), looked: Instant::now(), fingerprint };
        Ok(Self { certificate, client_ca, state: Mutex::new(state) })
    }

    /// Returns the SHA-256 fingerprint of the certificate in force, as hexadecimal bytes with colons.
    pub fn fingerprint(&self) -> String {
        self.state.lock().fingerprint.clone()
    }

    /// Returns the configuration for a connection. Looks at the files when the last look is some seconds old, which may
    /// block for as long as small files take.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            let held = state.last.as_ref().ok().cloned();
            let read = Material::read(&self.certificate, &self.client_ca, held.as_ref());
            if read != state.last {
                state.take(read);
            }
        }
        Arc::clone(&state.config)
    }
}

impl State {
    /// Puts what was read in force if it can be used; says so or why not, once.
    fn take(&mut self, read: Result<Material, TlsError>) {
        let usable =
            read.clone().and_then(|material| Ok((material.config()?, fingerprint(&material.chain()?))));
        match usable {
            Ok((config, fingerprint)) => {
                tracing::info!(fingerprint, "certificates of the REST server read again");
                (self.config, self.fingerprint) = (Arc::new(config), fingerprint);
            }
            Err(error) => {
                let problem = error.to_string();
                tracing::error!(
                    problem,
                    "certificates of the REST server not replaced; the old ones stay in force"
                );
            }
        }
        self.last = read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &std::path::Path, names: &[&str]) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Certificate::Files { certificate, key }
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_followed_and_bad_ones_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tls = Tls::new(write(folder.path(), &["a"]), ClientCa::default()).unwrap();
        let (first, look) = (tls.fingerprint(), Duration::from_secs(4));
        write(folder.path(), &["b"]);
        tls.config();
        assert_eq!(tls.fingerprint(), first, "not looked at yet");
        tokio::time::advance(look).await;
        tls.config();
        let second = tls.fingerprint();
        assert_ne!(second, first);
        for bad in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(folder.path().join("tls.crt"), bad).unwrap();
            tokio::time::advance(look).await;
            tls.config();
            assert_eq!(tls.fingerprint(), second, "{bad:?}");
        }
        std::fs::remove_file(folder.path().join("tls.key")).unwrap();
        tokio::time::advance(look).await;
        tls.config();
        assert_eq!(tls.fingerprint(), second);
        write(folder.path(), &["c"]);
        tokio::time::advance(look).await;
        tls.config();
        assert_ne!(tls.fingerprint(), second);
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let good = write(folder.path(), &["a"]);
        let missing = ClientCa { file: Some("/nowhere/ca.crt".into()), cluster: None };
        let said = Tls::new(good.clone(), missing).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("/nowhere/ca.crt"), "{said}");
        let key = folder.path().join("tls.key");
        std::fs::write(&key, "no key").unwrap();
        let said = Tls::new(good, ClientCa::default()).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains(&key.display().to_string()), "{said}");
    }
}
