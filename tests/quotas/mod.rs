//! ElasticQuota in a scheduler without I/O: admission, gangs, preemption, reclaim, overuse, writes, and what bad objects
//! do.

mod claims;
mod evicting;
mod histories;
mod leaving;
mod problems;
mod raising;
mod together;
mod trees;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::{Input, Stage};
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::effect::{ObjectPart, ObjectWrite, WriteOutcome};
use pellucid::model::{CustomKindRef, Name, Node, Pod};
use pellucid::plugins::elastic_quota::{ELASTIC_QUOTA, NAME};
use pellucid::plugins::registry;
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::cluster::SCHEDULER;
use crate::common::driver::{Core, settings};
use crate::common::made::{SECOND, in_gang, labelled, node, on, pod};

const LABEL: &str = "quota.scheduling.koordinator.sh/name";
const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

/// Makes a core with the plugin and one node of this much CPU.
fn core_with(args: Value, milli_cpu: i64) -> Core {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": SCHEDULER,
            "plugins": {"multiPoint": {"enabled": [{"name": NAME}]}},
            "pluginConfig": [{"name": NAME, "args": args}],
        }],
    });
    let mut parsed = pellucid::config::parse(&config.to_string(), "the test's", &registry()).expect("valid");
    let mut core = Core::new(settings(parsed.profiles.remove(0)));
    let mut node = node("a", milli_cpu);
    node.allocatable.pods = 1000;
    core.see_node(&node);
    core
}

/// Makes the manifest of a quota with min and max of CPU, in cores.
fn manifest(name: &str, min: i64, max: i64) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "koordinator-system", "uid": format!("uid-{name}")},
        "spec": {"min": {"cpu": min}, "max": {"cpu": max}},
    })
}

fn see(core: &mut Core, manifest: &Value) {
    static VERSION: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let mut manifest = manifest.clone();
    let version = VERSION.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    manifest["metadata"]["resourceVersion"] = json!(version.to_string());
    let object = Decoder::of(&registry()).custom(CustomKindRef(&ELASTIC_QUOTA), &manifest);
    core.apply(Input::CustomApplied(Arc::new(object.expect("a quota that can be read"))));
}

fn forget(core: &mut Core, name: &str) {
    let key = ("koordinator-system".into(), name.into());
    core.apply(Input::CustomDeleted(CustomKindRef(&ELASTIC_QUOTA), key));
}

/// Makes a pending pod of a quota.
fn of(quota: &str, name: &str, milli_cpu: i64) -> Pod {
    with_spec_labels(labelled(pod(name, milli_cpu), LABEL, quota))
}

/// Puts the labels into the spec too, as the decoder does.
fn with_spec_labels(mut pod: Pod) -> Pod {
    let labels = pod.labels.clone();
    Arc::make_mut(&mut pod.spec).labels = labels;
    pod
}

/// Makes a pod one that is never evicted.
fn fixed(pod: &Pod) -> Pod {
    let labels = pod.labels.with(PREEMPTIBLE.into(), "false".into());
    with_spec_labels(Pod { labels, ..pod.clone() })
}

/// Reads an endpoint of the plugin.
fn read(core: &Core, path: &str, name: &str) -> Value {
    let factory = registry().into_iter().find(|f| f.name() == NAME).expect("it is registered");
    let explains = path.starts_with("explain/");
    let template = path.strip_prefix("explain/").unwrap_or(path);
    let mut endpoints = factory.endpoints().into_iter();
    let endpoint = endpoints.find(|e| e.path == template && e.explains == explains).expect("it is there");
    let params = PathParams::from([("name".to_owned(), name.to_owned())]);
    let view = View::new(core.scheduler.cluster());
    let cx = ReadContext { view, params: &params, now: core.now, list: &List::default() };
    (endpoint.read)(&cx).expect("an answer")
}

fn used(core: &Core, quota: &str) -> String {
    read(core, "quotas/:name", quota)["used"]["cpu"].as_str().unwrap_or("0").to_owned()
}

fn placed<'a>(core: &Core, pods: impl IntoIterator<Item = &'a Pod>) -> usize {
    pods.into_iter().filter(|pod| core.node_of(pod).is_some()).count()
}

/// Returns the code of the reason for which a pod is refused as a whole.
fn code(core: &Core, pod: &Pod) -> &'static str {
    let verdict = core.scheduler.verdict(core.id(pod).expect("known")).expect("decided");
    let Outcome::Refused(refusal) = verdict.outcome else { panic!("{verdict:?}") };
    refusal.pod_cause.as_ref().expect("refused as a whole").reasons[0].code.as_str()
}

/// Returns the message of a pod's refusal.
fn refusal(core: &Core, pod: &Pod) -> String {
    let verdict = core.scheduler.verdict(core.id(pod).expect("known")).expect("decided");
    match verdict.outcome {
        Outcome::Refused(refusal) => refusal.message().to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quota_of_twenty_takes_twenty_however_fast_pods_come() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 20, 20));
    let pods: Vec<Pod> = (0..30).map(|i| of("team-a", &format!("p{i:02}"), 1000)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!((placed(&core, &pods), used(&core, "team-a").as_str()), (20, "20"));
    let message = refusal(&core, &pods[25]);
    let words = "0/1 nodes are available: Insufficient quotas, quotaName: team-a, runtime: cpu:20, used: cpu:20, \
                 pod's request: cpu:1, exceedDimensions: [cpu]";
    assert!(message.starts_with(words), "{message}");
    assert_eq!(code(&core, &pods[25]), "InsufficientQuota");
}

#[test]
fn a_pod_that_goes_wakes_one_that_waits_for_its_quota() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 1, 2));
    see(&mut core, &manifest("team-b", 1, 1));
    let (first, second) = (on(&of("team-a", "first", 2000), "a"), of("team-a", "second", 1000));
    let other = on(&of("team-b", "other", 1000), "a");
    core.see(&first);
    core.see(&other);
    core.attempt(&second);
    core.wait(2 * SECOND);
    core.delete(&other);
    core.wait(Duration::ZERO);
    assert_eq!(core.queued(&second), Some(QueueStage::Unschedulable), "that was another quota's");
    core.delete(&first);
    assert_eq!(core.queued(&second), Some(QueueStage::Active));
    core.run();
    assert_eq!(core.stage(&second), Some(Stage::Permitted));
}

#[test]
fn a_raised_max_and_a_new_node_wake_too() {
    let mut core = core_with(json!({}), 2000);
    see(&mut core, &manifest("team-a", 0, 1));
    let pods = ["x", "y", "z"].map(|name| of("team-a", name, 1000));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 1);
    core.wait(2 * SECOND);
    see(&mut core, &manifest("team-a", 0, 8));
    core.run_after(Duration::ZERO);
    assert_eq!(placed(&core, &pods), 2, "the cluster has two cores");
    core.wait(2 * SECOND);
    core.see_node(&node("b", 4000));
    core.run_after(Duration::ZERO);
    assert_eq!(placed(&core, &pods), 3);
}

#[test]
fn a_pod_is_judged_by_what_it_requests() {
    let mut core = core_with(json!({}), 100_000);
    let mut quota = manifest("team-a", 1, 4);
    quota["spec"]["max"]["memory"] = json!("1Gi");
    see(&mut core, &quota);
    core.see(&on(&of("team-a", "over", 9000), "a"));
    let mut idle = of("team-a", "idle", 0);
    let spec = Arc::make_mut(&mut idle.spec);
    spec.requests.list.memory = 1 << 29;
    core.attempt(&idle);
    assert_eq!(placed(&core, [&idle]), 1, "its quota is over in CPU, of which it asks for none");
    let more = of("team-a", "more", 1);
    core.attempt(&more);
    assert_eq!(placed(&core, [&more]), 0);
}

#[test]
fn pods_that_are_not_preemptible_stay_within_min() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 2, 10));
    let pods = ["x", "y", "z"].map(|name| fixed(&of("team-a", name, 1000)));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 2);
    let waits = pods.iter().find(|pod| core.node_of(pod).is_none()).expect("one waits");
    let message = refusal(&core, waits);
    assert_eq!(code(&core, waits), "InsufficientNonPreemptibleQuota");
    assert!(
        message.contains("Insufficient non-preemptible quotas, quotaName: team-a, min: cpu:2, "),
        "{message}"
    );
    let ordinary = of("team-a", "ordinary", 5000);
    core.attempt(&ordinary);
    assert_eq!(placed(&core, [&ordinary]), 1);
}

#[test]
fn parents_are_checked_on_request() {
    for (checks, expected) in [(false, 2), (true, 1)] {
        let mut core =
            core_with(json!({"enableCheckParentQuota": checks, "enableMinQuotaScale": false}), 100_000);
        see(&mut core, &manifest("org", 1, 1));
        for name in ["team-a", "team-b"] {
            let mut child = manifest(name, 1, 10);
            child["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/parent": "org"});
            see(&mut core, &child);
        }
        let pods = ["team-a", "team-b"].map(|quota| of(quota, &format!("of-{quota}"), 1000));
        pods.iter().for_each(|pod| core.see(pod));
        core.run();
        // Mins are granted even where the parent has less.
        assert_eq!(placed(&core, &pods), expected);
        if checks {
            assert!(refusal(&core, &pods[1]).contains("quotaNameTopo: [org team-b], "));
        }
    }
}

#[test]
fn max_is_the_limit_where_runtime_is_not() {
    let mut core = core_with(json!({"enableRuntimeQuota": false}), 2000);
    see(&mut core, &manifest("team-a", 0, 3));
    let pods: Vec<Pod> = (0..4).map(|i| of("team-a", &format!("p{i}"), 1000)).collect();
    core.see_node(&node("b", 9000));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 3);
}

#[test]
fn a_quorum_fits_its_quota_or_none_of_it_is_placed() {
    for (max, expected) in [(4, 4), (3, 0)] {
        let mut core = core_with(json!({}), 100_000);
        see(&mut core, &manifest("team-a", 1, max));
        let pods: Vec<Pod> = (0..4).map(|i| in_gang(of("team-a", &format!("p{i}"), 1000), "g", 4)).collect();
        pods.iter().for_each(|pod| core.see(pod));
        core.run();
        assert_eq!(placed(&core, &pods), expected, "max {max}");
        assert_eq!(used(&core, "team-a"), expected.to_string());
    }
}

#[test]
fn the_namespace_names_the_quota_and_the_default_quota_takes_the_rest() {
    let mut core = core_with(json!({}), 100_000);
    let mut own = manifest("ns", 0, 1);
    own["metadata"]["namespace"] = json!("ns");
    see(&mut core, &own);
    let pods = ["x", "y"].map(|name| pod(name, 1000));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 1);
    let mut listed = manifest("listed", 0, 1);
    listed["metadata"]["annotations"] = json!({"quota.scheduling.koordinator.sh/namespaces": "[\"ns\"]"});
    core.apply(Input::CustomDeleted(CustomKindRef(&ELASTIC_QUOTA), ("ns".into(), "ns".into())));
    core.run_after(2 * SECOND);
    assert_eq!((placed(&core, &pods), used(&core, "default").as_str()), (2, "2"));
    see(&mut core, &listed);
    core.run_after(2 * SECOND);
    assert_eq!((used(&core, "default").as_str(), used(&core, "listed").as_str()), ("0", "2"));
}

#[test]
fn without_quotas_everything_is_admitted() {
    let mut core = core_with(json!({}), 100_000);
    let pods: Vec<Pod> = (0..50).map(|i| pod(&format!("p{i}"), 1000)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 50);
    core.wait(10 * SECOND);
    core.scheduler.order_due_writes(core.now);
    assert!(core.ordered().writes.is_empty());
}

#[test]
fn amounts_are_written_once_a_second_after_they_changed() {
    let mut core = core_with(json!({}), 10_000);
    see(&mut core, &manifest("team-a", 2, 8));
    core.see(&of("team-a", "p", 1000));
    core.run();
    let due = |core: &mut Core| {
        core.scheduler.order_due_writes(core.now);
        core.ordered().writes
    };
    assert!(due(&mut core).is_empty(), "it settles first");
    core.wait(2 * SECOND);
    core.wait(2 * SECOND);
    let writes = due(&mut core);
    assert_eq!(writes.len(), 2);
    let mut seen = manifest("team-a", 2, 8);
    for order in &writes {
        let ObjectWrite::Patch { object, part, patch, .. } = &order.write else { panic!("{order:?}") };
        assert_eq!((&*object.name, object.namespace.as_deref()), ("team-a", Some("koordinator-system")));
        match part {
            ObjectPart::Main => {
                let annotations = &patch["metadata"]["annotations"];
                assert_eq!(annotations["quota.scheduling.koordinator.sh/runtime"], "{\"cpu\":\"1\"}");
                assert_eq!(annotations["quota.scheduling.koordinator.sh/request"], "{\"cpu\":\"1\"}");
                seen["metadata"]["annotations"] = annotations.clone();
            }
            ObjectPart::Status => {
                assert_eq!(**patch, json!({"status": {"used": {"cpu": "1"}}}));
                seen["status"] = patch["status"].clone();
            }
        }
    }
    assert!(due(&mut core).is_empty(), "it is ordered once");
    core.settle(&writes[0], WriteOutcome::Refused { status: 500, message: "etcd is away".into() });
    core.settle(&writes[1], WriteOutcome::Written);
    core.wait(6 * SECOND);
    assert_eq!(due(&mut core).len(), 2, "what was refused is ordered again");
    see(&mut core, &seen);
    core.wait(6 * SECOND);
    core.wait(6 * SECOND);
    assert!(due(&mut core).is_empty(), "it stands there");
}

#[test]
fn a_quota_is_explained() {
    let mut core = core_with(json!({}), 100_000);
    let weighted = |name: &str, min: i64, weight: i64| {
        let mut made = manifest(name, min, 100);
        let text = json!({"cpu": weight}).to_string();
        made["metadata"]["annotations"] = json!({"quota.scheduling.koordinator.sh/shared-weight": text});
        made
    };
    for (name, min, weight, request) in
        [("a", 10, 40, 5), ("b", 15, 60, 20), ("c", 20, 50, 40), ("d", 15, 80, 70)]
    {
        see(&mut core, &weighted(name, min, weight));
        core.see(&of(name, &format!("of-{name}"), request * 1000));
    }
    core.wait(Duration::ZERO);
    let explained = read(&core, "explain/quotas/:name", "c");
    assert_eq!(explained["path"], json!(["koordinator-root-quota", "c"]));
    let share = &explained["resources"][0];
    assert_eq!((&share["runtime"], &share["borrowed"]), (&json!("35385m"), &json!("15385m")));
    assert_eq!(share["rounds"].as_array().map(Vec::len), Some(2));
    assert_eq!(share["rounds"][0]["amount"], "45");
    assert!(share["borrowsFrom"]["a"].is_string(), "{share}");
    assert_eq!(share["limitedBy"], json!({"quota": "c", "reason": "share"}));
    assert!(explained["sentences"][0].as_str().is_some_and(|s| s.contains("of the min of a")), "{explained}");
    assert_eq!(read(&core, "quota/:name", "a")["podCache"]["ns/of-a"]["resource"], json!({"cpu": "5"}));
    let name: Name = "koordinator-default-quota".into();
    assert_eq!(read(&core, "quotas/:name", "default")["name"], json!(name.as_str()));
}
