//! Dumps over HTTP, and `pellucid replay` of them.

use std::io::Read as _;
use std::path::Path;
use std::process::Output;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::common::client::get;
use crate::common::process::run;
use crate::common::running::{Hand, Running, node, pod, start, start_with, with};

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

fn fetch(running: &Running, query: &str) -> Vec<u8> {
    let reply = get(running.instance.address, &format!("/apis/v1/snapshot{query}"));
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/gzip"));
    reply.body
}

fn replay(file: &Path, pod: &str) -> Output {
    run(&["replay", "--snapshot", file.to_str().expect("text"), "--pod", pod, "-o", "json"])
}

fn hash(running: &Running, pod: &str) -> Value {
    let body = running.read(&format!("/apis/v1/history/pods/default/{pod}"));
    let entries = body["entries"].as_array().expect("entries");
    entries.last().expect("an entry")["decisionHash"].clone()
}

/// Checks capability 22: the hash of the replay equals the recorded one.
fn check_equal(running: &Running, file: &Path, pod: &str) -> Value {
    let output = replay(file, &format!("default/{pod}"));
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{pod}: {text}{error}");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&body["equal"], &body["decisionHash"]), (&json!(true), &hash(running, pod)), "{body}");
    body
}

fn gang(name: &str, min: u32, cpu: u32) -> Value {
    let mut member = pod(name, cpu);
    member["metadata"]["labels"] = json!({
        "gang.unicore.mcyou.cn/name": "g", "gang.unicore.mcyou.cn/available-count": min.to_string()
    });
    member
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_gated_placed_and_ganged_pods_are_decided_again_as_before() {
    let mut running = start(vec![node("n1", "a", 8), node("n2", "b", 8)]).await;
    for i in 0..6 {
        let name = format!("p{i}");
        running.create([pod(&name, 1_000)]);
        running.bound(&name).await;
    }
    running.create((0..3).map(|i| gang(&format!("g{i}"), 3, 1_000)));
    for i in 0..3 {
        running.bound(&format!("g{i}")).await;
    }
    running.create([pod("big", 64_000)]);
    running.told("big", "Insufficient cpu").await;
    running.create([with(pod("held", 100), "schedulingGates", json!([{"name": "later"}]))]);
    let history = |name: &str| format!("/apis/v1/history/pods/default/{name}");
    let last = |kind: &'static str| {
        move |b: &Value| b["entries"].as_array().unwrap().last().unwrap()["kind"] == kind
    };
    running.wait(&history("held"), "gated", last("Gated"));
    for i in 0..3 {
        running.wait(&history(&format!("g{i}")), "bound", last("Bound"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.gz");
    std::fs::write(&file, fetch(&running, "")).expect("written");

    assert_eq!(check_equal(&running, &file, "big")["outcome"], "Refused");
    assert_eq!(check_equal(&running, &file, "held")["outcome"], "Gated");
    let body = check_equal(&running, &file, "p2");
    assert_eq!((&body["outcome"], &body["recordedNode"]), (&json!("Placed"), &body["node"]));
    // Its own placement, those of three single pods after it, and the gang's.
    assert_eq!(body["rewound"], 7);
    assert_eq!(check_equal(&running, &file, "g1")["rewound"], 3);
    check_edited(&folder.path().join("edited.json"), &std::fs::read(&file).expect("read"));
    running.stop().await;
}

/// The members of a gang that lacks pods, in any order of creation.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_gang_that_is_held_back_are_decided_again_as_before() {
    let running = start_with(vec![node("n1", "a", 8)], None, Some(Hand::default())).await;
    for name in ["g2", "g0", "g1"] {
        running.create([gang(name, 4, 1_000)]);
        let path = format!("/apis/v1/history/pods/default/{name}");
        running.wait(&path, "gated", |b| b["entries"][1]["kind"] == "Gated");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.gz");
    // They were judged as they came, before there were three.
    std::fs::write(&file, fetch(&running, "")).expect("written");
    let early = String::from_utf8(replay(&file, "default/g2").stdout).expect("text");
    let early: Value = serde_json::from_str(&early).expect("JSON");
    assert_eq!((&early["equal"], &early["stale"]), (&json!(false), &json!(true)), "{early}");
    check_equal(&running, &file, "g1");
    running.let_pass(3).await;
    for name in ["g0", "g1", "g2"] {
        let message = "waiting for the pods of gang default/g: 3 of 4 are there";
        let path = format!("/apis/v1/history/pods/default/{name}");
        running.wait(&path, "told", |b| b["entries"][1]["message"] == message);
    }
    std::fs::write(&file, fetch(&running, "")).expect("written");
    for name in ["g0", "g1", "g2"] {
        let body = check_equal(&running, &file, name);
        assert_eq!((&body["outcome"], &body["stale"]), (&json!("Gated"), &json!(false)));
    }
    running.stop().await;
}

/// Checks that edited files are rejected, or that their oddities are reported.
fn check_edited(file: &Path, bytes: &[u8]) {
    let whole: Value = serde_json::from_str(&unpacked(bytes)).expect("JSON");
    let after = |edit: &dyn Fn(&mut Value)| {
        let mut edited = whole.clone();
        edit(&mut edited);
        std::fs::write(file, edited.to_string()).expect("written");
        let output = replay(file, "default/big");
        assert!(!output.status.success(), "{edited}");
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    };
    let says = |text: String, what: &str| assert!(text.contains(what), "{text} does not say {what}");
    let twice = after(&|all| {
        let pods = all["state"]["pods"].as_array_mut().expect("pods");
        pods.push(pods[0].clone());
    });
    says(twice, "contradicts itself: state.pods and state.ended: default/big is there twice");
    let late = after(&|all| all["record"]["cycle"] = json!(1));
    says(late, "record.cycle, that of the last attempt, is 1");
    let of_nobody = after(&|all| all["configuration"]["profiles"][0]["schedulerName"] = json!("else"));
    says(of_nobody, "waits for scheduler \"pellucid\", and no profile of configuration has that name");
    let ghosts = after(&|all| _ = all["state"]["nodes"].as_array_mut().expect("nodes").pop());
    says(ghosts, "pods on nodes that are not in the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_state_is_one_file_and_free_text_is_left_out() {
    let running = start(vec![node("n1", "a", 8)]).await;
    let mut secret = pod("big", 64_000);
    secret["spec"]["containers"][0]["env"] = json!([{"name": "TOKEN", "value": "hunter2"}]);
    secret["spec"]["containers"][0]["command"] = json!(["sh", "-c", "hunter2"]);
    secret["metadata"]["annotations"] = json!({"note": "hunter2"});
    secret["metadata"]["labels"] = json!({"team": "hunter3"});
    running.create([secret]);
    running.wait("/apis/v1/explain/pods/default/big", "refused", |b| {
        b["verdict"] == "Refused" || b["nodeGroups"][0].is_object()
    });
    let whole = unpacked(&fetch(&running, "?redact=false"));
    assert!(!whole.contains("hunter2"), "it is not even known");
    assert!(whole.contains("hunter3") && whole.contains("nodes are available"));
    let redacted = unpacked(&fetch(&running, ""));
    for text in ["hunter", "nodes are available"] {
        assert!(!redacted.contains(text), "{text} is in {redacted}");
    }
    assert!(redacted.contains("\"redacted\":true"));
    // The files are equal as long as nothing is published in between.
    let equal = (0..100).any(|_| fetch(&running, "") == fetch(&running, ""));
    assert!(equal);
    assert_eq!(get(running.instance.address, "/apis/v1/snapshot?redact=perhaps").status, 400);
    running.stop().await;
}

#[test]
fn files_that_cannot_be_replayed_say_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |bytes: &[u8], pod: &str, says: &str| {
        let file = folder.path().join("s.gz");
        std::fs::write(&file, bytes).expect("written");
        let output = replay(&file, pod);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{error:?} does not say {says:?}");
    };
    check(b"hello", "d/p", "not a snapshot");
    check(&[0x1f, 0x8b, 8, 0, 0], "d/p", "broken gzip");
    check(br#"{"kind":"PellucidSnapshot","version":9}"#, "d/p", "version 9");
    let empty = br#"{"kind":"PellucidSnapshot","version":2,"redacted":true,"generation":1,"published":0,
        "configuration":null,"state":{"seed":0,"starts":[],"shadowOf":null,"nodes":[],"objects":[],"pods":[],
        "pluginObjects":[],"pluginTime":0,
        "ended":[],"gangs":[],"nominations":[],"unreadable":[]},
        "record":{"cycle":0,"verdicts":[],"queue":[],"preemptions":[]}}"#;
    check(empty, "d/p", "pod d/p is not in the snapshot, which has 0 pods");
    check(empty, "p", "want NAMESPACE/NAME");
    let output = run(&["replay", "--snapshot", "/nowhere.gz", "--pod", "d/p"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read /nowhere.gz"));
}
