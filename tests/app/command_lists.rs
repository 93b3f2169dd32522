//! The commands on a cluster in which 1,000 pods of 30 Deployments and 60 gangs are pending: each list fits a screen, its
//! last line is the next command, and exit codes say what came of it.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::client;
use crate::common::running::{Running, node, pod, start};

/// Lines of a screen.
const SCREEN: usize = 60;
const PODS: usize = 1_000;
const OWNERS: usize = 30;
const GANGS: usize = 60;

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary against a scheduler, on a terminal of this width as far as it can know.
pub(crate) fn run(address: SocketAddr, width: usize, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_pellucid"))
        .args(args)
        .env("PELLUCID_SERVER", format!("http://{address}"))
        .env("COLUMNS", width.to_string())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a list and checks that it fits a screen of each width; returns it.
pub(crate) fn fits(address: SocketAddr, args: &[&str]) -> String {
    let mut shown = String::new();
    for width in [100, 80, 160] {
        let ran = run(address, width, args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        let lines = ran.stdout.lines().count();
        assert!(lines <= SCREEN, "{args:?} has {lines} lines:\n{}", ran.stdout);
        for line in ran.stdout.lines() {
            let columns = line.chars().count();
            assert!(columns <= width, "{args:?} has a line of {columns} columns, not {width}:\n{line}");
        }
        shown = ran.stdout;
    }
    shown
}

/// Runs the command in the last line of a text; returns what it says.
pub(crate) fn follow(address: SocketAddr, text: &str) -> String {
    let last = text.lines().last().unwrap();
    let args: Vec<&str> = last.split(' ').collect();
    assert_eq!(args[0], "pellucid", "{last:?} is no command in\n{text}");
    let ran = run(address, 120, &args[1..]);
    assert_eq!(ran.code, Some(0), "{last}: {}", ran.stderr);
    ran.stdout
}

fn deployment(n: usize) -> Value {
    // 30 times 33, and one more for the first 10.
    let replicas = PODS / OWNERS + usize::from(n < PODS % OWNERS);
    let name = format!("workload-number-{n:02}");
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("web", 64_000)["spec"].clone()}
        }
    })
}

/// A member of a gang of two, of which the other is missing.
fn member(n: usize) -> Value {
    let mut member = pod(&format!("gang-{n:02}-worker-0"), 100);
    member["metadata"]["annotations"] = json!({
        "gang.scheduling.koordinator.sh/name": format!("gang-{n:02}"),
        "gang.scheduling.koordinator.sh/min-available": "2",
    });
    member
}

async fn crowded() -> Running {
    let running = start((0..4).map(|n| node(&format!("node-{n}"), "za", 8)).collect()).await;
    running.create((0..OWNERS).map(deployment));
    running.create((0..GANGS).map(member));
    client::wait(
        running.instance.address,
        "/apis/v1/summary/pending",
        "1,060 pods that were tried",
        |body| {
            body["totalPending"] == PODS + GANGS
                && body["rows"].as_array().is_some_and(|rows| rows.len() == 2)
        },
    );
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_a_crowded_cluster_fit_a_screen_and_lead_on() {
    let running = crowded().await;
    let at = running.instance.address;

    let pods = fits(at, &["explain", "pods"]);
    let rows = pods.lines().filter(|line| line.contains("Deployment/workload-number-")).count();
    assert_eq!(rows, OWNERS, "{pods}");
    assert!(pods.contains("1060 pods pending in 31 groups."), "{pods}");
    assert!(
        follow(at, &pods).contains("explain gang default/gang-00"),
        "the gangs' pods are the largest group"
    );
    let queue = fits(at, &["queue"]);
    assert!(queue.contains("default/Deployment/workload-number-29"), "{queue}");
    assert!(follow(at, &queue).contains("position"));
    let gangs = fits(at, &["gangs"]);
    assert!(gangs.contains("60 gangs.") && gangs.lines().count() < 10, "{gangs}");
    assert!(follow(at, &gangs).contains("MIN"));
    let nodes = fits(at, &["nodes"]);
    assert!(nodes.contains("node-3") && nodes.contains("4 nodes, asked about"), "{nodes}");
    assert!(follow(at, &nodes).contains("it would take"));

    let sorted =
        fits(at, &["explain", "pods", "--sort", "-age,name", "--owner", "Deployment/workload-number-07"]);
    assert!(sorted.contains("34 pods pending."), "{sorted}");
    let some = fits(at, &["explain", "pods", "--sort", "name"]);
    assert!(some.contains("and 1015 more pods: --limit 1060 shows all"), "{some}");
    let all = run(at, 100, &["explain", "pods", "--all"]);
    assert_eq!(all.stdout.lines().filter(|line| line.contains("default/workload")).count(), PODS);
    assert_eq!(run(at, 100, &["gangs", "--all"]).stdout.matches("default/gang-").count(), GANGS + 1);
    let json: Value = serde_json::from_str(&run(at, 100, &["queue", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["units"].as_array().map(Vec::len), Some(PODS + GANGS));
    assert_eq!(json["meta"]["continue"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_pod_is_told_in_every_way() {
    let running = crowded().await;
    let at = running.instance.address;
    let body = running.read("/apis/v1/summary/pending?by=owner&owner=Deployment/workload-number-00");
    let name = body["rows"][0]["example"].as_str().unwrap();

    let brief = run(at, 120, &["pod", name, "--brief"]);
    assert_eq!(brief.stdout.lines().count(), 3, "{}", brief.stdout);
    assert!(brief.stdout.contains("\nOutlook: NeverFits. "), "{}", brief.stdout);
    let versus = run(at, 120, &["explain", "pod", name, "--versus", "node-1", "--history"]).stdout;
    assert!(versus.contains("NeverFits") && versus.contains("Why not node-1: FilteredOut"), "{versus}");
    assert!(versus.contains("Refused") && versus.contains("What happened to"), "{versus}");
    for command in ["history", "wakeups"] {
        let ran = run(at, 120, &[command, name]);
        assert!(ran.stdout.contains("NodeResourcesFit") || ran.stdout.contains("Refused"), "{}", ran.stdout);
        follow(at, &ran.stdout);
    }
    follow(at, &run(at, 120, &["suggestions", "pod", name]).stdout);
    follow(at, &run(at, 120, &["suggestions", "gang", "gang-07", "-n", "default"]).stdout);
    assert_eq!(run(at, 120, &["gang", "gang-07", "--brief"]).stdout.lines().count(), 3);
    assert_eq!(run(at, 120, &["evictions"]).stdout, "No eviction is remembered.\n");
    let events = run(at, 120, &["events", "--kind", "Refused", "--pod", "workload-number-00", "--tail", "7"]);
    assert_eq!(events.stdout.lines().count(), 7, "{}{}", events.stdout, events.stderr);
    assert!(events.stdout.lines().all(|line| line.contains("Refused") && line.contains("number-00")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_say_what_came_of_it() {
    let running = start(vec![node("node-0", "za", 8)]).await;
    let at = running.instance.address;
    client::wait(at, "/apis/v1/nodes", "the node", |body| body["count"] == 1);
    let folder = tempfile::tempdir().unwrap();
    let question = |replicas: usize| {
        let manifest = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": replicas, "template": {"spec": pod("web", 1_000)["spec"].clone()}}
        });
        let file = folder.path().join(format!("{replicas}.yaml"));
        std::fs::write(&file, manifest.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let fits = run(at, 120, &["simulate", "-f", &question(5)]);
    assert_eq!(fits.code, Some(0), "{}", fits.stderr);
    let row = fits.stdout.lines().find(|line| line.contains("default/web-0 … default/web-4")).unwrap();
    assert!(row.contains("node-0 (5)"), "{row}");
    let too_many = run(at, 120, &["simulate", "-f", &question(11)]);
    assert_eq!(too_many.code, Some(3), "{}", too_many.stderr);
    assert!(too_many.stdout.contains("8 pods would get a place, 3 would not"), "{}", too_many.stdout);
    assert_eq!(too_many.stdout.matches("(3 pods): ").count(), 1, "{}", too_many.stdout);
    assert_eq!(run(at, 120, &["simulate", "-f", &question(11), "-o", "json"]).code, Some(3));

    let wrong = run(at, 120, &["nodes", "--owner", "Job/x"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("owner"), "{}", wrong.stderr);
    assert_eq!(run(at, 120, &["explain", "pods", "--limit", "0"]).code, Some(2));
    assert_eq!(run(at, 120, &["history", "nobody"]).code, Some(1));
    let none = run(at, 120, &["queue", "--owner", "Job/x"]).stdout;
    assert_eq!(none, "Nothing waits among those that the filters admit.\n");
    let nothing = run(at, 120, &["explain", "pods"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "No pod is pending.\n"));
}
