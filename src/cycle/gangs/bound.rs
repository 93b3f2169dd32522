//! How many members of a group could fit at most if everybody of lower priority were gone: one walk over the nodes.
//!
//! What is said here is never too low, so a group that lacks more is not helped by any victims, and nobody is looked
//! for. Whether it fits when this says that it may is found out by trying.

use super::plan::{Asked, Candidate};
use super::preempt::Found;
use crate::cycle::scheduler::Scheduler;
use crate::framework::View;
use crate::framework::profile::Profile;
use crate::model::collections::FxHashMap;
use crate::model::requests::ResourceList;
use crate::model::{NodeIdx, PodSpec};

/// Kinds of members that are looked at one by one; beyond, only all of them together.
const KINDS: usize = 16;

/// What leaves each node with everybody of lower priority.
struct Gone(Vec<(NodeIdx, ResourceList)>);

impl Scheduler {
    /// Returns why no victims can help, if none can.
    pub(super) fn lacks_even_without(
        &mut self,
        asked: &Asked,
        members: &[usize],
        below: i32,
    ) -> Option<Found> {
        let gone = self.gone_below(below);
        let (wanted, at_most) = self.bounds(asked, members, &gone).find(|(wanted, most)| most < wanted)?;
        let message = format!(
            "with all pods of a priority below {below} gone, at most {at_most} of the {wanted} members that are needed would fit."
        );
        Some(Found::Nothing(message.into(), None))
    }

    /// Iterates over pairs of members that are needed and that would fit at most.
    fn bounds<'a>(
        &'a self,
        asked: &'a Asked,
        members: &[usize],
        gone: &'a Gone,
    ) -> impl Iterator<Item = (u64, u64)> + 'a {
        let members: Vec<&Candidate> = members.iter().map(|i| &asked.candidates[*i]).collect();
        let mut kinds: FxHashMap<_, Vec<&Candidate>> = FxHashMap::default();
        for member in &members {
            kinds.entry((member.gang, member.kind())).or_default().push(*member);
        }
        let total = asked.needs.iter().map(|n| u64::from(*n)).sum();
        let all = std::iter::once_with(move || (total, self.at_most(&members, gone)));
        let of_gang = move |gang: usize| {
            let of_kind =
                kinds.iter().filter(|((g, _), _)| *g == gang).map(|(_, of_kind)| self.at_most(of_kind, gone));
            (u64::from(asked.needs[gang]), of_kind.fold(0, u64::saturating_add))
        };
        let gangs = if kinds_are_few(&asked.candidates) { asked.needs.len() } else { 0 };
        all.chain((0..gangs).map(of_gang))
    }

    /// Returns how many of some members fit at most.
    fn at_most(&self, members: &[&Candidate], gone: &Gone) -> u64 {
        let Some(spec) = least(members) else { return 0 };
        let mut profiles: Vec<usize> = members.iter().map(|m| m.profile).collect();
        profiles.sort_unstable();
        profiles.dedup();
        let view = View::new(&self.cluster);
        let of_node = |profile: &Profile, node, gone| {
            let filters = profile.filter.iter().filter_map(|e| e.plugin.filter());
            filters.map(|f| f.at_most(view, &spec, node, gone)).min().unwrap_or(u64::MAX)
        };
        let of_profile = |p: &usize| {
            let nodes = gone.0.iter().map(|(node, gone)| of_node(&self.profiles[*p], *node, gone));
            nodes.fold(0, u64::saturating_add)
        };
        let room = profiles.iter().map(of_profile).fold(0, u64::saturating_add);
        room.min(members.len() as u64)
    }

    fn gone_below(&mut self, below: i32) -> Gone {
        let mut all = Vec::with_capacity(self.cluster.present().len());
        for node in self.cluster.present() {
            let mut gone = ResourceList::default();
            let pods = &self.cluster.slot(*node).pods;
            self.work += 1 + pods.len() as u64 / 2;
            for record in
                pods.iter().filter_map(|id| self.cluster.pod(*id)).filter(|r| r.pod.priority < below)
            {
                add(&mut gone, &record.pod.spec.requests.list);
            }
            all.push((*node, gone));
        }
        Gone(all)
    }
}

fn kinds_are_few(candidates: &[Candidate]) -> bool {
    let mut kinds: Vec<_> = Vec::new();
    candidates.iter().all(|c| {
        if !kinds.contains(&c.kind()) {
            kinds.push(c.kind());
        }
        kinds.len() <= KINDS
    })
}

fn add(sum: &mut ResourceList, list: &ResourceList) {
    sum.pods += 1;
    sum.milli_cpu = sum.milli_cpu.saturating_add(list.milli_cpu);
    sum.memory = sum.memory.saturating_add(list.memory);
    sum.ephemeral_storage = sum.ephemeral_storage.saturating_add(list.ephemeral_storage);
    for (name, amount) in &list.scalars {
        match sum.scalars.binary_search_by(|(n, _)| n.cmp(name)) {
            Ok(at) => sum.scalars[at].1 = sum.scalars[at].1.saturating_add(*amount),
            Err(at) => {
                let mut scalars = std::mem::take(&mut sum.scalars).into_vec();
                scalars.insert(at, (name.clone(), *amount));
                sum.scalars = scalars.into();
            }
        }
    }
}

/// Returns a spec that requests of each resource what the most modest of some members does.
fn least(members: &[&Candidate]) -> Option<PodSpec> {
    let (first, rest) = members.split_first()?;
    let mut list = first.pod.spec.requests.list.clone();
    for other in rest.iter().map(|m| &m.pod.spec.requests.list) {
        list.milli_cpu = list.milli_cpu.min(other.milli_cpu);
        list.memory = list.memory.min(other.memory);
        list.ephemeral_storage = list.ephemeral_storage.min(other.ephemeral_storage);
        list.scalars.iter_mut().for_each(|(name, amount)| *amount = other.scalar(name).min(*amount));
    }
    let mut spec = PodSpec::default();
    spec.requests.list = list;
    Some(spec)
}
