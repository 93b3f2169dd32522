//! Another quorum of a gang, or other amounts that must be free for it, as the inputs that a watch would deliver: its PodGroup
//! declares them, or its pods declare the quorum.

use std::sync::Arc;

use pellucid_cluster::gangs::GangFrom;
use pellucid_cluster::{Cluster, Input};
use pellucid_model::gang::{GangDeclaration, GangTerms, PodGroup};
use pellucid_model::{GangKey, Name, Object, ObjectKind, Pod, cancellation};

use super::edit::set_amount;

/// Returns the changed PodGroup or pods. Fails if there is no such gang, or a native PodGroup declares no quorum.
pub(super) fn inputs(cluster: &Cluster, key: &GangKey, min: u32) -> Result<Vec<Input>, String> {
    let gang = cluster.gangs().get(key).ok_or_else(|| format!("{key}: there is no such gang"))?;
    if min == 0 || gang.definition.is_basic {
        return Err(format!("{key}: the gang cannot have a quorum of {min}"));
    }
    let GangFrom::PodGroup(kind) = gang.definition.from else {
        let mut pods: Vec<&Arc<Pod>> =
            gang.members.keys().filter_map(|id| Some(&cluster.pod(*id)?.pod)).collect();
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        return Ok(pods.into_iter().filter_map(|pod| changed(pod, min)).map(Input::PodApplied).collect());
    };
    let mut group = pod_group(cluster, key, kind)?;
    group.terms.min = Some(min);
    Ok(vec![Input::ObjectApplied(Arc::new(Object::PodGroup(group)))])
}

/// Returns the changed PodGroup of a gang for which another amount of a resource must be free. Fails if there is none.
pub(super) fn with_min_resource(
    cluster: &Cluster,
    key: &GangKey,
    (resource, amount): (&Name, i64),
) -> Result<Vec<Input>, String> {
    let gang = cluster.gangs().get(key).ok_or_else(|| format!("{key}: there is no such gang"))?;
    let GangFrom::PodGroup(kind) = gang.definition.from else {
        return Err(format!("{key}: its PodGroup is not there"));
    };
    let mut group = pod_group(cluster, key, kind)?;
    set_amount(group.min_resources.get_or_insert_default(), resource, amount);
    Ok(vec![Input::ObjectApplied(Arc::new(Object::PodGroup(group)))])
}

fn pod_group(cluster: &Cluster, key: &GangKey, kind: ObjectKind) -> Result<PodGroup, String> {
    let at = (key.namespace.clone(), key.name.clone());
    match cluster.objects().get(kind, &at).map(Arc::as_ref) {
        Some(Object::PodGroup(group)) => Ok(group.clone()),
        _ => Err(format!("{key}: its PodGroup is not there")),
    }
}

/// Returns a member with another quorum, or `None` if it declares no gang.
fn changed(pod: &Arc<Pod>, min: u32) -> Option<Arc<Pod>> {
    cancellation::check();
    let declared = pod.gang.as_deref()?;
    let terms = GangTerms { min: Some(min), ..declared.terms.clone() };
    let gang = GangDeclaration { terms, ..declared.clone() };
    Some(Arc::new(Pod { gang: Some(Arc::new(gang)), ..Pod::clone(pod) }))
}
