//! What quotas count in random histories: the sum over the pods, whatever happened.

use std::collections::BTreeMap;

use super::*;
use crate::common::rng::Rng;

const QUOTAS: [&str; 4] = ["org", "team-a", "team-b", "alone"];

fn quota(name: &str, random: &mut Rng) -> Value {
    let mut made = manifest(name, random.below(6) as i64, 2 + random.below(12) as i64);
    if name.starts_with("team") && random.below(4) > 0 {
        made["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/parent": "org"});
    }
    made
}

/// Returns what is used by quota and everything above, from the pods in the state alone.
fn expected(core: &Core, quotas: &BTreeMap<String, Option<String>>) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for (_, record) in core.scheduler.cluster().pods().filter(|(_, record)| record.node.is_some()) {
        let named = record.pod.labels.text(LABEL).filter(|name| quotas.contains_key(*name));
        let mut at = Some(named.unwrap_or("koordinator-default-quota").to_owned());
        while let Some(name) = at {
            *all.entry(name.clone()).or_default() += record.pod.spec.requests.list.milli_cpu;
            at = quotas.get(&name).cloned().flatten().filter(|parent| quotas.contains_key(parent));
        }
    }
    all
}

fn check(core: &Core, quotas: &BTreeMap<String, Option<String>>, at: &str) {
    let all = read(core, "quotas", "");
    let expected = expected(core, quotas);
    for (name, summary) in all.as_object().expect("quotas") {
        let used = summary["used"]["cpu"].as_str().unwrap_or("0");
        let used = pellucid::model::quantity::milli(used).expect("a quantity");
        assert_eq!(used, expected.get(name).copied().unwrap_or(0), "{at}: {name}");
    }
}

/// Starts anew: a scheduler that hears of everything for the first time, in another order, and of what was bound.
fn restarted(core: &Core, args: &Value, objects: &BTreeMap<&str, Value>) -> Core {
    let mut again = core_with(args.clone(), 20_000);
    for (_, record) in core.scheduler.cluster().pods() {
        match (&record.node, record.stage) {
            (Some(_), Stage::Bound) => again.see(&on(&record.pod, "a")),
            _ => again.see(&record.pod),
        }
    }
    objects.values().rev().for_each(|made| see(&mut again, made));
    again.wait(Duration::ZERO);
    again
}

#[test]
fn used_is_the_sum_over_the_pods_after_any_history() {
    for seed in 1..40u64 {
        let mut random = Rng::new(seed);
        let args = json!({"enableReclaim": seed % 2 == 0});
        let mut core = core_with(args.clone(), 20_000);
        let mut quotas: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut objects = BTreeMap::new();
        let mut orders = Vec::new();
        let pod_of = |random: &mut Rng, i: usize| {
            let quota = ["team-a", "team-b", "alone", "nobody"][random.below(4)];
            let pod = of(quota, &format!("p{i}"), 500 * (1 + random.below(6)) as i64);
            if i.is_multiple_of(5) { in_gang(pod, "g", 3) } else { pod }
        };
        for step in 0..80 {
            let i = random.below(20);
            match random.below(10) {
                0 => {
                    let name = QUOTAS[random.below(4)];
                    let made = quota(name, &mut random);
                    let parent =
                        made["metadata"]["labels"]["quota.scheduling.koordinator.sh/parent"].as_str();
                    quotas.insert(name.to_owned(), parent.map(str::to_owned));
                    see(&mut core, &made);
                    objects.insert(name, made);
                }
                1 if random.below(2) == 0 => {
                    let name = QUOTAS[random.below(4)];
                    quotas.remove(name);
                    objects.remove(name);
                    forget(&mut core, name);
                }
                2..=5 => {
                    // Also a pod that is there already: it changes its requests, or moves to another quota.
                    let pod = pod_of(&mut random, i);
                    match core.node_of(&pod) {
                        Some(at) if core.stage(&pod) == Some(Stage::Bound) => core.see(&on(&pod, &at)),
                        Some(_) => {}
                        None => core.see(&pod),
                    }
                }
                6 => core.delete(&pod(&format!("p{i}"), 0)),
                7 if random.below(8) == 0 => {
                    core = restarted(&core, &args, &objects);
                    orders.clear();
                }
                7 if !orders.is_empty() => {
                    let order = orders.swap_remove(random.below(orders.len()));
                    core.report(&order, crate::common::made::refused());
                }
                8 if !orders.is_empty() => {
                    let order: pellucid::model::effect::BindOrder = orders.swap_remove(0);
                    core.report(&order, pellucid::model::effect::BindOutcome::Bound);
                }
                _ => core.wait(SECOND),
            }
            core.run_after(Duration::from_millis(1));
            orders.extend(core.orders());
            check(&core, &quotas, &format!("seed {seed}, step {step}"));
        }
    }
}
