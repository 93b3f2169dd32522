//! NodeName: keeps a pod that names a node off all other nodes.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{NamedNode, NodeNameState};
use pellucid_cluster::{ClusterEvent, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{CycleValue, Filter, Hint, Hints, Nodes, Plugin, Reads};
use pellucid_framework::{Cause, CauseId, Code, Reason, Registration, View, points};
use pellucid_model::{Name, Pod, PodSpec};
use serde_json::{Value, json};

use super::listing::{MAX_ROWS, cut, pending};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeName";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let about = "Pending pods that ask for a node by name";
    let state = Endpoint::of::<NodeNameState>("state", about, read_state).with_rows("pods");
    Registration::without_args(NAME, "Keeps pods that name a node off all others", || NodeName)
        .with_endpoints([state])
}

struct NodeName;

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { filter, hints }
}

impl Filter for NodeName {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(name) = asked(spec) else { return };
        let wanted = view.cluster().find_node(name);
        let reason = Reason::of(ReasonCode::NodeNameMismatch);
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|n| if Some(n) == wanted { CauseId::FEASIBLE } else { cause });
    }
}

impl Hints for NodeName {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        match event {
            ClusterEvent::NodeAdded(n) if asked(&pod.spec).is_none_or(|name| view.name(*n) == name) => {
                Hint::Queue
            }
            ClusterEvent::PendingUpdated { old, .. } if old.spec.node_name != pod.spec.node_name => {
                Hint::Queue
            }
            _ => Hint::Skip,
        }
    }
}

/// Returns the node that the pod names; an empty name counts as none.
fn asked(spec: &PodSpec) -> Option<&Name> {
    spec.node_name.as_ref().filter(|name| !name.is_empty())
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut pods = Vec::new();
    for record in pending(cx.view) {
        if let Some(name) = asked(&record.pod.spec) {
            let node = cx.view.cluster().find_node(name).and_then(|n| cx.view.cluster().node(n));
            pods.push(NamedNode {
                pod: record.pod.key.to_string(),
                node_name: name.to_string(),
                node_exists: node.is_some(),
            });
        }
    }
    pods.sort_by(|a, b| a.pod.cmp(&b.pod));
    let total_pods = pods.len();
    let (pods, truncated) = cut(pods, MAX_ROWS);
    Ok(json!(NodeNameState { pods, total_pods, truncated }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestCluster, filter_all, node, pod_with};

    fn asking(name: &str) -> Pod {
        pod_with(PodSpec { node_name: Some(name.into()), ..PodSpec::default() })
    }

    #[test]
    fn only_the_named_node_is_left() {
        let cluster = TestCluster::of([node("a"), node("b")]);
        let refused = filter_all(&NodeName, &cluster, &asking("a").spec);
        assert_eq!(refused["b"], "node(s) didn't match the requested node name");
        assert_eq!(refused.len(), 1);
        assert_eq!(filter_all(&NodeName, &cluster, &asking("none").spec).len(), 2);
        assert_eq!(filter_all(&NodeName, &cluster, &asking("").spec).len(), 0);
        assert_eq!(filter_all(&NodeName, &cluster, &PodSpec::default()).len(), 0);
    }

    #[test]
    fn the_named_node_wakes_the_pod() {
        let cluster = TestCluster::of([node("a"), node("b")]);
        let added = |name| ClusterEvent::NodeAdded(cluster.idx(name));
        assert_eq!(NodeName.hint(cluster.view(), &asking("a"), &added("a")), Hint::Queue);
        assert_eq!(NodeName.hint(cluster.view(), &asking("a"), &added("b")), Hint::Skip);
    }
}
