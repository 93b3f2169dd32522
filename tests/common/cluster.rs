//! Generates small random clusters: nodes and pods with every field that a plugin reads, from pools so small that
//! values often match, conflict and run out.

use std::sync::Arc;

use pellucid::cluster::{Cluster, DerivedState, Stage};
use pellucid::framework::plugin::derived_states;
use pellucid::model::node::NodeImage;
use pellucid::model::object::{Namespace, Workload};
use pellucid::model::pod::{HostPort, Protocol};
use pellucid::model::relations::{
    NodeInclusion, Owner, OwnerKind, PodAffinityTerm, PodTerms, SpreadConstraint, WeightedTerm,
};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::selector::{
    LabelSelector, Labels, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement,
};
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Name, Node, Object, Pod, PodKey, PodSpec};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Scheduler name of the generated pods.
pub const SCHEDULER: &str = "pellucid";
/// Number of node names that the generators use: small, so that names in selectors often match.
pub const NODE_NAMES: usize = 12;

/// Namespaces of generated pods.
pub const NAMESPACES: [&str; 2] = ["ns", "other"];
/// Label keys of generated pods.
const POD_LABELS: [&str; 2] = ["app", "tier"];

/// Returns a configuration that runs the same 64 cases on every machine and writes no file when one fails.
pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_210),
        ..ProptestConfig::default()
    }
}

/// Returns the name of the i-th node.
pub fn node_name(i: usize) -> Name {
    Name::new(&format!("node-{i}"))
}

/// Makes the derived state of every plugin.
pub fn derived() -> Vec<Box<dyn DerivedState>> {
    let registry = pellucid::plugins::registry();
    let made = registry.iter().map(|f| f.make(&serde_json::Value::Null).expect("defaults are valid"));
    derived_states(&made.collect::<Vec<_>>())
}

/// Makes an empty cluster with the derived state of every plugin.
pub fn empty_cluster() -> Cluster {
    let mut cluster = Cluster::new(7, [SCHEDULER.into()], derived());
    cluster.apply_object(Arc::new(reads_all_labels()), &mut Vec::new());
    cluster
}

/// Returns a Service that selects by every label key of pods, so that a spec can be evaluated without being in the
/// state.
pub fn reads_all_labels() -> Object {
    let requirements = POD_LABELS.map(|key| requirement_of(key, Operator::Exists, &[]));
    let selector = Some(LabelSelector::new(requirements));
    let (namespace, name) = ("elsewhere".into(), "reads-all".into());
    Object::Service(Workload { namespace, name, selector, replicas: None, controller: None })
}

/// The nodes, pods and objects that a cluster is made from.
#[derive(Clone, Debug)]
pub struct World {
    /// Nodes with distinct names.
    pub nodes: Vec<Node>,
    /// Pods on a node, occasionally on one that does not exist.
    pub placed: Vec<Pod>,
    /// Pending pods.
    pub pending: Vec<Pod>,
    /// Namespaces, Services and ReplicaSets.
    pub objects: Vec<Object>,
}

impl World {
    /// Makes the cluster.
    pub fn cluster(&self) -> Cluster {
        let mut cluster = empty_cluster();
        for object in &self.objects {
            cluster.apply_object(Arc::new(object.clone()), &mut Vec::new());
        }
        for node in &self.nodes {
            cluster.apply_node(Arc::new(node.clone()), &mut Vec::new());
        }
        for pod in self.placed.iter().chain(&self.pending) {
            cluster.apply_pod(Arc::new(pod.clone()), &mut Vec::new());
        }
        cluster
    }
}

/// Generates a world of at most `max_nodes` nodes, and at most `max_pods` placed and as many pending pods.
pub fn world(max_nodes: usize, max_pods: usize) -> impl Strategy<Value = World> {
    let nodes = vec(any_node(0), 1..=max_nodes.min(NODE_NAMES));
    let placed = vec((pod(0), 0..NODE_NAMES + 1), 0..=max_pods);
    (nodes, placed, vec(pod(0), 0..=max_pods), vec(object(), 0..8)).prop_map(
        |(nodes, placed, pending, objects)| {
            let rename = |(i, node): (usize, Node)| named_node(i, node);
            let place = |(i, (pod, on)): (usize, (Pod, usize))| Pod {
                node_name: Some(node_name(on)),
                ..named_pod(&format!("placed-{i}"), pod)
            };
            World {
                nodes: nodes.into_iter().enumerate().map(rename).collect(),
                placed: placed.into_iter().enumerate().map(place).collect(),
                pending: pending
                    .into_iter()
                    .enumerate()
                    .map(|(i, pod)| named_pod(&format!("pending-{i}"), Pod { deleting: false, ..pod }))
                    .collect(),
                objects,
            }
        },
    )
}

/// Gives a node the i-th name, and the age that goes with it.
pub fn named_node(i: usize, mut node: Node) -> Node {
    let name = node_name(i);
    let rest = node.labels.iter().filter(|(k, _)| &**k != "kubernetes.io/hostname").cloned();
    node.labels = Labels::new(rest.chain([("kubernetes.io/hostname".into(), name.clone())]));
    Node { uid: format!("uid-{i}").into(), created: 1000 - i as i64, name, ..node }
}

/// Gives a pod a name, and the namespace that goes with it. Its labels are those of its spec.
pub fn named_pod(name: &str, pod: Pod) -> Pod {
    let namespace = NAMESPACES[name.bytes().map(usize::from).sum::<usize>() % NAMESPACES.len()];
    let labels = pod.spec.labels.clone();
    Pod { key: PodKey::new(namespace, name), uid: format!("uid-{name}").into(), labels, ..pod }
}

fn pick(pool: &'static [&'static str]) -> impl Strategy<Value = Name> {
    prop::sample::select(pool).prop_map(Name::new)
}

fn key() -> impl Strategy<Value = Name> {
    pick(&["zone", "disk", "gen"])
}

fn value() -> impl Strategy<Value = Name> {
    pick(&["a", "b", "ssd", "1", "5", "9"])
}

fn effect() -> impl Strategy<Value = TaintEffect> {
    prop::sample::select(
        &[TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute][..],
    )
}

fn taint() -> impl Strategy<Value = Taint> {
    (pick(&["dedicated", "flaky"]), pick(&["", "web", "db"]), effect())
        .prop_map(|(key, value, effect)| Taint { key, value, effect })
}

fn image_name() -> impl Strategy<Value = Name> {
    pick(&["img/app:1", "img/db:2", "img/web:latest"])
}

/// Generates a node named `node-i`.
pub fn any_node(i: usize) -> impl Strategy<Value = Node> {
    let images = vec((vec(image_name(), 1..3), 0..2000i64), 0..3);
    let amounts = (0..9000i64, 0..17i64, 0..50i64, 0..8i64, prop::option::of(0..5i64));
    let zone = prop::option::weighted(0.7, pick(&["za", "zb"]));
    let zone = zone.prop_map(|zone| zone.map(|z| (Name::new("topology.kubernetes.io/zone"), z)));
    let labels = (vec((key(), value()), 0..4), zone).prop_map(|(rest, zone)| rest.into_iter().chain(zone));
    (labels, prop::bool::weighted(0.15), vec(taint(), 0..3), amounts, images).prop_map(
        move |(labels, unschedulable, taints, (milli_cpu, memory, storage, pods, gpus), images)| {
            let scalars = gpus.into_iter().map(|n| ("example.com/gpu".into(), n)).collect();
            let image = |(names, mib): (Vec<Name>, i64)| NodeImage { names: names.into(), size: mib << 20 };
            let node = Node {
                labels: Labels::new(labels),
                unschedulable,
                taints: taints.into(),
                allocatable: ResourceList {
                    milli_cpu,
                    memory: memory << 30,
                    ephemeral_storage: storage << 30,
                    pods,
                    scalars,
                },
                images: images.into_iter().map(image).collect(),
                ready: true,
                ..Node::default()
            };
            named_node(i, node)
        },
    )
}

fn operator() -> impl Strategy<Value = Operator> {
    use Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    prop::sample::select(&[In, NotIn, Exists, DoesNotExist, Gt, Lt][..])
}

fn requirement() -> impl Strategy<Value = Requirement> {
    (key(), operator(), vec(value(), 1..3)).prop_map(|(key, operator, values)| Requirement {
        key,
        operator,
        values: values.into(),
    })
}

fn by_name() -> impl Strategy<Value = Requirement> {
    (prop::bool::weighted(0.8), 0..NODE_NAMES).prop_map(|(is_in, i)| Requirement {
        key: "metadata.name".into(),
        operator: if is_in { Operator::In } else { Operator::NotIn },
        values: Box::new([node_name(i)]),
    })
}

fn term() -> impl Strategy<Value = NodeSelectorTerm> {
    (vec(requirement(), 0..3), vec(by_name(), 0..2))
        .prop_map(|(e, f)| NodeSelectorTerm { expressions: e.into(), fields: f.into() })
}

fn affinity() -> impl Strategy<Value = NodeAffinity> {
    let required = prop::option::weighted(0.4, vec(term(), 0..3));
    let preferred = vec((1..=100i32, term()), 0..3);
    (vec((key(), value()), 0..2), required, preferred).prop_map(|(selector, required, preferred)| {
        NodeAffinity {
            selector: selector.into(),
            required: required.map(Into::into),
            preferred: preferred.into_iter().map(|(weight, term)| PreferredTerm { weight, term }).collect(),
        }
    })
}

fn toleration() -> impl Strategy<Value = Toleration> {
    use TolerationOperator::{Equal, Exists, Unknown};
    let operator = prop::sample::select(&[Equal, Equal, Exists, Exists, Unknown][..]);
    (pick(&["", "dedicated", "flaky"]), operator, pick(&["", "web"]), prop::option::of(effect()))
        .prop_map(|(key, operator, value, effect)| Toleration { key, operator, value, effect })
}

fn host_port() -> impl Strategy<Value = HostPort> {
    let protocol = prop::sample::select(&[Protocol::Tcp, Protocol::Udp][..]);
    (protocol, pick(&["0.0.0.0", "10.0.0.1"]), 80..83u16).prop_map(|(protocol, ip, port)| HostPort {
        protocol,
        ip,
        port,
    })
}

fn requests() -> impl Strategy<Value = PodRequests> {
    let amount = |name: &'static str, max: i64, unit: i64| {
        prop::option::of(0..max).prop_map(move |n| n.map(|n| (Name::new(name), n * unit)))
    };
    let container = (
        amount("cpu", 3000, 1),
        amount("memory", 6, 1 << 30),
        amount("ephemeral-storage", 8, 1 << 30),
        prop::option::weighted(0.2, 0..3i64).prop_map(|n| n.map(|n| (Name::new("example.com/gpu"), n))),
        prop::bool::ANY,
    )
        .prop_map(|(a, b, c, d, is_sidecar)| ContainerRequests {
            is_sidecar,
            ..ContainerRequests::of([a, b, c, d].into_iter().flatten().collect())
        });
    (vec(container.clone(), 1..3), vec(container, 0..2)).prop_map(|(containers, init_containers)| {
        PodRequests::compute(&RequestInputs { containers, init_containers, ..RequestInputs::default() })
    })
}

fn requirement_of(key: &str, operator: Operator, values: &[Name]) -> Requirement {
    Requirement { key: key.into(), operator, values: values.into() }
}

/// Generates a selector over pods.
fn pod_selector() -> impl Strategy<Value = LabelSelector> {
    use Operator::{DoesNotExist, Exists, In, NotIn};
    let operator = prop::sample::select(&[In, In, In, NotIn, Exists, DoesNotExist][..]);
    let requirement = (prop::sample::select(&POD_LABELS[..]), operator, vec(pick(&["web", "db"]), 1..3));
    let requirement = requirement.prop_map(|(key, operator, values)| requirement_of(key, operator, &values));
    vec(requirement, 0..3).prop_map(LabelSelector::new)
}

fn topology_key() -> impl Strategy<Value = Name> {
    pick(&["zone", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk"])
}

fn affinity_term() -> impl Strategy<Value = PodAffinityTerm> {
    let team = prop_oneof![
        Just(LabelSelector::default()),
        Just(LabelSelector::new([requirement_of("team", Operator::In, &["x".into()])])),
        Just(LabelSelector::new([requirement_of("team", Operator::DoesNotExist, &[])])),
    ];
    (
        topology_key(),
        prop::option::weighted(0.9, pod_selector()),
        prop::sample::subsequence(&NAMESPACES[..], 0..=2),
        prop::option::weighted(0.25, team),
    )
        .prop_map(|(topology_key, selector, namespaces, namespace_selector)| PodAffinityTerm {
            topology_key,
            selector,
            namespaces: namespaces.into_iter().map(Name::new).collect(),
            namespace_selector,
        })
}

fn pod_terms() -> impl Strategy<Value = PodTerms> {
    let weighted = (1..=100i32, affinity_term()).prop_map(|(weight, term)| WeightedTerm { weight, term });
    let some = (vec(affinity_term(), 0..3), vec(weighted, 0..3)).prop_map(|(required, preferred)| PodTerms {
        required: required.into(),
        preferred: preferred.into(),
    });
    prop_oneof![2 => Just(PodTerms::default()), 1 => some]
}

fn spread_constraint() -> impl Strategy<Value = SpreadConstraint> {
    let policy = || prop::sample::select(&[NodeInclusion::Honor, NodeInclusion::Ignore][..]);
    let selector = prop::option::weighted(0.9, pod_selector());
    (1..4i32, topology_key(), any::<bool>(), selector, 1..4i32, policy(), policy()).prop_map(
        |(max_skew, topology_key, is_hard, selector, min_domains, affinity, taints)| SpreadConstraint {
            max_skew,
            topology_key,
            is_hard,
            selector,
            min_domains,
            node_affinity_policy: affinity,
            node_taints_policy: taints,
        },
    )
}

/// How a generated pod relates to other pods.
#[derive(Clone, Debug)]
struct Relations {
    namespace: Name,
    labels: Labels,
    owner: Option<Owner>,
    near: PodTerms,
    far: PodTerms,
    spread: Vec<SpreadConstraint>,
}

fn relations() -> impl Strategy<Value = Relations> {
    let label = |key: &'static str| {
        let value = prop::option::weighted(0.8, pick(&["web", "db"]));
        value.prop_map(move |value| value.map(|v| (Name::new(key), v)))
    };
    let kind = prop::sample::select(&[OwnerKind::ReplicaSet, OwnerKind::ReplicationController][..]);
    let owner = prop::option::weighted(0.3, kind.prop_map(|kind| Owner { kind, name: "owner".into() }));
    let spread = prop_oneof![2 => Just(Vec::new()), 1 => vec(spread_constraint(), 1..4)];
    (pick(&NAMESPACES), (label("app"), label("tier")), owner, pod_terms(), pod_terms(), spread).prop_map(
        |(namespace, (app, tier), owner, near, far, spread)| Relations {
            namespace,
            labels: Labels::new(app.into_iter().chain(tier)),
            owner,
            near,
            far,
            spread,
        },
    )
}

/// Generates a Namespace, a Service or an owner of pods, from a few names.
pub fn object() -> impl Strategy<Value = Object> {
    let namespace = (pick(&NAMESPACES), any::<bool>()).prop_map(|(name, of_team)| {
        let labels = Labels::new(of_team.then(|| ("team".into(), "x".into())));
        Object::Namespace(Namespace { name, labels })
    });
    let workload = |names: &'static [&'static str]| {
        let selector = prop::option::weighted(0.8, pod_selector());
        (pick(&NAMESPACES), pick(names), selector).prop_map(|(namespace, name, selector)| Workload {
            namespace,
            name,
            selector,
            replicas: Some(1),
            controller: None,
        })
    };
    prop_oneof![
        namespace,
        workload(&["front", "back"]).prop_map(Object::Service),
        workload(&["owner"]).prop_map(Object::ReplicaSet),
        workload(&["owner"]).prop_map(Object::ReplicationController),
    ]
}

/// Generates the part of a pod that decides where it fits, with every field in use.
pub fn spec() -> impl Strategy<Value = PodSpec> {
    let node = prop::option::weighted(0.1, (0..NODE_NAMES).prop_map(node_name));
    let affinity = prop_oneof![2 => Just(NodeAffinity::default()), 3 => affinity()];
    (
        requests(),
        node,
        affinity,
        vec(toleration(), 0..3),
        vec(host_port(), 0..3),
        (vec(image_name(), 0..4), 1..4u32),
        relations(),
    )
        .prop_map(
            |(requests, node_name, affinity, tolerations, host_ports, (images, n_containers), with)| {
                PodSpec {
                    namespace: with.namespace,
                    labels: with.labels,
                    owner: with.owner,
                    pod_affinity: with.near,
                    pod_anti_affinity: with.far,
                    spread: with.spread.into(),
                    requests,
                    node_name,
                    affinity,
                    tolerations: tolerations.into(),
                    host_ports: host_ports.into(),
                    images: images.into(),
                    n_containers,
                    ..PodSpec::default()
                }
            },
        )
}

/// Generates a pod of ours named `pod-i`, occasionally one that is being deleted.
pub fn pod(i: usize) -> impl Strategy<Value = Pod> {
    let gates = vec(pick(&["example.com/quota", "example.com/data"]), 0..2);
    let gates = prop_oneof![4 => Just(Vec::new()), 1 => gates];
    (spec(), -10..10i32, gates, prop::bool::weighted(0.15)).prop_map(
        move |(spec, priority, gates, deleting)| {
            let pod = Pod {
                priority,
                deleting,
                scheduler_name: SCHEDULER.into(),
                gates: gates.into(),
                spec: Arc::new(spec),
                ..Pod::default()
            };
            named_pod(&format!("pod-{i}"), pod)
        },
    )
}

/// Generates the stage of a pod that uses resources of a node.
pub fn placed_stage() -> impl Strategy<Value = Stage> {
    use Stage::{Binding, Bound, Permitted, PreBinding, Reserved, Waiting};
    prop::sample::select(&[Reserved, Waiting, Permitted, PreBinding, Binding, Bound][..])
}
