//! Gangs as bodies of the REST API, made from a published snapshot on request.
//!
//! `cluster::gangs` holds the gangs, and `cycle::scheduler::gangs` schedules them. Modules in reading order:
//! - `status`: the members of a gang by stage, each in exactly one
//! - `gang_state`: the state of a gang in one word, and one code
//! - `summary`: Koordinator's view of a gang
//! - `outlook`: whether the quorum fits now, later or never; `member`: the same of one member; `targets`: the pods that its members need beside them;
//!   `leaving`: the pods whose end would do; `lasting`: what helps where no end of a pod would; `feasibility`: the same in numbers
//! - `topology`: whether one zone, rack or node has room for the quorum
//! - `explain`: the full explanation; `retry`: when the gang is tried again
//! - `interference`: which gang holds what another one waits for; `cycles`: gangs that wait for each other
//! - `list`: one line per gang; [`tally`]: counts for metrics

mod cycles;
pub(super) mod explain;
pub(super) mod feasibility;
pub(super) mod gang_state;
pub(super) mod interference;
mod lasting;
mod leaving;
pub(super) mod list;
mod measured;
pub(super) mod member;
pub(super) mod outlook;
mod retry;
mod status;
pub(super) mod summary;
pub mod tally;
mod targets;
pub(super) mod topology;

use pellucid_api::rest::explain::PodExplanation;
use pellucid_api::rest::gang_explain::PodGang;
use pellucid_api::rest::queue::QueuedGroup;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::sentence::ended;
use pellucid_model::{GangKey, Now, PodId};
use pellucid_queue::Unit;

use gang_state::planned_state;
use status::{GangStatus, ready};

/// Finds a gang. Fails when the gang is unknown.
fn find<'r>(snapshot: &'r Snapshot, key: &GangKey) -> Result<GangStatus<'r>, ReadError> {
    GangStatus::of(snapshot, key).ok_or_else(|| not_found(key))
}

pub(super) fn not_found(key: &GangKey) -> ReadError {
    ReadError::NotFound { code: "GangNotFound", message: format!("cannot find gang {key}") }
}

/// Returns the gang part of a pod's explanation.
pub(super) fn of_pod(snapshot: &Snapshot, record: &PodRecord, now: Now) -> Option<PodGang> {
    let key = &record.pod.gang.as_ref()?.gang;
    let status = GangStatus::of(snapshot, key)?;
    let look =
        member::planned_with(snapshot, record).and_then(|key| outlook::as_it_stands(snapshot, key, now));
    let state = planned_state(snapshot, &status, look.as_deref(), now);
    let member = status.members.iter().find(|m| *m.key == record.pod.key);
    Some(PodGang {
        gang: key.to_string(),
        member: member.map(|m| m.state.as_str().to_owned()).unwrap_or_default(),
        state: state.name.into(),
        code: state.verdict.code,
        message: state.verdict.message,
        path: format!("/apis/v1/explain/gangs/{}/{}", key.namespace, key.name),
        outlook: look.map(|look| look.body.clone()),
    })
}

/// Corrects the explanation of a member that would fit alone: it is placed with its gang.
pub(super) fn temper(body: &mut PodExplanation, snapshot: &Snapshot, of: (PodId, &PodRecord), now: Now) {
    let gang = of.1.pod.member_of().filter(|_| body.verdict == "fits");
    let Some((gang, (outlook, _))) = gang.and_then(|gang| Some((gang, member::outlook(snapshot, of, now)?)))
    else {
        return;
    };
    if outlook.code != "FitsNow" {
        let alone = body.placement.take().map(|place| format!("Alone it would fit on {}. ", place.node));
        let what = &outlook.message;
        body.verdict = "refused".into();
        body.summary = format!(
            "Not placed: it is placed with gang {gang}: {} {}",
            ended(what.as_str()),
            alone.unwrap_or_default()
        );
        body.summary.truncate(body.summary.trim_end().len());
        body.message.clone_from(&outlook.message);
        body.not_evaluated = body.total_nodes;
    }
    body.outlook = Some(outlook);
}

/// Returns warnings about a pod's gang declarations without effect: keys that make it a member of no gang, and a gang
/// that the pod's own profile does not schedule as one, whatever the profiles of the other members do.
pub(super) fn warnings_of_pod(snapshot: &Snapshot, record: &PodRecord) -> Vec<String> {
    let pod = &record.pod;
    let mut all: Vec<String> = pod.gang_warning.iter().map(ToString::to_string).collect();
    let profile = snapshot.profiles.iter().find(|p| p.scheduler_name == pod.scheduler_name);
    if let (Some(mark), Some(profile)) = (&pod.gang, profile)
        && profile.gang_rules().is_none()
    {
        all.push(format!(
            "gang {} is not heeded: Coscheduling is not enabled at Permit in profile {}, so this pod is scheduled \
             on its own",
            mark.gang, profile.scheduler_name
        ));
    }
    all
}

/// Returns the gang group of a unit, with its members and quorum.
pub(super) fn of_unit(snapshot: &Snapshot, unit: &Unit) -> Option<QueuedGroup> {
    let gangs = snapshot.cluster.gangs();
    let keys = gangs.group_of(unit.gang.as_ref()?);
    let known = || keys.iter().filter_map(|key| gangs.get(key));
    Some(QueuedGroup {
        gangs: keys.iter().map(ToString::to_string).collect(),
        members: unit.pods.len(),
        // What one gang has beyond its quorum is of no use to another.
        have: known().map(|gang| gang.have(ready(snapshot, gang)).min(gang.definition.min)).sum(),
        need: known().map(|gang| gang.definition.min).sum(),
    })
}
