//! A certificate authority, users, and a scheduler that serves them.

use std::sync::Arc;
use std::time::Duration;

use pellucid::app::access::SecureServing;
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::config;
use pellucid::http::Certificate;
use pellucid::sandbox::{Config, Handle, Kubelet, User};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::common::certificates::Ca;
use crate::common::running::{parts, sandbox};
use crate::security::caller::Caller;

/// The namespace of the tenant who asks.
pub(crate) const MINE: &str = "team-a";

/// A scheduler that serves HTTPS, with the cluster that knows its users.
pub(crate) struct Secure {
    pub(crate) sandbox: Handle,
    pub(crate) instance: Instance,
    pub(crate) ca: Ca,
    pub(crate) folder: TempDir,
}

/// Users: `root` may do everything, `ann` and `amy` have rights in [`MINE`] only, `bob` has none, `cert` comes with a certificate, and
/// `robot` is an account of another tenant that may set switches.
fn users() -> Vec<User> {
    let users = json!([
        {"name": "root", "token": "t-root", "groups": ["admins"], "rights": [{"verbs": ["*"], "paths": ["*"]}]},
        {"name": "reader", "token": "t-reader", "rights": [{"verbs": ["get"], "paths": ["/apis/*", "/metrics*", "/debug/*"]}]},
        {"name": "ann", "token": "t-ann", "rights": [{"verbs": ["get", "create"], "namespace": MINE}]},
        {"name": "amy", "token": "t-amy", "rights": [{"verbs": ["get", "create"], "namespace": MINE}]},
        {"name": "bob", "token": "t-bob"},
        {"name": "system:serviceaccount:xq7-tenant:xq7-robot", "token": "t-robot", "rights": [{"verbs": ["update"], "paths": ["/debug/*"]}]},
        {"name": "cert", "rights": [{"verbs": ["get"], "paths": ["/apis/*"]}]},
    ]);
    serde_json::from_value(users).unwrap()
}

/// Starts a cluster with these objects, and a scheduler.
pub(crate) async fn start(objects: Vec<Value>) -> Secure {
    start_with(objects, None).await
}

/// Starts a cluster with these objects, and a scheduler with this configuration.
pub(crate) async fn start_with(objects: Vec<Value>, configuration: Option<&str>) -> Secure {
    let (ca, folder) = (Ca::new(), tempfile::tempdir().unwrap());
    let (certificate, key) = ca.sign("pellucid", &["127.0.0.1"]);
    let files = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::write(&files.0, certificate).unwrap();
    std::fs::write(&files.1, key).unwrap();
    let published = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": ca.pem},
    });
    let objects = [published].into_iter().chain(objects).collect();
    let kubelet = Some(Kubelet { start_delay: Duration::ZERO, stop_delay: Duration::from_secs(3600) });
    let (sandbox, _) = sandbox(Config { objects, users: users(), kubelet, ..Config::default() }).await;
    let secure = SecureServing {
        address: ([127, 0, 0, 1], 0).into(),
        certificate: Certificate::Files { certificate: files.0, key: files.1 },
        client_ca_file: None,
    };
    let mut parts = InstanceConfig { secure: Some(secure), ..parts(sandbox.kube_config()).await };
    if let Some(text) = configuration {
        parts.configuration = config::parse(text, "the test's", &parts.registry).expect("a configuration");
    }
    let instance = Instance::start(parts).await.expect("an instance");
    Secure { sandbox, instance, ca, folder }
}

impl Secure {
    /// Returns a client without credentials.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.instance.address, &self.ca.pem, None)
    }

    /// Returns a client with the token of a user.
    pub(crate) fn user(&self, name: &str) -> Caller {
        self.caller().with_token(&format!("t-{name}"))
    }

    pub(crate) async fn stop(self) {
        self.instance.stop().await;
        self.sandbox.stop().await;
    }
}

/// Runs blocking questions while the servers go on.
pub(crate) async fn asking<T: Send + 'static>(
    secure: Secure,
    ask: impl FnOnce(&Secure) -> T + Send + 'static,
) -> T {
    let secure = Arc::new(secure);
    let asked = Arc::clone(&secure);
    let said = tokio::task::spawn_blocking(move || ask(&asked)).await.expect("the questions are asked");
    if let Ok(secure) = Arc::try_unwrap(secure) {
        secure.stop().await;
    }
    said
}
