//! TaintToleration: keeps pods off nodes with taints they do not tolerate, and prefers nodes with fewer untolerated
//! `PreferNoSchedule` taints.
//!
//! The set of tainted nodes is derived state: most nodes have no taints, and for those only one bit is read.

use pellucid_framework::points;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{TaintTolerationState, TaintUse};
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::derived::Touched;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds, NodeChange};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Normalize, Plugin, PreScore, PreScored, Reads, Score,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::taint::{Taint, TaintEffect, Toleration, tolerated};
use pellucid_model::{Node, NodeIdx, Now, Pod, PodSpec};
use serde_json::{Value, json};

use super::node_mask::NodeMask;
use pellucid_plugin_helper::listing::{Examples, MAX_ROWS, cut};

mod requirements;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "TaintToleration";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods off nodes whose taints they do not tolerate";
    let about = "The taints and their nodes";
    let state = Endpoint::of::<TaintTolerationState>("state", about, read_state).with_rows("taints");
    Registration::without_args(NAME, summary, || TaintToleration).with_weight(3).with_endpoints([state])
}

/// Holds the nodes with taints by effect, as derived state of the cluster.
#[derive(Clone, Default)]
pub struct TaintedNodes {
    /// Nodes with a `NoSchedule` or `NoExecute` taint.
    refusing: NodeMask,
    /// Nodes with a `PreferNoSchedule` taint.
    discouraging: NodeMask,
}

impl DerivedState for TaintedNodes {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn node_changed(&mut self, node: NodeIdx, _old: Option<&Node>, new: Option<&Node>) -> Touched {
        let taints = new.map_or(&[][..], |n| &n.taints);
        self.refusing.set(node, taints.iter().any(refuses));
        self.discouraging.set(node, !taints.iter().all(refuses));
        Touched::Nothing
    }
}

fn refuses(taint: &Taint) -> bool {
    taint.effect != TaintEffect::PreferNoSchedule
}

struct TaintToleration;

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { filter, pre_score, score, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(TaintedNodes::default())]
    }
}

/// Returns whether the pod tolerates every `NoSchedule` and `NoExecute` taint.
fn accepts(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    taints.iter().all(|t| !refuses(t) || tolerated(tolerations, t))
}

impl Filter for TaintToleration {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let tainted = view.state::<TaintedNodes>().map(|t| &t.refusing);
        if tainted.is_some_and(NodeMask::is_empty) {
            return;
        }
        let reason = Reason::of(ReasonCode::UntoleratedTaint);
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|n| {
            let is_tainted = tainted.is_none_or(|t| t.contains(n));
            let refused = is_tainted && !accepts(&spec.tolerations, view.taints(n));
            if refused { cause } else { CauseId::FEASIBLE }
        });
    }

    /// Each untolerated taint is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        Some(Box::new(move |node, reasons| {
            let taints = requirements::untolerated(spec, view.taints(node));
            let reason = |taint| Reason::about(ReasonCode::UntoleratedTaint, &*requirements::text(taint));
            reasons.extend(taints.map(|taint| NodeReason::fixed(reason(taint))));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }
}

impl PreScore for TaintToleration {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_score(&self, _view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        let matters = |t: &&Toleration| t.effect.is_none_or(|e| e == TaintEffect::PreferNoSchedule);
        let tolerations: Box<[Toleration]> = spec.tolerations.iter().filter(matters).cloned().collect();
        PreScored::Ready(Arc::new(tolerations))
    }
}

impl Score for TaintToleration {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        let tolerations = value.downcast_ref::<Box<[Toleration]>>().unwrap_or(&spec.tolerations);
        let tainted = view.state::<TaintedNodes>().map(|t| &t.discouraging);
        for (node, score) in nodes.iter().zip(out) {
            *score = if tainted.is_some_and(|t| !t.contains(*node)) {
                0
            } else {
                let taints = view.taints(*node).iter();
                taints.filter(|t| !refuses(t) && !tolerated(tolerations, t)).count() as i64
            };
        }
    }

    fn normalize(&self) -> Normalize {
        Normalize::ProportionalReversed
    }
}

impl Hints for TaintToleration {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD.with(EventKinds::NODE_TAINT).with(EventKinds::POD_SELF)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let tolerations = &pod.spec.tolerations;
        let opens = match event {
            ClusterEvent::NodeAdded(node) => accepts(tolerations, view.taints(*node)),
            ClusterEvent::NodeUpdated { node, change, old } if change.any(NodeChange::TAINTS) => {
                accepts(tolerations, view.taints(*node)) && !accepts(tolerations, &old.taints)
            }
            ClusterEvent::PendingUpdated { old, .. } => old.spec.tolerations != *tolerations,
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut by_taint: BTreeMap<&Taint, Examples> = BTreeMap::new();
    let mut state = TaintTolerationState { total_nodes: cx.view.nodes().len(), ..Default::default() };
    for node in cx.view.nodes() {
        let taints = cx.view.taints(*node);
        state.nodes_that_refuse += usize::from(taints.iter().any(refuses));
        state.nodes_that_discourage += usize::from(!taints.iter().all(refuses));
        for taint in taints {
            by_taint.entry(taint).or_default().add(cx.view.name(*node));
        }
    }
    let rows = by_taint.into_iter().map(|(taint, examples)| {
        let (nodes, examples) = examples.finish();
        TaintUse {
            key: taint.key.to_string(),
            value: taint.value.to_string(),
            effect: taint.effect.as_str().to_owned(),
            nodes,
            examples,
        }
    });
    (state.taints, state.truncated) = cut(rows.collect(), MAX_ROWS);
    Ok(json!(state))
}

#[cfg(test)]
mod tests;
