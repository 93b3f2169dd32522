//! The example FavouriteNode: what it decides, and what can be read of it.

use pellucid::sandbox::{Config, Handle, Sandbox};
use serde_json::{Value, json};

use crate::common::process::Process;
use crate::common::running::{node, pod, with};
use crate::common::{client, kubeconfig, until};
use crate::examples::binary;

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

async fn sandbox() -> Handle {
    let favoured = |name: &str, favour: &str| {
        let mut node = node(name, "z", 4);
        node["metadata"]["labels"]["example.com/favour"] = favour.into();
        node
    };
    let objects = vec![favoured("loved", "90"), node("plain", "z", 4), favoured("shunned", "5")];
    Sandbox::start(Config { objects, ..Config::default() }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_from_outside_decides_and_can_be_read() {
    let sandbox = sandbox().await;
    let kubeconfig = kubeconfig(&sandbox.url());
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), CONFIG).unwrap();
    let files = [kubeconfig.path(), config.path()].map(|path| path.to_str().unwrap());
    let args = ["--kubeconfig", files[0], "--config", files[1], "--listen", "127.0.0.1:0"];
    let example = Process::start_binary(binary("favourite_node").to_str().unwrap(), &args);
    let address = client::address_in(&example.wait_for_stderr("rest=http://"));
    until("it is ready", || client::get(address, "/readyz").status == 200);
    let wait =
        |path: &str, wanted: &dyn Fn(&Value) -> bool| client::wait(address, path, "what is wanted", wanted);

    // The plugin is listed with the others, with its arguments and its own endpoint.
    let services = client::get(address, "/apis/v1/__services__").json();
    let gets: Vec<&str> = services["GET"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for end in ["config", "schema", "state", "stats"] {
        assert!(gets.contains(&format!("/apis/v1/plugins/FavouriteNode/{end}").as_str()), "{gets:?}");
    }
    let schemas = client::get(address, "/openapi.json").json();
    assert!(schemas["components"]["schemas"]["FavouriteNodeState"].is_object());
    let state = wait("/apis/v1/plugins/FavouriteNode/state", &|body| {
        body["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
    });
    let expected = json!({
        "nodes": [{"node": "loved", "favour": 90}, {"node": "shunned", "favour": 5}],
        "unlabelledNodes": 1,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&state[field], value, "{state}");
    }
    assert_eq!(state["meta"]["kind"], "FavouriteNodeState", "{state}");
    let in_force = client::get(address, "/apis/v1/plugins/FavouriteNode/config").json();
    assert_eq!(in_force["profiles"]["pellucid"], json!({"least": 10, "unlabelled": 50}), "{in_force}");

    // The plugin's score is a column of the table.
    assert_eq!(client::put(address, "/debug/flags/s", "5").status, 200);
    sandbox.create(pod("free", 100)).unwrap();
    let table = wait("/apis/v1/scores/default/free", &|_| true);
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
    let fails = with(pod("bound-to-fail", 100), "nodeSelector", json!({"kubernetes.io/hostname": "shunned"}));
    sandbox.create(fails).unwrap();
    let explained = wait("/apis/v1/explain/pods/default/bound-to-fail", &|body| body["verdict"] == "refused");
    let groups = explained["nodeGroups"].as_array().unwrap();
    let ours = groups.iter().find(|g| g["plugin"] == "FavouriteNode").unwrap();
    assert_eq!(ours["reasons"][0]["code"], "NotFavouredEnough");
    assert_eq!(ours["reasons"][0]["resolver"], "cluster admin");
    assert_eq!(ours["exampleNodes"], json!(["shunned"]));
    let message = explained["message"].as_str().unwrap();
    assert!(message.starts_with("0/3 nodes are available: 1 node(s) were not favoured enough"), "{message}");
    let registered = client::get(address, "/apis/v1/reasons").json();
    let registered = registered["reasons"].as_array().unwrap();
    let entry = registered.iter().find(|entry| entry["code"] == "NotFavouredEnough").unwrap();
    assert_eq!(entry["plugin"], "FavouriteNode");
    assert_eq!(entry["remedy"], ours["reasons"][0]["remedy"]);

    // In the metrics a pod counts under what its nearest node refuses it for: both pods under that reason.
    let by_name = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["shunned"]}]},
        ],
    }}});
    sandbox.create(with(pod("nowhere-else", 100), "affinity", by_name)).unwrap();
    let sample = "pellucid_pending_reasons{code=\"NotFavouredEnough\",profile=\"pellucid\"} 2";
    until("the metric has it", || client::get(address, "/metrics").text().contains(sample));

    drop(example);
    sandbox.stop().await;
}
