//! `pellucid replay --strategy`: how well a strategy of DeviceShare packs GPUs, card by card.
//!
//! Pods arrive one by one, are tried once, and none leaves: the protocol of FGD. The decisions are those of the
//! scheduler's core with a configuration that anybody can write; only the scores of other plugins are off. Device
//! objects, requests and annotations are those of a cluster.

use std::sync::Arc;

use anyhow::Context;
use indicatif::ProgressBar;
use pellucid_cluster::Input;
use pellucid_config::DEFAULT_SCHEDULER_NAME;
use pellucid_cycle::{Registry, Scheduler};
use pellucid_kubernetes::decode::Decoder;
use pellucid_model::CustomKindRef;
use pellucid_model::effect::{BindOutcome, Effect, EffectReport};
use pellucid_model::time::Probe;
use pellucid_plugins::device_share::{DEVICE, NAME};
use pellucid_replay::{
    Arrivals, PackingReport, PackingRun, RunResult, Trace, TraceNode, TracePod, Typical, arrivals,
    to_card_node_json, to_card_pod_json, to_device_json, typical_json, typical_pods,
};
use serde_json::{Value, json};

use super::{BAR, NAMESPACE, core, progress, unreadable};
use crate::app::clock::{self, Clock, Stopwatch};

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
    /// `FragmentationGradient`, with the typical pods of the trace
    FragmentationGradient,
    /// `FragmentationGradient`, with the typical pods counted over those that arrived
    FragmentationGradientWindow,
}

impl Strategy {
    fn name(self) -> &'static str {
        match self {
            Self::Least => "LeastAllocated",
            Self::Most => "MostAllocated",
            Self::FragmentationGradient => "FragmentationGradient, with the typical pods of the trace",
            Self::FragmentationGradientWindow => "FragmentationGradient, with typical pods as counted",
        }
    }

    fn scoring(self, typical: &[Typical]) -> Value {
        match self {
            Self::Least => json!({ "type": "LeastAllocated" }),
            Self::Most => json!({ "type": "MostAllocated" }),
            Self::FragmentationGradient => {
                let typical: Vec<Value> = typical.iter().map(typical_json).collect();
                json!({ "type": "FragmentationGradient", "typicalPods": typical })
            }
            Self::FragmentationGradientWindow => json!({ "type": "FragmentationGradient" }),
        }
    }
}

/// Options of a study.
#[derive(Clone, Copy, Debug)]
pub struct PackingOptions {
    /// What nodes and cards are scored by.
    pub strategy: Strategy,
    /// What arrives, in percent of the cluster's GPUs.
    pub arrival: u32,
    /// Number of runs.
    pub seeds: u32,
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
    let gpus: u64 = trace.nodes.iter().map(|node| node.gpus).sum();
    let title = format!(
        "{} nodes with {gpus} GPUs; pods arrive until they request {} % of them; scored by {}",
        trace.nodes.len(),
        options.arrival,
        options.strategy.name()
    );
    Ok(PackingReport { title, runs })
}

/// Returns the configuration: DeviceShare filters, reserves and is the only one that scores.
fn configuration(strategy: Strategy, typical: &[Typical]) -> Value {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": DEFAULT_SCHEDULER_NAME,
            "plugins": {
                "multiPoint": { "enabled": [{ "name": NAME }] },
                "score": { "disabled": [{ "name": "*" }], "enabled": [{ "name": NAME }] },
            },
            "pluginConfig": [{ "name": NAME, "args": { "scoringStrategy": strategy.scoring(typical) } }],
        }],
    })
}

fn one(
    nodes: &[TraceNode],
    (seed, drawn): (u64, &Arrivals),
    typical: &[Typical],
    options: PackingOptions,
    bar: &ProgressBar,
) -> anyhow::Result<RunResult> {
    let clock = clock::system();
    let registry: Registry = Arc::new(pellucid_plugins::registry());
    let text = configuration(options.strategy, typical).to_string();
    let configuration = pellucid_config::parse(&text, "the replay's configuration", &registry)?;
    let (mut scheduler, decoder) = core(registry, configuration, seed);
    for node in nodes {
        let object = decoder.node(&to_card_node_json(node)).map_err(unreadable)?;
        scheduler.apply(Input::NodeApplied(Arc::new(object)), clock());
        if let Some(device) = to_device_json(node) {
            let device = decoder.custom(CustomKindRef(&DEVICE), &device).map_err(unreadable)?;
            scheduler.apply(Input::CustomApplied(Arc::new(device)), clock());
        }
    }
    let mut run = PackingRun::new(seed, nodes, drawn, typical);
    let stopwatch = Stopwatch::start();
    for pod in &drawn.pods {
        arrive(&mut scheduler, &decoder, pod, &clock)?;
        let before = stopwatch.elapsed();
        let step = scheduler.step(clock(), &stopwatch);
        let took = stopwatch.elapsed() - before;
        step.with_context(|| format!("{} was not tried", pod.name))?;
        let placed = bind(&mut scheduler, &clock);
        run.record(pod, placed.as_ref().map(|(node, allocated)| (node.as_str(), allocated.as_str())), took);
        bar.inc(1);
    }
    Ok(run.finish())
}

fn arrive(scheduler: &mut Scheduler, decoder: &Decoder, pod: &TracePod, clock: &Clock) -> anyhow::Result<()> {
    let mut object = to_card_pod_json(pod, NAMESPACE, DEFAULT_SCHEDULER_NAME);
    object["metadata"]["uid"] = pod.name.as_str().into();
    let decoded = decoder.pod(&object).map_err(unreadable)?;
    scheduler.apply(Input::PodApplied(Arc::new(decoded)), clock());
    Ok(())
}

/// Confirms the Binding that was ordered, if one was. Returns the node and the annotation with the pod's devices.
fn bind(scheduler: &mut Scheduler, clock: &Clock) -> Option<(String, String)> {
    let mut placed = None;
    for effect in scheduler.take_effects() {
        let Effect::Bind(order) = effect else { continue };
        let marks = order.marks.as_ref().and_then(|marks| marks.annotations.get(ALLOCATED));
        placed =
            Some((order.node.as_str().to_owned(), marks.map_or_else(String::new, |text| text.to_string())));
        let report = EffectReport::BindDone { id: order.id, uid: order.pod.uid, outcome: BindOutcome::Bound };
        scheduler.apply(Input::Report(report), clock());
    }
    placed
}
