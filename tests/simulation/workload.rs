//! Random nodes, budgets and pods: few kinds, little room, four priorities.

use std::sync::Arc;

use pellucid::model::object::Budget;
use pellucid::model::pod::{HostPort, PodPhase, Protocol};
use pellucid::model::relations::{NodeInclusion, PodAffinityTerm, PodTerms, SpreadConstraint, WeightedTerm};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::selector::{
    LabelSelector, Labels, NodeAffinity, NodeSelectorTerm, Operator, Requirement,
};
use pellucid::model::storage::{ClaimUse, PersistentVolumeClaim, StorageClass};
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Name, Node, Pod, PodKey, PodSpec};

use crate::SCHEDULER;
use crate::api::{Api, Guarded};
use crate::common::rng::Rng;

pub(crate) const NAMESPACES: [&str; 2] = ["a", "b"];
pub(crate) const PRIORITIES: [i32; 4] = [-5, 0, 100, 1000];
const APPS: [&str; 3] = ["web", "db", "cache"];
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const GIB: i64 = 1 << 30;

/// Generates objects. Pods come from a few templates, so that they share shapes.
pub(crate) struct Workload {
    templates: Vec<PodSpec>,
    pods: usize,
    others: bool,
}

impl Workload {
    pub(crate) fn new(rng: &mut Rng, others: bool) -> Self {
        let n = 3 + rng.below(5);
        Self { templates: (0..n).map(|_| template(rng)).collect(), pods: 0, others }
    }

    /// Fills an API server with nodes, budgets and running pods.
    pub(crate) fn begin(&mut self, api: &mut Api, rng: &mut Rng) {
        api.classes.push(StorageClass {
            name: "made-late".into(),
            provisioner: "example.com/disks".into(),
            waits_for_consumer: true,
            ..StorageClass::default()
        });
        for i in 0..3 + rng.below(5) {
            let node = node(rng, i);
            api.put_node(node);
        }
        for _ in 0..rng.below(3) {
            let app = *rng.pick(&APPS).expect("not empty");
            let budget = Budget {
                namespace: (*rng.pick(&NAMESPACES).expect("not empty")).into(),
                name: app.into(),
                selector: Some(LabelSelector::of_pairs([&("app".into(), app.into())])),
                allowed: 0,
                ..Budget::default()
            };
            api.put_budget(Guarded { budget, min_available: rng.between(0, 4) as i32 });
        }
        let nodes: Vec<Name> = api.nodes.keys().cloned().collect();
        for node in nodes {
            for _ in 0..rng.below(6) {
                let pod = self.low(api, rng);
                self.run_on(api, rng, pod, &node, !self.others);
            }
        }
    }

    /// Makes a pending pod of ours, with its claim if it has one.
    pub(crate) fn waiting(&mut self, api: &mut Api, rng: &mut Rng) -> Pod {
        let priority = *rng.pick(&PRIORITIES).expect("not empty");
        let mut pod = self.pod(api, rng, priority);
        if rng.chance(10) {
            pod.gates = ["example.com/quota".into()].into();
        }
        if rng.chance(8) {
            let name = Name::new(&format!("claim-of-{}", pod.key.name));
            let claim = ClaimUse { claim: name.clone(), owner: None };
            Arc::make_mut(&mut pod.spec).volumes.claims = [claim].into();
            let namespace = pod.key.namespace.clone();
            if !api.claims.contains_key(&(namespace.clone(), name.clone())) {
                let class = Some("made-late".into());
                let (uid, requested) = (api.uid(), GIB);
                api.put_claim(PersistentVolumeClaim {
                    namespace,
                    name,
                    uid,
                    class,
                    requested,
                    ..PersistentVolumeClaim::default()
                });
            }
        }
        pod
    }

    /// Makes a pod of low priority.
    pub(crate) fn low(&mut self, api: &mut Api, rng: &mut Rng) -> Pod {
        let priority = *rng.pick(&PRIORITIES[..2]).expect("not empty");
        self.pod(api, rng, priority)
    }

    fn pod(&mut self, api: &Api, rng: &mut Rng, priority: i32) -> Pod {
        let spec = rng.pick(&self.templates).expect("there are templates").clone();
        self.pods += 1;
        // Sometimes reuses an earlier name, if it is free.
        let again =
            PodKey::new(rng.pick(&NAMESPACES).expect("not empty"), &format!("p{}", rng.below(self.pods)));
        let fresh = PodKey::new(rng.pick(&NAMESPACES).expect("not empty"), &format!("p{}", self.pods));
        let key = if rng.chance(10) && !api.pods.contains_key(&again) { again } else { fresh };
        Pod {
            key,
            created: 1000 + self.pods as i64,
            labels: spec.labels.clone(),
            priority,
            never_preempts: priority >= 100 && rng.chance(15),
            scheduler_name: SCHEDULER.into(),
            spec: Arc::new(spec),
            ..Pod::default()
        }
    }

    /// Creates a pod as if it had been running on a node for long; with `fits`, only if there is room.
    pub(crate) fn run_on(&self, api: &mut Api, rng: &mut Rng, pod: Pod, node: &Name, fits: bool) {
        let mut pod = Pod {
            node_name: Some(node.clone()),
            phase: PodPhase::Running,
            started: Some(500 + rng.between(0, 400)),
            ..pod
        };
        if rng.chance(50) {
            pod.scheduler_name = "somebody-else".into();
        }
        let key = pod.key.clone();
        if api.pods.contains_key(&key) {
            return;
        }
        if fits {
            let Some(object) = api.nodes.get(node).cloned() else { return };
            let there = api.pods.values().map(|s| &s.pod).filter(|p| p.node_name.as_ref() == Some(node));
            let all: Vec<&Pod> = there.chain([&pod]).collect();
            if crate::room::overcommitted(&object, &all).is_some() || crate::room::share_port(&all) {
                return;
            }
        }
        api.create(pod);
    }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement { key: key.into(), operator, values: values.iter().map(|v| Name::new(v)).collect() }
}

/// Returns the requests of a pod.
pub(crate) fn requests(milli_cpu: i64, memory: i64, gpus: i64) -> PodRequests {
    let mut amounts = vec![("cpu".into(), milli_cpu), ("memory".into(), memory)];
    if gpus > 0 {
        amounts.push(("example.com/gpu".into(), gpus));
    }
    let container = ContainerRequests::of(amounts);
    PodRequests::compute(&RequestInputs { containers: vec![container], ..RequestInputs::default() })
}

/// Makes a node named `n<i>`.
pub(crate) fn node(rng: &mut Rng, i: usize) -> Node {
    let name = Name::new(&format!("n{i}"));
    let zone = Name::new(rng.pick(&["za", "zb", "zc"]).expect("not empty"));
    let mut labels = vec![(HOSTNAME.into(), name.clone()), (ZONE.into(), zone)];
    if rng.chance(50) {
        labels.push(("disk".into(), "ssd".into()));
    }
    let taint = Taint { key: "dedicated".into(), value: "web".into(), effect: TaintEffect::NoSchedule };
    let gpus = if rng.chance(25) { vec![("example.com/gpu".into(), rng.between(1, 2))] } else { Vec::new() };
    Node {
        uid: format!("node-{i}").into(),
        labels: Labels::new(labels),
        taints: if rng.chance(10) { [taint].into() } else { Arc::from([]) },
        allocatable: ResourceList {
            milli_cpu: rng.between(2, 8) * 1000,
            memory: rng.between(4, 16) * GIB,
            pods: rng.between(4, 12),
            scalars: gpus.into(),
            ..ResourceList::default()
        },
        ready: true,
        name,
        ..Node::default()
    }
}

fn template(rng: &mut Rng) -> PodSpec {
    let app = Name::new(rng.pick(&APPS).expect("not empty"));
    let own = LabelSelector::of_pairs([&("app".into(), app.clone())]);
    let gpus = if rng.chance(8) { 1 } else { 0 };
    let mut spec = PodSpec {
        labels: Labels::new([("app".into(), app)]),
        requests: requests(rng.between(1, 8) * 250, rng.between(1, 6) * GIB / 2, gpus),
        n_containers: 1,
        ..PodSpec::default()
    };
    let zone = |values: &[&str]| NodeSelectorTerm {
        expressions: [requirement(ZONE, Operator::In, values)].into(),
        ..NodeSelectorTerm::default()
    };
    if rng.chance(15) {
        spec.affinity =
            NodeAffinity { selector: [("disk".into(), "ssd".into())].into(), ..NodeAffinity::default() };
    }
    if rng.chance(15) {
        spec.affinity.required = Some([zone(&["za", "zb"])].into());
    }
    if rng.chance(30) {
        let tolerates = Toleration {
            key: "dedicated".into(),
            operator: TolerationOperator::Exists,
            value: Name::default(),
            effect: None,
        };
        spec.tolerations = [tolerates].into();
    }
    if rng.chance(12) {
        let port = 8080 + rng.below(2) as u16;
        spec.host_ports = [HostPort { protocol: Protocol::Tcp, ip: "0.0.0.0".into(), port }].into();
    }
    relate(rng, &mut spec, own);
    spec
}

fn relate(rng: &mut Rng, spec: &mut PodSpec, own: LabelSelector) {
    let term = |key: &str, selector: &LabelSelector| PodAffinityTerm {
        topology_key: key.into(),
        selector: Some(selector.clone()),
        ..PodAffinityTerm::default()
    };
    if rng.chance(15) {
        spec.pod_anti_affinity = PodTerms { required: [term(HOSTNAME, &own)].into(), preferred: [].into() };
    }
    if rng.chance(12) {
        let other = Name::new(rng.pick(&APPS).expect("not empty"));
        let other = LabelSelector::of_pairs([&("app".into(), other)]);
        let preferred = WeightedTerm { weight: 10, term: term(HOSTNAME, &own) };
        spec.pod_affinity = PodTerms { required: [term(ZONE, &other)].into(), preferred: [preferred].into() };
    }
    if rng.chance(15) {
        spec.spread = [SpreadConstraint {
            max_skew: rng.between(1, 2) as i32,
            topology_key: ZONE.into(),
            is_hard: rng.chance(75),
            selector: Some(own),
            min_domains: 1,
            node_affinity_policy: NodeInclusion::Honor,
            node_taints_policy: NodeInclusion::Ignore,
        }]
        .into();
    }
}
