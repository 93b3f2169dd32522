//! Whether emptied nodes may have room for a gang once other amounts are measured on them: measured amounts may keep a member
//! off a node, and choose the node that one member gets, beside which another one has a place or has none. Not here: what is said
//! of a single pod, which is in `requirements::outlook`.

use pellucid_cluster::gangs::Gang;
use pellucid_cluster::{PodRecord, ShapeId};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::View;
use pellucid_framework::plugin::Filter;
use pellucid_model::PodId;
use pellucid_model::collections::FxHashMap;

use super::outlook::Look;
use crate::requirements::outlook::{WhenEmptied, refuses_for_measured, when_emptied};

/// Returns whether a plan refuses the member that stands for the group's failure for what is measured on some node.
pub(super) fn refuses(look: &Look<'_>, plan: &Simulation) -> bool {
    let Some(refusal) = look.refusal_in(plan) else { return false };
    let Some((key, refusal)) = &refusal.root_cause else { return false };
    let snapshot = look.snapshot;
    let record = snapshot.cluster.find_pod(key).and_then(|id| snapshot.cluster.pod(id));
    let Some((_, profile)) = record.and_then(|record| snapshot.profile_of(record)) else { return false };
    refusal.groups.iter().any(|group| refuses_for_measured(profile, group.cause.plugin))
}

/// Returns whether the group, whose plans on emptied nodes failed, may have its quorum there once other amounts are measured.
/// `is_refused` says whether one of them [refuses](refuses) a member for such.
pub(super) fn may_help(look: &Look<'_>, is_refused: bool) -> bool {
    let cluster = &look.snapshot.cluster;
    let gangs: Vec<&Gang> =
        look.keys.iter().filter_map(|key| cluster.gangs().get(key).map(|gang| &**gang)).collect();
    let pending = |gang: &&Gang| {
        let members = gang.members.keys().filter_map(|id| Some((*id, cluster.pod(*id)?)));
        members.filter(|(_, record)| record.node.is_none()).collect::<Vec<(PodId, &PodRecord)>>()
    };
    // Members of one shape are alike.
    let mut shapes: FxHashMap<ShapeId, Shape> = FxHashMap::default();
    for (id, record) in gangs.iter().flat_map(pending) {
        shapes.entry(record.shape).or_insert_with(|| Shape::of(look.snapshot, id, record));
    }
    let is_possible = |record: &PodRecord| shapes.get(&record.shape).is_none_or(|shape| shape.is_possible);
    let lacks = |gang: &&Gang| {
        let possible = pending(gang).into_iter().filter(|(_, record)| is_possible(record));
        possible.count() < gang.need() as usize
    };
    let is_member_possible = look.member.and_then(|id| cluster.pod(id)).is_none_or(is_possible);
    if gangs.iter().any(lacks) || !is_member_possible {
        return false;
    }
    let mut possible = shapes.values().filter(|shape| shape.is_possible);
    // Which node a member gets matters to others only.
    let is_choice = possible.clone().count() > 1;
    is_refused || possible.any(|shape| shape.is_refused || is_choice && shape.is_chosen_for)
}

/// What measured amounts are to the members of a shape.
struct Shape {
    /// Whether an emptied node may take one, whatever is measured.
    is_possible: bool,
    /// Whether they alone keep one off some emptied node.
    is_refused: bool,
    /// Whether they have a part in choosing a node for it.
    is_chosen_for: bool,
}

impl Shape {
    fn of(snapshot: &Snapshot, id: PodId, record: &PodRecord) -> Self {
        let profile = snapshot.profile_of(record).map(|(_, profile)| profile);
        let view = View::new(&snapshot.cluster);
        let filters = profile.iter().flat_map(|profile| &profile.filter);
        let scores = profile.iter().flat_map(|profile| &profile.score);
        let refuses = filters.filter_map(|e| e.plugin.filter()).any(Filter::is_measured);
        let is_chosen_for = scores.filter_map(|e| e.plugin.score()).any(|score| score.is_measured(view));
        let is_asked = refuses || is_chosen_for;
        let emptied = is_asked.then(|| when_emptied(snapshot, id)).flatten();
        let WhenEmptied { is_never, is_measured } = emptied.unwrap_or_default();
        Self { is_possible: !is_never, is_refused: is_measured, is_chosen_for }
    }
}
