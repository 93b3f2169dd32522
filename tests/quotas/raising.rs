//! Quotas that only together, or only with an object that they do not have yet, take a pod; and what is shown of built-in
//! ones.

use super::*;
use crate::common::reads::{ask, list, text};

pub(super) fn child(name: &str, parent: &str, min: i64, max: i64) -> Value {
    let mut made = manifest(name, min, max);
    made["metadata"]["labels"] = json!({
        "quota.scheduling.koordinator.sh/is-parent": "false",
        "quota.scheduling.koordinator.sh/parent": parent,
    });
    made
}

pub(super) fn parent(name: &str, min: i64, max: i64) -> Value {
    let mut made = manifest(name, min, max);
    made["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/is-parent": "true"});
    made
}

/// Gives a quota nothing of the CPU that is left over. Weights that are 0 for every resource would count as none.
fn without_weight(mut made: Value) -> Value {
    made["metadata"]["annotations"] =
        json!({"quota.scheduling.koordinator.sh/shared-weight": r#"{"cpu": 0, "memory": 1}"#});
    made
}

fn fixes(core: &mut Core, name: &str) -> Vec<Value> {
    list(&ask(core, &format!("/apis/v1/explain/pods/ns/{name}/suggestions?max=8")), "/fixes").to_vec()
}

/// Finds the fix with this text and carries out all of its objects, each of which the webhook would take.
fn carry_out(core: &mut Core, fixes: &[Value], words: &str) {
    let found = fixes.iter().find(|fix| text(fix, "/text") == words);
    let found = found.unwrap_or_else(|| panic!("{words} is not in {fixes:#?}"));
    assert_eq!((&found["verified"], &found["inCompany"]), (&json!(true), &json!("holds")));
    for part in list(found, "/parts") {
        see(core, &part["edit"]["applyObject"]);
    }
}

#[test]
fn a_parent_and_its_child_that_both_have_their_max_are_raised_together() {
    let mut core = core_with(json!({"enableCheckParentQuota": true}), 20_000);
    see(&mut core, &parent("org", 0, 4));
    see(&mut core, &child("team", "org", 0, 4));
    let held = of("team", "held", 4000);
    core.see(&held);
    core.run();
    let late = of("team", "late", 2000);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&held, &late]), 1);
    let all = fixes(&mut core, "late");
    let words = "raise max of cpu from 4 to 6 of quota org, and raise max of cpu from 4 to 6 of quota team";
    carry_out(&mut core, &all, words);
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, [&held, &late]), 2);
}

#[test]
fn a_min_that_is_more_than_the_parents_is_raised_with_it() {
    let mut core = core_with(json!({}), 9000);
    see(&mut core, &without_weight(parent("org", 4, 100)));
    see(&mut core, &without_weight(child("a", "org", 2, 100)));
    see(&mut core, &child("b", "org", 2, 100));
    see(&mut core, &child("other", "koordinator-root-quota", 4, 100));
    let held = of("a", "held", 2000);
    core.see(&held);
    let others: Vec<Pod> = (0..4).map(|n| of("b", &format!("b{n}"), 1000)).collect();
    others.iter().for_each(|pod| core.see(pod));
    let theirs: Vec<Pod> = (0..3).map(|n| of("other", &format!("o{n}"), 1000)).collect();
    theirs.iter().for_each(|pod| core.see(pod));
    core.run();
    let late = of("a", "late", 1000);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&late]), 0);
    let all = fixes(&mut core, "late");
    let words = "raise min of cpu from 4 to 5 of quota org, and raise min of cpu from 2 to 3 of quota a";
    carry_out(&mut core, &all, words);
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, [&late]), 1);
    // Neither alone: the webhook refuses the child's, and what the parent has more goes to the other child.
    let text = |fix: &Value| text(fix, "/text").to_owned();
    assert!(!all.iter().any(|fix| text(fix).starts_with("raise") && text(fix) != words), "{all:#?}");
}

#[test]
fn a_built_in_quota_without_an_object_gets_one() {
    let mut core = core_with(json!({"defaultQuotaGroupMax": {"cpu": "2"}}), 20_000);
    let pods = ["a", "b", "c"].map(|name| with_spec_labels(pod(name, 1000)));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 2);
    let late = pods.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits");
    let all = fixes(&mut core, &late.key.name);
    let words = "raise max of cpu from 2 to 3 of quota koordinator-default-quota";
    let found = all.iter().find(|fix| text(fix, "/text") == words).unwrap_or_else(|| panic!("{all:#?}"));
    let command = text(found, "/parts/0/command");
    assert!(command.starts_with("echo '{") && command.ends_with("| kubectl create -f -"), "{command}");
    carry_out(&mut core, &all, words);
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, &pods), 3);
}

#[test]
fn built_in_quotas_are_shown_without_objects() {
    let mut core = core_with(json!({"defaultQuotaGroupMax": {"cpu": "2"}}), 20_000);
    see(&mut core, &manifest("team", 2, 4));
    for pod in [of("team", "mine", 1000), with_spec_labels(pod("plain", 1000))] {
        core.see(&pod);
    }
    core.run();
    let all = ask(&mut core, "/apis/v1/plugins/ElasticQuota/quotas?includeRoot=true");
    let root = &all["koordinator-root-quota"];
    assert_eq!((&root["runtime"]["cpu"], &root["used"]["cpu"]), (&json!("19"), &json!("1")), "{root:#}");
    assert_eq!(ask(&mut core, "/apis/v1/plugins/ElasticQuota/quotas").get("koordinator-root-quota"), None);
    let said = |core: &mut Core, name: &str| {
        text(&ask(core, &format!("/apis/v1/explain/quotas/{name}")), "/sentences/0").to_owned()
    };
    assert_eq!(
        said(&mut core, "koordinator-root-quota"),
        "cpu: koordinator-root-quota has 19 to share out, its children request 1 and use 1; pods of \
         koordinator-default-quota use 1 beside that"
    );
    assert_eq!(
        said(&mut core, "koordinator-default-quota"),
        "cpu: koordinator-default-quota uses 1 of its max 2, requests 1; what it uses is taken off what the others share"
    );
}
