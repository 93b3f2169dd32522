//! What the volume plugins share: the claims of a pod, whose they are, and what events say about them.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ClusterEvent;
use pellucid_framework::{Reason, View};
use pellucid_model::selector::{Labels, NodeSelectorTerm};
use pellucid_model::storage::{ClaimUse, PersistentVolumeClaim};
use pellucid_model::{Name, Object, Pod, PodSpec};

/// Namespace and name of a claim.
pub(super) type ClaimKey = (Name, Name);

/// Returns the claim that a pod mounts.
pub(super) fn find<'a>(
    view: View<'a>,
    spec: &PodSpec,
    mounted: &ClaimUse,
) -> Option<&'a PersistentVolumeClaim> {
    view.cluster().objects().claim(&spec.namespace, &mounted.claim)
}

/// Iterates over the claims that a pod names. Those of its generic ephemeral volumes are not among them:
/// kube-scheduler's VolumeRestrictions and VolumeZone look at named claims alone.
pub(super) fn named(spec: &PodSpec) -> impl Iterator<Item = &ClaimUse> {
    spec.volumes.claims.iter().filter(|c| c.owner.is_none())
}

/// Whether a claim may stand for the volume of a pod: that of a generic ephemeral volume must be the pod's.
pub(super) fn is_for_pod(claim: &PersistentVolumeClaim, mounted: &ClaimUse) -> bool {
    mounted.owner.is_none() || claim.owner_pod == mounted.owner
}

/// The reason when the claim does not exist.
pub(super) fn not_found(mounted: &ClaimUse) -> Reason {
    Reason::about(ReasonCode::ClaimNotFound, mounted.claim.clone())
}

/// The reason when a claim is another one's. The pod is looked up by its uid, since a spec does not hold
/// its name; one that is only simulated goes by the uid.
pub(super) fn not_for_pod(view: View<'_>, spec: &PodSpec, mounted: &ClaimUse) -> Reason {
    let owner = mounted.owner.as_deref().unwrap_or_default();
    let pod = view.cluster().pods().find(|(_, record)| &*record.pod.uid == owner);
    let pod = pod.map_or_else(|| format!("with uid {owner}"), |(_, record)| record.pod.key.to_string());
    let text = format!("{}/{} was not created for pod {pod}", spec.namespace, mounted.claim);
    Reason::about(ReasonCode::ClaimNotForPod, text.as_str())
}

/// Whether one of these is a claim of that name.
pub(super) fn mounts<'a>(
    pod: &Pod,
    claim: &PersistentVolumeClaim,
    mut claims: impl Iterator<Item = &'a ClaimUse>,
) -> bool {
    pod.spec.namespace == claim.namespace && claims.any(|mounted| mounted.claim == claim.name)
}

/// The claim that an event adds or changes.
pub(super) fn of_event(event: &ClusterEvent) -> Option<&PersistentVolumeClaim> {
    let ClusterEvent::ObjectChanged { new: Some(new), .. } = event else { return None };
    if let Object::PersistentVolumeClaim(claim) = &**new { Some(claim) } else { None }
}

/// Whether a volume with this node affinity can be reached from a node with these labels. As in Kubernetes
/// the name of the node does not count: a term over `metadata.name` compares with an empty one.
pub(super) fn reaches(affinity: Option<&[NodeSelectorTerm]>, labels: &Labels) -> bool {
    affinity.is_none_or(|terms| {
        let nameless = Name::default();
        terms.iter().any(|term| term.matches(&nameless, labels))
    })
}
