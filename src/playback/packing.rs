//! `pellucid replay --strategy`: how well a strategy of DeviceShare packs GPUs, card by card.
//!
//! Pods arrive one by one, or all of a second together, are tried once, and none leaves: the protocol of FGD. The decisions are those of the
//! scheduler's core with a configuration that anybody can write; only the scores of other plugins are off. Device
//! objects, requests and annotations are those of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use pellucid_cluster::Input;
use pellucid_config::DEFAULT_SCHEDULER_NAME;
use pellucid_cycle::{Registry, Scheduler};
use pellucid_kubernetes::decode::Decoder;
use pellucid_model::effect::{BindOutcome, Effect, EffectReport};
use pellucid_model::time::Probe;
use pellucid_model::{CustomKindRef, Now};
use pellucid_plugins::device_share::{DEVICE, NAME};
use pellucid_replay::{
    Arrivals, GPU_CORE, PackingReport, PackingRun, RunResult, Trace, TraceNode, TracePod, Typical, arrivals,
    to_card_node_json, to_card_pod_json, to_device_json, typical_json, typical_pods,
};
use serde_json::{Value, json};

use super::{BAR, NAMESPACE, core, progress, unreadable};
use pellucid_app::clock::Stopwatch;

/// Annotation with the devices of a pod.
const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";
/// Seed of the first run, as in FGD's artifact.
const FIRST_SEED: u64 = 42;

/// What nodes and cards are scored by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strategy {
    /// `LeastAllocated`
    Least,
    /// `MostAllocated`
    Most,
    /// `FragmentationGradient`
    FragmentationGradient,
}

/// Options of a study.
#[derive(Clone, Copy, Debug)]
pub struct PackingOptions {
    /// What nodes and cards are scored by.
    pub strategy: Strategy,
    /// Whether typical pods are counted over those that arrived, and not over the whole trace.
    pub counts_typical: bool,
    /// Number of typical pods with which FragmentationGradient fills a node up to rate it; 0 for FGD's rating.
    pub lookahead: u32,
    /// Whether the fuller node is preferred of those with equal scores.
    pub best_fit: bool,
    /// Number of pods that arrive in a second, when all of a second wait and are taken from the queue largest first.
    pub rate: Option<u32>,
    /// What arrives, in percent of the cluster's GPUs.
    pub arrival: u32,
    /// Number of runs.
    pub seeds: u32,
}

impl PackingOptions {
    fn scoring(&self, typical: &[Typical]) -> Value {
        let typical: Vec<Value> = match self.counts_typical {
            true => Vec::new(),
            false => typical.iter().map(typical_json).collect(),
        };
        match self.strategy {
            Strategy::Least => json!({ "type": "LeastAllocated" }),
            Strategy::Most => json!({ "type": "MostAllocated" }),
            Strategy::FragmentationGradient => json!({
                "type": "FragmentationGradient",
                "typicalPods": typical,
                "lookahead": self.lookahead,
            }),
        }
    }

    /// Returns the configuration: DeviceShare filters, reserves and scores. No other plugin scores, but for ties, and
    /// none preempts: all pods have the same priority.
    fn configuration(&self, typical: &[Typical]) -> Value {
        let mut plugins = json!({
            "multiPoint": { "enabled": [{ "name": NAME }] },
            "score": { "disabled": [{ "name": "*" }], "enabled": [{ "name": NAME, "weight": 1000 }] },
            "postFilter": { "disabled": [{ "name": "*" }] },
        });
        let mut args = vec![json!({ "name": NAME, "args": { "scoringStrategy": self.scoring(typical) } })];
        if self.best_fit {
            const FIT: &str = "NodeResourcesFit";
            let resources = json!([{ "name": "cpu", "weight": 1 }, { "name": GPU_CORE, "weight": 1 }]);
            let strategy = json!({ "type": "MostAllocated", "resources": resources });
            args.push(json!({ "name": FIT, "args": { "scoringStrategy": strategy } }));
            if let Some(enabled) = plugins["score"]["enabled"].as_array_mut() {
                enabled.push(json!({ "name": FIT, "weight": 1 }));
            }
        }
        if self.rate.is_some() {
            plugins["queueSort"] = json!({ "disabled": [{ "name": "*" }], "enabled": [{ "name": NAME }] });
        }
        json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{
                "schedulerName": DEFAULT_SCHEDULER_NAME,
                "plugins": plugins,
                "pluginConfig": args,
            }],
        })
    }

    fn title(&self, trace: &Trace) -> String {
        let gpus: u64 = trace.nodes.iter().map(|node| node.gpus).sum();
        let mut title = format!(
            "{} nodes with {gpus} GPUs; pods arrive until they request {} % of them; scored by {}",
            trace.nodes.len(),
            self.arrival,
            self.scoring(&[])["type"].as_str().unwrap_or_default(),
        );
        if self.strategy == Strategy::FragmentationGradient {
            let typical = if self.counts_typical { "those that arrived" } else { "the trace" };
            title += &format!(", typical pods counted over {typical}");
            if self.lookahead > 0 {
                title += &format!(", looking {} pods ahead", self.lookahead);
            }
        }
        if self.best_fit {
            title += ", then by best fit";
        }
        if let Some(rate) = self.rate {
            title += &format!("; {rate} arrive in a second, those of a second largest first");
        }
        title
    }
}

/// Runs a study and returns its report.
pub fn study(trace: &Trace, options: PackingOptions) -> anyhow::Result<PackingReport> {
    let typical = typical_pods(&trace.pods);
    let drawn = |seed| {
        let drawn = arrivals(&trace.nodes, &trace.pods, options.arrival, seed);
        drawn.map(|drawn| (seed, drawn)).map_err(anyhow::Error::msg)
    };
    let runs = (FIRST_SEED..).take(options.seeds as usize).map(drawn).collect::<Result<Vec<_>, _>>()?;
    let bar = progress(runs.iter().map(|(_, drawn)| drawn.pods.len()).sum(), BAR);
    let results = runs.iter().map(|(seed, drawn)| one(&trace.nodes, (*seed, drawn), &typical, options, &bar));
    let runs = results.collect::<anyhow::Result<Vec<_>>>()?;
    bar.finish_and_clear();
    Ok(PackingReport { title: options.title(trace), runs })
}

fn one(
    nodes: &[TraceNode],
    (seed, drawn): (u64, &Arrivals),
    typical: &[Typical],
    options: PackingOptions,
    bar: &ProgressBar,
) -> anyhow::Result<RunResult> {
    let registry: Registry = Arc::new(pellucid_plugins::registry());
    let text = options.configuration(typical).to_string();
    let configuration = pellucid_config::parse(&text, "the replay's configuration", &registry)?;
    let (mut scheduler, decoder) = core(registry, configuration, seed);
    for node in nodes {
        let object = decoder.node(&to_card_node_json(node)).map_err(unreadable)?;
        scheduler.apply(Input::NodeApplied(Arc::new(object)), Now::default());
        if let Some(device) = to_device_json(node) {
            let device = decoder.custom(CustomKindRef(&DEVICE), &device).map_err(unreadable)?;
            scheduler.apply(Input::CustomApplied(Arc::new(device)), Now::default());
        }
    }
    let mut run = PackingRun::new(seed, nodes, drawn, typical);
    let stopwatch = Stopwatch::start();
    for (second, batch) in drawn.pods.chunks(options.rate.unwrap_or(1) as usize).enumerate() {
        let begins = Duration::from_secs(second as u64);
        let mut waiting: BTreeMap<&str, &TracePod> = BTreeMap::new();
        for (pod, at) in batch.iter().zip(0u32..) {
            let at = begins + Duration::from_secs(1) * at / batch.len() as u32;
            arrive(&mut scheduler, &decoder, pod, at)?;
            waiting.insert(&pod.name, pod);
        }
        let now = at(begins + Duration::from_secs(1));
        while !waiting.is_empty() {
            let before = stopwatch.elapsed();
            let step = scheduler.step(now, &stopwatch);
            let took = stopwatch.elapsed() - before;
            let step = step.context("the scheduler does not try a pod that waits")?;
            let pod = waiting.remove(&*step.pod.key.name);
            let pod = pod.with_context(|| format!("{} is tried twice", step.pod.key))?;
            let placed = bind(&mut scheduler, now);
            run.record(pod, placed.as_ref().map(|(node, text)| (node.as_str(), text.as_str())), took);
            bar.inc(1);
        }
    }
    Ok(run.finish())
}

/// Returns a time since the start of the run.
fn at(time: Duration) -> Now {
    Now { monotonic: time, wall: time }
}

fn arrive(
    scheduler: &mut Scheduler,
    decoder: &Decoder,
    pod: &TracePod,
    time: Duration,
) -> anyhow::Result<()> {
    let mut object = to_card_pod_json(pod, NAMESPACE, DEFAULT_SCHEDULER_NAME);
    object["metadata"]["uid"] = pod.name.as_str().into();
    let decoded = decoder.pod(&object).map_err(unreadable)?;
    scheduler.apply(Input::PodApplied(Arc::new(decoded)), at(time));
    Ok(())
}

/// Confirms the Binding that was ordered, if one was. Returns the node and the annotation with the pod's devices.
fn bind(scheduler: &mut Scheduler, now: Now) -> Option<(String, String)> {
    let mut placed = None;
    for effect in scheduler.take_effects() {
        let Effect::Bind(order) = effect else { continue };
        let marks = order.marks.as_ref().and_then(|marks| marks.annotations.get(ALLOCATED));
        let allocated = marks.map_or_else(String::new, |text| text.to_string());
        placed = Some((order.node.as_str().to_owned(), allocated));
        let (id, uid) = (order.id, order.pod.uid.clone());
        let report = EffectReport::BindDone { id, uid, outcome: BindOutcome::Bound };
        scheduler.apply(Input::Report(report), now);
    }
    placed
}
