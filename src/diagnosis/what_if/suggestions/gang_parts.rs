//! Parts of a gang's fixes: another quorum, and commands that change what the members are made from.

use std::collections::BTreeSet;

use pellucid_api::reason::Resolver;
use pellucid_api::rest::simulate::{EditBody, SetQuorum};
use pellucid_api::rest::suggestions::{Fix, GangEffect};
use pellucid_cluster::PodRecord;
use pellucid_cluster::gangs::{Gang, GangFrom};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_model::gang::Dialect;
use pellucid_model::{GangKey, ObjectKind, Pod};
use serde_json::json;

use super::parts::{Part, exact};

/// Largest number of pods that a command names.
const MOST_NAMED: usize = 100;
/// Largest number of controllers that commands and answers name.
const MOST_OWNERS: usize = 8;

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
fn names(snapshot: &Snapshot, gang: &Gang, which: impl Fn(&PodRecord) -> bool) -> Option<Vec<String>> {
    let records = gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id));
    let mut names: Vec<String> =
        records.filter(|record| which(record)).map(|record| record.pod.key.name.to_string()).collect();
    names.sort();
    (!names.is_empty() && names.len() <= MOST_NAMED).then_some(names)
}

/// Adds to a part that changes a gang's members the command that changes what they are made from.
pub(super) fn with_command(snapshot: &Snapshot, part: Part) -> Part {
    let Some(Target::Gang(key)) = part.edit.target() else { return part };
    let Some(gang) = snapshot.cluster.gangs().get(key) else { return part };
    let is_pending = |record: &PodRecord| record.node.is_none();
    if matches!(part.edit, Edit::RemoveGates(_)) {
        let patch = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
        let pods = names(snapshot, gang, |r| is_pending(r) && !r.pod.gates.is_empty());
        let command = pods.map(|pods| {
            let (pods, namespace) = (pods.join(" "), &key.namespace);
            format!("for p in {pods}; do kubectl -n {namespace} patch pod $p --type=json -p '{patch}'; done")
        });
        return Part { command, ..part };
    }
    let pending = || gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id)).filter(|r| is_pending(r));
    let is_single = pending().all(|record| record.pod.spec.n_containers == 1);
    let owners: BTreeSet<Option<(String, String)>> = pending().map(|record| owner(&record.pod)).collect();
    let owners: Option<Vec<(String, String)>> = owners.into_iter().collect();
    let program = program(&part.edit, is_single);
    let command = owners.filter(|all| (1..=MOST_OWNERS).contains(&all.len())).zip(program);
    let command = command.and_then(|(owners, program)| {
        let all = owners.iter().map(|(kind, name)| change(&key.namespace, kind, name, &program));
        Some(all.collect::<Option<Vec<_>>>()?.join(" && "))
    });
    // What is made from a changed template is made anew.
    let recreate = part.recreate || command.is_some();
    Part { command, recreate, ..part }
}

/// Returns kind and name of what a pod is made from. A Deployment is known from its ReplicaSet, whose name ends with the
/// hash that the pod has as a label.
fn owner(pod: &Pod) -> Option<(String, String)> {
    let controller = pod.controller.as_ref()?;
    let hash = pod.labels.get(&"pod-template-hash".into());
    let deployment = hash.and_then(|hash| controller.name.strip_suffix(&**hash)?.strip_suffix('-'));
    Some(match deployment.filter(|_| &*controller.kind == "ReplicaSet") {
        Some(name) => ("Deployment".into(), name.into()),
        None => (controller.kind.to_string(), controller.name.to_string()),
    })
}

/// Returns the jq program that makes a change of pods in their template. Which container requests what is not known, so
/// requests are set for pods of one container.
fn program(edit: &Edit, is_single: bool) -> Option<String> {
    let spec = ".spec.template.spec";
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    Some(match edit {
        Edit::SetRequest { resource, amount, .. } if is_single => {
            let amount = json!(exact(resource, *amount));
            let set =
                |list: &str| format!("{spec}.containers[0].resources.{list}[\"{resource}\"] = {amount}");
            // The limit of an extended resource is its request.
            match resource.contains('/') {
                true => format!("{} | {}", set("requests"), set("limits")),
                false => set("requests"),
            }
        }
        Edit::AddToleration { taint, .. } => {
            let toleration = json!({
                "key": &*taint.key, "operator": "Equal", "value": &*taint.value, "effect": taint.effect.as_str(),
            });
            format!("{spec}.tolerations += [{toleration}]")
        }
        Edit::LabelPod { key, value, .. } => {
            format!(".spec.template.metadata.labels[\"{key}\"] = \"{value}\"")
        }
        Edit::AnnotatePod { key, value, .. } => {
            format!(".spec.template.metadata.annotations[\"{key}\"] = {}", json!(&**value))
        }
        Edit::DropNodeAffinity(_) => {
            format!("del({spec}.nodeName, {spec}.nodeSelector, {spec}.affinity.nodeAffinity.{required})")
        }
        Edit::DropHostPorts(_) => format!("del({spec}.containers[].ports[]?.hostPort)"),
        Edit::RelaxSpread(_) => {
            format!("{spec}.topologySpreadConstraints[]?.whenUnsatisfiable = \"ScheduleAnyway\"")
        }
        Edit::DropPodAffinity(_) => format!("del({spec}.affinity.podAffinity.{required})"),
        Edit::DropPodAntiAffinity(_) => format!("del({spec}.affinity.podAntiAffinity.{required})"),
        _ => return None,
    })
}

/// Returns the command that changes a controller. The template of a Job cannot change, so the Job is made anew.
fn change(namespace: &str, kind: &str, name: &str, program: &str) -> Option<String> {
    let kind = match kind {
        "Deployment" => "deployment.apps",
        "ReplicaSet" => "replicaset.apps",
        "StatefulSet" => "statefulset.apps",
        "ReplicationController" => "replicationcontroller",
        "Job" => "job.batch",
        _ => return None,
    };
    let get = format!("kubectl -n {namespace} get {kind} {name} -o json");
    if kind != "job.batch" {
        return Some(format!("{get} | jq '{program}' | kubectl replace -f -"));
    }
    let made = "del(.spec.selector, .spec.template.metadata.labels[\"controller-uid\", \
                \"batch.kubernetes.io/controller-uid\"], .metadata.uid, .metadata.resourceVersion, .status)";
    Some(format!("{get} | jq '{program} | {made}' | kubectl replace --force -f -"))
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
    let owners: BTreeSet<String> =
        pending.filter_map(|r| owner(&r.pod)).map(|(kind, name)| format!("{kind}/{name}")).collect();
    let owners = owners.into_iter().take(MOST_OWNERS).collect();
    Some(GangEffect { gang: key.to_string(), placed, members, min, all, owners, text })
}
