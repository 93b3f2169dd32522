//! Asks every filter about every node, where a cycle stops at the first that refuses.
//!
//! For explanations on a published root: which nodes are nearest to taking the pod. Not for decisions.

use pellucid_api::reason::ReasonCode;

use super::chain::{PluginTally, places, prepare};
use super::rows::Subject;
use crate::framework::cause::{CauseId, Causes};
use crate::framework::plugin::Nodes;
use crate::model::NodeIdx;

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

/// Returns, per node slot, how far the node is from taking the pod: the weights of all plugins' refusals,
/// added up. `None` when PreFilter refuses the pod as a whole or leaves nodes out.
pub fn distances(of: &Subject<'_>) -> Option<Vec<u32>> {
    let mut tally = vec![PluginTally::default(); of.profile.plugins.len()];
    let all = places(of.profile, |_| true);
    let prepared = prepare(&all, of.profile, of.view, of.spec, &mut tally);
    if prepared.refused.is_some() || prepared.candidates.is_some() {
        return None;
    }
    let n = of.view.cluster().n_slots();
    let mut distances = vec![0; n];
    let mut mask = vec![CauseId::FEASIBLE; n];
    let (mut causes, mut nodes): (Causes, Vec<NodeIdx>) = Default::default();
    for (at, value) in prepared.values() {
        let enabled = &of.profile.filter[*at];
        let Some(filter) = enabled.plugin.filter() else { continue };
        mask.fill(CauseId::FEASIBLE);
        nodes.clear();
        nodes.extend_from_slice(of.view.nodes());
        filter.filter(of.view, of.spec, value, &mut Nodes::new(&mut nodes, &mut causes, &mut mask));
        for node in of.view.nodes() {
            let reasons = causes.get(mask[node.index()]).into_iter().flat_map(|c| &c.reasons);
            distances[node.index()] += reasons.map(|r| weight(r.code)).sum::<u32>();
        }
    }
    Some(distances)
}
