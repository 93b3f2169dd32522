//! The devices of nodes: as koordlet reports them, one Device (`scheduling.koordinator.sh/v1alpha1`) for each node whose
//! annotation describes some (`kinds::annotations::devices`); as device plugins and koord-manager publish them, amounts of
//! those nodes.
//!
//! A Device is written when the node's annotations change, so health and labels that somebody else writes into it stay until
//! then. Amounts follow the Device: what is allocatable is what is healthy. Nodes without the annotation are left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::quantity::{format_bytes, units};
use serde_json::{Value, json};

use crate::follow::Follower;
use crate::kinds::annotations::devices::{self, Devices};
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::requests::server::Server;
use crate::store::{Change, Key};

const DEVICES: &str = "devices.scheduling.koordinator.sh";
const WHOLE: &str = "nvidia.com/gpu";
const CORE: &str = "koordinator.sh/gpu-core";
const MEMORY: &str = "koordinator.sh/gpu-memory";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";
const PERCENT: &str = "koordinator.sh/gpu";
const RDMA: &str = "koordinator.sh/rdma";

/// Reports devices until the sandbox stops.
pub(crate) async fn run(server: Arc<Server>) {
    let (mut nodes, mut reported) = (Follower::new(&server, "nodes"), Follower::new(&server, DEVICES));
    let mut known: BTreeMap<Key, Devices> = BTreeMap::new();
    loop {
        for event in &nodes.take().events {
            // Somebody may have deleted the definition.
            let Some(kind) = server.api.kind_of(DEVICES) else { break };
            let (node, key): (_, Key) = (&event.object, event.object.key.clone());
            match (event.change, devices::of(&node.value())) {
                (Change::Deleted, _) if known.remove(&key).is_some() => {
                    // It may be deleted already.
                    let _ = server.api.delete(&kind, &key, &DeleteOptions::default());
                }
                (Change::Deleted, _) => {}
                (_, Some(devices)) if known.get(&key) != Some(&devices) => {
                    report(&server, &kind, &key, &devices);
                    known.insert(key, devices);
                }
                _ => {}
            }
        }
        for event in &reported.take().events {
            let key = &event.object.key;
            if known.contains_key(key) && event.change != Change::Deleted {
                publish(&server, key, &event.object.value());
            }
        }
        tokio::select! {
            () = nodes.changed() => {}
            () = reported.changed() => {}
            () = server.shutdown.cancelled() => return,
        }
    }
}

fn report(server: &Server, kind: &Kind, key: &Key, devices: &Devices) {
    let api = &server.api;
    let list = devices.list(&key.1);
    if api.store.get(DEVICES, key).is_none() {
        let object = json!({"metadata": {"name": &*key.1}, "spec": {"devices": list}});
        // Somebody may have created it just now.
        let _ = api.create(kind, "", object, &Options::internal());
        return;
    }
    api.edit(kind, key, |known| {
        known["spec"]["devices"] = list.clone();
        Ok(())
    });
}

/// Writes what the devices of a Device amount to into its node.
fn publish(server: &Server, key: &Key, device: &Value) {
    let Some(kind) = server.api.kind_of("nodes") else { return };
    let (all, healthy) = (amounts(device, false), amounts(device, true));
    // A node that is gone has no amounts.
    server.api.edit(&kind, key, |node| {
        for (list, amounts) in [("capacity", &all), ("allocatable", &healthy)] {
            for (name, amount) in amounts {
                node["status"][list][*name] = json!(amount);
            }
        }
        Ok(())
    });
}

/// Returns the amounts of a node, of healthy devices or of all.
fn amounts(device: &Value, only_healthy: bool) -> Vec<(&'static str, String)> {
    let list = || device["spec"]["devices"].as_array().into_iter().flatten();
    let counted = |kind: &'static str| {
        list().filter(move |one| one["type"] == kind && (!only_healthy || one["health"] == true))
    };
    let sum = |kind: &'static str, resource: &str| -> i64 {
        let amount = |one: &Value| match &one["resources"][resource] {
            Value::String(text) => units(text).unwrap_or(0),
            other => other.as_i64().unwrap_or(0),
        };
        counted(kind).map(amount).fold(0, i64::saturating_add)
    };
    let mut made = vec![
        (WHOLE, counted("gpu").count().to_string()),
        (PERCENT, sum("gpu", CORE).to_string()),
        (CORE, sum("gpu", CORE).to_string()),
        (MEMORY, format_bytes(sum("gpu", MEMORY))),
        (RATIO, sum("gpu", RATIO).to_string()),
    ];
    if list().any(|one| one["type"] == "rdma") {
        made.push((RDMA, sum("rdma", RDMA).to_string()));
    }
    made
}

/// Returns whether an object, or an item of a list, is a node that describes its devices.
pub(crate) fn describes_devices(object: &Value) -> bool {
    let is_one = object["kind"] == "Node" && devices::of(object).is_some();
    is_one || object["items"].as_array().into_iter().flatten().any(describes_devices)
}
