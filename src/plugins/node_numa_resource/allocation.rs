//! What a pod would get on a node: the one allocator that Filter, hints, Score and Reserve ask.
//!
//! [`NodeRequest`] joins what the pod asks for with what the node demands; [`NodeRequest::allocate`] splits the amounts
//! among NUMA nodes and picks the CPUs. Not here: which NUMA nodes to use; that is agreed through the framework.

use pellucid_framework::topology::{NumaMask, NumaPolicy};
use pellucid_model::Name;
use smallvec::SmallVec;

use super::amounts::{Amounts, CPU};
use super::cpus::accumulator::{self, AllocateStrategy, BindPolicy, ExclusivePolicy, Request, Taken};
use super::cpus::set::CpuSet;
use super::cpus::topology::CpuTopology;
use super::holding::Holding;
use super::on_node::OnNode;
use super::reasons::Refusal;
use super::resource_spec::PodRequest;

/// What is left of each NUMA node for one pod, ascending by node.
pub(super) type Left = SmallVec<[(u16, Amounts); 2]>;

/// What a pod asks of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRequest<'a> {
    pub(super) on: &'a OnNode,
    pub(super) pod: &'a PodRequest,
    /// The bind policy of the pod's CPUs; `None` for a pod that gets none of its own.
    pub(super) bind: Option<BindPolicy>,
    /// Whether `bind` must hold.
    pub(super) is_required: bool,
    /// The NUMA policy of pod and node.
    pub(super) policy: NumaPolicy,
    strategy: AllocateStrategy,
}

impl<'a> NodeRequest<'a> {
    /// Joins pod and node. Fails when they contradict each other, before what is free is looked at.
    pub(super) fn of(
        on: &'a OnNode,
        pod: &'a PodRequest,
        strategy: AllocateStrategy,
    ) -> Result<Self, Refusal> {
        let made = Self::unchecked(on, pod, strategy);
        made.contradictions().next().map_or(Ok(made), Err)
    }

    /// Joins pod and node, also when they contradict each other: the pod's policy then counts, and whole CPUs.
    pub(super) fn unchecked(on: &'a OnNode, pod: &'a PodRequest, strategy: AllocateStrategy) -> Self {
        let policy = if pod.policy == NumaPolicy::None { on.policy() } else { pod.policy };
        let forced = on.forced_bind();
        let bind = match pod.wants_cpus {
            true => pod.required.or(forced).or(pod.preferred),
            false => forced.filter(|_| pod.milli_cpu > 0),
        };
        let is_required = pod.required.or(forced).is_some();
        Self { on, pod, bind, is_required, policy, strategy: on.strategy().unwrap_or(strategy) }
    }

    /// Returns how pod and node contradict each other.
    pub(super) fn contradictions(&self) -> impl Iterator<Item = Refusal> + use<> {
        let of_node = self.on.policy();
        let differs = of_node != NumaPolicy::None && of_node != self.policy;
        let is_fraction = self.bind.is_some() && self.pod.milli_cpu % 1000 != 0;
        let policy = differs.then_some(Refusal::PolicyMismatch);
        policy.into_iter().chain(is_fraction.then_some(Refusal::NotInteger))
    }

    /// Checks a pod that gets CPUs of its own against the machine. Fails for what stays whichever pods leave.
    pub(super) fn check_machine(&self) -> Result<(), Refusal> {
        self.misfits().next().map_or(Ok(()), Err)
    }

    /// Returns how a pod that gets CPUs of its own does not fit the machine.
    pub(super) fn misfits(&self) -> impl Iterator<Item = Refusal> + use<> {
        let machine = self.on.machine();
        let is_unknown = self.bind.is_some() && machine.is_none();
        let conflicts =
            self.pod.required.zip(self.on.forced_bind()).is_some_and(|(own, forced)| own != forced);
        let threads = machine.map_or(1, |machine| machine.cpus_per_core.max(1));
        let is_odd = self.is_required
            && self.bind == Some(BindPolicy::FullPcpus)
            && !self.pod.n_cpus().is_multiple_of(threads);
        let topology = is_unknown.then_some(Refusal::BadTopology);
        let conflict = (conflicts && !is_unknown).then_some(Refusal::BindConflict);
        topology.into_iter().chain(conflict).chain(is_odd.then_some(Refusal::NotWholeCores))
    }

    /// Returns whether the CPUs of the machine are too few for the pod, whoever has them.
    fn is_too_small(&self, machine: &CpuTopology) -> bool {
        self.usable_of(machine, &machine.cpus.without(&self.on.reserved.get())).len() < self.pod.n_cpus()
    }

    /// Returns the CPUs that can be given to the pod under a required bind policy.
    fn free(&self, machine: &CpuTopology) -> CpuSet {
        self.usable_of(machine, &self.on.free.get())
    }

    /// Returns which of some CPUs a required bind policy lets the pod use.
    fn usable_of(&self, machine: &CpuTopology, free: &CpuSet) -> CpuSet {
        self.bind.filter(|_| self.is_required).map_or(*free, |bind| under(bind, machine, free))
    }

    /// Returns the CPUs that can be given to the pod; none when the node's CPUs are not known.
    pub(super) fn usable(&self) -> CpuSet {
        self.on.machine().map(|machine| self.free(machine)).unwrap_or_default()
    }

    /// Returns what is left of each NUMA node for the pod: of CPU no more than the required bind policy lets it use. That counts
    /// for the scores of a pod without CPU too, as in Koordinator.
    pub(super) fn left(&self) -> Left {
        let required = self.pod.required.or(self.on.forced_bind());
        let free = required.zip(self.on.machine());
        let free = free.map(|(bind, machine)| (machine, under(bind, machine, &self.on.free.get())));
        let zones = self.on.zones.iter().map(|zone| {
            let mut left = self.on.left_of(zone);
            if let (Some((machine, free)), Some(cpu)) = (&free, left.get(CPU).filter(|cpu| *cpu > 0)) {
                let most = free.and(&machine.in_node(zone.node)).len() as i64 * 1000;
                left.set(&super::node_topology::cpu_name(), cpu.min(most));
            }
            (zone.node, left)
        });
        zones.collect()
    }

    /// Returns what the pod gets, on some NUMA nodes or, without a policy, anywhere.
    pub(super) fn allocate(&self, mask: Option<NumaMask>) -> Result<Holding, Refusal> {
        self.allocate_of(mask, mask.map(|_| self.left()).as_ref())
    }

    /// As [`Self::allocate`], with what is left of the NUMA nodes.
    pub(super) fn allocate_of(
        &self,
        mask: Option<NumaMask>,
        left: Option<&Left>,
    ) -> Result<Holding, Refusal> {
        let mut made = Holding::default();
        if let (Some(mask), Some(left)) = (mask, left) {
            made.zones = self.split(mask, left)?;
        }
        if self.bind.is_some() {
            made.cpus = self.pick(&made.zones)?.into();
        }
        Ok(made)
    }

    /// Splits the requested amounts as evenly as NUMA nodes allow: those with little left first, so that the others take
    /// over what they lack. Resources that no NUMA node has are not split.
    fn split(&self, mask: NumaMask, left: &Left) -> Result<Vec<(u16, Amounts)>, Refusal> {
        let zones = || left.iter().filter(|(node, _)| mask.contains(u32::from(*node)));
        let mut made: Vec<(u16, Amounts)> = zones().map(|(node, _)| (*node, Amounts::default())).collect();
        let mut short = SmallVec::new();
        for (name, requested) in &self.pod.amounts {
            if left.iter().all(|(_, amounts)| amounts.get(name).is_none()) {
                continue;
            }
            let of = |(at, (_, amounts)): (usize, &(u16, Amounts))| (amounts.get(name).unwrap_or(0), at);
            let mut order: SmallVec<[(i64, usize); 4]> = zones().enumerate().map(of).collect();
            order.sort_unstable();
            let mut rest = *requested;
            for (i, (available, at)) in order.iter().enumerate() {
                let share = self.share(name, rest, (order.len() - i) as i64).min(*available);
                if share > 0 {
                    made[*at].1.set(name, share);
                    rest -= share;
                }
            }
            if rest > 0 {
                short.push(name.clone());
            }
        }
        if !short.is_empty() {
            return Err(Refusal::Short(short));
        }
        made.retain(|(_, amounts)| !amounts.is_empty());
        Ok(made)
    }

    /// Returns an even share of an amount; of CPUs whole ones, or whole cores, where the pod gets CPUs of its own.
    fn share(&self, name: &Name, amount: i64, among: i64) -> i64 {
        if name.as_str() != CPU || self.bind.is_none() {
            return amount / among;
        }
        let threads = self.on.machine().map_or(1, |machine| machine.cpus_per_core.max(1)) as i64;
        let unit = if self.is_required && self.bind == Some(BindPolicy::FullPcpus) { threads } else { 1 };
        amount / 1000 / unit / among * unit * 1000
    }

    /// Picks the CPUs, on each NUMA node as many as the split says, or anywhere without a split.
    fn pick(&self, zones: &[(u16, Amounts)]) -> Result<CpuSet, Refusal> {
        let (Some(machine), Some(bind)) = (self.on.machine(), self.bind) else {
            return Err(Refusal::BadTopology);
        };
        let n = self.pod.n_cpus();
        let mut taken = Taken { free: self.free(machine), ..Taken::default() };
        match self.pod.exclusive {
            ExclusivePolicy::PcpuLevel => taken.pcpu_level = self.on.pcpu_level.get(),
            ExclusivePolicy::NumaNodeLevel => taken.numa_node_level = self.on.numa_node_level.get(),
            ExclusivePolicy::None => {}
        }
        let request = |n| Request {
            n,
            bind,
            exclusive: self.pod.exclusive,
            strategy: self.strategy,
            preferred: CpuSet::default(),
        };
        let not_enough = || Refusal::NotEnoughCpus { is_fixed: self.is_too_small(machine) };
        if zones.is_empty() {
            return accumulator::allocate(machine, &taken, &request(n)).map_err(|_| not_enough());
        }
        let (all, mut result) = (taken.free, CpuSet::default());
        for (node, amounts) in zones {
            taken.free = all.and(&machine.in_node(*node));
            let share = usize::try_from(amounts.get(CPU).unwrap_or(0) / 1000).unwrap_or(0);
            let share = share.min(taken.free.len());
            let picked = accumulator::allocate(machine, &taken, &request(share));
            result = result.or(&picked.map_err(|_| not_enough())?);
        }
        if result.len() == n { Ok(result) } else { Err(not_enough()) }
    }
}

/// Returns which of some free CPUs can be used under a bind policy.
fn under(bind: BindPolicy, machine: &CpuTopology, free: &CpuSet) -> CpuSet {
    match bind {
        BindPolicy::FullPcpus => machine.whole_cores(free),
        BindPolicy::SpreadByPcpus => machine.one_of_each_core(free),
        BindPolicy::ConstrainedBurst => *free,
    }
}
