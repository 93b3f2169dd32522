//! scheduler_perf's workloads with relations between pods, at 5,000 nodes. Each is compared with the basic workload
//! with reuse switched off, to show what affinity and spread add to an uncached decision.

use std::sync::Arc;
use std::time::Instant;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::model::object::{Namespace, Workload};
use pellucid::model::relations::{NodeInclusion, PodAffinityTerm, PodTerms, SpreadConstraint, WeightedTerm};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::time::NoProbe;
use pellucid::model::{Name, Node, Object, Pod, PodKey, PodSpec};
use pellucid::recording::Outcome;

use super::world::{NODES, empty_scheduler, now};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A workload: initial pods, and measured pods.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    zones: &'static [&'static str],
    init: usize,
    init_pod: fn() -> PodSpec,
    measured: usize,
    pod: fn() -> PodSpec,
    labels: &'static [(&'static str, &'static str)],
    service: bool,
}

fn requests() -> PodRequests {
    let amounts = vec![("cpu".into(), 100), ("memory".into(), 500 << 20)];
    let containers = vec![ContainerRequests::of(amounts)];
    PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() })
}

fn basic() -> PodSpec {
    PodSpec { requests: requests(), n_containers: 1, ..PodSpec::default() }
}

fn color(value: &str) -> Option<LabelSelector> {
    Some(LabelSelector::of_pairs(&[("color".into(), value.into())]))
}

fn term(topology_key: &str, value: &str) -> PodAffinityTerm {
    let namespaces = ["sched-0".into(), "sched-1".into()];
    PodAffinityTerm {
        topology_key: topology_key.into(),
        selector: color(value),
        namespaces: namespaces.into(),
        namespace_selector: None,
    }
}

fn required(term: PodAffinityTerm) -> PodTerms {
    PodTerms { required: [term].into(), preferred: [].into() }
}

fn preferred(term: PodAffinityTerm) -> PodTerms {
    PodTerms { required: [].into(), preferred: [WeightedTerm { weight: 1, term }].into() }
}

fn spread(is_hard: bool) -> PodSpec {
    let constraint = SpreadConstraint {
        max_skew: 5,
        topology_key: ZONE.into(),
        is_hard,
        selector: color("blue"),
        min_domains: 1,
        node_affinity_policy: NodeInclusion::Honor,
        node_taints_policy: NodeInclusion::Ignore,
    };
    PodSpec { spread: [constraint].into(), ..basic() }
}

const BASIC: Case = Case {
    name: "SchedulingBasic",
    zones: &["zone1"],
    init: 1000,
    init_pod: basic,
    measured: 1000,
    pod: basic,
    labels: &[],
    service: false,
};
const MOONS: &[&str] = &["moon-1", "moon-2", "moon-3"];
const CASES: [Case; 7] = [
    Case {
        name: "SchedulingPodAffinity",
        init: 5000,
        init_pod: || PodSpec { pod_affinity: required(term(ZONE, "blue")), ..basic() },
        pod: || PodSpec { pod_affinity: required(term(ZONE, "blue")), ..basic() },
        labels: &[("color", "blue")],
        ..BASIC
    },
    Case {
        name: "SchedulingPodAntiAffinity",
        init: 1000,
        init_pod: || PodSpec { pod_anti_affinity: required(term(HOSTNAME, "green")), ..basic() },
        measured: 2000,
        pod: || PodSpec { pod_anti_affinity: required(term(HOSTNAME, "green")), ..basic() },
        labels: &[("color", "green")],
        ..BASIC
    },
    Case {
        name: "SchedulingPreferredPodAffinity",
        init: 5000,
        init_pod: || PodSpec { pod_affinity: preferred(term(HOSTNAME, "red")), ..basic() },
        pod: || PodSpec { pod_affinity: preferred(term(HOSTNAME, "red")), ..basic() },
        labels: &[("color", "red")],
        ..BASIC
    },
    Case {
        name: "SchedulingPreferredPodAntiAffinity",
        init: 5000,
        init_pod: || PodSpec { pod_anti_affinity: preferred(term(HOSTNAME, "yellow")), ..basic() },
        pod: || PodSpec { pod_anti_affinity: preferred(term(HOSTNAME, "yellow")), ..basic() },
        labels: &[("color", "yellow")],
        ..BASIC
    },
    Case {
        name: "TopologySpreading",
        zones: MOONS,
        init: 5000,
        measured: 5000,
        pod: || spread(true),
        labels: &[("color", "blue")],
        ..BASIC
    },
    Case {
        name: "PreferredTopologySpreading",
        zones: MOONS,
        init: 5000,
        measured: 5000,
        pod: || spread(false),
        labels: &[("color", "blue")],
        ..BASIC
    },
    Case {
        name: "DefaultTopologySpreading",
        zones: MOONS,
        init: 5000,
        measured: 5000,
        labels: &[("app", "scheduler-perf")],
        service: true,
        ..BASIC
    },
];

fn node(i: usize, zones: &[&str]) -> Arc<Node> {
    let name = Name::new(&format!("scheduler-perf-{i:04}"));
    let labels = [(HOSTNAME.into(), name.clone()), (ZONE.into(), zones[i % zones.len()].into())];
    Arc::new(Node {
        uid: format!("node-uid-{i}").into(),
        labels: Labels::new(labels),
        allocatable: ResourceList { milli_cpu: 4000, memory: 32 << 30, pods: 110, ..ResourceList::default() },
        ready: true,
        name,
        ..Node::default()
    })
}

fn pod(namespace: &str, i: usize, labels: &[(&str, &str)], spec: PodSpec) -> Input {
    let key = PodKey::new(namespace, &format!("pod-{i:05}"));
    let labels = Labels::new(labels.iter().map(|(k, v)| ((*k).into(), (*v).into())));
    Input::PodApplied(Arc::new(Pod {
        uid: format!("uid-{key}").into(),
        key,
        labels,
        scheduler_name: pellucid::config::DEFAULT_SCHEDULER_NAME.into(),
        spec: Arc::new(spec),
        ..Pod::default()
    }))
}

fn place_all(scheduler: &mut Scheduler, n: usize) {
    for _ in 0..n {
        let step = scheduler.step(now(), &NoProbe).expect("a pod waits");
        assert!(matches!(step.verdict.outcome, Outcome::Placed(_)), "every pod fits");
    }
    scheduler.take_effects();
}

impl Case {
    /// Returns pods per second over the measured pods.
    pub(crate) fn rate(&self, reuse: bool) -> f64 {
        let mut scheduler = empty_scheduler(reuse);
        let mut apply = |input| scheduler.apply(input, now());
        for name in ["sched-0", "sched-1"] {
            let namespace = Namespace { name: name.into(), labels: Labels::default() };
            apply(Input::ObjectApplied(Arc::new(Object::Namespace(namespace))));
        }
        if self.service {
            let selector = Some(LabelSelector::of_pairs(&[("app".into(), "scheduler-perf".into())]));
            let service = Workload {
                namespace: "sched-1".into(),
                name: "s".into(),
                selector,
                replicas: None,
                controller: None,
            };
            apply(Input::ObjectApplied(Arc::new(Object::Service(service))));
        }
        let nodes = (0..NODES).map(|i| node(i, self.zones)).collect();
        apply(Input::NodesReset { nodes, quarantined: Vec::new() });
        for i in 0..self.init {
            apply(pod("sched-0", i, self.labels, (self.init_pod)()));
        }
        place_all(&mut scheduler, self.init);
        for i in 0..self.measured {
            scheduler.apply(pod("sched-1", i, self.labels, (self.pod)()), now());
        }
        let start = Instant::now();
        place_all(&mut scheduler, self.measured);
        self.measured as f64 / start.elapsed().as_secs_f64()
    }
}

/// Prints the table of workloads.
pub(crate) fn print() {
    println!(
        "\n| {:<36} | {:>16} | {:>16} | {:>22} |",
        "scheduler_perf, 5,000 nodes", "reuse", "no reuse", "basic / this, no reuse"
    );
    println!("|{:-<38}|{:->18}|{:->18}|{:->24}|", "", "", "", "");
    let basic = (BASIC.rate(true), BASIC.rate(false));
    let line = |name: &str, (with, without): (f64, f64)| {
        let ratio = basic.1 / without;
        println!("| {name:<36} | {with:>9.0} pods/s | {without:>9.0} pods/s | {ratio:>20.1} x |");
    };
    line(BASIC.name, basic);
    for case in &CASES {
        line(case.name, (case.rate(true), case.rate(false)));
    }
}
