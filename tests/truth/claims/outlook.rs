//! Never, not now, fits now, after preemption: each is tried on the cluster emptied as it says.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case::Case;
use crate::model::{term_matches, terms};
use crate::objects::{Objects, gang_of, list, text};
use crate::report::Tally;
use crate::trial::{Live, alone, single_on};

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let explained = case.of_pod(&key, "");
        let feasibility = case.of_pod(&key, "/feasibility?copies=3");
        let (outlook, verdict) = (&explained["outlook"], &feasibility["verdict"]);
        if outlook.is_object() {
            tally.agree(case, "outlook and feasibility", outlook["code"] == verdict["code"], || {
                format!("{key}: explain says {}, feasibility {}", outlook["code"], verdict["code"])
            });
            one(case, &key, "outlook", outlook, tally);
        }
        if outlook["code"] != verdict["code"] {
            one(case, &key, "feasibility", verdict, tally);
        }
    }
}

/// Returns the pods on nodes that a pod's required affinity wants beside it.
pub(crate) fn wanted(objects: &Objects, keys: &[String]) -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    for key in keys {
        let pod = objects.pod(key);
        let beside = terms(pod, "podAffinity");
        let matches = |other: &Value| beside.iter().any(|term| term_matches(pod, term, other));
        kept.extend(objects.placed().filter(|(_, other)| matches(other)).map(|(key, _)| key.clone()));
    }
    kept
}

/// Returns whether a pod is placed when it and its gang are the only ones without a node.
fn places(objects: &Objects, key: &str, preempts: bool) -> bool {
    let keys = objects.planned_with(key);
    let mut objects = objects.only(&keys);
    if !preempts {
        objects.never_preempts(&keys);
    }
    alone(&objects, &keys).contains_key(key)
}

/// Returns whether a pod is placed when it is the only one without a node: of a gang's members, one beside its quorum.
fn places_beside(objects: &Objects, key: &str) -> bool {
    let keys = [key.to_owned()];
    let mut objects = objects.only(&keys);
    objects.never_preempts(&keys);
    alone(&objects, &keys).contains_key(key)
}

/// Returns whether a pod is placed with everything gone that can go, or everything but what the pod wants beside it. The
/// placed members of a gang stay where they hold its quorum.
fn places_when_emptied(objects: &Objects, key: &str, with_reservations: bool) -> [bool; 2] {
    let emptied = |keeps: &BTreeSet<String>| {
        let rest = objects.emptied_and_reported(keeps);
        if with_reservations { rest } else { rest.without_reservations() }
    };
    let all = places(&emptied(&BTreeSet::new()), key, true);
    let mut keeps = wanted(objects, &objects.planned_with(key));
    if let Some(gang) = gang_of(objects.pod(key)) {
        let group = objects.gang_group(&gang);
        let is_own = |pod: &Value| gang_of(pod).is_some_and(|gang| group.contains(&gang));
        keeps.extend(objects.placed().filter(|(_, pod)| is_own(pod)).map(|(key, _)| key.clone()));
    }
    [all, if keeps.is_empty() { all } else { places(&emptied(&keeps), key, true) }]
}

/// Returns whether an answer says that reservations would go too.
pub(crate) fn says_reservations(said: &Value) -> bool {
    text(&said["message"]).contains("Reservations")
}

fn one(case: &Case, key: &str, route: &str, said: &Value, tally: &mut Tally) {
    let code = text(&said["code"]);
    let of_gang = if gang_of(case.objects.pod(key)).is_some() { ", a member of a gang" } else { "" };
    let class = format!("{route} {code}{of_gang}");
    let told = |what: &str| format!("{key}: {code}, but {what}; {}", said["message"]);
    if matches!(code, "HeldBack" | "NotKnown" | "") {
        let fits = places(&case.objects, key, false);
        return tally.check(case, &class, !fits, || told("it is placed as things are"));
    }
    let mut objects = case.objects.clone();
    // A held pod is asked about without what holds it.
    for member in case.objects.planned_with(key) {
        objects.change_pod(&member, |json| {
            json["spec"].as_object_mut().expect("a spec").remove("schedulingGates");
        });
    }
    let objects = &objects;
    match code {
        "FitsNow" => tally.check(case, &class, places(objects, key, false), || told("it is not placed")),
        "FitsAfterPreemption" => {
            tally.check(case, &class, places(objects, key, true), || told("it is not placed"));
        }
        "NotNow" => not_now(case, objects, (key, &class), said, tally),
        "NeverFits" => {
            // It is said of pods: reservations stay.
            let [all, kept] = places_when_emptied(objects, key, true);
            tally.check(case, &class, !all, || told("it is placed when all that can leave has left"));
            tally.check(case, &format!("{class}, targets kept"), !kept, || {
                told("it is placed when all has left but what it wants beside it")
            });
        }
        _ => tally.skip(case, code, || format!("{key}: {said}")),
    }
    if code == "NotNow" || code == "NeverFits" {
        tally.check(case, &format!("{class} is not fits now"), !places(objects, key, false), || {
            told("it is placed as things are")
        });
    }
}

fn not_now(case: &Case, objects: &Objects, (key, class): (&str, &str), said: &Value, tally: &mut Tally) {
    let (leave, node) = (list(&said["wouldLeave"]), said["node"].as_str());
    if !leave.is_empty() {
        let mut rest = objects.clone();
        let all_go = leave.iter().all(|pod| rest.delete_called(text(pod)));
        let binds = all_go
            && match node {
                Some(node) if gang_of(objects.pod(key)).is_none() => single_on(&rest, key, node),
                // A gang has places on several nodes. A member beside a quorum is scheduled on its own.
                _ => places(&rest, key, false) || places_beside(&rest, key),
            };
        return tally.check(case, &format!("{class} without the named"), binds, || {
            format!("{key} does not bind on {node:?} without {leave:?} (all can leave: {all_go})")
        });
    }
    let is_placed = |with| places_when_emptied(objects, key, with).contains(&true);
    let holds = is_placed(true) || says_reservations(said) && is_placed(false);
    tally.check(case, class, holds, || {
        format!("{key}: NotNow, but it is not placed when all that can leave has left; {}", said["message"])
    });
}

/// Returns whether pods are placed on a running cluster that is emptied.
pub(crate) fn gang_places(objects: &Objects, keys: &[String], preempts: bool) -> usize {
    let mut objects = objects.only(keys);
    if !preempts {
        objects.never_preempts(keys);
    }
    let mut live = Live::of(objects);
    live.settle();
    live.places(keys).len()
}
