//! `kubectl pellucid …`: kubectl finds the binary under its plugin name, and it queries a running demo.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::LOOK_EVERY;
use crate::common::demo::Demo;
use crate::kubectl::{contains, kubectl_is_there};

/// Two pods that fit and one that never does.
const MANIFESTS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      schedulerName: pellucid
      containers: [{name: main, image: i, resources: {requests: {cpu: 10m}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec:
  schedulerName: pellucid
  containers: [{name: main, image: i, resources: {requests: {cpu: 5000}}}]
";

/// kubectl with the plugin on its PATH.
struct Plugin {
    folder: tempfile::TempDir,
    server: String,
}

impl Plugin {
    fn new(server: String) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let link = folder.path().join("kubectl-pellucid");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pellucid"), link).expect("linked");
        Self { folder, server }
    }

    /// Runs kubectl with the server in the environment, as users set it once.
    fn output(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("kubectl");
        command.env_clear().env("PATH", format!("{}:{path}", self.folder.path().display()));
        command.env("HOME", self.folder.path()).env("PELLUCID_SERVER", &self.server).env("COLUMNS", "160");
        command.arg("pellucid").args(arguments).stdin(Stdio::null()).output().expect("kubectl runs")
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl pellucid {arguments:?} failed:\n{out}\n{err}");
        println!("$ kubectl pellucid {}\n{out}{err}", arguments.join(" "));
        out.into_owned()
    }

    fn shows(&self, arguments: &[&str], words: &[&str]) {
        contains(&self.says(arguments), words);
    }

    fn fails(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        contains(&String::from_utf8_lossy(&output.stderr), words);
    }
}

/// Repeats a read until there is a score table: the demo places a pod every 10 s.
fn await_table(plugin: &Plugin) -> Value {
    loop {
        let tables: Value = serde_json::from_str(&plugin.says(&["scores", "-o", "json"])).expect("JSON");
        match tables["tables"].get(0) {
            Some(table) => return table.clone(),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

#[test]
fn kubectl_runs_the_plugin_against_a_demo() {
    if !kubectl_is_there() {
        return;
    }
    let demo = Demo::start(&["-v", "0"]);
    let plugin = Plugin::new(format!("http://{}", demo.rest));

    plugin.shows(
        &["explain", "demo/needs-500-cores"],
        &["demo/needs-500-cores: refused", "Insufficient cpu", "NODES", "33 nodes refused"],
    );
    plugin.shows(&["explain", "pod", "ingress-1", "-n", "demo"], &["placed", "on edge-0"]);
    plugin.shows(&["explain", "gang", "too-many-gpus", "-n", "demo"], &["PLACEABLE", "nvidia.com/gpu"]);
    plugin.shows(&["gang", "too-many-gpus", "-n", "demo", "--brief"], &["Outlook: NotNow", "Best fix: "]);
    plugin.shows(&["explain", "pods"], &["\nkubectl pellucid explain pod demo/"]);
    assert!(plugin.says(&["explain", "pods", "-n", "elsewhere"]).contains("No pod is pending among"));
    plugin.shows(&["gangs"], &["demo/ranks", "demo/render", "kubectl pellucid explain gang"]);
    plugin.shows(&["queue"], &["unschedulable", "demo/needs-500-cores", "gated", "demo/crew"]);
    let queue: Value = serde_saphyr::from_str(&plugin.says(&["queue", "-o", "yaml"])).expect("YAML");
    assert!(queue["units"].as_array().is_some_and(|units| units.len() >= 9), "{queue}");

    plugin.shows(&["flags"], &["NAME", "VALUE"]);
    assert!(plugin.says(&["scores"]).contains("`kubectl pellucid flags s 5`"));
    plugin.shows(&["flags", "s", "5"], &["successfully set debugTopNScores to 5\n", "The next attempt"]);
    let table = await_table(&plugin);
    let name =
        format!("{}/{}", table["namespace"].as_str().expect("text"), table["name"].as_str().expect("text"));
    plugin.shows(&["scores", &name], &["NodeResourcesFit", "TOTAL", &format!("{name} went to")]);

    let file = plugin.folder.path().join("what-if.yaml");
    std::fs::write(&file, MANIFESTS).expect("written");
    let file = file.to_string_lossy();
    let simulated = plugin.output(&["simulate", "-n", "demo", "-f", &file]);
    assert_eq!(simulated.status.code(), Some(3), "one of them would not fit");
    contains(
        &String::from_utf8_lossy(&simulated.stdout),
        &["2 pods would get a place, 1 would not", "demo/web-1", "demo/giant: ", "Insufficient cpu"],
    );
    let outcome = plugin.output(&["simulate", "-f", &file, "-o", "json"]);
    let outcome: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    assert_eq!(outcome["placements"].as_array().map(Vec::len), Some(2), "{outcome}");
    plugin.fails(&["explain", "demo/web-1"], 1, &["PodNotFound"]);

    plugin.fails(&["explain", "demo/no-such-pod"], 1, &["PodNotFound"]);
    plugin.fails(&["run"], 2, &["unrecognized subcommand"]);
    let away = Plugin::new("http://127.0.0.1:9".to_owned());
    away.fails(&["gangs"], 1, &["through the API server: --kubeconfig ~/.kube/config"]);
}
