//! NodeResourceTopology (`topology.node.k8s.io/v1alpha1`): the CPUs and NUMA nodes of a node, as koordlet reports them.
//!
//! What cannot be read in an annotation becomes a [`Problem`] and counts as absent, so that one bad annotation does not
//! hide the node. Not here: what pods hold of the CPUs.

use std::collections::BTreeMap;

use pellucid_framework::manifest::{Field, FieldError};
use pellucid_framework::topology::NumaPolicy;
use pellucid_model::Name;
use serde_json::{Map, Value, json};

use super::amounts::{Amounts, Ratios};
use super::cpus::set::CpuSet;
use super::cpus::topology::{CpuInfo, CpuTopology};
use super::keys;

/// Something about a node that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    /// The annotation, label or field.
    pub(super) field: String,
    pub(super) value: String,
    pub(super) problem: String,
}

impl Problem {
    pub(super) fn of(field: &str, value: &str, problem: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.to_owned(), problem: problem.into() }
    }
}

/// CPUs that the kubelet, or koordlet, gave to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodCpus {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) cpus: CpuSet,
    /// Whether the kubelet did. CPUs that koordlet reports for pods of this scheduler stand on those pods too.
    pub(super) by_kubelet: bool,
}

/// The kubelet's CPU manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KubeletPolicy {
    /// `none`, `static`, or empty when nothing is reported.
    pub(super) policy: String,
    /// Options, which kubelets have from 1.22 on.
    pub(super) options: BTreeMap<String, String>,
    pub(super) reserved: CpuSet,
    /// `reservedCPUs` as given.
    pub(super) reserved_text: String,
}

impl KubeletPolicy {
    /// Returns whether the kubelet gives whole cores only.
    pub(super) fn is_full_pcpus_only(&self) -> bool {
        self.policy == "static" && self.options.get("full-pcpus-only").is_some_and(|on| on == "true")
    }
}

/// A NUMA node with its amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    /// Id of the NUMA node.
    pub(super) node: u16,
    pub(super) amounts: Amounts,
}

/// A NodeResourceTopology.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeTopology {
    /// The CPUs; `None` when they are not reported, or cannot be used.
    pub(super) cpus: Option<CpuTopology>,
    pub(super) allocs: Vec<PodCpus>,
    pub(super) kubelet: KubeletPolicy,
    /// CPUs that annotation `reservation` keeps free of pods.
    pub(super) reservation: CpuSet,
    /// CPUs that pods of the system have to themselves.
    pub(super) system_qos: CpuSet,
    /// Annotation [`keys::CPU_SHARED_POOLS`], CPUs by socket and NUMA node.
    pub(super) shared_pools: Vec<(u16, u16, CpuSet)>,
    /// Annotation [`keys::BE_CPU_SHARED_POOLS`], likewise.
    pub(super) be_shared_pools: Vec<(u16, u16, CpuSet)>,
    /// Ascending by NUMA node.
    pub(super) zones: Vec<Zone>,
    /// The kubelet's topology policy.
    pub(super) policy: NumaPolicy,
    pub(super) ratios: Option<Ratios>,
    pub(super) problems: Vec<Problem>,
    /// Annotations with a problem, as given.
    unread: BTreeMap<&'static str, String>,
}

const ANNOTATIONS: [&str; 8] = [
    keys::CPU_TOPOLOGY,
    keys::POD_CPU_ALLOCS,
    keys::CPU_MANAGER_POLICY,
    keys::RESERVATION,
    keys::SYSTEM_QOS_RESOURCE,
    keys::CPU_SHARED_POOLS,
    keys::BE_CPU_SHARED_POOLS,
    keys::AMPLIFICATION_RATIO,
];

impl NodeTopology {
    /// Decodes a manifest. Fails with the first field outside the annotations that cannot be read.
    pub(super) fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let mut made = Self::default();
        let annotations = root.at(&["metadata", "annotations"])?;
        for key in ANNOTATIONS {
            let Some(text) = annotations.get(key)?.text()? else { continue };
            if let Err(problem) = made.read_annotation(key, text) {
                made.problems.push(Problem::of(key, text, problem));
                made.unread.insert(key, text.to_owned());
            }
        }
        for policy in root.get("topologyPolicies")?.elements()? {
            let read = policy.text()?.and_then(kubelet_policy);
            made.policy =
                if made.policy == NumaPolicy::None { read.unwrap_or_default() } else { made.policy };
        }
        for zone in root.get("zones")?.elements()? {
            made.read_zone(&zone)?;
        }
        made.zones.sort_by_key(|zone| zone.node);
        made.check();
        Ok(made)
    }

    fn read_annotation(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            keys::CPU_TOPOLOGY => self.cpus = Some(read_cpus(text)?),
            keys::POD_CPU_ALLOCS => self.allocs = read_allocs(text)?,
            keys::CPU_MANAGER_POLICY => self.kubelet = read_kubelet(text)?,
            keys::RESERVATION => self.reservation = reserved_cpus(text)?,
            keys::SYSTEM_QOS_RESOURCE => self.system_qos = system_qos_cpus(text)?,
            keys::CPU_SHARED_POOLS => self.shared_pools = read_pools(text)?,
            keys::BE_CPU_SHARED_POOLS => self.be_shared_pools = read_pools(text)?,
            _ => self.ratios = Some(Ratios::parse(text)?),
        }
        Ok(())
    }

    /// Reads a zone. Zones of other types, and with other names than `node-N`, are no NUMA nodes.
    fn read_zone(&mut self, zone: &Field<'_>) -> Result<(), FieldError> {
        let name = zone.get("name")?;
        let number = name.text()?.and_then(|name| name.strip_prefix("node-"));
        let (Some(number), Some("Node")) = (number, zone.get("type")?.text()?) else { return Ok(()) };
        let node = number.parse().ok().filter(|node: &u16| *node < 64);
        let node = node.ok_or_else(|| name.error("no NUMA node from 0 to 63"))?;
        let mut amounts = Amounts::default();
        for resource in zone.get("resources")?.elements()? {
            let Some(of) = resource.get("name")?.text()? else { continue };
            amounts.set(&of.into(), resource.get("allocatable")?.quantity(of)?.unwrap_or(0));
        }
        if self.zones.iter().all(|zone| zone.node != node) {
            self.zones.push(Zone { node, amounts });
        }
        Ok(())
    }

    /// Records what the annotations say that cannot be so together.
    fn check(&mut self) {
        let mut found = Vec::new();
        let mut seen = CpuSet::default();
        for pod in self.allocs.iter().filter(|pod| pod.by_kubelet) {
            let twice = seen.and(&pod.cpus);
            if !twice.is_empty() {
                let (key, name) = (keys::POD_CPU_ALLOCS, format!("{}/{}", pod.namespace, pod.name));
                found.push(Problem::of(key, &name, format!("another pod has its CPUs {twice} too")));
            }
            seen = seen.or(&pod.cpus);
        }
        if let Some(machine) = &self.cpus {
            for (key, cpus) in [
                (keys::CPU_MANAGER_POLICY, &self.kubelet.reserved),
                (keys::RESERVATION, &self.reservation),
                (keys::SYSTEM_QOS_RESOURCE, &self.system_qos),
                (keys::POD_CPU_ALLOCS, &seen),
            ] {
                let beyond = cpus.without(&machine.cpus);
                if !beyond.is_empty() {
                    let problem = "the node does not have these CPUs, so they count for nothing";
                    found.push(Problem::of(key, &beyond.to_string(), problem));
                }
            }
        }
        self.problems.extend(found);
    }

    /// Returns the CPUs that no pod is given: those of the kubelet and its pods, of the system, and reserved ones.
    pub(super) fn reserved(&self) -> CpuSet {
        let kubelet = self.allocs.iter().filter(|pod| pod.by_kubelet && !pod.uid.is_empty());
        let own = self.kubelet.reserved.or(&self.reservation).or(&self.system_qos);
        kubelet.fold(own, |all, pod| all.or(&pod.cpus))
    }

    /// Writes the manifest that [`Self::read`] reads alike.
    pub(super) fn manifest(&self) -> Value {
        let mut annotations: Map<String, Value> =
            self.unread.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
        let mut put = |key: &'static str, value: Option<Value>| {
            if let Some(value) = value.filter(|_| !self.unread.contains_key(key)) {
                annotations.insert(key.to_owned(), json!(value.to_string()));
            }
        };
        put(keys::CPU_TOPOLOGY, self.cpus.as_ref().map(show_cpus));
        put(keys::POD_CPU_ALLOCS, (!self.allocs.is_empty()).then(|| show_allocs(&self.allocs)));
        put(keys::CPU_MANAGER_POLICY, Some(show_kubelet(&self.kubelet)));
        let reservation = json!({"reservedCPUs": self.reservation.to_string()});
        put(keys::RESERVATION, (!self.reservation.is_empty()).then_some(reservation));
        let system = json!({"cpuset": self.system_qos.to_string()});
        put(keys::SYSTEM_QOS_RESOURCE, (!self.system_qos.is_empty()).then_some(system));
        for (key, pools) in
            [(keys::CPU_SHARED_POOLS, &self.shared_pools), (keys::BE_CPU_SHARED_POOLS, &self.be_shared_pools)]
        {
            put(key, (!pools.is_empty()).then(|| show_pools(pools)));
        }
        let ratios = self.ratios.as_ref().map(|ratios| {
            ratios.iter().map(|(name, ratio)| (name.to_owned(), json!(ratio))).collect::<Map<_, _>>()
        });
        put(keys::AMPLIFICATION_RATIO, ratios.map(Value::Object));
        json!({
            "metadata": {"annotations": annotations},
            "topologyPolicies": [policy_name(self.policy)],
            "zones": self.zones.iter().map(show_zone).collect::<Value>(),
        })
    }
}

/// Reads one of the kubelet's policies as NodeResourceTopologies name them; `None` for one that aligns nothing here.
fn kubelet_policy(text: &str) -> Option<NumaPolicy> {
    match text {
        "BestEffort" => Some(NumaPolicy::BestEffort),
        "Restricted" => Some(NumaPolicy::Restricted),
        "SingleNUMANodePodLevel" => Some(NumaPolicy::SingleNumaNode),
        _ => None,
    }
}

fn policy_name(policy: NumaPolicy) -> &'static str {
    match policy {
        NumaPolicy::None => "None",
        NumaPolicy::BestEffort => "BestEffort",
        NumaPolicy::Restricted => "Restricted",
        NumaPolicy::SingleNumaNode => "SingleNUMANodePodLevel",
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))
}

/// Returns the elements of a JSON list, none for `null`.
fn elements(value: &Value) -> Result<&[Value], String> {
    match value {
        Value::Array(all) => Ok(all),
        Value::Null => Ok(&[]),
        other => Err(format!("not a list: {other}")),
    }
}

/// Returns a text of an object, the empty one when absent.
fn text_of<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    match &value[name] {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        other => Err(format!("{name}: not a text: {other}")),
    }
}

fn small(value: &Value, name: &str) -> Result<u16, String> {
    let given = &value[name];
    let number = if given.is_null() { Some(0) } else { given.as_u64() };
    let number = number.and_then(|n| u16::try_from(n).ok());
    number.ok_or_else(|| format!("{name}: not a number from 0 to 65535: {given}"))
}

fn cpus_of(value: &Value, name: &str) -> Result<CpuSet, String> {
    CpuSet::parse(text_of(value, name)?).map_err(|problem| format!("{name}: {problem}"))
}

fn read_cpus(text: &str) -> Result<CpuTopology, String> {
    let parsed = parse(text)?;
    let info = |cpu: &Value| {
        let of = |name| small(cpu, name);
        Ok(CpuInfo { id: of("id")?, core: of("core")?, socket: of("socket")?, node: of("node")? })
    };
    let infos: Vec<CpuInfo> = elements(&parsed["detail"])?.iter().map(info).collect::<Result<_, String>>()?;
    CpuTopology::of(&infos)
}

fn show_cpus(cpus: &CpuTopology) -> Value {
    let info = |(id, core): (usize, &super::cpus::topology::Core)| {
        let (socket, node) = (&cpus.sockets[usize::from(core.socket)], &cpus.nodes[usize::from(core.node)]);
        json!({"id": id, "core": core.id & 0xffff, "socket": socket.id, "node": node.id})
    };
    json!({"detail": cpus.details().map(info).collect::<Value>()})
}

fn read_allocs(text: &str) -> Result<Vec<PodCpus>, String> {
    let pod = |pod: &Value| {
        let of = |name| text_of(pod, name).map(str::to_owned);
        Ok(PodCpus {
            namespace: of("namespace")?,
            name: of("name")?,
            uid: of("uid")?,
            cpus: cpus_of(pod, "cpuset")?,
            by_kubelet: pod["managedByKubelet"].as_bool().unwrap_or(false),
        })
    };
    elements(&parse(text)?)?.iter().map(pod).collect()
}

fn show_allocs(all: &[PodCpus]) -> Value {
    let pod = |pod: &PodCpus| {
        json!({
            "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
            "cpuset": pod.cpus.to_string(), "managedByKubelet": pod.by_kubelet,
        })
    };
    all.iter().map(pod).collect()
}

/// Reads the kubelet's CPU manager policy. Kubelets before 1.22 have no options; koordlet then leaves them out or writes
/// `null`.
fn read_kubelet(text: &str) -> Result<KubeletPolicy, String> {
    let parsed = parse(text)?;
    let mut options = BTreeMap::new();
    for (name, value) in parsed["options"].as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        options.insert(name.clone(), text);
    }
    Ok(KubeletPolicy {
        policy: text_of(&parsed, "policy")?.to_owned(),
        options,
        reserved: cpus_of(&parsed, "reservedCPUs")?,
        reserved_text: text_of(&parsed, "reservedCPUs")?.to_owned(),
    })
}

fn show_kubelet(kubelet: &KubeletPolicy) -> Value {
    json!({"policy": kubelet.policy, "options": kubelet.options, "reservedCPUs": kubelet.reserved_text})
}

/// Reads annotation `reservation` of a node or NodeResourceTopology.
pub(super) fn reserved_cpus(text: &str) -> Result<CpuSet, String> {
    cpus_of(&parse(text)?, "reservedCPUs")
}

/// Reads annotation `system-qos-resource`: the CPUs that are not for other pods.
pub(super) fn system_qos_cpus(text: &str) -> Result<CpuSet, String> {
    let parsed = parse(text)?;
    let is_exclusive = parsed["cpusetExclusive"].as_bool().unwrap_or(true);
    if is_exclusive { cpus_of(&parsed, "cpuset") } else { Ok(CpuSet::default()) }
}

fn read_pools(text: &str) -> Result<Vec<(u16, u16, CpuSet)>, String> {
    let pool = |pool: &Value| Ok((small(pool, "socket")?, small(pool, "node")?, cpus_of(pool, "cpuset")?));
    elements(&parse(text)?)?.iter().map(pool).collect()
}

fn show_pools(pools: &[(u16, u16, CpuSet)]) -> Value {
    let pool = |(socket, node, cpus): &(u16, u16, CpuSet)| json!({"socket": socket, "node": node, "cpuset": cpus.to_string()});
    pools.iter().map(pool).collect()
}

fn show_zone(zone: &Zone) -> Value {
    let resource = |(name, amount): (String, String)| json!({"name": name, "allocatable": amount, "capacity": amount, "available": amount});
    let resources: Value = zone.amounts.quantities().into_iter().map(resource).collect();
    json!({"name": format!("node-{}", zone.node), "type": "Node", "resources": resources})
}

/// Returns the name of a resource that zones count.
pub(super) fn cpu_name() -> Name {
    Name::new(super::amounts::CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(annotations: &[(&str, Value)]) -> Value {
        let texts: Map<String, Value> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value.to_string()))).collect();
        let resources = json!([{"name": "cpu", "allocatable": "4", "capacity": "4"}, {"name": "memory", "allocatable": "8Gi"}]);
        json!({
            "metadata": {"annotations": texts},
            "topologyPolicies": ["None", "SingleNUMANodePodLevel"],
            "zones": [
                {"name": "node-1", "type": "Node", "resources": resources},
                {"name": "node-0", "type": "Node", "resources": resources},
                {"name": "socket-0", "type": "Socket", "resources": []},
            ],
        })
    }

    fn detail() -> Value {
        let cpu = |id: u16| json!({"id": id, "core": id / 2, "socket": 0, "node": id / 4});
        json!({"detail": (0..8).map(cpu).collect::<Value>()})
    }

    #[test]
    fn everything_is_read_and_written_alike() {
        let read = NodeTopology::read(&manifest(&[
            (keys::CPU_TOPOLOGY, detail()),
            (
                keys::POD_CPU_ALLOCS,
                json!([{"namespace": "a", "name": "b", "uid": "u", "cpuset": "2", "managedByKubelet": true},
                    {"namespace": "a", "name": "c", "uid": "v", "cpuset": "4"}]),
            ),
            (
                keys::CPU_MANAGER_POLICY,
                json!({"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0"}),
            ),
            (keys::RESERVATION, json!({"reservedCPUs": "1"})),
            (keys::SYSTEM_QOS_RESOURCE, json!({"cpuset": "7"})),
            (keys::CPU_SHARED_POOLS, json!([{"socket": 0, "node": 1, "cpuset": "4-7"}])),
            (keys::BE_CPU_SHARED_POOLS, json!([{"socket": 0, "node": 0, "cpuset": "0-3"}])),
            (keys::AMPLIFICATION_RATIO, json!({"cpu": 1.5})),
        ]))
        .expect("it can be read");
        assert_eq!(read.problems, []);
        assert_eq!(read.reserved().to_string(), "0-2,7");
        assert_eq!((read.policy, read.zones.len()), (NumaPolicy::SingleNumaNode, 2));
        assert_eq!((read.zones[1].node, read.zones[1].amounts.get("memory")), (1, Some(8 << 30)));
        assert!(read.kubelet.is_full_pcpus_only());
        assert_eq!(NodeTopology::read(&read.manifest()), Ok(read));
    }

    #[test]
    fn kubelets_without_options_are_read() {
        for options in [
            json!({"policy": "static", "reservedCPUs": "0-1"}),
            json!({"policy": "static", "options": null, "reservedCPUs": "0-1"}),
        ] {
            let read = NodeTopology::read(&manifest(&[(keys::CPU_MANAGER_POLICY, options)]))
                .expect("it can be read");
            assert_eq!((read.kubelet.reserved.len(), read.kubelet.is_full_pcpus_only()), (2, false));
            assert_eq!(NodeTopology::read(&read.manifest()), Ok(read));
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_the_rest_counts() {
        let overlapping = json!([{"name": "b", "uid": "u", "cpuset": "2-3", "managedByKubelet": true},
            {"name": "c", "uid": "v", "cpuset": "3", "managedByKubelet": true}]);
        let read = NodeTopology::read(&manifest(&[
            (keys::CPU_TOPOLOGY, detail()),
            (keys::POD_CPU_ALLOCS, overlapping),
            (keys::CPU_MANAGER_POLICY, json!({"policy": "static", "reservedCPUs": "99"})),
            (keys::RESERVATION, json!({"reservedCPUs": "x"})),
            (keys::AMPLIFICATION_RATIO, json!({"cpu": "much"})),
        ]))
        .expect("it can be read");
        let fields: Vec<&str> = read.problems.iter().map(|p| p.field.as_str()).collect();
        assert_eq!(
            fields,
            [keys::RESERVATION, keys::AMPLIFICATION_RATIO, keys::POD_CPU_ALLOCS, keys::CPU_MANAGER_POLICY]
        );
        assert!(read.cpus.is_some());
        assert_eq!(NodeTopology::read(&read.manifest()), Ok(read));
        let twice = json!({"detail": [{"id": 0}, {"id": 0}]});
        let read = NodeTopology::read(&manifest(&[(keys::CPU_TOPOLOGY, twice)])).expect("it can be read");
        assert_eq!((read.cpus.is_none(), read.problems[0].problem.as_str()), (true, "CPU 0 is named twice"));
        assert_eq!(NodeTopology::read(&read.manifest()), Ok(read));
    }

    #[test]
    fn a_zone_that_is_no_numa_node_quarantines() {
        let bad = json!({"zones": [{"name": "node-64", "type": "Node"}]});
        assert_eq!(NodeTopology::read(&bad).expect_err("no such NUMA node").field, "zones[0].name");
    }
}
