//! How many copies fit, and the largest pod like it that does.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case::Case;
use crate::claims::outlook::wanted;
use crate::edits::set_request;
use crate::model;
use crate::objects::{Objects, text};
use crate::report::Tally;
use crate::trial::{Live, single};

/// Copies are counted up to this many.
const BOUND: usize = 5;

pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    for key in case.sample(pods) {
        let body = case.of_pod(&key, &format!("/feasibility?copies={BOUND}"));
        let said = |field: &str| body[field].as_u64().unwrap_or_default() as usize;
        // Where a claim's volume will be is up to its provisioner, so only the first of several copies is certain.
        let most = if is_unprovisioned(&case.objects, &key) { 1 } else { BOUND };
        let same = |said: usize, own: usize| said.min(most) == own.min(most);
        let now = fitting(&case.objects, &key);
        tally.check(case, "copies now", same(said("maxCopiesNow"), now), || {
            format!("{key}: maxCopiesNow {}, and {now} fit", body["maxCopiesNow"])
        });
        // Either everything is gone that can go, or all but what the pod needs beside it.
        let keeps = wanted(&case.objects, std::slice::from_ref(&key));
        // What reservations keep for others is gone then too.
        let objects = case.objects.clone().only_reservations_for(&key);
        let mut emptied = vec![fitting(&objects.emptied(&BTreeSet::new()), &key)];
        emptied.extend((!keeps.is_empty()).then(|| fitting(&objects.emptied(&keeps), &key)));
        let is_so = emptied.iter().any(|own| same(said("maxCopiesEmpty"), *own));
        tally.check(case, "copies when empty", is_so, || {
            format!("{key}: maxCopiesEmpty {}, and {emptied:?} fit", body["maxCopiesEmpty"])
        });
        // Copies are pods without a gang; of a member that is placed with its gang, `alone` is about such a pod.
        let single = if body["alone"].is_object() { &body["alone"] } else { &body };
        tally.agree(case, "now and copies", (single["now"] == true) == (said("maxCopiesNow") > 0), || {
            format!("{key}: now {}, maxCopiesNow {}", single["now"], body["maxCopiesNow"])
        });
        largest(case, &key, &body["largestNow"], tally);
    }
}

/// Returns whether a pod uses a claim whose volume is not there yet.
fn is_unprovisioned(objects: &Objects, key: &str) -> bool {
    let pod = objects.pod(key);
    let namespace = text(&pod["metadata"]["namespace"]);
    let claims = model::claims(pod).map(|name| format!("{namespace}/{name}"));
    let mut known = claims.filter_map(|claim| objects.other("PersistentVolumeClaim", &claim));
    known.any(|claim| claim["spec"]["volumeName"].is_null())
}

/// Returns how many copies of a pod fit one after another, up to the bound.
fn fitting(objects: &Objects, key: &str) -> usize {
    let mut live = Live::of(objects.only(&[]));
    for number in 0..BOUND {
        let name = format!("copy-{number}");
        let copy = objects.copied(key, &name);
        let copied = format!("{}/{name}", text(&copy["metadata"]["namespace"]));
        live.create(copy);
        live.run();
        if live.place(&copied).is_none() {
            return number;
        }
    }
    BOUND
}

fn largest(case: &Case, key: &str, said: &Value, tally: &mut Tally) {
    let Some(amounts) = said["requests"].as_object() else { return };
    let mut objects = case.objects.clone();
    for (resource, amount) in amounts {
        objects.change_pod(key, |json| set_request(json, resource, text(amount)));
    }
    let placed = single(&objects, key);
    tally.check(case, "largest now", placed.as_deref() == said["node"].as_str(), || {
        format!("{key}: largestNow {said}, and it goes to {placed:?}")
    });
    // With one resource short and nothing else, one unit more must not fit.
    let own = model::requests(case.objects.pod(key));
    let cut: Vec<(&String, i64)> = amounts
        .iter()
        .map(|(resource, amount)| (resource, model::amount(resource, amount)))
        .filter(|(resource, amount)| own.get(*resource).is_some_and(|requested| requested > amount))
        .collect();
    if let [(resource, amount)] = cut[..] {
        let unit = if resource == "cpu" { "m" } else { "" };
        objects.change_pod(key, |json| set_request(json, resource, &format!("{}{unit}", amount + 1)));
        let more = single(&objects, key);
        tally.check(case, "one unit more", more.is_none(), || {
            format!("{key}: largestNow {said}, and with one {resource} more it goes to {more:?}")
        });
    }
}
