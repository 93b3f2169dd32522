//! What is said of random gangs that have no quorum, tried on schedulers of their own: never, not now, the numbers, and
//! every fix.

use std::sync::Arc;

use pellucid::cluster::Stage;
use pellucid::model::gang::{Dialect, GangTerms};
use pellucid::model::{Node, Pod, PodSpec, quantity};
use serde_json::Value;

use crate::common::driver::Core;
use crate::common::made::{self, on, requests};
use crate::common::reads::{ask, list, number, text};
use crate::gangs::made::{SECOND, host, in_dialect, non_strict, single, terms};

const SEEDS: u64 = 150;

/// A linear generator, so that a seed says everything.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The objects of a cluster with one gang.
struct Objects {
    nodes: Vec<Node>,
    placed: Vec<Pod>,
    members: Vec<Pod>,
}

impl Objects {
    fn random(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let nodes: Vec<Node> = (0..2 + dice.roll(4))
            .map(|i| host(&format!("n{i}"), 2000 + 1000 * dice.roll(4) as i64))
            .collect();
        let mut placed = Vec::new();
        for node in &nodes {
            let mut left = node.allocatable.milli_cpu;
            for i in 0..dice.roll(3) {
                let cpu = 500 * (1 + dice.roll(4) as i64);
                if cpu <= left {
                    left -= cpu;
                    let pod = single(&format!("filler-{}-{i}", node.name), cpu);
                    let is_static = dice.roll(5) == 0;
                    placed.push(Pod { is_static, ..on(&pod, &node.name) });
                }
            }
        }
        let n = 2 + dice.roll(7);
        let min = 2 + dice.roll(n - 1) as u32;
        let terms = if dice.roll(3) == 0 { non_strict(min, 600 * SECOND) } else { terms(min) };
        let dialect = [Dialect::Koordinator, Dialect::Unicore, Dialect::Coscheduling][dice.roll(3) as usize];
        let sizes = [500 * (1 + dice.roll(5) as i64), 500 * (1 + dice.roll(5) as i64)];
        // Most gangs have equal members.
        let kinds = if dice.roll(3) == 0 { 2 } else { 1 };
        let member =
            |i: u64| in_dialect(dialect, "g", &format!("g-{i}"), sizes[(i % kinds) as usize], terms.clone());
        Self { nodes, placed, members: (0..n).map(member).collect() }
    }

    /// Lets a scheduler try the gang until nothing changes.
    fn core(&self) -> Core {
        let mut core = made::core_with(&self.nodes);
        core.see_all(&self.placed);
        core.attempt_all(&self.members);
        for _ in 0..3 {
            core.run_after(30 * SECOND);
        }
        core
    }

    /// Changes the settled cluster, and lets its scheduler try the gang again.
    fn after(&self, change: impl FnOnce(&mut Core)) -> Core {
        let mut core = self.core();
        change(&mut core);
        for _ in 0..3 {
            core.run_after(30 * SECOND);
        }
        core
    }

    fn set_quorum(&self, core: &mut Core, min: u32) {
        for pod in &self.members {
            let mut mark = pod.gang.as_deref().expect("a member").clone();
            mark.terms = GangTerms { min: Some(min), ..mark.terms };
            core.see(&Pod { gang: Some(Arc::new(mark)), ..pod.clone() });
        }
    }

    /// Returns whether the gang has its quorum once some pods have left.
    fn has_quorum_without(&self, leaves: impl Fn(&Pod) -> bool) -> bool {
        let core = self.after(|core| {
            self.placed.iter().filter(|pod| leaves(pod)).for_each(|pod| core.delete(pod));
        });
        core.gang("g").is_satisfied()
    }

    /// Empties the settled cluster of every pod that can leave.
    fn emptied(&self) -> Core {
        let mut core = self.after(|core| {
            self.placed.iter().filter(|pod| pod.can_leave()).for_each(|pod| core.delete(pod));
        });
        // Members that wait may have to give up their places first: their wait runs out.
        (0..20).for_each(|_| drop(core.run_after(60 * SECOND)));
        core
    }

    fn apply(&self, core: &mut Core, edit: &Value) {
        let (what, how) = edit.as_object().and_then(|edit| edit.iter().next()).expect("an edit");
        match what.as_str() {
            "setQuorum" => self.set_quorum(core, number(how, "/min") as u32),
            "deletePod" => {
                let pod = self.placed.iter().find(|pod| Some(&*pod.key.to_string()) == how.as_str());
                core.delete(pod.expect("a pod"));
            }
            "copyNode" => {
                let like = self.nodes.iter().find(|node| *node.name == *text(how, "/node")).expect("a node");
                core.see_node(&host(text(how, "/name"), like.allocatable.milli_cpu));
            }
            "setRequest" => {
                let amount = quantity::milli(text(how, "/amount")).expect("an amount");
                for pod in &self.members {
                    if core.stage(pod) != Some(Stage::Pending) {
                        continue;
                    }
                    let spec = PodSpec { requests: requests(amount), ..PodSpec::clone(&pod.spec) };
                    core.see(&Pod { spec: Arc::new(spec), ..pod.clone() });
                }
            }
            other => panic!("no test knows the edit {other}"),
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    never: usize,
    not_now: usize,
    fixes: usize,
    beyond: usize,
}

fn look(seed: u64, seen: &mut Seen) {
    let objects = Objects::random(seed);
    let mut core = objects.core();
    if core.gang("g").is_satisfied() {
        return;
    }
    let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
    let feasible = ask(&mut core, "/apis/v1/explain/gangs/ns/g/feasibility");
    let code = text(&body, "/outlook/code");
    let what = format!("seed {seed}: {body:#}");
    assert_eq!(body["outlook"], feasible["outlook"], "{what}");
    // The numbers agree.
    let (wanted, now) = (number(&feasible, "/wanted"), number(&feasible, "/slotsNow"));
    assert_eq!(
        (number(&body, "/counts/wanted"), number(&body, "/counts/placeable")),
        (wanted, now),
        "{what}"
    );
    assert_eq!(number(&feasible, "/slotsMissing"), wanted - now, "{what}");
    assert_eq!(number(&body, "/rootCause/others"), wanted - now - 1, "{what}");
    let said = text(&body, "/verdict/message");
    assert!(said.contains(&format!("{now} of {wanted} members")), "{what}");
    // As many have places as is said.
    let counted = number(&feasible, "/counted");
    if now + counted > 0 {
        let fewer = objects.after(|core| objects.set_quorum(core, (now + counted) as u32));
        assert!(fewer.gang("g").is_satisfied(), "{what}");
    }
    let emptied = objects.emptied();
    for pod in &objects.members {
        let member = ask(&mut core, &format!("/apis/v1/explain/pods/{}/feasibility", pod.key));
        if !member["alone"].is_null() {
            let own = text(&member, "/verdict/code");
            // Beyond the quorum there may be no room for a member.
            let is_beyond = code == "NotNow" && matches!(own, "NotKnown" | "NeverFits");
            assert!(own == code || is_beyond, "{}: {own}; {what}", pod.key);
            seen.beyond += usize::from(own != code);
            let stage = emptied.stage(pod);
            let is_placed = stage.is_some_and(|stage| !matches!(stage, Stage::Pending | Stage::Waiting));
            match own {
                "NeverFits" => assert!(!is_placed, "{}: {what}", pod.key),
                "NotNow" => assert!(is_placed, "{}: {what}", pod.key),
                _ => {}
            }
        }
    }
    match code {
        "NeverFits" => {
            seen.never += 1;
            assert!(!objects.has_quorum_without(Pod::can_leave), "{what}");
            assert!(!text(&body, "/verdict/remedy").contains("Wait for pods to end"), "{what}");
        }
        "NotNow" => {
            seen.not_now += 1;
            let leaving: Vec<&str> = body["outlook"]["wouldLeave"]
                .as_array()
                .map_or_else(Vec::new, |pods| pods.iter().filter_map(Value::as_str).collect());
            if leaving.is_empty() {
                // Members that wait may have to give up their places first: their wait runs out.
                let mut core = objects.after(|core| {
                    objects.placed.iter().filter(|pod| pod.can_leave()).for_each(|pod| core.delete(pod));
                });
                (0..20).for_each(|_| drop(core.run_after(60 * SECOND)));
                assert!(core.gang("g").is_satisfied(), "{what}");
            } else {
                let leaves = |pod: &Pod| leaving.contains(&&*pod.key.to_string());
                assert!(objects.has_quorum_without(leaves), "{what}");
            }
        }
        other => panic!("{other}: {what}"),
    }
    let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g/suggestions?max=10");
    assert_eq!(number(&body, "/slotsMissing"), wanted - now, "{body:#}");
    for fix in list(&body, "/fixes") {
        seen.fixes += 1;
        let core = objects.after(|core| {
            list(fix, "/edits").iter().for_each(|edit| objects.apply(core, edit));
        });
        assert!(core.gang("g").is_satisfied(), "seed {seed}: {fix:#}");
        assert_eq!(
            number(fix, "/gang/placed"),
            i64::from(core.gang("g").counts.placed()),
            "seed {seed}: {fix:#}"
        );
    }
}

#[test]
fn what_is_said_of_random_gangs_is_true() {
    let mut seen = Seen::default();
    (0..SEEDS).for_each(|seed| look(seed, &mut seen));
    assert!(seen.never > 15 && seen.not_now > 15 && seen.fixes > 100 && seen.beyond > 5, "{seen:?}");
}
