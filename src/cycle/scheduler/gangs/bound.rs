//! An upper bound on the members of a group that could fit if all pods of lower priority were gone, from one walk over
//! the nodes.
//!
//! The bound is never too low: if it is below what the group needs, no victims help, and none are searched for. If it
//! is not, only a search can tell whether the group fits.

use std::cell::{Cell, RefCell};

use pellucid_cluster::Cluster;
use pellucid_framework::View;
use pellucid_model::requests::ResourceList;
use pellucid_model::{NodeIdx, PodSpec};

use super::plan::{Candidate, GangAttempt};
use super::preempt::Found;
use crate::scheduler::Scheduler;

/// Maximum number of member kinds with a bound of their own; with more kinds, only all members together have one.
const KINDS: usize = 16;

/// What pods of lower priority request on each node, computed as far as it was needed.
struct Gone<'c> {
    cluster: &'c Cluster,
    below: i32,
    known: RefCell<Vec<ResourceList>>,
    work: Cell<u64>,
}

impl Gone<'_> {
    /// Adds up the values of nodes until the sum is enough.
    fn sum(&self, enough: u64, of_node: impl Fn(NodeIdx, &ResourceList) -> u64) -> u64 {
        let mut sum = 0_u64;
        for (at, node) in self.cluster.present().iter().enumerate() {
            if sum >= enough {
                break;
            }
            let mut known = self.known.borrow_mut();
            if known.len() == at {
                known.push(self.leaving(*node));
            }
            sum = sum.saturating_add(of_node(*node, &known[at]));
        }
        sum.min(enough)
    }

    fn leaving(&self, node: NodeIdx) -> ResourceList {
        let mut gone = ResourceList::default();
        let pods = &self.cluster.slot(node).pods;
        self.work.set(self.work.get() + 1 + pods.len() as u64 / 2);
        let records = pods.iter().filter_map(|id| self.cluster.pod(*id));
        for record in records.filter(|r| r.pod.priority < self.below) {
            add(&mut gone, &record.pod.spec.requests.list);
        }
        gone
    }
}

impl Scheduler {
    /// Returns why no victims can help, or `None` if some might.
    pub(super) fn lacks_even_without(
        &mut self,
        attempt: &GangAttempt,
        members: &[usize],
        below: i32,
    ) -> Option<Found> {
        let gone = Gone { cluster: &self.cluster, below, known: RefCell::default(), work: Cell::new(0) };
        let lacking = self.lacking(attempt, members, &gone);
        let work = gone.work.get();
        self.turns.work += work;
        let (wanted, at_most) = lacking?;
        let message = format!(
            "with all pods of a priority below {below} gone, at most {at_most} of the {wanted} members that are needed would fit."
        );
        Some(Found::Nothing(message.into(), None))
    }

    /// Returns how many members are needed and how many could fit at most, if these are fewer. Compares all members
    /// together, then each gang by its kinds of members.
    fn lacking(&self, attempt: &GangAttempt, members: &[usize], gone: &Gone<'_>) -> Option<(u64, u64)> {
        let members: Vec<&Candidate> = members.iter().map(|i| &attempt.candidates[*i]).collect();
        let wanted = attempt.needs.iter().map(|n| u64::from(*n)).sum();
        let at_most = self.at_most(&members, wanted, gone);
        if at_most < wanted {
            return Some((wanted, at_most));
        }
        let kinds = few_kinds(&members)?;
        let of_gang = |(gang, wanted): (usize, &u32)| {
            let wanted = u64::from(*wanted);
            let of_kind = kinds.iter().filter(|(of, _)| *of == gang);
            let at_most = of_kind.map(|(_, members)| self.at_most(members, wanted, gone));
            (wanted, at_most.fold(0, u64::saturating_add))
        };
        attempt.needs.iter().enumerate().map(of_gang).find(|(wanted, at_most)| at_most < wanted)
    }

    /// Returns how many of these members could fit at most, up to `enough`.
    fn at_most(&self, members: &[&Candidate], enough: u64, gone: &Gone<'_>) -> u64 {
        let Some(spec) = least(members) else { return 0 };
        let mut profiles: Vec<usize> = members.iter().map(|m| m.profile).collect();
        profiles.sort_unstable();
        profiles.dedup();
        let (view, enough) = (View::new(&self.cluster), enough.min(members.len() as u64));
        let of_profile = |p: &usize| {
            let filters = || self.profiles.all[*p].filter.iter().filter_map(|e| e.plugin.filter());
            gone.sum(enough, |node, gone| {
                filters().map(|f| f.at_most(view, &spec, node, gone)).min().unwrap_or(u64::MAX)
            })
        };
        profiles.iter().map(of_profile).fold(0, u64::saturating_add).min(enough)
    }
}

/// Returns the members by gang and kind, if there are at most [`KINDS`] and more than one.
fn few_kinds<'m>(members: &[&'m Candidate]) -> Option<Vec<(usize, Vec<&'m Candidate>)>> {
    let mut kinds: Vec<(usize, Vec<&Candidate>)> = Vec::new();
    for member in members {
        let is_like = |(gang, known): &(usize, Vec<&Candidate>)| {
            *gang == member.gang && known[0].kind() == member.kind()
        };
        match kinds.iter().position(is_like) {
            Some(at) => kinds[at].1.push(member),
            None if kinds.len() == KINDS => return None,
            None => kinds.push((member.gang, vec![*member])),
        }
    }
    (kinds.len() > 1).then_some(kinds)
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

/// Returns a spec that requests of each resource the smallest amount that any of these members does.
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
