//! What the TLS of a listener is made of: PEM texts, and the configuration that rustls makes of them.

use std::path::Path;
use std::sync::Arc;

use ring::digest;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::tls::{Certificate, ClientCa, TlsError};

/// A PEM text, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    pem: Vec<u8>,
    from: String,
}

/// Certificate, key, and the authorities of clients, as texts.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    chain: Text,
    key: Text,
    authorities: Vec<Text>,
}

fn read(what: &'static str, file: &Path) -> Result<Text, TlsError> {
    let from = file.display().to_string();
    match std::fs::read(file) {
        Ok(pem) => Ok(Text { pem, from }),
        Err(error) => Err(TlsError::Unreadable { what, file: from, cause: error.to_string() }),
    }
}

impl Text {
    fn unusable(&self, what: &'static str, cause: impl ToString) -> TlsError {
        TlsError::Unusable { what, from: self.from.clone(), cause: cause.to_string() }
    }

    fn certificates(&self, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.pem).collect();
        let all = all.map_err(|error| self.unusable(what, error))?;
        if all.is_empty() { Err(self.unusable(what, "it has no PEM certificate")) } else { Ok(all) }
    }
}

impl Material {
    /// Reads the files, or makes a certificate.
    pub(super) fn first(certificate: &Certificate, client_ca: &ClientCa) -> Result<Self, TlsError> {
        let Certificate::SelfSigned { names } = certificate else {
            return Self::read(certificate, client_ca, None);
        };
        let from = format!("the self-signed certificate for {}", names.join(", "));
        let made = rcgen::generate_simple_self_signed(names.clone()).map_err(|error| TlsError::Unusable {
            what: "a name",
            from: from.clone(),
            cause: error.to_string(),
        })?;
        let text = |pem: String| Text { pem: pem.into_bytes(), from: from.clone() };
        let (chain, key) = (text(made.cert.pem()), text(made.signing_key.serialize_pem()));
        Ok(Self { chain, key, authorities: authorities(client_ca)? })
    }

    /// Reads the files. A certificate that was made is kept from `held`.
    pub(super) fn read(
        certificate: &Certificate,
        client_ca: &ClientCa,
        held: Option<&Self>,
    ) -> Result<Self, TlsError> {
        let (chain, key) = match (certificate, held) {
            (Certificate::SelfSigned { .. }, Some(held)) => (held.chain.clone(), held.key.clone()),
            (Certificate::SelfSigned { .. }, None) => return Self::first(certificate, client_ca),
            (Certificate::Files { certificate, key }, _) => {
                (read("the certificate", certificate)?, read("the private key", key)?)
            }
        };
        Ok(Self { chain, key, authorities: authorities(client_ca)? })
    }

    /// Returns the chain of certificates, the server's own first.
    pub(super) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.chain.certificates("the certificate")
    }

    /// Returns the configuration of a listener. Fails when a text cannot be used, or key and certificate do not match.
    pub(super) fn config(&self) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(default_provider());
        let key = PrivateKeyDer::from_pem_slice(&self.key.pem);
        let key = key.map_err(|error| self.key.unusable("the private key", error))?;
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.chain.unusable("TLS", error))?;
        let mut roots = RootCertStore::empty();
        for text in &self.authorities {
            for authority in text.certificates("a client CA")? {
                roots.add(authority).map_err(|error| text.unusable("a client CA", error))?;
            }
        }
        let builder = if roots.is_empty() {
            versions.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build();
            let from = self.authorities.first().unwrap_or(&self.chain);
            versions.with_client_cert_verifier(verifier.map_err(|error| from.unusable("a client CA", error))?)
        };
        let mut config = builder
            .with_single_cert(self.chain()?, key)
            .map_err(|error| self.key.unusable("the private key", error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn authorities(client_ca: &ClientCa) -> Result<Vec<Text>, TlsError> {
    let of_file = client_ca.file.as_deref().map(|file| read("the client CA", file)).transpose()?;
    let of_cluster = client_ca.cluster.as_ref().map(|published| Text {
        pem: published.borrow().clone().into_bytes(),
        from: "the config map kube-system/extension-apiserver-authentication".to_owned(),
    });
    Ok(of_file.into_iter().chain(of_cluster.filter(|text| !text.pem.is_empty())).collect())
}

/// Returns the SHA-256 fingerprint of the first certificate of a chain.
pub(super) fn fingerprint(chain: &[CertificateDer<'_>]) -> String {
    let first = chain.first().map_or(&[][..], |certificate| certificate.as_ref());
    let digest = digest::digest(&digest::SHA256, first);
    let bytes: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}
