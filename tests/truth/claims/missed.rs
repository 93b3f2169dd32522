//! Missed claims: one obvious change would have helped, and no fix at all is named.

use serde_json::{Value, json};

use crate::case::Case;
use crate::claims::fixes::placed_after;
use crate::edits::takes_label_of_others;
use crate::objects::{Objects, can_leave, list};
use crate::report::Tally;

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "/suggestions?max=1");
        let is_named = !list(&body["fixes"]).is_empty() || body["fitsNow"] == true;
        let helps = if is_named { None } else { obvious(&case.objects, &key) };
        tally.named(case, "no fix named", helps.is_none(), || {
            format!(
                "{key}: {} would do, and none is named: {}",
                helps.clone().unwrap_or_default(),
                body["note"]
            )
        });
    }
}

/// Returns an obvious change that helps: one pod less, a node opened, a taint or a label.
fn obvious(objects: &Objects, key: &str) -> Option<Value> {
    changes(objects, key).into_iter().find(|edit| {
        let edits = std::slice::from_ref(edit);
        placed_after(objects, key, edits.iter()).is_ok_and(|node| node.is_some())
    })
}

fn changes(objects: &Objects, key: &str) -> Vec<Value> {
    let leaves = objects.placed().filter(|(_, pod)| can_leave(pod));
    let mut all: Vec<Value> = leaves.map(|(pod, _)| json!({"deletePod": pod})).collect();
    for (name, node) in &objects.nodes {
        if node.json["spec"]["unschedulable"] == true {
            all.push(json!({"uncordon": name}));
        }
        for taint in list(&node.json["spec"]["taints"]) {
            all.push(json!({"removeTaint": {"node": name, "key": taint["key"], "effect": taint["effect"]}}));
        }
        for (label, value) in objects.pod(key)["spec"]["nodeSelector"].as_object().into_iter().flatten() {
            let edit = json!({"labelNode": {"node": name, "key": label, "value": value}});
            if takes_label_of_others(objects, &edit).is_none() {
                all.push(edit);
            }
        }
    }
    all
}
