//! Fixes of pods that wait for their queues, and what sentences promise, on random clusters: each is carried out, and then
//! the pod has its place, or its queue lets it be tried.

use pellucid::model::effect::BindOutcome;

use super::*;
use crate::common::reads::text;
use crate::common::rng::Rng;

const QUEUES: [&str; 3] = ["a", "b", "default"];
const GROUPS: [&str; 5] = ["g0", "g1", "g2", "g3", "g4"];

/// A random cluster, the same for one seed: two nodes, queues, PodGroups, and pods that come one by one.
fn settled(seed: u64) -> (Core, Vec<Pod>) {
    let mut random = Rng::new(seed);
    let mut core = core_with(6 + random.below(6) as i64);
    let mut other = host("b", 4000 + 1000 * random.below(6) as i64);
    other.allocatable.pods = 1000;
    core.see_node(&other);
    for name in QUEUES {
        let weight = random.below(4) as i64;
        match random.below(4) {
            0 => {}
            1 => see_queue(&mut core, queue(name, weight)),
            _ => see_queue(&mut core, limited(name, weight, 1 + random.below(8) as i64)),
        }
    }
    see_queue(&mut core, queue("c", 1));
    for (i, name) in GROUPS.into_iter().enumerate() {
        core.see_object(group(name, QUEUES[i % 3], 1 + random.below(2) as u32));
    }
    let mut pods = Vec::new();
    for i in 0..20 {
        let pod = member(GROUPS[random.below(5)], &format!("p{i:02}"), 500 * (1 + random.below(5)) as i64);
        core.see(&pod);
        core.run_after(Duration::from_millis(1));
        for order in core.orders() {
            core.report(&order, BindOutcome::Bound);
        }
        pods.push(pod);
    }
    core.run_after(30 * SECOND);
    (core, pods)
}

fn named<'p>(pods: &'p mut [Pod], key: &str) -> &'p mut Pod {
    pods.iter_mut().find(|pod| pod.key.to_string() == key).expect("a pod of the cluster")
}

/// Carries out an edit of a fix, as its command would. Returns whether this test can.
fn carry_out(core: &mut Core, pods: &mut [Pod], edit: &Value) -> bool {
    if let Some(object) = edit.get("applyObject") {
        let mut manifest = object.clone();
        manifest["metadata"]["resourceVersion"] = "2".into();
        let kind = match text(object, "/kind") {
            "Queue" => ObjectKind::QueueIncubator,
            _ => ObjectKind::PodGroupIncubator,
        };
        let object = Decoder::of(&registry()).object(kind, &manifest);
        core.see_object(object.expect("an object that can be read"));
    } else if let Some(key) = edit["deletePod"].as_str() {
        core.delete(named(pods, key));
    } else if let Some(set) = edit.get("setRequest").filter(|set| set["pod"].is_string()) {
        let pod = named(pods, text(set, "/pod"));
        let milli = pellucid::model::quantity::milli(text(set, "/amount")).expect("a quantity");
        Arc::make_mut(&mut pod.spec).requests = made::requests(milli);
        core.see(pod);
    } else {
        return false;
    }
    true
}

#[test]
fn what_is_said_to_help_does() {
    let mut tried = std::collections::BTreeMap::new();
    for seed in 1..80 {
        let (mut core, pods) = settled(seed);
        let waiting = pods.iter().filter(|pod| core.node_of(pod).is_none()).cloned().collect::<Vec<_>>();
        for pod in waiting.iter().take(3) {
            let body =
                ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}/suggestions?max=8", pod.key.name));
            let fixes = list(&body, "/fixes").iter().filter(|fix| fix["inCompany"] == "holds");
            for fix in fixes {
                let (mut core, mut pods) = settled(seed);
                let is_done = list(fix, "/edits").iter().all(|edit| carry_out(&mut core, &mut pods, edit));
                if !is_done {
                    continue;
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
    for kind in ["raise capability", "raise weight", "move PodGroup", "let pod", "request 1"] {
        assert!(tried.contains_key(kind), "nobody was told to {kind}: {tried:?}");
    }
}

/// Whoever is told to be freed by pods of the queue with some amount is let in by its queue when just that much ends.
#[test]
fn what_is_said_to_free_does() {
    let mut tried = 0;
    for seed in 1..80 {
        let (mut core, pods) = settled(seed);
        let waiting = pods.iter().filter(|pod| core.node_of(pod).is_none()).cloned().collect::<Vec<_>>();
        for pod in &waiting {
            let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{}", pod.key.name));
            let notes = body["notes"].as_array().into_iter().flatten();
            let notes = notes.filter(|note| note["plugin"] == NAME);
            let Some(said) = notes.map(|note| text(note, "/text").to_owned()).next() else { continue };
            let Some((_, freed)) = said.split_once("freed when pods of ") else { continue };
            let (whose, amount) = freed.split_once(" with ").expect("an amount");
            let queue = whose.split(' ').next().expect("a queue");
            let is_own = |other: &Pod| whose.contains("outside") && other.gang == pod.gang;
            let amount = amount.split(" cpu").next().expect("cpu");
            let needed = match amount.strip_prefix("more than ") {
                Some(more) => pellucid::model::quantity::milli(more).expect("a quantity") + 1,
                None if amount == "some" => 1,
                None => pellucid::model::quantity::milli(amount).expect("a quantity"),
            };
            let (mut core, pods) = settled(seed);
            let mut ended = 0;
            for other in &pods {
                let group = other.spec.annotations.text(GROUP_NAME).expect("a group");
                let at = GROUPS.iter().position(|known| *known == group).expect("a group of this test");
                if ended < needed
                    && core.node_of(other).is_some()
                    && QUEUES[at % 3] == queue
                    && other.gang != pod.gang
                    && !is_own(other)
                {
                    ended += other.spec.requests.list.milli_cpu;
                    core.delete(other);
                }
            }
            if ended < needed {
                continue;
            }
            // Asked before anybody else is tried: the room is for whoever is first.
            core.wait(Duration::ZERO);
            let queues = ask(&mut core, &format!("/apis/v1/plugins/Proportion/queues/{queue}"));
            let key = format!("ns/{}", pod.spec.annotations.text(GROUP_NAME).expect("a group"));
            let of_group = list(&queues, "/waiting").iter().find(|of| of["podGroup"] == key.as_str());
            let first = of_group.map(|of| text(of, "/examples/0").to_owned()).unwrap_or_default();
            if first == pod.key.to_string() {
                assert_eq!(
                    of_group.expect("it waits")["reason"],
                    Value::Null,
                    "seed {seed}, {said}: {queues:#}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
}
