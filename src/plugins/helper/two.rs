//! Amounts of two resources of a node: most scores are made of those of CPU and memory, one node at a time.

use pellucid_cluster::columns::{CPU, ColumnPage, MEMORY};
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
    /// Returns how the requests are counted, if these are [`CpuAndMemory`].
    pub fn of_cpu_and_memory(&self) -> Option<Counting> {
        let [cpu, memory] = &self.0;
        let counting = cpu.counting_of(CPU)?;
        memory.counting_of(MEMORY).filter(|of_memory| *of_memory == counting)
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
