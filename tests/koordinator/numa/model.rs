//! What Koordinator's rules give a pod on one node, and what ours give it: read from the objects alone, in plain code beside
//! the plugin's. Where the two differ on purpose ([`Rule`]), a decision of ours is right if it is what our rules give and the
//! recorded one is what theirs give.
//!
//! The pick of CPUs and the devices are the plugins' own: there both agree.

use std::collections::BTreeSet;

use pellucid::plugins::node_numa_resource::cpus::accumulator::{
    AllocateStrategy, BindPolicy, ExclusivePolicy, Request, Taken, allocate,
};
use pellucid::plugins::node_numa_resource::cpus::set::CpuSet;
use pellucid::plugins::node_numa_resource::cpus::topology::CpuTopology;
use serde_json::Value;

use super::merge::{Hint, merged, of_size, sets};
use super::node::{Amounts, Node, Zones, amplify, annotation, requests};

/// A rule in which ours differs from Koordinator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// Under SingleNUMANode theirs takes the only NUMA node of a node for no affinity at all: no amounts are recorded.
    OneZone,
    /// When amounts are split, theirs orders NUMA nodes by what others have left: it compares by position in the set.
    SplitOrder,
    /// Under BestEffort theirs narrows hints that name different NUMA nodes to what they share, and when that is the best it
    /// takes all NUMA nodes, although fewer would do.
    GivesUp,
    /// A request of 0 counts in theirs, and NUMA nodes that have nothing of the resource are no hint for it.
    Zeros,
    /// Where the node forces a bind policy and its CPUs are not known, theirs has no hints for any pod, whether it gets CPUs or
    /// not.
    Trims,
    /// Theirs refuses every pod with CPU on an amplified node whose CPUs are not known.
    Amplified,
    /// What is only preferred, and BestEffort, theirs tries at Reserve, and keeps the pod pending when that fails.
    AtReserve,
}

impl Rule {
    pub(super) const ALL: [Self; 7] = [
        Self::OneZone,
        Self::SplitOrder,
        Self::GivesUp,
        Self::Zeros,
        Self::Trims,
        Self::Amplified,
        Self::AtReserve,
    ];
}

/// What becomes of a pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is refused, at Filter unless Reserve finds out.
    Refused { reason: String, at_reserve: bool },
    /// It gets CPUs of its own and amounts, on NUMA nodes that were agreed on.
    Takes { affinity: Option<u64>, cpus: Vec<usize>, zones: Zones },
}

/// The devices of a node, as their plugin sees them.
pub(super) struct Devices<'a> {
    /// Hints of each type; `None` for a pod without devices.
    pub(super) hints: Option<Result<Vec<Option<Vec<Hint>>>, String>>,
    pub(super) fits: &'a dyn Fn(u64) -> Result<(), String>,
}

/// A pod on a node.
pub(super) struct Question<'a> {
    pub(super) node: &'a Node,
    pub(super) devices: &'a Devices<'a>,
    requests: Amounts,
    cpu: i64,
    wants: bool,
    /// Whether it would get CPUs of its own but for the part of one that it requests.
    is_fraction: bool,
    required: Option<BindPolicy>,
    bind: BindPolicy,
    exclusive: ExclusivePolicy,
    own_policy: String,
    is_alone: bool,
    /// Whether scores, and scores of NUMA nodes, prefer what is used most.
    most: [bool; 2],
    /// The rules in which ours are followed.
    ours: BTreeSet<Rule>,
}

impl<'a> Question<'a> {
    /// Reads a pod whose priority is known.
    pub(super) fn new(
        (node, devices): (&'a Node, &'a Devices<'a>),
        pod: &Value,
        args: &Value,
        ours: &[Rule],
    ) -> Self {
        let spec = annotation(pod, "scheduling.koordinator.sh/resource-spec");
        let numa = annotation(pod, "scheduling.koordinator.sh/numa-topology-spec");
        let default = BindPolicy::ALL.into_iter().find(|p| args["defaultCPUBindPolicy"] == p.as_str());
        let default = default.unwrap_or(BindPolicy::FullPcpus);
        let read = |name: &str| match spec[name].as_str().unwrap_or("") {
            "" => None,
            "Default" => Some(default),
            text => BindPolicy::ALL.into_iter().find(|policy| policy.as_str() == text),
        };
        let (required, preferred) = (read("requiredCPUBindPolicy"), read("preferredCPUBindPolicy"));
        let bind = required.or(preferred).unwrap_or(default);
        let priority = pod["spec"]["priority"].as_i64().unwrap_or(0);
        let is_other = [3000, 5000, 7000].iter().any(|from| (*from..from + 1000).contains(&priority));
        let qos = pod["metadata"]["labels"]["koordinator.sh/qosClass"].as_str();
        let may = matches!(qos, Some("LSE" | "LSR")) && !is_other && bind != BindPolicy::ConstrainedBurst;
        let requests = requests(pod);
        let cpu = requests.get("cpu").copied().unwrap_or(0);
        let own_policy = numa["numaTopologyPolicy"].as_str().unwrap_or("").to_owned();
        let sharing = numa["singleNUMANodeExclusive"].as_str().unwrap_or("");
        let exclusive = spec["preferredCPUExclusivePolicy"].as_str();
        let exclusive = ExclusivePolicy::ALL.into_iter().find(|policy| Some(policy.as_str()) == exclusive);
        let wants = may && cpu > 0;
        let most = ["scoringStrategy", "numaScoringStrategy"].map(|of| args[of]["type"] == "MostAllocated");
        Self {
            node,
            devices,
            requests,
            cpu,
            wants,
            is_fraction: may && cpu % 1000 != 0,
            required: required.filter(|_| wants),
            bind,
            exclusive: exclusive.filter(|_| wants).unwrap_or_default(),
            is_alone: if sharing.is_empty() { !own_policy.is_empty() } else { sharing == "Required" },
            own_policy,
            most,
            ours: ours.iter().copied().collect(),
        }
    }

    fn follows(&self, rule: Rule) -> bool {
        self.ours.contains(&rule)
    }

    fn policy(&self) -> &str {
        if self.own_policy.is_empty() { self.node.policy() } else { &self.own_policy }
    }

    /// Returns whether the pod gets CPUs of its own.
    fn is_pinned(&self) -> bool {
        self.wants || self.cpu > 0 && self.node.forced().is_some()
    }

    /// Returns the bind policy, and whether it must hold.
    fn bind(&self) -> (BindPolicy, bool) {
        let must = self.required.or(self.node.forced());
        (must.unwrap_or(self.bind), must.is_some())
    }

    /// Returns which of some free CPUs the pod can use.
    fn usable(&self, machine: &CpuTopology, free: &CpuSet) -> CpuSet {
        match self.bind() {
            (BindPolicy::FullPcpus, true) => machine.whole_cores(free),
            (_, true) => machine.one_of_each_core(free),
            _ => *free,
        }
    }

    fn free(&self, machine: &CpuTopology) -> CpuSet {
        machine.cpus.without(&self.node.taken()).without(&self.node.reserved)
    }

    /// Returns what is left of NUMA nodes: of CPU no more than the bind policy lets the pod use.
    fn left(&self) -> Result<Zones, String> {
        let mut left = self.node.left();
        if !self.bind().1 {
            return Ok(left);
        }
        let Some(machine) = &self.node.machine else {
            let fails = self.node.has_report && !self.follows(Rule::Trims);
            return if fails { Err("node(s) invalid CPU Topology".to_owned()) } else { Ok(left) };
        };
        let usable = self.usable(machine, &self.free(machine));
        for (node, zone) in &mut left {
            let most = 1000 * usable.and(&machine.in_node(*node as u16)).len() as i64;
            zone.get_mut("cpu").into_iter().for_each(|cpu| *cpu = (*cpu).min(most));
        }
        Ok(left)
    }

    /// Splits the amounts among NUMA nodes.
    fn split(&self, mask: u64, left: &Zones) -> Result<Zones, String> {
        let of = |node: usize, name: &str| {
            left.get(&(node as u32)).and_then(|zone| zone.get(name)).copied().unwrap_or(0)
        };
        let (mut made, mut short) = (Zones::new(), Vec::new());
        for (name, requested) in &self.requests {
            if !left.values().any(|zone| zone.contains_key(name)) {
                continue;
            }
            let mut order: Vec<usize> = (0..64).filter(|n| mask >> n & 1 == 1).collect();
            if self.follows(Rule::SplitOrder) {
                order.sort_by_key(|node| of(*node, name));
            } else {
                // An insertion sort that compares what NUMA nodes have whose numbers are the places.
                for i in 1..order.len() {
                    let mut at = i;
                    while at > 0 && of(at, name) < of(at - 1, name) {
                        order.swap(at, at - 1);
                        at -= 1;
                    }
                }
            }
            let mut rest = *requested;
            for (i, node) in order.iter().enumerate() {
                let share = self.share(name, rest, (order.len() - i) as i64).min(of(*node, name));
                if share > 0 {
                    made.entry(*node as u32).or_default().insert(name.clone(), share);
                    rest -= share;
                }
            }
            // Parts of CPUs are rounded up, so more can be given than is requested, which fails too.
            if rest != 0 {
                short.push(format!("Insufficient NUMA {name}"));
            }
        }
        if short.is_empty() { Ok(made) } else { Err(short.join(", ")) }
    }

    fn share(&self, name: &str, rest: i64, among: i64) -> i64 {
        if name != "cpu" || !self.is_pinned() {
            return rest / among;
        }
        let threads = self.node.machine.as_ref().map_or(1, |machine| machine.cpus_per_core) as i64;
        let unit = if self.bind() == (BindPolicy::FullPcpus, true) { threads } else { 1 };
        (rest + 999) / 1000 / unit / among * unit * 1000
    }

    /// Returns CPUs and amounts, on NUMA nodes or anywhere.
    fn allocate(&self, mask: Option<u64>) -> Result<(CpuSet, Zones), String> {
        let zones = match mask {
            Some(mask) => self.split(mask, &self.left()?)?,
            None => Zones::new(),
        };
        let cpus = if self.is_pinned() { self.pick(&zones)? } else { CpuSet::default() };
        Ok((cpus, zones))
    }

    fn pick(&self, zones: &Zones) -> Result<CpuSet, String> {
        let lack = || "not enough cpus available to satisfy request".to_owned();
        let machine = self.node.machine.as_ref().ok_or("node(s) invalid CPU Topology")?;
        let free = self.usable(machine, &self.free(machine));
        let strategy = match self.node.label("numa-allocate-strategy") {
            "" if self.most[1] => AllocateStrategy::MostAllocated,
            text => AllocateStrategy::ALL.into_iter().find(|of| of.as_str() == text).unwrap_or_default(),
        };
        let (pcpu_level, numa_node_level) =
            (self.node.taken_by("PCPULevel"), self.node.taken_by("NUMANodeLevel"));
        let pick = |free: CpuSet, n: usize| {
            let taken = Taken { free, refs: Vec::new(), pcpu_level, numa_node_level };
            let (bind, exclusive) = (self.bind().0, self.exclusive);
            let request = Request { n, bind, exclusive, strategy, preferred: CpuSet::default() };
            allocate(machine, &taken, &request).map_err(|_| lack())
        };
        let n = (self.cpu / 1000) as usize;
        if zones.is_empty() {
            return pick(free, n);
        }
        let mut made = CpuSet::default();
        for (node, zone) in zones {
            let free = free.and(&machine.in_node(*node as u16));
            let share = zone.get("cpu").map_or(0, |cpu| *cpu as usize / 1000).min(free.len());
            made = made.or(&pick(free, share)?);
        }
        if made.len() == n { Ok(made) } else { Err(lack()) }
    }

    /// Returns the request with a pinned pod's CPU amplified.
    fn amplified(&self) -> i64 {
        if self.is_pinned() { amplify(self.cpu, self.node.ratio) } else { self.cpu }
    }

    fn rate(&self, is_most: bool, all: &Amounts, used: &Amounts) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for name in ["cpu", "memory"] {
            let of = |from: &Amounts| from.get(name).copied().unwrap_or(0);
            let (all, own) = (of(all), if name == "cpu" { self.amplified() } else { of(&self.requests) });
            if all == 0 {
                continue;
            }
            let taken = of(used) + own;
            let part = if is_most { taken.min(all) } else { (all - taken).max(0) };
            (sum, weights) = (sum + part * 100 / all, weights + 1);
        }
        if weights == 0 { 0 } else { sum / weights }
    }

    /// Returns the hints for CPU, memory and what else NUMA nodes have.
    fn hints(&self) -> Result<Vec<(String, Vec<Hint>)>, String> {
        let lacking = |_| "node(s) Insufficient NUMA Node resources".to_owned();
        let (left, offered) = (self.left().map_err(lacking)?, self.node.offered());
        let zones: Vec<u32> = offered.keys().copied().collect();
        let counts = |name: &str| self.requests[name] > 0 || !self.follows(Rule::Zeros);
        let is_there = |name: &str| offered.values().any(|zone| zone.contains_key(name));
        let names: Vec<&String> =
            self.requests.keys().filter(|name| is_there(name) && counts(name)).collect();
        let mut lists: Vec<Vec<Hint>> = names.iter().map(|_| Vec::new()).collect();
        for mask in sets(&zones) {
            if self.allocate(Some(mask)).is_err() {
                continue;
            }
            let sum = |from: &Zones| {
                let inside = from.iter().filter(|(node, _)| mask >> **node & 1 == 1);
                let mut sum = Amounts::new();
                inside
                    .flat_map(|(_, zone)| zone)
                    .for_each(|(name, n)| *sum.entry(name.clone()).or_default() += n);
                sum
            };
            let (all, free) = (sum(&offered), sum(&left));
            let used = all.iter().map(|(name, n)| (name.clone(), (n - free[name]).max(0))).collect();
            let score = self.rate(self.most[1], &all, &used);
            for (name, list) in names.iter().zip(&mut lists) {
                let lacks = |node: &u32| left[node].get(*name).is_none_or(|n| *n == 0);
                if !zones.iter().any(|node| mask >> node & 1 == 1 && lacks(node)) {
                    list.push(Hint { mask: Some(mask), preferred: false, score });
                }
            }
        }
        for list in &mut lists {
            let least = list.iter().filter_map(|hint| hint.mask).map(u64::count_ones).min();
            for hint in list {
                hint.preferred = of_size(hint, least) || self.policy() == "Restricted";
            }
        }
        Ok(names.into_iter().cloned().zip(lists).collect())
    }

    /// Agrees on NUMA nodes; `None` for no affinity.
    fn admit(&self) -> Result<Option<u64>, String> {
        if self.node.zones.is_empty() {
            return Err("node(s) missing NUMA resources".to_owned());
        }
        let devices = self.devices.hints.clone().unwrap_or_else(|| Ok(vec![None]));
        let (own, devices) = match (self.hints(), devices) {
            (Ok(own), Ok(devices)) => (own, devices),
            (own, devices) => {
                let reasons: Vec<String> = own.err().into_iter().chain(devices.err()).collect();
                return Err(reasons.join(", "));
            }
        };
        let lacking = own.iter().filter(|(_, list)| list.is_empty());
        let lacking: Vec<String> = lacking.map(|(name, _)| format!("Unsatisfied NUMA {name}")).collect();
        if self.policy() != "BestEffort" && !lacking.is_empty() {
            return Err(lacking.join(", "));
        }
        let own = own.into_iter().map(|(_, list)| Some(list));
        let lists: Vec<Option<Vec<Hint>>> = own.chain(devices).collect();
        let all = self.node.zones.keys().fold(0, |mask, node| mask | 1u64 << node);
        let allows = |mask: u64| !self.is_alone || self.node.keeps_apart(mask);
        let gives_up = !self.follows(Rule::GivesUp);
        let found = merged(self.policy(), (all, &allows), &lists, gives_up);
        let mask = found.ok_or("node(s) NUMA Topology affinity error")?;
        let is_none = self.policy() == "SingleNUMANode" && mask == all && !self.follows(Rule::OneZone);
        let affinity = Some(mask).filter(|_| !is_none);
        self.allocate(affinity)?;
        affinity.map_or(Ok(()), |mask| (self.devices.fits)(mask))?;
        Ok(affinity)
    }

    /// Returns the affinity that Filter finds, or why it refuses.
    pub(super) fn filter(&self) -> Result<Option<u64>, String> {
        let (node, of_node) = (self.node, self.node.policy());
        if self.is_fraction {
            return Err("the requested CPUs must be integer".to_owned());
        }
        if !self.own_policy.is_empty() && !of_node.is_empty() && of_node != self.own_policy {
            return Err("node(s) NUMA Topology policy not match".to_owned());
        }
        if self.is_pinned() && self.cpu % 1000 != 0 {
            return Err("the requested CPUs must be integer".to_owned());
        }
        if self.cpu > 0 && node.ratio > 1.0 {
            if node.has_report && node.machine.is_none() && !self.follows(Rule::Amplified) {
                return Err("node(s) invalid CPU Topology".to_owned());
            }
            let (own, used) = (1000 * node.taken().len() as i64, self.used_cpu());
            let used = if used >= own { used - own + amplify(own, node.ratio) } else { used };
            if self.amplified() > node.allocatable.get("cpu").copied().unwrap_or(0) - used {
                return Err("Insufficient amplified cpu".to_owned());
            }
        }
        if self.is_pinned() {
            let machine = node.machine.as_ref().ok_or("node(s) invalid CPU Topology")?;
            if self.required.zip(node.forced()).is_some_and(|(own, forced)| own != forced) {
                return Err(
                    "node(s) cpu bind policy conflicts with pod's required cpu bind policy".to_owned()
                );
            }
            let n = (self.cpu / 1000) as usize;
            if self.bind() == (BindPolicy::FullPcpus, true) && !n.is_multiple_of(machine.cpus_per_core) {
                return Err("node(s) requested cpus not multiple cpus per core".to_owned());
            }
            if self.bind().1 && self.policy().is_empty() {
                self.allocate(None)?;
            }
        }
        if matches!(self.policy(), "Restricted" | "SingleNUMANode") { self.admit() } else { Ok(None) }
    }

    fn used_cpu(&self) -> i64 {
        self.node.pods.iter().filter_map(|pod| pod.requests.get("cpu")).sum()
    }

    pub(super) fn decide(&self) -> Decision {
        let refused = |reason, at_reserve| Decision::Refused { reason, at_reserve };
        let affinity = match self.filter() {
            Ok(affinity) => affinity,
            Err(reason) => return refused(reason, false),
        };
        let affinity = if self.policy() == "BestEffort" { self.admit() } else { Ok(affinity) };
        let all = |affinity: Option<u64>| {
            let (cpus, zones) = self.allocate(affinity)?;
            Ok(Decision::Takes { affinity, cpus: cpus.iter().collect(), zones })
        };
        affinity.and_then(all).unwrap_or_else(|reason| refused(reason, !self.follows(Rule::AtReserve)))
    }

    /// Returns the node's score; 0 for one that does not take the pod.
    pub(super) fn score(&self) -> i64 {
        let node = self.node;
        let Ok(affinity) = self.filter() else { return 0 };
        let (own, used_cpu) = (1000 * node.taken().len() as i64, self.used_cpu());
        let memory = node.pods.iter().filter_map(|pod| pod.requests.get("memory")).sum();
        let of_node = |cpu| Amounts::from([("cpu".to_owned(), cpu), ("memory".to_owned(), memory)]);
        if self.policy().is_empty() {
            let counts = self.cpu > 0 && node.ratio > 1.0;
            let more = if counts { amplify(own, node.ratio) - own } else { 0 };
            return self.rate(self.most[0], &node.allocatable, &of_node(used_cpu + more));
        }
        let Ok((cpus, zones)) = self.allocate(affinity) else { return 0 };
        let (mut all, mut used) = (Amounts::new(), Amounts::new());
        for zone in zones.keys() {
            for (sum, from) in [(&mut all, node.offered()), (&mut used, node.used())] {
                let zone = from.get(zone).into_iter().flatten();
                zone.for_each(|(name, n)| *sum.entry(name.clone()).or_default() += n);
            }
        }
        if zones.is_empty() {
            (all, used) = (node.allocatable.clone(), of_node(used_cpu));
        }
        if !cpus.is_empty() {
            used.insert("cpu".to_owned(), amplify(own, node.ratio));
        }
        self.rate(self.most[0], &all, &used)
    }
}
