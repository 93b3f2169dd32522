//! Laws of plugins that own objects, holds and time, in random histories: LoadAwareScheduling, ElasticQuota,
//! NodeNUMAResource, DeviceShare, and LicenceSeats from outside.
//!
//! What a plugin knows equals what a scheduler knows that is given the objects alone, or a dump. What is undone leaves
//! nothing behind. Results kept per node are those made anew. A trial gives what the placement gives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::marks_of;
use pellucid::cluster::{Cluster, Input};
use pellucid::cycle::attempt::reserve::place_nominee;
use pellucid::cycle::scheduler::{Settings, Step};
use pellucid::diagnosis::dump::restore::{self, Rewind};
use pellucid::framework::manifest::format_moment;
use pellucid::framework::profile::Profile;
use pellucid::framework::{PluginFactory, View};
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::effect::{BindOrder, BindOutcome, EffectReport};
use pellucid::model::{CustomKindRef, Name, NodeIdx, PodId, PodKey};
use pellucid::queue::QueueLimits;
use pellucid::recording::Outcome;
use pellucid::recording::switches::Switches;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::{SCHEDULER, config};
use crate::common::driver::Core;
use crate::common::dumps::{dump, state};
use crate::common::seen::seen_by;
use crate::laws::happening::{Happening, POOLS, QUOTAS, happening};
use crate::laws::{cards, census, filter, licence_seats, machines, score};

/// When the histories start, in seconds since 1970.
const START: u64 = 1_800_000_000;
const HELD: &str = "example.com/held-licence-seats";
const LOAD_AWARE: &str = "LoadAwareScheduling";
const ELASTIC_QUOTA: &str = "ElasticQuota";
const NUMA: &str = "NodeNUMAResource";
const QOS: &str = "koordinator.sh/qosClass";
const DEVICE_SHARE: &str = "DeviceShare";

/// Returns the plugins of this crate, the example, and one that counts what its hooks are told.
pub(crate) fn registry() -> Vec<Box<dyn PluginFactory>> {
    let mut all = pellucid::plugins::registry();
    all.push(Box::new(licence_seats::registration()));
    all.push(Box::new(census::registration()));
    all
}

fn profile() -> Profile {
    let text = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": SCHEDULER,
            "plugins": {"multiPoint": {"enabled": [
                {"name": LOAD_AWARE}, {"name": ELASTIC_QUOTA}, {"name": NUMA}, {"name": DEVICE_SHARE},
            ]}},
            "pluginConfig": [{"name": LOAD_AWARE, "args": {
                "nodeMetricExpirationSeconds": 100, "enableScheduleWhenNodeMetricsExpired": false,
            }}],
        }],
    });
    pellucid::config::parse(&text.to_string(), "the test's", &registry()).expect("valid").profiles.remove(0)
}

fn core(reuse: bool) -> Core {
    let core = Core::new(Settings {
        profiles: vec![profile()],
        registry: Arc::new(registry()),
        limits: QueueLimits::default(),
        seed: 7,
        switches: Arc::new(Switches::default()),
        controllers: Vec::new(),
        shadow_of: None,
    });
    core.switches.set_reuse(reuse);
    core
}

/// The objects of the API server and a scheduler.
struct Life {
    core: Core,
    decoder: Decoder,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    /// Objects of plugins' kinds, by kind and name.
    custom: BTreeMap<(CustomKindRef, String), Value>,
    orders: Vec<BindOrder>,
    version: u64,
}

impl Life {
    fn new(reuse: bool) -> Self {
        let mut core = core(reuse);
        core.wait(Duration::from_secs(START));
        let mut life = Self {
            core,
            decoder: Decoder::of(&registry()),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            custom: BTreeMap::new(),
            orders: Vec::new(),
            version: 0,
        };
        for what in [Happening::Node(0, 4_000, false), Happening::Node(1, 3_000, false)] {
            life.happen(&what);
        }
        life.happen(&Happening::Pool(1, 4, 0));
        life.happen(&Happening::Machine(0, 9));
        life
    }

    fn kind(&self, kind: &str) -> CustomKindRef {
        *self.decoder.kinds().iter().find(|known| known.0.kind == kind).expect("a plugin brings it")
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn show_pod(&mut self, name: &str) {
        let Some(pod) = self.pods.get(name) else { return };
        let pod = self.decoder.pod(pod).expect("readable");
        self.core.apply(Input::PodApplied(Arc::new(pod)));
    }

    fn set_custom(&mut self, kind: &str, name: &str, mut object: Value) {
        let kind = self.kind(kind);
        for (field, value) in [("name", name), ("uid", name), ("resourceVersion", &*self.next_version())] {
            object["metadata"][field] = json!(value);
        }
        let read = self.decoder.custom(kind, &object).expect("readable");
        self.custom.insert((kind, name.to_owned()), object);
        self.core.apply(Input::CustomApplied(Arc::new(read)));
    }

    fn forget_custom(&mut self, kind: &str, name: &str) {
        let kind = self.kind(kind);
        if self.custom.remove(&(kind, name.to_owned())).is_some() {
            self.core.apply(Input::CustomDeleted(kind, (Name::default(), name.into())));
        }
    }

    fn happen(&mut self, what: &Happening) -> Vec<Step> {
        match what {
            Happening::Node(i, milli, own) => {
                let name = format!("n{i}");
                let thresholds = json!({"usageThresholds": {"cpu": 30}}).to_string();
                let annotations = json!({"scheduling.koordinator.sh/usage-thresholds": thresholds});
                let node = json!({
                    "metadata": {"name": name, "uid": name, "annotations": if *own { annotations } else { json!({}) }},
                    "status": {"allocatable": {"cpu": format!("{milli}m"), "memory": "8Gi", "pods": "20", "nvidia.com/gpu": 9,
                        "koordinator.sh/gpu": 900, "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/rdma": 900}},
                });
                let read = self.decoder.node(&node).expect("readable");
                self.nodes.insert(name, node);
                self.core.apply(Input::NodeApplied(Arc::new(read)));
            }
            Happening::NodeGone(i) => {
                let name = format!("n{i}");
                if self.nodes.remove(&name).is_some() {
                    self.core.apply(Input::NodeDeleted(Name::new(&name)));
                }
            }
            Happening::Pod { at, milli, pool, seats } => {
                let name = format!("p{at}");
                if self.pods.contains_key(&name) {
                    return Vec::new();
                }
                let uid = format!("{name}-{}", self.next_version());
                let wanted = POOLS.get(*pool).map(|pool| format!("{pool}={seats}"));
                let annotations =
                    wanted.map_or(json!({}), |wanted| json!({"example.com/licence-seats": wanted}));
                // Some pods get CPUs of their own, some of them on one NUMA node.
                let is_pinned = at % 3 == 1;
                let milli = if is_pinned { (milli / 400 + 1) * 1_000 } else { *milli };
                let mut annotations = annotations;
                if at % 6 == 4 {
                    let spec = json!({"numaTopologyPolicy": "SingleNUMANode"}).to_string();
                    annotations["scheduling.koordinator.sh/numa-topology-spec"] = spec.into();
                }
                let mut requests = json!({"cpu": format!("{milli}m"), "memory": "100Mi"});
                if let Some((resource, amount)) = cards::WANTED.get(*at) {
                    requests[*resource] = (*amount).into();
                }
                // The third quota of pods does not exist.
                let quota = QUOTAS.get(at % 4).unwrap_or(&"team-c");
                let labels = json!({"quota.scheduling.koordinator.sh/name": quota});
                let mut labels = if at % 4 == 3 { json!({}) } else { labels };
                if is_pinned {
                    labels[QOS] = "LSR".into();
                }
                let pod = json!({
                    "metadata": {"namespace": "ns", "name": name, "uid": uid, "annotations": annotations, "labels": labels},
                    "spec": {"schedulerName": SCHEDULER,
                        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
                });
                self.pods.insert(name.clone(), pod);
                self.show_pod(&name);
            }
            Happening::PodGone(i) => {
                let name = format!("p{i}");
                if self.pods.remove(&name).is_some() {
                    self.core.apply(Input::PodDeleted(PodKey::new("ns", &name)));
                }
            }
            Happening::Resized(i, milli) => {
                let name = format!("p{i}");
                let is_bound = |pod: &Value| pod["spec"]["nodeName"].is_string();
                if let Some(pod) = self.pods.get_mut(&name).filter(|pod| is_bound(pod)) {
                    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = format!("{milli}m").into();
                    self.show_pod(&name);
                }
            }
            Happening::Pool(i, seats, lease) => {
                let lease = if *lease > 0 { json!(lease) } else { Value::Null };
                let pool = json!({"spec": {"seats": seats, "leaseSeconds": lease}});
                self.set_custom("LicencePool", POOLS[*i], pool);
            }
            Happening::PoolGone(i) => self.forget_custom("LicencePool", POOLS[*i]),
            Happening::Report(i, milli, age) => {
                let updated = format_moment((self.core.now.wall.as_secs() - age).cast_signed());
                let usage = json!({"cpu": format!("{milli}m"), "memory": "1Gi"});
                let metric = json!({"status": {
                    "updateTime": updated, "nodeMetric": {"nodeUsage": {"resources": usage}},
                }});
                self.set_custom("NodeMetric", &format!("n{i}"), metric);
            }
            Happening::ReportGone(i) => self.forget_custom("NodeMetric", &format!("n{i}")),
            Happening::Machine(i, reserved) => {
                self.set_custom("NodeResourceTopology", &format!("n{i}"), machines::machine(*reserved))
            }
            Happening::MachineGone(i) => self.forget_custom("NodeResourceTopology", &format!("n{i}")),
            Happening::Quota(i, min, max, below) => {
                let parent = if *below && *i == 1 { QUOTAS[0] } else { "" };
                let amount = |milli: &u64| json!({"cpu": format!("{milli}m")});
                let quota = json!({
                    "metadata": {"labels": {"quota.scheduling.koordinator.sh/parent": parent}},
                    "spec": {"min": amount(min), "max": amount(max)},
                });
                self.set_custom("ElasticQuota", QUOTAS[*i], quota);
            }
            Happening::QuotaGone(i) => self.forget_custom("ElasticQuota", QUOTAS[*i]),
            Happening::Device(i, cards, sick) => {
                let name = format!("n{i}");
                self.set_custom("Device", &name, cards::device(*cards, *sick));
            }
            Happening::DeviceGone(i) => self.forget_custom("Device", &format!("n{i}")),
            Happening::Steps(n) => {
                let steps: Vec<Step> = (0..*n).map_while(|_| self.core.step()).collect();
                self.orders.extend(self.core.orders());
                return steps;
            }
            Happening::Wait(seconds) => self.core.wait(Duration::from_secs(*seconds)),
            Happening::Bound(i, reports) => self.bind(*i, *reports),
            Happening::Refused(i) => {
                if !self.orders.is_empty() {
                    let order = self.orders.remove(i % self.orders.len());
                    let (status, reason, message) = (403, "Forbidden".into(), "no".into());
                    self.report(&order, BindOutcome::Refused { status, reason, message });
                }
            }
            Happening::Shown(i) => self.show_pod(&format!("p{i}")),
        }
        Vec::new()
    }

    /// Carries out an order as an API server does: the marks are written with the node.
    fn bind(&mut self, i: usize, reports: bool) {
        if self.orders.is_empty() {
            return;
        }
        let order = self.orders.remove(i % self.orders.len());
        let now = format_moment(self.core.now.wall.as_secs().cast_signed());
        let is_same = |pod: &&mut Value| pod["metadata"]["uid"].as_str() == Some(&*order.pod.uid);
        let Some(pod) = self.pods.get_mut(&*order.pod.key.name).filter(is_same) else {
            return self.report(&order, BindOutcome::Gone);
        };
        pod["spec"]["nodeName"] = order.node.as_str().into();
        pod["status"]["conditions"] =
            json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]);
        for (key, value) in order.marks.iter().flat_map(|marks| &marks.annotations) {
            pod["metadata"]["annotations"][&**key] = (&**value).into();
        }
        match reports {
            true => self.report(&order, BindOutcome::Bound),
            false => self.show_pod(&order.pod.key.name),
        }
    }

    fn report(&mut self, order: &BindOrder, outcome: BindOutcome) {
        let done = EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome };
        self.core.apply(Input::Report(done));
    }

    fn cluster(&self) -> &Cluster {
        self.core.scheduler.cluster()
    }

    /// Returns what is seen by a scheduler that is given all objects now.
    fn anew(&self) -> BTreeMap<String, Value> {
        let mut core = core(true);
        core.wait(self.core.now.wall);
        for node in self.nodes.values() {
            core.apply(Input::NodeApplied(Arc::new(self.decoder.node(node).expect("readable"))));
        }
        for ((kind, _), object) in &self.custom {
            let read = self.decoder.custom(*kind, object).expect("readable");
            core.apply(Input::CustomApplied(Arc::new(read)));
        }
        for pod in self.pods.values() {
            core.apply(Input::PodApplied(Arc::new(self.decoder.pod(pod).expect("readable"))));
        }
        core.wait(Duration::ZERO);
        seen_by(core.scheduler.cluster(), &registry())
    }
}

/// Returns the seats that stand on the pods of the API server and are not given back yet, by pool and number.
fn check_seats(life: &Life) {
    let mut taken: BTreeMap<(String, u64), &str> = BTreeMap::new();
    for (name, pod) in &life.pods {
        let Some(text) = pod["metadata"]["annotations"][HELD].as_str() else { continue };
        let held: Value = serde_json::from_str(text).expect("it is JSON");
        if held["until"].as_u64().is_some_and(|until| until <= life.core.now.wall.as_secs()) {
            continue;
        }
        let pool = held["pool"].as_str().expect("a pool");
        for seat in held["seats"].as_array().expect("seats").iter().filter_map(Value::as_u64) {
            let other = taken.insert((pool.to_owned(), seat), name);
            assert!(other.is_none(), "{name} and {other:?} have seat {seat} of {pool}");
        }
    }
}

/// Checks that what the scheduler knows equals what the objects say, once nothing is under way.
fn check_restart(life: &mut Life) -> Result<(), TestCaseError> {
    while !life.orders.is_empty() {
        life.bind(0, true);
    }
    let names: Vec<String> = life.pods.keys().cloned().collect();
    names.iter().for_each(|name| life.show_pod(name));
    life.core.wait(Duration::ZERO);
    let is_assumed = |life: &Life| life.cluster().pods().any(|(_, record)| record.stage.is_assumed());
    prop_assert!(!is_assumed(life));
    // A placed pod counts from its decision on for those who saw it, and from its Binding on for others.
    let of_objects = |mut all: BTreeMap<String, Value>| {
        all.retain(|what, _| !what.contains(LOAD_AWARE));
        all
    };
    let live = of_objects(seen_by(life.cluster(), &registry()));
    prop_assert_eq!(live, of_objects(life.anew()));
    Ok(())
}

/// Checks that a scheduler made of a dump knows the same, whatever is under way.
fn check_dump(life: &mut Life) -> Result<(), TestCaseError> {
    let now = life.core.now;
    let of = dump(&mut life.core.scheduler, now, false);
    let again = restore::restore(&of, vec![profile()], Arc::new(registry()), &Rewind::default());
    let mut again = again.map_err(TestCaseError::fail)?;
    prop_assert_eq!(state(&of), state(&dump(&mut again, now, false)));
    prop_assert_eq!(seen_by(life.cluster(), &registry()), seen_by(again.cluster(), &registry()));
    Ok(())
}

/// Checks that trials on the state leave nothing behind, and that plugins judge sets of nodes one by one.
fn check_trials(life: &Life) -> Result<(), TestCaseError> {
    let mut copy = life.cluster().fork();
    let before = seen_by(&copy, &registry());
    let pods: Vec<(PodId, Option<NodeIdx>)> = copy.pods().map(|(id, record)| (id, record.node)).collect();
    let nodes: Vec<NodeIdx> = copy.present().to_vec();
    let profile = profile();
    let outer = copy.begin();
    for (n, (id, at)) in pods.iter().enumerate() {
        let overlay = copy.begin();
        match at {
            Some(_) => _ = copy.release(*id),
            None if !nodes.is_empty() => place_nominee(&mut copy, &profile, *id, nodes[n % nodes.len()]),
            None => {}
        }
        if n % 2 == 0 {
            copy.rollback(overlay);
        } else {
            copy.commit(overlay);
        }
    }
    copy.rollback(outer);
    prop_assert_eq!(seen_by(&copy, &registry()), before);
    for (id, _) in pods {
        let Some(spec) = copy.pod(id).map(|record| record.pod.spec.clone()) else { continue };
        for plugin in profile
            .plugins
            .iter()
            .filter(|p| [LOAD_AWARE, NUMA, DEVICE_SHARE, "LicenceSeats"].contains(&p.name()))
        {
            let view = View::new(&copy);
            let together = filter(&**plugin, view, &spec, &nodes);
            let alone: Vec<_> = nodes.iter().flat_map(|n| filter(&**plugin, view, &spec, &[*n])).collect();
            prop_assert_eq!(together, alone, "filter of {}", plugin.name());
            if plugin.score().is_some() {
                let value: pellucid::framework::CycleValue = Arc::new(());
                let together = score(&**plugin, view, &spec, &value, &nodes);
                let alone: Vec<_> =
                    nodes.iter().flat_map(|n| score(&**plugin, view, &spec, &value, &[*n])).collect();
                prop_assert_eq!(together, alone, "score of {}", plugin.name());
            }
        }
    }
    Ok(())
}

/// Checks that each placed pod has what a trial before would have given it on that node, and what it asks for.
fn check_placements(before: &Cluster, steps: &[Step], life: &Life) -> Result<(), TestCaseError> {
    let [step] = steps else { return Ok(()) };
    let Some(id) = life.cluster().find_pod(&step.pod.key) else { return Ok(()) };
    let Some(record) = life.cluster().pod(id).filter(|record| record.stage.is_assumed()) else {
        return Ok(());
    };
    let mut trial = before.fork();
    trial.set_now(life.core.now);
    let node = record.node.expect("it is placed");
    let given = trial.probe(|trial| {
        place_nominee(trial, &profile(), id, node);
        trial.pod(id).and_then(|record| marks_of(&record.holds))
    });
    prop_assert_eq!(&given, &marks_of(&record.holds));
    let asks = record.pod.spec.annotations.text("example.com/licence-seats").is_some();
    prop_assert_eq!(given.is_some_and(|marks| marks.annotations.contains_key(HELD)), asks);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..config() })]

    #[test]
    fn what_plugins_hold_is_what_the_objects_say(what in vec(happening(), 1..40)) {
        let mut life = Life::new(true);
        for what in what {
            let before = matches!(what, Happening::Steps(_)).then(|| life.cluster().fork());
            let what = if before.is_some() { Happening::Steps(1) } else { what };
            let steps = life.happen(&what);
            check_seats(&life);
            cards::check(life.pods.values());
            census::check(life.cluster())?;
            if let Some(before) = before {
                check_placements(&before, &steps, &life)?;
            }
        }
        check_trials(&life)?;
        check_dump(&mut life)?;
        check_restart(&mut life)?;
    }

    #[test]
    fn what_a_hook_touched_is_enough(what in vec(happening(), 1..60)) {
        let (mut kept, mut anew) = (Life::new(true), Life::new(false));
        for what in what {
            let [of_kept, of_anew] = [&mut kept, &mut anew].map(|life| {
                let said = |step: Step| {
                    let refusal = match &step.verdict.outcome {
                        Outcome::Refused(refusal) => Some((refusal.message(), refusal.groups.clone())),
                        _ => None,
                    };
                    (step.pod.key.clone(), step.verdict.placement().map(|placed| placed.node), refusal)
                };
                life.happen(&what).into_iter().map(said).collect::<Vec<_>>()
            });
            prop_assert_eq!(of_kept, of_anew);
        }
    }
}

#[test]
fn seats_that_a_bound_pod_gives_up_wake_the_next() {
    let mut life = Life::new(true);
    let asks = |at, seats| Happening::Pod { at, milli: 100, pool: 1, seats };
    for what in [asks(0, 3), Happening::Steps(1), Happening::Bound(0, true), Happening::Shown(0), asks(1, 2)]
    {
        life.happen(&what);
    }
    let placed = |steps: &[Step]| steps.iter().filter(|step| step.verdict.placement().is_some()).count();
    assert_eq!(placed(&life.happen(&Happening::Steps(1))), 0, "one seat of four is free");
    life.pods.get_mut("p0").expect("it is bound")["metadata"]["annotations"] = json!({});
    life.show_pod("p0");
    life.happen(&Happening::Wait(20));
    assert_eq!(placed(&life.happen(&Happening::Steps(1))), 1);
}
