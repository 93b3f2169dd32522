//! What queues request, hold and deserve in random histories: the sums over the pods and the exact shares, whatever
//! happened, and the same in whatever order it came.

use std::collections::BTreeMap;

use pellucid::cluster::Stage;
use pellucid::model::effect::{BindOrder, BindOutcome};
use pellucid::model::quantity::milli;
use pellucid::plugins::water_filling::{Claim, fill};

use super::*;
use crate::common::made::refused;
use crate::common::rng::Rng;

const QUEUES: [&str; 4] = ["a", "b", "c", "default"];
const GROUPS: [&str; 4] = ["g0", "g1", "g2", "g3"];

/// The objects as they stand.
#[derive(Default)]
struct Objects {
    queues: BTreeMap<&'static str, Queue>,
    groups: BTreeMap<&'static str, (&'static str, u32)>,
}

/// Requested and allocated CPU, in thousandths.
type Sums = (i64, i64);

fn expected(core: &Core, objects: &Objects) -> BTreeMap<String, Sums> {
    let mut all: BTreeMap<String, Sums> = BTreeMap::new();
    for (_, record) in core.scheduler.cluster().pods() {
        let spec = &record.pod.spec;
        let queue = match spec.annotations.text(GROUP_NAME) {
            Some(group) => objects.groups.get(group).map(|(queue, _)| *queue),
            None => spec.has_shadow_group.then_some("default"),
        };
        let Some(queue) = queue else { continue };
        let sums = all.entry(queue.to_owned()).or_default();
        sums.0 += spec.requests.list.milli_cpu;
        sums.1 += if record.node.is_some() { spec.requests.list.milli_cpu } else { 0 };
    }
    all
}

/// Returns the shares of the queues, by name, worked out from nothing.
fn shares(total: i64, sums: &BTreeMap<String, Sums>, objects: &Objects) -> BTreeMap<String, i64> {
    let mut names: Vec<&str> = objects.queues.keys().copied().chain(["default"]).collect();
    names.sort_unstable();
    names.dedup();
    let claim = |name: &&str| {
        let queue = objects.queues.get(name);
        let limit = queue.and_then(|q| q.capability.first()).map_or(i64::MAX, |(_, cpu)| *cpu);
        let weight = queue.and_then(|queue| queue.weight).unwrap_or(1);
        let request = sums.get(*name).map_or(0, |sums| sums.0).min(limit);
        Claim { weight, request, guaranteed: 0, lends: true }
    };
    let claims: Vec<Claim> = names.iter().map(claim).collect();
    names.iter().map(ToString::to_string).zip(fill(total, &claims)).collect()
}

fn check(core: &Core, objects: &Objects, total: i64, at: &str) {
    let sums = expected(core, objects);
    let shares = shares(total, &sums, objects);
    for queue in read(core, "queues", "")["queues"].as_array().expect("queues") {
        let name = queue["name"].as_str().expect("a name");
        let cpu = |key: &str| milli(queue[key]["cpu"].as_str().unwrap_or("0")).expect("a quantity");
        let known = sums.get(name).copied().unwrap_or_default();
        assert_eq!((cpu("request"), cpu("allocated")), known, "{at}: {name}");
        if !objects.queues.is_empty() {
            assert_eq!(cpu("deserved"), shares[name], "{at}: {name} of {total}");
        }
        let capability = objects.queues.get(name).and_then(|q| q.capability.first());
        assert!(capability.is_none_or(|_| queue["capability"]["cpu"].is_string()), "{at}: {name}");
    }
}

fn random_pod(random: &mut Rng, i: usize) -> Pod {
    let milli_cpu = 500 * random.below(6) as i64;
    match random.below(5) {
        0 => shadow(&format!("p{i}"), milli_cpu),
        1 => single(&format!("p{i}"), milli_cpu),
        _ => member(GROUPS[random.below(4)], &format!("p{i}"), milli_cpu),
    }
}

fn change_object(core: &mut Core, objects: &mut Objects, random: &mut Rng) {
    let name = QUEUES[random.below(4)];
    let group_name = GROUPS[random.below(4)];
    match random.below(6) {
        0 => {
            objects.queues.remove(name);
            let key = (Default::default(), name.into());
            core.apply(Input::ObjectDeleted(ObjectKind::QueueIncubator, key));
        }
        1 => {
            objects.groups.remove(group_name);
            let key = ("ns".into(), group_name.into());
            core.apply(Input::ObjectDeleted(ObjectKind::PodGroupIncubator, key));
        }
        2 | 3 => {
            let weight = random.below(4) as i64;
            let made = match random.below(3) {
                0 => limited(name, weight, random.below(8) as i64),
                _ => queue(name, weight),
            };
            objects.queues.insert(name, made.clone());
            see_queue(core, made);
        }
        _ => {
            let min = 1 + random.below(3) as u32;
            objects.groups.insert(group_name, (name, min));
            core.see_object(group(group_name, name, min));
        }
    }
}

#[test]
fn sums_and_shares_are_those_of_the_pods_after_any_history() {
    for seed in 1..40u64 {
        let mut random = Rng::new(seed);
        let (mut core, mut total) = (core_with(8), 8000);
        let mut objects = Objects::default();
        let mut orders: Vec<BindOrder> = Vec::new();
        for step in 0..80 {
            let i = random.below(20);
            match random.below(10) {
                0 | 1 => change_object(&mut core, &mut objects, &mut random),
                2..=5 => {
                    // Also a pod that is there already: it changes its requests, or moves to another group.
                    let pod = random_pod(&mut random, i);
                    match core.node_of(&pod) {
                        Some(at) if core.stage(&pod) == Some(Stage::Bound) => core.see(&on(&pod, &at)),
                        Some(_) => {}
                        None => core.see(&pod),
                    }
                }
                6 => core.delete(&single(&format!("p{i}"), 0)),
                7 if !orders.is_empty() => {
                    let order = orders.swap_remove(random.below(orders.len()));
                    core.report(&order, refused());
                }
                8 if !orders.is_empty() => {
                    let order = orders.swap_remove(0);
                    core.report(&order, BindOutcome::Bound);
                }
                9 if random.below(3) == 0 => {
                    total = 1000 * (6 + random.below(6) as i64);
                    core.see_node(&host("a", total));
                }
                _ => core.wait(SECOND),
            }
            core.run_after(Duration::from_millis(1));
            orders.extend(core.orders());
            core.wait(Duration::ZERO);
            check(&core, &objects, total, &format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn the_order_in_which_things_come_does_not_matter() {
    for seed in 1..30u64 {
        let mut random = Rng::new(seed);
        let bound: Vec<Pod> = (0..12).map(|i| on(&random_pod(&mut random, i), "a")).collect();
        let weights: Vec<i64> = QUEUES.iter().map(|_| random.below(5) as i64).collect();
        let of_group: Vec<usize> = GROUPS.iter().map(|_| random.below(4)).collect();
        let mut seen = Vec::new();
        for round in 0..4 {
            let mut core = core_with(8);
            let mut inputs: Vec<Input> =
                bound.iter().map(|pod| Input::PodApplied(Arc::new(pod.clone()))).collect();
            let queues = QUEUES
                .iter()
                .zip(&weights)
                .map(|(name, weight)| Object::QueueIncubator(queue(name, *weight)));
            let groups = GROUPS.iter().zip(&of_group).map(|(name, queue)| group(name, QUEUES[*queue], 1));
            inputs.extend(queues.chain(groups).map(|object| Input::ObjectApplied(Arc::new(object))));
            let mut order = Rng::new(seed * 31 + round);
            for at in (1..inputs.len()).rev() {
                inputs.swap(at, order.below(at + 1));
            }
            inputs.into_iter().for_each(|input| core.apply(input));
            core.wait(Duration::ZERO);
            seen.push((read(&core, "state", ""), read(&core, "queues", "")));
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {seen:#?}");
    }
}
