//! Certificates, and a cluster in which webhooks are registered.

use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::ByteString;
use kube::client::Body;
use pellucid::sandbox::{Config, Handle};
use serde_json::{Value, json};

pub(crate) use crate::common::certificates::Ca;
use crate::common::running::sandbox;

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the `caBundle` of an authority.
pub(crate) fn bundle(ca: &Ca) -> Value {
    json!(ByteString(ca.pem.clone().into_bytes()))
}

/// An answer of the API server.
pub(crate) struct Said {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Said {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Fails unless the write was carried out.
    #[track_caller]
    pub(crate) fn done(self) -> Value {
        assert!((200..300).contains(&self.code), "{}: {}", self.code, self.body);
        self.body
    }
}

/// A cluster, and a client that says what it hears.
pub(crate) struct Cluster {
    pub(crate) sandbox: Handle,
    pub(crate) client: kube::Client,
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

impl Cluster {
    pub(crate) async fn start(config: Config) -> Self {
        let (sandbox, client) = sandbox(config).await;
        Self { sandbox, client }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Said {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content_type);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        Said { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Said {
        self.ask(Method::POST, path, "application/json", body).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Said {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Said {
        self.ask(Method::DELETE, path, "application/json", &Value::Null).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, "application/json", &Value::Null).await.done()
    }

    /// Registers one webhook, `NAME.test.example`.
    pub(crate) async fn register(&self, kind: &str, name: &str, webhook: &Value) -> Said {
        let mut full = json!({
            "name": format!("{name}.test.example"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods"]}]
        });
        json_patch::merge(&mut full, webhook);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name}, "webhooks": [full]
        });
        let plural = format!("{}webhookconfigurations", kind.to_lowercase());
        self.post(&format!("{REGISTRATION}/{plural}"), &configuration).await
    }

    /// Removes the validating webhook configuration of a name.
    pub(crate) async fn unregister(&self, name: &str) {
        self.delete(&format!("{REGISTRATION}/validatingwebhookconfigurations/{name}")).await.done();
    }
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}
    })
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never: {what}");
}
