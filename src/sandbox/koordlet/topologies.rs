//! The CPUs and NUMA nodes of nodes, as koordlet reports them: one NodeResourceTopology (`topology.node.k8s.io/v1alpha1`)
//! for each node whose annotation describes a machine (`kinds::annotations::machine`), with the node's name.
//!
//! What somebody else writes into such an object is kept, except for the CPUs and zones. Nodes without the annotation are
//! left alone, so that topologies can be written by hand.

use std::sync::Arc;

use pellucid_model::quantity;
use serde_json::{Value, json};

use crate::follow::Follower;
use crate::kinds::annotations::machine::{self, Machine};
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::requests::server::Server;
use crate::store::{Change, Key};

const TOPOLOGIES: &str = "noderesourcetopologies.topology.node.k8s.io";
const CPU_TOPOLOGY: &str = "node.koordinator.sh/cpu-topology";

/// Reports machines until the sandbox stops.
pub(crate) async fn run(server: Arc<Server>) {
    let mut nodes = Follower::new(&server, "nodes");
    loop {
        for event in &nodes.take().events {
            // Somebody may have deleted the definition.
            let Some(kind) = server.api.kind_of(TOPOLOGIES) else { break };
            let (node, key): (_, Key) = (&event.object, event.object.key.clone());
            match (event.change, machine::of(&node.value())) {
                (Change::Deleted, Some(_)) => {
                    // It may be deleted already.
                    let _ = server.api.delete(&kind, &key, &DeleteOptions::default());
                }
                (_, Some(machine)) => report(&server, &kind, &key, machine, &node.value()),
                (_, None) => {}
            }
        }
        tokio::select! {
            () = nodes.changed() => {}
            () = server.shutdown.cancelled() => return,
        }
    }
}

fn report(server: &Server, kind: &Kind, key: &Key, machine: Machine, node: &Value) {
    let api = &server.api;
    let topology = machine.cpu_topology().to_string();
    let zones = machine.zones(&memory(node));
    if api.store.get(TOPOLOGIES, key).is_none() {
        let object = json!({
            "metadata": {"name": &*key.1, "annotations": {CPU_TOPOLOGY: topology}},
            "topologyPolicies": ["None"],
            "zones": zones,
        });
        // Somebody may have created it just now.
        let _ = api.create(kind, "", object, &Options::internal());
        return;
    }
    api.edit(kind, key, |known| {
        known["metadata"]["annotations"][CPU_TOPOLOGY] = json!(topology);
        known["zones"] = zones.clone();
        Ok(())
    });
}

/// Returns a node's memory and huge pages in bytes.
fn memory(node: &Value) -> Vec<(String, u64)> {
    let amounts = node["status"]["allocatable"].as_object().into_iter().flatten();
    let memory = amounts.filter(|(name, _)| *name == "memory" || name.starts_with("hugepages-"));
    let bytes =
        |value: &Value| quantity::units(value.as_str()?).ok().and_then(|bytes| u64::try_from(bytes).ok());
    memory.filter_map(|(name, value)| Some((name.clone(), bytes(value)?))).collect()
}

/// Returns whether an object, or an item of a list, is a node with a machine.
pub(crate) fn describes_machine(object: &Value) -> bool {
    let is_one = object["kind"] == "Node" && machine::of(object).is_some();
    is_one || object["items"].as_array().into_iter().flatten().any(describes_machine)
}
