//! Gangs as people read them.
//!
//! `status` sorts the members of a gang into stages, each into exactly one; `judgement` says in one word and one
//! code how a gang stands; `summary` is Koordinator's view of it, `explain` the joined one, `interference` who
//! holds what whom waits for, `cycles` who waits for each other, `tally` numbers for metrics. All is made from a
//! published snapshot when somebody asks; what gangs are and what is done about them is `cluster::gangs` and
//! `cycle::scheduler::gangs`.

mod cycles;
pub(super) mod explain;
pub(super) mod interference;
pub(super) mod judgement;
mod retry;
mod status;
pub(super) mod summary;
pub mod tally;

use pellucid_api::rest::gang_explain::PodGang;
use pellucid_api::rest::queue::QueuedGroup;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Now};
use pellucid_queue::Unit;

use judgement::judge;
use status::{GangStatus, ready};

/// Looks a gang up by what the path says.
fn find<'r>(snapshot: &'r Snapshot, namespace: &str, name: &str) -> Result<GangStatus<'r>, ReadError> {
    GangStatus::of(snapshot, &GangKey::new(namespace, name)).ok_or_else(|| ReadError::NotFound {
        code: "GangNotFound",
        message: format!("cannot find gang {namespace}/{name}"),
    })
}

/// Returns what a pod's explanation says about its gang.
pub(super) fn of_pod(snapshot: &Snapshot, record: &PodRecord, now: Now) -> Option<PodGang> {
    let key = &record.pod.gang.as_ref()?.gang;
    let status = GangStatus::of(snapshot, key)?;
    let judgement = judge(snapshot, &status, now);
    let member = status.members.iter().find(|m| *m.key == record.pod.key);
    Some(PodGang {
        gang: key.to_string(),
        member: member.map(|m| m.state.as_str().to_owned()).unwrap_or_default(),
        state: judgement.state.into(),
        code: judgement.verdict.code,
        message: judgement.verdict.message,
        path: format!("/apis/v1/explain/gangs/{}/{}", key.namespace, key.name),
    })
}

/// Returns what a pod says of a gang in vain: keys that make it a member of none, and a gang that its profile does
/// not schedule as one. The latter goes for the pod, whatever the profiles of its gang's other pods do.
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

/// Returns what the queue says about a unit that is a gang group.
pub(super) fn of_unit(snapshot: &Snapshot, unit: &Unit) -> Option<QueuedGroup> {
    let gangs = snapshot.cluster.gangs();
    let keys = gangs.group_of(unit.gang.as_ref()?);
    let known = || keys.iter().filter_map(|key| gangs.get(key));
    Some(QueuedGroup {
        gangs: keys.iter().map(ToString::to_string).collect(),
        members: unit.pods.len(),
        have: known().map(|gang| gang.counted() + ready(snapshot, gang)).sum(),
        need: known().map(|gang| gang.definition.min).sum(),
    })
}
