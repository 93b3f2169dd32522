//! Quotas, gangs, preemption, reclaim and overuse in one random history: no placement exceeds a quota, no quorum is
//! decided in part, and evictions come to an end although every victim comes back.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::model::effect::{BindOrder, BindOutcome, EvictOutcome};

use super::*;
use crate::common::rng::Rng;

const LEAVES: [&str; 4] = ["team-a", "team-b", "team-c", "alone"];
const GANG_SIZE: usize = 3;

/// A cluster with a scheduler, and controllers that make a new pod for each that is evicted.
struct World {
    core: Core,
    random: Rng,
    /// All pods that exist, by name.
    pods: BTreeMap<String, Pod>,
    /// Pods on their way out.
    leaving: BTreeSet<String>,
    bindings: Vec<BindOrder>,
    /// Gangs that had a quorum once; later members need none.
    satisfied: BTreeSet<String>,
    made: usize,
    evictions: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let args = json!({"enableReclaim": true, "monitorAllQuotas": true, "delayEvictTime": "5s"});
        let mut random = Rng::new(seed);
        let mut core = core_with(args, 12_000);
        core.see_node(&node("b", 8_000));
        core.see_node(&node("c", 4_000));
        for name in ["org", "team-a", "team-b", "team-c", "alone"] {
            see(&mut core, &Self::quota(name, &mut random));
        }
        Self {
            core,
            random,
            pods: BTreeMap::new(),
            leaving: BTreeSet::new(),
            bindings: Vec::new(),
            satisfied: BTreeSet::new(),
            made: 0,
            evictions: 0,
        }
    }

    fn quota(name: &str, random: &mut Rng) -> Value {
        let min = if name == "org" { 12 } else { random.below(5) as i64 };
        let mut made = manifest(name, min, 6 + random.below(18) as i64);
        let prefix = "quota.scheduling.koordinator.sh";
        match name {
            "org" => made["metadata"]["labels"] = json!({format!("{prefix}/is-parent"): "true"}),
            "alone" => {}
            _ => made["metadata"]["labels"] = json!({format!("{prefix}/parent"): "org"}),
        }
        made
    }

    /// Creates a pod, or the members of a gang.
    fn create(&mut self) {
        let quota = LEAVES[self.random.below(LEAVES.len())];
        let (cpu, priority) = (500 * (1 + self.random.below(6)) as i64, self.random.below(4) as i32);
        let fixed = self.random.below(8) == 0;
        let is_gang = self.random.below(4) == 0;
        let first = self.made;
        for i in 0..if is_gang { GANG_SIZE } else { 1 } {
            let pod = evicting::rank(of(quota, &format!("p{}", first + i), cpu), priority);
            let pod = if fixed { super::fixed(&pod) } else { pod };
            self.add(if is_gang { in_gang(pod, &format!("g{first}"), GANG_SIZE as u32) } else { pod });
        }
    }

    fn add(&mut self, pod: Pod) {
        self.made += 1;
        self.core.see(&pod);
        self.pods.insert(pod.key.name.to_string(), pod);
    }

    /// Plans until nothing is active, and checks each step.
    fn run(&mut self) {
        loop {
            let before = self.placed();
            if self.core.step().is_none() {
                break;
            }
            let placed: Vec<String> = self.placed().difference(&before).cloned().collect();
            self.check(&placed);
        }
        self.carry_out();
    }

    fn placed(&self) -> BTreeSet<String> {
        let pods = self.pods.iter().filter(|(_, pod)| self.core.node_of(pod).is_some());
        pods.map(|(name, _)| name.clone()).collect()
    }

    /// Checks what one step placed.
    fn check(&mut self, placed: &[String]) {
        let quotas = if placed.is_empty() { Value::Null } else { read(&self.core, "quotas", "") };
        let milli =
            |of: &Value| pellucid::model::quantity::milli(of["cpu"].as_str().unwrap_or("0")).expect("cpu");
        for pod in placed.iter().map(|name| &self.pods[name]) {
            let quota = &quotas[pod.labels.text(LABEL).expect("each names one")];
            let (used, runtime) = (milli(&quota["used"]), milli(&quota["runtime"]));
            assert!(used <= runtime, "{}: {} uses {used} of {runtime}", pod.key, quota["name"]);
            if let Some(gang) = &pod.gang {
                let of_gang = |other: &&Pod| other.gang.as_ref().is_some_and(|g| g.gang == gang.gang);
                let there = self.pods.values().filter(of_gang).filter(|p| self.core.node_of(p).is_some());
                let is_quorum = there.count() >= GANG_SIZE || self.satisfied.contains(&gang.gang.to_string());
                assert!(is_quorum, "{}: less than a quorum was placed", pod.key);
                self.satisfied.insert(gang.gang.to_string());
            }
        }
    }

    /// Carries out what was ordered: evicted pods get a deletion time, and what else was ordered is done.
    fn carry_out(&mut self) {
        self.core.scheduler.order_due_writes(self.core.now);
        let ordered = self.core.ordered();
        self.bindings.extend(ordered.bindings);
        for order in &ordered.evictions {
            self.core.evicted(order, EvictOutcome::Deleted);
            self.leave(order.victim.key.name.as_ref());
        }
        for order in &ordered.writes {
            self.core.settle(order, WriteOutcome::Written);
            if let ObjectWrite::Evict { pod, .. } = &order.write {
                self.leave(pod.key.name.as_ref());
            }
        }
    }

    fn leave(&mut self, name: &str) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        let node = self.core.node_of(pod);
        if self.core.stage(pod) != Some(Stage::Bound) {
            // It is not bound yet, so it goes at once.
            let pod = self.pods.remove(name).expect("it is there");
            self.core.delete(&pod);
            self.come_back(&pod);
            return;
        }
        if self.leaving.insert(name.to_owned()) {
            self.evictions += 1;
            pod.deleting = true;
            let bound = on(pod, &node.expect("bound"));
            self.core.see(&bound);
        }
    }

    /// The last pods that were evicted are gone, and their controllers make new ones.
    fn end_leaving(&mut self, most: usize) {
        for _ in 0..most {
            let Some(name) = self.leaving.pop_first() else { return };
            let pod = self.pods.remove(&name).expect("it is there");
            self.core.delete(&pod);
            self.come_back(&pod);
        }
    }

    fn come_back(&mut self, gone: &Pod) {
        let name = format!("p{}", self.made);
        let made = pod(&name, 0);
        let fresh = Pod { key: made.key, uid: made.uid, deleting: false, started: None, ..gone.clone() };
        self.add(fresh);
    }

    fn bind(&mut self, most: usize) {
        for _ in 0..most.min(self.bindings.len()) {
            let order = self.bindings.remove(0);
            self.core.report(&order, BindOutcome::Bound);
            if let Some(pod) = self.pods.get_mut(&*order.pod.key.name) {
                let at = self.core.now.monotonic.as_secs() as i64;
                pod.started = Some(at);
                let bound = on(pod, &order.node);
                self.core.see(&bound);
            }
        }
    }

    /// Something happens.
    fn step(&mut self) {
        match self.random.below(12) {
            0..=4 => self.create(),
            5 | 6 => self.bind(4),
            7 => self.end_leaving(2),
            8 => {
                let name = LEAVES[self.random.below(LEAVES.len())];
                let quota = Self::quota(name, &mut self.random);
                see(&mut self.core, &quota);
            }
            9 => {
                let at = self.random.below(self.pods.len().max(1));
                let name = self.pods.keys().nth(at).filter(|name| !self.leaving.contains(*name)).cloned();
                if let Some(pod) = name.and_then(|name| self.pods.remove(&name)) {
                    self.core.delete(&pod);
                }
            }
            _ => self.core.wait(SECOND),
        }
        self.core.wait(Duration::from_millis(10));
        self.run();
    }

    /// Lets everything settle: nothing new comes but what was evicted.
    fn settle(&mut self) {
        self.bind(usize::MAX);
        self.end_leaving(usize::MAX);
        self.core.wait(2 * SECOND);
        self.run();
    }
}

#[test]
fn quotas_gangs_reclaim_and_overuse_together() {
    let mut evictions = 0;
    for seed in 1..=60u64 {
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.step();
        }
        for _ in 0..60 {
            world.settle();
        }
        let settled = world.evictions;
        for _ in 0..60 {
            world.settle();
        }
        assert_eq!(world.evictions, settled, "seed {seed}: evictions do not end");
        evictions += settled;
    }
    assert!(evictions > 300, "{evictions}: the histories do what they are about");
}
