//! The CPUs of a machine: which logical CPUs share a core, which cores lie in which NUMA node and socket.
//!
//! Made once per NodeResourceTopology, so that allocation walks over dense arrays. Not here: which CPUs are taken.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::set::{CpuSet, MAX_CPUS};

/// One logical CPU as koordlet reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuInfo {
    /// Its number, as Linux counts.
    pub id: u16,
    /// Core id; unique in its socket.
    pub core: u16,
    /// Its socket.
    pub socket: u16,
    /// NUMA node.
    pub node: u16,
}

/// A physical core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    /// Id among all cores of the machine: the socket in the upper 16 bits, the reported id in the lower ones, as in
    /// Koordinator's answers.
    pub id: u32,
    /// Index in [`CpuTopology::nodes`].
    pub node: u16,
    /// Index in [`CpuTopology::sockets`].
    pub socket: u16,
    /// Number of its logical CPUs.
    pub threads: u16,
}

/// A NUMA node or a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Reported id.
    pub id: u16,
    /// Its logical CPUs.
    pub cpus: CpuSet,
    /// Index of its socket in [`CpuTopology::sockets`]; of a socket its own.
    pub socket: u16,
}

/// The CPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTopology {
    /// All logical CPUs.
    pub cpus: CpuSet,
    /// By CPU id, the index of its core in `cores`; `u16::MAX` where there is no CPU.
    core_of: Vec<u16>,
    /// Ascending by id.
    pub cores: Vec<Core>,
    /// The CPU of each core with the lowest id.
    firsts: CpuSet,
    /// By how much the ids of a core's threads differ, where that is the same for all cores, all have as many, and their
    /// lowest CPUs ascend with the cores. So Linux numbers machines: threads next to each other, or half of all CPUs apart.
    /// Whole cores are then found by shifting sets.
    stride: Option<usize>,
    /// NUMA nodes, ascending by id.
    pub nodes: Vec<Domain>,
    /// Sockets, ascending by id.
    pub sockets: Vec<Domain>,
    /// Number of NUMA nodes, counted once per socket: with NUMA switched off in the firmware, one spans all sockets.
    pub n_nodes: usize,
    /// How many logical CPUs a core has, on the average.
    pub cpus_per_core: usize,
    /// How many logical CPUs a NUMA node has, on the average.
    pub cpus_per_node: usize,
    /// How many logical CPUs a socket has, on the average.
    pub cpus_per_socket: usize,
}

fn core_id(info: &CpuInfo) -> u32 {
    u32::from(info.socket) << 16 | u32::from(info.core)
}

/// Core ids are unique in their socket only. A core that is reported in two sockets shows by having too few threads in
/// each of them.
fn split_between_sockets(cores: &BTreeMap<u32, (u16, u16, u16)>) -> Result<(), String> {
    let most = cores.values().map(|(_, _, threads)| *threads).max().unwrap_or(0);
    let mut short: BTreeMap<u16, (u16, u16)> = BTreeMap::new();
    for (id, (_, socket, threads)) in cores.iter().filter(|(_, (_, _, threads))| *threads < most) {
        let core = (*id & 0xffff) as u16;
        if let Some((first, others)) = short.insert(core, (*socket, *threads))
            && threads + others == most
        {
            return Err(format!("core {core} lies in sockets {first} and {socket}"));
        }
    }
    Ok(())
}

impl CpuTopology {
    /// Makes a topology of reported CPUs. Fails with the first contradiction, in words.
    pub fn of(all: &[CpuInfo]) -> Result<Self, String> {
        if all.is_empty() {
            return Err("it names no CPUs".to_owned());
        }
        let mut made = Self::default();
        let mut node_sockets: BTreeSet<(u16, u16)> = BTreeSet::new();
        let mut sockets: BTreeMap<u16, CpuSet> = BTreeMap::new();
        let mut nodes: BTreeMap<u16, CpuSet> = BTreeMap::new();
        let mut cores: BTreeMap<u32, (u16, u16, u16)> = BTreeMap::new();
        for info in all {
            let id = usize::from(info.id);
            if id >= MAX_CPUS {
                return Err(format!("CPU {id} is beyond the {MAX_CPUS} CPUs that a cpuset can name"));
            }
            if made.cpus.contains(id) {
                return Err(format!("CPU {id} is named twice"));
            }
            if info.node > 63 {
                return Err(format!("NUMA node {} is beyond 63, the last that a hint can name", info.node));
            }
            made.cpus.insert(id);
            let core = cores.entry(core_id(info)).or_insert((info.node, info.socket, 0));
            if core.0 != info.node {
                let (first, second) = (core.0, info.node);
                let core = format!("core {} of socket {}", info.core, info.socket);
                return Err(format!("{core} lies in NUMA nodes {first} and {second}"));
            }
            core.2 += 1;
            node_sockets.insert((info.node, info.socket));
            sockets.entry(info.socket).or_default().insert(id);
            nodes.entry(info.node).or_default().insert(id);
        }
        split_between_sockets(&cores)?;
        let socket_at = |id: u16| sockets.keys().position(|known| *known == id).unwrap_or(0) as u16;
        let node_at = |id: u16| nodes.keys().position(|known| *known == id).unwrap_or(0) as u16;
        made.sockets = sockets
            .iter()
            .enumerate()
            .map(|(at, (id, cpus))| Domain { id: *id, cpus: *cpus, socket: at as u16 })
            .collect();
        let of_node = |(id, cpus): (&u16, &CpuSet)| Domain {
            id: *id,
            cpus: *cpus,
            socket: node_sockets.range((*id, 0)..).next().map_or(0, |(_, socket)| socket_at(*socket)),
        };
        made.n_nodes = node_sockets.len();
        made.nodes = nodes.iter().map(of_node).collect();
        let core = |(id, (node, socket, threads)): (&u32, &(u16, u16, u16))| Core {
            id: *id,
            node: node_at(*node),
            socket: socket_at(*socket),
            threads: *threads,
        };
        made.cores = cores.iter().map(core).collect();
        let last = all.iter().map(|info| info.id).max().unwrap_or(0);
        made.core_of = vec![u16::MAX; usize::from(last) + 1];
        for info in all {
            let at = made.cores.partition_point(|core| core.id < core_id(info));
            made.core_of[usize::from(info.id)] = at as u16;
        }
        let per = |domains: usize| made.cpus.len() / domains.max(1);
        (made.cpus_per_core, made.cpus_per_node, made.cpus_per_socket) =
            (per(made.cores.len()), per(made.n_nodes), per(made.sockets.len()));
        made.find_stride();
        Ok(made)
    }

    /// Looks how the threads of the cores are numbered.
    fn find_stride(&mut self) {
        let mut threads: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); self.cores.len()];
        let cores = self.cpus.iter().filter_map(|cpu| Some((cpu, self.core_of(cpu)?)));
        cores.for_each(|(cpu, core)| threads[core].push(cpu));
        self.firsts = CpuSet::of(threads.iter().filter_map(|of| of.first().copied()));
        let Some(model) = threads.first() else { return };
        let stride = model.get(1).map_or(0, |second| second - model[0]);
        let is_like = |of: &SmallVec<[usize; 2]>| {
            of.len() == model.len() && of.iter().enumerate().all(|(at, cpu)| *cpu == of[0] + at * stride)
        };
        let is_uniform = threads.iter().all(is_like) && threads.is_sorted_by_key(|of| of[0]);
        self.stride = is_uniform.then_some(stride);
    }

    /// Returns the index of a CPU's core; `None` for a CPU that the machine does not have.
    #[inline]
    pub fn core_of(&self, cpu: usize) -> Option<usize> {
        self.core_of.get(cpu).filter(|at| **at != u16::MAX).map(|at| usize::from(*at))
    }

    /// Returns the CPUs of a NUMA node by its id; none when there is no such node.
    pub fn in_node(&self, id: u16) -> CpuSet {
        let found = self.nodes.binary_search_by_key(&id, |node| node.id);
        found.map_or_else(|_| CpuSet::default(), |at| self.nodes[at].cpus)
    }

    /// Returns the NUMA nodes of some CPUs as bits by their ids.
    pub fn nodes_of(&self, cpus: &CpuSet) -> u64 {
        let touched = self.nodes.iter().filter(|node| node.cpus.meets(cpus));
        touched.fold(0, |mask, node| mask | 1 << node.id)
    }

    /// Iterates over the logical CPUs, ascending, each with its core.
    pub fn details(&self) -> impl Iterator<Item = (usize, &Core)> {
        self.cpus.iter().filter_map(|cpu| Some((cpu, &self.cores[self.core_of(cpu)?])))
    }

    /// Returns the CPUs of cores that lie in a set whole.
    pub fn whole_cores(&self, free: &CpuSet) -> CpuSet {
        let threads = self.cpus_per_core;
        if let Some(stride) = self.stride {
            let mut all = CpuSet::default();
            for (at, firsts) in self.firsts.words() {
                let is_whole = |set: u64, thread: usize| set & free.word_down(at, thread * stride);
                let whole = (0..threads).fold(firsts, is_whole);
                (0..threads).for_each(|thread| all.add_word_up(at, thread * stride, whole));
            }
            return all;
        }
        let counts = self.per_core(free);
        let is_whole =
            |cpu: &usize| self.core_of(*cpu).is_some_and(|core| usize::from(counts[core]) == threads);
        CpuSet::of(free.iter().filter(is_whole))
    }

    /// Returns the first CPU of each core that has one in a set.
    pub fn one_of_each_core(&self, free: &CpuSet) -> CpuSet {
        if let Some(stride) = self.stride {
            let mut all = CpuSet::default();
            for (at, mut left) in self.firsts.words() {
                for by in (0..self.cpus_per_core).map(|thread| thread * stride) {
                    let new = free.word_down(at, by) & left;
                    left &= !new;
                    all.add_word_up(at, by, new);
                }
            }
            return all;
        }
        let mut seen = vec![false; self.cores.len()];
        let first =
            |cpu: &usize| self.core_of(*cpu).is_some_and(|core| !std::mem::replace(&mut seen[core], true));
        CpuSet::of(free.iter().filter(first))
    }

    /// Returns how many CPUs of a set there are, how many of them in cores that lie in it whole, and on how many cores.
    pub fn count(&self, free: &CpuSet) -> [usize; 3] {
        let Some(stride) = self.stride else {
            return [free.len(), self.whole_cores(free).len(), self.one_of_each_core(free).len()];
        };
        let (mut n_whole, mut n_cores) = (0, 0);
        for (at, firsts) in self.firsts.words() {
            let threads = (0..self.cpus_per_core).map(|thread| free.word_down(at, thread * stride) & firsts);
            let (whole, cores) = threads.fold((firsts, 0), |(all, any), of| (all & of, any | of));
            n_whole += whole.count_ones() as usize;
            n_cores += cores.count_ones() as usize;
        }
        [free.len(), n_whole * self.cpus_per_core, n_cores]
    }

    /// Iterates over the CPUs of cores that lie in a set whole, core by core; `None` where that takes sorting.
    pub fn by_core(&self, whole: &CpuSet) -> Option<impl Iterator<Item = usize> + use<>> {
        let (stride, threads) = (self.stride?, self.cpus_per_core);
        let firsts = whole.and(&self.firsts);
        Some(firsts.iter().flat_map(move |first| (0..threads).map(move |thread| first + thread * stride)))
    }

    /// Returns how many CPUs of each core are in a set.
    pub fn per_core(&self, free: &CpuSet) -> SmallVec<[u16; 128]> {
        let mut counts = SmallVec::from_elem(0, self.cores.len());
        free.iter().filter_map(|cpu| self.core_of(cpu)).for_each(|core| counts[core] += 1);
        counts
    }
}

/// Returns a machine whose sockets, NUMA nodes and cores are numbered in order. The threads of a core are numbered next to
/// each other, or half of all CPUs apart.
#[cfg(test)]
pub(crate) fn machine(sockets: u16, nodes: u16, cores: u16, threads: u16, is_apart: bool) -> CpuTopology {
    let all = sockets * nodes * cores;
    let info = |core: u16, thread: u16| CpuInfo {
        id: if is_apart { thread * all + core } else { core * threads + thread },
        core,
        socket: core / (nodes * cores),
        node: core / cores,
    };
    let infos: Vec<CpuInfo> = (0..all).flat_map(|core| (0..threads).map(move |t| info(core, t))).collect();
    CpuTopology::of(&infos).expect("a machine without contradictions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_its_domains() {
        let machine = machine(2, 2, 4, 2, true);
        assert_eq!((machine.cpus.len(), machine.cores.len()), (32, 16));
        assert_eq!((machine.nodes.len(), machine.sockets.len()), (4, 2));
        assert_eq!((machine.cpus_per_core, machine.cpus_per_node, machine.cpus_per_socket), (2, 8, 16));
        assert_eq!(machine.in_node(1).to_string(), "4-7,20-23");
        assert_eq!(machine.core_of(0), machine.core_of(16));
        assert_eq!(machine.cores[8].id, (1 << 16) | 8);
        assert_eq!(machine.nodes_of(&CpuSet::of([0, 16, 5])), 0b11);
        let free = CpuSet::of([0, 1, 16, 18]);
        assert_eq!(machine.whole_cores(&free).to_string(), "0,16");
        assert_eq!(machine.one_of_each_core(&free).to_string(), "0-1,18");
    }

    #[test]
    fn cores_are_found_however_threads_are_numbered() {
        // Core 0 has CPUs 0 and 5, core 1 has 1 and 3, core 2 has 2 alone.
        let of = [(0, 0), (5, 0), (1, 1), (3, 1), (2, 2)];
        let infos = of.map(|(id, core)| CpuInfo { id, core, socket: 0, node: 0 });
        let odd = CpuTopology::of(&infos[..4]).expect("a machine without contradictions");
        assert!(odd.stride.is_none() && machine(2, 1, 3, 2, false).stride == Some(1));
        let free = CpuSet::of([0, 1, 3]);
        assert_eq!(
            (odd.whole_cores(&free), odd.one_of_each_core(&free)),
            (CpuSet::of([1, 3]), CpuSet::of([0, 1]))
        );
        assert_eq!((odd.count(&free), odd.by_core(&free).is_none()), ([3, 2, 2], true));
        assert!(CpuTopology::of(&infos).is_ok_and(|one| one.stride.is_none()), "one core has one thread");
    }

    #[test]
    fn counts_are_those_of_the_sets() {
        for (threads, is_apart) in [(1, false), (2, false), (2, true), (4, true)] {
            // CPUs in several words, in the last of which some are missing.
            let machine = machine(2, 2, 9, threads, is_apart);
            assert!(machine.stride.is_some());
            for step in 1..40 {
                let free = CpuSet::of(machine.cpus.iter().filter(|cpu| cpu * step % 7 > 1));
                let (whole, cores) = (machine.whole_cores(&free), machine.one_of_each_core(&free));
                assert_eq!(machine.count(&free), [free.len(), whole.len(), cores.len()], "{threads}: {free}");
                let per_core = machine.per_core(&free);
                let n_whole = per_core.iter().filter(|n| **n == threads).count();
                let n_cores = per_core.iter().filter(|n| **n > 0).count();
                assert_eq!((whole.len(), cores.len()), (n_whole * usize::from(threads), n_cores));
            }
        }
    }

    #[test]
    fn contradictions_are_named() {
        let cpu = |id, core, socket, node| CpuInfo { id, core, socket, node };
        for (infos, problem) in [
            (vec![], "it names no CPUs"),
            (vec![cpu(1, 0, 0, 0), cpu(1, 1, 0, 0)], "CPU 1 is named twice"),
            (vec![cpu(1024, 0, 0, 0)], "CPU 1024 is beyond the 1024 CPUs that a cpuset can name"),
            (vec![cpu(0, 3, 0, 0), cpu(1, 3, 0, 1)], "core 3 of socket 0 lies in NUMA nodes 0 and 1"),
            (
                vec![cpu(0, 0, 0, 0), cpu(1, 0, 0, 0), cpu(2, 1, 0, 0), cpu(3, 1, 1, 1)],
                "core 1 lies in sockets 0 and 1",
            ),
            (vec![cpu(0, 0, 0, 64)], "NUMA node 64 is beyond 63, the last that a hint can name"),
        ] {
            assert_eq!(CpuTopology::of(&infos), Err(problem.to_owned()));
        }
    }
}
