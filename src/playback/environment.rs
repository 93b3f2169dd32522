//! The environment of a replay through the API: a sandbox with the trace's nodes, and a scheduler.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use pellucid_cycle::{Registry, Snapshot};
use pellucid_kubernetes::Connection;
use pellucid_model::CustomKindRef;
use pellucid_plugins::elastic_quota::ELASTIC_QUOTA;
use pellucid_sandbox::{Kubelet, Sandbox};
use serde_json::Value;

use pellucid_api::definitions::koordinator;
use pellucid_app::instance::{Instance, InstanceConfig};
use pellucid_app::quantiles::Durations;
use pellucid_app::{client, clock};
use pellucid_sandbox::definition;

const WITH_QUOTAS: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: pellucid
  plugins: {multiPoint: {enabled: [{name: ElasticQuota}]}}
";
/// How long the scheduler may publish nothing before the replay gives up.
const STALL_PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox and a scheduler that runs against it.
pub(crate) struct ReplayEnvironment {
    sandbox: pellucid_sandbox::Handle,
    /// The scheduler under test.
    pub instance: Instance,
    /// The replay's own client, separate from the scheduler's.
    pub client: kube::Client,
}

impl ReplayEnvironment {
    /// Starts the sandbox and the scheduler, creates nodes and quotas, and waits until the scheduler knows them. With
    /// quotas, the plugin ElasticQuota is enabled.
    pub(crate) async fn start(
        nodes: &[Value],
        seed: u64,
        kubelet: Kubelet,
        decisions: Option<Arc<Durations>>,
        quotas: &[Value],
    ) -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(pellucid_sandbox::Config {
            kubelet: Some(kubelet),
            ..pellucid_sandbox::Config::default()
        })
        .await?;
        let registry: Registry = Arc::new(pellucid_plugins::registry());
        let patience = Duration::from_secs(10);
        let connection =
            Connection::with_config(sandbox.kube_config(), "the replay's sandbox", patience).await?;
        let client = connection.write.clone();
        let configuration = if quotas.is_empty() {
            pellucid_config::default(&registry)?
        } else {
            // The scheduler looks for kinds when it starts.
            client::create(&client, &definition(koordinator::ELASTIC_QUOTAS))
                .await
                .context("cannot define ElasticQuota")?;
            pellucid_config::parse(WITH_QUOTAS, "the replay's configuration", &registry)?
        };
        let instance = Instance::start(InstanceConfig {
            connection,
            configuration,
            registry,
            listen: ([127, 0, 0, 1], 0).into(),
            secure: None,
            seed,
            shadow_of: None,
            log: None,
            clock: clock::system(),
            consistency: Default::default(),
            watches: Default::default(),
            git_commit: crate::GIT_COMMIT,
            decisions,
        })
        .await?;
        let mut environment = Self { sandbox, instance, client };
        for quota in quotas {
            let name = &quota["metadata"]["name"];
            client::create(&environment.client, quota)
                .await
                .with_context(|| format!("cannot create quota {name}"))?;
        }
        for node in nodes {
            client::create(&environment.client, node).await.context("cannot create a node")?;
        }
        let is_there = |snapshot: &Snapshot| {
            let known = snapshot.cluster.custom_objects().iter(CustomKindRef(&ELASTIC_QUOTA)).count();
            snapshot.cluster.present().len() == nodes.len() && known == quotas.len()
        };
        environment.wait(is_there).await?;
        Ok(environment)
    }

    /// Waits until `is_wanted` accepts a snapshot. Fails when nothing is published for [`STALL_PATIENCE`].
    pub(crate) async fn wait(&mut self, is_wanted: impl Fn(&Snapshot) -> bool) -> anyhow::Result<()> {
        let mut snapshot = self.instance.snapshot();
        while !is_wanted(&snapshot) {
            let next = tokio::time::timeout(STALL_PATIENCE, self.instance.next_snapshot()).await;
            snapshot = next.context("the scheduler published nothing for a minute")?;
        }
        Ok(())
    }

    pub(crate) async fn stop(self) {
        self.instance.stop().await;
        self.sandbox.stop().await;
    }
}
