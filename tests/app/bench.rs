//! `pellucid bench`: on its own sandbox, on a given cluster, and what it leaves behind.

use kube::api::ListParams;
use kube::{Api, ResourceExt};
use pellucid::sandbox::Config;
use serde_json::{Value, json};

use crate::commands::{fails, pellucid};
use crate::common::kubeconfig;
use crate::common::running::sandbox;

const SMALL: [&str; 10] =
    ["--nodes", "3", "--pods", "12", "--runs", "2", "--warmup", "0", "--format", "json"];

fn report(args: &[&str]) -> Value {
    let ran = pellucid(&[&["bench"], args, &SMALL].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn without_a_cluster_it_measures_its_own() {
    let report = report(&["all"]);
    assert_eq!(report["version"], 1);
    assert_eq!(report["runs"].as_array().unwrap().len(), 6, "{report:#}");
    for result in report["results"].as_array().unwrap() {
        let [min, median, max] = ["min", "median", "max"].map(|key| result[key].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{result}");
    }
    assert!(report["scheduler"]["peakMemoryBytes"].as_u64().unwrap() > 1 << 20, "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_cluster_is_left_as_it_was() {
    let (sandbox, client) = sandbox(Config::default()).await;
    let file = kubeconfig(&sandbox.url());
    let path = file.path().to_str().unwrap().to_owned();
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client);
    let names = async || {
        let all = namespaces.list(&ListParams::default()).await.unwrap();
        all.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let before = names().await;
    let args = ["bindcap", "--kubeconfig", &path];
    let report = report(&args);
    assert_eq!(report["results"][0]["name"], "bindcap");
    assert_eq!((sandbox.count("nodes"), sandbox.count("pods"), names().await), (0, 0, before));

    // A node that an earlier bench left behind is not touched until the user says so.
    let left = json!({"metadata": {"name": "left", "labels": {"pellucid.dev/bench": "true"}}});
    nodes.create(&Default::default(), &serde_json::from_value(left).unwrap()).await.unwrap();
    let again = [&["bench"], &args[..], &SMALL].concat();
    fails(&again, 1, &["an earlier bench left 1 objects (node left): --clean removes them"]);
    assert_eq!(sandbox.count("nodes"), 1);
    assert_eq!(pellucid(&[&again[..], &["--clean"]].concat()).code, 0);
    assert_eq!(sandbox.count("nodes"), 0);
    // A namespace of others is never cleaned.
    let theirs = [&again[..], &["--clean", "--namespace", "default"]].concat();
    fails(&theirs, 1, &["--namespace default exists and was not made by a bench"]);
    sandbox.stop().await;
}

#[test]
fn bad_input_is_refused() {
    fails(&["bench", "--pods", "0"], 2, &["--pods", "a whole number of at least 1"]);
    fails(&["bench", "arrivals"], 2, &["--rate"]);
    fails(&["bench", "--scheduler-name", "other"], 1, &["--scheduler-name other needs --kubeconfig"]);
}
