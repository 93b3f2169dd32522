//! Looks further than FGD: what stays idle of a node when pods come as typical ones do, largest first, and the node takes
//! each that fits, on the card on which it leaves least.
//!
//! FGD asks of each typical pod alone whether it fits. Filling a node up also tells whether what is left fits together:
//! two halves of a card and a third, but CPU for two pods.

use smallvec::SmallVec;

use super::typical::Given;

/// Pods of one wish that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Coming {
    milli_cpu: i64,
    gpus: u32,
    percent: u8,
    times: u32,
}

/// The pods that come to a node, largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Future {
    coming: Vec<Coming>,
    /// The least CPU of any of them and of those behind, by position.
    least_cpu: Vec<i64>,
}

impl Future {
    /// Spreads `pods` over wishes by their weights, of which `weights` is the sum. Wishes that come less than half a time
    /// do not come.
    pub(super) fn new(wishes: &[(&Given, i64)], weights: i64, pods: u32) -> Self {
        let coming = wishes.iter().map(|(given, weight)| {
            let times = (2 * i64::from(pods) * weight + weights) / (2 * weights.max(1));
            let wish = &given.wish;
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            Coming { milli_cpu: wish.milli_cpu, gpus: wish.gpus, percent: wish.percent, times }
        });
        let mut coming: Vec<Coming> = coming.filter(|coming| coming.times > 0).collect();
        coming.sort_by_key(|coming| std::cmp::Reverse(u64::from(coming.gpus) * u64::from(coming.percent)));
        let mut least_cpu: Vec<i64> = coming.iter().map(|coming| coming.milli_cpu).collect();
        for at in (1..least_cpu.len()).rev() {
            least_cpu[at - 1] = least_cpu[at - 1].min(least_cpu[at]);
        }
        Self { coming, least_cpu }
    }

    /// Returns what stays idle of the cards, in percent of one, with so much CPU left.
    pub(super) fn idle_after(&self, mut cpu: i64, left: impl Iterator<Item = u8>) -> i64 {
        let mut left: SmallVec<[u8; 16]> = left.collect();
        let mut idle: i64 = left.iter().map(|left| i64::from(*left)).sum();
        for (coming, least_cpu) in self.coming.iter().zip(&self.least_cpu) {
            if idle == 0 || cpu < *least_cpu {
                break;
            }
            for _ in 0..coming.times {
                if cpu < coming.milli_cpu || !coming.take(&mut left) {
                    break;
                }
                cpu -= coming.milli_cpu;
                idle -= i64::from(coming.gpus) * i64::from(coming.percent);
            }
        }
        idle
    }
}

impl Coming {
    /// Takes cards for one pod, those first on which it leaves least. Returns whether there are enough.
    fn take(&self, left: &mut [u8]) -> bool {
        let able = left.iter().filter(|left| **left >= self.percent).count();
        if able < self.gpus as usize {
            return false;
        }
        for _ in 0..self.gpus {
            let fits = left.iter_mut().filter(|left| **left >= self.percent);
            if let Some(least) = fits.min_by_key(|left| **left) {
                *least -= self.percent;
            }
        }
        true
    }
}
