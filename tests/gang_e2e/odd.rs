//! Unusable definitions: the pods report it, and everything else continues.

use serde_json::json;

use crate::common::running::{Running, pod, start, start_with, with};
use crate::gang_e2e::made::{X, annotated, document, group, labelled, light, names, nodes, of_group};

/// Checks that other pods are placed, whatever is wrong with a gang.
async fn others_go_on(mut running: Running) {
    running.place(pod("other", 100)).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_in_letters_is_said_with_field_and_value() {
    let mut running = start(nodes(1, 4)).await;
    let named = labelled(pod("lettered", 100), "gang.unicore.mcyou.cn/name", "g");
    running.create([labelled(named, "gang.unicore.mcyou.cn/available-count", "three")]);
    let message = running.told("lettered", "the gang is not defined").await;
    for words in ["gang.unicore.mcyou.cn/available-count", "three", "not a number of members above zero"] {
        assert!(message.contains(words), "{message}");
    }
    running.refused_for("lettered", "GangInvalid");
    others_go_on(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_group_without_a_count_defines_nothing() {
    let mut running = start(nodes(1, 4)).await;
    let mut uncounted = group(X, "uncounted", 1);
    uncounted["spec"] = json!({"scheduleTimeoutSeconds": 10});
    running.create([uncounted, of_group(pod("first", 100), "uncounted")]);
    running.told("first", "the gang is not defined: spec.minMember: missing").await;
    let status = running.group_status(X, "uncounted", "judged", &json!({"phase": "Unknown"})).await;
    assert!(status["scheduleStartTime"].is_null(), "{status}");
    running.delete(&format!("{X}/PodGroup"), "uncounted").await;
    running.create([group(X, "uncounted", 1)]);
    running.bound("first").await;
    others_go_on(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_dialects_on_one_pod_are_said() {
    let mut running = start(nodes(1, 4)).await;
    let named = labelled(light("mine", "torn", 1, 100), "gang.unicore.mcyou.cn/name", "yours");
    running.create([labelled(named, "gang.unicore.mcyou.cn/available-count", "1")]);
    let message = running.told("torn", "the gang is not defined").await;
    assert!(message.contains("another gang is named as well"), "{message}");
    assert!(message.contains("yours") && message.contains("mine"), "{message}");
    others_go_on(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_dialects_in_one_gang_are_said() {
    let mut running = start(nodes(1, 4)).await;
    let named = labelled(pod("second", 100), "gang.unicore.mcyou.cn/name", "both");
    running.create([
        light("both", "first", 2, 100),
        labelled(named, "gang.unicore.mcyou.cn/available-count", "2"),
    ]);
    running
        .all_told(&["first".into(), "second".into()], "the pods of one gang declare it in two dialects")
        .await;
    running.refused_for("first", "GangDialectsMixed");
    others_go_on(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_group_that_goes_while_pods_wait_is_missed_and_may_come_back() {
    let mut running = start(nodes(1, 4)).await;
    let members = names("g", 2);
    running.create(members.iter().map(|name| of_group(pod(name, 3000), "g")));
    running.all_told(&members, "default/g").await;
    running.refused_for("g-0", "GangGroupMissing");
    running.create([group(X, "g", 2)]);
    running.all_told(&members, "Insufficient cpu").await;
    running.delete(&format!("{X}/PodGroup"), "g").await;
    running.all_told(&members, "deleted").await;
    running.refused_for("g-0", "GangGroupGone");
    running.create([group(X, "g", 1)]);
    running.run_and_wait("g-", 1, 1).await;
    others_go_on(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_above_the_replicas_can_never_be() {
    const ARTICLE: &str = include_str!("../data/config/gangs/article.yaml");
    let mut running = start_with(nodes(8, 4), Some(ARTICLE), None).await;
    let mut objects = document("nginx");
    objects[0]["spec"]["minMember"] = json!(7);
    running.create(objects);
    let waiting = running.run_and_wait("nginx-", 0, 6).await;
    running.all_told(&waiting, "default/nginx wants 7 pods, ReplicaSet nginx makes 6").await;
    running.refused_for(&waiting[0], "GangNeverComplete");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_cannot_be_used_leave_the_gang_with_defaults() {
    let mut running = start(nodes(1, 4)).await;
    let odd = |name: &str| {
        let member = light("g", name, 2, 100);
        let member = annotated(member, "gang.scheduling.koordinator.sh/mode", "Loose");
        annotated(member, "gang.scheduling.koordinator.sh/groups", "default/other")
    };
    let members = names("g", 2);
    running.create(members.iter().map(|name| odd(name)));
    running.all_run(&members).await;
    others_go_on(running).await;
}

/// A profile without the plugin at Permit knows no gangs and schedules their pods one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_plugin_members_are_placed_one_by_one() {
    const DISABLED: &str = include_str!("../data/config/gangs/disabled.yaml");
    let mut running = start_with(nodes(1, 2), Some(DISABLED), None).await;
    for profile in ["everywhere", "at-permit"] {
        let gang = format!("of-{profile}");
        let members = names(&gang, 3);
        let member = |name: &String| with(light(&gang, name, 3, 1000), "schedulerName", json!(profile));
        running.create(members.iter().map(member));
        let waiting = running.run_and_wait(&gang, 2, 1).await;
        let body = running.explained(&waiting[0], "refused", |b| b["verdict"] == "refused");
        let message = body["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{message}");
        // Every member has a warning, including those on a node.
        for name in &members {
            let warnings = running.explained(name, "known", |_| true)["warnings"].clone();
            let words = format!(
                "gang default/{gang} is not heeded: Coscheduling is not enabled at Permit in profile {profile}, so \
                 this pod is scheduled on its own"
            );
            assert_eq!(warnings, json!([words]), "{name}");
        }
        for name in &members {
            running.kill(name).await;
        }
    }
    let notes = running.read("/configz")["notes"].to_string();
    assert!(notes.contains("profiles[1].plugins: Coscheduling is not enabled at permit"), "{notes}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_declaration_is_a_pod_with_a_warning() {
    let mut running = start(nodes(1, 4)).await;
    running.create([
        labelled(pod("nameless", 100), "gang.unicore.mcyou.cn/available-count", "2"),
        labelled(pod("countless", 100), "gang.unicore.mcyou.cn/name", "g"),
        light("whole", "member", 1, 100),
    ]);
    for (name, missing) in [("nameless", "name"), ("countless", "available-count")] {
        running.bound(name).await;
        let body = running.explained(name, "placed", |b| b["verdict"] == "placed");
        let warning =
            format!("metadata.labels[gang.unicore.mcyou.cn/{missing}]: missing, so the pod is in no gang");
        assert_eq!(body["warnings"], json!([warning]), "{body:#}");
        assert!(body["gang"].is_null(), "{body:#}");
    }
    running.bound("member").await;
    let body = running.explained("member", "placed", |b| b["verdict"] == "placed");
    assert_eq!(body["warnings"], json!([]), "{body:#}");
    running.stop().await;
}
