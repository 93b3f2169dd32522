//! Explanations of the recorded cases: the reasons in kube-scheduler's messages, and those that its messages hide.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::diagnosis::reads::{SnapshotRead, reads};
use pellucid::framework::endpoint::PathParams;
use pellucid::framework::profile::{Enabled, Profile};
use pellucid::plugins::registry;
use serde_json::Value;

use crate::{ALL, Case, OF_DYNAMIC_RESOURCES, lines, own_copy};

/// Parses a message of kube-scheduler: each reason with its number of nodes.
fn reasons_of(message: &str) -> Option<BTreeMap<String, u64>> {
    let (head, rest) = message.split_once(" nodes are available: ")?;
    head.strip_prefix("0/")?;
    // The part from PostFilter begins a new sentence.
    let rest = rest.split_once(". ").map_or(rest, |(first, _)| first);
    let parts = rest.trim_end_matches('.').split(", ");
    parts
        .map(|part| {
            let (number, reason) = part.split_once(' ')?;
            Some((reason.to_string(), number.parse().ok()?))
        })
        .collect()
}

fn explain(read: &SnapshotRead, case: &mut Case) -> Value {
    let snapshot = case.core.scheduler.publish(case.core.now);
    let own =
        [("namespace", &*case.pod.key.namespace), ("name", &*case.pod.key.name), ("mode", "exhaustive")];
    let params: PathParams = own.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    (read.read)(&snapshot, &params, case.core.now).unwrap_or_else(|e| panic!("{}: {e:?}", case.id))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Checks that the node groups, counted by reason, give the numbers of the message. Nodes that a PreFilter leaves out are in no
/// group: they are not evaluated.
fn check_reasons(case: &Case, body: &Value, recorded: &str) -> bool {
    let Some(mut want) = reasons_of(&recorded.replace(OF_DYNAMIC_RESOURCES, "")) else { return false };
    let left_out = want.extract_if(.., |reason, _| reason.starts_with("node(s) didn't satisfy plugin(s)"));
    let left_out: u64 = left_out.map(|(_, nodes)| nodes).sum();
    assert_eq!(body["notEvaluated"], left_out, "{}: {recorded}", case.id);
    if array(&body["nodeGroups"]).is_empty() {
        return false;
    }
    let mut have: BTreeMap<String, u64> = BTreeMap::new();
    for group in array(&body["nodeGroups"]) {
        for reason in array(&group["reasons"]) {
            let count = group["count"].as_u64().expect("a count");
            *have.entry(reason["message"].as_str().expect("a message").to_string()).or_default() += count;
        }
    }
    assert_eq!(have, want, "{}: {recorded}", case.id);
    true
}

/// Returns the profile with the filter of one plugin only.
fn alone(profile: &Profile, index: usize) -> Profile {
    let only = |list: &[Enabled]| list.iter().filter(|e| e.index == index).cloned().collect();
    Profile { pre_filter: only(&profile.pre_filter), filter: only(&profile.filter), ..profile.clone() }
}

/// Checks that exhaustive mode reports for each node and plugin what that plugin reports when it runs alone. Returns
/// how many reasons an earlier plugin hides.
fn check_exhaustive(case: &mut Case, body: &Value) -> usize {
    let all = &body["exhaustive"];
    let nodes = all["nodes"].as_object().expect("nodes by name").clone();
    let profile = case.profile.clone();
    let mut hidden = 0;
    let first = case.with_rows(|rows, of, _| {
        let cause = |name: &String| rows.cause(of.view.cluster().find_node(&name.as_str().into())?).cloned();
        nodes.keys().map(|name| (name.clone(), cause(name).map(|c| c.plugin))).collect::<BTreeMap<_, _>>()
    });
    for enabled in &profile.filter {
        let plugin = enabled.plugin.name();
        case.profile = alone(&profile, enabled.index);
        let codes = |name: &String| -> BTreeSet<String> {
            case.with_rows(|rows, of, _| {
                let node = of.view.cluster().find_node(&name.as_str().into()).expect("a node of the case");
                let reasons = rows.cause(node).into_iter().flat_map(|c| &c.reasons);
                reasons.map(|r| r.code.as_str().to_string()).collect()
            })
        };
        for (name, told) in &nodes {
            let of_plugin = array(&told["failed"]).iter().filter(|f| f["plugin"] == plugin);
            let told: BTreeSet<String> =
                of_plugin.map(|f| f["code"].as_str().expect("a code").to_string()).collect();
            // Alone, a plugin whose PreFilter excludes nodes does not evaluate them, and it gives its first reason: that
            // the others are true is tried in tests/truth.
            let want = codes(name);
            assert!(want.is_subset(&told), "{}: {plugin} on {name}: {want:?} of {told:?}", case.id);
            if !want.is_empty() {
                hidden += usize::from(first[name].is_some_and(|p| p != plugin));
            }
        }
    }
    case.profile = profile;
    hidden
}

#[test]
fn explanations_give_kube_schedulers_reasons_and_the_hidden_ones() {
    let all = reads(&registry());
    let read = all.iter().find(|read| read.path == "/apis/v1/explain/pods/:namespace/:name");
    let read = read.expect("it is registered");
    let (mut refused, mut by_reasons, mut hidden) = (0, 0, 0);
    for case in &lines("schedule.jsonl") {
        let mut case = Case::read(case);
        let Some(message) = case.result.get("message").and_then(Value::as_str).map(String::from) else {
            continue;
        };
        case.core.step();
        refused += 1;
        let body = explain(read, &mut case);
        assert_eq!(body["message"], message.replace(OF_DYNAMIC_RESOURCES, ""), "{}", case.id);
        by_reasons += usize::from(check_reasons(&case, &body, &message));
        if array(&body["exhaustive"]["podReasons"]).is_empty() {
            hidden += check_exhaustive(&mut case, &body);
        }
    }
    println!("{refused} refused pods explained, {by_reasons} by node groups; {hidden} hidden reasons found");
    if own_copy() {
        assert!(
            refused > ALL / 10 && by_reasons > refused / 2 && hidden > 20,
            "{refused} {by_reasons} {hidden}"
        );
    }
}
