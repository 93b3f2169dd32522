//! Parts of a gang's fixes: another quorum, less that must be free before it is planned; and what a fix does to the whole gang.

use std::collections::BTreeSet;

use pellucid_api::reason::Resolver;
use pellucid_api::rest::explain::OwnerOf;
use pellucid_api::rest::simulate::{EditBody, SetMinResource, SetQuorum};
use pellucid_api::rest::suggestions::{Fix, GangEffect};
use pellucid_cluster::PodRecord;
use pellucid_cluster::gangs::{Gang, GangFrom};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::gangs::resources::free_for;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_model::gang::Dialect;
use pellucid_model::quantity::format_amount;
use pellucid_model::{GangKey, Name, ObjectKind};
use serde_json::json;

use super::owners::MOST_NAMED;
use super::parts::{Part, cut_cost, round};
use crate::owner::owner;

/// Largest number of controllers that commands and answers name.
pub(super) const MOST_OWNERS: usize = 8;

/// Builds the part that lowers the quorum of a gang. It costs more the more it cuts.
pub(super) fn set_quorum(snapshot: &Snapshot, gang: &Gang, min: u32) -> Part {
    let (key, was) = (&gang.key, gang.definition.min);
    let edit = Edit::SetQuorum { gang: key.clone(), min };
    let body = EditBody::SetQuorum(SetQuorum { gang: key.to_string(), min });
    let text = format!("lower the quorum of gang {key} to {min} instead of {was}");
    let cut = u64::from(was.saturating_sub(min)) * 40 / u64::from(was.max(1));
    let cost = 50 + u32::try_from(cut).unwrap_or(40);
    let command = quorum_command(snapshot, gang, min);
    // A native PodGroup cannot be changed once it is there.
    let recreate = matches!(gang.definition.from, GangFrom::PodGroup(ObjectKind::PodGroupNative));
    Part { command, recreate, resolver: Resolver::PodOwner, ..Part::new(edit, body, text, cost) }
}

/// Builds the parts that lower what must be free before a gang is planned to what is free, of each resource of which more
/// is asked.
pub(super) fn set_min_resources(snapshot: &Snapshot, gang: &Gang) -> Vec<Part> {
    let (key, wanted) = (&gang.key, gang.definition.min_resources.iter());
    let GangFrom::PodGroup(kind) = gang.definition.from else { return Vec::new() };
    let Some(group) = kind.as_str().strip_prefix("PodGroup.") else { return Vec::new() };
    let part = |(resource, was): (Name, i64)| {
        let free = round(&resource, free_for(&snapshot.cluster, gang, &resource).max(0));
        let (to, from) = (format_amount(&resource, free), format_amount(&resource, was));
        let patch = json!({"spec": {"minResources": {resource.as_str(): to}}});
        let GangKey { namespace, name } = key;
        let command =
            format!("kubectl -n {namespace} patch podgroups.{group} {name} --type=merge -p '{patch}'");
        let text = format!("lower minResources of PodGroup {key} to {to} of {resource} instead of {from}");
        let body =
            SetMinResource { gang: key.to_string(), resource: resource.to_string(), amount: to.clone() };
        let edit = Edit::SetMinResource { gang: key.clone(), resource, amount: free };
        let part = Part::new(edit, EditBody::SetMinResource(body), text, cut_cost(was, free));
        (free < was).then(|| Part { resolver: Resolver::PodOwner, ..part.with_command(command) })
    };
    wanted.flat_map(|list| list.named()).filter_map(part).collect()
}

/// Returns the command that sets a quorum where the gang's dialect declares it.
fn quorum_command(snapshot: &Snapshot, gang: &Gang, min: u32) -> Option<String> {
    let GangKey { namespace, name } = &gang.key;
    if let GangFrom::PodGroup(kind) = gang.definition.from {
        let group = kind.as_str().strip_prefix("PodGroup.")?;
        let patch = json!({"spec": {"minMember": min}});
        let is_native = kind == ObjectKind::PodGroupNative;
        let patch =
            format!("kubectl -n {namespace} patch podgroups.{group} {name} --type=merge -p '{patch}'");
        return (!is_native).then_some(patch);
    }
    let label = |prefix: &str, key: &str| {
        format!("kubectl -n {namespace} label pods -l {prefix}/name={name} {prefix}/{key}={min} --overwrite")
    };
    match gang.definition.dialect {
        Dialect::Unicore => Some(label("gang.unicore.mcyou.cn", "available-count")),
        Dialect::Coscheduling => Some(label("pod-group.scheduling.sigs.k8s.io", "min-available")),
        Dialect::Koordinator => {
            let key = "gang.scheduling.koordinator.sh/min-available";
            let pods = names(snapshot, gang, |_| true)?;
            Some(format!("kubectl -n {namespace} annotate pods {} {key}={min} --overwrite", pods.join(" ")))
        }
        Dialect::KubeBatch | Dialect::Native => None,
    }
}

/// Returns the names of some members, sorted, or `None` if there are none or too many.
pub(super) fn names(
    snapshot: &Snapshot,
    gang: &Gang,
    which: impl Fn(&PodRecord) -> bool,
) -> Option<Vec<String>> {
    let records = gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id));
    let mut names: Vec<String> =
        records.filter(|record| which(record)).map(|record| record.pod.key.name.to_string()).collect();
    names.sort();
    (!names.is_empty() && names.len() <= MOST_NAMED).then_some(names)
}

/// Returns what a fix does to the whole gang.
pub(super) fn effect(snapshot: &Snapshot, key: &GangKey, fix: &Fix) -> Option<GangEffect> {
    let gang = snapshot.cluster.gangs().get(key)?;
    let of_fix = fix.edits.iter().find_map(|edit| match edit {
        EditBody::SetQuorum(set) if set.gang == key.to_string() => Some(set.min),
        _ => None,
    });
    let (placed, members) = (fix.slots?, gang.members.len() as u32);
    let (min, all) = (of_fix.unwrap_or(gang.definition.min), placed >= members);
    let what = if all { "the whole gang".to_string() } else { format!("a quorum of {min}") };
    let text = format!("{placed} of {members} members have places then: {what}");
    let pending = gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id)).filter(|r| r.node.is_none());
    let owners = pending.filter_map(|r| owner(&snapshot.cluster, &r.pod));
    let owners: BTreeSet<String> = owners.map(|OwnerOf { kind, name }| format!("{kind}/{name}")).collect();
    let owners = owners.into_iter().take(MOST_OWNERS).collect();
    Some(GangEffect { gang: key.to_string(), placed, members, min, all, owners, text })
}
