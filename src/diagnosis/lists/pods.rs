//! `/apis/v1/explain/pods`: every pending pod in a line.

use std::borrow::Cow;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::{OwnerOf, PendingPod, PendingPods};
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{PodRecord, ShapeId, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::records::last_attempt::LastAttempt;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Facts, List};
use pellucid_model::{Now, PodId, PodKey};
use pellucid_recording::{Outcome, Refusal, rfc3339};

use crate::facts::{created, facts_of, groups_of, named, requests};
use crate::gangs::gang_state::HeldBack;
use crate::meta::{of_snapshot, unit_of};
use crate::not_pending;
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

/// What makes pods one row of the summary by `ownerOrShape`: namespace, controller, and shape where there is no
/// controller.
type Kin<'s> = (&'s str, Option<OwnerOf>, Option<ShapeId>);

fn kin<'s>(snapshot: &'s Snapshot, record: &'s PodRecord) -> Kin<'s> {
    let owner = owner(&snapshot.cluster, &record.pod);
    let shape = owner.is_none().then_some(record.shape);
    (&record.pod.key.namespace, owner, shape)
}

/// Lists pending pods with their verdicts, by namespace and name unless the request sorts otherwise. With `like`, only
/// pods of that pod's controller and namespace, or of its shape when it has no controller.
pub(crate) fn pending(
    snapshot: &Snapshot,
    like: Option<&str>,
    list: &List,
    now: Now,
) -> Result<PendingPods, ReadError> {
    let like = like.map(|text| known_pod(snapshot, text)).transpose()?.map(|record| kin(snapshot, record));
    let is_like = |record: &PodRecord| like.as_ref().is_none_or(|like| kin(snapshot, record) == *like);
    let pods =
        snapshot.cluster.pods().filter(|(_, record)| record.stage == Stage::Pending && is_like(record));
    let unreadable = snapshot.cluster.quarantined().filter(|object| object.kind == "Pod" && like.is_none());
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
    Ok(PendingPods { meta, count: page.total, pods: pods.collect() })
}

fn known_pod<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s PodRecord, ReadError> {
    let Some((namespace, pod)) = name.split_once('/') else {
        let message = format!("parameter `like` has the value `{name}`: it must be namespace/name");
        return Err(ReadError::BadRequest { code: "InvalidParameter", message });
    };
    let key = PodKey::new(namespace, pod);
    snapshot.find_pod(&key).map(|(_, record)| record).ok_or_else(|| not_pending::error(snapshot, &key))
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
        ..facts_of(snapshot, record)
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
            groups: named(&groups_of(snapshot, record)),
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
        summary: not_pending::unreadable(object),
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
