//! Fragmentation as FGD defines it: the part of the idle GPUs that a typical pod cannot use, on average over the typical
//! pods.
//!
//! For one typical pod, all idle GPUs of a node are fragments when the pod requests no GPU, does not fit, or does not
//! accept the model; else those cards are of which less is left than the pod requests of one.

use std::collections::BTreeMap;

use super::super::TracePod;
use super::ledger::NodeRoom;

/// Part of a trace's pods that the typical ones make up, in percent.
const COVERED: u64 = 95;

/// A shape of pods that is frequent in a trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Typical {
    /// Requested CPU, in thousandths of a core.
    pub cpu_milli: u64,
    /// Number of GPUs.
    pub gpus: u64,
    /// Thousandths of each GPU.
    pub gpu_milli: u64,
    /// Accepted models; empty for any.
    pub models: Vec<String>,
    /// How many pods of the trace have this shape.
    pub count: u64,
}

/// Returns the most frequent shapes, which together make up 95 % of the pods. The most frequent come first.
pub fn typical_pods(pods: &[TracePod]) -> Vec<Typical> {
    let mut counts: BTreeMap<Typical, u64> = BTreeMap::new();
    for pod in pods {
        let TracePod { cpu_milli, gpus, gpu_milli, .. } = *pod;
        let shape = Typical { cpu_milli, gpus, gpu_milli, models: pod.models.clone(), count: 0 };
        *counts.entry(shape).or_default() += 1;
    }
    let mut all: Vec<Typical> = counts.into_iter().map(|(shape, count)| Typical { count, ..shape }).collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
    let mut covered = 0;
    let is_wanted = |typical: &Typical| {
        let is_short = 100 * covered < COVERED * pods.len() as u64;
        covered += typical.count;
        is_short
    };
    all.into_iter().take_while(is_wanted).collect()
}

/// Returns the fragments of a node in percent of a card, times the number of typical pods.
pub(super) fn fragments(room: &NodeRoom, typical: &[Typical]) -> u64 {
    let idle: u64 = room.left().sum();
    let of = |typical: &Typical| {
        let percent = typical.gpu_milli.div_ceil(10);
        let able = room.left().filter(|left| *left >= percent).count() as u64;
        let fits = typical.gpus > 0
            && room.free_cpu_milli >= typical.cpu_milli as i64
            && (typical.models.is_empty() || typical.models.contains(&room.model))
            && able >= typical.gpus;
        match fits {
            true => room.left().filter(|left| *left < percent).sum(),
            false => idle,
        }
    };
    typical.iter().map(|typical| typical.count * of(typical)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::ledger::CardLedger;
    use super::super::testing::{node, pod};
    use super::*;

    #[test]
    fn the_most_frequent_shapes_that_cover_95_percent_are_typical() {
        let mut pods: Vec<TracePod> = (0..90).map(|n| pod(&format!("a{n}"), 1, 500)).collect();
        pods.extend((0..6).map(|n| pod(&format!("b{n}"), 0, 0)));
        pods.extend((0..4).map(|n| pod(&format!("c{n}"), 8, 1000)));
        let typical = typical_pods(&pods);
        let shapes: Vec<(u64, u64)> = typical.iter().map(|t| (t.gpus, t.count)).collect();
        assert_eq!(shapes, [(1, 90), (0, 6)]);
    }

    #[test]
    fn what_a_typical_pod_cannot_use_is_a_fragment() {
        let mut ledger = CardLedger::new(&[node("a", 2)]);
        let given = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"70","koordinator.sh/gpu-memory-ratio":"70"}}]}"#;
        ledger.book(&pod("p", 1, 700), "a", given);
        assert_eq!(ledger.faults, [""; 0]);
        let room = ledger.node("a").expect("it is there");
        let typical = |gpus, gpu_milli, models: &[&str]| Typical {
            cpu_milli: 1500,
            gpus,
            gpu_milli,
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            count: 2,
        };
        let of = |typical: Typical| fragments(room, &[typical]);
        assert_eq!(of(typical(1, 300, &[])), 0, "both cards will do");
        assert_eq!(of(typical(1, 500, &[])), 60, "30 of the first card are too little");
        assert_eq!(of(typical(2, 1000, &[])), 260, "only one card is whole");
        assert_eq!(of(typical(0, 0, &[])), 260, "it uses no GPU");
        assert_eq!(of(typical(1, 300, &["T4"])), 260, "the model is another");
        assert_eq!(of(Typical { cpu_milli: 64_000, ..typical(1, 300, &[]) }), 260, "the CPU is too little");
    }
}
