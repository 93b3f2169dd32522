//! Switches with a scope and an expiry, score tables, the audit and the meter: over HTTP, on a sandbox.

use serde_json::{Value, json};

use crate::common::demo::Demo;
use crate::common::running::{Hand, Running, node, pod, start, start_with};
use crate::common::{client, until};

fn nodes(count: usize) -> Vec<Value> {
    (0..count).map(|n| node(&format!("n{n}"), "z", 8)).collect()
}

/// Sets a flag with a JSON object and returns the response.
fn set(running: &Running, flag: &str, value: &Value) -> Value {
    let reply = running.put(&format!("/debug/flags/{flag}"), &value.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), "application/json");
    reply.json()
}

fn of<'b>(body: &'b Value, array: &str) -> &'b Vec<Value> {
    body[array].as_array().unwrap_or_else(|| panic!("no {array} in {body:#}"))
}

/// Checks capability 8: the winner is the first row, and the plugins' scores add up to the total.
fn is_right(table: &Value) {
    assert_eq!(table["winner"], table["rows"][0]["node"], "{table:#}");
    for row in of(table, "rows") {
        let sum: i64 = of(row, "plugins").iter().map(|p| p["weighted"].as_i64().expect("a number")).sum();
        assert_eq!(json!(sum), row["total"], "{row:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_records_score_tables_of_its_pods_until_its_end() {
    let mut running = start_with(nodes(8), None, Some(Hand::default())).await;
    let note = |body: &Value| body["note"].as_str().unwrap_or_default().to_owned();
    assert!(
        note(&running.read("/apis/v1/scores")).starts_with("flag s is off: PUT a number to /debug/flags/s")
    );
    assert!(note(&running.read("/apis/v1/filter-failures")).starts_with("flag f is off: PUT true"));
    let said =
        set(&running, "s", &json!({"topN": 5, "selector": "app=x", "ttlSeconds": 60, "owner": "alice"}));
    assert_eq!((&said["id"], &said["active"], &said["owner"]), (&json!(1), &json!(true), &json!("alice")));
    assert_eq!(said["expiresAt"], "2026-01-01T00:01:00.000Z");
    assert!(said["when"].as_str().is_some_and(|when| when.contains("next attempt")), "{said}");
    let empty = note(&running.read("/apis/v1/scores"));
    assert!(empty.starts_with("flag s is on since 2026-01-01T00:00:00.000Z (GET /apis/v1/debug"), "{empty}");
    running.create([pod("x", 100), pod("y", 100)]);
    running.bound("x").await;
    running.bound("y").await;
    let table = running.wait("/apis/v1/scores", "a table", |b| !of(b, "tables").is_empty());
    assert_eq!((of(&table, "tables").len(), &table["active"], &table["topN"]), (1, &json!(true), &json!(0)));
    assert_eq!(table["note"], json!(null));
    let table = running.read("/apis/v1/scores/default/x");
    assert_eq!((of(&table, "rows").len(), &table["feasibleNodes"]), (5, &json!(8)));
    is_right(&table);
    assert_eq!(
        running.status_of("/apis/v1/scores/default/y"),
        404,
        "a pod outside the selector has no record"
    );

    let listed = running.read("/debug/flags");
    let s = of(&listed, "flags").iter().find(|f| f["name"] == "s").expect("a flag");
    assert_eq!((&s["value"], &s["recordings"][0]["scope"]), (&json!("0"), &json!({"selector": "app=x"})));
    assert_eq!((&s["recordings"][0]["records"], &s["recordings"][0]["recordsLeft"]), (&json!(1), &json!(99)));
    let debug = running.read("/apis/v1/debug");
    assert!(of(&debug, "active").iter().all(|a| !a["expiresAt"].is_null() && a["setBy"] == "127.0.0.1"));

    running.let_pass(60).await;
    assert_eq!(running.read("/apis/v1/scores")["active"], false);
    let debug = running.read("/apis/v1/debug");
    let last = &debug["audit"][0];
    assert_eq!((of(&debug, "active").len(), &last["why"], &last["to"]), (0, &json!("expired"), &json!("0")));
    assert_eq!((&last["owner"], &last["at"]), (&json!("alice"), &json!("2026-01-01T00:01:00.000Z")));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_laid_out_by_plugin() {
    let mut running = start(nodes(3)).await;
    assert_eq!(running.put("/debug/flags/s", "2").text(), "successfully set debugTopNScores to 2\n");
    running.place(pod("x", 100)).await;
    let body = running.wait("/apis/v1/scores", "a table", |b| !of(b, "tables").is_empty());
    let row = &body["tables"][0]["rows"][0];
    let csv = running.text("/apis/v1/scores/default/x?format=csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), &lines[0][..3]), (3, &["#", "Node", "Total"][..]));
    for plugin in of(row, "plugins") {
        let name = plugin["plugin"].as_str().expect("a name");
        for field in ["raw", "normalized", "weight", "weighted"] {
            let at = lines[0].iter().position(|h| *h == format!("{name} {field}"));
            let at = at.unwrap_or_else(|| panic!("no column {name} {field} in {csv}"));
            assert_eq!(lines[1][at], plugin[field].to_string(), "{name} {field}");
        }
    }
    let table = running.text("/apis/v1/scores/default/x?format=table");
    assert!(table.contains("| NodeResourcesFit raw |") && table.lines().count() == 4, "{table}");
    let all = running.text("/apis/v1/scores?format=csv");
    assert!(all.starts_with("Namespace,Pod,Cycle,Winner,#,Node,Total,"), "{all}");
    assert!(all.lines().nth(1).is_some_and(|line| line.starts_with("default,x,")), "{all}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_makes_one_record_and_ends() {
    let mut running = start(nodes(3)).await;
    set(&running, "s", &json!({"value": 3, "namespace": "default", "oneShot": true}));
    running.create([pod("a", 100), pod("b", 100)]);
    running.bound("a").await;
    running.bound("b").await;
    let debug = running.wait("/apis/v1/debug", "its end", |b| of(b, "active").is_empty());
    let why = |change: &Value| (change["from"].clone(), change["to"].clone(), change["why"].clone());
    let changes: Vec<_> = of(&debug, "audit").iter().map(why).collect();
    assert_eq!(
        changes,
        [(json!("3"), json!("0"), json!("used up")), (json!("0"), json!("3"), json!("set")),]
    );
    let tables = running.wait("/apis/v1/scores", "the record", |b| !of(b, "tables").is_empty());
    assert_eq!(of(&tables, "tables").len(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_gang_have_their_tables() {
    let mut running = start(nodes(4)).await;
    set(&running, "s", &json!({"value": 2, "gang": "default/g"}));
    set(&running, "f", &json!({"value": true, "gang": "default/g"}));
    let member = |i: usize| {
        let mut member = pod(&format!("g-{i}"), 5000);
        member["metadata"]["annotations"] = json!({
            "gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "3",
        });
        member
    };
    running.create([pod("single", 100)]);
    running.create((0..3).map(member));
    running.bound("single").await;
    for i in 0..3 {
        running.bound(&format!("g-{i}")).await;
    }
    let tables = running.wait("/apis/v1/scores", "three tables", |b| of(b, "tables").len() == 3);
    of(&tables, "tables").iter().for_each(is_right);
    // For the third member, its siblings occupy two nodes.
    let failures = running.read("/apis/v1/filter-failures");
    let of_third = of(&failures, "failures").iter().filter(|f| f["name"] == "g-2");
    assert_eq!(of_third.count(), 2, "{failures:#}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named_and_changes_nothing() {
    let running = start(nodes(1)).await;
    for (flag, body, status, says) in [
        ("s", r#"{"value": 5, "ttlSeconds": -1}"#, 400, "`ttlSeconds` is -1"),
        ("s", r#"{"value": 5, "selector": "a in"}"#, 400, "`selector` ends"),
        ("s", r#"{"value": 5, "until": 7}"#, 400, "no field `until`"),
        ("s", r#"{"value": 5"#, 400, "not JSON"),
        ("f", r#"{"value": "yes"}"#, 400, "`value` is \"yes\""),
        ("s", r#"{"id": 7, "off": true}"#, 404, "no recording 7"),
        ("s", r#"{"value": 0}"#, 404, "not on"),
        ("reuse", r#"{"value": true}"#, 400, "want true or false"),
        ("budget", "0", 400, "1 to 100"),
    ] {
        let reply = running.put(&format!("/debug/flags/{flag}"), body);
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(says), "{body}: {message}");
    }
    let debug = running.read("/apis/v1/debug");
    assert_eq!((of(&debug, "active").len(), of(&debug, "audit").len()), (0, 0));
    for i in 0..16 {
        set(&running, "s", &json!({"value": 1, "pod": format!("default/p{i}")}));
    }
    let reply = running.put("/debug/flags/f", r#"{"value": true}"#);
    assert_eq!((reply.status, &reply.json()["code"]), (429, &json!("TooManyRecordings")));
    let ended = set(&running, "s", &json!({"id": 3, "value": 0}));
    assert_eq!((&ended["id"], &ended["active"]), (&json!(3), &json!(false)));
    set(&running, "f", &json!({"value": true}));
    assert_eq!(running.read("/apis/v1/debug")["audit"][1]["why"], "ended");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_meter_tells_what_each_level_costs() {
    let mut running = start(nodes(4)).await;
    set(&running, "s", &json!({"value": 4}));
    running.create((0..70).map(|i| pod(&format!("p{i}"), 100)));
    running.create([pod("big", 100_000)]);
    for i in 0..70 {
        running.bound(&format!("p{i}")).await;
    }
    running.told("big", "Insufficient cpu").await;
    running.read("/apis/v1/explain/pods/default/big");
    running.wait("/apis/v1/debug", "a cost", |b| {
        ["cycleSeconds", "l0Seconds", "l1Seconds"].iter().all(|c| b["cost"][c].as_f64() > Some(0.0))
    });
    let level = |l: &str| running.metric(&format!("pellucid_diagnosis_seconds_total{{level=\"{l}\"}}"));
    let (l0, l1, l2) = (level("L0"), level("L1"), level("L2"));
    let cycle = running.metric("pellucid_cycle_seconds_total");
    assert!(l0 > 0.0 && l1 > 0.0 && l2 > 0.0 && cycle > l1, "{l0} {l1} {l2} of {cycle}");
    assert_eq!(running.metric("pellucid_recordings_active{flag=\"s\"}"), 1.0);
    running.stop().await;
}

#[test]
fn the_log_is_louder_for_a_time() {
    let demo = Demo::start(&[]);
    let put = |flag: &str, value: &str| client::put(demo.rest, &format!("/debug/flags/{flag}"), value);
    let verbosity = || demo.get("/debug/flags/v").text().trim().to_owned();
    let before = verbosity();
    let reply = put("v", r#"{"value": 5, "ttlSeconds": 1, "owner": "bob"}"#);
    assert_eq!((reply.status, &reply.json()["flag"]), (200, &json!("v")), "{}", reply.text());
    until(&format!("it goes back to {before}"), || {
        demo.get("/apis/v1/debug").json()["audit"][0]["why"] == "expired" && verbosity() == before
    });
    // One user ends the switch while another sets it permanently.
    assert_eq!(put("v", r#"{"value": 5}"#).status, 200);
    assert_eq!(verbosity(), "5");
    assert_eq!(put("v", r#"{"off": true}"#).status, 200);
    assert_eq!(verbosity(), before);
    assert_eq!(put("log", r#"{"value": "warn,pellucid=trace"}"#).status, 200);
    assert_eq!(put("v", "3").status, 200);
    let debug = demo.get("/apis/v1/debug").json();
    assert_eq!((of(&debug, "active").len(), verbosity().as_str()), (0, "3"));
}
