//! kubectl works against the sandbox: get, describe, apply, delete and `get -w`; the binary works as a kubectl
//! plugin, and what `deploy/` holds can be applied.
//!
//! Without kubectl on the PATH the tests report that and pass.

#![expect(clippy::print_stdout, reason = "the transcript tells what went wrong")]

mod deploy;
mod devices;
mod plugin;
mod quotas;
mod reservations;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::config::{self, Configuration};
use pellucid::plugins;
use pellucid::sandbox::{Config, Kubelet, Sandbox};
use serde_json::Value;

use crate::common::process::finish;
use crate::common::running::parts;

const PATIENCE: Duration = Duration::from_secs(30);

/// A child process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Kubectl {
    url: String,
    home: tempfile::TempDir,
}

impl Kubectl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.home.path().join("none"));
        command.arg(format!("--server={}", self.url)).args(arguments);
        command
    }

    /// Runs kubectl to completion, for at most [`PATIENCE`].
    fn output(&self, arguments: &[&str]) -> Output {
        finish(self.command(arguments), PATIENCE)
    }

    /// Runs kubectl, expects success, and returns its output.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?} failed:\n{out}\n{err}");
        println!("$ kubectl {}\n{out}{err}", arguments.join(" "));
        out.into_owned()
    }

    /// Runs kubectl, expects success and these words.
    fn shows(&self, arguments: &[&str], words: &[&str]) {
        contains(&self.says(arguments), words);
    }

    /// Starts a kubectl that keeps running, and returns its lines as they appear.
    fn follow(&self, arguments: &[&str]) -> (Running, mpsc::Receiver<String>) {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("kubectl starts");
        let out = child.stdout.take().expect("stdout is piped");
        let (send, lines) = mpsc::sync_channel(1024);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        (Running(child), lines)
    }
}

/// Waits for a line that contains all words.
fn await_line(lines: &mpsc::Receiver<String>, words: &[&str]) {
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with {words:?}"));
        println!("watch: {line}");
        if words.iter().all(|word| line.contains(word)) {
            return;
        }
    }
}

/// Repeats a command until it prints the expected text; old versions of kubectl cannot wait for everything.
fn await_answer(kubectl: &Kubectl, arguments: &[&str], wanted: &str) {
    const ATTEMPTS: usize = 100;
    let is_wanted = |_: usize| kubectl.says(arguments).trim() == wanted;
    assert!((0..ATTEMPTS).any(is_wanted), "kubectl {arguments:?} never said {wanted:?}");
}

fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

/// Returns whether kubectl is installed, and reports if it is not.
fn kubectl_is_there() -> bool {
    let mut version = Command::new("kubectl");
    version.args(["version", "--client"]).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = version.status().is_ok();
    if !is_there {
        println!("\n*** NOT RUN: there is no kubectl on the PATH, so nothing was tested here ***\n");
    }
    is_there
}

/// Runs a session of kubectl against a fresh sandbox; without kubectl it only reports that.
async fn with_kubectl(session: fn(&Kubectl)) {
    if !kubectl_is_there() {
        return;
    }
    let kubelet = Some(Kubelet { start_delay: Duration::ZERO, stop_delay: Duration::ZERO });
    let sandbox = Sandbox::start(Config { kubelet, ..Config::default() }).await.expect("the sandbox starts");
    let home = tempfile::tempdir().expect("a directory");
    let kubectl = Kubectl { url: sandbox.url(), home };
    tokio::task::spawn_blocking(move || session(&kubectl)).await.expect("the session ends well");
    sandbox.stop().await;
}

/// Runs a session of kubectl against a sandbox with some objects, on which a scheduler works that is configured so; without
/// kubectl it only reports that.
async fn with_scheduler(
    objects: Vec<Value>,
    configure: impl FnOnce(&InstanceConfig) -> Configuration,
    session: fn(&Kubectl),
) {
    if !kubectl_is_there() {
        return;
    }
    let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.expect("the sandbox starts");
    let made = parts(sandbox.kube_config()).await;
    let configuration = configure(&made);
    let instance = Instance::start(InstanceConfig { configuration, ..made }).await.expect("an instance");
    let kubectl = Kubectl { url: sandbox.url(), home: tempfile::tempdir().expect("a directory") };
    tokio::task::spawn_blocking(move || session(&kubectl)).await.expect("the session ends well");
    instance.stop().await;
    sandbox.stop().await;
}

/// Returns the default configuration with one more plugin, as an entry of `enabled` says.
fn enabling(plugin: &str) -> Configuration {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n  \
         - schedulerName: pellucid\n    plugins: {{multiPoint: {{enabled: [{{{plugin}}}]}}}}\n"
    );
    config::parse(&text, "the test's", &plugins::registry()).expect("a configuration")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_describes_applies_deletes_and_watches() {
    with_kubectl(session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_handles_volumes_and_their_workloads() {
    with_kubectl(storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_handles_gangs_and_their_definitions() {
    with_kubectl(gangs).await;
}

fn session(kubectl: &Kubectl) {
    kubectl.shows(&["api-resources"], &["deployments", "deploy", "apps/v1", "poddisruptionbudgets", "pods"]);
    let (_watch, lines) = kubectl.follow(&["get", "pods", "-w"]);
    let (_nodes, node_lines) = kubectl.follow(&["get", "nodes", "-w"]);
    let (_deployments, deployment_lines) = kubectl.follow(&["get", "deployments", "-w"]);
    kubectl.shows(
        &["apply", "-f", "tests/data/kubectl/cluster.yaml"],
        &["node/n1 created", "pod/alone created"],
    );
    await_line(&lines, &["alone", "Pending"]);
    await_line(&node_lines, &["n1", "Ready"]);
    kubectl.shows(
        &["apply", "-f", "tests/data/kubectl/cluster.yaml"],
        &["node/n1 unchanged", "pod/alone unchanged"],
    );
    kubectl.shows(&["get", "nodes"], &["NAME", "STATUS", "n1", "Ready", "v1.36.0"]);
    kubectl.shows(&["get", "nodes", "-o", "wide"], &["INTERNAL-IP", "10.0.0.1"]);
    kubectl.shows(&["get", "pods"], &["NAME", "READY", "0/1", "Pending"]);
    kubectl.shows(&["describe", "node", "n1"], &["Capacity:", "Allocatable:", "Non-terminated Pods:"]);

    bind(kubectl, "alone");
    await_line(&lines, &["alone", "1/1", "Running"]);
    kubectl.shows(&["describe", "pod", "alone"], &["Node:", "n1", "Status:", "Running", "Events:"]);

    kubectl.shows(&["apply", "-f", "tests/data/kubectl/deployment.yaml"], &["deployment.apps/web created"]);
    await_answer(kubectl, &["get", "deployment", "web", "-o", "jsonpath={.status.replicas}"], "2");
    kubectl.shows(&["get", "deployments"], &["UP-TO-DATE", "web", "0/2"]);
    for pod in kubectl.says(&["get", "pods", "-l", "app=web", "-o", "name"]).lines() {
        bind(kubectl, pod.trim_start_matches("pod/"));
    }
    kubectl.shows(&["rollout", "status", "deployment/web", "--timeout=20s"], &["successfully rolled out"]);
    await_line(&deployment_lines, &["web", "2/2"]);
    kubectl.shows(&["get", "deploy,rs,pods"], &["deployment.apps/web", "replicaset.apps/web-", "2/2"]);
    kubectl.shows(&["describe", "deployment", "web"], &["Replicas:", "2 available", "NewReplicaSet:"]);
    kubectl.shows(&["scale", "deployment/web", "--replicas=1"], &["scaled"]);
    kubectl.shows(&["label", "pod", "alone", "tier=front"], &["labeled"]);
    kubectl.shows(&["get", "pods", "-l", "tier=front", "-o", "yaml"], &["tier: front", "kind: Pod"]);
    kubectl.shows(&["cordon", "n1"], &["cordoned"]);
    kubectl.shows(&["get", "nodes"], &["SchedulingDisabled"]);
    await_line(&node_lines, &["n1", "SchedulingDisabled"]);
    kubectl.shows(&["get", "events", "-A"], &[]);

    kubectl.shows(&["delete", "deployment", "web"], &["deleted"]);
    kubectl.shows(&["delete", "-f", "tests/data/kubectl/cluster.yaml"], &["deleted"]);
    await_answer(kubectl, &["get", "pods", "-l", "app=web", "-o", "name"], "");
    let missing = kubectl.output(&["get", "pod", "alone"]);
    contains(
        &String::from_utf8_lossy(&missing.stderr),
        &["Error from server (NotFound): pods \"alone\" not found"],
    );
}

/// Binds a pod as a scheduler would.
fn bind(kubectl: &Kubectl, pod: &str) {
    let binding = serde_json::json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": "n1"}
    });
    let file = kubectl.home.path().join("binding.json");
    std::fs::write(&file, binding.to_string()).expect("written");
    let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
    kubectl.says(&["create", "--raw", &path, "-f", &file.to_string_lossy()]);
}

fn storage(kubectl: &Kubectl) {
    let (storage, workloads) = ("tests/data/kubectl/storage.yaml", "tests/data/kubectl/workloads.yaml");
    kubectl.shows(
        &["apply", "-f", storage],
        &["storageclass.storage.k8s.io/disks created", "persistentvolumeclaim/mine created"],
    );
    for claim in ["mine", "made"] {
        await_answer(kubectl, &["get", "pvc", claim, "-o", "jsonpath={.status.phase}"], "Bound");
    }
    kubectl.shows(&["apply", "-f", storage], &["persistentvolume/by-hand unchanged"]);
    kubectl.shows(
        &["get", "pv", "by-hand"],
        &["CAPACITY", "RECLAIM POLICY", "5Gi", "RWO,ROX", "Retain", "Bound", "default/mine", "manual"],
    );
    kubectl.shows(&["get", "pvc"], &["VOLUME", "by-hand", "pvc-", "2Gi", "RWO", "disks"]);
    kubectl.shows(
        &["get", "sc"],
        &["VOLUMEBINDINGMODE", "disks (default)", "disk.example.org", "Delete", "Immediate", "false"],
    );
    kubectl.shows(
        &["get", "csinodes,csidrivers,csistoragecapacities,volumeattachments"],
        &["DRIVERS", "Persistent", "zone-a", "100Gi", "ATTACHER", "by-hand"],
    );
    kubectl.shows(&["describe", "pvc", "made"], &["StorageClass:", "disks", "Bound", "Used By:"]);
    kubectl.shows(&["describe", "pv", "by-hand"], &["Node Affinity:", "n1", "LocalVolume"]);
    kubectl.shows(&["describe", "sc", "disks"], &["IsDefaultClass:", "Yes"]);
    for kind in ["csinode", "csidriver", "csistoragecapacity", "volumeattachment"] {
        kubectl.shows(&["describe", kind], &["Name:"]);
    }

    kubectl.shows(&["apply", "-f", workloads], &["statefulset.apps/db created", "service/db created"]);
    await_answer(kubectl, &["get", "pod", "db-0", "-o", "jsonpath={.metadata.name}"], "db-0");
    bind(kubectl, "db-0");
    await_answer(kubectl, &["get", "sts", "db", "-o", "jsonpath={.status.replicas}"], "2");
    bind(kubectl, "db-1");
    kubectl.shows(&["rollout", "status", "sts/db", "--timeout=20s"], &["roll out complete"]);
    kubectl.shows(&["get", "sts,rc,svc,pvc"], &["2/2", "DESIRED", "5432/TCP", "None", "data-db-1"]);
    kubectl.shows(&["describe", "sts", "db"], &["Volume Claims:", "2 Running"]);
    kubectl.shows(&["describe", "rc", "old"], &["Replicas:", "1 current / 1 desired"]);
    kubectl.shows(&["describe", "svc", "db"], &["Selector:", "app=db", "5432/TCP"]);
    await_answer(kubectl, &["get", "pdb", "db", "-o", "jsonpath={.status.disruptionsAllowed}"], "1");
    kubectl.shows(&["describe", "pdb", "db"], &["Max unavailable:", "Allowed disruptions:"]);
    kubectl.shows(&["get", "pc"], &["urgent", "1000", "PreemptLowerPriority"]);
    kubectl.shows(&["describe", "pc", "urgent"], &["For what cannot wait."]);
    kubectl.shows(&["scale", "sts/db", "--replicas=1"], &["scaled"]);
    await_answer(kubectl, &["get", "pod", "db-1", "--ignore-not-found", "-o", "name"], "");
    kubectl.shows(&["delete", "-f", workloads], &["deleted"]);
    kubectl.shows(&["delete", "-f", storage], &["deleted"]);
    kubectl.shows(&["delete", "pvc", "--all"], &["data-db-0", "data-db-1"]);
    await_answer(kubectl, &["get", "pv", "-o", "name"], "");
}

fn gangs(kubectl: &Kubectl) {
    let groups = "tests/data/kubectl/groups.yaml";
    kubectl.shows(
        &["get", "crds"],
        &[
            "podgroups.scheduling.x-k8s.io",
            "queues.scheduling.sigs.dev",
            "podgroups.scheduling.incubator.k8s.io",
        ],
    );
    kubectl.says(&["apply", "-f", groups]);
    kubectl.says(&["apply", "-f", "api/crds"]);
    let again = kubectl.says(&["apply", "-f", "api/crds", "-f", groups]);
    contains(
        &again,
        &["podgroups.scheduling.x-k8s.io unchanged", "podgroup.scheduling.k8s.io/crew unchanged"],
    );
    let mut definitions = again.lines().filter(|line| line.starts_with("customresourcedefinition"));
    assert!(definitions.all(|line| line.ends_with(" unchanged")), "{again}");

    let status = r#"{"status":{"phase":"Running","running":3,"failed":1}}"#;
    let file = kubectl.home.path().join("status.json");
    let mut group: serde_json::Value =
        serde_json::from_str(&kubectl.says(&["get", "pg", "training", "-o", "json"])).expect("JSON");
    group["status"] = serde_json::from_str::<serde_json::Value>(status).expect("JSON")["status"].take();
    std::fs::write(&file, group.to_string()).expect("written");
    let path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/training/status";
    kubectl.says(&["replace", "--raw", path, "-f", &file.to_string_lossy()]);
    for name in ["pg", "pgs", "podgroups.scheduling.x-k8s.io"] {
        let table = kubectl.says(&["get", name]);
        contains(&table, &["PHASE", "MINMEMBER", "RUNNING", "SUCCEEDED", "FAILED", "AGE"]);
        let row: Vec<&str> = table.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(row[..5], ["training", "Running", "4", "3", "1"], "{table}");
    }
    // Which group the short name selects depends on the version of kubectl.
    kubectl.shows(&["get", "podgroups"], &["NAME", "AGE"]);
    kubectl.shows(&["get", "podgroups.scheduling.sigs.k8s.io"], &["MINMEMBER", "loose", "0"]);
    kubectl.shows(&["get", "podgroups.scheduling.sigs.dev"], &["QUEUE", "batch", "research"]);
    kubectl.shows(&["get", "queues.scheduling.sigs.dev"], &["WEIGHT", "research", "3"]);
    kubectl.shows(
        &["get", "podgroups.v1alpha2.scheduling.k8s.io,workloads"],
        &["POLICY", "MINCOUNT", "SCHEDULED", "crew", "gang", "7", "TEMPLATES", "plan", "1"],
    );
    kubectl.shows(&["describe", "pg", "training"], &["Min Member:", "Min Resources:", "Running"]);
    kubectl.shows(&["delete", "-f", groups], &["\"training\" deleted", "\"crew\" deleted"]);
    kubectl.shows(&["delete", "-f", "api/crds"], &["deleted"]);
    let gone = kubectl.output(&["get", "queues"]);
    contains(&String::from_utf8_lossy(&gone.stderr), &["the server could not find the requested resource"]);
    kubectl.shows(&["apply", "-f", "api/crds"], &["queues.scheduling.sigs.dev created"]);
}
