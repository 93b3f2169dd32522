//! Helpers shared by the volume plugins: a pod's claims, their ownership, and claims in cluster events.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::ClusterEvent;
use pellucid_framework::{Reason, View};
use pellucid_model::selector::{Labels, NodeSelectorTerm};
use pellucid_model::storage::{ClaimUse, PersistentVolumeClaim};
use pellucid_model::{Name, Object, ObjectKind, Pod, PodSpec};

use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, ask_meant, detail, meant, tally};

/// Namespace and name of a claim.
pub(super) type ClaimKey = (Name, Name);

/// Returns the claim that a pod mounts, if it exists.
pub(super) fn find<'a>(
    view: View<'a>,
    spec: &PodSpec,
    mounted: &ClaimUse,
) -> Option<&'a PersistentVolumeClaim> {
    view.cluster().objects().claim(&spec.namespace, &mounted.claim)
}

/// Iterates over the claims that a pod names explicitly. Claims of generic ephemeral volumes are excluded, because
/// kube-scheduler's VolumeRestrictions and VolumeZone consider only named claims.
pub(super) fn named(spec: &PodSpec) -> impl Iterator<Item = &ClaimUse> {
    spec.volumes.claims.iter().filter(|c| c.owner.is_none())
}

/// Returns whether a pod may use a claim. The claim of a generic ephemeral volume must be owned by the pod.
pub(super) fn is_for_pod(claim: &PersistentVolumeClaim, mounted: &ClaimUse) -> bool {
    mounted.owner.is_none() || claim.owner_pod == mounted.owner
}

/// Returns the reason for a claim that does not exist.
pub(super) fn not_found(mounted: &ClaimUse) -> Reason {
    Reason::about(ReasonCode::ClaimNotFound, mounted.claim.clone())
}

/// Returns the reason for a claim that belongs to another pod. The pod is looked up by uid, because a spec does not
/// hold the pod's name; a simulated pod is not found and is named by its uid.
pub(super) fn not_for_pod(view: View<'_>, spec: &PodSpec, mounted: &ClaimUse) -> Reason {
    let owner = mounted.owner.as_deref().unwrap_or_default();
    let pod = view.cluster().pods().find(|(_, record)| &*record.pod.uid == owner);
    let pod = pod.map_or_else(|| format!("with uid {owner}"), |(_, record)| record.pod.key.to_string());
    let text = format!("{}/{} was not created for pod {pod}", spec.namespace, mounted.claim);
    Reason::about(ReasonCode::ClaimNotForPod, text.as_str())
}

/// Returns whether one of the claims of `pod` is `claim`.
pub(super) fn mounts<'a>(
    pod: &Pod,
    claim: &PersistentVolumeClaim,
    mut claims: impl Iterator<Item = &'a ClaimUse>,
) -> bool {
    pod.spec.namespace == claim.namespace && claims.any(|mounted| mounted.claim == claim.name)
}

/// Returns the claim that an event adds or changes.
pub(super) fn of_event(event: &ClusterEvent) -> Option<&PersistentVolumeClaim> {
    let ClusterEvent::ObjectChanged { new: Some(new), .. } = event else { return None };
    if let Object::PersistentVolumeClaim(claim) = &**new { Some(claim) } else { None }
}

/// Returns whether a volume with this node affinity is reachable from a node with these labels. As in Kubernetes, the
/// node name is not considered: a term over `metadata.name` is matched against an empty name.
pub(super) fn reaches(affinity: Option<&[NodeSelectorTerm]>, labels: &Labels) -> bool {
    affinity.is_none_or(|terms| {
        let nameless = Name::default();
        terms.iter().any(|term| term.matches(&nameless, labels))
    })
}

/// Describes the claims of a pod that do not exist, with a similar one that does.
pub(super) fn describe_missing(view: View<'_>, plugin: &str, spec: &PodSpec) -> Vec<RequirementDetail> {
    let is_missing = |mounted: &&ClaimUse| find(view, spec, mounted).is_none();
    let missing: Vec<&ClaimUse> =
        spec.volumes.claims.iter().filter(is_missing).take(MAX_REQUIREMENTS).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let objects = view.cluster().objects().iter(ObjectKind::PersistentVolumeClaim);
    let claims = objects.filter_map(|object| match &**object {
        Object::PersistentVolumeClaim(claim) => Some(claim).filter(|claim| claim.namespace == spec.namespace),
        _ => None,
    });
    let known = tally(claims.map(|claim| &claim.name));
    let describe = |mounted: &ClaimUse| {
        let (name, namespace) = (&mounted.claim, &spec.namespace);
        let mut of = detail(view, plugin, not_found(mounted).code, format!("claim {name}"));
        of.text = format!("claim {name}: there is none in namespace {namespace}");
        match mounted.owner {
            Some(_) => of.text += "; the ephemeral volume controller makes it",
            None => of.did_you_mean.extend(meant(name, &known)),
        }
        ask_meant(&mut of.text, &of.did_you_mean);
        of
    };
    missing.into_iter().map(describe).collect()
}
