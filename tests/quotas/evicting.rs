//! Who is evicted: inside a quota, by quotas below their min, and from quotas that are over.

use pellucid::model::object::{Budget, Object};
use pellucid::model::selector::LabelSelector;

use super::*;
use crate::common::made::ranked;

pub(super) fn rank(pod: Pod, priority: i32) -> Pod {
    let mut pod = Pod { priority, ..pod };
    Arc::make_mut(&mut pod.spec).priority = priority;
    pod
}

fn evicted(core: &mut Core) -> Vec<String> {
    core.scheduler.order_due_writes(core.now);
    let names = core.ordered().writes.into_iter().filter_map(|order| match order.write {
        ObjectWrite::Evict { pod, .. } => Some(pod.key.name.to_string()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_pod_takes_the_place_of_lesser_ones_of_its_quota_alone() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 4, 4));
    see(&mut core, &manifest("team-b", 4, 4));
    for i in 0..4 {
        core.see(&on(&rank(of("team-a", &format!("a{i}"), 1000), i), "a"));
        core.see(&on(&rank(of("team-b", &format!("b{i}"), 1000), 0), "a"));
    }
    core.see(&rank(of("team-a", "urgent", 2000), 10));
    core.run();
    assert_eq!(core.ordered().victims(), ["a0", "a1"]);
}

#[test]
fn nobody_is_evicted_in_vain() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 4, 4));
    core.see(&on(&rank(of("team-a", "lesser", 1000), 0), "a"));
    core.see(&on(&rank(of("team-a", "equal", 3000), 10), "a"));
    core.see(&rank(of("team-a", "urgent", 2000), 10));
    core.run();
    assert_eq!(core.ordered().victims(), [""; 0]);
}

#[test]
fn pods_that_are_not_preemptible_are_no_victims_of_anybody() {
    let mut core = core_with(json!({}), 4000);
    see(&mut core, &manifest("team-a", 4, 4));
    core.see(&on(&rank(fixed(&of("team-a", "fixed", 3000)), 0), "a"));
    core.see(&on(&rank(of("team-a", "other", 1000), 0), "a"));
    // A pod of the default quota, for which DefaultPreemption looks.
    core.see(&ranked("urgent", 4000, 100));
    core.run();
    assert_eq!(core.ordered().victims(), [""; 0]);
    core.see(&rank(of("team-a", "modest", 1000), 100));
    core.run();
    assert_eq!(core.ordered().victims(), ["other"]);
}

#[test]
fn a_quota_below_its_min_takes_back_what_was_borrowed() {
    for (on_request, expected) in [(false, vec![]), (true, vec!["b3"])] {
        let mut core = core_with(json!({"enableReclaim": on_request}), 10_000);
        see(&mut core, &manifest("team-a", 5, 10));
        see(&mut core, &manifest("team-b", 2, 10));
        see(&mut core, &manifest("team-c", 3, 10));
        for i in 0..4 {
            let pod = rank(of("team-b", &format!("b{i}"), 2000), 5);
            core.see(&Pod { started: Some(i), ..on(&pod, "a") });
        }
        core.see(&on(&rank(of("team-c", "c", 2000), 0), "a"));
        // Of lower priority than all that run.
        core.see(&rank(of("team-a", "late", 2000), -1));
        core.run();
        assert_eq!(core.ordered().victims(), expected);
    }
}

#[test]
fn reclaim_pushes_nobody_below_a_min() {
    let mut core = core_with(json!({"enableReclaim": true}), 10_000);
    see(&mut core, &manifest("team-a", 6, 10));
    see(&mut core, &manifest("team-b", 4, 10));
    core.see(&on(&of("team-b", "b0", 3000), "a"));
    core.see(&on(&of("team-b", "b1", 3000), "a"));
    core.see(&on(&of("team-a", "a0", 4000), "a"));
    // It is within its min, but b uses only two cores beyond its own, and each of its pods has three.
    core.see(&of("team-a", "late", 2000));
    core.run();
    assert_eq!(core.ordered().victims(), [""; 0]);
}

#[test]
fn reclaim_asks_the_quota_furthest_above_its_share_and_spares_disruption_budgets() {
    let mut core = core_with(json!({"enableReclaim": true}), 16_000);
    for (name, min) in [("near", 2), ("far", 2), ("team-a", 4), ("other", 8)] {
        see(&mut core, &manifest(name, min, 16));
    }
    core.see(&on(&of("near", "near0", 4000), "a"));
    for i in 0..6 {
        let pod = of("far", &format!("far{i}"), 2000);
        // No budget lets the two least important ones go.
        let pod = if i < 2 { with_spec_labels(labelled(pod, "app", "web")) } else { rank(pod, 7) };
        core.see(&Pod { started: Some(i), ..on(&pod, "a") });
    }
    core.see_object(Object::PodDisruptionBudget(Budget {
        namespace: "ns".into(),
        name: "web".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "web".into())])),
        ..Budget::default()
    }));
    // A gang short of its quorum asks, and is not tried. `far` is above its share by 9, `near` by 1.
    core.see(&in_gang(of("other", "asks", 8000), "g", 2));
    core.see(&rank(of("team-a", "late", 2000), -1));
    core.run();
    assert_eq!(core.ordered().victims(), ["far5"]);
}

#[test]
fn the_articles_quota_a_gives_back_fifty_after_two_minutes() {
    let mut core = core_with(json!({"monitorAllQuotas": true}), 100_000);
    see(&mut core, &manifest("a", 50, 100));
    see(&mut core, &manifest("b", 50, 100));
    for i in 0..10 {
        let pod = rank(of("a", &format!("a{i}"), 10_000), i64::from(i / 5) as i32);
        core.see(&Pod { started: Some(i64::from(i)), ..on(&pod, "a") });
    }
    core.wait(10 * SECOND);
    assert_eq!(evicted(&mut core), [""; 0]);
    // At eleven the other user comes.
    core.see(&of("b", "b0", 100_000));
    core.wait(SECOND);
    let explained = read(&core, "explain/quotas/:name", "a");
    assert_eq!(explained["resources"][0]["runtime"], "50");
    assert_eq!(explained["overuse"]["excess"]["cpu"], "50");
    assert_eq!(explained["overuse"]["wouldEvict"].as_array().map(Vec::len), Some(5));
    for _ in 0..119 {
        core.wait(SECOND);
    }
    assert_eq!(evicted(&mut core), [""; 0], "not yet");
    core.wait(2 * SECOND);
    // The lowest priority, and of those all: the latest start first.
    assert_eq!(
        evicted(&mut core),
        ["ns/a4", "a3", "a2", "a1", "a0"].map(|name| name.trim_start_matches("ns/"))
    );
    core.wait(SECOND);
    assert_eq!(evicted(&mut core), [""; 0], "each goes once");
    for i in 0..5 {
        core.delete(&of("a", &format!("a{i}"), 0));
    }
    core.wait(SECOND);
    assert_eq!(used(&core, "a"), "50");
    assert!(read(&core, "explain/quotas/:name", "a")["overuse"].is_null());
    for _ in 0..200 {
        core.wait(SECOND);
    }
    assert_eq!(evicted(&mut core), [""; 0]);
}

#[test]
fn overuse_takes_the_fewest_and_spares_pods_that_are_not_preemptible() {
    let args = json!({"monitorAllQuotas": true, "delayEvictTime": "1s"});
    let mut core = core_with(args, 10_000);
    see(&mut core, &manifest("a", 5, 10));
    see(&mut core, &manifest("b", 5, 10));
    core.see(&on(&rank(fixed(&of("a", "fixed", 3000)), 0), "a"));
    core.see(&on(&rank(of("a", "small", 1000), 1), "a"));
    core.see(&on(&rank(of("a", "large", 5000), 2), "a"));
    core.see(&of("b", "waits", 9000));
    for _ in 0..5 {
        core.wait(SECOND);
    }
    // The small one alone would not do, and with the large one gone it can stay.
    assert_eq!(evicted(&mut core), ["large"]);
}

#[test]
fn overuse_leaves_pods_to_their_disruption_budgets() {
    let args = json!({"monitorAllQuotas": true, "delayEvictTime": "1s"});
    let mut core = core_with(args, 10_000);
    see(&mut core, &manifest("a", 4, 10));
    see(&mut core, &manifest("b", 6, 10));
    let budget = |allowed| {
        let selector = LabelSelector::of_pairs(&[("app".into(), "web".into())]);
        let names = (Name::from("ns"), Name::from("web"));
        let budget = Budget { namespace: names.0, name: names.1, allowed, ..Budget::default() };
        Object::PodDisruptionBudget(Budget { selector: Some(selector), ..budget })
    };
    core.see_object(budget(1));
    for i in 0..3 {
        let web = labelled(of("a", &format!("web{i}"), 2000), "app", "web");
        core.see(&Pod { started: Some(i), ..on(&rank(with_spec_labels(web), 0), "a") });
    }
    core.see(&on(&rank(of("a", "batch", 2000), 5), "a"));
    core.see(&of("b", "waits", 6000));
    core.wait(SECOND);
    let overuse = read(&core, "explain/quotas/:name", "a")["overuse"].clone();
    assert_eq!(overuse["wouldEvict"], json!(["ns/web2", "ns/batch"]), "{overuse}");
    assert_eq!(overuse["heldBack"], json!({"ns/web0": "web", "ns/web1": "web"}));
    for _ in 0..3 {
        core.wait(SECOND);
    }
    assert_eq!(evicted(&mut core), ["web2", "batch"]);
}

#[test]
fn what_victims_free_is_kept_for_the_pod_they_went_for() {
    let mut core = core_with(json!({}), 100_000);
    core.see_node(&node("b", 100_000));
    see(&mut core, &manifest("team-a", 4, 4));
    let running = ["a0", "a1"].map(|name| on(&rank(of("team-a", name, 2000), 0), "a"));
    running.iter().for_each(|pod| core.see(pod));
    let urgent = rank(of("team-a", "urgent", 3000), 10);
    core.see(&urgent);
    core.run();
    assert_eq!(core.ordered().victims(), ["a0", "a1"]);
    core.delete(&running[0]);
    // It fits what is free now, on another node than the nominated one too.
    let late = rank(of("team-a", "late", 2000), 5);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&urgent, &late]), 0);
    let message = refusal(&core, &late);
    assert!(message.contains("used: cpu:2, nominated: cpu:3, pod's request: cpu:2"), "{message}");
    core.delete(&running[1]);
    core.run();
    assert_eq!(placed(&core, [&urgent]), 1);
    core.delete(&urgent);
    core.run_after(2 * SECOND);
    assert_eq!(placed(&core, [&late]), 1, "the room is free once the pod is gone");
}

#[test]
fn a_claim_ends_with_the_pod_that_made_it() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 4, 4));
    let running = ["a0", "a1"].map(|name| on(&rank(of("team-a", name, 2000), 0), "a"));
    running.iter().for_each(|pod| core.see(pod));
    let urgent = rank(of("team-a", "urgent", 4000), 10);
    core.see(&urgent);
    core.run();
    core.delete(&running[0]);
    let late = rank(of("team-a", "late", 2000), 5);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&late]), 0);
    core.delete(&urgent);
    core.run_after(2 * SECOND);
    assert_eq!(placed(&core, [&late]), 1);
}
