//! The verdict on a pending pod: what keeps it pending, which nodes are nearest and why they refuse it, whether it can
//! fit at all, what would help, and who can do that.
//!
//! Every answer about a pending pod reads this one verdict: the sentence, the remedy, lists, counts, metrics, the page,
//! the command line, and simulations. The recorded refusal says whether the pod was refused as a whole; everything
//! about nodes is worked out on the snapshot, as it is now.
//!
//! - `sentence`: the verdict in words; `pending`: the verdicts on all pending pods
//!
//! Not here: the recorded node groups of an attempt (`explain`), and changes that would help (`what_if::suggestions`).

mod pending;
mod sentence;

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_api::rest::explain::{Outlook, ReasonBody};
use pellucid_cycle::Snapshot;
use pellucid_framework::{Cause, Reason};
use pellucid_model::{Now, PodId};
use pellucid_queue::QueueStage;
use pellucid_recording::{Outcome, Refusal};

use crate::requirements::outlook::{self, outlook};
pub use pending::{Verdicts, verdicts};
pub(crate) use sentence::sentence;

use crate::advice;
use crate::gangs::gang_state::HeldBack;
use crate::gangs::member::{self, InGang, Outlooks};
use crate::meta::unit_of;
use crate::remedies::{reason_body, remedies};
use crate::requirements::nearest::{NearestNodes, nearest_of};
use crate::requirements::{PodRequirements, ask};

/// The verdict on one pending pod that was refused or is gated.
#[derive(Clone)]
pub struct PodVerdict {
    /// The reason under which the pod is counted: its own, else the first of the nearest nodes.
    pub key: Reason,
    /// The plugin that gives it.
    pub plugin: &'static str,
    /// Number of nodes that the recorded attempt refused for it; 0 if it concerns the pod as a whole.
    pub nodes: usize,
    pub(crate) nearest: Option<NearestNodes>,
    /// Of a pod that is refused as a whole: how it stands now with the plugin that refuses it, in a sentence.
    pub(crate) told: Option<String>,
    /// Whether the pod can fit; of a member of a gang without its quorum, whether it can with its gang. `None` where that
    /// was not found out.
    pub outlook: Option<Outlook>,
    /// Of a pod that fits no node whichever pods leave: what of the nearest nodes' reasons stands then.
    lasting: Vec<Reason>,
    /// What would help, each text once.
    pub remedies: Vec<&'static str>,
    /// Who can usually do that.
    pub resolver: Resolver,
}

impl PodVerdict {
    /// Returns what would help, as one text.
    pub fn remedy(&self) -> String {
        self.remedies.join(" ")
    }

    /// Returns whether the pod fits no node even when all pods have left that can.
    pub fn is_never(&self) -> bool {
        self.outlook.as_ref().is_some_and(|outlook| outlook.code == outlook::NEVER)
    }

    /// Returns the key reason as a body, with the remedy that holds for this pod.
    pub(crate) fn key_body(&self) -> ReasonBody {
        let is_never = self.remedies.first().is_some_and(|remedy| *remedy == self.key.code.entry().never);
        reason_body(&self.key, is_never)
    }
}

/// Returns the verdict on a pending pod, or `None` when it was neither refused nor gated.
pub fn of_pod(snapshot: &Snapshot, id: PodId, now: Now) -> Option<PodVerdict> {
    Some(with_gang(snapshot, id, told(snapshot, id, true, now)?, now))
}

/// Returns the verdict on a pod that a gate holds back before the queue: its own, or that of its gang. No node is asked
/// about it, so nothing is said of nodes.
fn of_gate(snapshot: &Snapshot, id: PodId, refusal: &Refusal) -> Option<PodVerdict> {
    let in_gang = snapshot.cluster.pod(id)?.pod.member_of().is_some();
    // A gang whose gate has opened is looked at when its turn comes.
    Some(of_whole(refusal.pod_cause.as_ref()?, in_gang && !is_gated(snapshot, id)))
}

/// Returns the outlook of a pod that a gate holds back now, whatever nodes would do with it.
pub(crate) fn held_by_gate(snapshot: &Snapshot, id: PodId, now: Now) -> Option<Outlook> {
    is_gated(snapshot, id).then(|| of_pod(snapshot, id, now)?.outlook).flatten()
}

fn is_gated(snapshot: &Snapshot, id: PodId) -> bool {
    unit_of(snapshot, id).is_some_and(|unit| unit.stage == QueueStage::Gated)
}

/// Makes the outlook on a member of a gang that of the member placed with its gang, or beside the quorum that it has.
fn with_gang(snapshot: &Snapshot, id: PodId, verdict: PodVerdict, now: Now) -> PodVerdict {
    let Some(record) = snapshot.cluster.pod(id).filter(|record| record.pod.member_of().is_some()) else {
        return verdict;
    };
    let of_gang = || member::outlook(snapshot, (id, record), now).map(|(own, _)| own);
    let beside = || {
        let alone = || ask(snapshot, id).map(|asked| outlook(snapshot, &asked, now));
        let alone = verdict.outlook.clone().or_else(alone)?;
        Some(member::beside_quorum(snapshot, (id, record), alone, now))
    };
    let found = of_gang().or_else(beside);
    let found = found.filter(|outlook| outlook.code == outlook::HELD || !is_gated(snapshot, id));
    match found {
        Some(outlook) => verdict.with_outlook(outlook),
        None => verdict,
    }
}

/// Returns the verdict on a pending pod as if it had no gang; with `is_told` the requirements that nodes fail are
/// described.
fn told(snapshot: &Snapshot, id: PodId, is_told: bool, now: Now) -> Option<PodVerdict> {
    let record = snapshot.cluster.pod(id).filter(|record| record.node.is_none())?;
    match snapshot.last_attempts.get(id.index())?.outcome()? {
        Outcome::Gated(refusal) => {
            let current = HeldBack::new(snapshot).now(record, refusal);
            of_gate(snapshot, id, current.as_ref().unwrap_or(refusal))
        }
        Outcome::Refused(refusal) => judge(snapshot, id, refusal, is_told, now),
        Outcome::Placed(_) => None,
    }
}

/// Returns the verdict on a pod that is refused so: by a recorded attempt, or by one made on this snapshot.
pub(crate) fn of_refusal(snapshot: &Snapshot, id: PodId, refusal: &Refusal, now: Now) -> Option<PodVerdict> {
    Some(with_gang(snapshot, id, judge(snapshot, id, refusal, true, now)?, now))
}

/// Returns the verdict on one of many pods that are refused so.
pub(crate) fn of_refusal_among(
    outlooks: &mut Outlooks<'_>,
    snapshot: &Snapshot,
    (id, refusal): (PodId, &Refusal),
    now: Now,
) -> Option<PodVerdict> {
    let verdict = judge(snapshot, id, refusal, true, now)?;
    let of_gang = snapshot.cluster.pod(id).map(|record| outlooks.of((id, record)));
    Some(match of_gang {
        Some(InGang::Known(outlook)) => verdict.with_outlook(outlook),
        Some(InGang::LeftOut) => verdict.untold(),
        Some(InGang::Beside) if verdict.waits() => verdict.untold(),
        Some(InGang::Beside | InGang::Alone) | None => verdict,
    })
}

fn judge(snapshot: &Snapshot, id: PodId, refusal: &Refusal, is_told: bool, now: Now) -> Option<PodVerdict> {
    let in_gang = snapshot.cluster.pod(id)?.pod.member_of().is_some();
    if let Some(cause) = &refusal.pod_cause {
        let mut verdict = of_whole(cause, in_gang);
        verdict.told = advice::of_cause(snapshot, id, cause, now);
        if !in_gang {
            let asked = ask(snapshot, id)?;
            let outlook = outlook(snapshot, &asked, now);
            // It is held back when no pod's end helps.
            let lasts = matches!(&*outlook.code, outlook::NEVER | outlook::HELD);
            verdict.outlook = Some(outlook);
            verdict.settle_as(lasts);
        }
        return Some(verdict);
    }
    let Some(asked) = ask(snapshot, id) else { return Some(of_groups(refusal)) };
    let outlook = outlook(snapshot, &asked, now);
    let nearest = if outlook.code == outlook::NOW { None } else { nearest_of(&asked, is_told, now) };
    let Some(nearest) = nearest else {
        let mut verdict = of_groups(refusal);
        verdict.outlook = Some(outlook);
        verdict.settle();
        return Some(verdict);
    };
    let cause = &nearest.group.cause;
    let is_never = outlook.code == outlook::NEVER;
    let lasting = if is_never { lasting(snapshot, &asked, &nearest) } else { Vec::new() };
    // What goes when pods leave does not keep a pod off that never fits.
    let key = lasting.first().or(cause.reasons.first())?.clone();
    let nodes = refused_for(refusal, &key).max(nearest.group.count);
    let at = cause.reasons.iter().position(|reason| *reason == key);
    let mut verdict = PodVerdict {
        plugin: at.and_then(|at| nearest.plugins.get(at)).copied().unwrap_or(cause.plugin),
        key,
        nodes,
        nearest: Some(nearest),
        told: None,
        outlook: Some(outlook),
        lasting,
        remedies: Vec::new(),
        resolver: Resolver::Time,
    };
    verdict.settle();
    Some(verdict)
}

/// Returns the reasons of the nearest nodes that stand whichever pods leave.
fn lasting(snapshot: &Snapshot, asked: &PodRequirements<'_>, nearest: &NearestNodes) -> Vec<Reason> {
    let reasons = nearest.group.cause.reasons.iter();
    let all = reasons.zip(&nearest.is_fixed).zip(&nearest.plugins);
    if nearest.is_fixed.iter().all(|is_fixed| *is_fixed) || nearest.is_fixed.len() == 1 {
        return all.map(|((reason, _), _)| reason.clone()).collect();
    }
    let there = outlook::lasting_on(snapshot, asked, nearest.node);
    let stands = |reason: &Reason, plugin: &str| {
        there.iter().any(|requirement| requirement.plugin == plugin && requirement.reason == *reason)
    };
    let lasting = all.filter(|((reason, is_fixed), plugin)| **is_fixed || stands(reason, plugin));
    lasting.map(|((reason, _), _)| reason.clone()).collect()
}

impl PodVerdict {
    /// Returns whether other pods have to leave first.
    fn waits(&self) -> bool {
        self.outlook.as_ref().is_some_and(|outlook| outlook.code == outlook::NOT_NOW)
    }

    /// Returns the same verdict without an outlook.
    fn untold(self) -> Self {
        Self { outlook: None, ..self }
    }

    /// Returns the same verdict with another outlook.
    fn with_outlook(mut self, outlook: Outlook) -> Self {
        self.outlook = Some(outlook);
        if self.nearest.is_some() || self.is_never() {
            self.settle();
        }
        self
    }

    /// Says what would help and who can do it, from the reasons and the outlook.
    fn settle(&mut self) {
        self.settle_as(self.is_never());
    }

    /// Does the same; `never` says whether no pod's end would help.
    fn settle_as(&mut self, never: bool) {
        let key = [(self.key.code, never)];
        let nearest: Vec<(ReasonCode, bool)> = match &self.nearest {
            Some(nearest) => {
                let reasons = nearest.group.cause.reasons.iter().zip(&nearest.is_fixed);
                let stands =
                    |reason: &Reason| !never || self.lasting.is_empty() || self.lasting.contains(reason);
                let standing = reasons.filter(|(reason, _)| stands(reason));
                standing.map(|(reason, is_fixed)| (reason.code, never || *is_fixed)).collect()
            }
            None => key.to_vec(),
        };
        let Some((remedies, resolver)) = remedies(nearest.into_iter()) else { return };
        (self.remedies, self.resolver) = (remedies, resolver);
    }
}

/// Returns the verdict on a pod that is refused as a whole.
fn of_whole(cause: &Cause, in_gang: bool) -> PodVerdict {
    let key = cause.reasons.first().cloned().unwrap_or_else(|| Reason::of(ReasonCode::NoNodes));
    let mut remedies = Vec::new();
    for reason in &cause.reasons {
        let text = reason.code.entry().remedy;
        if !remedies.contains(&text) {
            remedies.push(text);
        }
    }
    PodVerdict {
        resolver: key.code.entry().resolver,
        key,
        plugin: cause.plugin,
        nodes: 0,
        nearest: None,
        told: None,
        outlook: (!in_gang).then(outlook::held_back),
        lasting: Vec::new(),
        remedies,
    }
}

/// Returns the verdict that the recorded node groups alone allow: by the largest of them.
fn of_groups(refusal: &Refusal) -> PodVerdict {
    let Some(cause) = refusal.groups.first().map(|group| &group.cause) else {
        let none =
            Cause::new("Scheduler", pellucid_framework::Code::Unschedulable, Reason::of(ReasonCode::NoNodes));
        return PodVerdict { outlook: None, ..of_whole(&none, true) };
    };
    let mut verdict = of_whole(cause, true);
    verdict.nodes = refused_for(refusal, &verdict.key);
    verdict
}

/// Returns how many nodes the recorded attempt refused for a reason.
fn refused_for(refusal: &Refusal, reason: &Reason) -> usize {
    refusal.reasons().filter(|(other, _)| *other == reason).map(|(_, count)| count).sum()
}
