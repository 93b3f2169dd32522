//! Which certificate the command line takes for the scheduler's: one that a given authority signed, or one with a given
//! fingerprint.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What makes a certificate the right one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// An authority of this PEM file signed it for the host.
    Authority(&'a Path),
    /// Its SHA-256 fingerprint.
    Fingerprint(&'a str),
    /// Anything: for questions without credentials, whose answers are not relied on.
    Anyone,
}

impl Trust<'_> {
    /// Returns the TLS configuration. Fails when the file or the fingerprint cannot be used.
    pub(crate) fn config(self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let pinned = match self {
            Self::Authority(file) => {
                let config = config.with_root_certificates(roots(file)?);
                return Ok(Arc::new(config.with_no_client_auth()));
            }
            Self::Fingerprint(text) => Some(bytes(text).ok_or_else(|| {
                format!("{text:?} is no SHA-256 fingerprint: it must be 32 bytes in hexadecimal, with or without colons")
            })?),
            Self::Anyone => None,
        };
        let verifier = Arc::new(Pinned { pinned, provider });
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        Ok(Arc::new(config.with_no_client_auth()))
    }
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let name = file.display();
    let pem = std::fs::read(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("{name}: {error}"))?;
        roots.add(certificate).map_err(|error| format!("{name}: {error}"))?;
    }
    if roots.is_empty() { Err(format!("{name} has no PEM certificate")) } else { Ok(roots) }
}

/// Reads hexadecimal bytes, with or without colons.
fn bytes(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let digits =
        std::str::from_utf8(&digits).ok().filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut bytes = [0; 32];
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Accepts the certificate with a fingerprint, or any. That the server has its key is checked either way.
#[derive(Debug)]
struct Pinned {
    pinned: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        match self.pinned {
            Some(wanted) if digest.as_ref() != wanted => {
                Err(Error::General("the certificate has another fingerprint".to_owned()))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_with_and_without_colons() {
        let plain = "0a".repeat(32);
        let colons = vec!["0A"; 32].join(":");
        assert_eq!((bytes(&plain), bytes(&colons)), (Some([10; 32]), Some([10; 32])));
        for wrong in ["", "0a", &"zz".repeat(32), &"0a".repeat(33), &"é".repeat(32)] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
