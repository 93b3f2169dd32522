//! What the end of pods of other quotas does: a pod or a gang whose share another quota holds fits once that one's pods have
//! left, and is told so.

use super::*;
use crate::common::reads::{ask, list, text};
use crate::quotas::raising::{child, parent};
use crate::quotas::waiting::{fix, fixes};

/// Two quotas that share what their parent has.
fn two_of_one(max: i64, [ta, tb]: [i64; 2]) -> Core {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &parent("dept", ta + tb, max));
    see(&mut core, &child("ta", "dept", ta, max));
    see(&mut core, &child("tb", "dept", tb, max));
    core
}

#[test]
fn a_gang_whose_share_another_quota_holds_fits_once_that_ones_pods_have_left() {
    for is_placed in [true, false] {
        let mut core = two_of_one(6, [2, 2]);
        let mut holder = of("tb", "b1", 3000);
        if is_placed {
            holder = on(&holder, "a");
        } else {
            // No node takes it, and it requests all the same.
            Arc::make_mut(&mut holder.spec).requests.list.memory = 1 << 60;
        }
        core.see(&holder);
        let members = ["a1", "a2"].map(|name| in_gang(of("ta", name, 2000), "g", 2));
        members.iter().for_each(|pod| core.see(pod));
        core.run();
        assert_eq!(placed(&core, &members), 0);
        let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
        assert_eq!(body["outlook"]["code"], "NotNow", "{body}");
        assert!(!text(&body, "/verdict/remedy").is_empty());
        if is_placed {
            let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g/suggestions?max=20");
            let going = fix(list(&body, "/fixes"), "let pod ns/b1 go");
            assert_eq!((&going["slots"], &going["verified"]), (&json!(2), &json!(true)));
        }
        core.delete(&holder);
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, &members), 2);
    }
}

#[test]
fn a_pod_whose_share_another_quota_holds_is_told_whose_end_helps() {
    // The other quota borrows, or is within its min.
    for mins in [[1, 1], [1, 3]] {
        let mut core = two_of_one(4, mins);
        let (holder, late) = (on(&of("tb", "b1", 3000), "a"), of("ta", "late", 3000));
        core.see(&holder);
        core.see(&late);
        core.run();
        assert_eq!(placed(&core, [&late]), 0);
        let body = ask(&mut core, "/apis/v1/explain/pods/ns/late");
        assert_eq!(body["outlook"]["code"], "NotNow", "{body}");
        assert!(text(&body, "/notes/0/text").ends_with("; freed when others request less"), "{body}");
        let found = fixes(&mut core, "late");
        fix(&found, "let pod ns/b1 go");
        // 5999m would do as well.
        fix(&found, "raise max of cpu from 4 to 6 of quota dept");
        core.delete(&holder);
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, [&late]), 1);
    }
}

/// The nearest node lacks one resource, because of a pod that cannot leave, and the other one two.
#[test]
fn the_quota_and_a_node_that_is_not_the_nearest_are_freed_together() {
    let mut core = core_with(json!({}), 4000);
    see(&mut core, &parent("dept", 2, 5));
    see(&mut core, &child("ta", "dept", 1, 5));
    see(&mut core, &child("tb", "dept", 1, 5));
    core.see_node(&node("b", 4000));
    let with_memory = |mut pod: Pod, memory| {
        Arc::make_mut(&mut pod.spec).requests.list.memory = memory;
        pod
    };
    let holder = on(&of("tb", "b1", 4000), "b");
    let other = with_memory(on(&pod("other", 4000), "b"), 64 << 30);
    let mut agent = with_memory(on(&pod("agent", 0), "a"), 64 << 30);
    Arc::make_mut(&mut agent.spec).is_daemon = true;
    [&holder, &other, &agent].into_iter().for_each(|pod| core.see(pod));
    let late = with_memory(of("ta", "late", 3000), 1 << 30);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&late]), 0);
    fix(&fixes(&mut core, "late"), "let pod ns/b1 go, and let pod ns/other go");
    [&holder, &other].into_iter().for_each(|pod| core.delete(pod));
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, [&late]), 1);
}

#[test]
fn a_pod_whose_share_pods_of_the_default_quota_hold_is_told_whose_end_helps() {
    let mut core = core_with(json!({}), 6000);
    see(&mut core, &child("ta", "koordinator-root-quota", 0, 6));
    // It has no quota of its own; what it uses comes off what all others share.
    let (holder, late) = (on(&pod("d", 4000), "a"), of("ta", "late", 3000));
    core.see(&holder);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&late]), 0);
    fix(&fixes(&mut core, "late"), "let pod ns/d go");
    core.delete(&holder);
    core.run_after(30 * SECOND);
    assert_eq!(placed(&core, [&late]), 1);
}

/// Returns what is said of how a pod stands with its quota, after the numbers.
fn freed(core: &mut Core, pod: &Pod) -> String {
    let body = ask(core, &format!("/apis/v1/explain/pods/ns/{}/quota", pod.key.name));
    body["text"].as_str().and_then(|said| said.rsplit("; ").next()).unwrap_or_default().to_owned()
}

#[test]
fn only_what_pods_use_is_said_to_become_free() {
    let alone = "no pod's end is enough, as the request alone is more than";
    for (held, asked, is_fixed, said) in [
        (0, 5000, false, format!("{alone} max 4 cpu of tq")),
        (2000, 5000, false, format!("{alone} max 4 cpu of tq")),
        (2000, 4000, false, "freed when pods of tq with 2 cpu end".to_owned()),
        (0, 3000, true, format!("{alone} min 2 cpu of tq for pods that are not preemptible")),
        (
            0,
            5000,
            true,
            format!("{alone} max 4 cpu of tq and min 2 cpu of tq for pods that are not preemptible"),
        ),
    ] {
        let mut core = core_with(json!({}), 100_000);
        see(&mut core, &manifest("tq", 2, 4));
        if held > 0 {
            core.see(&on(&of("tq", "held", held), "a"));
        }
        let late = of("tq", "late", asked);
        let late = if is_fixed { fixed(&late) } else { late };
        core.see(&late);
        core.run();
        assert_eq!(freed(&mut core, &late), said);
    }
}

#[test]
fn a_pod_beyond_max_and_min_is_told_of_both_and_what_helps_against_both() {
    for carried_out in
        ["request 2 of cpu instead of 5", "raise max of cpu from 4 to 5 and min of cpu from 2 to 5"]
    {
        let mut core = core_with(json!({}), 100_000);
        see(&mut core, &manifest("tq", 2, 4));
        let mut late = fixed(&of("tq", "late", 5000));
        core.see(&late);
        core.run();
        let body = ask(&mut core, "/apis/v1/explain/pods/ns/late");
        let numbers =
            "quota tq: cpu used 0 + 5 > max 4, cpu used by pods that are not preemptible 0 + 5 > min 2; ";
        assert!(text(&body, "/notes/0/text").starts_with(numbers), "{body}");
        let found = fix(&fixes(&mut core, "late"), carried_out).clone();
        match found.pointer("/parts/0/edit/applyObject") {
            Some(object) => see(&mut core, object),
            None => {
                Arc::make_mut(&mut late.spec).requests = crate::common::made::requests(2000);
                core.see(&late);
            }
        }
        core.run_after(30 * SECOND);
        assert_eq!(placed(&core, [&late]), 1, "{carried_out}");
    }
}

#[test]
fn where_no_pods_end_is_enough_nobody_is_told_to_wait() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("tq", 2, 4));
    let members = ["a1", "a2", "a3"].map(|name| in_gang(of("tq", name, 2000), "g", 3));
    members.iter().for_each(|pod| core.see(pod));
    core.see(&of("tq", "late", 5000));
    core.see(&fixed(&of("tq", "never", 3000)));
    core.run();
    let gang = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
    assert_eq!(gang["outlook"]["code"], "NeverFits", "{gang}");
    let mut remedies = vec![text(&gang, "/verdict/remedy").to_owned()];
    for (name, code) in [("a1", "NeverFits"), ("late", "HeldBack"), ("never", "HeldBack")] {
        let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{name}"));
        assert_eq!(body["outlook"]["code"], code, "{body}");
        assert!(!text(&body, "/summary").contains("Wait"), "{body}");
        remedies.push(text(&body, "/remedy").to_owned());
    }
    assert!(remedies.iter().all(|remedy| !remedy.contains("Wait")), "{remedies:#?}");
    assert!(remedies[0].contains("request less"), "{remedies:#?}");
}

/// Whoever is told that no pod's end is enough is refused by its quota when it is alone, and all others are taken then; who
/// is told to be freed by pods of its quota is taken without those.
#[test]
fn what_is_said_to_free_does() {
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 1..60 {
        let (mut core, pods) = crate::quotas::claims::settled(seed);
        let waiting = pods.iter().filter(|pod| core.node_of(pod).is_none()).cloned().collect::<Vec<_>>();
        for pod in &waiting {
            let said = freed(&mut core, pod);
            if !said.starts_with("freed") && !said.starts_with("no pod's end") {
                continue;
            }
            let is_never = said.starts_with("no pod's end");
            let own = said.starts_with("freed when pods of") && !said.contains(" end and others request");
            let only_others = said == "freed when others request less";
            let (mut core, pods) = crate::quotas::claims::settled(seed);
            let whose = |quota: &str| {
                said.contains(&format!("pods of {quota} "))
                    || quota != "alone" && said.contains("pods of org ")
            };
            for other in pods.iter().filter(|other| other.key != pod.key) {
                let quota = other.labels.text(LABEL).expect("a quota");
                let is_own = quota == pod.labels.text(LABEL).expect("a quota");
                let goes = match (own, only_others) {
                    (true, _) => core.node_of(other).is_some() && whose(quota),
                    (_, true) => !is_own,
                    _ => true,
                };
                if goes {
                    core.delete(other);
                }
            }
            core.wait(Duration::ZERO);
            let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}/quota", pod.key.name));
            assert_eq!(body["code"].is_null(), !is_never, "seed {seed}, {}: {said}: {body:#}", pod.key);
            *kinds.entry(said.split(' ').take(3).collect::<Vec<_>>().join(" ")).or_insert(0) += 1;
        }
    }
    assert_eq!(
        kinds.keys().collect::<Vec<_>>(),
        ["freed when others", "freed when pods", "no pod's end"],
        "{kinds:?}"
    );
}

#[test]
fn nobody_is_told_to_end_a_pod_that_comes_back() {
    let mut core = two_of_one(4, [1, 1]);
    let mut agent = on(&of("tb", "agent", 3000), "a");
    Arc::make_mut(&mut agent.spec).is_daemon = true;
    let late = of("ta", "late", 3000);
    core.see(&agent);
    core.see(&late);
    core.run();
    assert_eq!(placed(&core, [&late]), 0);
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/late/suggestions?max=20");
    assert!(!list(&body, "/fixes").is_empty(), "{body}");
    assert!(!body.to_string().contains("let pod ns/agent go"), "{body}");
}
