//! The objects of a cluster as an API server has them, each beside what the decoder makes of it.
//!
//! Changes are made to the JSON and decoded anew, so no code that makes claims makes changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use pellucid::kubernetes::decode::Decoder;
use pellucid::model::{CustomKindRef, CustomObject, Node, Object, ObjectKind, Pod};
use pellucid::plugins::registry;
use serde_json::{Value, json};

/// The gate of a pod that waits beside those that are looked at.
const ASIDE: &str = "example.com/aside";

/// The annotation by which pods name their group of kube-batch.
pub(crate) const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// The annotation of pods in a queue with a group of the same queue that single pods are in.
pub(crate) const LONE_GROUP: &str = "example.com/lone-group";

/// A decoder of everything that plugins declare.
static DECODER: LazyLock<Decoder> = LazyLock::new(|| Decoder::of(&registry()));

/// An object, and what the decoder makes of it.
#[derive(Clone)]
pub(crate) struct Item<T> {
    pub(crate) json: Arc<Value>,
    pub(crate) model: Arc<T>,
}

/// Which plugins decide on a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Plugins {
    /// The default profile.
    #[default]
    InTree,
    /// The default profile and Koordinator's plugins.
    Koordinator,
    /// The same, and reservations may be evicted.
    KoordinatorEvicting,
}

/// The objects of a cluster. Pods are named `namespace/name`.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pub(crate) nodes: BTreeMap<String, Item<Node>>,
    pub(crate) pods: BTreeMap<String, Item<Pod>>,
    /// Objects of other kinds, by kind and `namespace/name` or name.
    pub(crate) others: BTreeMap<(&'static str, String), Item<Object>>,
    /// Objects of the kinds that plugins bring, likewise.
    pub(crate) custom: BTreeMap<(CustomKindRef, String), Item<CustomObject>>,
    /// Whether all pods have left that can: then nothing counts what others wait for.
    is_emptied: bool,
    /// The plugins that decide.
    pub(crate) plugins: Plugins,
    /// Number of pods created so far; a pod's is its `creationTimestamp` in seconds.
    created: usize,
}

fn named(json: &Value) -> String {
    let text = |field: &str| json["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

fn qualified(json: &Value) -> (&str, String) {
    let kind = json["kind"].as_str().expect("a kind");
    let version = json["apiVersion"].as_str().expect("an apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (kind, format!("{kind}.{group}"))
}

fn custom_kind_of(json: &Value) -> Option<CustomKindRef> {
    let (_, qualified) = qualified(json);
    DECODER.kinds().iter().copied().find(|kind| kind.0.qualified == qualified)
}

fn kind_of(json: &Value) -> ObjectKind {
    let (kind, qualified) = qualified(json);
    let found = ObjectKind::ALL.into_iter().find(|k| k.as_str() == kind || k.as_str() == qualified);
    found.unwrap_or_else(|| panic!("no kind {qualified}"))
}

fn timestamp(second: usize) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Returns an entry of a list, or an empty list.
pub(crate) fn list(json: &Value) -> &[Value] {
    json.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text, or an empty one.
pub(crate) fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

/// Returns the node of a pod.
pub(crate) fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

/// Returns whether the pod waits beside those that are looked at.
pub(crate) fn is_aside(pod: &Value) -> bool {
    list(&pod["spec"]["schedulingGates"]).iter().any(|gate| gate["name"] == ASIDE)
        || pod["spec"]["nodeSelector"][ASIDE] == "nowhere"
}

/// Returns whether the pod's end gives its room to others: not of a pod that a DaemonSet or a kubelet makes again.
pub(crate) fn can_leave(pod: &Value) -> bool {
    let owners = list(&pod["metadata"]["ownerReferences"]);
    let is_mirror = pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some();
    !is_mirror && owners.iter().all(|owner| owner["kind"] != "DaemonSet" && owner["kind"] != "Node")
}

/// Returns whether a reservation has no place and may get one.
pub(crate) fn waits(reservation: &Value) -> bool {
    matches!(text(&reservation["status"]["phase"]), "" | "Pending")
}

/// Returns the name of the pod that stands for a reservation.
fn stand_in_of(reservation: &Value) -> String {
    let namespace = &reservation["spec"]["template"]["metadata"]["namespace"];
    format!("{}/reservation:{}", text(namespace), text(&reservation["metadata"]["name"]))
}

/// Returns the gang that a pod names, in any dialect.
pub(crate) fn gang_of(pod: &Value) -> Option<String> {
    let meta = &pod["metadata"];
    let name = [
        &meta["labels"]["gang.unicore.mcyou.cn/name"],
        &meta["labels"]["scheduling.x-k8s.io/pod-group"],
        &meta["annotations"]["gang.scheduling.koordinator.sh/name"],
        &meta["annotations"][GROUP_NAME],
        &pod["spec"]["schedulingGroup"]["podGroupName"],
    ];
    let name = name.into_iter().find_map(Value::as_str)?;
    Some(format!("{}/{name}", text(&meta["namespace"])))
}

/// Takes the gang of a pod away.
pub(crate) fn strip_gang(pod: &mut Value) {
    let keys = |json: &mut Value, keys: &[&str]| {
        if let Some(map) = json.as_object_mut() {
            keys.iter().for_each(|key| _ = map.remove(*key));
        }
    };
    keys(
        &mut pod["metadata"]["labels"],
        &[
            "gang.unicore.mcyou.cn/name",
            "gang.unicore.mcyou.cn/available-count",
            "scheduling.x-k8s.io/pod-group",
        ],
    );
    if let Some(map) = pod["metadata"]["annotations"].as_object_mut() {
        map.retain(|key, _| !key.starts_with("gang.scheduling.koordinator.sh/"));
        // A pod by itself stays in its queue: in a group of the queue for which one pod is enough.
        let alone = map.get(LONE_GROUP).cloned();
        map.remove(GROUP_NAME);
        if let Some(group) = alone {
            map.insert(GROUP_NAME.to_owned(), group);
        }
    }
    keys(&mut pod["spec"], &["schedulingGroup"]);
}

impl Objects {
    /// Adds or replaces a node.
    pub(crate) fn put_node(&mut self, json: Value) {
        let model = DECODER.node(&json).unwrap_or_else(|wrong| panic!("{wrong:?}: {json}"));
        self.nodes.insert(named(&json), Item { json: Arc::new(json), model: Arc::new(model) });
    }

    /// Adds or replaces an object of another kind.
    pub(crate) fn put(&mut self, mut json: Value) {
        let version = json["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
        json["metadata"]["resourceVersion"] = (version.unwrap_or(0) + 1).to_string().into();
        if let Some(kind) = custom_kind_of(&json) {
            let model = DECODER.custom(kind, &json).unwrap_or_else(|wrong| panic!("{wrong:?}: {json}"));
            let item = Item { json: Arc::new(json.clone()), model: Arc::new(model) };
            self.custom.insert((kind, named(&json)), item);
            return;
        }
        let kind = kind_of(&json);
        let model = DECODER.object(kind, &json).unwrap_or_else(|wrong| panic!("{wrong:?}: {json}"));
        let item = Item { json: Arc::new(json.clone()), model: Arc::new(model) };
        self.others.insert((kind.as_str(), named(&json)), item);
    }

    /// Adds or replaces a pod. A new one gets a uid and the next creation time.
    pub(crate) fn put_pod(&mut self, mut json: Value) {
        let key = named(&json);
        if json["metadata"]["uid"].is_null() {
            self.created += 1;
            json["metadata"]["uid"] = format!("uid-{}-{}", key.replace('/', "-"), self.created).into();
            json["metadata"]["creationTimestamp"] = timestamp(self.created).into();
        }
        let model = DECODER.pod(&json).unwrap_or_else(|wrong| panic!("{wrong:?}: {json}"));
        self.pods.insert(key, Item { json: Arc::new(json), model: Arc::new(model) });
    }

    /// Changes a node.
    pub(crate) fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut json = Value::clone(&self.nodes.get(name).unwrap_or_else(|| panic!("no node {name}")).json);
        change(&mut json);
        self.put_node(json);
    }

    /// Changes a pod in place.
    pub(crate) fn change_pod(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        let mut json = Value::clone(self.pod(key));
        change(&mut json);
        self.put_pod(json);
    }

    /// Changes an object of another kind.
    pub(crate) fn change(&mut self, kind: &'static str, key: &str, change: impl FnOnce(&mut Value)) {
        let known = self.others.get(&(kind, key.to_owned())).unwrap_or_else(|| panic!("no {kind} {key}"));
        let mut json = Value::clone(&known.json);
        change(&mut json);
        self.put(json);
    }

    /// Returns the objects of a kind that a plugin brings.
    pub(crate) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.custom.iter().filter(move |((of, _), _)| of.0.kind == kind).map(|(_, item)| &*item.json)
    }

    /// Removes an object of a kind that a plugin brings. Returns whether it was there.
    pub(crate) fn remove(&mut self, kind: &str, key: &str) -> bool {
        let before = self.custom.len();
        self.custom.retain(|(of, known), _| of.0.kind != kind || known != key);
        self.custom.len() < before
    }

    /// Returns the object of another kind, if there is one.
    pub(crate) fn other(&self, kind: &'static str, key: &str) -> Option<&Value> {
        self.others.get(&(kind, key.to_owned())).map(|item| &*item.json)
    }

    /// Returns a pod.
    pub(crate) fn pod(&self, key: &str) -> &Value {
        &self.pods.get(key).unwrap_or_else(|| panic!("no pod {key}")).json
    }

    /// Returns a node.
    pub(crate) fn node(&self, name: &str) -> &Value {
        &self.nodes.get(name).unwrap_or_else(|| panic!("no node {name}")).json
    }

    /// Deletes a pod. One that comes back stays where it is. Returns whether it is gone.
    pub(crate) fn delete(&mut self, key: &str) -> bool {
        let goes = self.pods.get(key).is_some_and(|pod| can_leave(&pod.json));
        if goes {
            self.pods.remove(key);
        }
        goes
    }

    /// Deletes what answers call so: a pod, or an object such as `Reservation r1`. Returns whether it is gone.
    pub(crate) fn delete_called(&mut self, called: &str) -> bool {
        match called.split_once(' ') {
            Some((kind, name)) => self.remove(kind, name),
            None => self.delete(called),
        }
    }

    /// Returns whether the end of what answers call so gives its room to others.
    pub(crate) fn is_free_to_go(&self, called: &str) -> bool {
        called.contains(' ') || self.pods.get(called).is_some_and(|pod| can_leave(&pod.json))
    }

    /// Returns the priority of what answers call so.
    pub(crate) fn priority_of(&self, called: &str) -> i64 {
        let Some((_, name)) = called.split_once(' ') else {
            return self.pod(called)["spec"]["priority"].as_i64().unwrap_or(0);
        };
        let of = self.of_kind("Reservation").find(|of| of["metadata"]["name"] == name);
        let of = of.unwrap_or_else(|| panic!("no {called}"));
        let by_label = || text(&of["metadata"]["labels"]["koordinator.sh/priority"]).parse().ok();
        let of_template = of["spec"]["template"]["spec"]["priority"].as_i64();
        of_template.or_else(by_label).unwrap_or(i64::from(i32::MAX))
    }

    /// Returns the pods on nodes, by name.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.pods.iter().filter(|(_, pod)| node_of(&pod.json).is_some()).map(|(key, pod)| (key, &*pod.json))
    }

    /// Returns the pods without a node, by name.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.pods.iter().filter(|(_, pod)| node_of(&pod.json).is_none()).map(|(key, pod)| (key, &*pod.json))
    }

    /// Returns the pods on a node.
    pub(crate) fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.placed().filter(move |(_, pod)| node_of(pod) == Some(node))
    }

    /// Returns the same objects with only these of the pending pods. Where quotas count what waits, the others stay and are
    /// kept from being placed.
    pub(crate) fn only(&self, keys: &[String]) -> Self {
        let mut rest = self.clone();
        rest.put_reservations_aside(keys);
        if self.plugins != Plugins::InTree && !self.is_emptied {
            let has_queues = self.others.keys().any(|(kind, _)| kind.starts_with("Queue."));
            let others: Vec<String> = self.pending().map(|(key, _)| key.clone()).collect();
            for other in others.iter().filter(|key| !keys.contains(key)) {
                // A queue does not count pods with gates, and counts those that no node takes.
                rest.change_pod(other, |json| match has_queues {
                    true => json["spec"]["nodeSelector"][ASIDE] = "nowhere".into(),
                    false => json["spec"]["schedulingGates"] = json!([{"name": ASIDE}]),
                });
            }
            return rest;
        }
        rest.pods.retain(|key, pod| node_of(&pod.json).is_some() || keys.contains(key));
        rest
    }

    /// Keeps reservations without a place, but for those whose pods are named, from getting one.
    fn put_reservations_aside(&mut self, keys: &[String]) {
        let is_other = |of: &&Value| waits(of) && !keys.contains(&stand_in_of(of));
        let others: Vec<Value> = self.of_kind("Reservation").filter(is_other).cloned().collect();
        for mut other in others {
            other["spec"]["template"]["spec"]["nodeSelector"][ASIDE] = "nowhere".into();
            self.put(other);
        }
    }

    /// Returns the reservation for which a pod of this name stands.
    pub(crate) fn stood_for(&self, key: &str) -> Option<&Value> {
        self.of_kind("Reservation").find(|of| stand_in_of(of) == key)
    }

    /// Returns the pending members of gangs.
    pub(crate) fn members(&self, gangs: &BTreeSet<String>) -> Vec<String> {
        let is_of = |pod: &Value| gang_of(pod).is_some_and(|gang| gangs.contains(&gang));
        self.pending().filter(|(_, pod)| is_of(pod)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns a gang and those that are placed with it.
    pub(crate) fn gang_group(&self, gang: &str) -> BTreeSet<String> {
        let mut group = BTreeSet::from([gang.to_owned()]);
        for item in self.pods.values() {
            if gang_of(&item.json).as_deref() == Some(gang) {
                let groups =
                    text(&item.json["metadata"]["annotations"]["gang.scheduling.koordinator.sh/groups"]);
                group.extend(serde_json::from_str::<Vec<String>>(groups).unwrap_or_default());
            }
        }
        group
    }

    /// Returns what is planned with a pod: itself, or the pending members of its gang's group.
    pub(crate) fn planned_with(&self, key: &str) -> Vec<String> {
        match gang_of(self.pod(key)) {
            Some(gang) => self.members(&self.gang_group(&gang)),
            None => vec![key.to_owned()],
        }
    }

    /// Empties the cluster of every pod on a node that can leave, except for those that `keeps` names.
    pub(crate) fn emptied(&self, keeps: &BTreeSet<String>) -> Self {
        let mut rest = self.clone();
        let gone: Vec<String> = self.placed().map(|(key, _)| key.clone()).collect();
        gone.iter().filter(|key| !keeps.contains(*key)).for_each(|key| _ = rest.delete(key));
        rest.is_emptied = true;
        rest
    }

    /// Removes what keeps room for pods that are not there.
    pub(crate) fn without_reservations(mut self) -> Self {
        self.custom.retain(|(kind, _), _| kind.0.kind != "Reservation");
        self
    }

    /// Removes all reservations but those that have a pod as an owner.
    pub(crate) fn only_reservations_for(mut self, key: &str) -> Self {
        let labels = self.pod(key)["metadata"]["labels"].clone();
        let is_owner = |of: &Value| {
            let wanted = of["labelSelector"]["matchLabels"].as_object().into_iter().flatten();
            wanted.into_iter().all(|(name, value)| labels[name] == *value)
        };
        let has = |json: &Value| list(&json["spec"]["owners"]).iter().any(is_owner);
        self.custom.retain(|(kind, _), item| kind.0.kind != "Reservation" || has(&item.json));
        self
    }

    /// Removes all reservations but that of a pod.
    pub(crate) fn only_reservation(mut self, key: &str) -> Self {
        self.custom.retain(|(kind, _), item| kind.0.kind != "Reservation" || stand_in_of(&item.json) == key);
        self
    }

    /// Does the same as `emptied`, and nodes report what they use then.
    pub(crate) fn emptied_and_reported(&self, keeps: &BTreeSet<String>) -> Self {
        let mut rest = self.emptied(keeps);
        crate::made::report_anew(&mut rest);
        rest
    }

    /// Closes every node but one for new pods, in a way that no other rule of scheduling reads.
    pub(crate) fn close_all_but(&mut self, open: &str) {
        let others: Vec<String> = self.nodes.keys().filter(|name| *name != open).cloned().collect();
        for node in others {
            self.change_node(&node, |json| json["status"]["allocatable"]["pods"] = "0".into());
        }
    }

    /// Returns the objects as a list for people, one a line.
    pub(crate) fn shown(&self) -> String {
        let all = self.nodes.values().map(|item| &item.json);
        let all = all.chain(self.others.values().map(|item| &item.json));
        let all = all.chain(self.custom.values().map(|item| &item.json));
        let all = all.chain(self.pods.values().map(|item| &item.json));
        all.map(|json| format!("{json}\n")).collect()
    }

    /// Returns the number of objects, by which the smallest example is chosen.
    pub(crate) fn size(&self) -> usize {
        self.nodes.len() + self.pods.len() + self.others.len() + self.custom.len()
    }

    /// Returns a copy of a pod as somebody would create it: without uid, place, gang and gates, under another name.
    pub(crate) fn copied(&self, key: &str, name: &str) -> Value {
        let mut json = Value::clone(self.pod(key));
        json["metadata"]["name"] = name.into();
        json["metadata"]["uid"] = Value::Null;
        json["status"] = json!({});
        json["spec"]["preemptionPolicy"] = "Never".into();
        let spec = json["spec"].as_object_mut().expect("a spec");
        spec.remove("nodeName");
        spec.remove("schedulingGates");
        strip_gang(&mut json);
        json
    }

    /// Makes a pending pod a single one that preempts nobody and has no gates.
    pub(crate) fn make_single(&mut self, key: &str) {
        self.change_pod(key, |json| {
            strip_gang(json);
            json["spec"]["preemptionPolicy"] = "Never".into();
            json["spec"].as_object_mut().expect("a spec").remove("schedulingGates");
        });
    }

    /// Keeps a pending pod from evicting others.
    pub(crate) fn never_preempts(&mut self, keys: &[String]) {
        for key in keys {
            self.change_pod(key, |json| json["spec"]["preemptionPolicy"] = "Never".into());
        }
    }
}
