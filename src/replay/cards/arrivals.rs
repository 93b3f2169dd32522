//! Draws the pods of one run: all pods of a trace in random order, then further ones drawn with replacement, until
//! they request a part of the cluster's GPUs.
//!
//! The generator is splitmix64, so a seed gives the same pods everywhere.

use super::super::{TraceNode, TracePod};

/// What arrives in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Pods in the order of their arrival; those that were drawn again have names of their own.
    pub pods: Vec<TracePod>,
    /// GPUs of the cluster, in thousandths.
    pub capacity_milli: u64,
}

impl TracePod {
    /// Returns the requested GPUs, in thousandths.
    pub fn all_gpu_milli(&self) -> u64 {
        self.gpus * self.gpu_milli
    }
}

/// Draws the pods of a run that request up to `percent` of the cluster's GPUs. Where the trace requests more, pods are
/// left out at random; where it requests less, pods are drawn again. Fails when no pod of the trace requests a GPU.
pub fn arrivals(
    nodes: &[TraceNode],
    pods: &[TracePod],
    percent: u32,
    seed: u64,
) -> Result<Arrivals, &'static str> {
    let capacity_milli = nodes.iter().map(|node| 1000 * node.gpus).sum::<u64>();
    let wanted = capacity_milli * u64::from(percent) / 100;
    if pods.iter().all(|pod| pod.all_gpu_milli() == 0) {
        return Err("no pod requests a GPU");
    }
    let mut random = Random(seed);
    let mut drawn: Vec<TracePod> = pods.to_vec();
    for last in (1..drawn.len()).rev() {
        drawn.swap(last, random.below(last + 1));
    }
    let mut requested: u64 = drawn.iter().map(TracePod::all_gpu_milli).sum();
    while requested > wanted {
        let left_out = drawn.remove(random.below(drawn.len()));
        requested -= left_out.all_gpu_milli();
    }
    let mut again = 0;
    // A trace of large pods may come no nearer to what is wanted; then the first that would be too much ends it.
    loop {
        let pod = &pods[random.below(pods.len())];
        if requested + pod.all_gpu_milli() > wanted {
            return Ok(Arrivals { pods: drawn, capacity_milli });
        }
        again += 1;
        requested += pod.all_gpu_milli();
        drawn.push(TracePod { name: format!("{}-again-{again}", pod.name), ..pod.clone() });
    }
}

struct Random(u64);

impl Random {
    /// Returns a number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing::{node, pod};
    use super::*;

    #[test]
    fn all_pods_come_once_before_any_comes_again() {
        let nodes = [node("a", 4)];
        let pods: Vec<TracePod> = (0..20).map(|n| pod(&format!("p{n}"), 1, 100)).collect();
        let drawn = arrivals(&nodes, &pods, 130, 42).expect("pods request GPUs");
        assert_eq!((drawn.capacity_milli, drawn.pods.len()), (4000, 52));
        let first: BTreeSet<&str> = drawn.pods[..20].iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(first.len(), 20);
        assert!(drawn.pods[..20].iter().all(|pod| !pod.name.contains("again")));
        let names: BTreeSet<&str> = drawn.pods.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(names.len(), 52, "names are unique");
        assert_eq!(arrivals(&nodes, &pods, 130, 42), Ok(drawn.clone()));
        assert_ne!(arrivals(&nodes, &pods, 130, 43), Ok(drawn));
    }

    #[test]
    fn a_trace_that_requests_more_loses_pods() {
        let pods: Vec<TracePod> = (0..20).map(|n| pod(&format!("p{n}"), 1, 1000)).collect();
        let drawn = arrivals(&[node("a", 4)], &pods, 150, 1).expect("pods request GPUs");
        assert_eq!(drawn.pods.len(), 6);
        let none = [pod("p", 0, 0)];
        assert_eq!(arrivals(&[node("a", 4)], &none, 100, 1), Err("no pod requests a GPU"));
        assert_eq!(arrivals(&[node("a", 0)], &pods, 130, 1).map(|drawn| drawn.pods.len()), Ok(0));
    }
}
