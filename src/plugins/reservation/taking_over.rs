//! Pre-allocation (`spec.preAllocation`): a reservation is placed over bound pods of its owners, and has their room once
//! they go.
//!
//! The pods are absent for the reservation in the trials of its nodes. From Reserve on they stand in its room, as the hold
//! of its pod says; before the reservation is placed, each pod is marked as its owner, from which it is read back.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_api::keys::reservation as keys;
use pellucid_cluster::columns::PODS;
use pellucid_cluster::{PodRecord, Stage};
use pellucid_framework::{NodeOverride, View};
use pellucid_model::effect::{ObjectPart, ObjectRef, ObjectWrite, Precondition};
use pellucid_model::{Name, NodeIdx, PodId};
use serde_json::json;

use super::choosing::{score, shares};
use super::entry::{Entry, Known, Owner, Taken, amount};
use super::matching::Seeker;
use super::object::{Policy, amounts_of};
use super::owners;
use super::reservations::{Reservations, offered_by};

/// What the pod of a reservation holds that is placed over others: these, in its room.
#[derive(Clone, Debug)]
pub(super) struct TakenOver {
    pub(super) name: Name,
    pub(super) guests: Vec<(PodId, Owner)>,
}

/// A reservation that may be placed over pods.
pub(super) struct Taker<'a> {
    view: View<'a>,
    all: &'a Reservations,
    name: Name,
    entry: &'a Entry,
    known: &'a Known,
}

impl<'a> Taker<'a> {
    /// Makes it for the reservation with this name, if it may.
    pub(super) fn of(view: View<'a>, name: &Name) -> Option<Self> {
        let all = view.state::<Reservations>()?;
        let entry = all.get(name)?;
        let known = entry.known.as_ref()?;
        known.spec.pre_allocation.as_ref()?;
        Some(Self { view, all, name: name.clone(), entry, known })
    }

    /// Whether the reservation may be placed over pods alone.
    pub(super) fn must_take(&self) -> bool {
        self.known.spec.pre_allocation.as_ref().is_some_and(|of| of.is_required)
    }

    /// Whether the reservation may be placed over several pods of a node.
    pub(super) fn is_multiple(&self) -> bool {
        self.known.spec.pre_allocation.as_ref().is_some_and(|of| of.is_multiple)
    }

    /// Returns the share of the reservation that a pod uses, if it can be taken over: it is bound, an owner, in no
    /// reservation, asks for no other one, and fits in this one where that has a limit.
    fn share_of(&self, record: &PodRecord) -> Option<i64> {
        let pod = &record.pod;
        let owners = self.known.spec.owners.as_deref().ok()?;
        if offered_by(pod).is_some() || pod.deleting || !owners::matches(owners, pod) {
            return None;
        }
        if Taken::read(pod).is_some_and(|taken| taken.uid != self.known.uid) {
            return None;
        }
        let own = (&self.name, self.entry);
        if !Seeker::may_be_taken_over((self.view, self.all), pod, own, record.node?) {
            return None;
        }
        let wanted: Vec<(Name, i64)> = amounts_of(&pod.spec.requests.list).collect();
        let (spec, reserved) = (&self.known.spec, self.entry.allocatable());
        let is_limit = spec.policy == Policy::Restricted;
        let fits = |(name, amount): &(Name, i64)| {
            !spec.covers(reserved, name) || reserved.get(name).is_none_or(|all| amount <= all)
        };
        (shares(spec, reserved, &wanted) && (!is_limit || wanted.iter().all(fits)))
            .then(|| score(self.entry, &wanted))
    }

    /// Returns the pods of a node that the reservation takes over: of those that it can the one that uses most of it, of
    /// those over which it fits if there are such; where its policy allows several, no more than it takes to fit.
    pub(super) fn guests_on(&self, node: NodeIdx) -> Vec<(PodId, &'a PodRecord)> {
        if self.all.args.prefers_free_room && !self.must_take() && self.fits_over(node, &[]) {
            return Vec::new();
        }
        let cluster = self.view.cluster();
        let records = cluster.slot(node).pods.iter().filter_map(|id| Some((*id, cluster.pod(*id)?)));
        let bound = records.filter(|(_, record)| record.stage == Stage::Bound && record.host.is_none());
        let mut all: Vec<_> =
            bound.filter_map(|(id, record)| Some((self.share_of(record)?, id, record))).collect();
        all.sort_by_key(|(share, _, record)| (Reverse(*share), record.pod.key.clone()));
        if !self.is_multiple() {
            let fits =
                |(_, id, record): &&(i64, PodId, &'a PodRecord)| self.fits_over(node, &[(*id, *record)]);
            let best = all.iter().find(fits).or(all.first());
            return best.map(|(_, id, record)| (*id, *record)).into_iter().collect();
        }
        let mut taken: Vec<(PodId, &PodRecord)> = Vec::new();
        for (_, id, record) in all {
            let sum = |name: &Name| requested(&taken, name).saturating_add(requested(&[(id, record)], name));
            if taken.is_empty() || self.entry.allocatable().iter().all(|(name, all)| sum(name) <= *all) {
                taken.push((id, record));
                if self.fits_over(node, &taken) {
                    break;
                }
            }
        }
        taken
    }

    /// Whether the reservation fits on a node without some of its pods. At Reserve it is on its node already.
    fn fits_over(&self, node: NodeIdx, guests: &[(PodId, &PodRecord)]) -> bool {
        let Some(stand_in) = &self.entry.stand_in else { return false };
        let columns = self.view.columns();
        let record = self.view.cluster().pod(stand_in.id);
        let is_there = record.is_some_and(|record| record.node == Some(node));
        let more = |wanted: i64| if is_there { 0 } else { wanted };
        let free = |name: &Name| {
            let of_node = columns.find(name).map_or(0, |column| columns.free(node, column));
            of_node.saturating_add(requested(guests, name))
        };
        let reserved = self.entry.allocatable().iter().filter(|(name, _)| !self.all.args.ignores(name));
        columns.free(node, PODS) + guests.len() as i64 >= more(1)
            && reserved.into_iter().all(|(name, amount)| free(name) >= more(*amount))
    }

    /// Returns the nodes with pods that the reservation takes over, without these.
    pub(super) fn overrides(&self) -> Vec<NodeOverride> {
        let guests = |node: &NodeIdx| NodeOverride {
            node: *node,
            absent: self.guests_on(*node).into_iter().map(|(id, _)| id).collect(),
        };
        let all = self.view.nodes().iter().map(guests);
        all.filter(|of| !of.absent.is_empty()).collect()
    }

    /// Returns whether the reservation takes over a pod of a node. In a trial those are absent.
    pub(super) fn takes_any(&self, node: NodeIdx) -> bool {
        !self.view.absent().is_empty() || !self.guests_on(node).is_empty()
    }

    /// Returns the share of the reservation, 0 to 100, that the pods use which are absent in a trial.
    pub(super) fn score(&self) -> i64 {
        let absent = self.view.absent().iter().filter_map(|id| self.view.cluster().pod(*id));
        let mut wanted: Vec<(Name, i64)> = Vec::new();
        for (name, amount) in absent.flat_map(|record| amounts_of(&record.pod.spec.requests.list)) {
            match wanted.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => wanted.push((name, amount)),
            }
        }
        if wanted.is_empty() { 0 } else { score(self.entry, &wanted) }
    }

    /// Returns what the pod of the reservation holds on a node, if it takes over any pod.
    pub(super) fn take(&self, name: &Name, node: NodeIdx) -> Option<TakenOver> {
        let owner = |record: &PodRecord| Owner {
            key: record.pod.key.clone(),
            uid: record.pod.uid.clone(),
            requests: record.pod.spec.requests.clone(),
            is_bound: true,
            of: self.known.uid.clone(),
            node,
        };
        let guests: Vec<(PodId, Owner)> =
            self.guests_on(node).into_iter().map(|(id, record)| (id, owner(record))).collect();
        (!guests.is_empty()).then(|| TakenOver { name: name.clone(), guests })
    }
}

/// Returns how much of a resource some pods request together.
fn requested(pods: &[(PodId, &PodRecord)], name: &Name) -> i64 {
    pods.iter().map(|(_, record)| amount(&record.pod.spec.requests.list, name)).fold(0, i64::saturating_add)
}

impl TakenOver {
    /// Returns the writes that mark the pods as owners, of those that are not marked yet.
    pub(super) fn marks(&self, entry: &Entry) -> Vec<ObjectWrite> {
        let is_marked = |id: &PodId, of: &Owner| entry.all_owners.get(id).is_some_and(|o| o.of == of.of);
        let missing = self.guests.iter().filter(|(id, owner)| !is_marked(id, owner));
        missing.map(|(_, owner)| self.mark(owner)).collect()
    }

    fn mark(&self, owner: &Owner) -> ObjectWrite {
        let taken = Taken { name: self.name.clone(), uid: owner.of.clone(), is_bound: true };
        ObjectWrite::Patch {
            object: ObjectRef {
                group: "",
                version: "v1",
                plural: "pods",
                namespace: Some(owner.key.namespace.clone()),
                name: Name::new(&owner.key.name),
            },
            part: ObjectPart::Main,
            precondition: Precondition::uid(owner.uid.clone()),
            patch: Arc::new(
                json!({"metadata": {"annotations": {keys::RESERVATION_ALLOCATED: taken.text()}}}),
            ),
        }
    }
}
