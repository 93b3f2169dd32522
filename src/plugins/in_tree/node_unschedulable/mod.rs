//! NodeUnschedulable: keeps pods off cordoned nodes, unless they tolerate the corresponding taint.
//!
//! The set of cordoned nodes is derived state: the filter reads one bit per node instead of the node object.

use pellucid_framework::points;
use std::sync::LazyLock;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::NodeUnschedulableState;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::derived::Touched;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds, NodeChange};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{CycleValue, Filter, Hint, Hints, Nodes, Plugin, Reads};
use pellucid_framework::{Cause, CauseId, Code, Reason, Registration, View};
use pellucid_model::taint::{Taint, TaintEffect, tolerated};
use pellucid_model::{Name, Node, NodeIdx, Pod, PodSpec};
use serde_json::{Value, json};

use super::node_mask::NodeMask;
use pellucid_plugin_helper::describing::{detail, first_by_name};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeUnschedulable";

/// The taint that corresponds to `kubectl cordon`.
static CORDON: LazyLock<Taint> = LazyLock::new(|| Taint {
    key: Name::new("node.kubernetes.io/unschedulable"),
    value: Name::default(),
    effect: TaintEffect::NoSchedule,
});

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let state = Endpoint::of::<NodeUnschedulableState>("state", "The cordoned nodes", read_state);
    Registration::without_args(NAME, "Keeps pods off cordoned nodes", || NodeUnschedulable)
        .with_endpoints([state])
}

/// Holds the cordoned nodes, as derived state of the cluster.
#[derive(Clone, Default)]
struct CordonedNodes(NodeMask);

impl DerivedState for CordonedNodes {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn node_changed(&mut self, node: NodeIdx, _old: Option<&Node>, new: Option<&Node>) -> Touched {
        self.0.set(node, new.is_some_and(|n| n.unschedulable));
        Touched::Nothing
    }
}

struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { filter, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(CordonedNodes::default())]
    }
}

impl Filter for NodeUnschedulable {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let cordoned = view.state::<CordonedNodes>().map(|c| &c.0);
        if cordoned.is_some_and(NodeMask::is_empty) || tolerated(&spec.tolerations, &CORDON) {
            return;
        }
        let cause = nodes.cause(Cause::new(
            NAME,
            Code::UnschedulableAndUnresolvable,
            Reason::of(ReasonCode::NodeUnschedulable),
        ));
        nodes.refuse(|n| {
            let refused = cordoned.map_or_else(|| is_cordoned(view, n), |c| c.contains(n));
            if refused { cause } else { CauseId::FEASIBLE }
        });
    }

    fn requirements(&self, view: View<'_>, _spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        let mut of = detail(view, NAME, ReasonCode::NodeUnschedulable, "an uncordoned node");
        of.nodes = of.total_nodes - refused.len();
        let first = first_by_name(view, refused.iter().copied());
        let names: Vec<&str> = first.iter().map(|node| view.name(*node).as_str()).collect();
        let (n, total, more) =
            (refused.len(), of.total_nodes, if refused.len() > names.len() { ", …" } else { "" });
        of.text = format!("{n} of {total} nodes are cordoned: {}{more}", names.join(", "));
        vec![of]
    }
}

impl Hints for NodeUnschedulable {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD.with(EventKinds::NODE_TAINT).with(EventKinds::POD_SELF)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let node = match event {
            ClusterEvent::NodeAdded(node) => *node,
            ClusterEvent::NodeUpdated { node, change, old }
                if change.any(NodeChange::TAINTS) && old.unschedulable =>
            {
                *node
            }
            ClusterEvent::PendingUpdated { .. } if tolerated(&pod.spec.tolerations, &CORDON) => {
                return Hint::Queue;
            }
            _ => return Hint::Skip,
        };
        let fits = !is_cordoned(view, node) || tolerated(&pod.spec.tolerations, &CORDON);
        if fits { Hint::Queue } else { Hint::Skip }
    }
}

fn is_cordoned(view: View<'_>, node: NodeIdx) -> bool {
    view.cluster().node(node).is_some_and(|n| n.unschedulable)
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let nodes = cx.view.nodes();
    let cordoned = nodes.iter().filter(|n| is_cordoned(cx.view, **n));
    let mut names: Vec<String> = cordoned.map(|n| cx.view.name(*n).to_string()).collect();
    names.sort();
    Ok(json!(NodeUnschedulableState { unschedulable_nodes: names, total_nodes: nodes.len() }))
}

#[cfg(test)]
mod tests {
    use pellucid_model::taint::{Toleration, TolerationOperator};

    use super::*;
    use crate::testing::{cluster_of, filter_all, node, pod_with};

    fn cordoned(name: &str) -> Node {
        Node { unschedulable: true, ..node(name) }
    }

    fn tolerating() -> Pod {
        let all = Toleration {
            key: Name::default(),
            operator: TolerationOperator::Exists,
            value: Name::default(),
            effect: None,
        };
        pod_with(PodSpec { tolerations: Box::new([all]), ..PodSpec::default() })
    }

    #[test]
    fn cordoned_nodes_are_refused_unless_tolerated() {
        let cluster = cluster_of([node("a"), cordoned("b")]);
        let refused = filter_all(&NodeUnschedulable, &cluster, &PodSpec::default());
        assert_eq!(
            refused.into_iter().collect::<Vec<_>>(),
            [("b".to_owned(), "node(s) were unschedulable".to_owned())]
        );
        assert!(filter_all(&NodeUnschedulable, &cluster, &tolerating().spec).is_empty());
    }

    #[test]
    fn uncordoning_wakes_a_pod() {
        let mut cluster = cluster_of([cordoned("a")]);
        let pod = pod_with(PodSpec::default());
        let added = ClusterEvent::NodeAdded(cluster.idx("a"));
        assert_eq!(NodeUnschedulable.hint(cluster.view(), &pod, &added), Hint::Skip);
        let events = cluster.apply(node("a"));
        assert_eq!(NodeUnschedulable.hint(cluster.view(), &pod, &events[0]), Hint::Queue);
        assert_eq!(NodeUnschedulable.hint(cluster.view(), &pod, &added), Hint::Queue);
    }
}
