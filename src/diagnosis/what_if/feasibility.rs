//! Whether a pod fits now, after preemption, on empty nodes, or never; how many copies fit; and the largest pod like
//! it that fits now.
//!
//! Every answer is tried out on a copy of the state.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::suggestions::{Feasibility, FeasibilityVerdict, LargestNow};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx, Now, Pod, PodKey, cancellation};

use crate::meta::of_snapshot;
use crate::requirements::outlook::{emptied_for, outlook};
use crate::requirements::{PodRequirements, asked_by_name, missing};
use crate::verdict;

/// Largest number of copies that are counted.
pub(crate) const MOST_COPIES: usize = 10_000;

/// Reports the feasibility of one pod. A placed pod is evaluated as if it had no place.
pub(crate) fn of_pod(
    snapshot: &Snapshot,
    key: &PodKey,
    copies: usize,
    now: Now,
) -> Result<Feasibility, ReadError> {
    let asked = asked_by_name(snapshot, key)?;
    let (id, pod) = (asked.id, &asked.record.pod);
    let bound = copies.clamp(1, MOST_COPIES);
    let max_copies_now = Simulation::without(snapshot, id, now).fill(pod, bound);
    let max_copies_empty = match asked.is_closed() {
        true => 0,
        false => Simulation::on(snapshot, emptied_for(snapshot, &asked), now).fill(pod, bound),
    };
    let (now_fits, empty_cluster) = (max_copies_now > 0, max_copies_empty > 0);
    let outlook = outlook(snapshot, &asked, now);
    let after_preemption = outlook.code == "FitsAfterPreemption";
    let largest_now = if now_fits { None } else { largest(snapshot, &asked, now) };
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = max_copies_now == bound || max_copies_empty == bound;
    let mut body = Feasibility {
        meta,
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        verdict: FeasibilityVerdict { code: outlook.code.clone(), message: outlook.message.clone() },
        now: now_fits,
        after_preemption,
        empty_cluster,
        max_copies_now,
        max_copies_empty,
        copies_bound: bound,
        largest_now,
        alone: None,
        not_pending: None,
    };
    crate::gangs::feasibility::with_gang(snapshot, (id, asked.record), outlook, &mut body, now);
    // The numbers are of the nodes, which are not asked before the gate opens.
    if let Some(held) = verdict::held_by_gate(snapshot, id, now) {
        body.verdict = FeasibilityVerdict { code: held.code, message: held.message };
    }
    Ok(body)
}

/// Returns the pod with less of some resources, and the node that takes it now.
fn place_cut(
    snapshot: &Snapshot,
    asked: &PodRequirements<'_>,
    cuts: &[(Name, i64)],
    now: Now,
) -> Option<(Pod, Name)> {
    let of = Target::Pod(asked.record.pod.key.clone());
    let shrunk = cuts.iter().fold(Pod::clone(&asked.record.pod), |pod, (resource, amount)| {
        let resource = resource.clone();
        Edit::SetRequest { of: of.clone(), resource, amount: *amount, instead_of: None }.changed(&pod)
    });
    let node = Simulation::without(snapshot, asked.id, now).place_copy(&shrunk)?;
    Some((shrunk, node))
}

/// Returns the largest amount above `fits` and below `refused` with which `place` finds a place, and that place; `None` when one
/// unit more has none. What a node has left that another plugin refuses by size, as by NUMA nodes, is only known by trying.
fn largest_amount<T>(
    mut fits: i64,
    mut refused: i64,
    mut place: impl FnMut(i64) -> Option<T>,
) -> Option<(i64, T)> {
    let mut found = None;
    let mut next = fits.saturating_add(1);
    while next < refused {
        cancellation::check();
        match place(next) {
            Some(at) => (fits, found) = (next, Some((next, at))),
            None => refused = next,
        }
        next = if refused - fits > 1 { fits + (refused - fits) / 2 } else { refused };
    }
    found
}

/// Returns the largest variant of the pod that fits now: its requests cut to what the best node has free.
fn largest(snapshot: &Snapshot, asked: &PodRequirements<'_>, now: Now) -> Option<LargestNow> {
    if asked.masks.pod.is_some() {
        return None;
    }
    let lacks_resources_only = |node: &&NodeIdx| {
        let mask = asked.masks.of(**node);
        let code = |(_, r): (usize, &Requirement)| r.reason.code == ReasonCode::InsufficientResource;
        mask != 0 && asked.masks.requirements(mask).all(code)
    };
    // Per node: the remaining share of the request that is cut most, in millionths, and the cuts.
    let cut = |node: &NodeIdx| -> Option<(u32, Vec<(Name, i64)>)> {
        let lacking = asked.masks.requirements(asked.masks.of(*node)).map(|(_, requirement)| {
            let (requested, available) = missing(asked, *node, requirement)?;
            let part = available.max(0) as i128 * 1_000_000 / i128::from(requested.max(1));
            let (part, name) = (u32::try_from(part).ok()?, requirement.reason.subject.clone()?);
            (available > 0).then_some((part, name, available))
        });
        let lacking: Vec<_> = lacking.collect::<Option<_>>()?;
        let part = lacking.iter().map(|(part, ..)| *part).min()?;
        Some((part, lacking.into_iter().map(|(_, name, available)| (name, available)).collect()))
    };
    let nodes = asked.cluster.by_name().iter().filter(lacks_resources_only);
    // Among equal nodes, the first by name wins.
    let best = nodes.filter_map(cut).reduce(|best, other| if other.0 > best.0 { other } else { best });
    let (part, cuts) = best?;
    let place = |cuts: &[(Name, i64)]| place_cut(snapshot, asked, cuts, now);
    let (mut shrunk, mut node) = place(&cuts)?;
    let mut part = i128::from(part);
    if let [(resource, fits)] = &cuts[..] {
        let requested = asked.record.pod.spec.requests.list.amount(resource);
        let with = |amount: i64| place(&[(resource.clone(), amount)]);
        if let Some((amount, found)) = largest_amount(*fits, requested, with) {
            (shrunk, node) = found;
            part = i128::from(amount) * 1_000_000 / i128::from(requested.max(1));
        }
    }
    let requests = shrunk.spec.requests.list.named();
    let requests = requests.map(|(name, amount)| (name.to_string(), format_amount(&name, amount))).collect();
    Some(LargestNow { node: node.to_string(), requests, percent: u32::try_from(part / 10_000).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_amount_is_one_beside_which_one_unit_more_has_no_place() {
        for (fits, refused, most) in [(200, 2_000, 1_234), (0, 2, 1), (5, 1_000, 6)] {
            let found = largest_amount(fits, refused, |amount| (amount <= most).then_some(amount));
            assert_eq!(found, Some((most, most)));
        }
        assert_eq!(largest_amount(5, 1_000, |_| None::<()>), None);
        assert_eq!(largest_amount(5, 6, |_| Some(())), None, "nothing lies between");
    }
}
