//! Koordinator's view of a gang: its fields of release 0.7 and of today, and fields that it does not have.

use std::collections::BTreeMap;

use pellucid_api::rest::gangs::{GangGroupInfo, GangRelease, GangSummary, SetEntry};
use pellucid_cluster::gangs::{Definition, Gang, GangFrom};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::gang::GangMode;
use pellucid_model::{GangKey, Now};
use pellucid_recording::rfc3339;

use super::gang_state::{gang_state, partially_bound, warnings};
use super::status::{GangStatus, MemberState, MemberView, is_in_gang_unit};

/// Lists all gangs by key.
pub(crate) fn list(snapshot: &Snapshot, now: Now) -> BTreeMap<String, GangSummary> {
    let all = snapshot.cluster.gangs().all().into_iter();
    all.map(|(key, gang)| (key.to_string(), summary(snapshot, &GangStatus::of_gang(snapshot, gang), now)))
        .collect()
}

/// Returns one gang. Fails when the gang is unknown.
pub(crate) fn one(snapshot: &Snapshot, key: &GangKey, now: Now) -> Result<GangSummary, ReadError> {
    Ok(summary(snapshot, &super::find(snapshot, key)?, now))
}

fn summary(snapshot: &Snapshot, status: &GangStatus<'_>, now: Now) -> GangSummary {
    let gang = status.gang;
    let (definition, history) = (&gang.definition, &gang.history);
    let of = |which: fn(MemberState) -> bool| status.map(snapshot, now, which);
    let rules = snapshot.profiles.iter().find_map(|p| p.gang_rules()).unwrap_or_default();
    let rounds = status.members.iter().filter_map(|m| Some((m.key.to_string(), m.live?.2.round)));
    GangSummary {
        name: gang.key.to_string(),
        wait_time: i64::try_from(gang.wait(rules.permit_wait).as_nanos()).unwrap_or(i64::MAX),
        create_time: created(definition),
        mode: definition.mode.as_str().into(),
        mode_note: mode_note(definition.mode).into(),
        // The other dialects count every member that has a place.
        gang_match_policy: gang.policy().map_or("waiting-and-running", |policy| policy.as_str()).into(),
        min_required_number: definition.min,
        total_children_num: definition.total.unwrap_or(definition.min),
        gang_group: named_group(gang).iter().map(ToString::to_string).collect(),
        children: of(|_| true),
        pending_children: of(MemberState::is_pending),
        waiting_for_bind_children: of(MemberState::is_held),
        bound_children: of(|s| s == MemberState::Bound),
        permitted_children: of(|s| s == MemberState::Permitted),
        gated_children: of(|s| s == MemberState::Gated),
        finished_children: of(|s| s == MemberState::Finished),
        failed_children: of(|s| s == MemberState::Failed),
        not_evaluated_children: of(|s| s == MemberState::NotEvaluated),
        counts: status.counts,
        once_resource_satisfied: gang.was_satisfied(),
        gang_group_info: group_info(snapshot, gang),
        gang_from: match definition.from {
            GangFrom::PodGroup(_) => "GangFromPodGroupCrd",
            GangFrom::Pods => "GangFromPodAnnotation",
        }
        .into(),
        has_gang_init: definition.undefined.is_none(),
        schedule_cycle: history.schedule_cycle,
        schedule_cycle_valid: history.is_cycle_valid,
        children_schedule_round_map: rounds.collect(),
        attempts: history.attempts,
        timeouts: history.timeouts,
        dialect: definition.dialect.as_str().into(),
        warnings: warnings(snapshot, status),
        held: status.held(),
        state: gang_state(snapshot, status, now).name.into(),
        last_release: release(gang),
        partially_bound: partially_bound(snapshot, status),
    }
}

fn created(definition: &Definition) -> Option<String> {
    // A gang without pods and without a PodGroup has no creation time.
    let seconds = u64::try_from(definition.created).ok().filter(|_| definition.created < i64::MAX)?;
    Some(rfc3339(std::time::Duration::from_secs(seconds)))
}

/// Explains what `waiting` means in a mode.
pub(super) fn mode_note(mode: GangMode) -> &'static str {
    match mode {
        GangMode::Strict => {
            "the quorum is planned at once, all or nothing: no member waits with a place, so waiting fills only in \
             NonStrict"
        }
        GangMode::NonStrict => "members that fit take their places and wait for the others until a deadline",
    }
}

fn named_group(gang: &Gang) -> Vec<GangKey> {
    match gang.definition.groups.is_empty() {
        true => vec![gang.key.clone()],
        false => gang.definition.groups.to_vec(),
    }
}

fn group_info(snapshot: &Snapshot, gang: &Gang) -> GangGroupInfo {
    let gangs = snapshot.cluster.gangs();
    let mut named = named_group(gang);
    named.sort();
    let known: Vec<&Gang> = named.iter().filter_map(|key| gangs.get(key)).map(|g| &**g).collect();
    let is_ready = |g: &&Gang| g.definition.undefined.is_none() && g.has_partners();
    let is_waiting = |key: &&GangKey| gangs.get(key).is_none_or(|g| !g.is_satisfied());
    let statuses: Vec<GangStatus<'_>> =
        known.iter().map(|gang| GangStatus::of_gang(snapshot, gang)).collect();
    let members = || statuses.iter().flat_map(|s| &s.members);
    let is_in_unit = |m: &&MemberView<'_>| m.live.is_some_and(|(id, ..)| is_in_gang_unit(snapshot, id));
    let names: Vec<String> = named.iter().map(ToString::to_string).collect();
    GangGroupInfo {
        initialized: known.len() == named.len() && known.iter().all(is_ready),
        gang_group_id: names.join(","),
        gang_group: names,
        once_resource_satisfied: known.len() == named.len() && known.iter().all(|g| g.was_satisfied()),
        waiting_gang_ids: set(named.iter().filter(is_waiting)),
        representative_pod_key: members().find(is_in_unit).map(|m| m.key.to_string()).unwrap_or_default(),
        binding_member_pods: set(members().filter(|m| m.state == MemberState::Permitted).map(|m| m.key)),
    }
}

fn set<T: ToString>(keys: impl Iterator<Item = T>) -> BTreeMap<String, SetEntry> {
    keys.map(|key| (key.to_string(), SetEntry {})).collect()
}

/// Returns why the gang's waiting members were last released.
pub(super) fn release(gang: &Gang) -> Option<GangRelease> {
    gang.history.last_release.map(|release| GangRelease {
        code: release.code.as_str().into(),
        at: rfc3339(release.at.wall),
        members: release.members,
    })
}
