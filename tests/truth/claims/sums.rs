//! Sums and numbers: node groups add up, shortfalls are the arithmetic of the objects, every pod is in one stage of the
//! queue.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::Case;
use crate::model::{self, Model};
use crate::objects::{Objects, gang_of, list, node_of, text};
use crate::report::Tally;

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "?mode=exhaustive&nodes=100");
        groups_add_up(case, &key, &body, tally);
        exhaustive_adds_up(case, &key, &body["exhaustive"], tally);
        nearest_numbers(case, &key, tally);
    }
    queue(case, tally);
    nodes(case, tally);
}

fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn groups_add_up(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    let groups: i64 = list(&body["nodeGroups"]).iter().map(|group| count(&group["count"])).sum();
    let (rest, total) = (count(&body["notEvaluated"]), count(&body["totalNodes"]));
    tally.agree(case, "node groups", groups + rest == total, || {
        format!("{key}: groups have {groups} nodes, {rest} were not evaluated, of {total}")
    });
    tally.check(case, "total nodes", total == case.objects.nodes.len() as i64, || {
        format!("{key}: totalNodes {total} of {}", case.objects.nodes.len())
    });
    for group in list(&body["nodeGroups"]) {
        let named = list(&group["exampleNodes"]).len() as i64;
        tally.agree(case, "example nodes", named == count(&group["count"]).min(3), || {
            format!("{key}: {group}")
        });
    }
    // A member of a gang was decided beside the others, which is not how the objects stand now.
    if body["meta"]["stale"] != true && gang_of(case.objects.pod(key)).is_none() {
        for group in list(&body["nodeGroups"]) {
            for shortfall in list(&group["shortfalls"]) {
                shortfall_is_so(case, key, shortfall, tally);
            }
        }
    }
}

fn shortfall_is_so(case: &Case, key: &str, of: &Value, tally: &mut Tally) {
    let resource = text(&of["resource"]);
    if resource.contains(' ') {
        return;
    }
    let (requested, available) = (count(&of["requested"]), count(&of["available"]));
    let node = text(&of["bestNode"]);
    let (own, left) = match resource {
        "pods" => {
            let offered = model::allocatable(case.objects.node(node), "pods");
            (1, offered - case.objects.on(node).count() as i64)
        }
        "attachable-volumes-csi-disk.example.com" => {
            Model::new(&case.objects, key).attachments(node).expect("a node with a limit")
        }
        _ => {
            let requested = model::requests(case.objects.pod(key)).get(resource).copied();
            // What is taken of a resource that no node offers is not counted.
            let is_offered =
                case.objects.nodes.values().any(|node| model::allocatable(&node.json, resource) > 0);
            let left = if is_offered { model::free(&case.objects, node, resource) } else { 0 };
            (requested.unwrap_or(0), left)
        }
    };
    let holds = requested == own && available == left && count(&of["shortfall"]) == own - left;
    tally.check(case, "shortfall", holds, || {
        format!("{key}: requests {own} of {resource}, {} has {left} left: {of}", of["bestNode"])
    });
}

fn exhaustive_adds_up(case: &Case, key: &str, all: &Value, tally: &mut Tally) {
    if !list(&all["podReasons"]).is_empty() {
        return;
    }
    let groups: i64 = list(&all["groups"]).iter().map(|group| count(&group["count"])).sum();
    let (fits, total) = (count(&all["feasibleNodes"]), count(&all["totalNodes"]));
    tally.agree(case, "exhaustive groups", groups + fits == total, || {
        format!("{key}: groups have {groups} nodes, {fits} are feasible, of {total}")
    });
    let mut blocked: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for node in all["nodes"].as_object().into_iter().flatten().map(|(_, node)| node) {
        let codes: BTreeSet<&str> =
            list(&node["failed"]).iter().map(|failed| text(&failed["code"])).collect();
        for code in &codes {
            let entry = blocked.entry(code).or_default();
            entry.0 += 1;
            entry.1 += i64::from(codes.len() == 1);
        }
    }
    for (code, weight) in all["codes"].as_object().into_iter().flatten() {
        let own = blocked.get(code.as_str()).copied().unwrap_or_default();
        let said = (count(&weight["nodesBlocked"]), count(&weight["soleBlockerNodes"]));
        tally.agree(case, "codes of nodes", own == said, || {
            format!("{key}: {code} blocks and blocks alone {said:?}, by its nodes {own:?}")
        });
    }
}

fn nearest_numbers(case: &Case, key: &str, tally: &mut Tally) {
    let body = case.of_pod(key, "/nearest?k=3");
    let distances: Vec<f64> =
        list(&body["nodes"]).iter().map(|node| node["distance"].as_f64().unwrap_or_default()).collect();
    tally.agree(case, "order of nearest", distances.is_sorted(), || format!("{key}: {distances:?}"));
    for node in list(&body["nodes"]) {
        for shortfall in list(&node["shortfalls"]) {
            let is_there = shortfall["bestNode"] == node["node"];
            tally.agree(case, "shortfall of another node", is_there, || format!("{key}: {node}"));
            shortfall_is_so(case, key, shortfall, tally);
        }
    }
}

/// Every pod without a node is in one stage, and no other.
fn queue(case: &Case, tally: &mut Tally) {
    let body = case.ask("/apis/v1/queue");
    let mut seen: Vec<&str> =
        list(&body["units"]).iter().flat_map(|unit| list(&unit["pods"])).map(text).collect();
    seen.sort_unstable();
    let waiting: Vec<&str> = case.objects.pending().map(|(key, _)| key.as_str()).collect();
    tally.agree(case, "pods of the queue", seen == waiting, || {
        format!("the queue has {seen:?}, without a node are {waiting:?}")
    });
    for stage in ["active", "backoff", "unschedulable", "gated"] {
        let units = list(&body["units"]).iter().filter(|unit| unit["stage"] == stage).count() as i64;
        tally.agree(case, "counts of the queue", count(&body["counts"][stage]) == units, || {
            format!("{stage}: {} and {units} units", body["counts"])
        });
    }
}

/// What is free on each node is what is left of what it offers.
fn nodes(case: &Case, tally: &mut Tally) {
    let body = case.ask("/apis/v1/nodes");
    for node in list(&body["nodes"]) {
        let name = text(&node["name"]);
        let here = |objects: &Objects| objects.placed().filter(|(_, pod)| node_of(pod) == Some(name)).count();
        let pods = here(&case.objects) as i64;
        tally.check(case, "pods of a node", count(&node["pods"]) == pods, || {
            format!("{name} has {} pods, the objects say {pods}", node["pods"])
        });
        for (resource, free) in node["free"].as_object().into_iter().flatten() {
            if resource == "pods" || resource == "ephemeral-storage" {
                continue;
            }
            let left = model::free(&case.objects, name, resource);
            tally.check(case, "free on a node", count(free) == left, || {
                format!("{name}: free {resource} {free}, the objects say {left}")
            });
        }
    }
}
