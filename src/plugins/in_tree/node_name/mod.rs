//! NodeName: keeps a pod that names a node off all other nodes.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{NamedNode, NodeNameState};
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::{ClusterEvent, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{CycleValue, Filter, Hint, Hints, Nodes, Plugin, Reads};
use pellucid_framework::{Cause, CauseId, Code, Reason, Registration, View, points};
use pellucid_model::{Name, NodeIdx, Pod, PodSpec};
use serde_json::{Value, json};

use pellucid_plugin_helper::describing::{ask_meant, detail, meant, objects, tally};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut, pending};

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

    fn requirements(&self, view: View<'_>, spec: &PodSpec, _refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        let Some(name) = asked(spec) else { return Vec::new() };
        let mut of = detail(view, NAME, ReasonCode::NodeNameMismatch, format!("nodeName {name}"));
        let known = tally(objects(view).map(|(_, node)| &node.name));
        of.nodes = known.get(name.as_str()).copied().unwrap_or(0);
        of.values = vec![name.to_string()];
        of.did_you_mean = meant(name, &known).into_iter().collect();
        of.text = match of.nodes {
            0 => format!("nodeName {name}: no such node"),
            _ => format!("nodeName {name}: 1 of {} nodes", of.total_nodes),
        };
        ask_meant(&mut of.text, &of.did_you_mean);
        vec![of]
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
    use crate::testing::{cluster_of, filter_all, node, pod_with};

    fn asking(name: &str) -> Pod {
        pod_with(PodSpec { node_name: Some(name.into()), ..PodSpec::default() })
    }

    #[test]
    fn only_the_named_node_is_left() {
        let cluster = cluster_of([node("a"), node("b")]);
        let refused = filter_all(&NodeName, &cluster, &asking("a").spec);
        assert_eq!(refused["b"], "node(s) didn't match the requested node name");
        assert_eq!(refused.len(), 1);
        assert_eq!(filter_all(&NodeName, &cluster, &asking("none").spec).len(), 2);
        assert_eq!(filter_all(&NodeName, &cluster, &asking("").spec).len(), 0);
        assert_eq!(filter_all(&NodeName, &cluster, &PodSpec::default()).len(), 0);
    }

    #[test]
    fn a_node_that_does_not_exist_is_asked_about() {
        let cluster = cluster_of([node("worker-1"), node("b")]);
        let texts = |name: &str| -> Vec<String> {
            let all = NodeName.requirements(cluster.view(), &asking(name).spec, cluster.view().nodes());
            all.into_iter().map(|of| of.text).collect()
        };
        assert_eq!(texts("worker1"), ["nodeName worker1: no such node; did you mean worker-1?"]);
        assert_eq!(texts("b"), ["nodeName b: 1 of 2 nodes"]);
        assert!(texts("").is_empty());
    }

    #[test]
    fn the_named_node_wakes_the_pod() {
        let cluster = cluster_of([node("a"), node("b")]);
        let added = |name| ClusterEvent::NodeAdded(cluster.idx(name));
        assert_eq!(NodeName.hint(cluster.view(), &asking("a"), &added("a")), Hint::Queue);
        assert_eq!(NodeName.hint(cluster.view(), &asking("a"), &added("b")), Hint::Skip);
    }
}
