//! The commands of a fix's parts that change pods. They are made when the fix is whole, because a command depends on the
//! other parts: a pod that another part makes anew keeps what its template says, and loses what it was given itself.

use std::collections::BTreeMap;

use pellucid_api::rest::explain::OwnerOf;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_model::{GangKey, Pod};
use serde_json::json;

use super::gang_parts::{MOST_OWNERS, names};
use super::owners::{self, Among};
use super::parts::Part;
use crate::owner::owner;

/// Adds the commands that change pods to the parts of a fix, which are in their final order.
pub(super) fn add(snapshot: &Snapshot, parts: &mut [Part]) {
    let is_change = |part: &Part| part.edit.target().is_some() && !matches!(part.edit, Edit::RemoveGates(_));
    let is_remade = parts.iter().any(|part| is_change(part) && !part.edit.is_patch());
    let last = parts.iter().rposition(is_change);
    for (at, part) in parts.iter_mut().enumerate() {
        match (part.edit.target().cloned(), &part.edit) {
            (Some(Target::Gang(key)), Edit::RemoveGates(_)) => part.command = ungated(snapshot, &key),
            (None, _) | (_, Edit::RemoveGates(_)) => {}
            _ if part.is_of_object => {}
            (Some(target), edit) => {
                let made = made(snapshot, &pods(snapshot, &target));
                let among = Among { is_remade, is_last: last == Some(at) };
                part.command = command(&made, edit, among);
                let is_of_template = |owner: &Owner| owner.as_ref().is_some_and(|(kind, _)| kind != "Job");
                // What is made from a changed template is made anew.
                part.recreate = !edit.is_patch() || made.keys().any(is_of_template);
            }
        }
    }
}

/// Kind and name of a controller.
type Owner = Option<(String, String)>;

/// Returns the pods that an edit changes: one, or the members of a gang without a place, by name.
fn pods<'s>(snapshot: &'s Snapshot, target: &Target) -> Vec<&'s Pod> {
    let cluster = &snapshot.cluster;
    let ids: Vec<_> = match target {
        Target::Pod(key) => cluster.find_pod(key).into_iter().collect(),
        Target::Gang(key) => {
            cluster.gangs().get(key).into_iter().flat_map(|gang| gang.members.keys().copied()).collect()
        }
    };
    let pending = ids.into_iter().filter_map(|id| cluster.pod(id)).filter(|record| record.node.is_none());
    let mut pods: Vec<&Pod> = pending.map(|record| &*record.pod).collect();
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods
}

/// Returns pods by the controllers that they are made from.
fn made<'s>(snapshot: &Snapshot, pods: &[&'s Pod]) -> BTreeMap<Owner, Vec<&'s Pod>> {
    let mut made: BTreeMap<Owner, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        let owner = owner(&snapshot.cluster, pod).map(|owner| (owner.kind, owner.name));
        made.entry(owner).or_default().push(pod);
    }
    made
}

/// Returns the commands, one for each controller, that change all pods alike.
fn command(made: &BTreeMap<Owner, Vec<&Pod>>, edit: &Edit, among: Among) -> Option<String> {
    if made.is_empty() || made.len() > MOST_OWNERS {
        return None;
    }
    let each = made.iter().map(|(owner, pods)| {
        let owner = owner.clone().map(|(kind, name)| OwnerOf { kind, name });
        owners::command(owner.as_ref(), pods, edit, among)
    });
    Some(each.collect::<Option<Vec<String>>>()?.join(" && "))
}

/// Returns the command that takes the gates from the members of a gang.
fn ungated(snapshot: &Snapshot, key: &GangKey) -> Option<String> {
    let gang = snapshot.cluster.gangs().get(key)?;
    let is_gated = |record: &PodRecord| record.node.is_none() && !record.pod.gates.is_empty();
    let (pods, namespace) = (names(snapshot, gang, is_gated)?.join(" "), &key.namespace);
    let patch = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
    Some(format!("for p in {pods}; do kubectl -n {namespace} patch pod $p --type=json -p '{patch}'; done"))
}
