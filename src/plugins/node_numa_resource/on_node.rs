//! What is known of one node: its topology, its settings, and what its pods hold.
//!
//! The sums are kept beside what they are made of, so that a decision reads integers and bit sets. They are made anew
//! when a pod's holding or the topology changes; a node has few pods with holdings.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::topology::{NumaMask, NumaPolicy};
use pellucid_model::{Pod, PodId, PodKey};

use super::amounts::{Amounts, CPU, Ratios, amplify};
use super::cpus::accumulator::{AllocateStrategy, BindPolicy, ExclusivePolicy};
use super::cpus::set::KeptCpus;
use super::cpus::topology::CpuTopology;
use super::facts::Free;
use super::holding::Holding;
use super::node_settings::NodeSettings;
use super::node_topology::{NodeTopology, Zone};

/// How many pods may have a CPU at the same time: what pods have is not given again.
pub(super) const MAX_REF_COUNT: u16 = 1;

/// A pod with what it holds. The pod's name is in its record ([`pod`](Self::pod)): a copy would cost a look at the name, which
/// lies far away, at every decision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holder {
    pub(super) id: PodId,
    pub(super) holding: Arc<Holding>,
}

impl Holder {
    /// Returns the pod, which every holding has.
    pub(super) fn pod<'a>(&self, view: View<'a>) -> Option<&'a Pod> {
        view.cluster().pod(self.id).map(|record| &*record.pod)
    }

    /// Returns the pod's name.
    pub(super) fn key(&self, view: View<'_>) -> PodKey {
        self.pod(view).map(|pod| pod.key.clone()).unwrap_or_default()
    }
}

/// What labels and topology of a node demand and say of pods with CPUs of their own, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Demands {
    policy: NumaPolicy,
    bind: Option<BindPolicy>,
    strategy: Option<AllocateStrategy>,
}

impl Demands {
    fn of(settings: Option<&NodeSettings>, topology: Option<&NodeTopology>) -> Self {
        let of_label = settings.map(|settings| settings.policy).unwrap_or_default();
        let policy = match of_label {
            NumaPolicy::None => topology.map(|topology| topology.policy).unwrap_or_default(),
            of_label => of_label,
        };
        let bind = match topology.is_some_and(|topology| topology.kubelet.is_full_pcpus_only()) {
            true => Some(BindPolicy::FullPcpus),
            false => settings.and_then(|settings| settings.bind),
        };
        Self { policy, bind, strategy: settings.and_then(|settings| settings.strategy) }
    }
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OnNode {
    /// Kept here, because what it is read from lies elsewhere, and is read for every pod with CPUs of its own.
    demands: Demands,
    /// Labels and annotations; `None` while there is no node object.
    pub(super) settings: Option<Arc<NodeSettings>>,
    pub(super) topology: Option<Arc<NodeTopology>>,
    /// The CPUs of `topology`, in one place for all machines that are alike: it is read at every pick.
    pub(super) machine: Option<Arc<CpuTopology>>,
    /// Pods that hold something, by id.
    pub(super) holders: Vec<Holder>,
    /// CPUs that pods have.
    pub(super) taken: KeptCpus,
    /// CPUs of pods that share no cores with pods like them.
    pub(super) pcpu_level: KeptCpus,
    /// CPUs of pods that share no NUMA nodes with pods like them.
    pub(super) numa_node_level: KeptCpus,
    /// What pods hold on NUMA nodes, ascending by node. CPUs count as they really are.
    pub(super) used: Vec<(u16, Amounts)>,
    /// CPUs that no pod is given.
    pub(super) reserved: KeptCpus,
    /// CPUs that can be given.
    pub(super) free: KeptCpus,
    /// How many these are.
    pub(super) free_counts: Free,
    /// NUMA nodes with what they offer: amplified, without reserved CPUs.
    pub(super) zones: Vec<Zone>,
    /// NUMA nodes of which pods have CPUs that have no CPUs elsewhere.
    pub(super) single: NumaMask,
    /// NUMA nodes of which pods have CPUs that have CPUs elsewhere too.
    pub(super) shared: NumaMask,
}

impl OnNode {
    /// Returns the machine's CPUs; `None` when they are not known or contradict each other.
    #[inline]
    pub(super) fn machine(&self) -> Option<&CpuTopology> {
        self.machine.as_deref()
    }

    /// Returns the bind policy that the node forces on pods with whole CPUs: its kubelet's, else its label's.
    #[inline]
    pub(super) fn forced_bind(&self) -> Option<BindPolicy> {
        self.demands.bind
    }

    /// Returns the node's NUMA policy: its label's, else its kubelet's.
    #[inline]
    pub(super) fn policy(&self) -> NumaPolicy {
        self.demands.policy
    }

    /// Returns how the node's label says CPUs are picked.
    #[inline]
    pub(super) fn strategy(&self) -> Option<AllocateStrategy> {
        self.demands.strategy
    }

    /// Returns the node with another policy in its label.
    pub(super) fn with_policy(&self, policy: NumaPolicy) -> Self {
        let mut made = self.clone();
        let mut settings = made.settings.as_deref().cloned().unwrap_or_default();
        settings.policy = policy;
        made.demands = Demands::of(Some(&settings), made.topology.as_deref());
        made.settings = Some(settings.into());
        made
    }

    /// Returns the amplification ratios: those of the NodeResourceTopology, else the node's.
    pub(super) fn ratios(&self) -> Option<&Ratios> {
        let of_topology = self.topology.as_deref().and_then(|topology| topology.ratios.as_ref());
        of_topology.or_else(|| self.settings.as_deref().map(|settings| &settings.ratios))
    }

    /// Returns by how much the node's CPU is amplified.
    #[inline]
    pub(super) fn cpu_ratio(&self) -> f64 {
        self.ratios().map_or(1.0, |ratios| ratios.of(CPU))
    }

    /// Returns the ids of the NUMA nodes.
    pub(super) fn zone_mask(&self) -> NumaMask {
        let bits = self.zones.iter().filter_map(|zone| NumaMask::of(u32::from(zone.node)));
        bits.fold(NumaMask::default(), NumaMask::or)
    }

    /// Returns what pods hold of a NUMA node, with CPUs of their own amplified; `None` when none holds any.
    pub(super) fn used_of(&self, node: u16) -> Option<Amounts> {
        let (_, used) = self.used.iter().find(|(known, _)| *known == node)?;
        let ratio = self.cpu_ratio();
        if ratio <= 1.0 {
            return Some(used.clone());
        }
        let pinned = self.machine().map_or(0, |machine| machine.in_node(node).count_in(&self.taken.get()));
        let pinned = pinned as i64 * 1000;
        let mut used = used.clone();
        used.add(&super::node_topology::cpu_name(), amplify(pinned, ratio) - pinned);
        Some(used)
    }

    /// Returns what is left of a NUMA node, at least 0 of each resource.
    pub(super) fn left_of(&self, zone: &Zone) -> Amounts {
        let Some(used) = self.used_of(zone.node) else {
            return zone.amounts.iter().map(|(name, all)| (name.clone(), (*all).max(0))).collect();
        };
        let left = |(name, all): &(_, i64)| {
            let name: &pellucid_model::Name = name;
            (name.clone(), all.saturating_sub(used.get(name).unwrap_or(0)).max(0))
        };
        zone.amounts.iter().map(left).collect()
    }

    /// Returns the node as if nothing of it were free but what is left of a holding: its CPUs, and its amounts where it has
    /// some.
    pub(super) fn within(&self, room: &Holding) -> Self {
        let all = self.machine().map(|machine| machine.cpus).unwrap_or_default();
        let reserved = self.reserved.get().or(&all.without(&room.cpus.get())).into();
        let mut made = Self { reserved, ..self.clone() };
        for zone in made.zones.iter_mut().filter(|_| !room.zones.is_empty()) {
            let own = room.zones.iter().find(|(node, _)| *node == zone.node).map(|(_, own)| own);
            let used = self.used_of(zone.node).unwrap_or_default();
            let bounded = |(name, all): &(pellucid_model::Name, i64)| {
                let own = own.and_then(|own| own.get(name)).unwrap_or(0);
                (name.clone(), (*all).min(used.get(name).unwrap_or(0).saturating_add(own)))
            };
            zone.amounts = zone.amounts.iter().map(bounded).collect();
        }
        made.count_free();
        made
    }

    /// Adds a pod with what it holds, or takes it away.
    pub(super) fn hold(&mut self, holder: Holder, begins: bool) {
        match (self.holders.binary_search_by_key(&holder.id, |known| known.id), begins) {
            (Ok(at), true) => self.holders[at] = holder,
            (Err(at), true) => {
                self.add(&holder.holding);
                self.holders.insert(at, holder);
                return self.count_free();
            }
            (Ok(at), false) => drop(self.holders.remove(at)),
            (Err(_), false) => return,
        }
        self.sum_up();
    }

    /// Makes the sums anew that depend on what pods hold.
    pub(super) fn sum_up(&mut self) {
        let holders = std::mem::take(&mut self.holders);
        (self.taken, self.pcpu_level, self.numa_node_level) = Default::default();
        (self.single, self.shared) = Default::default();
        self.used.clear();
        holders.iter().for_each(|holder| self.add(&holder.holding));
        self.holders = holders;
        self.count_free();
    }

    /// Adds what a pod holds to the sums.
    fn add(&mut self, holding: &Holding) {
        let cpus = holding.cpus.get();
        self.taken.add(&cpus);
        match holding.exclusive {
            Some(ExclusivePolicy::PcpuLevel) => self.pcpu_level.add(&cpus),
            Some(ExclusivePolicy::NumaNodeLevel) => self.numa_node_level.add(&cpus),
            _ => {}
        }
        let nodes = NumaMask(self.machine().map_or(0, |machine| machine.nodes_of(&cpus)));
        match nodes.count() {
            0 => {}
            1 => self.single = self.single.or(nodes),
            _ => self.shared = self.shared.or(nodes),
        }
        // A NUMA node with pods of both kinds counts as shared.
        self.single = NumaMask(self.single.0 & !self.shared.0);
        for (node, amounts) in &holding.zones {
            let at = self.used.partition_point(|(known, _)| known < node);
            if self.used.get(at).is_none_or(|(known, _)| known != node) {
                self.used.insert(at, (*node, Amounts::default()));
            }
            amounts.iter().for_each(|(name, amount)| self.used[at].1.add(name, *amount));
        }
    }

    fn count_free(&mut self) {
        (self.free, self.free_counts) = Default::default();
        if let Some(machine) = self.machine.as_deref() {
            let free = machine.cpus.without(&self.taken.get()).without(&self.reserved.get());
            let [cpus, in_whole_cores, cores] = machine.count(&free).map(|n| n as u16);
            self.free = free.into();
            self.free_counts = Free { cpus, in_whole_cores, cores };
        }
    }

    /// Makes everything anew that depends on topology and settings.
    pub(super) fn refresh(&mut self) {
        let reported = self.topology.as_deref().and_then(|topology| topology.cpus.as_ref());
        if self.machine.as_deref() != reported {
            self.machine = reported.map(|machine| Arc::new(machine.clone()));
        }
        let of_node = self.settings.as_deref().map(|settings| settings.reserved).unwrap_or_default();
        let topology = self.topology.as_deref();
        self.demands = Demands::of(self.settings.as_deref(), topology);
        let reserved = topology.map_or(of_node, |topology| topology.reserved().or(&of_node));
        self.reserved = reserved.into();
        let ratios = self.ratios().filter(|_| topology.is_some_and(|topology| topology.ratios.is_none()));
        let zone = |zone: &Zone| {
            let reserved = self.machine().map_or(0, |machine| machine.in_node(zone.node).count_in(&reserved));
            let real = |name: &str, amount: i64| match name {
                CPU if amount > 0 => amount - reserved as i64 * 1000,
                _ => amount,
            };
            let amplified = |(name, amount): &(pellucid_model::Name, i64)| {
                let ratio = ratios.map_or(1.0, |ratios| ratios.of(name));
                (name.clone(), amplify(real(name, *amount), ratio))
            };
            Zone { node: zone.node, amounts: zone.amounts.iter().map(amplified).collect() }
        };
        self.zones = topology.map(|topology| topology.zones.iter().map(zone).collect()).unwrap_or_default();
        self.sum_up();
    }

    /// Returns whether nothing is known of the node.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_none() && self.topology.is_none() && self.holders.is_empty()
    }
}
