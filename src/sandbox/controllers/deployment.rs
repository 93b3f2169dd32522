//! Deployments: one ReplicaSet per template, with rolling updates within `maxSurge` and `maxUnavailable`.

use serde_json::{Value, json};

use super::{DEPLOYMENTS, REPLICA_SETS, Rounding, hash, living, owner, set_status, share};
use crate::api::Api;
use crate::clock::seconds;
use crate::fields::{list, text};
use crate::kinds::meta;
use crate::kinds::registry::Kind;
use crate::options::{DeleteOptions, Options};
use crate::store::{Key, Object};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// A ReplicaSet of a Deployment, with its counts.
struct Set {
    key: Key,
    wanted: i64,
    replicas: i64,
    available: i64,
    revision: i64,
}

/// Takes a Deployment one step closer to its spec.
pub(super) fn reconcile(api: &Api, key: &Key) {
    let Some((kind, object, value)) = living(api, DEPLOYMENTS, key) else { return };
    let Some(set_kind) = api.kind_of(REPLICA_SETS) else { return };
    let name: Key = (key.0.clone(), format!("{}-{}", key.1, hash(&value["spec"]["template"])).into());
    let owned = api.store.owned(REPLICA_SETS, &object.uid);
    let sets: Vec<Set> = owned.iter().filter(|set| !set.is_deleting).map(|set| numbers(set)).collect();
    let (mut new, mut old): (Vec<Set>, Vec<Set>) = sets.into_iter().partition(|set| set.key == name);
    old.sort_by_key(|set| set.revision);
    let wanted = value["spec"]["replicas"].as_i64().unwrap_or(1);
    if value["spec"]["paused"] != true || new.is_empty() && old.is_empty() {
        let newest = old.last().map_or(0, |set| set.revision);
        match new.first_mut() {
            Some(set) if set.revision < newest => set_revision(api, &set_kind, &set.key, newest + 1),
            Some(_) => {}
            None => {
                let created = create(api, (&kind, &value), &set_kind, &name, newest + 1, &old);
                new.extend(created);
            }
        }
        if let Some(set) = new.first() {
            set_revision(api, &kind, key, set.revision.max(newest + i64::from(set.revision < newest)));
        }
        match value["spec"]["strategy"]["type"].as_str() {
            Some("Recreate") => recreate(api, &set_kind, wanted, new.first(), &old),
            _ => roll(api, &set_kind, &value, wanted, new.first(), &old),
        }
        let limit = value["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10) as usize;
        let idle: Vec<&Set> = old.iter().filter(|set| set.wanted == 0 && set.replicas == 0).collect();
        for set in idle.iter().take(idle.len().saturating_sub(limit)) {
            let _ = api.delete(&set_kind, &set.key, &DeleteOptions::controller());
        }
    }
    let status = status(api, &value, wanted, new.first(), &old);
    set_status(api, &kind, key, &status);
}

fn numbers(set: &Object) -> Set {
    let value = set.value();
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    Set {
        key: set.key.clone(),
        wanted: number(&value["spec"]["replicas"]),
        replicas: number(&value["status"]["replicas"]),
        available: number(&value["status"]["availableReplicas"]),
        revision: text(&value["metadata"]["annotations"][REVISION]).parse().unwrap_or_default(),
    }
}

fn create(
    api: &Api,
    (kind, deployment): (&Kind, &Value),
    set_kind: &Kind,
    name: &Key,
    revision: i64,
    old: &[Set],
) -> Option<Set> {
    let (spec, hash) = (&deployment["spec"], name.1.rsplit('-').next().unwrap_or_default());
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    let replicas = if old.is_empty() { spec["replicas"].clone() } else { 0.into() };
    let set = json!({
        "metadata": {
            "name": &*name.1, "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()}, "ownerReferences": owner(kind, deployment)
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template}
    });
    let written = api.create(set_kind, &name.0, set, &Options::controller()).ok()?;
    Some(numbers(&written.object))
}

fn set_revision(api: &Api, kind: &Kind, key: &Key, revision: i64) {
    // On failure, the next reconciliation retries.
    api.edit(kind, key, |object| {
        object["metadata"]["annotations"][REVISION] = revision.to_string().into();
        Ok(())
    });
}

fn scale(api: &Api, kind: &Kind, set: &Set, replicas: i64) {
    if set.wanted == replicas {
        return;
    }
    // On failure, the next reconciliation retries.
    api.edit(kind, &set.key, |object| {
        object["spec"]["replicas"] = replicas.into();
        Ok(())
    });
}

/// Scales the old ReplicaSets to zero before the new one is scaled up.
fn recreate(api: &Api, kind: &Kind, wanted: i64, new: Option<&Set>, old: &[Set]) {
    old.iter().for_each(|set| scale(api, kind, set, 0));
    let is_clear = old.iter().all(|set| set.replicas == 0 && set.wanted == 0);
    if let (Some(new), true) = (new, is_clear) {
        scale(api, kind, new, wanted);
    }
}

/// Scales the new ReplicaSet up within the surge, and the old ones down while enough pods are available.
fn roll(api: &Api, kind: &Kind, deployment: &Value, wanted: i64, new: Option<&Set>, old: &[Set]) {
    let Some(new) = new else { return };
    let strategy = &deployment["spec"]["strategy"]["rollingUpdate"];
    let surge = share(&strategy["maxSurge"], wanted, Rounding::Up);
    let mut missing = share(&strategy["maxUnavailable"], wanted, Rounding::Down);
    if surge == 0 && missing == 0 {
        missing = 1;
    }
    let old_wanted: i64 = old.iter().map(|set| set.wanted).sum();
    let room = (wanted + surge - old_wanted - new.wanted).max(0);
    let target = if new.wanted > wanted { wanted } else { wanted.min(new.wanted + room) };
    scale(api, kind, new, target);
    let available: i64 = old.iter().chain([new]).map(|set| set.available).sum();
    let mut may_go = available - (wanted - missing);
    for set in old {
        // Pods that are not available may always go.
        let idle = (set.wanted - set.available).max(0);
        let going = idle + may_go.clamp(0, set.wanted - idle);
        may_go -= going - idle;
        scale(api, kind, set, set.wanted - going);
    }
}

fn status(api: &Api, deployment: &Value, wanted: i64, new: Option<&Set>, old: &[Set]) -> Value {
    let sum = |number: fn(&Set) -> i64| old.iter().chain(new).map(number).sum::<i64>();
    let (replicas, available) = (sum(|set| set.replicas), sum(|set| set.available));
    let updated = new.map_or(0, |set| set.replicas);
    let missing =
        share(&deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], wanted, Rounding::Down);
    let mut status = json!({"observedGeneration": deployment["metadata"]["generation"]});
    let counts = [
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", available),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted.max(replicas) - available).max(0)),
    ];
    for (key, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[key] = count.into();
    }
    let is_complete = updated == wanted && replicas == wanted && available == wanted;
    let progress = if is_complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    let is_available = available >= wanted - missing;
    let available = if is_available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let now = seconds(api.clock.now());
    status["conditions"] = json!([
        condition(deployment, "Available", is_available, available, &now),
        condition(deployment, "Progressing", true, progress, &now),
    ]);
    status
}

/// Returns a condition. Its times change only with its content.
fn condition(deployment: &Value, kind: &str, is_true: bool, reason: &str, now: &str) -> Value {
    let word = if is_true { "True" } else { "False" };
    let conditions = list(&deployment["status"]["conditions"]);
    let old = conditions.iter().find(|c| c["type"] == kind && c["status"] == word);
    let updated =
        old.filter(|c| c["reason"] == reason).map_or(now, |c| c["lastUpdateTime"].as_str().unwrap_or(now));
    let changed = old.map_or(now, |c| c["lastTransitionTime"].as_str().unwrap_or(now));
    let message = format!("Deployment \"{}\": {reason}.", meta::text(deployment, "name"));
    json!({
        "type": kind, "status": word, "reason": reason, "message": message, "lastUpdateTime": updated,
        "lastTransitionTime": changed
    })
}
