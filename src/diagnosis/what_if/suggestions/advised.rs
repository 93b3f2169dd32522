//! Changes that a plugin proposes for a pod that it refuses, as a whole or on nodes, as parts of fixes: objects of its
//! kinds, a label, an annotation or a smaller request of the pod, a label of a node, and pods that move or end.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::rest::simulate::{AnnotatePod, EditBody, LabelNode, LabelPod, MovePod, PodsOf};
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid_framework::advice::{Change, NewObject, ObjectChange, PodMove, Proposal};
use pellucid_framework::{Plugin, View};
use pellucid_model::{CustomObject, Name, NodeIdx, PodKey, PodSpec};
use serde_json::{Value, json};

use super::parts::{Part, Side, changed, exchange, owned, pods_of, set_request};
use super::search::{MOST_ROUNDS, Search, requirements};
use super::victims::delete_pod;
use crate::requirements::PodRequirements;
use crate::requirements::nearest::order;

/// Number of proposals that are tried together with changes of a node, and number of nodes, the nearest.
const MOST_COMBINED: usize = 4;
const MOST_NEAREST: usize = 3;

/// Returns the changes that the plugin proposes which refuses the pod as a whole.
pub(super) fn changes(asked: &PodRequirements<'_>, of: &Target) -> Vec<Vec<Part>> {
    let Some(cause) = &asked.masks.pod else { return Vec::new() };
    let plugin = asked.profile.plugins.iter().find(|plugin| plugin.name() == cause.plugin);
    let Some(advice) = plugin.and_then(|plugin| plugin.advice()) else { return Vec::new() };
    let proposals = advice.proposals(View::new(&asked.cluster), &asked.record.pod.spec);
    proposals.into_iter().map(|proposal| parts(asked, of, proposal)).collect()
}

/// Returns the changes that plugins propose for nodes on which they refuse the pod.
pub(super) fn on_nodes(asked: &PodRequirements<'_>, of: &Target) -> Vec<Vec<Part>> {
    let masks = &asked.masks;
    let view = View::new(&asked.cluster).for_pod(&asked.record.pod);
    let of_plugin = |plugin: &Arc<dyn Plugin>| {
        let advice = plugin.advice()?;
        let refuses =
            |node: &NodeIdx| masks.requirements(masks.of(*node)).any(|(_, r)| r.plugin == plugin.name());
        let refused: Vec<NodeIdx> = asked.cluster.by_name().iter().copied().filter(refuses).collect();
        let proposals = || advice.proposals_on(view, &asked.record.pod.spec, &refused);
        (!refused.is_empty()).then(proposals)
    };
    let proposals = asked.profile.plugins.iter().filter_map(of_plugin).flatten();
    proposals.map(|proposal| parts(asked, of, proposal)).collect()
}

/// Returns the changes that plugins propose so that a number of pods like this one is accepted together.
pub(super) fn for_several(asked: &PodRequirements<'_>, of: &Target, n: i64) -> Vec<Vec<Part>> {
    let together = times(&asked.record.pod.spec, n);
    let advice = asked.profile.plugins.iter().filter_map(|plugin| plugin.advice());
    let proposals = advice.flat_map(|advice| advice.proposals(View::new(&asked.cluster), &together));
    // A smaller request would be that of all pods together.
    let is_sum = |change: &Change| matches!(change, Change::Request(_) | Change::Exchange(_));
    let proposals = proposals.filter(|proposal| !is_sum(&proposal.change));
    proposals.map(|proposal| parts(asked, of, proposal)).collect()
}

/// Returns a spec that requests what `n` pods of a spec do.
fn times(spec: &PodSpec, n: i64) -> PodSpec {
    let mut spec = spec.clone();
    let list = &mut spec.requests.list;
    for amount in [&mut list.milli_cpu, &mut list.memory, &mut list.ephemeral_storage, &mut list.pods] {
        *amount = amount.saturating_mul(n);
    }
    list.scalars =
        list.scalars.iter().map(|(name, amount)| (name.clone(), amount.saturating_mul(n))).collect();
    spec
}

impl Search<'_> {
    /// Returns the proposed changes that are not enough because all nodes refuse the pod too, each with what the first of the
    /// nearest nodes needs then that can be had.
    pub(super) fn advised_with_nodes(&self) -> Vec<Vec<Part>> {
        let changes = changes(self.asked, &self.of).into_iter().take(MOST_COMBINED);
        changes.filter_map(|parts| self.with_nearest(&parts)).collect()
    }

    fn with_nearest(&self, parts: &[Part]) -> Option<Vec<Part>> {
        let nodes = self.after(parts, None, |asked| {
            let (order, mut kinds) = (order(asked), BTreeSet::new());
            // Of nodes that lack the same, the first.
            let nearest = order.iter().filter(|near| kinds.insert(near.kind())).take(MOST_NEAREST);
            nearest.map(|near| near.node).collect::<Vec<_>>()
        })?;
        nodes.into_iter().find_map(|node| self.with_node(parts.to_vec(), node))
    }

    /// Adds what a node needs after changes.
    fn with_node(&self, mut parts: Vec<Part>, node: NodeIdx) -> Option<Vec<Part>> {
        for _ in 0..MOST_ROUNDS {
            let more = self.after(&parts, Some(node), |asked| match requirements(&asked.masks, node) {
                open if open.is_empty() => Some(Vec::new()),
                open => self.round(asked, node, Side::Cheapest, &open),
            })??;
            if more.is_empty() {
                return Some(parts);
            }
            parts.extend(more);
        }
        None
    }

    /// Asks what the pod needs after changes, of one node or of all. `None` if they cannot be made, or if the pod is still refused
    /// as a whole.
    fn after<T>(
        &self,
        parts: &[Part],
        node: Option<NodeIdx>,
        ask: impl FnOnce(&PodRequirements<'_>) -> T,
    ) -> Option<T> {
        let mut simulation = changed(self.snapshot, parts, self.now)?;
        simulation.settle_plugins();
        let mut cluster = simulation.scheduler().cluster().fork();
        let record = cluster.pod(self.asked.id)?.clone();
        let PodRequirements { id, profile, .. } = *self.asked;
        let nodes = node.map_or_else(|| cluster.present().to_vec(), |node| vec![node]);
        let masks = masks_of_pod_on(&mut cluster, profile, (id, &record.pod.spec), &nodes);
        let is_refused = masks.pod.is_some();
        (!is_refused).then(|| ask(&PodRequirements { id, record: &record, profile, cluster, masks }))
    }
}

fn parts(asked: &PodRequirements<'_>, of: &Target, Proposal { change, text, cost }: Proposal) -> Vec<Part> {
    let of_pod = |part: Part| match of {
        Target::Pod(_) => owned(asked, part),
        Target::Gang(_) => part,
    };
    match change {
        Change::Objects(changes) => of_objects(changes, cost),
        Change::Label { key, value } => {
            let pods = pods_of(of);
            let body =
                LabelPod { pod: pods.pod, gang: pods.gang, key: key.to_string(), value: value.to_string() };
            let edit = Edit::LabelPod { of: of.clone(), key, value };
            vec![of_pod(Part::new(edit, EditBody::LabelPod(body), text, cost))]
        }
        Change::Annotation { key, value } => {
            let PodsOf { pod, gang } = pods_of(of);
            let body = AnnotatePod { pod, gang, key: key.to_string(), value: value.to_string() };
            let edit = Edit::AnnotatePod { of: of.clone(), key, value };
            vec![of_pod(Part::new(edit, EditBody::AnnotatePod(body), text, cost))]
        }
        Change::NodeLabel { node, key, value } => {
            let body = LabelNode { node: node.to_string(), key: key.to_string(), value: value.to_string() };
            let command = format!("kubectl label node {node} {key}={value} --overwrite");
            let edit = Edit::LabelNode { node, key, value };
            vec![Part::new(edit, EditBody::LabelNode(body), text, cost).with_command(command)]
        }
        Change::Move(moves) => {
            let part = |PodMove { pod, to, text }| {
                let body = EditBody::MovePod(MovePod { pod: PodKey::to_string(&pod), node: to.to_string() });
                let command = move_command(asked, &pod, &to);
                Part { command, ..Part::new(Edit::MovePod { pod, to }, body, text, cost) }
            };
            moves.into_iter().map(part).collect()
        }
        Change::Request(amounts) => {
            let spec = &asked.record.pod.spec;
            let part = |(resource, amount)| of_pod(set_request(spec, of, &resource, amount));
            amounts.into_iter().map(part).collect()
        }
        Change::Exchange(other) => vec![of_pod(exchange(of, other, (text, cost)))],
        Change::End(pods) => pods.into_iter().map(|key| delete_pod(asked, key)).collect(),
    }
}

/// Returns the changes of objects. Several stay together, in their order, in which the API server takes them.
fn of_objects(changes: Vec<ObjectChange>, cost: u32) -> Vec<Part> {
    let is_bound = changes.len() > 1;
    let part = |(n, ObjectChange { object, text, command }): (usize, ObjectChange)| {
        let (edit, body) = match object {
            NewObject::Custom(object) => (Edit::ApplyCustom(object.clone()), manifest(&object)),
            NewObject::Known(object, manifest) => (Edit::ApplyObject(object), manifest),
        };
        let part = Part::new(edit, EditBody::ApplyObject(body), text, cost).with_command(command);
        Part { place: u32::try_from(n).unwrap_or(u32::MAX), is_bound, ..part }
    };
    changes.into_iter().enumerate().map(part).collect()
}

/// Returns the command that makes a pod anew on another node. A pod of a controller comes back by itself, and leaves its
/// node for good when that is cordoned meanwhile.
fn move_command(asked: &PodRequirements<'_>, key: &PodKey, to: &Name) -> Option<String> {
    let record = asked.cluster.find_pod(key).and_then(|id| asked.cluster.pod(id))?;
    let from = asked.cluster.node_name(record.node?);
    let PodKey { namespace, name } = key;
    if record.pod.controller.is_some() {
        return Some(format!(
            "kubectl cordon {from} && kubectl -n {namespace} delete pod {name} # when it is back: kubectl uncordon {from}"
        ));
    }
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [to.as_str()]}]});
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let program = format!(
        "del(.spec.nodeName, .status) | .spec.affinity.nodeAffinity.{required}.nodeSelectorTerms = [{term}]"
    );
    let kubectl = format!("kubectl -n {namespace}");
    Some(format!("{kubectl} get pod {name} -o json | jq '{program}' | {kubectl} replace --force -f -"))
}

/// Returns an object of a plugin's kind as the manifest that `applyObject` takes.
fn manifest(object: &CustomObject) -> Value {
    let kind = object.kind.0;
    let mut manifest = (kind.encode)(&object.value);
    manifest["apiVersion"] = json!(format!("{}/{}", kind.group, kind.version));
    manifest["kind"] = json!(kind.kind);
    manifest["metadata"]["name"] = json!(object.name.as_str());
    if kind.is_namespaced {
        manifest["metadata"]["namespace"] = json!(object.namespace.as_str());
    }
    manifest
}
