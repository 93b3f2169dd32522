//! Amounts of two resources of a node: most scores are made of those of CPU and memory, one node at a time.

use pellucid_cluster::columns::{CPU, ColumnPage, MEMORY};
use pellucid_framework::View;
use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

use crate::scored::{Counting, Scored};

/// Where two resources of a node stand.
pub trait TwoColumns: Copy + Send + Sync {
    /// Returns their allocatable and requested amounts at a place of a page.
    fn amounts(&self, page: &ColumnPage, at: usize) -> [(i64, i64); 2];
}

/// Any two resources.
#[derive(Clone, Copy, Debug)]
pub struct AnyTwo(pub [Scored; 2]);

/// CPU and memory, the default. `WITH_DEFAULTS` says how requests are counted ([`Counting`]).
#[derive(Clone, Copy, Debug)]
pub struct CpuAndMemory<const WITH_DEFAULTS: bool>;

impl AnyTwo {
    /// Returns whether these are [`CpuAndMemory`], and if so, whether with defaults.
    pub fn are_cpu_and_memory(&self) -> Option<bool> {
        let [cpu, memory] = &self.0;
        let (of_cpu, of_memory) = (cpu.is_column(CPU)?, memory.is_column(MEMORY)?);
        (of_cpu == of_memory).then_some(of_cpu == Counting::WithDefaults)
    }
}

impl TwoColumns for AnyTwo {
    #[inline(always)]
    fn amounts(&self, page: &ColumnPage, at: usize) -> [(i64, i64); 2] {
        let of = |scored: &Scored| {
            let (allocatable, used) = scored.amounts(page);
            (allocatable[at % PAGE], used[at % PAGE])
        };
        [of(&self.0[0]), of(&self.0[1])]
    }
}

impl<const WITH_DEFAULTS: bool> TwoColumns for CpuAndMemory<WITH_DEFAULTS> {
    #[inline(always)]
    fn amounts(&self, page: &ColumnPage, at: usize) -> [(i64, i64); 2] {
        let at = at % PAGE;
        let (cpu, memory) = (page.resource(CPU), page.resource(MEMORY));
        let used = match WITH_DEFAULTS {
            true => [page.non_zero_cpu[at], page.non_zero_memory[at]],
            false => [cpu.requested[at], memory.requested[at]],
        };
        [(cpu.allocatable[at], used[0]), (memory.allocatable[at], used[1])]
    }
}

/// Writes what a function makes of the allocatable and the requested amounts of two resources, node by node. Most nodes stand on
/// a page of their own where few have changed, and in runs on one page where all are scored.
#[inline(always)]
pub fn for_each_of_two(
    view: View<'_>,
    AnyTwo(scored): &AnyTwo,
    nodes: &[NodeIdx],
    out: &mut [i64],
    score_of: impl Fn((i64, i64), (i64, i64)) -> i64,
) {
    let Some(first) = nodes.first() else { return };
    let amounts_on = |node: &NodeIdx| {
        let page = view.columns().page(*node);
        [scored[0].amounts(page), scored[1].amounts(page)]
    };
    let (mut page, mut amounts) = (first.index() / PAGE, amounts_on(first));
    for (node, score) in nodes.iter().zip(out) {
        if node.index() / PAGE != page {
            (page, amounts) = (node.index() / PAGE, amounts_on(node));
        }
        let at = node.index() % PAGE;
        let [(all_of_a, used_of_a), (all_of_b, used_of_b)] = amounts;
        *score = score_of((all_of_a[at], used_of_a[at]), (all_of_b[at], used_of_b[at]));
    }
}
