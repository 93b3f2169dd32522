//! Why a pod waits for its quota: the sentence with its numbers, the way from the root, and fixes that work.

use super::*;
use crate::common::reads::{ask, code_of, list, text, try_ask};
use crate::quotas::evicting::rank;

/// Two teams that want more than their mins of 80 cores, and a third that lends its 40: team-a may use 35 and uses 34,
/// team-b may use 45 and uses 40.
fn three_teams(args: Value) -> Core {
    let mut core = core_with(args, 80_000);
    see(&mut core, &manifest("team-a", 20, 60));
    see(&mut core, &manifest("team-b", 20, 100));
    see(&mut core, &manifest("team-c", 40, 40));
    for i in 0..17 {
        core.see(&on(&of("team-a", &format!("a{i:02}"), 2000), "a"));
    }
    core.see(&on(&of("team-b", "b0", 40_000), "a"));
    core.see(&of("team-b", "b1", 60_000));
    core
}

fn explained(core: &mut Core, pod: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{pod}"))
}

/// Returns the texts of the fixes for a pod.
pub(super) fn fixes(core: &mut Core, pod: &str) -> Vec<Value> {
    let body = ask(core, &format!("/apis/v1/explain/pods/ns/{pod}/suggestions?max=20"));
    list(&body, "/fixes").to_vec()
}

pub(super) fn fix<'f>(fixes: &'f [Value], begin: &str) -> &'f Value {
    let found = fixes.iter().find(|fix| text(fix, "/text").starts_with(begin));
    found.unwrap_or_else(|| panic!("no fix begins with {begin} in {fixes:#?}"))
}

#[test]
fn a_pod_beyond_its_quotas_share_says_who_has_it() {
    let mut core = three_teams(json!({}));
    core.see(&of("team-a", "late", 4000));
    core.run();
    let said = "quota team-a: cpu used 34 + 4 > runtime 35 of max 60; team-b borrows 25 of the min of team-c; freed when \
                pods of team-a with 3 cpu end, or others request less";
    let body = explained(&mut core, "late");
    assert_eq!(body["notes"][0]["text"], said);
    assert_eq!(body["notes"][0]["more"], "/apis/v1/explain/pods/ns/late/quota");
    assert!(text(&body, "/summary").starts_with(&format!("Not placed: {said}. ")), "{body}");
    assert!(
        text(&body, "/message").contains("Insufficient quotas, quotaName: team-a, runtime: cpu:35"),
        "{body}"
    );
    let quota = ask(&mut core, "/apis/v1/explain/pods/ns/late/quota");
    assert_eq!((&quota["code"], &quota["text"]), (&json!("InsufficientQuota"), &json!(said)));
    let path = list(&quota, "/path");
    let blocking: Vec<&Value> = path.iter().filter(|level| level["blocking"] == true).collect();
    assert_eq!((path.len(), blocking.len()), (2, 1));
    for (field, amount) in [
        ("min", 20_000),
        ("max", 60_000),
        ("used", 34_000),
        ("requested", 4000),
        ("runtime", 35_000),
        ("limit", 35_000),
        ("headroom", 1000),
        ("borrowed", 15_000),
        ("request", 38_000),
        ("shortfall", 3000),
    ] {
        assert_eq!(blocking[0][field], amount, "{field}");
    }
    assert_eq!(blocking[0]["consumers"][0], json!({"pod": "ns/a00", "used": 2000}));
    // A pod that is placed stands as if it had no place.
    let placed = ask(&mut core, "/apis/v1/explain/pods/ns/a00/quota");
    assert_eq!((&placed["code"], &placed["path"][1]["used"]), (&Value::Null, &json!(32_000)));
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/explain/pods/ns/nobody/quota")), "PodNotFound");
}

#[test]
fn fixes_of_a_share_are_the_least_that_works() {
    let mut core = three_teams(json!({}));
    core.see(&of("team-a", "late", 4000));
    core.run();
    let fixes = fixes(&mut core, "late");
    assert!(fixes.iter().all(|fix| fix["verified"] == true && fix["inCompany"] == "holds"), "{fixes:#?}");
    // The mins are then more than the 80 that there are. Scaled, team-a has 24.000 and team-b 18.667; of the 37.333 that are
    // left over team-a gets 60 of 160 parts: 38 in all.
    let min = fix(&fixes, "raise min of cpu from 20 to 25713m of quota team-a");
    let command = "kubectl -n koordinator-system patch elasticquotas.scheduling.sigs.k8s.io team-a --type=merge \
                   -p '{\"spec\":{\"min\":{\"cpu\":\"25713m\"}}}'";
    assert_eq!(min["parts"][0]["command"], command);
    assert_eq!(min["parts"][0]["edit"]["applyObject"]["spec"]["min"]["cpu"], "25713m");
    let moved = fix(&fixes, "move it to quota team-c");
    let command = format!("kubectl -n ns label pod late {LABEL}=team-c --overwrite");
    assert_eq!(moved["parts"][0]["command"], command);
    assert_eq!(moved["parts"][0]["recreate"], false);
    fix(&fixes, "request 1 of cpu instead of 4");
    fix(&fixes, "let pod ns/a15 go");
    assert!(
        fixes.iter().all(|fix| !text(fix, "/text").contains("max")),
        "max is not what limits: {fixes:#?}"
    );

    // Each as it is named, with the objects themselves; and a little less is too little.
    for (amount, is_enough) in [("25713m", true), ("25712m", false)] {
        let mut core = three_teams(json!({}));
        core.see(&of("team-a", "late", 4000));
        core.run();
        let mut raised = manifest("team-a", 20, 60);
        raised["spec"]["min"]["cpu"] = amount.into();
        see(&mut core, &raised);
        core.run_after(30 * SECOND);
        assert_eq!(core.node_of(&of("team-a", "late", 4000)).is_some(), is_enough, "{amount}");
    }
    core.see(&of("team-c", "late", 4000));
    core.run_after(30 * SECOND);
    assert!(core.node_of(&of("team-c", "late", 4000)).is_some());
}

#[test]
fn a_pod_beyond_max_says_so_and_max_is_raised_by_what_is_missing() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 2, 10));
    for i in 0..4 {
        core.see(&on(&rank(of("team-a", &format!("a{i}"), 2000), i), "a"));
    }
    core.see(&of("team-a", "late", 4000));
    core.run();
    let said = "quota team-a: cpu used 8 + 4 > max 10; freed when pods of team-a with 2 cpu end";
    assert_eq!(explained(&mut core, "late")["notes"][0]["text"], said);
    let fixes = fixes(&mut core, "late");
    fix(&fixes, "raise max of cpu from 10 to 12 of quota team-a");
    fix(&fixes, "let pod ns/a0 go");
    // Carried out, it is so.
    see(&mut core, &manifest("team-a", 2, 12));
    core.run_after(30 * SECOND);
    assert!(core.node_of(&of("team-a", "late", 4000)).is_some());
}

#[test]
fn a_pod_that_is_not_preemptible_waits_for_min() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 10, 40));
    core.see(&on(&fixed(&of("team-a", "fixed", 8000)), "a"));
    core.see(&fixed(&of("team-a", "late", 4000)));
    core.run();
    let said = "quota team-a: cpu used by pods that are not preemptible 8 + 4 > min 10; freed when pods of team-a that are \
                not preemptible with 2 cpu end";
    assert_eq!(explained(&mut core, "late")["notes"][0]["text"], said);
    let quota = ask(&mut core, "/apis/v1/explain/pods/ns/late/quota");
    assert_eq!((&quota["path"][1]["limit"], &quota["path"][1]["shortfall"]), (&json!(10_000), &json!(2000)));
    let fixes = fixes(&mut core, "late");
    fix(&fixes, "raise min of cpu from 10 to 12 of quota team-a");
    fix(&fixes, "let pod ns/fixed go");
}

#[test]
fn an_ancestor_that_is_full_is_named() {
    let mut core = core_with(json!({"enableCheckParentQuota": true}), 100_000);
    let mut child = |name: &str, min, max| {
        let mut made = manifest(name, min, max);
        made["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/parent": "dept"});
        see(&mut core, &made);
    };
    child("team-a", 4, 20);
    child("team-b", 4, 20);
    let mut dept = manifest("dept", 8, 10);
    dept["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/is-parent": "true"});
    see(&mut core, &dept);
    core.see(&on(&of("team-b", "b", 8000), "a"));
    core.see(&of("team-a", "late", 4000));
    core.run();
    let said = "quota dept above team-a: cpu used 8 + 4 > max 10; freed when pods of dept with 2 cpu end";
    assert_eq!(explained(&mut core, "late")["notes"][0]["text"], said);
    let quota = ask(&mut core, "/apis/v1/explain/pods/ns/late/quota");
    let path: Vec<(&str, bool)> = list(&quota, "/path")
        .iter()
        .map(|level| (text(level, "/quota"), level["blocking"] == true))
        .collect();
    assert_eq!(path, [("koordinator-root-quota", false), ("dept", true), ("team-a", false)]);
    let fixes = fixes(&mut core, "late");
    fix(&fixes, "raise max of cpu from 10 to 12 of quota dept");
    fix(&fixes, "let pod ns/b go");
}

#[test]
fn a_starved_quota_says_who_uses_its_room() {
    let mut core = core_with(json!({}), 10_000);
    see(&mut core, &manifest("team-a", 6, 10));
    see(&mut core, &manifest("team-b", 4, 10));
    for i in 0..4 {
        core.see(&on(&of("team-b", &format!("b{i}"), 2500), "a"));
    }
    core.see(&of("team-a", "late", 4000));
    core.run();
    let body = explained(&mut core, "late");
    let said = "quota team-a: cpu used 0 + 4 is within its min 6; team-b uses 4 cpu beyond its runtime and its min; \
                enableReclaim and monitorAllQuotas are off, so nobody takes that back";
    assert_eq!(body["notes"][0]["text"], said, "{body}");
    assert_eq!(body["keyReason"]["code"], "InsufficientResource");
}

#[test]
fn lists_and_counts_know_the_quota_of_a_pod() {
    let mut core = three_teams(json!({}));
    core.see(&of("team-a", "late", 4000));
    core.see(&crate::common::made::pod("other", 500_000));
    core.run();
    let pods = ask(&mut core, "/apis/v1/explain/pods?quota=team-a");
    assert_eq!((&pods["count"], &pods["pods"][0]["name"]), (&json!(1), &json!("late")));
    assert_eq!(pods["pods"][0]["groups"], json!({"quota": "team-a"}));
    assert_eq!(ask(&mut core, "/apis/v1/queue?quota=team-a,team-b")["count"], 2);
    assert_eq!(ask(&mut core, "/apis/v1/explain/pods?quota=nobody")["count"], 0);
    let counts = ask(&mut core, "/apis/v1/summary/pending?by=code,quota&sort=-quota");
    let rows: Vec<(&str, &str)> =
        list(&counts, "/rows").iter().map(|row| (text(row, "/groups/quota"), text(row, "/code"))).collect();
    let default = ("koordinator-default-quota", "InsufficientResource");
    assert_eq!(rows, [("team-b", "InsufficientQuota"), ("team-a", "InsufficientQuota"), default]);
    assert_eq!(ask(&mut core, "/apis/v1/summary/pending?by=code,quota,queue")["totalPending"], 3);
    assert_eq!(ask(&mut core, "/apis/v1/summary/pending?by=owner&quota=team-a")["totalPending"], 1);
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/summary/pending?by=quotas")), "UnknownDimension");
}

#[test]
fn where_the_nodes_are_full_too_a_fix_has_both_parts() {
    let mut core = core_with(json!({}), 10_000);
    see(&mut core, &manifest("team-a", 2, 4));
    see(&mut core, &manifest("team-b", 2, 10));
    core.see(&on(&fixed(&of("team-a", "a", 4000)), "a"));
    core.see(&on(&of("team-b", "b", 6000), "a"));
    core.see(&of("team-a", "late", 2000));
    core.run();
    let fixes = fixes(&mut core, "late");
    // Beside the request of team-b, max alone gives it 4.25.
    let both = fix(&fixes, "raise max of cpu from 4 to 6 and min of cpu from 2 to");
    assert!(text(both, "/text").ends_with(" of quota team-a, and let pod ns/b go"), "{both}");
    assert_eq!((&both["verified"], list(both, "/parts").len()), (&json!(true), 2));
}

#[test]
fn a_gang_is_told_what_its_quorum_needs() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 2, 6));
    see(&mut core, &manifest("team-b", 2, 20));
    core.see(&on(&of("team-a", "a", 1000), "a"));
    let members: Vec<Pod> = (0..4).map(|i| in_gang(of("team-a", &format!("m{i}"), 2000), "g", 4)).collect();
    members.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &members), 0, "all or none");
    let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g/suggestions?max=20");
    let fixes = list(&body, "/fixes");
    // One core is used, and four members want eight.
    let raised = fix(fixes, "raise max of cpu from 6 to 9 of quota team-a");
    assert_eq!((&raised["slots"], &raised["gang"]["all"]), (&json!(4), &json!(true)));
    fix(fixes, "move it to quota team-b");
    see(&mut core, &manifest("team-a", 2, 9));
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, &members), 4);
}
