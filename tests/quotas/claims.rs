//! Fixes of pods that wait for their quotas, on random clusters: each that is said to hold does when it is carried out.

use pellucid::model::effect::Effect;

use super::*;
use crate::common::reads::{ask, list, text};
use crate::common::rng::Rng;

const QUOTAS: [&str; 5] = ["org", "team-a", "team-b", "team-c", "alone"];

/// A random cluster, the same for one seed: three nodes, a tree of quotas, pods that run and pods that come.
pub(super) fn settled(seed: u64) -> (Core, Vec<Pod>) {
    let mut random = Rng::new(seed);
    let args = json!({"enableCheckParentQuota": seed.is_multiple_of(3), "enableRuntimeQuota": !seed.is_multiple_of(4)});
    let mut core = core_with(args, 6000 + 1000 * random.below(6) as i64);
    for name in ["b", "c"] {
        let mut node = node(name, 4000 + 1000 * random.below(6) as i64);
        node.allocatable.pods = 1000;
        core.see_node(&node);
    }
    for name in QUOTAS {
        let min = random.below(4) as i64;
        let mut made = manifest(name, min, min + 1 + random.below(10) as i64);
        made["metadata"]["labels"] =
            json!({"quota.scheduling.koordinator.sh/is-parent": (name == "org").to_string()});
        if name == "org" {
            made["spec"] = json!({"min": {"cpu": 12}, "max": {"cpu": 10 + random.below(12)}});
        }
        if name.starts_with("team") {
            made["metadata"]["labels"]["quota.scheduling.koordinator.sh/parent"] = "org".into();
        }
        see(&mut core, &made);
    }
    let mut pods = Vec::new();
    for i in 0..24 {
        let quota = QUOTAS[1 + random.below(4)];
        let pod = of(quota, &format!("p{i:02}"), 500 * (1 + random.below(6)) as i64);
        let pod = if random.below(8) == 0 { fixed(&pod) } else { pod };
        core.see(&pod);
        core.run_after(Duration::from_millis(1));
        for order in core.orders() {
            core.report(&order, pellucid::model::effect::BindOutcome::Bound);
        }
        pods.push(pod);
    }
    core.run_after(30 * SECOND);
    (core, pods)
}

fn named<'p>(pods: &'p mut [Pod], key: &str) -> &'p mut Pod {
    pods.iter_mut().find(|pod| pod.key.to_string() == key).expect("a pod of the cluster")
}

/// Carries out an edit of a fix, as its command would.
fn carry_out(core: &mut Core, pods: &mut [Pod], edit: &Value) {
    if let Some(object) = edit.get("applyObject") {
        see(core, object);
    } else if let Some(key) = edit["deletePod"].as_str() {
        core.delete(named(pods, key));
    } else if let Some(label) = edit.get("labelPod") {
        let pod = named(pods, text(label, "/pod"));
        let labels = pod.labels.with(text(label, "/key").into(), text(label, "/value").into());
        *pod = with_spec_labels(Pod { labels, ..pod.clone() });
        core.see(pod);
    } else if let Some(set) = edit.get("setRequest") {
        let pod = named(pods, text(set, "/pod"));
        let milli = pellucid::model::quantity::milli(text(set, "/amount")).expect("a quantity");
        Arc::make_mut(&mut pod.spec).requests = crate::common::made::requests(milli);
        core.see(pod);
    } else {
        panic!("an edit that this test does not know: {edit}");
    }
}

#[test]
fn what_is_said_to_help_does() {
    let mut tried = std::collections::BTreeMap::new();
    for seed in 1..60 {
        let (mut core, pods) = settled(seed);
        let waiting = pods.iter().filter(|pod| core.node_of(pod).is_none()).cloned().collect::<Vec<_>>();
        for pod in waiting.iter().take(3) {
            let body =
                ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}/suggestions?max=8", pod.key.name));
            for fix in list(&body, "/fixes").iter().filter(|fix| fix["inCompany"] == "holds") {
                if list(fix, "/edits").iter().any(|edit| edit.get("copyNode").is_some()) {
                    continue;
                }
                let (mut core, mut pods) = settled(seed);
                for edit in list(fix, "/edits") {
                    carry_out(&mut core, &mut pods, edit);
                }
                // Whoever waits for a backoff is tried again after it.
                for _ in 0..3 {
                    core.run_after(30 * SECOND);
                }
                assert!(core.node_of(pod).is_some(), "seed {seed}, {}: {fix:#}", pod.key);
                let what = text(fix, "/text").split(' ').take(2).collect::<Vec<_>>().join(" ");
                *tried.entry(what).or_insert(0) += 1;
            }
        }
    }
    for kind in ["raise max", "raise min", "move it", "let pod", "request 1"] {
        assert!(tried.contains_key(kind), "nobody was told to {kind}: {tried:?}");
    }
}

/// A change of a node wakes nobody who is refused by a quota. Once tried again, some minutes later, such a pod may evict there.
#[test]
fn a_place_that_a_sleeping_pod_takes_later_is_not_said_to_hold() {
    let said = |priority: i32| {
        let mut core = core_with(json!({}), 9000);
        see(&mut core, &manifest("team", 5, 5));
        see(&mut core, &manifest("other", 0, 100));
        core.see_node(&node("b", 20_000));
        core.see(&on(&Pod { priority: 1000, ..of("other", "filler", 20_000) }, "b"));
        core.see(&on(&of("team", "small", 3000), "a"));
        core.see_node(&Node { unschedulable: true, ..node("a", 9000) });
        let sleeping = Pod { priority, ..of("team", "sleeping", 5000) };
        let asked = pod("asked", 6000);
        [&sleeping, &asked].into_iter().for_each(|pod| core.see(pod));
        core.run();
        let body = ask(&mut core, "/apis/v1/explain/pods/ns/asked/suggestions");
        let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text") == "uncordon node a");
        let said = fix.map(|fix| text(fix, "/inCompany").to_owned());
        core.see_node(&node("a", 9000));
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, [&asked, &sleeping]), 1);
        core.run_after(600 * SECOND);
        let is_evicted =
            |effect: &Effect| matches!(effect, Effect::Evict(order) if order.victim.key == asked.key);
        (said, core.scheduler.take_effects().iter().any(is_evicted))
    };
    assert_eq!(said(0), (Some("holds".to_owned()), false));
    assert_eq!(said(100), (Some("unknown".to_owned()), true));
}
