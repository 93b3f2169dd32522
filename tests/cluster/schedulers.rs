//! Schedulers of the suite, which take part in leader election and have the rights of `deploy/` where the server knows
//! service accounts.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client, Config};
use parking_lot::Mutex;
use pellucid::app::instance::Instance;
use pellucid::config;
use serde_json::{Value, json};

use crate::common::running::parts;
use crate::common::{PATIENCE, client};
use crate::suite::{NAMESPACE, SCHEDULER, Suite};

/// Makes schedulers and keeps what they were forbidden.
pub(crate) struct Schedulers {
    config: Config,
    forbidden: Arc<Mutex<Vec<String>>>,
}

impl Schedulers {
    /// Asks for a token of the service account.
    pub(crate) async fn new(suite: &Suite) -> Self {
        let accounts: Api<ServiceAccount> = Api::namespaced(suite.client.clone(), NAMESPACE);
        let spec = TokenRequestSpec { expiration_seconds: Some(3_600), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let mut config = suite.config.clone();
        match accounts.create_token_request(NAMESPACE, &PostParams::default(), &request).await {
            Ok(made) => {
                let token = made.status.expect("a token").token;
                config.auth_info = serde_json::from_value(json!({"token": token})).expect("credentials");
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => println!(
                "*** NOT TRIED: the server has no tokens of service accounts, so the rights of deploy/ were not \
                 enforced{} ***",
                if suite.is_real { "" } else { "; tests/kubernetes/rights.rs holds them against the calls" }
            ),
            Err(error) => panic!("a token of the service account: {error}"),
        }
        Self { config, forbidden: Arc::default() }
    }

    /// Starts a scheduler, which is a standby at first.
    pub(crate) async fn start(&self) -> Instance {
        let settings = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {
                "leaderElect": true, "resourceNamespace": NAMESPACE, "resourceName": "pellucid",
                "leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "200ms",
            },
            "profiles": [{"schedulerName": SCHEDULER}],
        });
        let mut parts = parts(self.config.clone()).await;
        let configuration = config::parse(&settings.to_string(), "the suite's", &parts.registry);
        parts.configuration = configuration.unwrap_or_else(|wrong| panic!("{wrong}"));
        parts.connection.read = self.noting(parts.connection.read);
        parts.connection.write = self.noting(parts.connection.write);
        Instance::start(parts).await.expect("an instance")
    }

    /// Returns a client that notes what it was forbidden.
    fn noting(&self, client: Client) -> Client {
        let (forbidden, namespace) = (self.forbidden.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (client, forbidden) = (client.clone(), forbidden.clone());
            async move {
                let what = format!("{} {}", request.method(), request.uri().path());
                let answer = client.send(request).await?;
                if answer.status() == http::StatusCode::FORBIDDEN {
                    forbidden.lock().push(what);
                }
                Ok::<_, kube::Error>(answer)
            }
        });
        Client::new(service, namespace)
    }

    /// Asserts that the schedulers were allowed everything that they asked for.
    pub(crate) fn check_rights(&self) {
        let forbidden = self.forbidden.lock();
        assert!(forbidden.is_empty(), "the roles of deploy/ do not allow {forbidden:?}");
    }
}

/// Waits until an instance leads, for as long as tests wait.
pub(crate) async fn until_it_leads(instance: &mut Instance) {
    let waiting = async {
        while !instance.snapshot().is_leading {
            instance.next_snapshot().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it leads");
}

/// Reads the explanation of a pod until it satisfies a condition.
pub(crate) fn explained(instance: &Instance, pod: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/apis/v1/explain/pods/{NAMESPACE}/{pod}");
    tokio::task::block_in_place(|| client::wait(instance.address, &path, what, is_so))
}
