//! Compares the state with a complete list of one kind, object by object and field by field.
//!
//! A function of two values. It says what differs at one moment: an event that is still on its way makes a difference
//! too, so whoever asks looks twice. What the scheduler itself has assumed, placed or ordered is no difference: the state
//! keeps the object as it was last seen, and that is compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::consistency::FieldDrift;
use pellucid_cluster::{Cluster, Input};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, Pod, PodKey, PodSpec};
use serde::Serialize;
use serde_json::Value;

/// Namespace, empty for cluster-scoped kinds, and name.
pub type ObjectName = (Name, Arc<str>);

/// What differs, by object; the fields of each are sorted.
pub type Differences = BTreeMap<ObjectName, Vec<FieldDrift>>;

/// Longest text of a value, in characters.
const MOST_SHOWN: usize = 200;
const ABSENT: &str = "absent";

/// Paths of the fields of pods and nodes that the model calls otherwise. A longer path begins as the one of its first part.
const PATHS: [(&str, &str); 26] = [
    ("affinity", "spec.affinity.nodeAffinity"),
    ("allocatable", "status.allocatable"),
    ("annotations", "metadata.annotations"),
    ("created", "metadata.creationTimestamp"),
    ("declared_features", "status.declaredFeatures"),
    ("deleting", "metadata.deletionTimestamp"),
    ("gates", "spec.schedulingGates"),
    ("images", "status.images"),
    ("labels", "metadata.labels"),
    ("marks", "metadata.annotations"),
    ("never_preempts", "spec.preemptionPolicy"),
    ("node_name", "spec.nodeName"),
    ("nominated_node", "status.nominatedNodeName"),
    ("phase", "status.phase"),
    ("priority", "spec.priority"),
    ("ready", "status.conditions[Ready]"),
    ("scheduled", "status.conditions[PodScheduled]"),
    ("scheduler_name", "spec.schedulerName"),
    ("spec.annotations", "metadata.annotations"),
    ("spec.host_ports", "spec.containers[].ports"),
    ("spec.pod_affinity", "spec.affinity.podAffinity"),
    ("spec.pod_anti_affinity", "spec.affinity.podAntiAffinity"),
    ("started", "status.startTime"),
    ("taints", "spec.taints"),
    ("uid", "metadata.uid"),
    ("unschedulable", "spec.unschedulable"),
];

/// Returns what differs between the state and a complete list of a kind. Of objects in the list that cannot be read nothing
/// is said.
pub fn differences(cluster: &Cluster, list: &Input) -> Differences {
    match list {
        Input::PodsReset { pods, quarantined } => {
            let unread =
                |key: &PodKey| quarantined.iter().any(|q| q.namespace == key.namespace && q.name == key.name);
            of_pods(cluster, pods, unread)
        }
        Input::NodesReset { nodes, .. } => {
            let ours = cluster.present().iter().filter_map(|node| cluster.node(*node));
            let key = |name: &Name| (Name::default(), name.as_str().into());
            let ours = ours.map(|node| (key(&node.name), &**node)).collect();
            of_objects(ours, nodes.iter().map(|node| (key(&node.name), &**node)))
        }
        Input::ObjectsReset { kind, objects, .. } => {
            let key = |(namespace, name): (Name, Name)| (namespace, name.as_str().into());
            let ours = cluster.objects().iter(*kind).map(|object| (key(object.key()), &**object)).collect();
            of_objects(ours, objects.iter().map(|object| (key(object.key()), &**object)))
        }
        Input::CustomReset { kind, objects, .. } => {
            // What a plugin read of an object is its own; the versions of equal objects are equal.
            let versions = cluster.custom_objects().iter(*kind).map(|object| {
                (
                    (object.namespace.clone(), object.name.as_str().into()),
                    Version::of(&object.resource_version),
                )
            });
            let versions: Vec<(ObjectName, Version)> = versions.collect();
            let theirs: Vec<(ObjectName, Version)> = objects
                .iter()
                .map(|object| {
                    let key = (object.namespace.clone(), object.name.as_str().into());
                    (key, Version::of(&object.resource_version))
                })
                .collect();
            let ours = versions.iter().map(|(key, version)| (key.clone(), version)).collect();
            of_objects(ours, theirs.iter().map(|(key, version)| (key.clone(), version)))
        }
        _ => Differences::new(),
    }
}

/// The part of an object of a plugin's kind that is compared.
#[derive(PartialEq, Serialize)]
struct Version {
    #[serde(rename = "metadata.resourceVersion")]
    resource_version: Arc<str>,
}

impl Version {
    fn of(version: &Arc<str>) -> Self {
        Self { resource_version: version.clone() }
    }
}

fn of_objects<'a, T: PartialEq + Serialize + 'a>(
    mut ours: FxHashMap<ObjectName, &'a T>,
    theirs: impl Iterator<Item = (ObjectName, &'a T)>,
) -> Differences {
    let mut all = Differences::new();
    for (key, theirs) in theirs {
        match ours.remove(&key) {
            Some(ours) if ours == theirs => {}
            Some(ours) => add(&mut all, key, fields(ours, theirs)),
            None => add(&mut all, key, vec![missing_here()]),
        }
    }
    ours.into_keys().for_each(|key| add(&mut all, key, vec![missing_there()]));
    all
}

fn of_pods(cluster: &Cluster, theirs: &[Arc<Pod>], unread: impl Fn(&PodKey) -> bool) -> Differences {
    let records = cluster.pods().map(|(_, record)| &*record.pod);
    let mut ours: FxHashMap<&PodKey, &Pod> = records
        .filter(|pod| pod.stands_for.is_none() && !unread(&pod.key))
        .map(|pod| (&pod.key, pod))
        .collect();
    let mut all = Differences::new();
    for theirs in theirs {
        let is_kept = is_kept(cluster, theirs);
        let fields = match ours.remove(&theirs.key) {
            Some(ours) => fields(&comparable(ours), &comparable(theirs)),
            None if is_kept => vec![missing_here()],
            None => Vec::new(),
        };
        add(&mut all, name_of(&theirs.key), fields);
    }
    ours.into_keys().for_each(|key| add(&mut all, name_of(key), vec![missing_there()]));
    all
}

/// Returns whether the state keeps such a pod: one that takes room, or one of ours that waits for it.
fn is_kept(cluster: &Cluster, pod: &Pod) -> bool {
    let waits = || cluster.is_ours(&pod.scheduler_name) && !pod.deleting;
    !pod.phase.is_terminal() && (pod.node_name.is_some() || waits())
}

fn name_of(key: &PodKey) -> ObjectName {
    (key.namespace.clone(), key.name.clone())
}

/// Returns a pod without what the state derives: what its spec repeats of its metadata.
fn comparable(pod: &Pod) -> Pod {
    let spec = PodSpec { namespace: Name::default(), priority: 0, ..PodSpec::clone(&pod.spec) };
    Pod { spec: Arc::new(spec), ..pod.clone() }
}

fn add(all: &mut Differences, key: ObjectName, fields: Vec<FieldDrift>) {
    if !fields.is_empty() {
        all.insert(key, fields);
    }
}

fn missing_here() -> FieldDrift {
    FieldDrift { field: String::new(), ours: ABSENT.into(), theirs: "present".into() }
}

fn missing_there() -> FieldDrift {
    FieldDrift { field: String::new(), ours: "present".into(), theirs: ABSENT.into() }
}

/// Returns the fields in which two objects of the model differ.
fn fields<T: Serialize>(ours: &T, theirs: &T) -> Vec<FieldDrift> {
    let value = |object: &T| serde_json::to_value(object).unwrap_or_default();
    let mut all = Vec::new();
    compare("", &value(ours), &value(theirs), &mut all);
    all.sort_by(|a, b| a.field.cmp(&b.field));
    all
}

/// Adds the differences of two values. Only the objects at the top, of an enum's variant, and the spec are looked into: what
/// is below is one field.
fn compare(path: &str, ours: &Value, theirs: &Value, all: &mut Vec<FieldDrift>) {
    if ours == theirs {
        return;
    }
    let looks_into = path.is_empty() || path == "spec" || is_variant(path);
    let (Value::Object(a), Value::Object(b), true) = (ours, theirs, looks_into) else {
        return all.push(FieldDrift { field: public(path), ours: shown(ours), theirs: shown(theirs) });
    };
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    for key in keys {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let of = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
        compare(&below, &of(a), &of(b), all);
    }
}

/// Returns whether a path is the name of a kind, under which the model has its objects.
fn is_variant(path: &str) -> bool {
    path.starts_with(|first: char| first.is_ascii_uppercase()) && !path.contains('.')
}

/// Returns the path of a field as the API has it.
fn public(path: &str) -> String {
    let path = path.split_once('.').filter(|(kind, _)| is_variant(kind)).map_or(path, |(_, below)| below);
    let known = PATHS.iter().find(|(ours, _)| *ours == path).map(|(_, public)| (*public).to_owned());
    known.unwrap_or_else(|| camel_case(path))
}

fn camel_case(path: &str) -> String {
    let mut words = path.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

fn shown(value: &Value) -> String {
    let text = if value.is_null() { ABSENT.to_owned() } else { value.to_string() };
    match text.char_indices().nth(MOST_SHOWN - 1) {
        Some((at, _)) if text.chars().nth(MOST_SHOWN).is_some() => format!("{}…", &text[..at]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::Stage;
    use pellucid_model::Node;
    use pellucid_model::pod::PodPhase;

    use super::*;

    fn pod(name: &str) -> Pod {
        Pod {
            key: PodKey::new("ns", name),
            uid: name.into(),
            scheduler_name: "ours".into(),
            priority: 7,
            ..Pod::default()
        }
    }

    fn cluster(pods: impl IntoIterator<Item = Pod>) -> Cluster {
        let mut cluster = Cluster::new(0, [Name::new("ours")], Vec::new());
        cluster.apply_node(Arc::new(Node { name: "n".into(), ..Node::default() }), &mut Vec::new());
        pods.into_iter().for_each(|pod| cluster.apply_pod(Arc::new(pod), &mut Vec::new()));
        cluster
    }

    /// Returns what differs, as `name field ours theirs`.
    fn of(cluster: &Cluster, pods: impl IntoIterator<Item = Pod>) -> Vec<String> {
        let list =
            Input::PodsReset { pods: pods.into_iter().map(Arc::new).collect(), quarantined: Vec::new() };
        let row = |((_, name), fields): (ObjectName, Vec<FieldDrift>)| {
            let each = fields.into_iter().map(|f| format!("{} {} {}", f.field, f.ours, f.theirs));
            format!("{name} {}", each.collect::<Vec<_>>().join(", "))
        };
        differences(cluster, &list).into_iter().map(row).collect()
    }

    #[test]
    fn what_the_scheduler_did_itself_is_no_difference() {
        let mut cluster = cluster([pod("a"), pod("b")]);
        let id = cluster.find_pod(&PodKey::new("ns", "a")).expect("it is in the state");
        let node = cluster.find_node(&Name::new("n")).expect("it is in the state");
        cluster.place(id, node, Stage::Reserved);
        assert_eq!(of(&cluster, [pod("a"), pod("b")]), [""; 0]);
    }

    #[test]
    fn pods_that_are_not_kept_are_not_missing() {
        let others = Pod { scheduler_name: "theirs".into(), ..pod("others") };
        let ended = Pod { phase: PodPhase::Succeeded, node_name: Some("n".into()), ..pod("ended") };
        let leaving = Pod { deleting: true, ..pod("leaving") };
        let placed = Pod { scheduler_name: "theirs".into(), node_name: Some("n".into()), ..pod("placed") };
        let all = [others, ended, leaving, placed.clone()];
        assert_eq!(of(&cluster([]), all.clone()), ["placed  absent present"]);
        assert_eq!(of(&cluster(all), [placed]), [""; 0]);
    }

    #[test]
    fn fields_have_the_names_of_the_api() {
        let before = pod("a");
        let spec = PodSpec { n_containers: 2, ..PodSpec::default() };
        let after = Pod { node_name: Some("n".into()), spec: Arc::new(spec), ..pod("a") };
        assert_eq!(
            of(&cluster([before.clone()]), [after]),
            ["a spec.nContainers 0 2, spec.nodeName absent \"n\""]
        );
        assert_eq!(of(&cluster([before]), []), ["a  present absent"]);
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = shown(&Value::from("ü".repeat(500)));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MOST_SHOWN, true));
        assert_eq!(shown(&Value::from("ü".repeat(100))).chars().count(), 102);
    }
}
