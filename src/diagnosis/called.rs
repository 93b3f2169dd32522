//! What pods are called that would have to leave. A pod that stands for an object is called as that object: there is no such
//! pod to delete.

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
