//! Which of the reservations of one node a pod takes, and what it lacks where it takes none.
//!
//! A pod takes one reservation. Those that it does not take keep what is left of them, so it must fit beside them. The
//! same questions are asked by the filter, in a trial without the pods of all that match, and by Reserve, when the pod is
//! on its node already.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use pellucid_cluster::columns::PODS;
use pellucid_framework::{Absent, Rooms};
use pellucid_model::{Name, NodeIdx, PodId};
use smallvec::SmallVec;

use super::entry::Entry;
use super::matching::{Match, Seeker};
use super::object::{Amounts, Policy, Reservation};

/// What a pod lacks for a reservation, or beside all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    /// The node, with what is left of this reservation, has too little of a resource.
    Node(Name),
    /// The reservation has too little of a resource.
    Reservation { resource: Name, requested: i64, used: i64, capacity: i64 },
}

/// The reservations of one node, as a pod sees them.
pub(super) struct Choice<'a> {
    /// The reservation to take.
    pub(super) taken: Option<Match<'a>>,
    /// Whether the pod can be on the node without a reservation.
    pub(super) fits_beside: bool,
    /// Why the node is refused when the pod can neither take one nor be there without. As in Koordinator, to a pod that
    /// may do without a reservation only the node lacks anything.
    pub(super) lacks: BTreeSet<Lack>,
    /// What it lacks for the reservations that it tried and cannot take.
    pub(super) tried: BTreeSet<Lack>,
}

/// Whether the pod of a question is on the node already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    Outside,
    OnNode,
}

/// What the pod finds on a node.
struct Room<'s, 'a> {
    seeker: &'s Seeker<'a>,
    node: NodeIdx,
    stand: Stand,
    /// The reservations that match.
    matches: Vec<Match<'a>>,
}

/// Returns what a pod without a node takes on one: the place for a pod.
fn slot(entry: &Entry) -> (i64, i64) {
    let slot = i64::from(entry.owners().next().is_none());
    (slot, slot)
}

impl<'a> Room<'_, 'a> {
    /// Whether the reservation's pod is on the node in this state, and not away for a trial.
    fn is_placed(&self, of: &Match<'_>) -> bool {
        self.seeker.view.cluster().pod(of.stand_in.id).is_some_and(|record| record.node == Some(self.node))
    }

    /// Iterates over what the pod requests, without what the arguments leave out.
    fn compared(&self) -> impl Iterator<Item = &(Name, i64)> {
        let args = &self.seeker.all.args;
        self.seeker.wanted.iter().filter(|(name, _)| !args.ignores(name))
    }

    /// Returns what the node lacks for the pod with the room of one reservation, or of none, while the others keep
    /// what they have.
    fn lacks_with(&self, own: Option<&Match<'_>>) -> BTreeSet<Lack> {
        let columns = self.seeker.view.columns();
        let is_own = |of: &Match<'_>| own.is_some_and(|own| own.name == of.name);
        // What is left of a reservation, and how much of that owners may have.
        let free = |of_node: i64, left: &dyn Fn(&Entry) -> (i64, i64)| {
            self.matches.iter().fold(of_node, |free, of| {
                let (left, usable) = left(of.entry);
                match (is_own(of), self.is_placed(of)) {
                    (true, true) => free.saturating_add(usable),
                    (true, false) => free.saturating_sub(left - usable),
                    (false, false) => free.saturating_sub(left),
                    (false, true) => free,
                }
            })
        };
        let more = |wanted: i64| if self.stand == Stand::OnNode { 0 } else { wanted };
        let mut lacks = BTreeSet::new();
        if more(1) > free(columns.free(self.node, PODS), &slot) {
            lacks.insert(Lack::Node(Name::new("pods")));
        }
        for (resource, wanted) in self.compared() {
            let of_node = columns.find(resource).map_or(0, |column| columns.free(self.node, column));
            if more(*wanted) > free(of_node, &|entry| (entry.left(resource), entry.usable(resource))) {
                lacks.insert(Lack::Node(resource.clone()));
            }
        }
        lacks
    }

    /// Returns what a reservation itself lacks for the pod, under its policy.
    fn lacks_in(&self, of: &Match<'_>) -> BTreeSet<Lack> {
        let spec = &of.known.spec;
        if spec.policy != Policy::Restricted {
            return BTreeSet::new();
        }
        let capacities = of.entry.allocatable();
        let wanted = self.compared().filter(|(name, _)| spec.covers(capacities, name));
        let lack = |(resource, requested): &(Name, i64)| {
            let kept = spec.kept_back(capacities, resource);
            let capacity = capacities.get(resource).copied().unwrap_or(0).saturating_sub(kept);
            let used = of.entry.used(resource);
            let (resource, requested) = (resource.clone(), *requested);
            (requested > capacity.saturating_sub(used)).then_some(Lack::Reservation {
                resource,
                requested,
                used,
                capacity,
            })
        };
        wanted.filter_map(lack).collect()
    }

    /// Iterates over the reservations that the pod would take, without those of these pods.
    fn tried<'r>(&'r self, refused: &'r [PodId]) -> impl Iterator<Item = &'r Match<'a>> {
        self.matches.iter().filter(|of| self.concerns(of) && !refused.contains(&of.stand_in.id))
    }

    /// Returns the key by which reservations are taken, the least first.
    fn precedence(&self, of: &Match<'a>) -> impl Ord + use<> {
        let order = of.known.spec.order;
        (order.is_none(), order, Reverse(score(of.entry, &self.seeker.wanted)), of.name.clone())
    }

    /// Whether the pod requests anything that the reservation's policy is about. One that does not goes beside the
    /// reservation, unless it must have one.
    fn concerns(&self, of: &Match<'_>) -> bool {
        self.seeker.affinity().is_some()
            || shares(&of.known.spec, of.entry.allocatable(), &self.seeker.wanted)
    }
}

/// Whether a pod requests anything of what is reserved, as far as the policy is about it.
pub(super) fn shares(spec: &Reservation, reserved: &Amounts, wanted: &[(Name, i64)]) -> bool {
    wanted.iter().any(|(name, _)| spec.covers(reserved, name))
}

/// Returns the score of a reservation for a pod, 0 to 100: the mean share of its resources in use with the pod. A resource
/// that overflows counts 0. As in Koordinator, what owners use of a resource that the policy is not about does not count.
pub(super) fn score(entry: &Entry, wanted: &[(Name, i64)]) -> i64 {
    let capacities = entry.allocatable();
    let spec = entry.known.as_ref().map(|known| &known.spec);
    let by_owners = |name: &Name| match spec {
        Some(spec) if !spec.covers(capacities, name) => 0,
        _ => entry.used(name),
    };
    let share = |(name, capacity): (&Name, &i64)| {
        let used = by_owners(name)
            .saturating_add(wanted.iter().find(|(known, _)| known == name).map_or(0, |(_, amount)| *amount));
        if used > *capacity { 0 } else { (i128::from(used) * 100 / i128::from(*capacity)) as i64 }
    };
    let sum: i64 = capacities.iter().map(share).sum();
    sum / (capacities.len().max(1) as i64)
}

/// Returns what a pod would do on a node. Of the reservations that it fits in, it takes the one of the least order, then
/// of the highest score, then the first by name.
pub(super) fn choose<'a>(seeker: &Seeker<'a>, node: NodeIdx, stand: Stand) -> Choice<'a> {
    choose_but(seeker, node, stand, &[])
}

/// Does the same without the reservations of these pods.
pub(super) fn choose_but<'a>(
    seeker: &Seeker<'a>,
    node: NodeIdx,
    stand: Stand,
    refused: &[PodId],
) -> Choice<'a> {
    let room = Room { seeker, node, stand, matches: seeker.on(node) };
    let mut tried = BTreeSet::new();
    // What the node lacks with the room of those that have enough themselves.
    let mut of_node = BTreeSet::new();
    let mut usable: Vec<Match<'a>> = Vec::new();
    for of in room.tried(refused) {
        let (by_node, own) = (room.lacks_with(Some(of)), room.lacks_in(of));
        if by_node.is_empty() && own.is_empty() {
            usable.push(*of);
        }
        if own.is_empty() {
            of_node.extend(by_node.iter().cloned());
        }
        tried.extend(by_node.into_iter().chain(own));
    }
    let taken = usable.into_iter().min_by_key(|of| room.precedence(of));
    if seeker.affinity().is_some() {
        return Choice { taken, fits_beside: false, lacks: tried.clone(), tried };
    }
    let beside = if taken.is_none() { room.lacks_with(None) } else { BTreeSet::new() };
    let fits_beside = beside.is_empty();
    Choice { taken, fits_beside, lacks: if of_node.is_empty() { beside } else { of_node }, tried }
}

/// Returns of the pods of reservations that are absent from a node for an owner those that stay absent: that of the reservation
/// that it takes, in the order of [`choose`] and [`choose_but`], or none if it is beside all of them.
pub(super) fn rooms(seeker: &Seeker<'_>, node: NodeIdx, absent: &[PodId]) -> Rooms {
    let room = Room { seeker, node, stand: Stand::Outside, matches: seeker.on(node) };
    let with = |own: Option<&Match<'_>>| -> Absent {
        let is_other = |id: PodId| room.matches.iter().any(|of| of.stand_in.id == id);
        let stays = |id: &PodId| own.is_some_and(|own| own.stand_in.id == *id) || !is_other(*id);
        absent.iter().copied().filter(stays).collect()
    };
    let mut enough: Vec<&Match<'_>> = room.tried(&[]).filter(|of| room.lacks_in(of).is_empty()).collect();
    enough.sort_by_key(|of| room.precedence(of));
    let usable = enough.iter().filter(|of| room.lacks_with(Some(of)).is_empty());
    let mut fitting: SmallVec<[Absent; 1]> = usable.map(|of| with(Some(of))).collect();
    let may_do_without = seeker.affinity().is_none();
    if may_do_without && room.lacks_with(None).is_empty() {
        fitting.push(with(None));
    }
    let otherwise = match enough.first() {
        None if !may_do_without => absent.into(),
        first => with(first.copied()),
    };
    Rooms { fitting, otherwise }
}
