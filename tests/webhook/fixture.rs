//! Certificates, and a cluster in which webhooks are registered.

use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::ByteString;
use kube::client::Body;
use pellucid::sandbox::{Config, Handle};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::common::running::sandbox;

const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate authority.
pub(crate) struct Ca {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate for some names, and its key.
    pub(crate) fn sign(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Returns its `caBundle`.
    pub(crate) fn bundle(&self) -> Value {
        json!(ByteString(self.pem.clone().into_bytes()))
    }
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
