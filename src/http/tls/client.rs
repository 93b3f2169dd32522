//! The user that a client's certificate names: the common name, and the organisations as groups, as in Kubernetes.
//!
//! rustls has verified the certificate before this reads it.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::{Any, Decode, Tag, Tagged};

use crate::authority::User;

/// Group of every authenticated user.
const AUTHENTICATED: &str = "system:authenticated";
/// Object identifiers of the attributes commonName and organizationName.
const COMMON_NAME: &str = "2.5.4.3";
const ORGANIZATION: &str = "2.5.4.10";

/// Returns the user of a verified certificate, or `None` when it names none.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<Arc<User>> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    let (mut name, mut groups) = (None, Vec::new());
    for attribute in certificate.tbs_certificate().subject().iter() {
        let text = text(&attribute.value);
        match attribute.oid.to_string().as_str() {
            COMMON_NAME => name = text.or(name),
            ORGANIZATION => groups.extend(text),
            _ => {}
        }
    }
    let name = name.filter(|name| !name.is_empty())?;
    if !groups.iter().any(|group| group == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    Some(Arc::new(User { name, groups, ..User::default() }))
}

fn text(value: &Any) -> Option<String> {
    Some(match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok()?.as_str().to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn the_subject_is_user_and_groups() {
        let of = |parts: &[(DnType, &str)]| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name = DistinguishedName::new();
            for (kind, value) in parts {
                params.distinguished_name.push(kind.clone(), *value);
            }
            user(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der())
        };
        let jane = of(&[(DnType::CommonName, "jane"), (DnType::OrganizationName, "team-a")]).unwrap();
        assert_eq!(
            (jane.name.as_str(), jane.groups.join(" ")),
            ("jane", "team-a system:authenticated".into())
        );
        assert_eq!(of(&[(DnType::OrganizationName, "team-a")]), None);
    }
}
