//! NodeAffinity: keeps pods off nodes that do not match their `nodeSelector` or node affinity, and prefers nodes by the
//! weights of matching preferred terms.
//!
//! A profile may add its own affinity (`addedAffinity`), which every pod must satisfy as well.
//!
//! A preferred term that compares a label with what is no integer matches no node, as a required one does. kube-scheduler fails
//! every attempt at a pod with such a preference, once two nodes would take it.

use pellucid_framework::advice::Advice;
use pellucid_framework::points;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{LabelUse, NodeAffinityState};
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Normalize, Plugin, PreFilter, PreFiltered, PreScore, PreScored,
    Reads, Score,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::selector::{NodeAffinity as Affinity, NodeSelectorTerm, Operator};
use pellucid_model::{Name, Node, NodeIdx, Now, Pod, PodSpec};
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{MAX_EXAMPLES, MAX_ROWS, cut};

mod args;
mod requirements;
#[cfg(test)]
mod tests;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeAffinity";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods on nodes that their nodeSelector and node affinity accept";
    let about = "The label keys of nodes, which selectors can name";
    let state = Endpoint::of::<NodeAffinityState>("state", about, read_state).with_rows("labels");
    Registration::new(NAME, summary, args::schema, |args| {
        let (added, given) = args::read(args)?;
        Ok(NodeAffinity { added, given })
    })
    .with_weight(2)
    .with_endpoints([state])
}

struct NodeAffinity {
    /// The profile's own affinity, added to that of every pod.
    added: Affinity,
    /// `addedAffinity` as given in the configuration.
    given: Value,
}

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        if self.given.is_null() { json!({}) } else { json!({"addedAffinity": self.given}) }
    }
    points! { pre_filter, filter, pre_score, score, hints, advice }
}

impl PreFilter for NodeAffinity {
    fn reads(&self) -> Reads {
        Reads::NodeSet
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if !spec.affinity.has_required() && self.added.required.is_none() {
            return PreFiltered::Skip;
        }
        let value: CycleValue = Arc::new(());
        let Some(names) = spec.affinity.required.as_deref().and_then(named_nodes) else {
            return PreFiltered::Ready { value, nodes: None };
        };
        if names.is_empty() {
            let reason = Reason::of(ReasonCode::AffinityTermsConflict);
            return PreFiltered::Refused(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        }
        let found = names.iter().filter_map(|name| view.cluster().find_node(name));
        let mut nodes: Vec<NodeIdx> = found.filter(|n| view.cluster().node(*n).is_some()).collect();
        nodes.sort_unstable();
        PreFiltered::Ready { value, nodes: Some(nodes) }
    }
}

/// Returns the nodes named by the terms, or `None` unless every term names nodes. A term names the nodes listed by all
/// of its `metadata.name In` requirements; the terms are alternatives.
fn named_nodes(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<Name>> {
    let mut all = BTreeSet::new();
    for term in terms {
        let by_name = |r: &&pellucid_model::selector::Requirement| {
            &*r.key == "metadata.name" && r.operator == Operator::In
        };
        let mut requirements = term.fields.iter().filter(by_name);
        let mut names: BTreeSet<Name> = requirements.next()?.values.iter().cloned().collect();
        for requirement in requirements {
            names.retain(|name| requirement.values.contains(name));
        }
        all.append(&mut names);
    }
    if terms.is_empty() { None } else { Some(all) }
}

/// Number of nodes that a sentence names.
const MOST_NAMED: usize = 3;

impl Advice for NodeAffinity {
    /// Names the nodes that the pod asks for by name, when none of them is there.
    fn sentence(&self, view: View<'_>, spec: &PodSpec, _now: Now) -> Option<String> {
        let names = spec.affinity.required.as_deref().and_then(named_nodes)?;
        let is_there =
            |name| view.cluster().find_node(name).is_some_and(|n| view.cluster().node(n).is_some());
        let (first, rest) = (names.first()?, names.len().saturating_sub(MOST_NAMED));
        if names.iter().any(is_there) {
            return None;
        }
        let named: Vec<&str> = names.iter().take(MOST_NAMED).map(Name::as_str).collect();
        Some(match (names.len(), rest) {
            (1, _) => format!("its node affinity names node {first} alone, which is not in the cluster"),
            (_, 0) => {
                format!(
                    "its node affinity names nodes {} alone, none of which is in the cluster",
                    named.join(", ")
                )
            }
            (_, rest) => format!(
                "its node affinity names nodes {} and {rest} more alone, none of which is in the cluster",
                named.join(", ")
            ),
        })
    }
}

impl Filter for NodeAffinity {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let mut cause =
            |code| nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, Reason::of(code)));
        let enforced = self.added.required.as_ref().map(|_| cause(ReasonCode::AddedAffinityMismatch));
        let own = cause(ReasonCode::NodeAffinityMismatch);
        nodes.refuse(|n| {
            let Some(node) = view.cluster().node(n) else { return own };
            if let Some(enforced) = enforced
                && !self.added.accepts(&node.name, &node.labels)
            {
                return enforced;
            }
            if spec.affinity.accepts(&node.name, &node.labels) { CauseId::FEASIBLE } else { own }
        });
    }

    /// The profile's affinity and the pod's own are two reasons.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        Some(Box::new(move |node, reasons| {
            let accepts = |affinity: &Affinity| {
                view.cluster().node(node).is_some_and(|node| affinity.accepts(&node.name, &node.labels))
            };
            let mut refuse = |code| reasons.push(NodeReason::fixed(Reason::of(code)));
            if self.added.required.is_some() && !accepts(&self.added) {
                refuse(ReasonCode::AddedAffinityMismatch);
            }
            if !accepts(&spec.affinity) {
                refuse(ReasonCode::NodeAffinityMismatch);
            }
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, (&self.added, &spec.affinity), refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, (&self.added, &spec.affinity), node)
    }
}

impl PreScore for NodeAffinity {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, _view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        if spec.affinity.preferred.is_empty() && self.added.preferred.is_empty() {
            PreScored::Skip
        } else {
            PreScored::Ready(Arc::new(()))
        }
    }
}

impl Score for NodeAffinity {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        for (n, score) in nodes.iter().zip(out) {
            *score = view.cluster().node(*n).map_or(0, |node| {
                let of = |affinity: &Affinity| affinity.preference(&node.name, &node.labels);
                of(&self.added) + of(&spec.affinity)
            });
        }
    }

    fn normalize(&self) -> Normalize {
        Normalize::Proportional
    }
}

impl Hints for NodeAffinity {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD.with(EventKinds::NODE_LABEL)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let accepts = |node: &Node| {
            self.added.accepts(&node.name, &node.labels)
                && pod.spec.affinity.accepts(&node.name, &node.labels)
        };
        let accepts_now = |n: NodeIdx| view.cluster().node(n).is_some_and(|node| accepts(node));
        let opens = match event {
            ClusterEvent::NodeAdded(n) => accepts_now(*n),
            ClusterEvent::NodeUpdated { node, change, old } if change.any(NodeChange::LABELS) => {
                accepts_now(*node) && !accepts(old)
            }
            ClusterEvent::PendingUpdated { old, .. } => old.spec.affinity != pod.spec.affinity,
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut by_key: BTreeMap<&Name, (usize, BTreeSet<&Name>)> = BTreeMap::new();
    for (key, value) in cx.view.nodes().iter().filter_map(|n| cx.view.labels(*n)).flat_map(|l| l.iter()) {
        let (nodes, values) = by_key.entry(key).or_default();
        *nodes += 1;
        values.insert(value);
    }
    let rows = by_key.into_iter().map(|(key, (nodes, values))| LabelUse {
        key: key.to_string(),
        nodes,
        distinct_values: values.len(),
        examples: values.into_iter().take(MAX_EXAMPLES).map(|v| v.to_string()).collect(),
    });
    let (labels, truncated) = cut(rows.collect(), MAX_ROWS);
    Ok(json!(NodeAffinityState { labels, total_nodes: cx.view.nodes().len(), truncated }))
}
