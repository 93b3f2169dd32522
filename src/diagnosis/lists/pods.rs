//! `/apis/v1/explain/pods`: every pending pod in a line.

use std::borrow::Cow;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::{PendingPod, PendingPods};
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::records::last_attempt::LastAttempt;
use pellucid_framework::list::{Facts, List};
use pellucid_model::{Now, PodId};
use pellucid_recording::{Outcome, Refusal, rfc3339};

use crate::facts::{created, facts_of, requests};
use crate::gangs::gang_state::HeldBack;
use crate::meta::{of_snapshot, unit_of};
use crate::owner::owner;
use crate::verdict::{Verdicts, sentence, verdicts};

/// A pending pod, readable or not.
enum Item<'s> {
    Pod(PodId, &'s PodRecord),
    Unreadable(&'s Quarantined),
}

impl<'s> Item<'s> {
    fn key(&self) -> (&'s str, &'s str) {
        match self {
            Self::Pod(_, record) => (&record.pod.key.namespace, &record.pod.key.name),
            Self::Unreadable(object) => (&object.namespace, &object.name),
        }
    }
}

/// Lists pending pods with their verdicts, by namespace and name unless the request sorts otherwise.
pub(crate) fn pending(snapshot: &Snapshot, list: &List, now: Now) -> PendingPods {
    let pods = snapshot.cluster.pods().filter(|(_, record)| record.stage == Stage::Pending);
    let unreadable = snapshot.cluster.quarantined().filter(|object| object.kind == "Pod");
    let mut items: Vec<Item<'_>> = pods.map(|(id, record)| Item::Pod(id, record)).collect();
    items.extend(unreadable.map(Item::Unreadable));
    items.sort_by_cached_key(Item::key);
    let verdicts = verdicts(snapshot, now);
    let page = list.page(items, |item| facts(snapshot, item, &verdicts));
    let mut lines = Lines { snapshot, verdicts: &verdicts, held_back: HeldBack::new(snapshot) };
    let mut meta = page.meta(of_snapshot(snapshot, now));
    meta.truncated = verdicts.truncated;
    let pods = page.items.iter().map(|item| match item {
        Item::Pod(id, record) => lines.of_pod(*id, record),
        Item::Unreadable(object) => of_quarantined(object),
    });
    PendingPods { meta, count: page.total, pods: pods.collect() }
}

fn facts<'s>(snapshot: &'s Snapshot, item: &Item<'s>, verdicts: &'s Verdicts) -> Facts<'s> {
    let (id, record) = match item {
        Item::Pod(id, record) => (*id, *record),
        Item::Unreadable(object) => {
            let reasons = vec![ReasonCode::Unreadable.as_str().into()];
            let (namespace, name) = (&*object.namespace, &*object.name);
            return Facts { namespace, name, reasons, stage: "quarantined", ..Facts::default() };
        }
    };
    let key = verdicts.of(id).map(|verdict| verdict.key.code.as_str());
    let refusal = snapshot.refusal(id).into_iter().flat_map(|refusal| refusal.reasons());
    let nominated = snapshot.cluster.nominator().of(id).map(|nomination| &*nomination.node);
    Facts {
        reasons: key
            .into_iter()
            .chain(refusal.map(|(reason, _)| reason.code.as_str()))
            .map(Cow::from)
            .collect(),
        nodes: nominated.into_iter().collect(),
        stage: unit_of(snapshot, id).map_or("", |unit| unit.stage.as_str()),
        ..facts_of(snapshot, &record.pod)
    }
}

/// Makes the lines of pods.
struct Lines<'s> {
    snapshot: &'s Snapshot,
    verdicts: &'s Verdicts,
    held_back: HeldBack<'s>,
}

impl<'s> Lines<'s> {
    fn of_pod(&mut self, id: PodId, record: &'s PodRecord) -> PendingPod {
        let (snapshot, pod) = (self.snapshot, &record.pod);
        let known = self.verdicts.of(id);
        let (verdict, refusal) = match snapshot.last_attempts.get(id.index()).and_then(LastAttempt::outcome) {
            Some(Outcome::Refused(refusal)) => ("refused", Some(refusal)),
            Some(Outcome::Gated(refusal)) => ("gated", Some(refusal)),
            _ => ("waiting", None),
        };
        let now = refusal.filter(|_| verdict == "gated");
        let now = now.and_then(|said| self.held_back.now(record, said));
        let refusal = now.as_ref().or(refusal.map(|refusal| &**refusal));
        let outlook = known.and_then(|verdict| verdict.outlook.as_ref());
        let unit = unit_of(snapshot, id);
        PendingPod {
            namespace: pod.key.namespace.to_string(),
            name: pod.key.name.to_string(),
            owner: owner(&snapshot.cluster, pod),
            gang: pod.member_of().map(ToString::to_string),
            priority: pod.priority,
            created_at: rfc3339(created(pod)),
            requests: requests(&pod.spec.requests.list),
            stage: unit.map(|unit| unit.stage.as_str().to_owned()).unwrap_or_default(),
            attempts: unit.map_or(0, |unit| unit.attempts),
            verdict: verdict.into(),
            key_reason: known.map(|verdict| verdict.key.code.as_str().to_owned()).unwrap_or_default(),
            outlook: outlook.map(|outlook| outlook.code.clone()).unwrap_or_default(),
            summary: refusal.zip(known).map(|(of, known)| sentence(of, known)).unwrap_or_default(),
            reasons: refusal.map(codes).unwrap_or_default(),
            message: refusal.map(|refusal| refusal.message().to_string()).unwrap_or_default(),
        }
    }
}

fn of_quarantined(object: &Quarantined) -> PendingPod {
    PendingPod {
        namespace: object.namespace.to_string(),
        name: object.name.to_string(),
        verdict: "quarantined".into(),
        key_reason: ReasonCode::Unreadable.as_str().into(),
        reasons: vec![ReasonCode::Unreadable.as_str().into()],
        summary: crate::not_pending::unreadable(object),
        message: pellucid_cycle::quarantine_message(object),
        ..PendingPod::default()
    }
}

/// Returns the reason codes of a refusal, those with the most nodes first.
fn codes(refusal: &Refusal) -> Vec<String> {
    let mut counts: std::collections::BTreeMap<&str, usize> = Default::default();
    for (reason, count) in refusal.reasons() {
        *counts.entry(reason.code.as_str()).or_default() += count;
    }
    let mut codes: Vec<(&str, usize)> = counts.into_iter().collect();
    codes.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
    codes.into_iter().map(|(code, _)| code.to_string()).collect()
}
