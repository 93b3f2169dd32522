//! What happens to a reservation beside what its pod tells: owners that come and go, and why it ended.
//!
//! It is told of what stands on the object, so each happening is told once, whoever decided it.

use std::sync::Arc;

use pellucid_cluster::derived::Told;
use pellucid_model::quantity::format_amount;
use pellucid_model::{CustomObject, Name, PodKey};

use super::super::object::{Phase, Reservation};

/// Returns what a change of a reservation's object means for its history.
pub(in super::super) fn told(old: Option<&CustomObject>, new: Option<&CustomObject>) -> Vec<Told> {
    let read = |object: Option<&CustomObject>| object.and_then(CustomObject::shared::<Reservation>);
    let Some(now) = read(new) else {
        return read(old).and_then(|spec| deleted(&spec)).into_iter().collect();
    };
    // One that was made anew under the same name has nothing in common with the old one.
    let is_same = old.zip(new).is_some_and(|(old, new)| old.uid == new.uid);
    let before = read(old.filter(|_| is_same));
    let mut all = Vec::new();
    let problem = problem_of(new, &now);
    if problem.is_some() && problem != before.as_ref().and_then(|before| problem_of(old, before)) {
        let text = format!("It cannot be placed as it is written: {}.", problem.unwrap_or_default());
        all.push(Told { kind: "NotPlaceable", by: None, node: None, text });
    }
    if let Some(before) = before {
        all.extend(moves(&before, &now));
        all.extend(end(&before, &now));
    }
    all
}

/// Returns what is wrong with how a reservation is written.
fn problem_of(object: Option<&CustomObject>, spec: &Reservation) -> Option<String> {
    let template = object.and_then(|object| object.pod.as_ref()?.as_ref().err().cloned());
    spec.problem().or(template.map(|problem: Arc<str>| format!("spec.template.{problem}")))
}

/// Returns the deletion of a reservation whose pod has left before.
fn deleted(spec: &Reservation) -> Option<Told> {
    let is_silent = spec.status.phase.has_ended() || spec.problem().is_some();
    let text = "It is deleted.".to_owned();
    is_silent.then(|| Told { kind: "Deleted", by: None, node: None, text })
}

/// Returns the owners that came and left.
fn moves(before: &Reservation, now: &Reservation) -> Vec<Told> {
    let key = |owner: &String| owner.split_once('/').map(|(namespace, name)| PodKey::new(namespace, name));
    let node = now.status.node.clone().or_else(|| before.status.node.clone());
    let of = |kind, owner: &String, text| Told { kind, by: key(owner), node: node.clone(), text };
    let (old, new) = (&before.status.owners, &now.status.owners);
    let left = old.iter().filter(|owner| !new.contains(owner));
    let left = left.map(|owner| of("OwnerLeft", owner, format!("{owner} is not in it any more.")));
    let came = new.iter().filter(|owner| !old.contains(owner));
    let came = came.map(|owner| of("OwnerCame", owner, format!("{owner} stands in it{}.", used(now))));
    left.chain(came).collect()
}

/// Says what the owners have of a reservation.
fn used(now: &Reservation) -> String {
    let amount = |(name, amount): (&Name, &i64)| format!("{name} {}", format_amount(name, *amount));
    let all: Vec<String> = now.status.allocated.iter().map(amount).collect();
    match (now.status.phase, all.is_empty()) {
        (Phase::Succeeded, _) => " and uses it up".to_owned(),
        (_, true) => String::new(),
        (_, false) => format!("; its owners have {} of it", all.join(", ")),
    }
}

/// Returns why a reservation failed.
fn end(before: &Reservation, now: &Reservation) -> Option<Told> {
    if now.status.phase != Phase::Failed || before.status.phase == Phase::Failed {
        return None;
    }
    let ready = now.status.conditions.iter().find(|condition| condition["type"] == "Ready")?;
    let node = before.status.node.clone();
    let (kind, text) = match ready["reason"].as_str()? {
        "Preempted" => ("Preempted", ready["message"].as_str().unwrap_or_default().to_owned()),
        "Expired" if now.expires.is_some_and(|at| at <= now.ended_at()) => {
            ("Expired", "It has expired: what is left of it is free.".to_owned())
        }
        "Expired" => ("Expired", "Its node is gone.".to_owned()),
        _ => return None,
    };
    Some(Told { kind, by: None, node, text })
}

#[cfg(test)]
mod tests {
    use pellucid_model::CustomKindRef;
    use serde_json::{Value, json};

    use super::super::super::RESERVATION;
    use super::*;

    fn object(uid: &str, owners: &Value, status: &Value) -> CustomObject {
        let manifest = json!({
            "metadata": {"name": "r", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"owners": owners, "template": {"spec": {}}, "ttl": "60s"},
            "status": status,
        });
        CustomObject {
            kind: CustomKindRef(&RESERVATION),
            namespace: Name::default(),
            name: "r".into(),
            uid: uid.into(),
            resource_version: "1".into(),
            value: (RESERVATION.decode)(&manifest).expect("a reservation"),
            pod: None,
        }
    }

    fn said(old: Option<&CustomObject>, new: Option<&CustomObject>) -> Vec<String> {
        told(old, new).into_iter().map(|told| format!("{}: {}", told.kind, told.text)).collect()
    }

    #[test]
    fn owners_come_and_go() {
        let owners = json!([{"labelSelector": {}}]);
        let with = |uid: &str, names: &[&str], cpu: &str| {
            let owner = |name: &&str| json!({"namespace": "team", "name": name});
            let owned: Vec<Value> = names.iter().map(owner).collect();
            let status = json!({"phase": "Available", "nodeName": "n", "currentOwners": owned, "allocated": {"cpu": cpu}});
            object(uid, &owners, &status)
        };
        let (none, one, other) = (with("u", &[], "0"), with("u", &["a"], "1500m"), with("u", &["b"], "1"));
        assert_eq!(said(None, Some(&one)), [] as [&str; 0], "what was before is not told");
        assert_eq!(
            said(Some(&none), Some(&one)),
            ["OwnerCame: team/a stands in it; its owners have cpu 1500m of it."]
        );
        let moved = said(Some(&one), Some(&other));
        assert_eq!(moved[0], "OwnerLeft: team/a is not in it any more.");
        assert_eq!(moved[1], "OwnerCame: team/b stands in it; its owners have cpu 1 of it.");
        assert_eq!(said(Some(&one), Some(&with("v", &["b"], "1"))), [] as [&str; 0], "it is another one");
    }

    #[test]
    fn an_end_says_why() {
        let owners = json!([{"labelSelector": {}}]);
        let open = object("u", &owners, &json!({"phase": "Available", "nodeName": "n"}));
        let ended = |reason: &str, at: &str| {
            let ready = json!({"type": "Ready", "status": "False", "reason": reason, "message": "for a", "lastTransitionTime": at});
            object("u", &owners, &json!({"phase": "Failed", "nodeName": "n", "conditions": [ready]}))
        };
        for (reason, at, told) in [
            ("Expired", "2026-01-01T00:01:00Z", "Expired: It has expired: what is left of it is free."),
            ("Expired", "2026-01-01T00:00:30Z", "Expired: Its node is gone."),
            ("Preempted", "2026-01-01T00:00:30Z", "Preempted: for a"),
        ] {
            let end = ended(reason, at);
            assert_eq!(said(Some(&open), Some(&end)), [told]);
            assert_eq!(said(Some(&end), Some(&end)), [] as [&str; 0]);
            assert_eq!(said(Some(&end), None), ["Deleted: It is deleted."]);
        }
        assert_eq!(said(Some(&open), None), [] as [&str; 0], "its pod tells");
    }

    #[test]
    fn one_that_cannot_be_placed_says_so_once() {
        let wrong = object("u", &json!([{}]), &json!({}));
        let told = said(None, Some(&wrong));
        assert!(
            told[0].starts_with("NotPlaceable: It cannot be placed as it is written: spec.owners[0]"),
            "{told:?}"
        );
        assert_eq!(said(Some(&wrong), Some(&wrong)), [] as [&str; 0]);
    }
}
