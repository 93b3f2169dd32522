//! A dump holds everything that a decision depends on: a rebuilt state is the same and decides the same.

use std::sync::Arc;

use pellucid::diagnosis::dump::Dump;
use pellucid::diagnosis::dump::restore::{self, Rewind};
use pellucid::framework::profile::Profile;
use pellucid::plugins::registry;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::{SCHEDULER, config, spec};
use crate::common::driver::default_profile;
use crate::common::dumps::{decides_alike, dump, rebuilt, state};
use crate::common::made;
use crate::core::random::{Life, happening};

/// Repeats the decisions on pending pods for which nothing has changed since.
fn check_decisions(of: &Dump) -> Result<(), TestCaseError> {
    let waits = |key| of.state.pods.iter().any(|p| p.pod.key == key && p.node.is_none());
    // The log of changes does not record nominations of other pods made since.
    let promised = |at| of.state.nominations.iter().any(|n| n.since >= at);
    for verdict in &of.record.verdicts {
        let is_of_binding = verdict
            .codes
            .iter()
            .any(|c| ["BindRefused", "PreBindFailed", "PlacementTakenBack"].contains(&c.as_str()));
        if verdict.stale || is_of_binding || !waits(verdict.pod.clone()) || promised(verdict.at) {
            continue;
        }
        decides_alike(of, verdict, &Rewind::default())?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..config() })]

    #[test]
    fn what_is_rebuilt_is_the_same_and_decides_the_same(
        specs in vec(spec(), 4),
        all in vec(happening(), 1..60),
    ) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
        }
        let now = life.core.now;
        let whole = dump(&mut life.core.scheduler, now, false);
        let again = dump(&mut rebuilt(&whole, &Rewind::default()), now, false);
        prop_assert_eq!(state(&whole), state(&again));
        check_decisions(&whole)?;
        let redacted = dump(&mut life.core.scheduler, now, true);
        check_decisions(&redacted)?;
    }

    /// When nothing else happens in between, every placement of a run is reproduced.
    #[test]
    fn placements_are_made_again(specs in vec(spec(), 4), all in vec(happening(), 1..20)) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
        }
        let mut scheduler = {
            let now = life.core.now;
            let before = dump(&mut life.core.scheduler, now, false);
            rebuilt(&before, &Rewind::default())
        };
        let now = life.core.now;
        let first = scheduler.publish(now).cycle;
        while scheduler.step(now, &pellucid::model::time::NoProbe).is_some() {}
        let after = dump(&mut scheduler, now, false);
        if !after.state.nominations.is_empty() {
            return Ok(());
        }
        for verdict in after.record.verdicts.iter().filter(|v| v.outcome == "Placed" && v.cycle > first) {
            let rewind = Rewind::before(&after, verdict);
            prop_assert!(!rewind.is_empty());
            decides_alike(&after, verdict, &rewind)?;
        }
    }
}

#[test]
fn what_is_no_snapshot_is_said_to_be_none() {
    for (text, says) in [
        ("", "not a snapshot"),
        ("{}", "not a snapshot"),
        (r#"{"kind":"PodList","version":2}"#, "a \"PodList\""),
        (r#"{"kind":"PellucidSnapshot","version":1}"#, "version 1; this program reads version 2"),
        (r#"{"kind":"PellucidSnapshot","version":2}"#, "cannot be read"),
        (r#"{"kind":"PellucidSnapshot","version":2,"#, "not a whole one"),
    ] {
        let error = Dump::from_json(text.as_bytes()).expect_err("it is none");
        assert!(error.contains(says), "{error:?} does not say {says:?}");
    }
}

/// Returns a dump with a placed pod, one on a deleted node, one that was refused and one that was not tried.
fn of_four() -> Value {
    let mut core = made::core_with(&[made::node("n1", 4_000)]);
    core.place(&made::pod("here", 1_000));
    core.see(&made::on(&made::pod("lost", 100), "gone"));
    core.attempt(&made::pod("big", 64_000));
    core.see(&made::pod("new", 100));
    let now = core.now;
    let made = dump(&mut core.scheduler, now, false);
    serde_json::from_slice(&made.to_json().expect("it is written")).expect("JSON")
}

const METRIC: &str = "NodeMetric.slo.koordinator.sh";

/// Returns an object of a plugin's kind, as a dump has it.
fn plugin_object(kind: &str, content: &Value) -> Value {
    json!({"kind": kind, "namespace": "", "name": "n1", "uid": "u", "resourceVersion": "1", "content": content})
}

/// Repeats the decision on every pod that has a verdict.
fn replay_all(document: &Value, profile: &Profile) -> Result<(), String> {
    let of = Dump::from_json(document.to_string().as_bytes())?;
    for verdict in &of.record.verdicts {
        for rewind in [Rewind::default(), Rewind::before(&of, verdict)] {
            let profiles = vec![profile.clone()];
            let mut scheduler = restore::restore(&of, profiles, Arc::new(registry()), &rewind)?;
            // The error is about this pod, for example that it is placed.
            let _ = restore::decide(&mut scheduler, &of, &verdict.pod);
        }
    }
    Ok(())
}

#[test]
fn what_contradicts_itself_is_refused_with_field_and_value() {
    let (whole, profile) = (of_four(), default_profile(SCHEDULER));
    replay_all(&whole, &profile).expect("it is sound, though a node is gone");
    let at = |array: &str, name: &str| {
        let all = whole.pointer(array).and_then(Value::as_array).expect("an array");
        let is_it = |one: &Value| {
            let key = one.pointer("/pod/key").or(one.get("pod")).or(one.get("key"));
            key.is_some_and(|key| key.to_string().contains(&format!("\"{name}\"")))
        };
        all.iter().position(is_it).unwrap_or_else(|| panic!("no {name} in {array}: {all:?}"))
    };
    let pod = |name: &str, field: &str| format!("/state/pods/{}/{field}", at("/state/pods", name));
    let verdict =
        |name: &str, field: &str| format!("/record/verdicts/{}/{field}", at("/record/verdicts", name));
    let key = |name: &str| whole.pointer(&pod(name, "pod/key")).expect("a key").clone();
    let cases: Vec<(String, Value, &str)> = vec![
        (pod("here", "pod/key"), key("big"), "state.pods and state.ended: ns/big is there twice"),
        (pod("here", "stage"), json!("Sleeping"), "pod ns/here: stage \"Sleeping\" is not known"),
        (pod("here", "node"), Value::Null, "pod ns/here: stage is \"permitted\", and node is null"),
        (pod("big", "node"), json!("n1"), "pod ns/big: stage is \"pending\", and node is \"n1\""),
        (
            pod("lost", "node"),
            json!("n1"),
            "pod ns/lost: node is \"n1\", and nodeName of its object is \"gone\"",
        ),
        (pod("here", "since"), Value::Null, "pod ns/here: since is null, and node is \"n1\""),
        (pod("big", "since"), json!(1), "pod ns/big: since is given, and node is null"),
        (pod("big", "pod/phase"), json!("Failed"), "pod ns/big: phase is Failed"),
        (pod("big", "pod/deleting"), json!(true), "pod ns/big: deleting is true"),
        (pod("big", "pod/scheduler_name"), json!("other"), "pod ns/big waits for scheduler \"other\""),
        (verdict("big", "pod"), json!({"namespace": "ns", "name": "who"}), "no pod ns/who in state.pods"),
        (verdict("big", "pod"), key("here"), "record.verdicts: ns/here is there twice"),
        (verdict("big", "outcome"), json!("Lost"), "outcome \"Lost\" is none of Placed, Refused, Gated"),
        (verdict("big", "node"), json!("n1"), "outcome is \"Refused\", and node is \"n1\""),
        (verdict("here", "node"), Value::Null, "outcome is \"Placed\", and node is null"),
        (verdict("big", "cycle"), json!(99), "cycle is 99, and record.cycle, that of the last attempt, is 2"),
        (verdict("big", "decisionHash"), json!("12"), "decisionHash \"12\" is not 16"),
        ("/state/starts".into(), json!([0, 0]), "state.starts has 2 numbers, and configuration 1 profiles"),
        (
            "/state/nodes".into(),
            json!([whole["state"]["nodes"][0], whole["state"]["nodes"][0]]),
            "state.nodes: n1 is there twice",
        ),
        (
            "/state/pluginObjects".into(),
            json!([plugin_object("Seat.example.com", &json!({}))]),
            "state.pluginObjects[0], Seat.example.com n1: no plugin of this program brings this kind",
        ),
        (
            "/state/pluginObjects".into(),
            json!([plugin_object(METRIC, &json!({"status": {"updateTime": "noon"}}))]),
            "state.pluginObjects[0], NodeMetric.slo.koordinator.sh n1: content.status.updateTime: not a point in time",
        ),
        (
            "/state/pluginObjects".into(),
            json!([plugin_object(METRIC, &json!({})), plugin_object(METRIC, &json!({}))]),
            "state.pluginObjects: NodeMetric.slo.koordinator.sh n1 is there twice",
        ),
        (
            "/state/nominations".into(),
            json!([{"pod": {"namespace": "ns", "name": "who"}, "node": "n1", "isOurs": true, "since": 0}]),
            "state.nominations: there is no pod ns/who",
        ),
        (
            "/record/queue/0/pods/0".into(),
            json!({"namespace": "ns", "name": "who"}),
            "record.queue: there is no pod ns/who",
        ),
    ];
    for (field, value, says) in cases {
        let mut edited = whole.clone();
        *edited.pointer_mut(&field).unwrap_or_else(|| panic!("no {field} in {whole:#}")) = value;
        let error = replay_all(&edited, &profile).expect_err(&field);
        assert!(error.contains(says), "{field}: {error:?} does not say {says:?}");
    }
}

/// Collects pointers to every value of a document except the document itself.
fn pointers(of: &Value, to: &str, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match of {
        Value::Array(these) => these.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        Value::Object(these) => {
            these.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect()
        }
        _ => return,
    };
    for (name, value) in children {
        let path = format!("{to}/{name}");
        pointers(value, &path, all);
        all.push(path);
    }
}

/// Replaces a value by another of the same type.
fn spoil(value: &mut Value, how: usize) {
    const NUMBERS: [i64; 7] = [0, -1, 1, 7, i64::MAX, i64::MIN, 1 << 40];
    const TEXTS: [&str; 6] = ["", "n1", "big", "bound", "pending", "\u{1f600}/x"];
    match value {
        Value::Number(_) => *value = json!(NUMBERS[how % NUMBERS.len()]),
        Value::String(_) => *value = json!(TEXTS[how % TEXTS.len()]),
        Value::Bool(is) => *is = !*is,
        Value::Array(these) if how.is_multiple_of(2) => _ = these.pop(),
        Value::Array(these) => these.extend(these.last().cloned()),
        Value::Null => *value = json!("n1"),
        Value::Object(_) => *value = Value::Null,
    }
}

/// A dump edited by hand is either rejected or accepted as it is; nothing panics.
#[test]
fn an_edited_file_panics_nowhere() {
    let (whole, profile) = (of_four(), default_profile(SCHEDULER));
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    let mut refused = 0;
    for (i, path) in all.iter().enumerate() {
        for how in [i % 7, (i + 3) % 7] {
            let mut edited = whole.clone();
            spoil(edited.pointer_mut(path).expect("it is there"), how);
            refused += usize::from(replay_all(&edited, &profile).is_err());
        }
    }
    assert!(refused > all.len() / 4, "{refused} of {} edits were refused", all.len() * 2);
}
