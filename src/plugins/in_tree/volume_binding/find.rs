//! Decides whether a pod's claims can be satisfied on a node, and with which volumes.

use pellucid_api::reason::ReasonCode;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::selector::Labels;
use pellucid_model::{Name, Node};
use smallvec::SmallVec;

use super::NAME;
use super::assumed::{Held, HeldBinding, HeldProvision};
use super::candidates::Volume;
use super::pod_claims::{PodClaims, ToBind};

/// A set of reasons against a node as bits, in the order of [`REASONS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conflicts(u8);

/// The reason of each bit, in the order in which reasons are reported.
const REASONS: [ReasonCode; 4] = [
    ReasonCode::VolumeNodeAffinityConflict,
    ReasonCode::NoVolumeToBind,
    ReasonCode::NotEnoughStorage,
    ReasonCode::VolumeGone,
];

impl Conflicts {
    /// Number of different sets.
    pub(super) const SETS: usize = 1 << REASONS.len();
    const AFFINITY: Self = Self(1);
    const NO_VOLUME: Self = Self(2);
    const NO_ROOM: Self = Self(4);
    const GONE: Self = Self(8);

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as an index below [`SETS`](Self::SETS).
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the cause with all reasons in the set.
    pub(super) fn cause(self) -> Cause {
        let set = REASONS.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0);
        let reasons: SmallVec<[Reason; 2]> = set.map(|(_, code)| Reason::of(*code)).collect();
        Cause { plugin: NAME, code: Code::UnschedulableAndUnresolvable, reasons }
    }
}

/// The volumes and provisions that satisfy a pod's claims on a node.
#[derive(Default)]
pub(super) struct Found<'a> {
    bindings: Vec<(&'a ToBind, &'a Volume)>,
    provisions: Vec<&'a ToBind>,
}

/// Finds volumes and provisions for all claims on a node. Fails with the conflicts.
pub(super) fn find<'a>(claims: &'a PodClaims, node: &Node) -> Result<Found<'a>, Conflicts> {
    let bound = check_bound(claims, &node.labels);
    match (find_unbound(&claims.to_bind, node), bound == Conflicts::default()) {
        (Ok(found), true) => Ok(found),
        (Ok(_), false) => Err(bound),
        (Err(unbound), _) => Err(bound.with(unbound)),
    }
}

/// Returns the conflict of a bound claim's volume with a node that has these labels.
fn bound_conflict(volume: Option<&Volume>, labels: &Labels) -> Option<Conflicts> {
    match volume {
        None => Some(Conflicts::GONE),
        Some(volume) => (!volume.is_reached(labels)).then_some(Conflicts::AFFINITY),
    }
}

/// Returns every claim that cannot be satisfied on a node, with the reason's code.
pub(super) fn every_conflict<'a>(claims: &'a PodClaims, node: &Node) -> Vec<(ReasonCode, &'a Name)> {
    let code = |conflict: Conflicts| REASONS[conflict.0.trailing_zeros() as usize % REASONS.len()];
    let bound = claims.bound.iter();
    let mut all: Vec<(ReasonCode, &Name)> = bound
        .filter_map(|(claim, volume)| Some((code(bound_conflict(volume.as_ref(), &node.labels)?), claim)))
        .collect();
    let mut chosen: SmallVec<[&Volume; 4]> = SmallVec::new();
    for to_bind in &claims.to_bind {
        let Some(claim) = to_bind.claim() else { continue };
        let conflict = match &to_bind.selected {
            Some(selected) if *selected != node.name => Some(Conflicts::NO_VOLUME),
            Some(_) => provision_conflict(to_bind, &node.labels),
            None => match to_bind.candidates.best(&node.labels, &chosen) {
                Some(volume) => {
                    chosen.push(volume);
                    None
                }
                None => provision_conflict(to_bind, &node.labels),
            },
        };
        all.extend(conflict.map(|conflict| (code(conflict), &claim.name)));
    }
    all
}

/// Returns what keeps a claim from getting a new volume on nodes with these labels.
fn provision_conflict(claim: &ToBind, labels: &Labels) -> Option<Conflicts> {
    if !claim.can_be_made(labels) {
        return Some(Conflicts::NO_VOLUME);
    }
    (!claim.has_room(labels)).then_some(Conflicts::NO_ROOM)
}

/// Returns the conflict of the first bound claim that has one.
fn check_bound(claims: &PodClaims, labels: &Labels) -> Conflicts {
    claims.bound.iter().find_map(|(_, volume)| bound_conflict(volume.as_ref(), labels)).unwrap_or_default()
}

fn find_unbound<'a>(to_bind: &'a [ToBind], node: &Node) -> Result<Found<'a>, Conflicts> {
    let mut found = Found::default();
    if to_bind.iter().any(|c| c.selected.as_ref().is_some_and(|selected| *selected != node.name)) {
        return Err(Conflicts::NO_VOLUME);
    }
    let mut to_make: SmallVec<[&ToBind; 4]> = to_bind.iter().filter(|c| c.selected.is_some()).collect();
    let mut chosen: SmallVec<[&Volume; 4]> = SmallVec::new();
    for claim in to_bind.iter().filter(|c| c.selected.is_none()) {
        match claim.candidates.best(&node.labels, &chosen) {
            Some(volume) => {
                chosen.push(volume);
                found.bindings.push((claim, volume));
            }
            None => to_make.push(claim),
        }
    }
    for claim in to_make {
        if let Some(conflict) = provision_conflict(claim, &node.labels) {
            return Err(conflict);
        }
        found.provisions.push(claim);
    }
    Ok(found)
}

impl Found<'_> {
    /// Returns what to hold for the pod; `None` when all claims are bound.
    pub(super) fn held(&self, namespace: &Name, node: &Name) -> Option<Held> {
        let binding = |(to_bind, volume): &(&ToBind, &Volume)| {
            let (claim, volume) = (to_bind.claim()?, volume.get()?);
            Some(HeldBinding {
                claim: claim.name.clone(),
                claim_uid: claim.uid.clone(),
                volume: volume.name.clone(),
                volume_version: volume.resource_version.clone(),
            })
        };
        let provision = |to_bind: &&ToBind| {
            let claim = to_bind.claim()?;
            Some(HeldProvision {
                claim: claim.name.clone(),
                claim_uid: claim.uid.clone(),
                claim_version: claim.resource_version.clone(),
            })
        };
        let bindings: Vec<_> = self.bindings.iter().filter_map(binding).collect();
        let provisions: Vec<_> = self.provisions.iter().filter_map(provision).collect();
        let is_something = !bindings.is_empty() || !provisions.is_empty();
        is_something.then(|| Held { namespace: namespace.clone(), node: node.clone(), bindings, provisions })
    }
}
