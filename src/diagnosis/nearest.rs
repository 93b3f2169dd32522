//! The nodes nearest to taking a pod, as the state is now: those whose refusals are easiest to mend.
//!
//! A cycle stops at the first plugin that refuses a node, so its largest node group is often the least
//! telling one. Here every plugin is asked about every node of a published root.

use crate::cluster::PodRecord;
use crate::cycle::Refusal;
use crate::cycle::decision::Group;
use crate::cycle::exhaustive::{Masks, masks};
use crate::cycle::rows::Subject;
use crate::framework::View;
use crate::model::NodeIdx;
use crate::model::time::NoProbe;
use pellucid_api::reason::ReasonCode;

use super::node_explain::profile_of;
use super::root::Root;

/// Finds them, as the part of a node group that they are. `None` when the pod was refused as a whole, or the state has moved on so far that no node of
/// the refusal's groups is among them.
pub(crate) fn nearest(root: &Root, record: &PodRecord, refusal: &Refusal) -> Option<Group> {
    let profile = &root.profiles[profile_of(root, record)?];
    let view = View::new(&root.cluster);
    let of = Subject { profile, view, spec: &record.pod.spec, probe: &NoProbe };
    let masks = masks(&of);
    if masks.pod.is_some() {
        return None;
    }
    let mut distance = vec![0; masks.failed.len()];
    for node in view.nodes() {
        distance[node.index()] = far(&masks, *node);
    }
    let refused = root.cluster.by_name().iter().filter(|n| distance[n.index()] > 0);
    let least = refused.clone().map(|n| distance[n.index()]).min()?;
    let mut rows = crate::cycle::Rows::default();
    let mut tally = vec![Default::default(); profile.plugins.len()];
    rows.sync(&of, false, &mut tally);
    rows.begin_attempt(&of, &mut tally);
    let mut best: Option<Group> = None;
    for group in refusal.groups.iter() {
        let of_group =
            refused.clone().filter(|n| distance[n.index()] == least && rows.cause(**n) == Some(&group.cause));
        let names: Vec<_> = of_group.map(|n| view.name(*n).clone()).collect();
        if names.len() > best.as_ref().map_or(0, |b| b.count) {
            let examples = names.iter().take(3).cloned().collect();
            best = Some(Group { count: names.len(), examples, ..group.clone() });
        }
    }
    best
}

/// How far a node is from taking the pod: the weights of all it fails, added up.
fn far(masks: &Masks, node: NodeIdx) -> u32 {
    masks.requirements(masks.of(node)).map(|(_, requirement)| weight(requirement.reason.code)).sum()
}

/// How far a refusal is from being mended, by what it says: a node the pod does not ask for is further away
/// than one kept for others, and that further than one that is merely full or closed.
fn weight(code: ReasonCode) -> u32 {
    match code {
        ReasonCode::NodeAffinityMismatch
        | ReasonCode::NodeNameMismatch
        | ReasonCode::AddedAffinityMismatch => 100,
        ReasonCode::UntoleratedTaint => 10,
        _ => 1,
    }
}
