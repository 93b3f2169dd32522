//! Metrics, under kube-scheduler's names where they exist and with the prefix `pellucid_` otherwise.
//!
//! Histograms and counters of attempts are updated as attempts end, through handles resolved per profile. Gauges are
//! read from the published snapshot on each scrape, so they are consistent with each other.

pub mod buckets;
mod consistency;
pub mod diagnosis;
mod effects;
mod gangs;
mod leadership;
mod pending;
mod plugins;
pub mod resources;
mod shadow;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pellucid_cluster::Stage;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::Step;
use pellucid_kubernetes::ClusterIo;
use pellucid_kubernetes::connection::server_probe::ServerStatus;
use pellucid_kubernetes::lease::leadership::Leadership;
use pellucid_kubernetes::watches::inputs::Watches;
use pellucid_kubernetes::writes::effect_queues::EffectQueues;
use pellucid_kubernetes::writes::evictor::EvictCounters;
use pellucid_kubernetes::writes::in_flight::InFlight;
use pellucid_kubernetes::writes::object_writer::ObjectCounters;
use pellucid_kubernetes::writes::status::StatusCounters;
use pellucid_queue::QueueStage;
use pellucid_recording::Outcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::clock::Clock;
use crate::consistency::record::ConsistencyRecord;
use crate::health::Health;
use crate::log::telemetry::LogControl;
use crate::metrics::buckets::Buckets;
use crate::metrics::diagnosis::Explained;
use crate::metrics::gangs::GangAttempts;
use crate::traces::Counts;

/// One label: its name and value.
type Label = [(&'static str, &'static str); 1];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AttemptLabels {
    result: &'static str,
    profile: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SliLabels {
    attempts: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PluginLabels {
    plugin: String,
    profile: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EvaluationLabels {
    plugin: String,
    extension_point: &'static str,
    profile: String,
}

/// The parts of the I/O rooms that metrics and health checks read.
pub struct ClusterIoViews {
    /// Depths and counters of the effect queues.
    pub queues: Arc<EffectQueues>,
    /// State of each watch.
    pub watches: Watches,
    /// Whether the API server answers probes.
    pub server: Arc<ServerStatus>,
    /// The scheduler's clock, for ages.
    pub clock: Clock,
    /// How many Bindings may be in flight.
    pub binders: Arc<InFlight>,
    /// Counters of the evictors.
    pub evictor: Arc<EvictCounters>,
    /// Counters of the object writers.
    pub objects: Arc<ObjectCounters>,
    /// Counters of the writers of PodGroup statuses.
    pub group_statuses: Arc<StatusCounters>,
    /// This instance's part in leader election, if there is one.
    pub leadership: Option<Arc<Leadership>>,
    /// What comparisons with the API server found.
    pub consistency: ConsistencyRecord,
}

impl ClusterIoViews {
    /// Returns the views of running I/O.
    pub fn of(io: &ClusterIo, clock: Clock, consistency: ConsistencyRecord) -> Self {
        Self {
            queues: io.queues.clone(),
            watches: io.watches.clone(),
            server: io.server.clone(),
            clock,
            binders: io.binders.clone(),
            evictor: io.evictor.clone(),
            objects: io.objects.clone(),
            group_statuses: io.group_statuses.clone(),
            leadership: io.leadership.clone(),
            consistency,
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    path: String,
    code: u16,
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

fn attempt_buckets() -> Histogram {
    // kube-scheduler starts at 1 ms. Attempts here take microseconds, so ten buckets are added below and the rest
    // match.
    Histogram::new(exponential_buckets(0.001 / 1024.0, 2.0, 25))
}

fn sli_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 20))
}

fn request_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 16))
}

/// Metrics that are updated as attempts and requests end.
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Handles per profile, for placed and refused pods.
    profiles: Vec<[Attempts; 2]>,
    algorithm: Histogram,
    sli: Durations<SliLabels>,
    pod_attempts: Histogram,
    victims: Histogram,
    requests: Durations<RequestLabels>,
    gangs: GangAttempts,
    /// Time spent on explanations for readers.
    pub explained: Explained,
}

/// Handles of the attempt metrics for one profile and result.
struct Attempts {
    count: Counter,
    seconds: Histogram,
}

impl Metrics {
    /// Registers all metrics. `profiles` holds the scheduler names, in the order of the core's profiles.
    pub fn new(profiles: Vec<String>) -> Self {
        let mut registry = Registry::default();
        let attempts: Family<AttemptLabels, Counter> = Family::default();
        let durations: Durations<AttemptLabels> = Family::new_with_constructor(attempt_buckets);
        let algorithm = attempt_buckets();
        let sli: Durations<SliLabels> = Family::new_with_constructor(sli_buckets);
        let pod_attempts = Histogram::new(exponential_buckets(1.0, 2.0, 5));
        let victims = Histogram::new(exponential_buckets(1.0, 2.0, 7));
        let requests: Durations<RequestLabels> = Family::new_with_constructor(request_buckets);
        let help = "Attempts to schedule pods by result (scheduled, unschedulable) and profile";
        registry.register("scheduler_schedule_attempts", help, attempts.clone());
        let help = "Time of one attempt, filters, scores and reservation together, in seconds";
        registry.register("scheduler_scheduling_attempt_duration_seconds", help, durations.clone());
        let help = "Time of filters and scores of one attempt, in seconds";
        registry.register("scheduler_scheduling_algorithm_duration_seconds", help, algorithm.clone());
        let help = "Time from a pod's first entry into the queue to its placement, by attempts, in seconds";
        registry.register("scheduler_pod_scheduling_sli_duration_seconds", help, sli.clone());
        let help = "Attempts it took to place a pod";
        registry.register("scheduler_pod_scheduling_attempts", help, pod_attempts.clone());
        let help = "Victims of one preemption, those included that were on their way already";
        registry.register("scheduler_preemption_victims", help, victims.clone());
        let help = "Time to answer a request of the REST API by path template and status, in seconds";
        registry.register("pellucid_http_request_duration_seconds", help, requests.clone());
        let handles = |profile: &String, result| {
            let labels = AttemptLabels { result, profile: profile.clone() };
            let count = attempts.get_or_create_owned(&labels);
            Attempts { count, seconds: durations.get_or_create_owned(&labels) }
        };
        let profiles =
            profiles.iter().map(|p| [handles(p, "scheduled"), handles(p, "unschedulable")]).collect();
        let gangs = GangAttempts::register(&mut registry);
        let registry = Mutex::new(registry);
        let explained = Explained::default();
        Self { registry, profiles, algorithm, sli, pod_attempts, victims, requests, gangs, explained }
    }

    /// Records the duration of an attempt at a unit, once per unit and not per pod. An attempt at a gang counts as
    /// scheduled when all members that were tried have a node.
    pub fn unit(&self, step: &Step, took: Duration) {
        let is_placed = step.all().all(|s| matches!(s.verdict.outcome, Outcome::Placed(_)));
        let seconds = took.as_secs_f64();
        if let Some([placed, refused]) = self.profiles.get(step.profile) {
            let handles = if is_placed { placed } else { refused };
            handles.seconds.observe(seconds);
        }
        self.algorithm.observe(seconds);
    }

    /// Counts the outcome of an attempt for one pod.
    pub fn pod(&self, step: &Step, now: Duration) {
        let is_placed = matches!(step.verdict.outcome, Outcome::Placed(_));
        if let Some([placed, refused]) = self.profiles.get(step.profile) {
            let handles = if is_placed { placed } else { refused };
            handles.count.inc();
        }
        self.gangs.count(step, now);
        if is_placed {
            let waited = now.saturating_sub(step.first_queued_at);
            let attempts = if step.attempts >= 15 { "15+".into() } else { step.attempts.to_string() };
            self.sli.get_or_create_owned(&SliLabels { attempts }).observe(waited.as_secs_f64());
            self.pod_attempts.observe(f64::from(step.attempts));
        }
        if let Some(chosen) = step.verdict.plan.as_ref().and_then(|plan| plan.candidates.first()) {
            self.victims.observe(chosen.victims.len() as f64);
        }
    }

    /// Returns how long placed pods had waited, so far.
    pub fn waits(&self) -> Buckets {
        Buckets::of(&self.sli)
    }

    /// Counts an answered request.
    pub fn request(&self, path: &str, code: u16, took: Duration) {
        let labels = RequestLabels { path: path.to_string(), code };
        self.requests.get_or_create_owned(&labels).observe(took.as_secs_f64());
    }

    /// Registers the counters of exported and dropped spans.
    pub fn register_traces(&self, counts: &Counts) {
        let mut registry = self.registry.lock();
        let (exported, dropped) = (counts.exported.clone(), counts.dropped.clone());
        registry.register("pellucid_trace_spans_exported", "Spans that the collector took", exported);
        let help = "Spans that were dropped: no room, or not taken";
        registry.register("pellucid_trace_spans_dropped", help, dropped);
    }

    /// Renders all metrics as OpenMetrics text.
    pub fn render(
        &self,
        snapshot: &ArcSwap<Snapshot>,
        views: Option<&ClusterIoViews>,
        log: Option<&LogControl>,
        health: &Health,
    ) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry.lock()).is_err() {
            return String::new();
        }
        // Both texts end with `# EOF`; only the last may.
        let kept = text.trim_end().trim_end_matches("# EOF").len();
        text.truncate(kept);
        let snapshot = snapshot.load_full();
        let mut gauges = gauges(&snapshot, views, log);
        diagnosis::state(&snapshot, &self.explained, &mut gauges);
        health.register(&mut gauges);
        let mut rest = String::new();
        let _ = encode(&mut rest, &gauges);
        text + &rest
    }
}

/// Renders the metrics that are read from a snapshot alone, as OpenMetrics text.
pub fn of_snapshot(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = encode(&mut text, &gauges(snapshot, None, None));
    text
}

/// Builds the gauges and counters that are read from the published snapshot.
fn gauges(snapshot: &Snapshot, views: Option<&ClusterIoViews>, log: Option<&LogControl>) -> Registry {
    let mut registry = Registry::default();
    pending::state(snapshot, &mut registry);
    plugins::gauges(snapshot, &mut registry);
    registry.register(
        "scheduler_cache_size",
        "Nodes, pods and assumed pods in the state",
        cache_sizes(snapshot),
    );
    let help = "Pods in the unschedulable queue by a plugin that refused them";
    registry.register("scheduler_unschedulable_pods", help, unschedulable(snapshot));
    plugin_work(snapshot, &mut registry);
    if let Some(views) = views {
        effect_queue_counts(&views.queues, &mut registry);
        watches::watches(views, &mut registry);
        consistency::consistency(views, &mut registry);
        effects::writers(views, &mut registry);
        if let Some(leadership) = &views.leadership {
            leadership::leadership(leadership, &mut registry);
        }
    }
    effects::state(snapshot, &mut registry);
    gangs::state(snapshot, &mut registry);
    if let Some(tally) = &snapshot.shadow {
        shadow::shadow(tally, &mut registry);
    }
    single(snapshot, log, &mut registry);
    registry
}

fn single(snapshot: &Snapshot, log: Option<&LogControl>, registry: &mut Registry) {
    let quarantined = snapshot.cluster.quarantined().count() as u64;
    let left_out = snapshot.cluster.columns().left_out().count() as u64;
    let all = [
        ("pellucid_root_generation", "Generation of the published snapshot", snapshot.generation),
        ("pellucid_recorder_bytes", "Bytes that the flight recorder takes", snapshot.flight.bytes as u64),
        ("pellucid_quarantined_objects", "Objects that cannot be read", quarantined),
        ("pellucid_left_out_resources", "Resources that nodes offer and that are not counted", left_out),
    ];
    add_gauges(registry, &all);
    let (counters, recorder) = (&snapshot.counters, &snapshot.recorder);
    let all = [
        ("pellucid_bound_pods", "Bindings the API server confirmed", counters.bound),
        ("pellucid_bind_failures", "Bindings that did not come about", counters.bind_failures),
        ("pellucid_recorder_entries", "Entries of the flight recorder", snapshot.flight.given()),
        ("pellucid_recorder_entries_dropped", "Entries of it that were pushed out", snapshot.flight.dropped),
        ("pellucid_score_tables_dropped", "Recorded score tables pushed out", recorder.tables_dropped()),
        (
            "pellucid_filter_failures_dropped",
            "Recorded refused nodes pushed out",
            recorder.failures_dropped(),
        ),
        ("pellucid_log_lines_dropped", "Log lines dropped", log.map_or(0, |l| l.dropped() as u64)),
    ];
    add_counters(registry, &all);
}

/// Registers counters by name, help and value.
fn add_counters(registry: &mut Registry, all: &[(&str, &str, u64)]) {
    for (name, help, value) in all {
        let counter: Counter = Counter::default();
        counter.inc_by(*value);
        registry.register(*name, *help, counter);
    }
}

/// Registers gauges by name, help and value.
fn add_gauges(registry: &mut Registry, all: &[(&str, &str, u64)]) {
    for (name, help, value) in all {
        let gauge: Gauge<i64> = Gauge::default();
        gauge.set(i64::try_from(*value).unwrap_or(i64::MAX));
        registry.register(*name, *help, gauge);
    }
}

/// Returns counters by the values of a label.
fn counters_by(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'static str, u64)>,
) -> Family<Label, Counter> {
    let family: Family<Label, Counter> = Family::default();
    for (value, n) in counts {
        family.get_or_create_owned(&[(label, value)]).inc_by(n);
    }
    family
}

/// Returns gauges by the values of a label.
fn gauges_by(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'static str, u64)>,
) -> Family<Label, Gauge> {
    let family: Family<Label, Gauge> = Family::default();
    for (value, n) in counts {
        family.get_or_create_owned(&[(label, value)]).set(n as i64);
    }
    family
}

fn cache_sizes(snapshot: &Snapshot) -> Family<Label, Gauge> {
    let placed = snapshot.cluster.pods().filter(|(_, r)| r.stage != Stage::Pending);
    let (mut pods, mut assumed) = (0, 0);
    for (_, record) in placed {
        pods += 1;
        assumed += u64::from(record.stage.is_assumed());
    }
    let nodes = snapshot.cluster.present().len() as u64;
    gauges_by("type", [("nodes", nodes), ("pods", pods), ("assumed_pods", assumed)])
}

fn unschedulable(snapshot: &Snapshot) -> Family<PluginLabels, Gauge> {
    let family: Family<PluginLabels, Gauge> = Family::default();
    let mut counts: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for (_, unit) in snapshot.queue.units().filter(|(_, unit)| unit.stage == QueueStage::Unschedulable) {
        for plugin in (0..snapshot.profiles[unit.profile].plugins.len()).filter(|i| unit.is_refused_by(*i)) {
            *counts.entry((unit.profile, plugin)).or_default() += unit.pods.len() as i64;
        }
    }
    for ((profile, plugin), n) in counts {
        let profile = &snapshot.profiles[profile];
        let labels = PluginLabels {
            plugin: profile.plugins[plugin].name().into(),
            profile: profile.scheduler_name.to_string(),
        };
        family.get_or_create_owned(&labels).set(n);
    }
    family
}

fn plugin_work(snapshot: &Snapshot, registry: &mut Registry) {
    let evaluations: Family<EvaluationLabels, Counter> = Family::default();
    let refused: Family<PluginLabels, Counter> = Family::default();
    let seconds: Family<PluginLabels, Counter<f64, AtomicU64>> = Family::default();
    for (profile, tally) in snapshot.profiles.iter().zip(&snapshot.tally) {
        for (plugin, tally) in profile.plugins.iter().zip(tally) {
            let (plugin, profile) = (plugin.name().to_owned(), profile.scheduler_name.to_string());
            for (extension_point, calls) in [("Filter", tally.filter_calls), ("Score", tally.score_calls)] {
                if calls > 0 {
                    let (plugin, profile) = (plugin.clone(), profile.clone());
                    let labels = EvaluationLabels { plugin, extension_point, profile };
                    evaluations.get_or_create_owned(&labels).inc_by(calls);
                }
            }
            let labels = PluginLabels { plugin, profile };
            refused.get_or_create_owned(&labels).inc_by(tally.nodes_refused);
            seconds.get_or_create_owned(&labels).inc_by(tally.nanos as f64 / 1e9);
        }
    }
    registry.register("scheduler_plugin_evaluation", "Calls of plugins by extension point", evaluations);
    registry.register("pellucid_plugin_refused_nodes", "Nodes refused by a plugin's Filter", refused);
    let about = "Time in a plugin's Filter and Score, in seconds; plugins whose scores are made in one walk share its time";
    registry.register("pellucid_plugin_seconds", about, seconds);
}

/// Registers the counters of the effect queues. Public metrics call an effect queue a lane.
fn effect_queue_counts(queues: &EffectQueues, registry: &mut Registry) {
    let depth: Family<Label, Gauge> = Family::default();
    let [into, out, dropped]: [Family<Label, Counter>; 3] = Default::default();
    let counts = queues.counts();
    for (lane, n) in [
        ("binds", counts.binds),
        ("evictions", counts.evictions),
        ("objects", counts.objects),
        ("conditions", counts.statuses),
        ("group_statuses", counts.group_statuses),
        ("events", counts.events),
    ] {
        let labels = [("lane", lane)];
        depth.get_or_create_owned(&labels).set(n.depth as i64);
        into.get_or_create_owned(&labels).inc_by(n.into);
        out.get_or_create_owned(&labels).inc_by(n.out);
        dropped.get_or_create_owned(&labels).inc_by(n.dropped);
    }
    registry.register("pellucid_lane_depth", "Orders waiting in a lane", depth);
    registry.register("pellucid_lane_in", "Orders put into a lane", into);
    registry.register("pellucid_lane_out", "Orders taken from a lane", out);
    registry.register("pellucid_lane_dropped", "Orders dropped for want of room", dropped);
}
