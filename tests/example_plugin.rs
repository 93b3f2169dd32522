//! The example of `docs/writing-a-plugin.md`: a scheduler with a plugin from outside this crate, as a separate
//! process against a sandbox.
//!
//! `cargo test` builds examples with the tests, so the binary is next to this one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pellucid::sandbox::{Config, Handle, Sandbox};
use serde_json::{Value, json};

/// Time limit of every wait. Reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is checked, each time after a newer generation was published.
const TRIES: usize = 200;

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    pluginConfig:
      - name: FavouriteNode
        args:
          least: 10
";

/// The example as a process, killed with the test.
struct Example {
    process: Child,
    lines: Receiver<String>,
    log: Vec<String>,
}

impl Example {
    fn start(kubeconfig: &Path, config: &Path) -> Self {
        let mut process = Command::new(binary())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--config")
            .arg(config)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = channel();
        // Reads to the end, so that the process never blocks on a full pipe.
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
        });
        Self { process, lines, log: Vec::new() }
    }

    /// Returns the address of its REST server, read from its log.
    fn address(&mut self) -> SocketAddr {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let Ok(line) = line else { panic!("it did not say where it listens:\n{}", self.log.join("\n")) };
            if let Some((_, address)) = line.split_once("rest=http://") {
                return address.trim().parse().unwrap();
            }
            self.log.push(line);
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // Killing fails when the process has already ended, which is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn binary() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap();
    let name = format!("favourite_node{}", std::env::consts::EXE_SUFFIX);
    let binary = built.join("examples").join(name);
    assert!(binary.exists(), "{} is missing: `cargo build --example favourite_node`", binary.display());
    binary
}

/// Repeats a read until the response satisfies a condition.
fn wait_for(address: SocketAddr, path: &str, is_wanted: impl Fn(&client::Reply) -> bool) -> client::Reply {
    let mut generation = 0;
    for _ in 0..TRIES {
        let reply = client::get(address, path);
        if is_wanted(&reply) {
            return reply;
        }
        // The server responds when a newer generation is published, or after its time limit.
        let newer = client::get(address, &format!("/apis/v1/queue?minGeneration={}", generation + 1));
        generation = newer.header("x-snapshot-generation").parse().unwrap_or(generation);
    }
    let reply = client::get(address, path);
    panic!("{path} answers {} {}", reply.status, reply.text());
}

async fn sandbox() -> Handle {
    let node = |name: &str, favour: Option<&str>| {
        let mut labels = json!({"kubernetes.io/hostname": name});
        if let Some(favour) = favour {
            labels["example.com/favour"] = json!(favour);
        }
        let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"capacity": amounts, "allocatable": amounts,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    let objects = vec![node("loved", Some("90")), node("plain", None), node("shunned", Some("5"))];
    Sandbox::start(Config { objects, ..Config::default() }).await.unwrap()
}

fn pod(name: &str, selector: Value) -> Value {
    let main = json!({"name": "main", "image": "registry.example/web:1",
                      "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "pellucid", "nodeSelector": selector, "containers": [main]},
    })
}

fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": {"server": server}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "anybody"}}],
        "users": [{"name": "anybody", "user": {}}],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_from_outside_decides_and_can_be_read() {
    let sandbox = sandbox().await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let kubeconfig = write("kubeconfig.json", &kubeconfig(&sandbox.url()));
    let config = write("config.yaml", CONFIG);
    let mut example = Example::start(&kubeconfig, &config);
    let address = example.address();
    wait_for(address, "/readyz", |reply| reply.status == 200);

    // The plugin is listed with the others, with its arguments and its own endpoint.
    let services = client::get(address, "/apis/v1/__services__").json();
    let gets: Vec<&str> = services["GET"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for end in ["config", "schema", "state", "stats"] {
        assert!(gets.contains(&format!("/apis/v1/plugins/FavouriteNode/{end}").as_str()), "{gets:?}");
    }
    let schemas = client::get(address, "/openapi.json").json();
    assert!(schemas["components"]["schemas"]["FavouriteNodeState"].is_object());
    let state = wait_for(address, "/apis/v1/plugins/FavouriteNode/state", |reply| {
        reply.json()["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
    });
    let expected = json!({
        "nodes": [{"node": "loved", "favour": 90}, {"node": "shunned", "favour": 5}],
        "unlabelledNodes": 1,
    });
    assert_eq!(state.json(), expected);
    let in_force = client::get(address, "/apis/v1/plugins/FavouriteNode/config").json();
    assert_eq!(in_force["profiles"]["pellucid"], json!({"least": 10, "unlabelled": 50}), "{in_force}");

    // The plugin's score is a column of the table.
    assert_eq!(client::put(address, "/debug/flags/s", "5").status, 200);
    sandbox.create(pod("free", json!({}))).unwrap();
    let table = wait_for(address, "/apis/v1/scores/default/free", |reply| reply.status == 200).json();
    assert_eq!(table["chosen"], "loved", "{table}");
    assert_eq!(table["feasibleNodes"], 2);
    let column = |row: &Value| {
        let plugins = row["plugins"].as_array().unwrap();
        plugins.iter().find(|p| p["plugin"] == "FavouriteNode").unwrap()["weighted"].clone()
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(column).collect::<Vec<_>>(), [json!(180), json!(100)]);
    let all = client::get(address, "/apis/v1/scores").json();
    assert_eq!(all["tables"][0]["name"], "free");

    // The plugin's refusal is a reason like any other.
    sandbox.create(pod("bound-to-fail", json!({"kubernetes.io/hostname": "shunned"}))).unwrap();
    let explained = wait_for(address, "/apis/v1/explain/pods/default/bound-to-fail", |reply| {
        reply.status == 200 && reply.json()["verdict"] == "refused"
    });
    let explained = explained.json();
    let groups = explained["nodeGroups"].as_array().unwrap();
    let ours = groups.iter().find(|g| g["plugin"] == "FavouriteNode").unwrap();
    assert_eq!(ours["reasons"][0]["code"], "PluginRefused");
    assert_eq!(ours["exampleNodes"], json!(["shunned"]));
    let message = explained["message"].as_str().unwrap();
    assert!(message.starts_with("0/3 nodes are available: 1 node(s) were not favoured enough"), "{message}");

    drop(example);
    sandbox.stop().await;
}
