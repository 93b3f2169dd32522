//! NodeNUMAResource in random histories: pods of several priorities come and go, are bound late or not at all, evict each
//! other; topologies, reserved CPUs and the kubelet's pods change; the scheduler restarts.
//!
//! What stands on the pods is judged with arithmetic of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::effect::{BindOrder, BindOutcome, Effect, EffectReport, EvictOutcome};
use pellucid::model::{CustomKindRef, PodKey};
use pellucid::plugins::node_numa_resource::{NAME, NODE_RESOURCE_TOPOLOGY};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use super::numa::profile;
use crate::common::driver::{Core, settings};
use crate::common::rng::Rng;

const NODES: usize = 3;
const STATUS: &str = "scheduling.koordinator.sh/resource-status";

/// The API server, and a scheduler of it.
struct World {
    core: Core,
    decoder: Decoder,
    rng: Rng,
    nodes: BTreeMap<String, Value>,
    topologies: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    orders: Vec<BindOrder>,
    version: u64,
    bound: usize,
    evicted: usize,
    restarts: usize,
}

/// Parses a cpuset list.
fn cpus(text: &str) -> BTreeSet<usize> {
    let number = |text: &str| text.parse::<usize>().expect("a CPU");
    let part = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    text.split(',').filter(|part| !part.is_empty()).flat_map(part).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut made = Self {
            core: Core::new(settings(profile(&Value::Null))),
            decoder: Decoder::of(&registry()),
            rng: Rng::new(seed),
            nodes: BTreeMap::new(),
            topologies: BTreeMap::new(),
            pods: BTreeMap::new(),
            orders: Vec::new(),
            version: 0,
            bound: 0,
            evicted: 0,
            restarts: 0,
        };
        for i in 0..NODES {
            made.change_node(i);
            made.change_topology(i);
        }
        made
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len())]
    }

    fn change_node(&mut self, i: usize) {
        let name = format!("n{i}");
        let mut labels = json!({});
        let policy = self.pick(&["", "", "BestEffort", "Restricted", "SingleNUMANode"]);
        let bind = self.pick(&["None", "None", "FullPCPUsOnly", "SpreadByPCPUs"]);
        let strategy = self.pick(&["MostAllocated", "LeastAllocated", "DistributeEvenly"]);
        for (key, value) in [
            ("numa-topology-policy", policy),
            ("cpu-bind-policy", bind),
            ("numa-allocate-strategy", strategy),
        ] {
            labels[format!("node.koordinator.sh/{key}")] = json!(value);
        }
        let node = json!({
            "metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"}},
        });
        self.core.apply(Input::NodeApplied(Arc::new(self.decoder.node(&node).expect("a node"))));
        self.nodes.insert(name, node);
    }

    /// CPUs that some pod has on a node, as the API server knows.
    fn held(&self, node: &str) -> BTreeSet<usize> {
        let on = self.pods.values().filter(|pod| pod["spec"]["nodeName"] == *node);
        on.flat_map(own_cpus).collect()
    }

    /// A topology of 2 NUMA nodes with 4 cores of 2 threads. CPUs are reserved, and given to the kubelet's pods, only while
    /// no pod has them and none is on its way; that is what kubelet and koordlet see to.
    fn change_topology(&mut self, i: usize) {
        let name = format!("n{i}");
        let cpu = |id: usize| json!({"id": id, "core": id % 8, "socket": 0, "node": id % 8 / 4});
        let detail = json!({"detail": (0..16).map(cpu).collect::<Value>()});
        let mut free: Vec<usize> = (0..16).filter(|cpu| !self.held(&name).contains(cpu)).collect();
        if !self.orders.is_empty() {
            free.clear();
        }
        let mut some = |n: usize| {
            let n = self.rng.below(n).min(free.len());
            free.drain(..n).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
        };
        let (kubelet, reserved, pod) = (some(3), some(3), some(4));
        let zone = |n: usize| {
            let amount = |name: &str, of: &str| json!({"name": name, "allocatable": of});
            json!({"name": format!("node-{n}"), "type": "Node", "resources": [amount("cpu", "8"), amount("memory", "16Gi")]})
        };
        self.version += 1;
        let allocs =
            json!([{"namespace": "k", "name": "k", "uid": "k", "cpuset": pod, "managedByKubelet": true}]);
        let topology = json!({
            "metadata": {"name": name, "uid": name, "resourceVersion": self.version.to_string(), "annotations": {
                "node.koordinator.sh/cpu-topology": detail.to_string(),
                "node.koordinator.sh/pod-cpu-allocs": allocs.to_string(),
                "node.koordinator.sh/reservation": json!({"reservedCPUs": reserved}).to_string(),
                "kubelet.koordinator.sh/cpu-manager-policy": json!({"policy": "static", "reservedCPUs": kubelet}).to_string(),
            }},
            "zones": [zone(0), zone(1)],
        });
        self.topologies.insert(name.clone(), topology);
        self.show_topology(&name);
    }

    fn show_topology(&mut self, name: &str) {
        let kind = CustomKindRef(&NODE_RESOURCE_TOPOLOGY);
        let read = self.decoder.custom(kind, &self.topologies[name]).expect("a topology");
        self.core.apply(Input::CustomApplied(Arc::new(read)));
    }

    /// Lets a topology go and come back.
    fn flicker(&mut self, i: usize) {
        let name = format!("n{i}");
        let key = (Default::default(), name.as_str().into());
        self.core.apply(Input::CustomDeleted(CustomKindRef(&NODE_RESOURCE_TOPOLOGY), key));
        self.core.run();
        self.take_effects();
        self.show_topology(&name);
    }

    fn create_pod(&mut self) {
        self.version += 1;
        let name = format!("p{}", self.version);
        let qos = self.pick(&["LSR", "LSR", "LSE", "LS", ""]);
        let specs = [
            json!({}),
            json!({"preferredCPUBindPolicy": "SpreadByPCPUs"}),
            json!({"requiredCPUBindPolicy": "FullPCPUs"}),
            json!({"requiredCPUBindPolicy": "SpreadByPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}),
            json!({"preferredCPUExclusivePolicy": "NUMANodeLevel"}),
        ];
        let bind = &specs[self.rng.below(specs.len())];
        let mut annotations = json!({"scheduling.koordinator.sh/resource-spec": bind.to_string()});
        let policy = self.pick(&["", "", "", "SingleNUMANode", "Restricted", "BestEffort"]);
        if !policy.is_empty() {
            let spec = json!({"numaTopologyPolicy": policy}).to_string();
            annotations["scheduling.koordinator.sh/numa-topology-spec"] = json!(spec);
        }
        let cpu = self.pick(&[1, 2, 2, 3, 4, 6, 8, 10]);
        let pod = json!({
            "metadata": {
                "namespace": "ns", "name": name, "uid": name, "annotations": annotations,
                "labels": {"koordinator.sh/qosClass": qos},
            },
            "spec": {
                "schedulerName": "koord-scheduler",
                "priority": self.pick(&[9100, 9100, 9500, 9900]),
                "containers": [{"name": "c", "image": "i", "resources": {
                    "requests": {"cpu": cpu.to_string(), "memory": format!("{}Gi", self.pick(&[1, 2, 6]))},
                }}],
            },
        });
        self.pods.insert(name.clone(), pod);
        self.show_pod(&name);
    }

    fn show_pod(&mut self, name: &str) {
        let pod = self.decoder.pod(&self.pods[name]).expect("a pod");
        self.core.apply(Input::PodApplied(Arc::new(pod)));
    }

    fn delete_pod(&mut self, name: &str) {
        if self.pods.remove(name).is_some() {
            self.core.apply(Input::PodDeleted(PodKey::new("ns", name)));
        }
    }

    /// Keeps orders, and evicts at once.
    fn take_effects(&mut self) {
        for effect in self.core.scheduler.take_effects() {
            match effect {
                Effect::Bind(order) => self.orders.push(order),
                Effect::Evict(order) => {
                    let uid = order.victim.uid.clone();
                    let done = EffectReport::EvictDone { id: order.id, uid, outcome: EvictOutcome::Deleted };
                    self.core.apply(Input::Report(done));
                    self.evicted += 1;
                    self.delete_pod(&order.victim.key.name);
                }
                _ => {}
            }
        }
    }

    /// Carries out an order as an API server does, and says so or lets the watch show it.
    fn bind(&mut self) {
        if self.orders.is_empty() {
            return;
        }
        let at = self.rng.below(self.orders.len());
        let order = self.orders.remove(at);
        let (name, says) = (order.pod.key.name.to_string(), self.rng.below(2) == 0);
        let outcome = match self.pods.get_mut(&name) {
            None => BindOutcome::Gone,
            Some(_) if self.rng.below(6) == 0 => {
                BindOutcome::Refused { status: 403, reason: "Forbidden".into(), message: "no".into() }
            }
            Some(pod) => {
                pod["spec"]["nodeName"] = json!(order.node.as_str());
                for (key, value) in order.marks.iter().flat_map(|marks| &marks.annotations) {
                    pod["metadata"]["annotations"][&**key] = json!(&**value);
                }
                self.bound += 1;
                self.check();
                BindOutcome::Bound
            }
        };
        if says || !matches!(outcome, BindOutcome::Bound) {
            let done = EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome };
            self.core.apply(Input::Report(done));
        }
        if self.pods.contains_key(&name) {
            self.show_pod(&name);
        }
    }

    /// The scheduler is killed: its orders are lost. The new one lists everything, in one order or the other.
    fn restart(&mut self) {
        self.restarts += 1;
        self.orders.clear();
        self.core = Core::new(settings(profile(&Value::Null)));
        let pods_first = self.rng.below(2) == 0;
        let names: Vec<String> = self.pods.keys().cloned().collect();
        if pods_first {
            names.iter().for_each(|name| self.show_pod(name));
        }
        for name in self.nodes.keys().cloned().collect::<Vec<_>>() {
            self.show_topology(&name);
            let node = self.decoder.node(&self.nodes[&name]).expect("a node");
            self.core.apply(Input::NodeApplied(Arc::new(node)));
        }
        if !pods_first {
            names.iter().for_each(|name| self.show_pod(name));
        }
    }

    fn happen(&mut self) {
        match self.rng.below(20) {
            0..=6 => self.create_pod(),
            7..=10 => self.bind(),
            11..=12 => {
                let names: Vec<String> = self.pods.keys().cloned().collect();
                if !names.is_empty() {
                    let name = names[self.rng.below(names.len())].clone();
                    self.delete_pod(&name);
                }
            }
            13 => {
                let i = self.rng.below(NODES);
                self.change_topology(i);
            }
            14 => {
                let i = self.rng.below(NODES);
                self.flicker(i);
            }
            15 => {
                let i = self.rng.below(NODES);
                self.change_node(i);
            }
            16 if self.rng.below(3) == 0 => self.restart(),
            _ => self.core.wait(Duration::from_secs(20)),
        }
        self.core.run();
        self.take_effects();
    }

    /// Checks what stands on the pods: no CPU twice, none that is reserved, whole splits.
    fn check(&self) {
        let mut given: BTreeMap<(&str, usize), &str> = BTreeMap::new();
        for (name, pod) in &self.pods {
            let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
            let reserved = reserved(&self.topologies[node]);
            for cpu in own_cpus(pod) {
                assert!(!reserved.contains(&cpu), "{name} has CPU {cpu} of {node}, which is reserved");
                let other = given.insert((node, cpu), name);
                assert!(other.is_none(), "{name} and {other:?} have CPU {cpu} of {node}");
            }
            let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
            let n: usize = requests["cpu"].as_str().expect("CPU").parse().expect("whole CPUs");
            let own = own_cpus(pod).len();
            assert!(own == 0 || own == n, "{name} has {own} CPUs and requests {n}");
        }
    }

    /// Checks that the scheduler's state is what stands on the pods, once nothing is under way.
    fn check_state(&mut self) {
        while !self.orders.is_empty() {
            self.bind();
        }
        self.check();
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == NAME).expect("it is registered");
        let endpoint =
            factory.endpoints().into_iter().find(|e| e.path == "nodes/:nodeName").expect("it is there");
        for node in self.nodes.keys() {
            let params = PathParams::from([("nodeName".to_owned(), node.clone())]);
            let view = View::new(self.core.scheduler.cluster());
            let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
            let body = (endpoint.read)(&cx).expect("an answer");
            let of = |pod: &Value, cpuset: &Value, zones: &Value| {
                (
                    pod["name"].as_str().unwrap_or("").to_owned(),
                    cpus(cpuset.as_str().unwrap_or("")),
                    zones.to_string(),
                )
            };
            let ours: BTreeSet<_> = body["allocatedPods"]
                .as_array()
                .expect("pods")
                .iter()
                .map(|pod| of(pod, &pod["cpuset"], &pod["numaNodeResources"]))
                .collect();
            let is_here = |pod: &&Value| pod["spec"]["nodeName"] == **node && !status(pod).is_null();
            let want: BTreeSet<_> = self
                .pods
                .values()
                .filter(is_here)
                .map(|pod| of(&pod["metadata"], &status(pod)["cpuset"], &status(pod)["numaNodeResources"]))
                .collect();
            assert_eq!(ours, want, "{node}");
            let mut free: BTreeSet<usize> = (0..16).collect();
            free.retain(|cpu| {
                !self.held(node).contains(cpu) && !reserved(&self.topologies[node]).contains(cpu)
            });
            assert_eq!(cpus(body["availableCPUs"].as_str().expect("CPUs")), free, "{node}");
        }
    }
}

fn status(pod: &Value) -> Value {
    let text = pod["metadata"]["annotations"][STATUS].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

fn own_cpus(pod: &Value) -> BTreeSet<usize> {
    cpus(status(pod)["cpuset"].as_str().unwrap_or(""))
}

fn reserved(topology: &Value) -> BTreeSet<usize> {
    let annotation = |key: &str| -> Value {
        let text = topology["metadata"]["annotations"][key].as_str().expect("an annotation");
        serde_json::from_str(text).expect("JSON")
    };
    let own = annotation("node.koordinator.sh/reservation");
    let kubelet = annotation("kubelet.koordinator.sh/cpu-manager-policy");
    let pods = annotation("node.koordinator.sh/pod-cpu-allocs");
    let all = [&own["reservedCPUs"], &kubelet["reservedCPUs"], &pods[0]["cpuset"]];
    all.into_iter().flat_map(|text| cpus(text.as_str().unwrap_or(""))).collect()
}

#[test]
fn no_cpu_is_given_twice_or_from_the_reserved_ones_and_the_state_is_what_stands_on_pods() {
    let (mut bound, mut evicted, mut restarts) = (0, 0, 0);
    for seed in 1..=60 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.happen();
        }
        world.check_state();
        (bound, evicted, restarts) =
            (bound + world.bound, evicted + world.evicted, restarts + world.restarts);
    }
    println!("{bound} pods bound, {evicted} evicted, {restarts} restarts");
    assert!(bound > 1_000 && evicted > 20 && restarts > 20, "{bound} {evicted} {restarts}");
}
