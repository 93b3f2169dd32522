//! Picks the logical CPUs for a pod: [`allocate`], a pure function over bit sets.
//!
//! The order in which CPUs are preferred is that of Koordinator's CPU accumulator (README.md). Among what is equal, the
//! lowest id wins, so the same question has the same answer. Not here: which CPUs are free, and how a request is split
//! among NUMA nodes.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::set::CpuSet;
use super::topology::{CpuTopology, Domain};

pellucid_model::named! {
    /// How a pod's CPUs lie on cores.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BindPolicy {
        /// On as few cores as possible.
        FullPcpus = "FullPCPUs",
        /// On as many cores as possible.
        SpreadByPcpus = "SpreadByPCPUs",
        /// In the shared pool: the pod gets no CPUs of its own.
        ConstrainedBurst = "ConstrainedBurst",
    }
}

pellucid_model::named! {
    /// With whose pods a pod prefers not to share.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum ExclusivePolicy {
        /// It shares with all.
        #[default]
        None = "None",
        /// It does not share cores with pods of this policy.
        PcpuLevel = "PCPULevel",
        /// It does not share NUMA nodes with pods of this policy.
        NumaNodeLevel = "NUMANodeLevel",
    }
}

pellucid_model::named! {
    /// Which of several NUMA nodes or sockets is filled first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum AllocateStrategy {
        /// The one with the fewest free CPUs.
        MostAllocated = "MostAllocated",
        /// The one with the most free CPUs.
        #[default]
        LeastAllocated = "LeastAllocated",
        /// As [`AllocateStrategy::LeastAllocated`]; amounts are split evenly whatever the strategy.
        DistributeEvenly = "DistributeEvenly",
    }
}

/// What others have, as the pick sees it.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// CPUs that may be given.
    pub free: CpuSet,
    /// How many pods have a CPU, by id; CPUs beyond its end have none. Empty unless CPUs may be shared.
    pub refs: Vec<u8>,
    /// CPUs of pods with [`ExclusivePolicy::PcpuLevel`].
    pub pcpu_level: CpuSet,
    /// CPUs of pods with [`ExclusivePolicy::NumaNodeLevel`].
    pub numa_node_level: CpuSet,
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of CPUs.
    pub n: usize,
    /// [`BindPolicy::FullPcpus`], or anything else for spreading.
    pub bind: BindPolicy,
    /// With whose pods the pod prefers not to share.
    pub exclusive: ExclusivePolicy,
    /// Which NUMA node or socket comes first.
    pub strategy: AllocateStrategy,
    /// CPUs that are given first, as far as they are free.
    pub preferred: CpuSet,
}

/// Fewer CPUs are free than a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnough;

/// Returns exactly `request.n` free CPUs. Fails only when fewer are free.
pub fn allocate(topology: &CpuTopology, taken: &Taken, request: &Request) -> Result<CpuSet, NotEnough> {
    let free = taken.free.and(&topology.cpus);
    if free.len() < request.n {
        return Err(NotEnough);
    }
    let preferred = free.and(&request.preferred);
    if preferred.is_empty() {
        return Ok(Pick::of(topology, taken, request, free, request.n).run());
    }
    let from_preferred = request.n.min(preferred.len());
    let first = Pick::of(topology, taken, request, preferred, from_preferred).run();
    let rest = Pick::of(topology, taken, request, free.without(&preferred), request.n - from_preferred).run();
    Ok(first.or(&rest))
}

/// CPUs in the order in which they are given.
type Order = SmallVec<[u16; 128]>;
/// A number per core.
type PerCore = SmallVec<[u16; 128]>;

/// One pick in progress.
struct Pick<'a> {
    topology: &'a CpuTopology,
    taken: &'a Taken,
    request: &'a Request,
    free: CpuSet,
    need: usize,
    result: CpuSet,
}

impl<'a> Pick<'a> {
    fn of(
        topology: &'a CpuTopology,
        taken: &'a Taken,
        request: &'a Request,
        free: CpuSet,
        need: usize,
    ) -> Self {
        Self { topology, taken, request, free, need, result: CpuSet::default() }
    }

    /// Invariant: at least `need` CPUs are free.
    fn run(mut self) -> CpuSet {
        if self.need == 0 {
            return self.result;
        }
        let is_full = self.request.bind == BindPolicy::FullPcpus;
        if is_full || self.topology.cpus_per_core == 1 {
            if self.full_in_one_domain() {
                return self.result;
            }
            self.full_across_sockets();
        }
        if self.need > 0 && !is_full && self.spread_in_one_domain() {
            return self.result;
        }
        for respects in [true, false] {
            self.take_anywhere(respects);
        }
        self.result
    }

    fn take(&mut self, cpu: u16) {
        self.free.remove(usize::from(cpu));
        self.result.insert(usize::from(cpu));
        self.need -= 1;
    }

    fn take_first(&mut self, order: &[u16]) {
        let n = self.need.min(order.len());
        order[..n].iter().for_each(|cpu| self.take(*cpu));
    }

    /// Returns a sort key: the fewest free first under MostAllocated, else the most.
    fn by_free(&self, free: usize) -> isize {
        let free = free as isize;
        if self.request.strategy == AllocateStrategy::MostAllocated { free } else { -free }
    }

    /// Returns the free CPUs without those that an exclusive policy keeps apart. Of cores and of NUMA nodes each can be
    /// asked for alone. A NUMA node of which the pod has taken something counts as one that a pod keeps to itself.
    fn apart(&self, cores: bool, nodes: bool) -> CpuSet {
        match self.request.exclusive {
            ExclusivePolicy::PcpuLevel if cores => {
                let held = self.taken.pcpu_level.iter().filter_map(|cpu| self.topology.core_of(cpu));
                let held: SmallVec<[usize; 64]> = held.collect();
                let is_apart = |cpu: &usize| self.topology.core_of(*cpu).is_some_and(|c| !held.contains(&c));
                CpuSet::of(self.free.iter().filter(is_apart))
            }
            ExclusivePolicy::NumaNodeLevel if nodes => {
                let all = self.taken.numa_node_level.or(&self.result);
                let held = |node: &&Domain| node.cpus.meets(&all);
                self.topology.nodes.iter().filter(held).fold(self.free, |free, node| free.without(&node.cpus))
            }
            _ => self.free,
        }
    }

    fn refs(&self, cpu: usize) -> u32 {
        self.taken.refs.get(cpu).map_or(0, |refs| u32::from(*refs))
    }

    /// Returns the CPUs of a set by core: cores by their references, then id.
    fn by_core(&self, cpus: &CpuSet) -> Order {
        let mut order: Order = cpus.iter().map(|cpu| cpu as u16).collect();
        let core = |cpu: u16| self.topology.core_of(usize::from(cpu)).unwrap_or(usize::MAX);
        if self.taken.refs.is_empty() {
            order.sort_unstable_by_key(|cpu| (core(*cpu), *cpu));
            return order;
        }
        let mut refs: SmallVec<[u32; 128]> = SmallVec::from_elem(0, self.topology.cores.len());
        for cpu in cpus.iter() {
            if let Some(sum) = self.topology.core_of(cpu).and_then(|core| refs.get_mut(core)) {
                *sum += self.refs(cpu);
            }
        }
        order.sort_unstable_by_key(|cpu| (refs.get(core(*cpu)).copied(), core(*cpu), *cpu));
        order
    }

    /// Takes CPUs of whole cores, core by core, at most so many.
    fn take_cores(&mut self, cpus: &CpuSet, most: usize) {
        let ordered = if self.taken.refs.is_empty() { self.topology.by_core(cpus) } else { None };
        match ordered {
            Some(ordered) => ordered.take(most).for_each(|cpu| self.take(cpu as u16)),
            None => {
                let order = self.by_core(cpus);
                self.take_first(&order[..most.min(order.len())]);
            }
        }
    }

    /// Whole cores of one NUMA node, else of one socket. Returns whether there is one with enough.
    fn full_in_one_domain(&mut self) -> bool {
        if self.need <= self.topology.cpus_per_node {
            for respects in [true, false] {
                let free = self.apart(false, respects);
                let whole = self.topology.whole_cores(&free);
                if let Some(cpus) = self.best_node(&whole, &free, |_, len| len) {
                    self.take_cores(&cpus, self.need);
                    return true;
                }
            }
        }
        if self.need <= self.topology.cpus_per_socket {
            let whole = self.topology.whole_cores(&self.free);
            let of = |socket: &Domain| socket.cpus.and(&whole);
            let sockets = self.topology.sockets.iter().map(|socket| (of(socket), socket.id));
            let enough = sockets.filter(|(cpus, _)| cpus.len() >= self.need);
            if let Some((cpus, _)) = enough.min_by_key(|(cpus, id)| (self.by_free(cpus.len()), *id)) {
                self.take_cores(&cpus, self.need);
                return true;
            }
        }
        false
    }

    /// Returns the CPUs of `cpus` in the NUMA node to take them from: it has enough of them, as `count` counts by the node and
    /// their number there, then goes by that number, by the free CPUs of its socket, and by id.
    fn best_node(
        &self,
        cpus: &CpuSet,
        free: &CpuSet,
        count: impl Fn(&Domain, usize) -> usize,
    ) -> Option<CpuSet> {
        let of_socket = |node: &Domain| {
            let socket = self.topology.sockets.get(usize::from(node.socket));
            socket.map_or(0, |socket| socket.cpus.count_in(free))
        };
        let counted = self.topology.nodes.iter().filter_map(|node| {
            let len = node.cpus.count_in(cpus);
            (count(node, len) >= self.need).then(|| (self.by_free(len), node))
        });
        let by_socket = |a: &Domain, b: &Domain| {
            let is_same = a.socket == b.socket;
            let free = |node| if is_same { 0 } else { self.by_free(of_socket(node)) };
            free(a).cmp(&free(b))
        };
        let best = counted.min_by(|(a, first), (b, second)| {
            a.cmp(b).then_with(|| by_socket(first, second)).then_with(|| first.id.cmp(&second.id))
        });
        best.map(|(_, node)| node.cpus.and(cpus))
    }

    /// Whole sockets, the greatest first, while they do not exceed the need; then whole cores of what is left, from the
    /// socket with the fewest.
    fn full_across_sockets(&mut self) {
        let whole = self.topology.whole_cores(&self.free);
        let sockets = self.topology.sockets.iter().map(|socket| (socket.cpus.and(&whole), socket.id));
        let mut sockets: SmallVec<[(CpuSet, u16); 2]> =
            sockets.filter(|(cpus, _)| !cpus.is_empty()).collect();
        sockets.sort_by_key(|(cpus, id)| (Reverse(cpus.len()), *id));
        let mut left: SmallVec<[(CpuSet, u16); 2]> = SmallVec::new();
        for (cpus, id) in sockets {
            if cpus.len() > self.need {
                left.push((cpus, id));
            } else {
                self.take_cores(&cpus, self.need);
            }
        }
        left.sort_by_key(|(cpus, id)| (cpus.len(), *id));
        let threads = self.topology.cpus_per_core;
        for (cpus, _) in left {
            self.take_cores(&cpus, self.need / threads * threads);
        }
    }

    /// CPUs of one NUMA node, else of one socket, one of each core first. Returns whether there is one with enough.
    fn spread_in_one_domain(&mut self) -> bool {
        if self.need <= self.topology.cpus_per_node {
            for respects in [true, false] {
                let free = self.apart(respects, respects);
                let count = |node: &Domain, len: usize| {
                    if respects { self.n_cores(&node.cpus.and(&free)) } else { len }
                };
                if let Some(cpus) = self.best_node(&free, &free, count) {
                    self.take_first(&self.spread(&self.by_cpu(&cpus)));
                    return true;
                }
            }
        }
        if self.need <= self.topology.cpus_per_socket {
            for respects in [true, false] {
                let free = self.apart(respects, false);
                let count = |cpus: &CpuSet| if respects { self.n_cores(cpus) } else { cpus.len() };
                let of = |socket: &Domain| socket.cpus.and(&free);
                let sockets = self.topology.sockets.iter().map(|socket| (of(socket), socket.id));
                let counted = sockets.map(|(cpus, id)| (count(&cpus), cpus, id));
                let enough = counted.filter(|(n, _, _)| *n >= self.need);
                if let Some((_, cpus, _)) = enough.min_by_key(|(n, _, id)| (self.by_free(*n), *id)) {
                    self.take_first(&self.spread(&self.by_cpu(&cpus)));
                    return true;
                }
            }
        }
        false
    }

    fn n_cores(&self, cpus: &CpuSet) -> usize {
        self.topology.one_of_each_core(cpus).len()
    }

    /// Returns the CPUs of a set by their references, then id.
    fn by_cpu(&self, cpus: &CpuSet) -> Order {
        let mut order: Order = cpus.iter().map(|cpu| cpu as u16).collect();
        if !self.taken.refs.is_empty() {
            order.sort_by_key(|cpu| self.refs(usize::from(*cpu)));
        }
        order
    }

    /// Puts one CPU of each core first, then the second of each, and so on.
    fn spread(&self, order: &[u16]) -> Order {
        if order.len() <= self.topology.cpus_per_core {
            return order.into();
        }
        let mut seen: PerCore = SmallVec::from_elem(0, self.topology.cores.len());
        let mut turns: SmallVec<[(u16, u16); 128]> = SmallVec::new();
        for cpu in order {
            let Some(core) = self.topology.core_of(usize::from(*cpu)) else { continue };
            turns.push((seen[core], *cpu));
            seen[core] += 1;
        }
        turns.sort_by_key(|(turn, _)| *turn);
        turns.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// Any free CPUs, near those that the pod has: sockets with most CPUs of the pod first, then sockets and NUMA nodes by
    /// their free CPUs, and cores that are used already before free ones.
    fn take_anywhere(&mut self, respects: bool) {
        if self.need == 0 {
            return;
        }
        let free = self.apart(respects, respects);
        let (counts, topology) = (self.topology.per_core(&free), self.topology);
        let sockets = topology.sockets.iter().map(|socket| {
            let (own, free) = (socket.cpus.and(&self.result).len(), socket.cpus.and(&free).len());
            (Reverse(own), self.by_free(free))
        });
        let sockets: SmallVec<[_; 4]> = sockets.collect();
        let nodes = topology.nodes.iter().map(|node| self.by_free(node.cpus.and(&free).len()));
        let nodes: SmallVec<[isize; 8]> = nodes.collect();
        let mut refs: SmallVec<[u32; 128]> = SmallVec::from_elem(0, topology.cores.len());
        for cpu in free.iter().filter(|_| !self.taken.refs.is_empty()) {
            if let Some(core) = topology.core_of(cpu) {
                refs[core] += self.refs(cpu);
            }
        }
        let mut order = self.by_cpu(&free);
        order.sort_by_cached_key(|cpu| {
            let at = topology.core_of(usize::from(*cpu)).unwrap_or_default();
            let core = &topology.cores[at];
            let socket = usize::from(core.socket);
            (sockets[socket], nodes[usize::from(core.node)], counts[at], socket, refs[at], at)
        });
        self.take_first(&self.spread(&order));
    }
}
