//! Random histories of reservations: they come, expire and go, owners and gangs stand in them, pods preempt, Bindings fail,
//! nodes are lost, the scheduler starts again. After each step the sums of the nodes are what the objects say.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cluster::columns::{CPU, MEMORY, PODS};
use pellucid::framework::View;
use pellucid::framework::plugin::{PreFiltered, PreScored};
use pellucid::model::effect::{BindOutcome, Effect, EffectReport};
use pellucid::model::{PodKey, quantity};
use serde_json::{Value, json};

use crate::common::made::refused;
use crate::common::rng::Rng;
use crate::reservation_cluster::{Case, array, text};

const NODES: [(&str, i64); 3] = [("a", 8), ("b", 6), ("c", 4)];
const APPS: [&str; 3] = ["web", "db", "none"];
const TAKEN: &str = "scheduling.koordinator.sh/reservation-allocated";
/// Places for pods of a node.
const PLACES: i64 = 9;

fn node(name: &str, cores: i64) -> Value {
    let offer = json!({"cpu": cores.to_string(), "memory": format!("{cores}Gi"), "pods": PLACES.to_string()});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": offer}})
}

/// Thousandths of a core, and bytes.
type Amounts = [i64; 2];

fn requests(spec: &Value) -> Amounts {
    let of = &spec["containers"][0]["resources"]["requests"];
    let read = |read: fn(&str) -> Result<i64, String>, name| read(text(&of[name])).expect("a quantity");
    [read(|t| quantity::milli(t).map_err(|e| e.to_string()), "cpu"), {
        read(|t| quantity::units(t).map_err(|e| e.to_string()), "memory")
    }]
}

struct World {
    case: Case,
    random: Rng,
    there: BTreeMap<&'static str, i64>,
    made: usize,
    /// What the histories are about, counted.
    seen: BTreeMap<&'static str, usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        let nodes: Vec<Value> = NODES.iter().map(|(name, cores)| node(name, *cores)).collect();
        let args = json!({"enablePreemption": seed.is_multiple_of(2)});
        let case = json!({"id": format!("seed {seed}"), "objects": {"nodes": nodes}, "args": args});
        let case = Case::new(&case);
        Self { case, random: Rng::new(seed), there: NODES.into(), made: 0, seen: BTreeMap::new() }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn containers(&mut self) -> Value {
        let (cpu, memory) = (500 * (1 + self.random.below(5)), 256 * (1 + self.random.below(8)));
        let requests = json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
        json!([{"name": "c", "image": "i", "resources": {"requests": requests}}])
    }

    fn create_reservation(&mut self) {
        self.made += 1;
        let app = APPS[self.random.below(2)];
        let policy = ["", "Aligned", "Aligned", "Restricted", "Restricted"][self.random.below(5)];
        let ttl = ["0s", "45s", "5m"][self.random.below(3)];
        let once = self.random.below(3) == 0;
        let mut labels = json!({});
        if self.random.below(4) == 0 {
            labels["scheduling.koordinator.sh/reservation-order"] = json!("1");
        }
        if self.random.below(2) == 0 {
            labels["koordinator.sh/priority"] = json!((self.random.below(3) * 100).to_string());
        }
        let is_ahead = self.random.below(3) == 0;
        let is_multiple = self.random.below(2) == 0;
        let name = format!("r{}", self.made);
        let created = self.case.moment();
        let containers = self.containers();
        self.case.put_reservation(json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "Reservation",
            "metadata": {"name": name, "uid": format!("{name}-uid"), "labels": labels, "creationTimestamp": created},
            "spec": {
                "owners": [{"labelSelector": {"matchLabels": {"app": app}}}],
                "template": {"spec": {"schedulerName": "koord-scheduler", "containers": containers}},
                "allocatePolicy": policy, "allocateOnce": once, "ttl": ttl,
                "preAllocation": is_ahead, "preAllocationPolicy": {"enableMultiple": is_multiple},
            },
        }));
    }

    fn create_pods(&mut self) {
        let app = APPS[self.random.below(APPS.len())];
        let is_gang = self.random.below(4) == 0;
        let wish = self.random.below(5);
        let first = self.made;
        for _ in 0..if is_gang { 2 } else { 1 } {
            self.made += 1;
            let mut annotations = json!({});
            if is_gang {
                annotations["gang.scheduling.koordinator.sh/name"] = json!(format!("g{first}"));
                annotations["gang.scheduling.koordinator.sh/min-available"] = json!("2");
            }
            if wish == 0 {
                annotations["scheduling.koordinator.sh/reservation-affinity"] = json!("{}");
            }
            let containers = self.containers();
            let priority = self.random.below(3) * 100;
            let spec =
                json!({"schedulerName": "koord-scheduler", "priority": priority, "containers": containers});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "spec": spec,
                "metadata": {
                    "name": format!("p{}", self.made), "namespace": "default",
                    "labels": {"app": app}, "annotations": annotations,
                },
            });
            self.case.create_pod(&pod);
        }
    }

    fn some<T>(&mut self, all: Vec<T>) -> Option<T> {
        let at = self.random.below(all.len().max(1));
        all.into_iter().nth(at)
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0..=2 => self.create_reservation(),
            3..=7 => self.create_pods(),
            8 | 9 => {
                let all = self.case.pods.keys().cloned().collect();
                if let Some(key) = self.some(all) {
                    self.case.delete_pod(&key);
                }
            }
            10 if self.random.below(2) == 0 => {
                let all = self.case.reservations.keys().cloned().collect();
                if let Some(name) = self.some(all) {
                    self.case.delete_reservation(&name);
                }
            }
            11 => {
                let (name, cores) = NODES[self.random.below(NODES.len())];
                if self.random.below(2) == 0 || !self.there.contains_key(name) {
                    self.switch(name, cores);
                }
            }
            _ => {
                let seconds = 1 + self.random.below(40) as u64;
                self.case.core.wait(Duration::from_secs(seconds));
            }
        }
        self.settle();
        self.check();
        self.check_concern();
    }

    /// Checks that the plugin says nothing of pods that it says do not concern it.
    fn check_concern(&mut self) {
        let cluster = self.case.core.scheduler.cluster();
        let plugin = self.case.profile.concerns[0].plugin.clone();
        let waiting = self.case.pods.keys().filter_map(|key| cluster.pod(cluster.find_pod(key)?));
        let mut n = 0;
        for record in waiting.filter(|record| record.node.is_none()) {
            let (view, pod) = (View::new(cluster).for_pod(&record.pod), &record.pod);
            if plugin.concern().expect("it has one").concerns(view, &pod.spec, pod) {
                continue;
            }
            n += 1;
            let prepared = plugin.pre_filter().expect("it filters").pre_filter(view, &pod.spec);
            assert!(matches!(prepared, PreFiltered::Skip), "{}", pod.key);
            let scored = plugin.pre_score().expect("it scores").pre_score(view, &pod.spec, view.nodes());
            assert!(matches!(scored, PreScored::Skip), "{}", pod.key);
            let overrides = plugin.node_overrides().expect("it has some").overrides(view, &pod.spec, pod);
            assert!(overrides.is_empty(), "{}: {overrides:?}", pod.key);
        }
        (0..n).for_each(|_| self.saw("unconcerned"));
    }

    /// Takes a node with its pods away, or puts it back.
    fn switch(&mut self, name: &'static str, cores: i64) {
        if self.there.remove(name).is_none() {
            self.there.insert(name, cores);
            let made = self.case.decoder.node(&node(name, cores)).expect("a node");
            return self.case.core.apply(Input::NodeApplied(made.into()));
        }
        self.saw("lost nodes");
        self.case.core.apply(Input::NodeDeleted(name.into()));
        let is_on = |pod: &Value| pod["spec"]["nodeName"] == name;
        let gone: Vec<PodKey> =
            self.case.pods.iter().filter(|(_, pod)| is_on(pod)).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.case.delete_pod(key));
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            let core = &mut self.case.core;
            core.scheduler.tick(core.now);
            core.run();
            core.scheduler.order_due_writes(core.now);
            let effects = core.scheduler.take_effects();
            self.check_room();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
        panic!("{}: it never settles", self.case.id);
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Bind(order) if !self.case.pods.contains_key(&order.pod.key) => {
                let (id, uid) = (order.id, order.pod.uid.clone());
                self.case.core.apply(Input::Report(EffectReport::BindDone {
                    id,
                    uid,
                    outcome: BindOutcome::Gone,
                }));
            }
            Effect::Bind(order) if self.random.below(8) == 0 => {
                self.saw("failed Bindings");
                let (id, uid) = (order.id, order.pod.uid.clone());
                self.case.core.apply(Input::Report(EffectReport::BindDone { id, uid, outcome: refused() }));
            }
            other => {
                if matches!(other, Effect::Evict(_)) {
                    self.saw("evictions");
                }
                self.case.carry_out(other);
            }
        }
    }

    /// Checks that no node gives more than it has, whatever is under way.
    fn check_room(&self) {
        let cluster = self.case.core.scheduler.cluster();
        for name in self.there.keys() {
            let at = cluster.find_node(&(*name).into()).expect("it is there");
            for resource in [CPU, MEMORY, PODS] {
                let free = cluster.columns().free(at, resource);
                assert!(free >= 0, "{}: node {name} lacks {free} of {resource:?}", self.case.id);
            }
        }
    }

    /// Returns the owners of a reservation by the objects: what they request, by name.
    fn owners(&self, uid: &Value, node: &Value) -> BTreeMap<String, Amounts> {
        let is_owner = |pod: &&Value| {
            let taken = pod["metadata"]["annotations"][TAKEN].as_str();
            let taken: Option<Value> = taken.and_then(|text| serde_json::from_str(text).ok());
            pod["spec"]["nodeName"] == *node && taken.is_some_and(|taken| taken["uid"] == *uid)
        };
        let owners = self.case.pods.values().filter(is_owner);
        owners
            .map(|pod| (format!("default/{}", text(&pod["metadata"]["name"])), requests(&pod["spec"])))
            .collect()
    }

    /// Compares nodes and reservations with what the objects say.
    fn check(&mut self) {
        let id = self.case.id.clone();
        let mut used: BTreeMap<String, [i64; 3]> = BTreeMap::new();
        let mut take = |node: &str, of: Amounts, places: i64| {
            let sums = used.entry(node.to_owned()).or_default();
            [of[0], of[1], places].iter().zip(sums).for_each(|(amount, sum)| *sum += amount);
        };
        for pod in self.case.pods.values().filter(|pod| pod["spec"]["nodeName"].is_string()) {
            take(text(&pod["spec"]["nodeName"]), requests(&pod["spec"]), 1);
        }
        let mut said = Vec::new();
        for (name, reservation) in &self.case.reservations {
            let (spec, status) = (&reservation["spec"], &reservation["status"]);
            let owners = self.owners(&reservation["metadata"]["uid"], &status["nodeName"]);
            let sums = owners.values().fold([0; 2], |sums, of| [sums[0] + of[0], sums[1] + of[1]]);
            if status["phase"] != "Available" {
                match status["conditions"][1]["reason"].as_str() {
                    Some("Expired") => said.push("expired"),
                    Some("Preempted") => said.push("preempted"),
                    _ => {}
                }
                continue;
            }
            let names: Vec<String> = array(&status["currentOwners"])
                .iter()
                .map(|of| format!("{}/{}", text(&of["namespace"]), text(&of["name"])))
                .collect();
            assert_eq!(names, owners.keys().cloned().collect::<Vec<_>>(), "{id}: owners of {name}");
            assert!(spec["allocateOnce"] == false || owners.is_empty(), "{id}: {name} is used up");
            if spec["preAllocation"] == true && !owners.is_empty() {
                said.push("pre-allocated");
            }
            let all = requests(&spec["template"]["spec"]);
            let left = [(all[0] - sums[0]).max(0), (all[1] - sums[1]).max(0)];
            if spec["allocatePolicy"] == "Restricted" {
                assert!(sums[0] <= all[0] && sums[1] <= all[1], "{id}: {name} gives {sums:?} of {all:?}");
            }
            take(text(&status["nodeName"]), left, i64::from(owners.is_empty()));
            said.push(if owners.is_empty() { "empty" } else { "owned" });
        }
        said.into_iter().for_each(|what| self.saw(what));
        assert_eq!(self.free(), self.expected(&used), "{id}: what is free of {used:?}");
    }

    fn expected(&self, used: &BTreeMap<String, [i64; 3]>) -> Vec<[i64; 3]> {
        let free = |(name, cores): (&&str, &i64)| {
            let used = used.get(*name).copied().unwrap_or_default();
            [cores * 1000 - used[0], (cores << 30) - used[1], PLACES - used[2]]
        };
        self.there.iter().map(free).collect()
    }

    /// Returns what is free of each node.
    fn free(&self) -> Vec<[i64; 3]> {
        free(&self.case, self.there.keys())
    }

    /// Checks that a scheduler which starts now, with the objects in either order, holds the same.
    fn restart(&mut self) {
        self.saw("restarts");
        let nodes: Vec<Value> = self.there.iter().map(|(name, cores)| node(name, *cores)).collect();
        for order in [[true, false], [false, true]] {
            let again = self.case.rebuilt(&nodes, order);
            assert_eq!(free(&again, self.there.keys()), self.free(), "{}: after a restart", self.case.id);
            for name in self.there.keys() {
                let read = |case: &Case| case.read("nodeReservations/:nodeName", name);
                assert_eq!(read(&again), read(&self.case), "{}: after a restart", self.case.id);
            }
        }
    }
}

fn free<'n>(case: &Case, nodes: impl Iterator<Item = &'n &'static str>) -> Vec<[i64; 3]> {
    let view = View::new(case.core.scheduler.cluster());
    let at = nodes.map(|name| view.cluster().find_node(&(*name).into()).expect("it is there"));
    at.map(|at| [CPU, MEMORY, PODS].map(|resource| view.columns().free(at, resource))).collect()
}

#[test]
fn nothing_is_counted_twice_or_lost_whatever_happens() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 1..=60u64 {
        let mut world = World::new(seed);
        for step in 0..90 {
            world.step();
            if step % 15 == 14 {
                world.restart();
            }
        }
        world.seen.into_iter().for_each(|(what, n)| *seen.entry(what).or_default() += n);
    }
    for what in [
        "lost nodes",
        "failed Bindings",
        "evictions",
        "expired",
        "preempted",
        "empty",
        "owned",
        "restarts",
        "pre-allocated",
        "unconcerned",
    ] {
        assert!(seen.get(what).copied().unwrap_or(0) > 50, "{what}: {seen:?}");
    }
}
