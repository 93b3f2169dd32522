//! A node as the model sees it, read from its objects and from those of the pods on it.

use std::collections::BTreeMap;

use pellucid::model::quantity;
use pellucid::plugins::node_numa_resource::cpus::accumulator::BindPolicy;
use pellucid::plugins::node_numa_resource::cpus::set::CpuSet;
use pellucid::plugins::node_numa_resource::cpus::topology::{CpuInfo, CpuTopology};
use serde_json::{Value, json};

pub(super) type Amounts = BTreeMap<String, i64>;
pub(super) type Zones = BTreeMap<u32, Amounts>;

/// What a pod holds.
pub(super) struct Held {
    cpus: CpuSet,
    exclusive: String,
    zones: Zones,
    pub(super) requests: Amounts,
}

/// A node with the pods on it.
pub(super) struct Node {
    labels: Value,
    pub(super) allocatable: Amounts,
    pub(super) ratio: f64,
    pub(super) has_report: bool,
    pub(super) machine: Option<CpuTopology>,
    pub(super) reserved: CpuSet,
    is_full_only: bool,
    reported_policy: String,
    pub(super) zones: Zones,
    pub(super) pods: Vec<Held>,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Reads an annotation that is JSON; `null` where it is not.
pub(super) fn annotation(object: &Value, key: &str) -> Value {
    let text = object["metadata"]["annotations"][key].as_str().unwrap_or("null");
    serde_json::from_str(text).unwrap_or_default()
}

fn cpus(value: &Value) -> CpuSet {
    CpuSet::parse(value.as_str().unwrap_or("")).unwrap_or_default()
}

fn amount(name: &str, value: &Value) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let read = if name == "cpu" { quantity::milli(&text) } else { quantity::units(&text) };
    read.unwrap_or_default()
}

fn amounts(value: &Value) -> Amounts {
    let all = value.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), amount(name, value))).collect()
}

pub(super) fn requests(pod: &Value) -> Amounts {
    let mut sum = Amounts::new();
    for container in list(&pod["spec"]["containers"]) {
        for (name, amount) in amounts(&container["resources"]["requests"]) {
            *sum.entry(name).or_default() += amount;
        }
    }
    sum
}

/// Reads what a pod has of NUMA nodes by its annotation.
pub(super) fn held(status: &Value) -> (Vec<usize>, Zones) {
    let zone = |zone: &Value| {
        let node = zone["node"].as_u64().unwrap_or_default() as u32;
        (node, amounts(&zone["resources"]))
    };
    let zones = list(&status["numaNodeResources"]).iter().map(zone).collect();
    (cpus(&status["cpuset"]).iter().collect(), zones)
}

pub(super) fn amplify(amount: i64, ratio: f64) -> i64 {
    if ratio <= 1.0 { amount } else { (amount as f64 * ratio).ceil() as i64 }
}

impl Node {
    /// Reads a node, its NodeResourceTopology and the pods on it.
    pub(super) fn new<'a>(
        node: &Value,
        report: Option<&Value>,
        pods: impl Iterator<Item = &'a Value>,
    ) -> Self {
        const KEY: &str = "node.koordinator.sh/";
        let none = Value::Null;
        let of = |name: &str| annotation(report.unwrap_or(&none), &format!("{KEY}{name}"));
        let kubelet = annotation(report.unwrap_or(&none), "kubelet.koordinator.sh/cpu-manager-policy");
        let (topology, system) = (of("cpu-topology"), of("system-qos-resource"));
        let id = |cpu: &Value, name: &str| cpu[name].as_u64().unwrap_or_default() as u16;
        let info = |cpu: &Value| {
            let [id, core, socket, node] = ["id", "core", "socket", "node"].map(|name| id(cpu, name));
            CpuInfo { id, core, socket, node }
        };
        let infos: Vec<CpuInfo> = list(&topology["detail"]).iter().map(info).collect();
        let machine = CpuTopology::of(&infos).ok().filter(|_| !infos.is_empty());
        let mut reserved = cpus(&kubelet["reservedCPUs"]).or(&cpus(&of("reservation")["reservedCPUs"]));
        for pod in list(&of("pod-cpu-allocs")).iter().filter(|pod| pod["managedByKubelet"] == true) {
            reserved = reserved.or(&cpus(&pod["cpuset"]));
        }
        if system["cpusetExclusive"] != false {
            reserved = reserved.or(&cpus(&system["cpuset"]));
        }
        let zone = |zone: &Value| {
            let n: u32 = zone["name"].as_str()?.strip_prefix("node-")?.parse().ok()?;
            let of_one = |of: &Value| {
                let name = of["name"].as_str().unwrap_or("").to_owned();
                (name.clone(), amount(&name, &of["allocatable"]))
            };
            let mut all: Amounts = list(&zone["resources"]).iter().map(of_one).collect();
            let lost = machine.as_ref().map_or(0, |m| m.in_node(n as u16).and(&reserved).len());
            if let Some(cpu) = all.get_mut("cpu").filter(|cpu| **cpu > 0) {
                *cpu -= 1000 * lost as i64;
            }
            Some((n, all))
        };
        let zones = report.map_or(&[][..], |report| list(&report["zones"]));
        let policy = |policy: &Value| match policy.as_str()? {
            "BestEffort" => Some("BestEffort"),
            "Restricted" => Some("Restricted"),
            "SingleNUMANodePodLevel" => Some("SingleNUMANode"),
            _ => None,
        };
        let policies = report.map_or(&[][..], |report| list(&report["topologyPolicies"]));
        let ratio = &annotation(node, &format!("{KEY}resource-amplification-ratio"))["cpu"];
        let pod = |pod: &Value| {
            let spec = annotation(pod, "scheduling.koordinator.sh/resource-spec");
            let (cpus, zones) = held(&annotation(pod, "scheduling.koordinator.sh/resource-status"));
            let exclusive = spec["preferredCPUExclusivePolicy"].as_str().unwrap_or("").to_owned();
            Held { cpus: CpuSet::of(cpus), exclusive, zones, requests: requests(pod) }
        };
        Self {
            labels: node["metadata"]["labels"].clone(),
            allocatable: amounts(&node["status"]["allocatable"]),
            ratio: ratio.as_f64().unwrap_or(1.0),
            has_report: report.is_some(),
            reserved,
            is_full_only: kubelet["policy"] == "static" && kubelet["options"]["full-pcpus-only"] == "true",
            reported_policy: policies.iter().find_map(policy).unwrap_or("").to_owned(),
            zones: zones.iter().filter(|zone| zone["type"] == "Node").filter_map(zone).collect(),
            machine,
            pods: pods.map(pod).collect(),
        }
    }

    pub(super) fn label(&self, name: &str) -> &str {
        self.labels[format!("node.koordinator.sh/{name}")].as_str().unwrap_or("")
    }

    pub(super) fn policy(&self) -> &str {
        Some(self.label("numa-topology-policy"))
            .filter(|own| !own.is_empty())
            .unwrap_or(&self.reported_policy)
    }

    pub(super) fn forced(&self) -> Option<BindPolicy> {
        match self.label("cpu-bind-policy") {
            _ if self.is_full_only => Some(BindPolicy::FullPcpus),
            "FullPCPUsOnly" => Some(BindPolicy::FullPcpus),
            "SpreadByPCPUs" => Some(BindPolicy::SpreadByPcpus),
            _ => None,
        }
    }

    pub(super) fn taken(&self) -> CpuSet {
        self.pods.iter().fold(CpuSet::default(), |all, pod| all.or(&pod.cpus))
    }

    pub(super) fn taken_by(&self, exclusive: &str) -> CpuSet {
        let all = self.pods.iter().filter(|pod| pod.exclusive == exclusive);
        all.fold(CpuSet::default(), |all, pod| all.or(&pod.cpus))
    }

    /// Returns what NUMA nodes have, with CPU amplified.
    pub(super) fn offered(&self) -> Zones {
        let amplified = |(name, amount): (&String, &i64)| {
            let ratio = if name == "cpu" { self.ratio } else { 1.0 };
            (name.clone(), amplify(*amount, ratio))
        };
        self.zones.iter().map(|(node, zone)| (*node, zone.iter().map(amplified).collect())).collect()
    }

    /// Returns what pods have of NUMA nodes, with CPUs of their own amplified.
    pub(super) fn used(&self) -> Zones {
        let mut all = Zones::new();
        for (node, zone) in self.pods.iter().flat_map(|pod| &pod.zones) {
            let sum = all.entry(*node).or_default();
            zone.iter().for_each(|(name, amount)| *sum.entry(name.clone()).or_default() += amount);
        }
        for (node, sum) in all.iter_mut().filter(|_| self.ratio > 1.0) {
            let own = self.machine.as_ref().map_or(0, |m| m.in_node(*node as u16).and(&self.taken()).len());
            let own = own as i64 * 1000;
            *sum.entry("cpu".to_owned()).or_default() += amplify(own, self.ratio) - own;
        }
        all
    }

    pub(super) fn left(&self) -> Zones {
        let (used, mut all) = (self.used(), self.offered());
        for (node, zone) in &mut all {
            let of = |name: &str| used.get(node).and_then(|zone| zone.get(name)).copied().unwrap_or(0);
            zone.iter_mut().for_each(|(name, amount)| *amount = (*amount - of(name)).max(0));
        }
        all
    }

    /// Returns whether a pod that shares no NUMA node between pods of one and pods of several may have these.
    pub(super) fn keeps_apart(&self, mask: u64) -> bool {
        let of = |pod: &Held| self.machine.as_ref().map_or(0, |machine| machine.nodes_of(&pod.cpus));
        let masks: Vec<u64> = self.pods.iter().map(of).collect();
        let wide = |n: u64| masks.iter().any(|of| of & n != 0 && of.count_ones() > 1);
        let narrow = |n: u64| masks.contains(&n) && !wide(n);
        let mut bits = (0..64).map(|n| 1 << n).filter(|n| mask & n != 0);
        if mask.count_ones() > 1 { !bits.any(narrow) } else { !bits.any(wide) }
    }
}

/// Returns a pod with the priority that its class gives it, by the classes of the case or Koordinator's own.
pub(super) fn with_priority<'a>(pod: &Value, classes: impl Iterator<Item = &'a Value>) -> Value {
    let mut pod = pod.clone();
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or("");
    let mut given = classes.filter(|of| of["metadata"]["name"] == class).map(|of| of["value"].clone());
    let own = [("koord-prod", 9000), ("koord-mid", 7000), ("koord-batch", 5000), ("koord-free", 3000)];
    let own = own.iter().find(|(name, _)| *name == class).map_or(0, |(_, value)| *value);
    pod["spec"]["priority"] = given.next().unwrap_or(json!(own));
    pod
}
