//! Renders everything visible of a cluster, by name: plugins cannot distinguish clusters that render alike.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::cluster::Cluster;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::framework::{PluginFactory, View};
use pellucid::model::pages::PAGE;
use pellucid::model::{NodeIdx, Now, PodId, PodKey};
use pellucid::plugins::default_preemption::Priorities;
use pellucid::plugins::node_ports::TakenPorts;
use serde_json::{Value, json};

/// The plugin whose reads also show preemptions, which trial placements do not change.
const BOOK: &str = "DefaultPreemption";

/// Returns the pods, the amounts and pods per node, and the responses of every plugin's reads. Slots and column
/// numbers do not matter.
pub fn seen(cluster: &Cluster) -> BTreeMap<String, Value> {
    seen_by(cluster, &pellucid::plugins::registry())
}

/// Returns the same with the reads of these plugins.
pub fn seen_by(cluster: &Cluster, registry: &[Box<dyn PluginFactory>]) -> BTreeMap<String, Value> {
    let view = View::new(cluster);
    let mut all = BTreeMap::new();
    for (_, record) in cluster.pods() {
        let on = record.node.map(|n| view.name(n).to_string());
        let held = record.holds.len();
        all.insert(format!("pod {}", record.pod.key), json!([record.stage.as_str(), on, held]));
    }
    for slot in (0..cluster.n_slots() as u32).map(NodeIdx).filter(|n| !view.name(*n).is_empty()) {
        all.insert(format!("node {}", view.name(slot)), node(view, slot));
    }
    all.insert("priorities".to_owned(), json!(format!("{:?}", view.state::<Priorities>())));
    for factory in registry.iter().filter(|f| f.name() != BOOK) {
        for endpoint in factory.endpoints() {
            for params in asked(view, endpoint.path) {
                let body = (endpoint.read)(&ReadContext {
                    view,
                    params: &params,
                    now: Now::default(),
                    list: &List::default(),
                });
                let what = format!("read {} {} {params:?}", factory.name(), endpoint.path);
                all.insert(what, body.unwrap_or_else(|error| json!(format!("{error:?}"))));
            }
        }
    }
    all
}

fn node(view: View<'_>, slot: NodeIdx) -> Value {
    let cluster = view.cluster();
    let (page, at) = (view.columns().page(slot), slot.index() % PAGE);
    let mut amounts = BTreeMap::new();
    for resource in view.columns().offered() {
        let column = page.resource(resource);
        if (column.allocatable[at], column.requested[at]) != (0, 0) {
            let name = view.columns().name(resource).to_string();
            amounts.insert(name, (column.allocatable[at], column.requested[at]));
        }
    }
    let key_of = |id: &PodId| cluster.pod(*id).map(|r| r.pod.key.to_string());
    let mut pods: Vec<_> = cluster.slot(slot).pods.iter().map(key_of).collect();
    pods.sort();
    let ports = view.state::<TakenPorts>().map(|t| format!("{:?}", t.on(slot)));
    json!([amounts, page.non_zero_cpu[at], page.non_zero_memory[at], pods, ports])
}

/// Returns the parameters with which a read covers all nodes or pods.
fn asked(view: View<'_>, path: &str) -> Vec<PathParams> {
    let one = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    if path.contains(":nodeName") {
        let names: BTreeSet<_> = view.nodes().iter().map(|n| view.name(*n).to_string()).collect();
        names.iter().map(|name| PathParams::from([one("nodeName", name)])).collect()
    } else if path.contains(":name") && !path.contains(":namespace") {
        // Quotas; of those that a history may have, and one that is always there.
        let names = ["team-a", "team-b", "koordinator-default-quota"];
        names.iter().map(|name| PathParams::from([one("name", name)])).collect()
    } else if path.contains(":name") {
        let keys: BTreeSet<&PodKey> = view.cluster().pods().map(|(_, r)| &r.pod.key).collect();
        let of = |key: &&PodKey| PathParams::from([one("namespace", &key.namespace), one("name", &key.name)]);
        keys.iter().map(of).collect()
    } else {
        vec![PathParams::new()]
    }
}
