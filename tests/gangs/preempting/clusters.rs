//! Random clusters in which gangs preempt: no pod is evicted unless the quorum then fits.

use std::sync::Arc;

use pellucid::model::relations::{PodAffinityTerm, PodTerms};

use super::*;

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Gives a member anti-affinity to its siblings on the same node.
fn apart(pod: Pod) -> Pod {
    let mut pod = labelled(pod, "high");
    let term = PodAffinityTerm {
        topology_key: "host".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "high".into())])),
        ..PodAffinityTerm::default()
    };
    Arc::make_mut(&mut pod.spec).pod_anti_affinity =
        PodTerms { required: [term].into(), preferred: [].into() };
    pod
}

fn random_gang(dice: &mut Dice) -> (Vec<Pod>, usize) {
    let n = 1 + dice.below(6) as usize;
    let min = 1 + dice.below(n as u64) as usize;
    let (is_apart, is_mixed) = (dice.below(3) == 0, dice.below(2) == 0);
    let of = |i: usize| {
        let cpu = if is_mixed { 300 * (1 + dice.below(6) as i64) } else { 900 };
        let pod = member("high", &format!("high-{i}"), cpu, terms(min as u32));
        let pod = ranked(pod, 5 + dice.below(2) as i32);
        if is_apart { apart(pod) } else { pod }
    };
    ((0..n).map(of).collect(), min)
}

#[test]
fn nobody_is_evicted_unless_the_quorum_then_fits() {
    let (mut evicting, mut placed_at_once, mut refused) = (0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut core = core_with(&[]);
        let n_nodes = 1 + dice.below(5);
        (0..n_nodes).for_each(|i| see_host(&mut core, &format!("n{i}"), 1000 + 500 * dice.below(5) as i64));
        let mut low = Vec::new();
        for i in 0..dice.below(12) {
            let (cpu, node) = (200 * (1 + dice.below(6) as i64), format!("n{}", dice.below(n_nodes)));
            let name = format!("low-{i}");
            let pod = match dice.below(3) {
                0 => member(["red", "blue"][dice.below(2) as usize], &name, cpu, terms(2)),
                _ => single(&name, cpu),
            };
            let pod = on(&ranked(pod, dice.below(8) as i32), &node);
            low.push(if dice.below(3) == 0 { labelled(pod, "web") } else { pod });
        }
        core.see_all(&low);
        core.protect("web", dice.below(3) as i32);
        let (gang, min) = random_gang(&mut dice);
        core.see_all(&gang);
        // Members beyond the quorum come later, and may evict for themselves.
        core.step();
        let ordered = core.ordered();
        let lowest = gang.iter().map(|pod| pod.priority).min().unwrap_or_default();
        let gone: Vec<&Pod> = low.iter().filter(|p| ordered.victims().contains(&&*p.key.name)).collect();
        assert!(gone.iter().all(|pod| pod.priority < lowest), "{seed}: {:?}", ordered.victims());
        if gone.is_empty() {
            match core.placed(&gang) >= min {
                true => placed_at_once += 1,
                false => refused += 1,
            }
            assert_eq!(core.n_nominated(&gang), 0, "{seed}");
            continue;
        }
        evicting += 1;
        let part: Vec<_> =
            gang.iter().filter(|pod| core.nominations(&[(*pod).clone()])[0].is_some()).collect();
        let of_quorum = core.placed(&gang) + part.len();
        assert!(of_quorum >= min, "{seed}: {of_quorum} of {min}");
        gone.iter().for_each(|pod| core.delete(pod));
        core.run();
        assert!(
            core.placed(&gang) >= min,
            "{seed}: {} of {min} placed: {:?}",
            core.placed(&gang),
            core.outcome("high")
        );
    }
    assert!(evicting > 40 && placed_at_once > 40 && refused > 40, "{evicting} {placed_at_once} {refused}");
}
