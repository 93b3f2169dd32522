//! The cluster of the bench, and a bare scan as the baseline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::columns::{CPU, MEMORY, PODS as POD_SLOTS};
use pellucid::cluster::{Cluster, Input};
use pellucid::cycle::Scheduler;
use pellucid::cycle::scheduler::Settings;
use pellucid::framework::profile::Profile;
use pellucid::model::gang::{Dialect, GangDeclaration, GangTerms};
use pellucid::model::node::NodeImage;
use pellucid::model::pages::PAGE;
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::selector::Labels;
use pellucid::model::time::NoProbe;
use pellucid::model::{GangKey, Name, Node, Now, Pod, PodKey, PodSpec};
use pellucid::queue::QueueLimits;
use pellucid::recording::Outcome;
use pellucid::recording::switches::Switches;
use serde_json::json;

use super::steady::Stretch;

pub(crate) const NODES: usize = 5_000;
pub(crate) const PODS: usize = 10_000;

pub(crate) fn now() -> Now {
    Now { monotonic: Duration::from_secs(1), wall: Duration::from_secs(1_700_000_000) }
}

pub(crate) fn node(i: usize) -> Node {
    let name: Name = Name::new(&format!("node-{i:04}"));
    let text = |s: &str| Name::new(s);
    let labels = [
        (text("kubernetes.io/hostname"), name.clone()),
        (text("kubernetes.io/os"), text("linux")),
        (text("kubernetes.io/arch"), text("amd64")),
        (text("topology.kubernetes.io/zone"), text(&format!("zone-{}", i % 3))),
    ];
    let images = (0..20).map(|k| NodeImage {
        names: [text(&format!("registry.example/app-{}:1", (i + k * 7) % 150))].into(),
        size: (50 + k as i64 * 10) << 20,
    });
    Node {
        uid: format!("node-uid-{i}").into(),
        labels: Labels::new(labels),
        allocatable: ResourceList {
            milli_cpu: [16_000, 32_000, 64_000][i % 3],
            memory: [64 << 30, 128 << 30, 256 << 30][i % 3],
            ephemeral_storage: 500 << 30,
            pods: 110,
            scalars: Box::default(),
        },
        images: images.collect(),
        ready: true,
        name,
        ..Node::default()
    }
}

/// Returns a scheduler with the default profile and all nodes.
pub(crate) fn scheduler(reuse: bool) -> Scheduler {
    let mut scheduler = empty_scheduler(reuse);
    let nodes = (0..NODES).map(|i| Arc::new(node(i))).collect();
    scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
    scheduler
}

/// Returns a scheduler with the default profile and no nodes.
pub(crate) fn empty_scheduler(reuse: bool) -> Scheduler {
    let registry = pellucid::plugins::registry();
    scheduler_of(pellucid::config::default(&registry).expect("the defaults are valid").profiles, reuse)
}

/// Returns a scheduler with these profiles and no nodes.
pub(crate) fn scheduler_of(profiles: Vec<Profile>, reuse: bool) -> Scheduler {
    let switches = Arc::new(Switches::default());
    switches.set_reuse(reuse);
    let registry = pellucid::plugins::registry();
    Scheduler::new(Settings {
        profiles,
        registry: Arc::new(registry),
        limits: QueueLimits::default(),
        seed: 0,
        switches,
        controllers: Vec::new(),
        shadow_of: None,
    })
}

/// Returns a scheduler of the default profile, with or without one more plugin, and all nodes.
pub(crate) fn scheduler_with(plugin: &str, is_enabled: bool) -> Scheduler {
    scheduler_on(plugin, is_enabled, (0..NODES).map(node))
}

/// Does the same with other nodes.
pub(crate) fn scheduler_on(plugin: &str, is_enabled: bool, nodes: impl Iterator<Item = Node>) -> Scheduler {
    let enabled = if is_enabled { vec![json!({"name": plugin})] } else { Vec::new() };
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": pellucid::config::DEFAULT_SCHEDULER_NAME,
            "plugins": {"multiPoint": {"enabled": enabled}},
        }],
    });
    let parsed = pellucid::config::parse(&config.to_string(), "the bench's", &pellucid::plugins::registry());
    let mut scheduler = scheduler_of(parsed.expect("valid").profiles, true);
    let nodes = nodes.map(Arc::new).collect();
    scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
    scheduler
}

pub(crate) fn spec(shape: usize) -> PodSpec {
    let amounts = vec![
        ("cpu".into(), 100 + 10 * (shape as i64 % 15)),
        ("memory".into(), (128 + 32 * (shape as i64 / 15)) << 20),
    ];
    let containers = vec![ContainerRequests::of(amounts)];
    PodSpec {
        requests: PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() }),
        images: [Name::new(&format!("registry.example/app-{shape}:1"))].into(),
        n_containers: 1,
        ..PodSpec::default()
    }
}

pub(crate) fn pod(name: &str, spec: PodSpec) -> Arc<Pod> {
    Arc::new(Pod {
        key: PodKey::new("default", name),
        uid: format!("uid-{name}").into(),
        scheduler_name: pellucid::config::DEFAULT_SCHEDULER_NAME.into(),
        spec: Arc::new(spec),
        ..Pod::default()
    })
}

/// Returns the gang declaration of a member in Koordinator's dialect.
pub(crate) fn mark(gang: &str, min: u32) -> GangDeclaration {
    GangDeclaration {
        gang: GangKey::new("default", gang),
        dialect: Dialect::Koordinator,
        needs_group: false,
        is_shadow: false,
        names_two: false,
        terms: GangTerms { min: Some(min), ..GangTerms::default() },
        problems: Box::default(),
    }
}

/// Adds pending pods; consecutive pods have different shapes.
pub(crate) fn add_pods(scheduler: &mut Scheduler, n: usize, shapes: usize) {
    for i in 0..n {
        scheduler.apply(Input::PodApplied(pod(&format!("pod-{i:05}"), spec(i % shapes))), now());
    }
}

/// A batch of pods that was placed.
pub(crate) struct Batch {
    /// How long the pods took to arrive.
    pub(crate) arrived: Duration,
    /// How many were placed, and how long it took.
    pub(crate) placed: Stretch,
    /// How many of them plugins hold something for.
    pub(crate) holding: usize,
}

/// Places all pods that wait. A profiler finds it by its name.
#[inline(never)]
fn place_all(scheduler: &mut Scheduler) -> Stretch {
    let start = Instant::now();
    let mut count = 0;
    while let Some(step) = scheduler.step(now(), &NoProbe) {
        assert!(matches!(step.verdict.outcome, Outcome::Placed(_)), "every pod fits");
        count += 1;
        if count % 64 == 0 {
            drop(scheduler.take_effects());
        }
    }
    Stretch { pods: count, took: start.elapsed() }
}

/// Places pods, each of which finds a node, and takes them away again.
pub(crate) fn place_batch(scheduler: &mut Scheduler, pods: Vec<Arc<Pod>>) -> Batch {
    let keys: Vec<PodKey> = pods.iter().map(|pod| pod.key.clone()).collect();
    let start = Instant::now();
    pods.into_iter().for_each(|pod| scheduler.apply(Input::PodApplied(pod), now()));
    let arrived = start.elapsed();
    let placed = place_all(scheduler);
    drop(scheduler.take_effects());
    assert_eq!(placed.pods, keys.len());
    let cluster = scheduler.cluster();
    let records = keys.iter().filter_map(|key| cluster.pod(cluster.find_pod(key)?));
    let holding = records.filter(|record| !record.holds.is_empty()).count();
    keys.into_iter().for_each(|key| scheduler.apply(Input::PodDeleted(key), now()));
    Batch { arrived, placed, holding }
}

/// Adds a pod with a unique shape that fits on no node.
pub(crate) fn big_pod(scheduler: &mut Scheduler) {
    let n = scheduler.cluster().n_pod_slots() as i64;
    let mut spec = spec(0);
    spec.requests.list.milli_cpu = 1_000_000 + n;
    scheduler.apply(Input::PodApplied(pod(&format!("big-{n}"), spec)), now());
}

/// The minimum work of a decision without cached results: one walk over the columns that checks CPU, memory and pods,
/// scores least-allocated and balance, and tracks the best node.
pub(crate) fn bare_scan(cluster: &Cluster, cpu: i64, memory: i64) -> (i64, usize) {
    let mut best = (-1, 0);
    for (p, page) in cluster.columns().pages().iter().enumerate() {
        let (c, m, n) = (page.resource(CPU), page.resource(MEMORY), page.resource(POD_SLOTS));
        for at in 0..PAGE {
            let (used_cpu, used_memory) = (c.requested[at] + cpu, m.requested[at] + memory);
            let (has_cpu, has_memory) = (c.allocatable[at], m.allocatable[at]);
            if used_cpu > has_cpu || used_memory > has_memory || n.requested[at] >= n.allocatable[at] {
                continue;
            }
            let percent = |free: i64, of: i64| (free as f64 * 100.0 / of as f64) as i64;
            let non_zero = (page.non_zero_cpu[at] + cpu, page.non_zero_memory[at] + memory);
            let least = percent(has_cpu - non_zero.0, has_cpu) + percent(has_memory - non_zero.1, has_memory);
            let (a, b) = (used_cpu as f64 / has_cpu as f64, used_memory as f64 / has_memory as f64);
            let balanced = ((1.0 - ((a - b) / 2.0).abs()) * 100.0) as i64;
            best = best.max((least / 2 + balanced, p * PAGE + at));
        }
    }
    best
}

/// Returns the resident memory of this process in MB; 0 if the system does not report it.
pub(crate) fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    let kb = line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}
