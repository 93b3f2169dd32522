//! What is said of a reservation that has no place, as of any pod: whether it fits, what would have to leave, what would
//! help, and which nodes are the nearest.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::case::Case;
use crate::edits::{Done, apply, moved};
use crate::objects::{Objects, list, text};
use crate::report::Tally;
use crate::trial::Live;

pub(crate) fn look(case: &Case, tally: &mut Tally) {
    for key in case.reservations() {
        let explained = case.of_pod(key, "");
        let feasibility = case.of_pod(key, "/feasibility?copies=1");
        let (outlook, verdict) = (&explained["outlook"], &feasibility["verdict"]);
        if outlook.is_object() {
            tally.agree(case, "a reservation's outlook", outlook["code"] == verdict["code"], || {
                format!("{key}: explain says {outlook}, feasibility {verdict}")
            });
        }
        // An outlook says which pods would leave too.
        one(case, key, if outlook.is_object() { outlook } else { verdict }, tally);
        fixes(case, key, tally);
        would_free(case, key, tally);
    }
}

/// Returns the node of a reservation that is the only one without a place. One over a pod that uses it up ends there at once.
fn place(objects: &Objects, key: &str) -> Option<String> {
    place_beside(objects, key, Vec::new())
}

/// Does the same when other pods are without a place too.
fn place_beside(objects: &Objects, key: &str, mut others: Vec<String>) -> Option<String> {
    others.push(key.to_owned());
    let mut live = Live::of(objects.only(&others));
    live.settle();
    let used_up = || {
        let status = &live.objects.stood_for(key)?["status"];
        (status["phase"] == "Succeeded").then(|| text(&status["nodeName"]).to_owned())
    };
    live.place(key).or_else(used_up)
}

fn one(case: &Case, key: &str, said: &Value, tally: &mut Tally) {
    let objects = &case.objects;
    let code = text(&said["code"]);
    let class = format!("a reservation's {code}");
    let fits = place(objects, key);
    tally.check(case, &format!("{class}, now"), fits.is_some() == (code == "FitsNow"), || {
        format!("{key}: {said}, and it goes to {fits:?}")
    });
    let emptied = || objects.emptied_and_reported(&BTreeSet::new());
    let leave = list(&said["wouldLeave"]);
    match code {
        "NotNow" if !leave.is_empty() => {
            let mut rest = objects.clone();
            let all_go = leave.iter().all(|pod| rest.delete_called(text(pod)));
            let on = place(&rest, key);
            tally.check(case, &class, all_go && on.as_deref() == said["node"].as_str(), || {
                format!("{key}: {said}, and without these (all can leave: {all_go}) it goes to {on:?}")
            });
        }
        "NotNow" => {
            let kept = place(&emptied(), key);
            let on = kept.or_else(|| place(&emptied().only_reservation(key), key));
            tally.check(case, &class, on.is_some(), || format!("{key}: {said}, and emptied it has no place"));
        }
        "NeverFits" => {
            let on = place(&emptied(), key);
            tally.check(case, &class, on.is_none(), || format!("{key}: {said}, and emptied it is on {on:?}"));
        }
        _ => {}
    }
}

fn fixes(case: &Case, key: &str, tally: &mut Tally) {
    let body = case.of_pod(key, "/suggestions?max=3");
    for fix in list(&body["fixes"]) {
        let mut changed = case.objects.clone();
        let mut is_done = true;
        for edit in list(&fix["edits"]) {
            is_done &= matches!(apply(&mut changed, edit), Done::Yes);
        }
        let named = key.rsplit(':').next().unwrap_or_default();
        for part in list(&fix["parts"]) {
            let is_of_it = part["edit"].to_string().contains(key);
            let names_it = text(&part["text"]).ends_with(&format!("(in Reservation {named})"))
                && part["owner"] == json!({"kind": "Reservation", "name": named})
                && part["recreate"].as_bool() != Some(true)
                && part["command"].is_null();
            tally.agree(case, "a reservation's fix names it", !is_of_it || names_it, || {
                format!("{key}: {part}")
            });
        }
        let moves = moved(list(&fix["edits"]).iter());
        let on = place_beside(&changed, key, moves.into_iter().map(|(pod, _)| pod).collect());
        tally.check(case, "a reservation's fix", is_done && on.as_deref() == fix["node"].as_str(), || {
            format!("{key} goes to {on:?} after {fix} (possible: {is_done})")
        });
    }
    let is_named = !list(&body["fixes"]).is_empty() || body["fitsNow"] == true;
    let placed: Vec<&String> = case.objects.placed().map(|(pod, _)| pod).collect();
    let helps = placed.into_iter().filter(|_| !is_named).find(|pod| {
        let mut rest = case.objects.clone();
        matches!(apply(&mut rest, &json!({"deletePod": pod})), Done::Yes) && place(&rest, key).is_some()
    });
    tally.named(case, "no fix named of a reservation", helps.is_none(), || {
        format!("{key}: the end of {helps:?} would do, and none is named: {}", body["note"])
    });
}

fn would_free(case: &Case, key: &str, tally: &mut Tally) {
    for near in list(&case.of_pod(key, "/nearest?k=3")["nodes"]) {
        let Some(goes) = near["wouldFree"].as_array() else { continue };
        let node = text(&near["node"]);
        let mut objects = case.objects.clone();
        goes.iter().for_each(|pod| _ = objects.delete_called(text(pod)));
        objects.close_all_but(node);
        let on = place(&objects, key);
        tally.check(case, "would free for a reservation", on.as_deref() == Some(node), || {
            format!("{key} goes to {on:?}, not to {node}, without {goes:?}")
        });
    }
}
