//! Preemption: an important pod comes to the settled cluster; what is said of candidates and victims before anybody is
//! gone is tried, then the evictions are carried out.

use serde_json::Value;

use crate::case::{Case, ask};
use crate::made;
use crate::objects::{Plugins, list, strip_gang, text, waits};
use crate::random::Rng;
use crate::report::Tally;
use crate::trial::{Live, pod_key, single_on};

const KEY: &str = "default/important";

pub(crate) fn look(case: &Case, times: usize, tally: &mut Tally) {
    let rng = &mut Rng::new(case.seed, 4);
    for _ in 0..times {
        one(case, rng, tally);
    }
}

/// Returns a priority above that of every pod that waits.
fn priority(case: &Case) -> i64 {
    match case.objects.plugins {
        Plugins::InTree => 1000,
        Plugins::Koordinator | Plugins::KoordinatorEvicting => 9999,
    }
}

fn one(case: &Case, rng: &mut Rng, tally: &mut Tally) {
    let mut json = made::pod(rng, "important", 6);
    json["metadata"]["namespace"] = "default".into();
    json["spec"]["priority"] = priority(case).into();
    json["spec"]["containers"][0]["resources"]["requests"]["cpu"] = rng.pick(&["1", "2", "3"]).into();
    let is_meek = rng.chance(15);
    json["spec"]["preemptionPolicy"] = if is_meek { "Never" } else { "PreemptLowerPriority" }.into();
    json["spec"].as_object_mut().expect("a spec").remove("schedulingGates");
    strip_gang(&mut json);
    let mut live = case.again();
    end_more_important(&mut live, priority(case));
    live.create(json);
    live.core.step();
    if live.place(KEY).is_some() {
        return;
    }
    let snapshot = live.snapshot();
    let now = live.core.now;
    let said = ask(&snapshot, now, &format!("/apis/v1/explain/pods/{KEY}/preemption")).expect("an answer");
    candidates(case, &live, &said, tally);
    let outlook = ask(&snapshot, now, &format!("/apis/v1/explain/pods/{KEY}/feasibility?copies=1"));
    let outlook = outlook.expect("an answer");
    carried_out(case, live, &said, &outlook, is_meek, tally);
}

/// Ends the reservations without a place that come before a pod of some priority: they take what victims leave.
fn end_more_important(live: &mut Live, priority: i64) {
    let before = live.objects.clone();
    let is_first = |name: &str| before.priority_of(&format!("Reservation {name}")) > priority;
    let waiting =
        before.of_kind("Reservation").filter(|of| waits(of)).map(|of| text(&of["metadata"]["name"]));
    for name in waiting.filter(|name| is_first(name)) {
        live.objects.remove("Reservation", name);
    }
    live.tell_changes(&before);
}

/// Each candidate takes the pod once its victims are gone.
fn candidates(case: &Case, live: &Live, said: &Value, tally: &mut Tally) {
    for candidate in list(&said["search"]["candidates"]) {
        let (node, victims) = (text(&candidate["node"]), list(&candidate["victims"]));
        let mut objects = live.objects.only(&[KEY.to_owned()]);
        let leave = victims.iter().all(|victim| objects.is_free_to_go(text(victim)));
        let lower = victims.iter().all(|victim| objects.priority_of(text(victim)) < priority(case));
        tally.check(case, "victims are below it", lower, || format!("{candidate}"));
        for victim in victims.iter().map(text) {
            if objects.pods.remove(victim).is_none() {
                objects.delete_called(victim);
            }
        }
        let class = if leave { "candidate" } else { "candidate with a pod that comes back" };
        tally.check(case, class, single_on(&objects, KEY, node), || {
            format!("{KEY} does not bind on {node} without {victims:?}")
        });
        let same = candidate["victimCount"] == victims.len();
        tally.agree(case, "number of victims", same, || candidate.to_string());
    }
    let search = &said["search"];
    if search.is_object() {
        let nodes = &search["totalNodes"];
        tally.check(case, "nodes of the search", *nodes == live.objects.nodes.len(), || search.to_string());
    }
}

/// Returns the pods among victims. Objects for which pods stand are ended by their plugin, without an eviction.
fn pods(victims: &Value) -> Vec<String> {
    let pods = list(victims).iter().filter(|victim| victim["object"].is_null());
    pods.map(|victim| format!("{}/{}", text(&victim["namespace"]), text(&victim["name"]))).collect()
}

/// What was said comes about when the evictions are carried out.
fn carried_out(case: &Case, mut live: Live, said: &Value, outlook: &Value, is_meek: bool, tally: &mut Tally) {
    let node = text(&said["nomination"]["node"]).to_owned();
    let victims = pods(&said["preemption"]["victims"]);
    let objects =
        list(&said["preemption"]["victims"]).iter().map(|victim| text(&victim["object"]).to_owned());
    let ended: Vec<String> = objects.filter(|object| !object.is_empty()).collect();
    live.carry_out();
    let mut evicted: Vec<String> =
        live.evicted.iter().filter(|(_, by)| by == KEY).map(|(victim, _)| victim.clone()).collect();
    evicted.sort();
    let mut chosen = victims.clone();
    chosen.sort();
    tally.check(case, "victims", chosen == evicted, || {
        format!("said {chosen:?}, evicted {evicted:?}; {}", said["summary"])
    });
    tally.check(case, "policy", !is_meek || evicted.is_empty(), || {
        format!("{KEY} may not preempt and evicted {evicted:?}")
    });
    live.settle();
    for object in ended {
        let name = object.rsplit(' ').next().unwrap_or_default();
        let known = live.objects.of_kind("Reservation").find(|of| of["metadata"]["name"] == name);
        tally.check(
            case,
            "objects among victims end",
            known.is_some_and(|of| of["status"]["phase"] == "Failed"),
            || format!("{KEY} evicts {object}, which is {known:?}"),
        );
    }
    let place = live.place(KEY);
    if !node.is_empty() {
        tally.check(case, "nominated node", place.as_deref() == Some(&*node), || {
            format!("{KEY} is nominated to {node}, and goes to {place:?}")
        });
        // What it evicted meanwhile is among them.
        let by_it = live.evicted.iter().filter(|(_, by)| by == KEY).map(|(victim, _)| victim.clone());
        let mut all: Vec<String> = by_it.collect();
        all.sort();
        afterwards(case, &mut live, &all, tally);
    }
    let code = text(&outlook["verdict"]["code"]);
    if code == "FitsAfterPreemption" {
        tally.check(case, "fits after preemption", place.is_some(), || {
            format!("{KEY}: {code}, and it is not placed")
        });
    } else if !evicted.is_empty() {
        let cluster = live.core.scheduler.cluster();
        let is_known = cluster.find_pod(&pod_key(KEY)).is_some();
        tally.agree(
            case,
            "evicts, and is not told FitsAfterPreemption",
            !is_known || code == "FitsAfterPreemption",
            || format!("{KEY}: {code}, and it evicted {evicted:?} and goes to {place:?}"),
        );
    }
}

/// The preemption is told by both sides when it is over.
fn afterwards(case: &Case, live: &mut Live, victims: &[String], tally: &mut Tally) {
    let snapshot = live.snapshot();
    let read = |key: &str| {
        ask(&snapshot, live.core.now, &format!("/apis/v1/explain/pods/{key}/preemption"))
            .unwrap_or(Value::Null)
    };
    let own = read(KEY);
    let ended = list(&own["ended"]).first();
    let mut named = ended.map_or_else(Vec::new, |ended| pods(&ended["victims"]));
    named.sort();
    tally.agree(case, "victims afterwards", named == victims, || {
        format!("evicted {victims:?}, told afterwards {named:?}: {}", own["summary"])
    });
    for victim in victims {
        let theirs = read(victim);
        let by = &theirs["asVictim"]["preemption"];
        let names = format!("{}/{}", text(&by["namespace"]), text(&by["name"]));
        tally.agree(case, "told to the victim", names == KEY, || format!("{victim}: {theirs}"));
    }
}
