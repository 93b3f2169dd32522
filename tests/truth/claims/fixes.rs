//! Fixes: carried out by the test's own code, the pod binds where it is said; without any part it does not; and in
//! company it does as `inCompany` says.

use std::time::Duration;

use serde_json::Value;

use crate::case::Case;
use crate::edits::{Done, apply, moved, takes_label_of_others};
use crate::objects::{Objects, can_leave, list, text};
use crate::report::Tally;
use crate::trial::{Live, alone};

/// The longest backoff.
const BACKOFF: Duration = Duration::from_secs(10);

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, "/suggestions?max=3");
        fits_now(case, &key, &body, tally);
        let costs: Vec<u64> =
            list(&body["fixes"]).iter().map(|fix| fix["cost"].as_u64().unwrap_or(0)).collect();
        tally.agree(case, "order of fixes", costs.is_sorted(), || format!("{key}: {costs:?}"));
        for fix in list(&body["fixes"]) {
            one(case, &key, fix, tally);
        }
    }
}

/// Returns where a pod goes after edits, when it and what is planned with it are the only ones without a node. Nobody is
/// evicted.
pub(crate) fn placed_after<'e>(
    objects: &Objects,
    key: &str,
    edits: impl Iterator<Item = &'e Value> + Clone,
) -> Result<Option<String>, String> {
    let mut keys = objects.planned_with(key);
    let mut changed = objects.only(&keys);
    let moves = moved(edits.clone());
    for edit in edits {
        match apply(&mut changed, edit) {
            Done::Yes => {}
            Done::Impossible(why) => return Err(format!("impossible: {why}")),
            Done::Unknown(what) => return Err(format!("unknown edit: {what}")),
        }
    }
    keys.extend(moves.iter().map(|(pod, _)| pod.clone()));
    changed.never_preempts(&keys);
    let mut places = alone(&changed, &keys);
    match moves.iter().find(|(pod, node)| places.get(pod) != Some(node)) {
        Some((pod, node)) => {
            Err(format!("impossible: {pod} cannot move to {node}, it goes to {:?}", places.get(pod)))
        }
        None => Ok(places.remove(key)),
    }
}

fn fits_now(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    let placed = placed_after(&case.objects, key, std::iter::empty()).expect("no edits");
    tally.check(case, "fits now", (body["fitsNow"] == true) == placed.is_some(), || {
        format!("{key}: fitsNow {}, and alone it goes to {placed:?}", body["fitsNow"])
    });
}

fn kinds(edits: &[Value]) -> String {
    let kind = |edit: &Value| edit.as_object().and_then(|e| e.keys().next().cloned()).unwrap_or_default();
    let mut kinds: Vec<String> = edits.iter().map(kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds.join("+")
}

fn one(case: &Case, key: &str, fix: &Value, tally: &mut Tally) {
    let edits = list(&fix["edits"]);
    let what = kinds(edits);
    for edit in edits {
        if let Some(label) = takes_label_of_others(&case.objects, edit) {
            tally.check(case, "overwrites a label of others", false, || format!("{key}: {label} in {edit}"));
        }
        if let Some(pod) = edit["deletePod"].as_str() {
            let leaves = case.objects.pods.get(pod).is_some_and(|pod| can_leave(&pod.json));
            tally.check(case, "deletes a pod that comes back", leaves, || format!("{key}: {edit}"));
        }
    }
    let placed = match placed_after(&case.objects, key, edits.iter()) {
        Ok(placed) => placed,
        Err(why) if why.starts_with("unknown") => return tally.skip(case, &why, || format!("{key}: {fix}")),
        Err(why) => return tally.check(case, "impossible edit", false, || format!("{key}: {why}: {fix}")),
    };
    tally.check(case, &format!("fix {what}"), placed.is_some(), || {
        format!("{key} does not fit after {}", fix["edits"])
    });
    if let (Some(said), Some(node)) = (fix["node"].as_str(), &placed) {
        tally.check(case, "node of a fix", said == node, || {
            format!("{key} goes to {node}, not to {said}, after {}", fix["edits"])
        });
    }
    let said = holds_as_said(fix);
    for left_out in 0..edits.len() {
        let (mut rest, mut parts) = (edits.to_vec(), list(&fix["parts"]).to_vec());
        rest.remove(left_out);
        parts.remove(left_out);
        let Ok(still) = placed_after(&case.objects, key, rest.iter()) else { continue };
        // What a fix has only for the sake of the others is needed beside them. What gangs take that wait for a time, give
        // their places up and come back, depends on the moment.
        let is_idle = still.is_some()
            && (fix["widened"] != true
                || !has_patient(&case.objects)
                    && in_company(case, key, &parts).iter().all(|place| matches!(place, Some(Some(_)))));
        tally.check(case, "every part is needed", !is_idle, || {
            format!("{key} fits without {} of {}", edits[left_out], fix["edits"])
        });
    }
    let Some(said) = said else { return };
    for (place, how) in in_company(case, key, list(&fix["parts"])).into_iter().zip(["at once", "one by one"])
    {
        let Some(place) = place else { return tally.skip(case, "company", || format!("{key}: {fix}")) };
        let holds = place.is_some();
        if let (Some(said), Some(node)) = (fix["nodeInCompany"].as_str(), &place) {
            tally.check(case, "node in company", said == node, || {
                format!("{key} goes to {node}, not to {said}, after {}, {how}", fix["edits"])
            });
        }
        tally.check(case, &format!("in company {}", text(&fix["inCompany"])), holds == said, || {
            format!(
                "{key} is{} placed beside the others after {}, {how}, taken by {}",
                if holds { "" } else { " not" },
                fix["edits"],
                fix["takenBy"]
            )
        });
    }
}

/// Returns whether pods of gangs are pending whose members wait for the others on nodes.
fn has_patient(objects: &Objects) -> bool {
    let mode = |pod: &Value| pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/mode"].clone();
    objects.pending().any(|(_, pod)| mode(pod) == "NonStrict")
}

/// Returns whether a fix is said to hold in company, if anything is said of that.
fn holds_as_said(fix: &Value) -> Option<bool> {
    match text(&fix["inCompany"]) {
        "holds" => Some(true),
        "taken" => Some(false),
        _ => None,
    }
}

/// Carries the parts of a fix out on the running cluster, with everybody who waits and controllers that make pods
/// again: all at once, and each when the last has had its effect, but before everybody is tried again. Returns whether
/// the pod then has a place, and which.
fn in_company(case: &Case, key: &str, parts: &[Value]) -> [Option<Option<String>>; 2] {
    [false, true].map(|one_by_one| {
        let mut live = case.again();
        live.recreates = true;
        for (at, part) in parts.iter().enumerate() {
            if !carry_out_part(&mut live, part) {
                return None;
            }
            // New nodes come together.
            let is_node =
                |part: Option<&Value>| part.is_some_and(|part| part["edit"]["copyNode"].is_object());
            if one_by_one && !(is_node(Some(part)) && is_node(parts.get(at + 1))) {
                live.run();
                live.core.wait(BACKOFF);
                live.run();
            }
        }
        live.settle();
        Some(live.place(key))
    })
}

fn carry_out_part(live: &mut Live, part: &Value) -> bool {
    live.pass_a_moment();
    live.in_place = part["recreate"] != true;
    let is_done = carry_out(live, std::slice::from_ref(&part["edit"]));
    live.in_place = false;
    is_done
}

/// Carries edits out on a running cluster: nodes and objects change, pods go, pending pods are made anew.
pub(crate) fn carry_out(live: &mut Live, edits: &[Value]) -> bool {
    for edit in edits {
        if let Some(pod) = edit["deletePod"].as_str() {
            // Somebody may have evicted it in the meantime.
            if live.objects.pods.contains_key(pod) {
                live.delete(pod);
            }
            continue;
        }
        let before = live.objects.clone();
        if !matches!(apply(&mut live.objects, edit), Done::Yes) {
            return false;
        }
        live.tell_changes(&before);
    }
    true
}
