//! The same over the wire: an API server in memory, a running scheduler and HTTP, for a few clusters.
//!
//! Objects are those of `made`, without owners, which an API server with a garbage collector would look for. A fix is
//! carried out with requests to the API server, and the pod must be bound then.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::running::{Running, node_of, start};
use crate::made;
use crate::objects::{list, text};

/// Clusters that are tried over the wire.
const SEEDS: [u64; 4] = [3, 11, 19, 42];
/// Fixes carried out per cluster.
const FIXES: usize = 2;

fn without_owners(mut json: Value) -> Value {
    if let Some(meta) = json["metadata"].as_object_mut() {
        for field in ["ownerReferences", "uid", "resourceVersion", "creationTimestamp"] {
            meta.remove(field);
        }
    }
    json
}

/// Returns the objects of a cluster that an API server without admission plugins takes: nodes and single pods.
fn objects(seed: u64) -> (Vec<Value>, Vec<Value>) {
    let made = made::cluster(seed);
    let nodes = made.nodes.values().map(|node| without_owners(Value::clone(&node.json))).collect();
    let is_plain = |pod: &Value| {
        crate::objects::gang_of(pod).is_none()
            && list(&pod["spec"]["volumes"]).is_empty()
            && pod["metadata"]["namespace"] == "default"
            && crate::objects::can_leave(pod)
    };
    let pods = made.pods.values().filter(|pod| is_plain(&pod.json));
    let plain = |pod: &Value| {
        let mut json = without_owners(pod.clone());
        let spec = json["spec"].as_object_mut().expect("a spec");
        // The API server sets it from the priority class; all have the default.
        spec.remove("priority");
        spec.remove("preemptionPolicy");
        json
    };
    (nodes, pods.map(|pod| plain(&pod.json)).collect())
}

/// Waits until every pod without a node was refused or is gated.
fn settled(running: &Running) -> Vec<String> {
    let path = "/apis/v1/summary/pending?by=code";
    running.wait(path, "all were tried", |body| {
        list(&body["rows"]).iter().all(|row| row["code"] != "NotTried" && row["code"] != "Placed")
    });
    let pods = running.read("/apis/v1/explain/pods");
    let refused = list(&pods["pods"]).iter().filter(|pod| pod["verdict"] == "refused");
    refused.map(|pod| text(&pod["name"]).to_owned()).collect()
}

/// Carries out an edit of a node or the deletion of a pod. Returns false for any other.
async fn carry_out(running: &Running, edit: &Value) -> bool {
    let (what, how) = edit.as_object().and_then(|e| e.iter().next()).expect("an edit has one field");
    let node = how.as_str().unwrap_or_else(|| text(&how["node"])).to_owned();
    let patch = match what.as_str() {
        "deletePod" => {
            running.kill(text(how).strip_prefix("default/").expect("all are in one namespace")).await;
            return true;
        }
        "labelNode" => json!({"metadata": {"labels": {text(&how["key"]): how["value"]}}}),
        "uncordon" | "removeTaint" => {
            let known = running.api("v1/Node").get(&node).await.expect("the node");
            let mut json = json!(known);
            if what == "uncordon" {
                crate::edits::uncordon(&mut json);
            } else {
                crate::edits::drop_taints(&mut json, |taint| {
                    taint["key"] == how["key"]
                        && (how["effect"].is_null() || taint["effect"] == how["effect"])
                });
            }
            let spec = &json["spec"];
            json!({"spec": {"taints": spec["taints"], "unschedulable": spec["unschedulable"]}})
        }
        _ => return false,
    };
    let patch = Patch::Merge(patch);
    running.api("v1/Node").patch(&node, &PatchParams::default(), &patch).await.expect("patched");
    true
}

fn is_carried_out(edit: &Value) -> bool {
    ["deletePod", "labelNode", "uncordon", "removeTaint"].iter().any(|what| edit.get(*what).is_some())
}

async fn one(seed: u64) -> usize {
    let (nodes, pods) = objects(seed);
    let mut running = start(nodes).await;
    running.create(pods);
    let mut tried = 0;
    let refused = settled(&running);
    for name in refused {
        if tried == FIXES {
            break;
        }
        if running.pods("known", |pods| Some(pods.get(&name).is_none_or(|p| node_of(p).is_some()))).await {
            continue;
        }
        let body = running.read(&format!("/apis/v1/explain/pods/default/{name}/suggestions?max=5"));
        let by_hand = |fix: &&Value| list(&fix["edits"]).iter().all(is_carried_out);
        let Some(fix) = list(&body["fixes"]).iter().find(by_hand) else { continue };
        // Nobody else may take the place.
        let others: Vec<String> = settled(&running).into_iter().filter(|other| *other != name).collect();
        for other in others {
            running.kill(&other).await;
        }
        for edit in list(&fix["edits"]) {
            assert!(carry_out(&running, edit).await, "{edit}");
        }
        let node = running.bound(&name).await;
        assert_eq!(fix["node"], node, "seed {seed}: {name} after {fix:#}");
        tried += 1;
    }
    running.stop().await;
    tried
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_the_wire() {
    let mut tried = 0;
    for seed in SEEDS {
        tried += one(seed).await;
    }
    assert!(tried > 0, "no fix was tried over the wire");
}
