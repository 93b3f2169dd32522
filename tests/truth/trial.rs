//! Tries things for real: a scheduler that is given the objects from scratch, and an API server played by hand that
//! carries out what it orders.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pellucid::cluster::{Input, Stage};
use pellucid::framework::profile::Profile;
use pellucid::model::PodKey;
use pellucid::model::effect::{
    BindOrder, BindOutcome, Effect, EffectReport, EvictOrder, EvictOutcome, ObjectOrder, ObjectWrite,
    WriteOutcome,
};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use crate::common::cluster::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::objects::{Objects, Plugins, gang_of, list, node_of, text};

/// The default profile, parsed once.
static PROFILE: LazyLock<Profile> = LazyLock::new(|| default_profile(SCHEDULER));
/// The default profile with Koordinator's plugins.
static KOORDINATOR: LazyLock<Profile> = LazyLock::new(|| koordinator(false));
/// The same, where reservations may be evicted.
static EVICTING: LazyLock<Profile> = LazyLock::new(|| koordinator(true));

fn koordinator(evicts_reservations: bool) -> Profile {
    let names = ["ElasticQuota", "DeviceShare", "NodeNUMAResource", "LoadAwareScheduling", "Reservation"];
    let enabled: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": SCHEDULER, "plugins": {"multiPoint": {"enabled": enabled}},
            // Longer than any trial.
            "pluginConfig": [
                {"name": "LoadAwareScheduling", "args": {"nodeMetricExpirationSeconds": 86_400}},
                {"name": "Reservation", "args": {"enablePreemption": evicts_reservations}},
            ],
        }],
    });
    let parsed = pellucid::config::parse(&config.to_string(), "the test's", &registry());
    parsed.expect("a configuration").profiles.remove(0)
}
/// When clusters with Koordinator's plugins begin, which read the time: seconds since 1970, and as objects have it.
const BEGIN: Duration = Duration::from_secs(1_769_904_000);
pub(crate) const START: &str = "2026-02-01T00:00:00Z";
/// Rounds after which a cluster counts as one that never settles.
const MOST_ROUNDS: usize = 24;
/// Steps of one round.
const MOST_STEPS: usize = 3_000;
/// Time that an attempt takes, so that units queue up behind each other.
const BETWEEN_STEPS: Duration = Duration::from_nanos(1);
/// Longer than any backoff.
const ROUND: Duration = Duration::from_secs(60);

/// A scheduler, and the objects that it is told of.
pub(crate) struct Live {
    pub(crate) core: Core,
    pub(crate) objects: Objects,
    /// Evictions so far: victim and preemptor.
    pub(crate) evicted: Vec<(String, String)>,
    /// Whether controllers make pods again that were deleted.
    pub(crate) recreates: bool,
    /// Whether pods are changed where they are, as their tolerations may be; else they are made anew.
    pub(crate) in_place: bool,
    replacements: usize,
}

/// Whether an order is carried out: not what quotas and nodes are told of themselves, nor that quotas take pods back, of
/// which nothing is claimed.
fn is_tried(order: &ObjectOrder) -> bool {
    !matches!(order.plugin, "ElasticQuota" | "DeviceShare")
}

/// Returns the key of a pod as the model has it.
pub(crate) fn pod_key(key: &str) -> PodKey {
    let (namespace, name) = key.split_once('/').expect("namespace/name");
    PodKey::new(namespace, name)
}

impl Live {
    /// Starts a scheduler with these objects. Pods on nodes come first, then the others as they were created.
    pub(crate) fn of(objects: Objects) -> Self {
        let profile = match objects.plugins {
            Plugins::InTree => &PROFILE,
            Plugins::Koordinator => &KOORDINATOR,
            Plugins::KoordinatorEvicting => &EVICTING,
        };
        let mut core = Core::new(settings(Profile::clone(profile)));
        if objects.plugins != Plugins::InTree {
            core.now.wall = BEGIN;
        }
        for item in objects.others.values() {
            core.apply(Input::ObjectApplied(item.model.clone()));
        }
        for item in objects.custom.values() {
            core.apply(Input::CustomApplied(item.model.clone()));
        }
        for item in objects.nodes.values() {
            core.apply(Input::NodeApplied(item.model.clone()));
        }
        let mut pods: Vec<_> = objects.pods.values().collect();
        pods.sort_by_key(|pod| (node_of(&pod.json).is_none(), pod.model.created, pod.model.key.clone()));
        for pod in pods {
            core.apply(Input::PodApplied(pod.model.clone()));
        }
        core.wait(Duration::ZERO);
        Self { core, objects, evicted: Vec::new(), recreates: false, in_place: false, replacements: 0 }
    }

    /// Plans until no unit is active and carries out what is ordered, until nothing is.
    pub(crate) fn run(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..MOST_ROUNDS {
            for _ in 0..MOST_STEPS {
                if self.core.step().is_none() {
                    break;
                }
                self.core.now.monotonic += BETWEEN_STEPS;
            }
            self.core.scheduler.order_due_writes(self.core.now);
            if !self.carry_out() {
                break;
            }
            moved = true;
        }
        moved
    }

    /// Lets time pass until nothing moves. Returns whether that came about.
    pub(crate) fn settle(&mut self) -> bool {
        let mut quiet = 0;
        for _ in 0..MOST_ROUNDS {
            quiet = if self.run() { 0 } else { quiet + 1 };
            if quiet == 3 {
                return true;
            }
            self.core.wait(ROUND);
        }
        false
    }

    /// Carries out all orders. Returns whether something changed.
    pub(crate) fn carry_out(&mut self) -> bool {
        let mut changed = false;
        for effect in self.core.scheduler.take_effects() {
            match effect {
                Effect::Bind(order) => self.bind(&order),
                Effect::Evict(order) => self.evict(&order),
                Effect::Object(order) if !is_tried(&order) => {
                    self.report_written(&order);
                    continue;
                }
                Effect::Object(order) => self.write(&order),
                Effect::Status(_) | Effect::GroupStatus(_) | Effect::Event(_) => continue,
            }
            changed = true;
        }
        changed
    }

    /// Lets a moment pass: no two changes of objects come at the same time.
    pub(crate) fn pass_a_moment(&mut self) {
        self.core.now.monotonic += BETWEEN_STEPS;
    }

    /// Tells the scheduler of a pod.
    pub(crate) fn tell_pod(&mut self, key: &str) {
        let model = self.objects.pods[key].model.clone();
        self.core.apply(Input::PodApplied(model));
    }

    /// Creates a pod.
    pub(crate) fn create(&mut self, json: Value) {
        let key = format!("{}/{}", text(&json["metadata"]["namespace"]), text(&json["metadata"]["name"]));
        self.objects.put_pod(json);
        self.tell_pod(&key);
    }

    fn bind(&mut self, order: &BindOrder) {
        let key = order.pod.key.to_string();
        if self.objects.pods.contains_key(&key) {
            self.objects.change_pod(&key, |json| {
                json["spec"]["nodeName"] = order.node.to_string().into();
                json["status"] = json!({"phase": "Running"});
                for (field, marks) in order
                    .marks
                    .iter()
                    .flat_map(|m| [("annotations", m.annotations.clone()), ("labels", m.labels.clone())])
                {
                    for (name, value) in marks {
                        json["metadata"][field][&*name] = value.to_string().into();
                    }
                }
            });
        }
        let uid = order.pod.uid.clone();
        let outcome = BindOutcome::Bound;
        self.core.apply(Input::Report(EffectReport::BindDone { id: order.id, uid, outcome }));
        self.tell_pod(&key);
    }

    fn evict(&mut self, order: &EvictOrder) {
        let (victim, preemptor) = (order.victim.key.to_string(), order.preemptor.key.to_string());
        let (id, uid) = (order.id, order.victim.uid.clone());
        let known = self.objects.pods.remove(&victim);
        let outcome = if known.is_some() { EvictOutcome::Deleted } else { EvictOutcome::Gone };
        self.core.apply(Input::Report(EffectReport::EvictDone { id, uid, outcome }));
        self.core.apply(Input::PodDeleted(order.victim.key.clone()));
        self.evicted.push((victim.clone(), preemptor));
        if let Some(pod) = known {
            self.replace(&pod.json);
        }
    }

    /// Deletes a pod, if it can leave; its controller makes it again.
    pub(crate) fn delete(&mut self, key: &str) {
        let json = Value::clone(self.objects.pod(key));
        if self.objects.delete(key) {
            self.core.apply(Input::PodDeleted(pod_key(key)));
            self.replace(&json);
        }
    }

    fn replace(&mut self, pod: &Value) {
        let is_controlled = list(&pod["metadata"]["ownerReferences"]).iter().any(|o| o["controller"] == true);
        if !self.recreates || !is_controlled {
            return;
        }
        self.replacements += 1;
        let mut json = pod.clone();
        json["metadata"]["name"] = format!("again-{}", self.replacements).into();
        json["metadata"]["uid"] = Value::Null;
        json["metadata"]["creationTimestamp"] = START.into();
        json["spec"].as_object_mut().expect("a spec").remove("nodeName");
        json["status"] = json!({});
        // A controller learns of the end before it makes another.
        self.pass_a_moment();
        self.create(json);
    }

    /// Writes an object, and does what the volume controller and the provisioner would do next.
    fn write(&mut self, order: &ObjectOrder) {
        if let ObjectWrite::Patch { object, patch, .. } = &order.write {
            let kind = match object.plural {
                "reservations" => return self.write_reservation(order, patch),
                "pods" => return self.write_pod(order, patch),
                "persistentvolumes" => "PersistentVolume",
                "persistentvolumeclaims" => "PersistentVolumeClaim",
                other => panic!("nobody writes {other} here"),
            };
            let key = match &object.namespace {
                Some(namespace) => format!("{namespace}/{}", object.name),
                None => object.name.to_string(),
            };
            self.objects.change(kind, &key, |json| json_patch::merge(json, patch));
            self.tell_object(kind, &key);
            self.bind_volumes();
        }
        self.report_written(order);
    }

    fn report_written(&mut self, order: &ObjectOrder) {
        let outcome = WriteOutcome::Written;
        self.core.apply(Input::Report(EffectReport::ObjectDone { id: order.id, outcome }));
    }

    fn write_reservation(&mut self, order: &ObjectOrder, patch: &Value) {
        let ObjectWrite::Patch { object, .. } = &order.write else { return };
        let known = self.objects.of_kind("Reservation").find(|of| of["metadata"]["name"] == *object.name);
        let known = known.cloned();
        if let Some(mut json) = known.clone() {
            json_patch::merge(&mut json, patch);
            self.objects.put(json);
            self.tell_custom(&object.name);
        }
        let gone = || WriteOutcome::Refused { status: 404, message: "not found".into() };
        let outcome = if known.is_some() { WriteOutcome::Written } else { gone() };
        self.core.apply(Input::Report(EffectReport::ObjectDone { id: order.id, outcome }));
    }

    fn write_pod(&mut self, order: &ObjectOrder, patch: &Value) {
        let ObjectWrite::Patch { object, .. } = &order.write else { return };
        let key = format!("{}/{}", object.namespace.as_deref().unwrap_or_default(), object.name);
        if self.objects.pods.contains_key(&key) {
            self.objects.change_pod(&key, |json| json_patch::merge(json, patch));
            self.tell_pod(&key);
        }
        self.report_written(order);
    }

    fn tell_custom(&mut self, name: &str) {
        let all = self.objects.custom.iter();
        let model = all
            .filter(|((kind, key), _)| kind.0.kind == "Reservation" && key == name)
            .map(|(_, item)| item.model.clone());
        model.for_each(|model| self.core.apply(Input::CustomApplied(model)));
    }

    fn tell_object(&mut self, kind: &'static str, key: &str) {
        let model = self.objects.others[&(kind, key.to_owned())].model.clone();
        self.core.apply(Input::ObjectApplied(model));
    }

    fn bind_volumes(&mut self) {
        let unbound = |json: &Value| json["status"]["phase"] != "Bound";
        let claims: Vec<Value> = self
            .objects
            .others
            .iter()
            .filter(|((kind, _), item)| *kind == "PersistentVolumeClaim" && unbound(&item.json))
            .map(|(_, item)| Value::clone(&item.json))
            .collect();
        for claim in claims {
            let (namespace, name) = (text(&claim["metadata"]["namespace"]), text(&claim["metadata"]["name"]));
            let names_it = |json: &Value| {
                json["spec"]["claimRef"]["name"] == name && json["spec"]["claimRef"]["namespace"] == namespace
            };
            let found = self
                .objects
                .others
                .iter()
                .find(|((kind, _), item)| *kind == "PersistentVolume" && names_it(&item.json));
            let chosen = text(&claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]);
            let volume = match (found, chosen) {
                (Some(((_, volume), _)), _) => volume.clone(),
                (None, "") => continue,
                (None, _) => self.provision(namespace, name, &claim),
            };
            self.objects
                .change("PersistentVolume", &volume, |json| json["status"] = json!({"phase": "Bound"}));
            self.tell_object("PersistentVolume", &volume);
            let key = format!("{namespace}/{name}");
            self.objects.change("PersistentVolumeClaim", &key, |json| {
                json["spec"]["volumeName"] = volume.clone().into();
                json["status"] = json!({"phase": "Bound"});
                json["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
            });
            self.tell_object("PersistentVolumeClaim", &key);
        }
    }

    fn provision(&mut self, namespace: &str, name: &str, claim: &Value) -> String {
        let volume = format!("made-{namespace}-{name}");
        self.objects.put(json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": volume, "uid": format!("uid-{volume}")},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": claim["spec"]["accessModes"],
                "storageClassName": claim["spec"]["storageClassName"],
                "csi": {"driver": crate::made::DRIVER, "volumeHandle": volume},
                "claimRef": {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]},
            },
        }));
        volume
    }

    /// Returns the node of a pod that has a place of its own: one that waits at Permit for others has none yet.
    pub(crate) fn place(&self, key: &str) -> Option<String> {
        let cluster = self.core.scheduler.cluster();
        let record = cluster.pod(cluster.find_pod(&pod_key(key))?)?;
        let node = record.node.filter(|_| record.stage != Stage::Waiting)?;
        Some(cluster.node_name(node).to_string())
    }

    /// Returns the places of several pods.
    pub(crate) fn places(&self, keys: &[String]) -> BTreeMap<String, String> {
        keys.iter().filter_map(|key| Some((key.clone(), self.place(key)?))).collect()
    }

    /// Publishes a snapshot.
    pub(crate) fn snapshot(&mut self) -> Arc<pellucid::cycle::Snapshot> {
        Arc::new(self.core.scheduler.publish(self.core.now))
    }
}

/// Returns where pending pods go in the end, when they are the only ones without a node.
pub(crate) fn alone(objects: &Objects, keys: &[String]) -> BTreeMap<String, String> {
    let mut live = Live::of(objects.only(keys));
    live.run();
    // A single pod that evicts nobody has nothing to wait for.
    let is_decided = |key: &String| {
        let pod = objects.pod(key);
        gang_of(pod).is_none() && pod["spec"]["preemptionPolicy"] == "Never"
    };
    if !matches!(keys, [key] if is_decided(key)) {
        live.settle();
    }
    live.places(keys)
}

/// Returns where one pod goes at once when it is the only one without a node, belongs to no gang, has no gates and
/// evicts nobody.
pub(crate) fn single(objects: &Objects, key: &str) -> Option<String> {
    let mut objects = objects.only(&[key.to_owned()]);
    objects.make_single(key);
    let mut live = Live::of(objects);
    live.core.run();
    live.place(key)
}

/// Does the same with all nodes closed but one.
pub(crate) fn single_on(objects: &Objects, key: &str, node: &str) -> bool {
    let mut objects = objects.clone();
    objects.close_all_but(node);
    single(&objects, key).as_deref() == Some(node)
}

impl Live {
    /// Tells the scheduler what differs from earlier objects. A pod whose spec changed is made anew.
    pub(crate) fn tell_changes(&mut self, before: &Objects) {
        let now = self.objects.clone();
        for (name, item) in &now.nodes {
            if before.nodes.get(name).is_none_or(|old| old.json != item.json) {
                self.core.apply(Input::NodeApplied(item.model.clone()));
            }
        }
        for name in before.nodes.keys().filter(|name| !now.nodes.contains_key(*name)) {
            self.core.apply(Input::NodeDeleted(name.as_str().into()));
        }
        for ((kind, key), item) in &now.others {
            if before.others.get(&(*kind, key.clone())).is_none_or(|old| old.json != item.json) {
                self.core.apply(Input::ObjectApplied(item.model.clone()));
            }
        }
        for (key, item) in &now.custom {
            if before.custom.get(key).is_none_or(|old| old.json != item.json) {
                self.core.apply(Input::CustomApplied(item.model.clone()));
            }
        }
        for (kind, key) in before.custom.keys().filter(|known| !now.custom.contains_key(*known)) {
            let (namespace, name) = key.split_once('/').unwrap_or(("", key));
            self.core.apply(Input::CustomDeleted(*kind, (namespace.into(), name.into())));
        }
        for (key, item) in &now.pods {
            let Some(old) = before.pods.get(key) else {
                self.tell_pod(key);
                continue;
            };
            if old.json != item.json {
                // Labels and annotations change and gates go from a pod that is there; of the rest of a spec a new pod has
                // to be made.
                let stays = {
                    let mut stripped = Value::clone(&old.json["spec"]);
                    stripped.as_object_mut().expect("a spec").remove("schedulingGates");
                    stripped == item.json["spec"] || old.json["spec"] == item.json["spec"]
                };
                if !stays && !self.in_place {
                    self.core.apply(Input::PodDeleted(pod_key(key)));
                    self.objects.change_pod(key, |json| json["metadata"]["uid"] = Value::Null);
                }
                self.tell_pod(key);
            }
        }
    }
}
