//! The HTTPS client of webhooks: one POST per call, with a bound on the answer.
//!
//! Connections are kept per target. Time limits are the caller's.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;

use super::address::Target;

/// Most bytes of an answer.
const MOST_ANSWER: usize = 3 * 1024 * 1024;
/// Most characters of a refusal's body in an error.
const MOST_SHOWN: usize = 200;
/// Most targets whose connections are kept.
const MOST_CLIENTS: usize = 64;

/// A target: its base URL, the name in its certificate, and the trusted authorities.
type Identity = (String, Option<String>, Option<Vec<Vec<u8>>>);

/// The clients of the targets called so far.
#[derive(Default)]
pub(super) struct Clients(Mutex<BTreeMap<Identity, Client>>);

impl Clients {
    /// Posts a review and returns the body of the answer. Fails with what an API server would say.
    pub(super) async fn post(
        &self,
        target: &Target,
        timeout: Duration,
        review: &Value,
    ) -> Result<Vec<u8>, String> {
        let failed = |why: String| format!("Post {:?}: {why}", target.url(timeout));
        let client = self.client(target).map_err(&failed)?;
        let request = http::Request::post(target.path_and_query(timeout))
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::USER_AGENT, "kube-apiserver-admission")
            .body(Body::from(serde_json::to_vec(review).unwrap_or_default()))
            .map_err(|error| failed(error.to_string()))?;
        let response = client.send(request).await.map_err(|error| failed(causes(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
        let body = body.map_err(|error| failed(error.to_string()))?.to_bytes().to_vec();
        if status.is_success() {
            return Ok(body);
        }
        if status == http::StatusCode::NOT_FOUND {
            return Err("the server could not find the requested resource".to_owned());
        }
        let text: String = String::from_utf8_lossy(&body).trim().chars().take(MOST_SHOWN).collect();
        Err(format!("an error on the server ({text:?}) has prevented the request from succeeding"))
    }

    fn client(&self, target: &Target) -> Result<Client, String> {
        let identity = (target.base.clone(), target.server_name.clone(), target.authorities.clone());
        let mut clients = self.0.lock();
        if let Some(client) = clients.get(&identity) {
            return Ok(client.clone());
        }
        // This fails only if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = kube::Config::new(target.base.parse().map_err(|error| format!("{error}"))?);
        config.root_cert.clone_from(&target.authorities);
        config.tls_server_name.clone_from(&target.server_name);
        let client = Client::try_from(config).map_err(|error| causes(&error))?;
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        clients.insert(identity, client.clone());
        Ok(client)
    }
}

/// Returns the innermost cause of an error, which says most.
fn causes(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
