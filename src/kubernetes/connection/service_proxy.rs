//! Reaches a Service through the API server, for clients outside the cluster: `/api/v1/namespaces/…/services/…/proxy`.
//!
//! The API server takes `Authorization` for itself and forwards the rest, without saying who asks. So the token goes a
//! second time, in a header of its own, to a server that asks the API server about it. It goes to a Service that is served as
//! HTTPS alone; the API server does not check that Service's certificate, so whoever may change the Service or its Endpoints
//! could read the token.

use std::path::Path;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Request, Response};
use kube::Client;
use kube::client::Body;

use crate::connection::bearer_token::BearerToken;
use crate::connection::client::{ConnectError, chain};
use crate::connection::kubeconfig::{Loaded, load, redacted};
use crate::connection::transport::changing_client;

/// Header in which the token passes.
const FORWARDED: HeaderName = HeaderName::from_static("x-pellucid-authorization");

/// A Service behind an API server.
pub struct ServiceProxy {
    client: Client,
    /// Path of the Service at the API server.
    prefix: String,
    url: String,
}

impl ServiceProxy {
    /// Prepares to reach `namespace/name:port` with the credentials of a kubeconfig. Sends nothing yet.
    pub async fn open(kubeconfig: &Path, service: &str) -> Result<Self, ConnectError> {
        let Loaded { mut config, source_name } = load(Some(kubeconfig)).await?;
        let bad = |cause: String| ConnectError::Kubeconfig { source_name: source_name.clone(), cause };
        let prefix = prefix(service)
            .ok_or_else(|| bad(format!("{service:?} is no Service; it must be NAMESPACE/NAME:PORT")))?;
        let url = redacted(&config.cluster_url.to_string());
        let token = BearerToken::of(&mut config.auth_info).await.map_err(|error| bad(error.to_string()))?;
        let client = changing_client(&config, token, forward);
        let (client, _) =
            client.map_err(|error| ConnectError::Client { url: url.clone(), cause: chain(&error) })?;
        let url = format!("{}{prefix}", url.trim_end_matches('/'));
        Ok(Self { client, prefix, url })
    }

    /// Returns the URL of the Service at the API server, without credentials.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request whose URI is a path of the Service. A token in its `x-pellucid-authorization` stands before that of the
    /// kubeconfig. Fails with what went wrong.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, String> {
        let (mut parts, body) = request.into_parts();
        let uri = format!("{}{}", self.prefix, parts.uri);
        parts.uri = uri.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let request = Request::from_parts(parts, Body::from(body));
        self.client.send(request).await.map_err(|error| chain(&error))
    }
}

/// Copies the credentials into the header that passes the API server.
fn forward(mut request: Request<Body>) -> Request<Body> {
    let bearer = |value: &&HeaderValue| value.to_str().is_ok_and(|text| text.starts_with("Bearer "));
    let given = request.headers().get(AUTHORIZATION).filter(bearer).cloned();
    if let Some(mut given) = given {
        given.set_sensitive(true);
        request.headers_mut().entry(FORWARDED).or_insert(given);
    }
    request
}

/// Returns the path of `namespace/name:port`, served as HTTPS.
fn prefix(service: &str) -> Option<String> {
    let (namespace, rest) = service.split_once('/')?;
    let (name, port) = rest.split_once(':')?;
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let is_whole = [namespace, name, port].into_iter().all(is_name);
    is_whole.then(|| format!("/api/v1/namespaces/{namespace}/services/https:{name}:{port}/proxy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_namespace_name_and_port() {
        let path = "/api/v1/namespaces/pellucid/services/https:web:https/proxy";
        assert_eq!(prefix("pellucid/web:https").as_deref(), Some(path));
        for wrong in ["web", "a/web", "a/web:", "/web:1", "a/b/c:1", "a/web:1:2", "A/web:1"] {
            assert_eq!(prefix(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_tokens_are_forwarded_and_a_given_one_stays() {
        let sent = |pairs: &[(HeaderName, &str)]| {
            let mut request = Request::new(Body::empty());
            for (name, value) in pairs {
                request.headers_mut().insert(name, value.parse().expect("a value"));
            }
            let headers = forward(request).headers().clone();
            headers.get(FORWARDED).map(|value| value.to_str().expect("a text").to_owned())
        };
        assert_eq!(sent(&[(AUTHORIZATION, "Bearer a")]).as_deref(), Some("Bearer a"));
        assert_eq!(sent(&[(AUTHORIZATION, "Basic a")]), None);
        assert_eq!(
            sent(&[(AUTHORIZATION, "Bearer a"), (FORWARDED, "Bearer b")]).as_deref(),
            Some("Bearer b")
        );
    }
}
