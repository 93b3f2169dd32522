//! Changes that plugins propose for the members of a gang one after another, such as pods that move off the cards which a
//! member wants.
//!
//! Whoever has a place keeps it meanwhile: the gang is planned with a quorum of those that have one, and plugins are asked
//! about the next member beside them. A proposal counts when one member more has a place with it. What comes out is tried on
//! the whole gang as every other change.

use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_model::PodId;

use super::advised;
use super::gang_parts::set_quorum;
use super::gangs::{Search, Tried};
use super::parts::Part;
use super::search::are_moved;
use crate::requirements::PodRequirements;

/// Largest number of members for which changes of others are looked for.
const MOST_ROUNDS: usize = 8;
/// Number of proposals that are tried for one member.
const MOST_PER_ROUND: usize = 4;
/// Plans that are left for all other changes.
const RESERVE: usize = 24;

impl Search<'_> {
    /// Returns what plugins propose of which every member gets its part (a request, an annotation), and the pods that must
    /// move or end so that one member after another has a place until the quorum is whole.
    pub(super) fn by_member_advice(&self, slots_now: u32) -> Vec<Tried> {
        let (mut all, mut parts, mut placed) = (Vec::new(), Vec::new(), slots_now);
        for round in 0..MOST_ROUNDS {
            let Some(state) = self.with_places(&parts, placed) else { return all };
            let proposals = self.proposals_for_next(&state).into_iter().filter(|parts| !parts.is_empty());
            let (of_others, of_members): (Vec<_>, Vec<_>) = proposals.partition(|parts| is_of_others(parts));
            if round == 0 {
                all.extend(of_members.into_iter().map(|parts| Tried { parts, slots: None }));
            }
            let next = of_others.into_iter().take(MOST_PER_ROUND).find_map(|more| {
                let both: Vec<Part> = parts.iter().cloned().chain(more).collect();
                let state = self.with_places(&both, placed + 1)?;
                Some((both, self.placed_in(&state).max(placed + 1)))
            });
            let Some(next) = next else { return all };
            (parts, placed) = next;
            if self.gang.counted() + placed >= self.gang.definition.min && self.member.is_none() {
                break;
            }
            if self.solved(&parts).is_some() {
                break;
            }
        }
        if !parts.is_empty() {
            all.push(Tried { parts, slots: None });
        }
        all
    }

    /// Plans the gang after a change with a quorum of those that are counted and of so many more. `None` when these have no
    /// places, or too few plans are left.
    fn with_places(&self, parts: &[Part], placed: u32) -> Option<Simulation> {
        if self.left.get() <= RESERVE {
            return None;
        }
        let min = self.gang.counted() + placed;
        let quorum = (min > 0).then(|| set_quorum(self.snapshot, self.gang, min));
        let changed: Vec<Part> = parts.iter().cloned().chain(quorum).collect();
        let state = self.planned(&changed)?;
        let has_places = min == 0 || self.placed_in(&state) >= placed;
        (has_places && are_moved(parts, &state)).then_some(state)
    }

    /// Returns how many members have places in a plan that had none before.
    fn placed_in(&self, state: &Simulation) -> u32 {
        let placed = state.scheduler().cluster().gangs().get(self.key).map_or(0, |gang| gang.counts.placed());
        placed.saturating_sub(self.gang.counts.placed())
    }

    /// Returns what plugins propose for the first member by name that has no place in a plan.
    fn proposals_for_next(&self, state: &Simulation) -> Vec<Vec<Part>> {
        let mut cluster = state.scheduler().cluster().fork();
        let key = |id: PodId| Some((&cluster.pod(id).filter(|record| record.node.is_none())?.pod.key, id));
        let next = self.gang.members.keys().filter_map(|id| key(*id)).min().map(|(_, id)| id);
        let record = next.and_then(|id| Some((id, cluster.pod(id)?.clone())));
        let Some((id, record)) = record else { return Vec::new() };
        let Some((_, profile)) = self.snapshot.profile_of(&record) else { return Vec::new() };
        if profile.plugins.iter().all(|plugin| plugin.advice().is_none()) {
            return Vec::new();
        }
        let nodes = cluster.present().to_vec();
        let masks = masks_of_pod_on(&mut cluster, profile, (id, &record.pod.spec), &nodes);
        let asked = PodRequirements { id, record: &record, profile, cluster, masks };
        advised::on_nodes(&asked, &self.of)
    }
}

/// Whether a change is about pods of others alone.
fn is_of_others(parts: &[Part]) -> bool {
    parts.iter().all(|part| matches!(part.edit, Edit::MovePod { .. } | Edit::DeletePod(_)))
}
