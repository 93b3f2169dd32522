//! Words for claims that cannot be satisfied: where a bound volume can be reached, and what keeps a claim from getting a
//! volume.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::View;
use pellucid_model::quantity::format_amount;
use pellucid_model::selector::{NodeSelectorTerm, Requirement};
use pellucid_model::storage::PersistentVolumeClaim;
use pellucid_model::{Name, Node, NodeIdx, PodSpec};

use super::super::claims::{self, describe_missing};
use super::super::relations::requirement_text;
use super::NAME;
use super::find::every_conflict;
use super::pod_claims::{PodClaims, ToBind, classify_claims, is_fully_bound};
use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, detail, objects};

/// Describes each claim that cannot be satisfied on some refusing node; of a pod that is refused as a whole, the claims
/// behind that.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let Ok(classified) = classify_claims(view, spec) else {
        let mut all = describe_missing(view, NAME, spec);
        let mounted = spec.volumes.claims.iter().filter_map(|mounted| claims::find(view, spec, mounted));
        all.extend(mounted.filter_map(|claim| unusable(view, claim)));
        all.truncate(MAX_REQUIREMENTS);
        return all;
    };
    let mut all: Vec<RequirementDetail> = Vec::new();
    for node in refused.iter().filter_map(|node| view.cluster().node(*node)) {
        for (code, claim) in every_conflict(&classified, node) {
            let name = format!("claim {claim}");
            let is_known = all.iter().any(|of| of.requirement == name && of.code == code.as_str());
            if !is_known && all.len() < MAX_REQUIREMENTS {
                all.push(describe(view, spec, &classified, (code, claim), name));
            }
        }
    }
    all.sort_by(|a, b| (&a.requirement, &a.code).cmp(&(&b.requirement, &b.code)));
    all
}

fn describe(
    view: View<'_>,
    spec: &PodSpec,
    classified: &PodClaims,
    (code, claim): (ReasonCode, &Name),
    name: String,
) -> RequirementDetail {
    let mut of = detail(view, NAME, code, name);
    let object = view.cluster().objects().claim(&spec.namespace, claim);
    let volume = object.map_or("", |claim| claim.volume.as_str());
    of.nodes = objects(view).filter(|(_, node)| is_satisfied(classified, claim, node)).count();
    let (nodes, total) = (of.nodes, of.total_nodes);
    let to_bind = || classified.to_bind.iter().find(|of| of.claim().is_some_and(|c| c.name == *claim));
    of.text = match code {
        ReasonCode::VolumeGone => format!("claim {claim}: its volume {volume} does not exist"),
        ReasonCode::VolumeNodeAffinityConflict => {
            let affinity = view.cluster().objects().volume(&Name::new(volume));
            let terms = affinity.and_then(|volume| volume.node_affinity.as_deref()).unwrap_or_default();
            let terms = terms_text(terms);
            format!(
                "claim {claim}: volume {volume} is reached from {nodes} of {total} nodes, those with {terms}"
            )
        }
        _ => match (object, to_bind()) {
            (Some(object), Some(to_bind)) => unbound(view, object, to_bind),
            _ => format!("claim {claim}: {nodes} of {total} nodes"),
        },
    };
    of
}

fn is_satisfied(classified: &PodClaims, claim: &Name, node: &Node) -> bool {
    every_conflict(classified, node).iter().all(|(_, other)| *other != claim)
}

/// Describes a claim that is to be bound on the chosen node.
fn unbound(view: View<'_>, claim: &PersistentVolumeClaim, to_bind: &ToBind) -> String {
    let name = &claim.name;
    if let Some(selected) = &to_bind.selected {
        return format!("claim {name}: its volume is being made for node {selected}");
    }
    let total = view.nodes().len();
    let count = |holds: &dyn Fn(&Node) -> bool| objects(view).filter(|(_, node)| holds(node)).count();
    let free = count(&|node| to_bind.candidates.best(&node.labels, &[]).is_some());
    let (class, size) =
        (claim.class.as_ref().map_or("", |c| c.as_str()), format_amount("memory", claim.requested));
    let mut text = format!(
        "claim {name} of class {class}, {size}: a free volume that fits is there for {free} of {total} nodes"
    );
    let Some(class) = to_bind.class() else { return text };
    if !to_bind.makes_volumes() {
        return text + &format!("; the class makes none ({})", class.provisioner);
    }
    let made = count(&|node| to_bind.can_be_made(&node.labels));
    text += &format!("; {} makes one for {made} of {total}", class.provisioner);
    if !class.allowed_topologies.is_empty() {
        let terms: Vec<String> = class.allowed_topologies.iter().map(|term| all_text(term)).collect();
        text += &format!(" (allowedTopologies: {})", terms.join(" or "));
    }
    if to_bind.tracks_room() {
        let room = count(&|node| to_bind.has_room(&node.labels));
        text += &format!("; its storage capacity suffices on {room} of {total}");
    }
    text
}

/// Describes a claim for which PreFilter refuses the pod.
fn unusable(view: View<'_>, claim: &PersistentVolumeClaim) -> Option<RequirementDetail> {
    if is_fully_bound(claim) {
        return None;
    }
    let class = claim.class.as_ref().map_or("", |class| class.as_str());
    let object = view.cluster().objects().class(&Name::new(class));
    let name = &claim.name;
    let text = match object {
        _ if claim.deleting => format!("claim {name} is being deleted"),
        _ if !claim.volume.is_empty() => {
            format!("claim {name} names volume {} and is not bound to it yet", claim.volume)
        }
        Some(class) if class.waits_for_consumer => return None,
        Some(_) => format!(
            "claim {name} has no volume yet; its class {class} binds at once, so the volume is made before the pod \
             is placed"
        ),
        None if class.is_empty() => format!("claim {name} has neither a volume nor a storage class"),
        None => format!("claim {name}: there is no storage class {class}"),
    };
    let of = detail(view, NAME, ReasonCode::UnboundImmediateClaims, format!("claim {name}"));
    Some(RequirementDetail { text, ..of })
}

fn all_text(requirements: &[Requirement]) -> String {
    requirements.iter().map(requirement_text).collect::<Vec<String>>().join(",")
}

fn terms_text(terms: &[NodeSelectorTerm]) -> String {
    let text = |term: &NodeSelectorTerm| {
        let both = term.expressions.iter().chain(&term.fields);
        both.map(requirement_text).collect::<Vec<String>>().join(",")
    };
    terms.iter().map(text).collect::<Vec<String>>().join(" or ")
}

/// Describes the claims that cannot be satisfied on one node.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let classified = classify_claims(view, spec).ok()?;
    let node = view.cluster().node(node)?;
    let word = |(code, claim): (ReasonCode, &Name)| {
        let object = view.cluster().objects().claim(&spec.namespace, claim);
        let volume = object.map_or("", |claim| claim.volume.as_str());
        match code {
            ReasonCode::VolumeGone => format!("volume {volume} of claim {claim} does not exist"),
            ReasonCode::VolumeNodeAffinityConflict => {
                format!("volume {volume} of claim {claim} is not reached from here")
            }
            ReasonCode::NotEnoughStorage => format!("no storage capacity here has room for claim {claim}"),
            _ => format!("claim {claim} has no volume here"),
        }
    };
    let all: Vec<String> =
        every_conflict(&classified, node).into_iter().take(MAX_REQUIREMENTS).map(word).collect();
    (!all.is_empty()).then(|| all.join(", "))
}
