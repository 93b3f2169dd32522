//! NodePorts: keeps pods off nodes where a requested host port is in use.
//!
//! The ports in use are derived state: per node the sorted ports of its pods, with one entry per pod that uses a port.

use pellucid_framework::points;
use std::sync::{Arc, LazyLock};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::plugins::{NodePortsOfNode, NodePortsState, UsedPort};
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::derived::Placed;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Plugin, PreFilter, PreFiltered, Reads,
};
use pellucid_framework::whole_cause::staying_on;
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::pod::HostPort;
use pellucid_model::{Name, NodeIdx, Now, Pages, Pod, PodSpec};
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{MAX_ROWS, cut, node_of};

mod requirements;
#[cfg(test)]
mod tests;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodePorts";

/// The wildcard address that stands for every IP of the host.
static ALL_IPS: LazyLock<Name> = LazyLock::new(|| Name::new("0.0.0.0"));

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods off nodes where a host port they ask for is taken";
    let (all, of_node) = ("The host ports in use, per node", "The host ports in use on one node");
    Registration::without_args(NAME, summary, || NodePorts).with_endpoints([
        Endpoint::of::<NodePortsState>("state", all, read_state).with_rows("nodes"),
        Endpoint::of::<NodePortsOfNode>("nodes/:nodeName", of_node, read_node).with_rows("usedPorts"),
    ])
}

/// Holds the host ports in use per node, as derived state of the cluster.
#[derive(Clone, Default)]
pub struct TakenPorts {
    nodes: Pages<Option<Arc<Vec<HostPort>>>>,
}

impl TakenPorts {
    /// Returns the ports in use on a node, sorted. A port used by several pods occurs once per pod.
    pub fn on(&self, node: NodeIdx) -> &[HostPort] {
        self.nodes.get(node.index()).and_then(Option::as_ref).map_or(&[], |ports| ports)
    }
}

impl DerivedState for TakenPorts {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        if pod.spec.host_ports.is_empty() {
            return;
        }
        self.nodes.grow(node.index() + 1);
        let ports = Arc::make_mut(self.nodes[node.index()].get_or_insert_default());
        for port in &pod.spec.host_ports {
            let at = ports.partition_point(|known| known < port);
            ports.insert(at, port.clone());
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        if pod.spec.host_ports.is_empty() {
            return;
        }
        let Some(slot) = self.nodes.get_mut(node.index()) else { return };
        let Some(taken) = slot else { return };
        let ports = Arc::make_mut(taken);
        for port in &pod.spec.host_ports {
            if let Ok(at) = ports.binary_search(port) {
                ports.remove(at);
            }
        }
        if ports.is_empty() {
            *slot = None;
        }
    }
}

struct NodePorts;

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, filter, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(TakenPorts::default())]
    }
}

/// Returns whether two pods cannot use their ports on the same node.
fn conflict(a: &[HostPort], b: &[HostPort]) -> bool {
    a.iter().any(|a| is_taken(a, b))
}

/// Returns whether a port cannot be used beside others on the same node.
fn is_taken(a: &HostPort, others: &[HostPort]) -> bool {
    others.iter().any(|b| {
        let same_ip = a.ip == b.ip || a.ip == *ALL_IPS || b.ip == *ALL_IPS;
        a.port == b.port && a.protocol == b.protocol && same_ip
    })
}

impl PreFilter for NodePorts {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, _view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if spec.host_ports.is_empty() {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(()), nodes: None }
    }
}

impl Filter for NodePorts {
    fn reads(&self) -> Reads {
        Reads::Usage
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(taken) = view.state::<TakenPorts>() else { return };
        let reason = Reason::of(ReasonCode::HostPortConflict);
        let cause = nodes.cause(Cause::new(NAME, Code::Unschedulable, reason));
        nodes.refuse(|n| if conflict(&spec.host_ports, taken.on(n)) { cause } else { CauseId::FEASIBLE });
    }

    /// Each taken port is a reason, fixed when a pod that stays has it.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let taken = view.state::<TakenPorts>()?;
        Some(Box::new(move |node, reasons| {
            let asked = spec.host_ports.iter().filter(|port| is_taken(port, taken.on(node)));
            reasons.extend(asked.map(|port| NodeReason {
                reason: Reason::about(ReasonCode::HostPortConflict, &*requirements::text(port)).into(),
                is_fixed: staying_on(view, node).any(|record| is_taken(port, &record.pod.spec.host_ports)),
            }));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }
}

impl Hints for NodePorts {
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE.with(EventKinds::NODE_ADD)
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let frees = match event {
            ClusterEvent::NodeAdded(_) => true,
            ClusterEvent::PodReleased { pod: gone, .. } | ClusterEvent::NominationEnded { pod: gone, .. } => {
                conflict(&pod.spec.host_ports, &gone.spec.host_ports)
            }
            ClusterEvent::PendingUpdated { old, .. } => old.spec.host_ports != pod.spec.host_ports,
            _ => false,
        };
        if frees { Hint::Queue } else { Hint::Skip }
    }
}

fn ports_of(view: View<'_>, node: NodeIdx) -> NodePortsOfNode {
    let taken = view.state::<TakenPorts>().map_or(&[][..], |t| t.on(node));
    let mut used_ports: Vec<UsedPort> = taken
        .iter()
        .map(|p| UsedPort {
            port: p.port,
            protocol: p.protocol.as_str().to_owned(),
            host_ip: p.ip.to_string(),
        })
        .collect();
    used_ports.sort();
    used_ports.dedup();
    NodePortsOfNode { node_name: view.name(node).to_string(), used_ports }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let rows = cx.view.nodes().iter().map(|n| ports_of(cx.view, *n));
    let mut nodes: Vec<_> = rows.filter(|row| !row.used_ports.is_empty()).collect();
    nodes.sort_by(|a, b| a.node_name.cmp(&b.node_name));
    let nodes_with_ports = nodes.len();
    let (nodes, truncated) = cut(nodes, MAX_ROWS);
    Ok(json!(NodePortsState { nodes, nodes_with_ports, truncated }))
}

fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    Ok(json!(ports_of(cx.view, node_of(cx)?)))
}
