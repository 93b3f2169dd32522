//! Nodes and unreadable objects as bodies.

use pellucid_api::rest::nodes::{
    Amounts, NodeDetail, NodeList, NodePod, NodeSummary, Quarantine, QuarantinedBody, TaintBody,
};
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{PodRecord, ResourceIdx};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Attribute, Facts, List, Page};
use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, Node, NodeIdx, Now};

use crate::meta::of_snapshot;

/// What nodes are filtered and sorted by.
pub(crate) const OF_NODES: &[Attribute] = &[Attribute::Name, Attribute::Labels];

/// Lists nodes by name, unless the request sorts otherwise.
pub(crate) fn list(snapshot: &Snapshot, list: &List, now: Now) -> NodeList {
    let page = page(snapshot, list);
    let nodes = page.items.iter().map(|node| summary(snapshot, *node)).collect();
    NodeList { meta: page.meta(of_snapshot(snapshot, now)), count: page.total, nodes }
}

/// Returns the nodes of a page.
pub(crate) fn page(snapshot: &Snapshot, list: &List) -> Page<NodeIdx> {
    list.page(snapshot.cluster.by_name().iter().copied(), |node| {
        let labels = snapshot.cluster.node(*node).map(|node| &node.labels);
        Facts { name: snapshot.cluster.node_name(*node), labels, ..Facts::default() }
    })
}

pub(crate) fn free(snapshot: &Snapshot, node: NodeIdx) -> Amounts {
    let columns = snapshot.cluster.columns();
    amounts(snapshot, node, &|r| columns.free(node, r))
}

/// Returns `of` for every resource that the node offers or its pods request.
fn amounts(snapshot: &Snapshot, idx: NodeIdx, of: &dyn Fn(ResourceIdx) -> i64) -> Amounts {
    let columns = snapshot.cluster.columns();
    let named =
        columns.offered().filter(|r| columns.allocatable(idx, *r) != 0 || columns.requested(idx, *r) != 0);
    named.map(|r| (columns.name(r).to_string(), of(r))).collect()
}

fn summary(snapshot: &Snapshot, idx: NodeIdx) -> NodeSummary {
    let slot = snapshot.cluster.slot(idx);
    let columns = snapshot.cluster.columns();
    let amounts = |of: &dyn Fn(ResourceIdx) -> i64| amounts(snapshot, idx, of);
    NodeSummary {
        name: snapshot.cluster.node_name(idx).to_string(),
        ready: slot.node.as_ref().is_some_and(|n| n.ready),
        unschedulable: slot.node.as_ref().is_some_and(|n| n.unschedulable),
        pods: slot.pods.len(),
        allocatable: amounts(&|r| columns.allocatable(idx, r)),
        requested: amounts(&|r| columns.requested(idx, r)),
        reserved: reserved(snapshot, idx),
        nominated: nominated(snapshot, snapshot.cluster.node_name(idx)),
        free: amounts(&|r| columns.free(idx, r)),
        left_out: left_out(snapshot, slot.node.as_deref()),
    }
}

/// Returns the names of the resources that a node offers but the scheduler does not count.
fn left_out(snapshot: &Snapshot, node: Option<&Node>) -> Vec<String> {
    let offered = node.into_iter().flat_map(|node| node.allocatable.scalars.iter());
    let not_counted = offered.filter(|(name, n)| *n != 0 && snapshot.cluster.columns().is_left_out(name));
    not_counted.map(|(name, _)| name.to_string()).collect()
}

pub(crate) fn node_not_found(name: &str) -> ReadError {
    ReadError::NotFound { code: "NodeNotFound", message: format!("cannot find node {name}") }
}

/// Returns one node. Fails when the node is unknown.
pub(crate) fn detail(snapshot: &Snapshot, name: &str, now: Now) -> Result<NodeDetail, ReadError> {
    let found = snapshot.cluster.find_node(&Name::new(name));
    let idx = found.ok_or_else(|| node_not_found(name))?;
    let slot = snapshot.cluster.slot(idx);
    let pod = |record: &PodRecord| NodePod {
        namespace: record.pod.key.namespace.to_string(),
        name: record.pod.key.name.to_string(),
        uid: record.pod.uid.to_string(),
        stage: record.stage.as_str().into(),
        priority: record.pod.priority,
        scheduler_name: record.pod.scheduler_name.to_string(),
        requests: amounts_of(&record.pod.spec.requests.list),
    };
    let mut pods: Vec<NodePod> =
        slot.pods.iter().filter_map(|id| snapshot.cluster.pod(*id)).map(pod).collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let page = snapshot.cluster.columns().page(idx);
    let at = idx.index() % pellucid_model::pages::PAGE;
    let node = slot.node.as_ref();
    let taint = |t: &pellucid_model::taint::Taint| TaintBody {
        key: t.key.to_string(),
        value: t.value.to_string(),
        effect: t.effect.as_str().into(),
    };
    Ok(NodeDetail {
        meta: of_snapshot(snapshot, now),
        summary: summary(snapshot, idx),
        present: node.is_some(),
        labels: node
            .map(|n| n.labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
            .unwrap_or_default(),
        taints: node.map(|n| n.taints.iter().map(taint).collect()).unwrap_or_default(),
        non_zero_milli_cpu: page.non_zero_cpu[at],
        non_zero_memory: page.non_zero_memory[at],
        pods_on_node: pods,
    })
}

/// Returns the requests of our pods on a node whose Bindings are not confirmed.
fn reserved(snapshot: &Snapshot, node: NodeIdx) -> Amounts {
    let pods = snapshot.cluster.slot(node).pods.iter().filter_map(|id| snapshot.cluster.pod(*id));
    sum(pods.filter(|r| r.stage.is_assumed()))
}

/// Returns the requests of the pods that are nominated to a node.
fn nominated(snapshot: &Snapshot, node: &Name) -> Amounts {
    let pods = snapshot.cluster.nominator().on(node).iter().filter_map(|id| snapshot.cluster.pod(*id));
    sum(pods.filter(|r| r.node.is_none()))
}

fn sum<'r>(pods: impl Iterator<Item = &'r PodRecord>) -> Amounts {
    let mut sum = Amounts::new();
    for record in pods {
        for (resource, amount) in amounts_of(&record.pod.spec.requests.list) {
            *sum.entry(resource).or_default() += amount;
        }
        *sum.entry("pods".into()).or_default() += 1;
    }
    sum
}

fn amounts_of(list: &ResourceList) -> Amounts {
    let fixed =
        [("cpu", list.milli_cpu), ("memory", list.memory), ("ephemeral-storage", list.ephemeral_storage)];
    let fixed = fixed.into_iter().filter(|(_, v)| *v != 0).map(|(n, v)| (n.to_string(), v));
    fixed.chain(list.scalars.iter().map(|(n, v)| (n.to_string(), *v))).collect()
}

/// What unreadable objects are filtered and sorted by.
pub(crate) const OF_OBJECTS: &[Attribute] = &[Attribute::Namespace, Attribute::Name];

/// Lists the objects that cannot be read.
pub(crate) fn quarantine(snapshot: &Snapshot, list: &List, now: Now) -> Quarantine {
    let body = |q: &&Quarantined| QuarantinedBody {
        kind: q.kind.into(),
        namespace: q.namespace.to_string(),
        name: q.name.to_string(),
        field: q.field.to_string(),
        value: q.value.to_string(),
        problem: q.problem.to_string(),
    };
    let page = list.page(snapshot.cluster.quarantined(), |object| Facts {
        namespace: &object.namespace,
        name: &object.name,
        ..Facts::default()
    });
    let objects = page.items.iter().map(body).collect();
    Quarantine { meta: page.meta(of_snapshot(snapshot, now)), count: page.total, objects }
}
