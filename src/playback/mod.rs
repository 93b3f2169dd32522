//! `pellucid replay`: schedules a trace, either directly in the core or through the HTTP API of a sandbox.
//!
//! With the same seed, both ways give the same decisions, because pods arrive in file order and none leaves. The final
//! audit works on API objects with its own arithmetic.

pub mod dump;
mod environment;
pub mod gangs;
pub mod packing;

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use indicatif::{ProgressBar, ProgressStyle};
use pellucid_cluster::Input;
use pellucid_cluster::input::Quarantined;
use pellucid_config::{Configuration, DEFAULT_SCHEDULER_NAME};
use pellucid_cycle::Registry;
use pellucid_cycle::Scheduler;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::Settings;
use pellucid_kubernetes::decode::Decoder;
use pellucid_model::PodKey;
use pellucid_model::effect::{BindOutcome, Effect, EffectReport};
use pellucid_model::time::Probe;
use pellucid_queue::QueueLimits;
use pellucid_recording::switches::Switches;
use pellucid_replay::{Report, Trace, audit, to_node_json, to_pod_json, write_decisions};
use pellucid_sandbox::Kubelet;
use serde_json::{Value, json};

use crate::playback::environment::ReplayEnvironment;
use pellucid_app::client;
use pellucid_app::clock::{self, Clock, Stopwatch};
use pellucid_app::quantiles::Durations;

const NAMESPACE: &str = "default";
const BAR: &str = "{bar:40} {pos}/{len} pods  {per_sec}  {eta} left";

/// Options of `pellucid replay` for traces of pods that never leave.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Go through the HTTP API of a sandbox instead of calling the core.
    pub through_api: bool,
    /// File for the decisions, if they are to be written.
    pub decisions: Option<PathBuf>,
    /// Seed that orders nodes of equal score.
    pub seed: u64,
}

/// Result of a replay, from which the report is made.
struct Replayed {
    nodes: Vec<Value>,
    pods: Vec<Value>,
    snapshot: Arc<Snapshot>,
    took: Duration,
    decisions: Arc<Durations>,
    note: String,
}

/// Replays a trace and returns its report. Writes the decisions if a file is given.
pub fn replay(trace: Trace, options: ReplayOptions) -> BoxFuture<'static, anyhow::Result<Report>> {
    Box::pin(replay_inner(trace, options))
}

async fn replay_inner(trace: Trace, options: ReplayOptions) -> anyhow::Result<Report> {
    let nodes: Vec<Value> = trace.nodes.iter().map(to_node_json).collect();
    let pods: Vec<Value> =
        trace.pods.iter().map(|p| to_pod_json(p, NAMESPACE, DEFAULT_SCHEDULER_NAME)).collect();
    let replayed = if options.through_api {
        through_api(nodes, pods, options.seed).await?
    } else {
        straight(nodes, pods, options.seed)?
    };
    if let Some(file) = &options.decisions {
        write_file(file, &trace, &replayed.pods)?;
    }
    Ok(report(&replayed))
}

fn write_file(file: &PathBuf, trace: &Trace, pods: &[Value]) -> anyhow::Result<()> {
    let places: BTreeMap<&str, &str> = pods
        .iter()
        .filter_map(|p| {
            Some((p.pointer("/metadata/name")?.as_str()?, p.pointer("/spec/nodeName")?.as_str()?))
        })
        .collect();
    let failed = || format!("cannot write {}", file.display());
    let out = std::fs::File::create(file).with_context(failed)?;
    let lines = trace.pods.iter().map(|p| (&*p.name, places.get(&*p.name).copied()));
    write_decisions(&mut BufWriter::new(out), lines).with_context(failed)
}

// === directly in the core ===

fn straight(nodes: Vec<Value>, pods: Vec<Value>, seed: u64) -> anyhow::Result<Replayed> {
    let clock = clock::system();
    let registry: Registry = Arc::new(pellucid_plugins::registry());
    let configuration = pellucid_config::default(&registry)?;
    let (mut scheduler, decoder) = core(registry, configuration, seed);
    for node in &nodes {
        let node = decoder.node(node).map_err(unreadable)?;
        scheduler.apply(Input::NodeApplied(Arc::new(node)), clock());
    }
    let decisions = Arc::new(Durations::default());
    let bar = progress(pods.len(), BAR);
    let stopwatch = Stopwatch::start();
    let mut bound = pods;
    for pod in &mut bound {
        let name = pod["metadata"]["name"].clone();
        pod["metadata"]["uid"] = name;
        let decoded = decoder.pod(pod).map_err(unreadable)?;
        scheduler.apply(Input::PodApplied(Arc::new(decoded)), clock());
        let before = stopwatch.elapsed();
        let step = scheduler.step(clock(), &stopwatch);
        decisions.add(stopwatch.elapsed() - before);
        if let Some(node) = step.as_ref().and_then(|step| scheduler.chosen(&step.verdict)) {
            pod["spec"]["nodeName"] = json!(&**node);
        }
        confirm(&mut scheduler, &clock);
        bar.inc(1);
    }
    let took = stopwatch.elapsed();
    bar.finish_and_clear();
    let snapshot = Arc::new(scheduler.publish(clock()));
    let note = "straight to the core: without an API server, watches and writes".into();
    Ok(Replayed { nodes, pods: bound, snapshot, took, decisions, note })
}

fn unreadable(what: Quarantined) -> anyhow::Error {
    anyhow::anyhow!("{} {}: {}", what.kind, what.name, what.problem)
}

fn core(registry: Registry, configuration: Configuration, seed: u64) -> (Scheduler, Decoder) {
    let decoder = Decoder::in_use(&registry, &configuration.profiles);
    let settings = Settings {
        profiles: configuration.profiles,
        registry,
        limits: QueueLimits::default(),
        seed,
        switches: Arc::new(Switches::default()),
        controllers: Vec::new(),
        shadow_of: None,
    };
    (Scheduler::new(settings), decoder)
}

fn confirm(scheduler: &mut Scheduler, clock: &Clock) {
    for effect in scheduler.take_effects() {
        if let Effect::Bind(order) = effect {
            let report = EffectReport::BindDone {
                id: order.id,
                uid: order.pod.uid.clone(),
                outcome: BindOutcome::Bound,
            };
            scheduler.apply(Input::Report(report), clock());
        }
    }
}

// === through the API ===

async fn through_api(nodes: Vec<Value>, pods: Vec<Value>, seed: u64) -> anyhow::Result<Replayed> {
    let decisions = Arc::new(Durations::default());
    let mut environment =
        ReplayEnvironment::start(&nodes, seed, Kubelet::default(), Some(decisions.clone()), &[]).await?;

    let bar = progress(pods.len(), BAR);
    let stopwatch = Stopwatch::start();
    for pod in &pods {
        client::create(&environment.client, pod).await.context("cannot create a pod")?;
        bar.set_position(decided(&environment.instance.snapshot()) as u64);
    }
    environment
        .wait(|snapshot| {
            bar.set_position(decided(snapshot) as u64);
            decided(snapshot) == pods.len() && snapshot.queue.counts().in_flight == 0
        })
        .await?;
    let took = stopwatch.elapsed();
    bar.finish_and_clear();

    let nodes = client::list(&environment.client, "/api/v1/nodes").await?;
    let pods = client::list(&environment.client, &format!("/api/v1/namespaces/{NAMESPACE}/pods")).await?;
    let snapshot = environment.instance.snapshot();
    environment.stop().await;
    let note = "through the sandbox's HTTP API, on the same machine: creation, decision and binding".into();
    Ok(Replayed { nodes, pods, snapshot, took, decisions, note })
}

/// Returns how many pods have a verdict or a node.
fn decided(snapshot: &Snapshot) -> usize {
    let counts = snapshot.queue.counts();
    let waiting = counts.active + counts.backoff;
    snapshot.cluster.pods().count().saturating_sub(waiting) + snapshot.cluster.quarantined().count()
}

// === the report ===

fn report(replayed: &Replayed) -> Report {
    let mut pending: BTreeMap<String, usize> = BTreeMap::new();
    let (mut bound, mut quarantined) = (0, 0);
    for pod in &replayed.pods {
        if !pod["spec"]["nodeName"].is_null() {
            bound += 1;
            continue;
        }
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let key = PodKey::new(text("/metadata/namespace"), text("/metadata/name"));
        match reason(&replayed.snapshot, &key) {
            Some(reason) => *pending.entry(reason).or_default() += 1,
            None => quarantined += 1,
        }
    }
    let report = Report {
        pods: replayed.pods.len(),
        bound,
        pending_by_reason: pending,
        quarantined,
        pods_per_second: replayed.pods.len() as f64 / replayed.took.as_secs_f64().max(1e-9),
        decision_p50: replayed.decisions.quantile(0.5),
        decision_p99: replayed.decisions.quantile(0.99),
        notes: vec![replayed.note.clone()],
        ..Report::default()
    };
    report.with_audit(&audit(&replayed.nodes, &replayed.pods))
}

/// Returns the reasons why a pod is pending, without node counts, or `None` if the pod is quarantined.
fn reason(snapshot: &Snapshot, key: &PodKey) -> Option<String> {
    let id = snapshot.cluster.find_pod(key)?;
    match snapshot.refusal(id) {
        Some(refusal) => {
            let mut messages: Vec<String> = refusal.reasons().map(|(reason, _)| reason.message()).collect();
            messages.sort();
            messages.dedup();
            Some(messages.join(", "))
        }
        None => Some("not tried yet".into()),
    }
}

fn progress(n: usize, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(n as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
