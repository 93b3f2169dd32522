//! `pellucid demo`: a sandbox with a scheduler, with pods that fit and pods that do not.

mod accelerators;
mod cluster;
mod gangs;
mod load;
mod quotas;
mod summary;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use pellucid_cycle::{Registry, Snapshot};
use pellucid_kubernetes::{Connection, stop_requested};
use pellucid_model::PodKey;
use pellucid_sandbox::Sandbox;
use serde_json::{Value, json};

use pellucid_api::definitions::koordinator;
use pellucid_app::client;
use pellucid_app::clock;
use pellucid_app::instance::{Instance, InstanceConfig};
use pellucid_app::log::telemetry::LogControl;
use pellucid_sandbox::definition;

/// How long the cluster may take until every pod has a verdict.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);
const JOB_EVERY: Duration = Duration::from_secs(10);

/// Options of `pellucid demo`.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Address of the scheduler's REST server.
    pub listen: SocketAddr,
    /// Address of the sandbox's API server.
    pub api_listen: SocketAddr,
    /// End with a summary once every pod has a verdict.
    pub exit_when_settled: bool,
    /// Create no Jobs after the start.
    pub still: bool,
    /// Seed that orders nodes of equal score.
    pub seed: u64,
}

/// Runs the demo and writes its output for people to `out`.
pub async fn run(
    options: DemoOptions,
    log: Arc<LogControl>,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let sandbox = Sandbox::start(pellucid_sandbox::Config {
        listen: options.api_listen,
        node_metrics: Some(load::REPORT_EVERY),
        node_topologies: true,
        devices: true,
        ..pellucid_sandbox::Config::default()
    })
    .await?;
    let registry: Registry = Arc::new(pellucid_plugins::registry());
    let patience = Duration::from_secs(10);
    let connection = Connection::with_config(sandbox.kube_config(), "the demo's sandbox", patience).await?;
    let client = connection.write.clone();
    create(&client, [definition(koordinator::ELASTIC_QUOTAS), definition(koordinator::RESERVATIONS)]).await?;
    let mut instance = Instance::start(InstanceConfig {
        connection,
        configuration: pellucid_config::parse(&load::configuration(), "the demo's configuration", &registry)?,
        registry,
        listen: options.listen,
        secure: None,
        seed: options.seed,
        shadow_of: None,
        log: Some(log),
        clock: clock::system(),
        consistency: Default::default(),
        watches: Default::default(),
        git_commit: crate::GIT_COMMIT,
        decisions: None,
    })
    .await?;
    writeln!(out, "API server  {}   (kubectl --server={} get pods -A)", sandbox.url(), sandbox.url())?;
    writeln!(out, "scheduler   {}   (REST)", instance.url())?;
    let pods = fill(&client, &mut instance).await?;
    summary::write(&instance.snapshot(), &pods, out)?;
    let result = if options.exit_when_settled {
        let pending = pods.iter().filter(|p| p["spec"]["nodeName"].is_null()).count();
        writeln!(
            out,
            "\nSettled: {} pods placed, {pending} pending, each with its reason above.",
            pods.len() - pending
        )?;
        Ok(())
    } else {
        summary::write_curls(&instance.url(), out)?;
        serve(&client, &mut instance, options.still, out).await
    };
    instance.stop().await;
    sandbox.stop().await;
    result
}

/// Creates all objects. Returns the pods once each has a verdict.
async fn fill(client: &kube::Client, instance: &mut Instance) -> anyhow::Result<Vec<Value>> {
    populate(client).await?;
    settle(client, instance).await?;
    // Created last, so that there are pods to preempt, and nodes that are busy.
    create(client, cluster::urgent().into_iter().chain([load::stuck()])).await?;
    settle(client, instance).await?;
    // The quota borrows what nobody else asks for yet.
    create(client, quotas::tree().into_iter().chain(quotas::running())).await?;
    settle(client, instance).await?;
    create(client, quotas::waiting()).await?;
    settle(client, instance).await?;
    create(client, accelerators::fitting()).await?;
    settle(client, instance).await?;
    for name in accelerators::ending() {
        client::delete(client, &format!("/api/v1/namespaces/{}/pods/{name}", cluster::NAMESPACE)).await?;
    }
    create(client, accelerators::stuck()).await?;
    settle(client, instance).await
}

async fn populate(client: &kube::Client) -> anyhow::Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster::NAMESPACE}});
    create(client, std::iter::once(namespace).chain(cluster::nodes()).chain(cluster::fitting())).await?;
    // Created after the fitting pods, so that the pods that compete for scarce capacity are the ones that stay pending.
    wait_for_deployments(client).await?;
    create(client, cluster::stuck()).await?;
    create(client, [cluster::unreadable()]).await?;
    create(client, gangs::objects()).await
}

async fn create(client: &kube::Client, objects: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
    for object in objects {
        client::create(client, &object).await.with_context(|| {
            format!("cannot create {} {}", object["kind"].as_str().unwrap_or(""), object["metadata"]["name"])
        })?;
    }
    Ok(())
}

/// Waits until the controllers have created all pods of the Deployments.
async fn wait_for_deployments(client: &kube::Client) -> anyhow::Result<()> {
    let wanted: u64 = cluster::fitting().iter().map(|o| o["spec"]["replicas"].as_u64().unwrap_or(1)).sum();
    let check = async {
        loop {
            if pods(client).await?.len() as u64 >= wanted {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SETTLE_PATIENCE, check).await.context("the Deployments' pods did not appear")?
}

async fn pods(client: &kube::Client) -> anyhow::Result<Vec<Value>> {
    Ok(client::list(client, &format!("/api/v1/namespaces/{}/pods", cluster::NAMESPACE)).await?)
}

/// Waits until every pod has a verdict and nothing is in progress. Returns the pods.
async fn settle(client: &kube::Client, instance: &mut Instance) -> anyhow::Result<Vec<Value>> {
    let wait = async {
        loop {
            if is_quiet(&instance.snapshot()) {
                let pods = pods(client).await?;
                let snapshot = instance.snapshot();
                if is_quiet(&snapshot) && pods.iter().all(|pod| is_known(&snapshot, pod)) {
                    return anyhow::Ok(pods);
                }
            }
            tokio::select! {
                _ = instance.next_snapshot() => {}
                // Pods can change without a new snapshot, for example when they end.
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    };
    match tokio::time::timeout(SETTLE_PATIENCE, wait).await {
        Ok(pods) => pods,
        Err(_) => bail!("the cluster did not settle within {SETTLE_PATIENCE:?}"),
    }
}

fn is_quiet(snapshot: &Snapshot) -> bool {
    let counts = snapshot.queue.counts();
    let is_preempting = snapshot.cluster.preemptions().open().next().is_some();
    // Gang members that wait for each other stay in flight.
    let is_under_way = counts.in_flight > gangs::waiting(snapshot);
    let is_idle = counts.active == 0 && counts.backoff == 0 && !is_under_way && !is_preempting;
    is_idle && load::is_known(snapshot) && accelerators::is_known(snapshot)
}

fn is_known(snapshot: &Snapshot, pod: &Value) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return true;
    }
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let key = PodKey::new(text("/metadata/namespace"), text("/metadata/name"));
    let quarantined =
        snapshot.cluster.quarantined().any(|q| q.namespace == key.namespace && q.name == key.name);
    quarantined || snapshot.cluster.find_pod(&key).is_some()
}

/// Runs until stopped, and creates a small Job every few seconds unless `still` is set.
async fn serve(
    client: &kube::Client,
    instance: &mut Instance,
    still: bool,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(JOB_EVERY);
    let mut n = 0;
    loop {
        tokio::select! {
            _ = ticks.tick(), if !still => {
                n += 1;
                create(client, [cluster::job(n)]).await?;
            }
            stop = stop_requested() => {
                stop?;
                writeln!(out, "\nStopped after {n} jobs.")?;
                return Ok(());
            }
            reason = instance.ended() => bail!("stopped because {reason}"),
        }
    }
}
