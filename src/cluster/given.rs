//! What pods give up of what they take: a pod in whose room others stand, the host, takes only what these leave.
//!
//! The state of a plugin says it ([`DerivedState::given_up`]), as its holds begin and end. It is
//! part of the undo log, and stays with the pod while it is off its node for a trial. What plugins hold for the host is
//! shared in the same way: while guests hold something of a plugin, the host's hold of it is what they leave
//! ([`DerivedState::hold_left`]).
//!
//! [`DerivedState::given_up`]: crate::DerivedState::given_up
//! [`DerivedState::hold_left`]: crate::DerivedState::hold_left

use std::borrow::Cow;
use std::sync::Arc;

use pellucid_model::PodId;
use pellucid_model::requests::PodRequests;
use smallvec::SmallVec;

use crate::changes::Changed;
use crate::derived::Placed;
use crate::hold::{Hold, HoldValue};
use crate::state::{Cluster, PodRecord};
use crate::undo::Undo;

/// What a pod gives up to pods that stand in its room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Part of what it requests that it does not take on its node. `pods` is 1 when it takes no place for a pod either.
    pub amounts: PodRequests,
    /// The pods that stand in its room, ascending.
    pub guests: SmallVec<[PodId; 2]>,
    /// Whether a guest gets what plugins hold from the room alone.
    pub is_limit: bool,
}

impl Given {
    /// Returns what is left of a pod's requests.
    pub(crate) fn left_of<'p>(this: Option<&Self>, own: &'p PodRequests) -> Cow<'p, PodRequests> {
        this.map_or(Cow::Borrowed(own), |given| Cow::Owned(own.less(&given.amounts)))
    }
}

impl PodRecord {
    /// Returns what the pod takes on its node of all that it requests.
    pub fn taken(&self) -> Cow<'_, PodRequests> {
        Given::left_of(self.given.as_deref(), &self.pod.spec.requests)
    }
}

impl Cluster {
    /// Sets what a pod gives up of its requests, placed or not, and to whom.
    pub(super) fn give(&mut self, id: PodId, given: Option<Arc<Given>>) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        if record.given == given {
            return;
        }
        let node = record.node;
        if let Some(node) = node {
            self.columns.take(node, &record.taken(), -1);
        }
        let before = std::mem::replace(&mut record.given, given.clone());
        if let Some(node) = node {
            self.columns.take(node, &record.taken(), 1);
            self.changes.push(node, Changed::Usage);
            let record = record.clone();
            let placed = Placed::of(id, &record, node);
            for state in &mut self.derived {
                state.given_changed(&placed, before.as_deref());
            }
        }
        self.undo.push(Undo::Give { id, given: before.clone() });
        for (of, host) in [(before, None), (given, Some(id))] {
            for guest in of.iter().flat_map(|given| &given.guests) {
                if let Some(guest) = self.pods.get_mut(guest.index()).and_then(Option::as_mut) {
                    guest.host = host;
                }
            }
        }
        let plugins: SmallVec<[&'static str; 2]> =
            self.pod(id).into_iter().flat_map(|host| &host.holds).map(|hold| hold.plugin).collect();
        plugins.into_iter().for_each(|plugin| self.share_hold(id, plugin));
    }

    /// Has pods take less or more on their nodes, as the states of plugins say since they were asked last.
    #[inline]
    pub(crate) fn settle_given(&mut self) {
        for i in 0..self.state_index.givers.len() {
            let all = self.derived[self.state_index.givers[i]].given_up();
            all.into_iter().for_each(|(pod, given)| self.give(pod, given));
        }
    }

    /// Returns whether holds of a plugin can be shared with guests.
    pub fn shares_holds(&self, plugin: &str) -> bool {
        self.state_index.of_plugin(plugin).any(|at| self.derived[at].shares_holds())
    }

    /// Has what a plugin holds for a host be what its guests leave.
    pub(super) fn share_hold(&mut self, host: PodId, plugin: &'static str) {
        // What is undone is undone hold by hold.
        if self.undo.is_undoing() || !self.shares_holds(plugin) {
            return;
        }
        let find = |record: &'_ PodRecord| record.holds.iter().find(|hold| hold.plugin == plugin).cloned();
        let Some((record, hold)) = self.pod(host).and_then(|record| Some((record, find(record)?))) else {
            return;
        };
        let guests = record.given.iter().flat_map(|given| &given.guests);
        let held: SmallVec<[HoldValue; 2]> =
            guests.filter_map(|guest| Some(find(self.pod(*guest)?)?.what)).collect();
        let whole = hold.whole().clone();
        let state = self.state_index.of_plugin(plugin).next().map(|at| &self.derived[at]);
        let left = match held.is_empty() {
            true if hold.whole.is_none() => return,
            true => None,
            false => state.and_then(|state| state.hold_left(&whole, &held)),
        };
        let new = match left {
            Some(what) => Hold { what, whole: Some(whole), ..hold },
            None => Hold { what: whole, whole: None, ..hold },
        };
        self.set_hold(host, new);
    }

    /// Replaces what is held for a pod by the same plugin.
    pub(super) fn set_hold(&mut self, id: PodId, hold: Hold) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        let Some(known) = record.holds.iter_mut().find(|known| known.plugin == hold.plugin) else { return };
        let old = std::mem::replace(known, hold.clone());
        self.notify_holder(id, Some(&old), false);
        self.notify_holder(id, Some(&hold), true);
        self.undo.push(Undo::SetHold { id, hold: old });
    }

    /// Has the guests of a pod that is no more stand in no room.
    pub(super) fn forget_host(&mut self, record: &PodRecord) {
        for guest in record.given.iter().flat_map(|given| &given.guests) {
            if let Some(guest) = self.pods.get_mut(guest.index()).and_then(Option::as_mut) {
                guest.host = None;
            }
        }
    }
}
