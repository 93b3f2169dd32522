//! A cluster with reservations, in memory: a scheduler without I/O, and the objects on which its writes are carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::framework::profile::Profile;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::custom::CustomKind;
use pellucid::model::effect::{
    BindOutcome, Effect, EffectReport, EvictOutcome, ObjectPart, ObjectWrite, WriteOutcome,
};
use pellucid::model::manifest::format_moment;
use pellucid::model::{CustomKindRef, Name, Now, PodKey, quantity};
use pellucid::plugins::device_share::DEVICE;
use pellucid::plugins::elastic_quota::ELASTIC_QUOTA;
use pellucid::plugins::node_numa_resource::NODE_RESOURCE_TOPOLOGY;
use pellucid::plugins::registry;
use pellucid::plugins::reservation::{NAME, RESERVATION};
use serde_json::{Value, json};

use crate::common::driver::{Core, settings};
use crate::elasticquota::PriorityClasses;
use crate::profile_of;

/// When the cases begin, in seconds since 1970.
const BEGIN: u64 = 1_790_000_000;
pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Returns the profile with the plugin and these.
fn profile(others: &[&str], args: &Value) -> Profile {
    let others = others.iter().map(|name| json!({"name": name}));
    // Theirs scores free amounts a second time in NodeNUMAResource.
    let own = [json!({"name": NAME, "weight": 5000}), json!({"name": "NodeResourcesFit", "weight": 2})];
    let enabled: Vec<Value> = others.chain(own).collect();
    profile_of(&enabled, NAME, args)
}

/// Carries out a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().and_then(|of| of.remove(name))),
            value => merge(&mut target[name.as_str()], value),
        }
    }
}

/// The cluster.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) core: Core,
    pub(crate) profile: Profile,
    pub(crate) decoder: Decoder,
    pub(crate) version: u64,
    pub(crate) pods: BTreeMap<PodKey, Value>,
    pub(crate) reservations: BTreeMap<String, Value>,
    /// Pods that were evicted.
    pub(crate) evicted: Vec<PodKey>,
    plugins: Vec<&'static str>,
    /// Objects of other kinds that plugins bring.
    others: Vec<Value>,
    classes: PriorityClasses,
}

/// Returns the objects of other kinds, each with its kind.
fn others(case: &Value) -> Vec<(&'static CustomKind, Value)> {
    let kinds = [&DEVICE, &NODE_RESOURCE_TOPOLOGY, &ELASTIC_QUOTA];
    let kind =
        |object: &Value| kinds.into_iter().find(|kind| object["kind"] == kind.kind).expect("a known kind");
    array(&case["objects"]["others"]).iter().map(|object| (kind(object), object.clone())).collect()
}

impl Case {
    pub(crate) fn new(case: &Value) -> Self {
        Self::with(case, &[])
    }

    /// Makes it with further plugins enabled, before the others.
    pub(crate) fn with(case: &Value, plugins: &[&'static str]) -> Self {
        let profile = profile(plugins, &case["args"]);
        let mut core = Core::new(settings(profile.clone()));
        core.now = Now { monotonic: Duration::from_secs(1), wall: Duration::from_secs(BEGIN) };
        let decoder = Decoder::of(&registry());
        let mut made = Self {
            id: text(&case["id"]).to_owned(),
            core,
            profile,
            decoder,
            version: 0,
            pods: BTreeMap::new(),
            reservations: BTreeMap::new(),
            evicted: Vec::new(),
            plugins: plugins.to_vec(),
            others: Vec::new(),
            classes: PriorityClasses::default(),
        };
        let objects = &case["objects"];
        array(&objects["priorityClasses"]).iter().for_each(|class| made.classes.put(class));
        for node in array(&objects["nodes"]) {
            let node = Arc::new(made.decoder.node(node).expect("a node"));
            made.core.apply(Input::NodeApplied(node));
        }
        for (kind, object) in others(case) {
            made.put_other(kind, &object);
        }
        for pod in array(&objects["pods"]) {
            made.create_pod(pod);
        }
        for reservation in array(&objects["reservations"]) {
            let mut reservation = reservation.clone();
            let name = text(&reservation["metadata"]["name"]).to_owned();
            reservation["metadata"]["uid"] = json!(format!("{name}-uid"));
            reservation["metadata"]["creationTimestamp"] = json!(made.moment());
            made.put_reservation(reservation);
            made.settle();
        }
        made
    }

    /// Makes a scheduler that is given the objects as they stand, reservations first or pods first, and settles.
    pub(crate) fn restarted(&self, nodes: &[Value], order: [bool; 2]) -> Self {
        let mut made = self.rebuilt(nodes, order);
        made.settle();
        made
    }

    /// Makes a scheduler that is given the objects as they stand and decides nothing yet.
    pub(crate) fn rebuilt(&self, nodes: &[Value], order: [bool; 2]) -> Self {
        let case = json!({"id": self.id, "objects": {"nodes": nodes, "others": self.others}});
        let mut made = Self::with(&case, &self.plugins);
        made.core.now = self.core.now;
        for is_reservation in order {
            if is_reservation {
                self.reservations.values().for_each(|object| made.put_reservation(object.clone()));
            } else {
                self.pods.values().for_each(|pod| drop(made.put_pod(pod.clone())));
            }
        }
        made
    }

    pub(crate) fn moment(&self) -> String {
        format_moment(self.core.now.wall.as_secs().cast_signed())
    }

    pub(crate) fn versioned(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    pub(crate) fn put_other(&mut self, kind: &'static CustomKind, object: &Value) {
        let versioned = self.versioned(object.clone());
        let read = self.decoder.custom(CustomKindRef(kind), &versioned).expect("it can be read");
        self.others.push(object.clone());
        self.core.apply(Input::CustomApplied(Arc::new(read)));
    }

    pub(crate) fn put_reservation(&mut self, object: Value) {
        let object = self.versioned(object);
        let read = self.decoder.custom(CustomKindRef(&RESERVATION), &object).expect("a reservation");
        self.reservations.insert(text(&object["metadata"]["name"]).to_owned(), object);
        self.core.apply(Input::CustomApplied(Arc::new(read)));
    }

    pub(crate) fn delete_reservation(&mut self, name: &str) {
        self.reservations.remove(name);
        self.core.apply(Input::CustomDeleted(CustomKindRef(&RESERVATION), (Name::default(), name.into())));
    }

    pub(crate) fn create_pod(&mut self, pod: &Value) -> PodKey {
        let mut pod = pod.clone();
        pod["metadata"]["uid"] = json!(format!("{}-uid", text(&pod["metadata"]["name"])));
        pod["metadata"]["creationTimestamp"] = json!(self.moment());
        self.classes.admit(&mut pod);
        self.put_pod(pod)
    }

    pub(crate) fn put_pod(&mut self, pod: Value) -> PodKey {
        let pod = self.versioned(pod);
        let read = self.decoder.pod(&pod).expect("a pod");
        let key = read.key.clone();
        self.pods.insert(key.clone(), pod);
        self.core.apply(Input::PodApplied(Arc::new(read)));
        key
    }

    pub(crate) fn delete_pod(&mut self, key: &PodKey) {
        self.pods.remove(key);
        self.core.apply(Input::PodDeleted(key.clone()));
    }

    /// Decides and carries out what is ordered until nothing is.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            self.core.scheduler.tick(self.core.now);
            self.core.run();
            self.core.scheduler.order_due_writes(self.core.now);
            let effects = self.core.scheduler.take_effects();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
        panic!("{}: it never settles", self.id);
    }

    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Bind(order) => {
                let mut pod = self.pods[&order.pod.key].clone();
                pod["spec"]["nodeName"] = json!(order.node.as_str());
                for (key, value) in order.marks.iter().flat_map(|marks| &marks.annotations) {
                    pod["metadata"]["annotations"][&**key] = json!(&**value);
                }
                self.put_pod(pod);
                let (id, uid, outcome) = (order.id, order.pod.uid.clone(), BindOutcome::Bound);
                self.core.apply(Input::Report(EffectReport::BindDone { id, uid, outcome }));
            }
            Effect::Object(order) => {
                let mut outcome = WriteOutcome::Written;
                match &order.write {
                    ObjectWrite::Patch { object, part, patch, precondition } => {
                        if object.plural == "pods" {
                            let namespace = object.namespace.clone().expect("a pod has one");
                            let key = PodKey::new(&namespace, &object.name);
                            match self.pods.get(&key).cloned() {
                                Some(mut pod) => {
                                    merge(&mut pod, patch);
                                    drop(self.put_pod(pod));
                                }
                                None => {
                                    let message = "it is gone".into();
                                    outcome = WriteOutcome::Refused { status: 404, message };
                                }
                            }
                            let id = order.id;
                            return self.core.apply(Input::Report(EffectReport::ObjectDone { id, outcome }));
                        }
                        if object.plural != "reservations" {
                            // What other plugins write of their objects is not looked at.
                            let id = order.id;
                            return self.core.apply(Input::Report(EffectReport::ObjectDone { id, outcome }));
                        }
                        assert!(*part == ObjectPart::Status || patch.get("status").is_none());
                        let mut changed = self.reservations[object.name.as_str()].clone();
                        let version = text(&changed["metadata"]["resourceVersion"]);
                        if precondition.resource_version.as_deref().is_none_or(|wanted| wanted == version) {
                            merge(&mut changed, patch);
                            self.put_reservation(changed);
                        } else {
                            outcome = WriteOutcome::Refused { status: 409, message: "it has changed".into() };
                        }
                    }
                    ObjectWrite::Delete { object, .. } => self.delete_reservation(&object.name),
                    other => panic!("{other}"),
                }
                let id = order.id;
                self.core.apply(Input::Report(EffectReport::ObjectDone { id, outcome }));
            }
            Effect::Evict(order) => {
                let (id, uid) = (order.id, order.victim.uid.clone());
                self.delete_pod(&order.victim.key);
                self.evicted.push(order.victim.key);
                let outcome = EvictOutcome::Deleted;
                self.core.apply(Input::Report(EffectReport::EvictDone { id, uid, outcome }));
            }
            Effect::Status(_) | Effect::Event(_) | Effect::GroupStatus(_) => {}
        }
    }

    pub(crate) fn sentence(&self, key: &PodKey) -> Option<String> {
        let cluster = self.core.scheduler.cluster();
        let record = cluster.find_pod(key).and_then(|id| cluster.pod(id)).expect("the pod waits");
        let plugin = self.profile.plugins.iter().find(|plugin| plugin.name() == NAME).expect("it is enabled");
        let view = View::new(cluster).for_pod(&record.pod);
        plugin.advice().expect("it gives advice").sentence(view, &record.pod.spec, self.core.now)
    }

    /// Returns the CPU that the pods of a quota use, in thousandths of a core.
    pub(crate) fn used_of_quota(&self, name: &str) -> i64 {
        let quota = self.read_of("ElasticQuota", "quotas/:name", name);
        quantity::milli(quota["used"]["cpu"].as_str().unwrap_or("0")).expect("a quantity")
    }

    pub(crate) fn read(&self, path: &str, name: &str) -> Value {
        self.read_of(NAME, path, name)
    }

    fn read_of(&self, plugin: &str, path: &str, name: &str) -> Value {
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == plugin).expect("it is registered");
        let mut endpoints = factory.endpoints().into_iter();
        let endpoint = endpoints.find(|e| e.path == path && !e.explains).expect("it is there");
        let params = ["nodeName", "name"].map(|param| (param.to_owned(), name.to_owned()));
        let params = PathParams::from(params);
        let view = View::new(self.core.scheduler.cluster());
        let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
        (endpoint.read)(&cx).expect("an answer")
    }
}
