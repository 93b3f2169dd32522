//! What pods are called that would have to leave. A pod that stands for an object is called as that object: there is no such
//! pod to delete.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_cluster::Cluster;
use pellucid_model::pod::StandsFor;
use pellucid_model::{Pod, PodKey};

/// Returns the name by which the reader can find it: `namespace/name` of a pod, kind and name of another object.
pub(crate) fn called(cluster: &Cluster, key: &PodKey) -> String {
    object_of(cluster, key).unwrap_or_else(|| key.to_string())
}

/// Does the same for one that may be gone already, of which it is known what it stood for.
pub(crate) fn called_as(key: &PodKey, stands_for: Option<&StandsFor>) -> String {
    stands_for.map_or_else(|| key.to_string(), StandsFor::to_string)
}

/// Does the same in a sentence: a pod is called a pod there.
pub(crate) fn called_in_words(cluster: &Cluster, key: &PodKey) -> String {
    object_of(cluster, key).unwrap_or_else(|| format!("pod {key}"))
}

/// Returns several in a sentence: how many pods, and by name or number the objects for which some of them stand.
pub(crate) fn called_together(cluster: &Cluster, keys: &[PodKey]) -> String {
    if let [one] = keys {
        return called_in_words(cluster, one);
    }
    let objects: Vec<String> = keys.iter().filter_map(|key| object_of(cluster, key)).collect();
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for object in &objects {
        kinds.entry(object.split(' ').next().unwrap_or(object)).or_default().push(object);
    }
    let pods = match keys.len() - objects.len() {
        0 => None,
        1 => Some("1 pod".to_owned()),
        n => Some(format!("{n} pods")),
    };
    let named = kinds.into_iter().map(|(kind, of)| match of[..] {
        [one] => one.to_owned(),
        _ => format!("{} {kind}s", of.len()),
    });
    pods.into_iter().chain(named).collect::<Vec<_>>().join(" and ")
}

/// Returns what leaves when all pods do that can: pods, and the objects for which placed ones stand.
pub(crate) fn leavers(cluster: &Cluster) -> String {
    let placed = cluster.pods().filter(|(_, record)| record.node.is_some());
    let kinds: BTreeSet<String> = placed
        .filter_map(|(_, record)| Some(format!("{}s", record.pod.stands_for.as_deref()?.kind)))
        .collect();
    std::iter::once("pods".to_owned()).chain(kinds).collect::<Vec<_>>().join(" and ")
}

/// Returns the pod that is called so.
pub(crate) fn named(cluster: &Cluster, text: &str) -> Option<PodKey> {
    if text.contains(' ') {
        let is_it = |pod: &&Pod| pod.stands_for.as_deref().is_some_and(|of| of.to_string() == text);
        return cluster.pods().map(|(_, record)| &*record.pod).find(is_it).map(|pod| pod.key.clone());
    }
    text.split_once('/').map(|(namespace, name)| PodKey::new(namespace, name))
}

fn object_of(cluster: &Cluster, key: &PodKey) -> Option<String> {
    let record = cluster.pod(cluster.find_pod(key)?)?;
    record.pod.stands_for.as_deref().map(StandsFor::to_string)
}
