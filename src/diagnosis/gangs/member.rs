//! Whether a member fits now, later or never, placed with its gang.
//!
//! A member of a quorum's plan has the outlook of its gang. One beyond it is asked about beside the quorum. What a member
//! would do without its gang is not said here.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::explain::Outlook;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_model::{GangKey, Now, PodId, PodKey};

use super::gang_state::is_off;
use super::outlook::{GangOutlook, Look, as_it_stands, body, is_planned_as_one, of_gang};
use super::status::GangStatus;
use crate::called::named;
use crate::requirements::{ask, outlook::outlook as outlook_alone};

/// Largest number of pending members times nodes, summed over gangs, for which a list of pods has outlooks.
const MOST_PLANNED: usize = 300_000;

/// Returns the gang with which a pending pod is planned, because the gang's group has no quorum.
pub(crate) fn planned_with<'s>(snapshot: &Snapshot, record: &'s PodRecord) -> Option<&'s GangKey> {
    let key = record.pod.member_of().filter(|_| record.node.is_none())?;
    is_planned_as_one(snapshot, key).then_some(key)
}

/// Returns the outlook of a pending pod placed with its gang, and that of the gang. Returns `None` if the pod is placed or
/// is scheduled without its gang.
pub(crate) fn outlook(
    snapshot: &Snapshot,
    (id, record): (PodId, &PodRecord),
    now: Now,
) -> Option<(Outlook, Arc<GangOutlook>)> {
    let key = planned_with(snapshot, record)?;
    let gang = as_it_stands(snapshot, key, now)?;
    let own = gang.of_member(id).cloned().unwrap_or_else(|| beyond(snapshot, key, id, now));
    Some((own, gang))
}

impl GangOutlook {
    /// Returns the outlook of a member that has a place whenever the quorum has, or `None` if that is not clear.
    fn of_member(&self, id: PodId) -> Option<&Outlook> {
        let has_quorum = matches!(&*self.body.code, "FitsNow" | "FitsAfterPreemption" | "NotNow");
        (!has_quorum || self.placed.contains(&id)).then_some(&self.body)
    }

    /// Returns whether a member has no place in the plan that gave the quorum.
    pub(crate) fn is_beyond(&self, id: PodId) -> bool {
        self.of_member(id).is_none()
    }
}

/// Returns the outlook of a member that has no place in the plan that gave its gang the quorum.
fn beyond(snapshot: &Snapshot, key: &GangKey, id: PodId, now: Now) -> Outlook {
    let found = Look { member: Some(id), ..Look::of(snapshot, key, now) }.planned();
    if matches!(&*found.body.code, "FitsNow" | "FitsAfterPreemption" | "NotNow") {
        return found.body;
    }
    // A pod that no node takes even alone has no place beside others.
    let alone = ask(snapshot, id).map(|asked| outlook_alone(snapshot, &asked, now));
    let is_lasting = |alone: &Outlook| matches!(&*alone.code, "NeverFits" | "HeldBack");
    alone.filter(is_lasting).unwrap_or_else(|| {
        let message = format!(
            "the quorum of gang {key} would have places, but no plan was found in which this member has one too"
        );
        body("NotKnown", message)
    })
}

/// Returns the outlook of a member beside a quorum that its gang has, made from that of the pod `alone`. The members that
/// hold the quorum have to stay: without them the pod would wait for its gang.
pub(crate) fn beside_quorum(
    snapshot: &Snapshot,
    (id, record): (PodId, &PodRecord),
    alone: Outlook,
    now: Now,
) -> Outlook {
    let Some(key) = held_by_others(snapshot, record).filter(|_| alone.code == "NotNow") else { return alone };
    let look = Look { member: Some(id), ..Look::of(snapshot, key, now) };
    let leaving: Vec<PodKey> =
        alone.would_leave.iter().filter_map(|text| named(&snapshot.cluster, text)).collect();
    let is_own = |key: &PodKey| snapshot.find_pod(key).is_some_and(|(_, other)| look.is_own(other));
    // What was named was tried with all other pods there.
    if !leaving.is_empty() && !leaving.iter().any(is_own) {
        return alone;
    }
    let edits: Vec<Edit> = leaving.into_iter().map(Edit::DeletePod).collect();
    if !edits.is_empty() && look.plan_with(&edits).is_some_and(|plan| look.is_met(&plan)) {
        return alone;
    }
    let found = look.planned().body;
    if found.code == "NotNow" {
        return found;
    }
    let message = format!("no node takes it now, nor as long as the placed members of gang {key} stay");
    body("NotKnown", message)
}

/// Returns the gang of a pending pod, if placed members that could leave hold its quorum.
fn held_by_others<'s>(snapshot: &Snapshot, record: &'s PodRecord) -> Option<&'s GangKey> {
    let key = record.pod.member_of().filter(|_| record.node.is_none())?;
    let gang = snapshot.cluster.gangs().get(key)?;
    let holds = |id: &PodId| snapshot.cluster.pod(*id).is_some_and(|r| r.node.is_some() && r.pod.can_leave());
    let is_heeded = !is_off(snapshot, &GangStatus::of_gang(snapshot, gang));
    (is_heeded && gang.members.keys().any(holds)).then_some(key)
}

/// How one of many pods stands with its gang.
pub(crate) enum InGang {
    /// It is planned with its gang, and this is its outlook.
    Known(Outlook),
    /// It is planned with its gang, and its outlook was not worked out.
    LeftOut,
    /// It is scheduled on its own, beside the quorum of its gang.
    Beside,
    /// It is scheduled on its own.
    Alone,
}

/// The outlooks of many members, of as many gangs as may be planned for one answer. Which are left out depends on the
/// snapshot and the order of the pods alone.
pub(crate) struct Outlooks<'s> {
    snapshot: &'s Snapshot,
    now: Now,
    left: usize,
    known: BTreeMap<GangKey, OfGang>,
    /// Whether some gangs were left out.
    pub(crate) is_cut: bool,
}

enum OfGang {
    Planned(Arc<GangOutlook>),
    LeftOut,
    /// It has its quorum.
    Whole,
    OneByOne,
}

impl<'s> Outlooks<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, now: Now) -> Self {
        Self { snapshot, now, left: MOST_PLANNED, known: BTreeMap::new(), is_cut: false }
    }

    /// Returns how a pending pod stands. That of a member beyond the quorum is left out.
    pub(crate) fn of(&mut self, (id, record): (PodId, &PodRecord)) -> InGang {
        let Some(key) = record.pod.member_of().filter(|_| record.node.is_none()) else {
            return InGang::Alone;
        };
        match self.known(key) {
            Some(OfGang::Planned(gang)) => gang.of_member(id).cloned().map_or(InGang::LeftOut, InGang::Known),
            Some(OfGang::LeftOut) => InGang::LeftOut,
            Some(OfGang::Whole) => InGang::Beside,
            Some(OfGang::OneByOne) | None => InGang::Alone,
        }
    }

    /// Returns what would help a gang that has no quorum, and who can do that; `None` if that is not worked out.
    pub(crate) fn remedy(&mut self, key: &GangKey) -> Option<(String, String)> {
        let (snapshot, now) = (self.snapshot, self.now);
        matches!(self.known(key), Some(OfGang::Planned(_))).then_some(())?;
        of_gang(snapshot, key, now).map(|gang| (gang.remedy, gang.resolver))
    }

    fn known(&mut self, key: &GangKey) -> Option<&OfGang> {
        if !self.known.contains_key(key) {
            let of_gang = self.of_gang(key);
            self.known.insert(key.clone(), of_gang);
        }
        self.known.get(key)
    }

    fn of_gang(&mut self, key: &GangKey) -> OfGang {
        let gangs = self.snapshot.cluster.gangs();
        if !is_planned_as_one(self.snapshot, key) {
            let is_whole = gangs.get(key).is_some_and(|gang| gang.counts.placed() > 0);
            return if is_whole { OfGang::Whole } else { OfGang::OneByOne };
        }
        let group = gangs.group_of(key);
        let members: usize =
            group.iter().filter_map(|key| gangs.get(key)).map(|gang| gang.members.len()).sum();
        let nodes = self.snapshot.cluster.present().len().max(1);
        let Some(left) = self.left.checked_sub(members.saturating_mul(nodes)) else {
            self.is_cut = true;
            return OfGang::LeftOut;
        };
        self.left = left;
        as_it_stands(self.snapshot, key, self.now).map_or(OfGang::OneByOne, OfGang::Planned)
    }
}
