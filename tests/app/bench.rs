//! `pellucid bench`: on its own sandbox, on a given cluster, and what it leaves behind.

use kube::api::ListParams;
use kube::{Api, ResourceExt};
use pellucid::sandbox::Config;
use serde_json::{Value, json};

use crate::app::commands::{fails, pellucid};
use crate::common::dialects::DIALECTS;
use crate::common::process::Process;
use crate::common::running::sandbox;
use crate::common::{kubeconfig, until};

const SMALL: [&str; 14] = [
    "--nodes",
    "3",
    "--pods",
    "12",
    "--gangs",
    "3",
    "--gang-size",
    "2",
    "--runs",
    "2",
    "--warmup",
    "0",
    "--format",
    "json",
];

fn report(args: &[&str]) -> Value {
    let ran = pellucid(&[&["bench"], args, &SMALL].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn without_a_cluster_it_measures_its_own() {
    let report = report(&["all"]);
    assert_eq!(report["version"], 1);
    // Bindcap, a drain, arrivals and five dialects of gangs, twice each.
    assert_eq!(report["runs"].as_array().unwrap().len(), 16, "{report:#}");
    for dialect in DIALECTS {
        let count = |runs: &[Value]| runs.iter().filter(|run| run["dialect"] == dialect).count();
        assert_eq!(count(report["runs"].as_array().unwrap()), 2, "{report:#}");
    }
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
    assert_eq!((sandbox.count("nodes"), sandbox.count("pods")), (0, 0));
    // A namespace goes once the namespace controller has found it empty.
    let end = tokio::time::Instant::now() + crate::common::PATIENCE;
    while names().await != before {
        assert!(tokio::time::Instant::now() < end, "left: {:?}", names().await);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

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
fn a_table_of_gangs_has_the_chosen_dialects_alone() {
    let args = [
        "bench",
        "gangs",
        "--dialect",
        "native,kube-batch",
        "--gangs",
        "2",
        "--gang-size",
        "3",
        "--nodes",
        "2",
    ];
    let ran = pellucid(&[&args[..], &["--runs", "1", "--warmup", "0"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("pellucid: 2 nodes, 2 gangs of 3\n"), "{}", ran.stdout);
    let rows = ran.stdout.lines().filter_map(|line| line.strip_prefix("| gangs "));
    let names: Vec<&str> = rows.filter_map(|row| row.split(" |").next()).collect();
    let of = |dialect: &str| {
        let quantile = |quantile| format!("{dialect}, last create to all bound {quantile}");
        [dialect.to_owned(), quantile("p50"), quantile("p99"), quantile("max")]
    };
    assert_eq!(names, [of("kube-batch"), of("native")].concat());
}

/// No scheduler has this name, so the gangs are pending when the bench is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_bench_removes_its_pod_groups() {
    let (sandbox, _client) = sandbox(Config::default()).await;
    let file = kubeconfig(&sandbox.url());
    let path = file.path().to_str().unwrap();
    let args =
        ["bench", "gangs", "--dialect", "coscheduling", "--scheduler-name", "nobody", "--kubeconfig", path];
    let mut bench = Process::start(&[&args[..], &SMALL].concat());
    until("the members are there", || sandbox.count("pods") == 6);
    assert_eq!(sandbox.count("podgroups.scheduling.x-k8s.io"), 3);
    bench.terminate();
    let left = ["pods", "nodes", "podgroups.scheduling.x-k8s.io"].map(|resource| sandbox.count(resource));
    assert_eq!(left, [0, 0, 0]);
    sandbox.stop().await;
}

#[test]
fn bad_input_is_refused() {
    fails(&["bench", "gangs", "--dialect", "volcano"], 2, &["--dialect", "volcano", "kube-batch"]);
    fails(&["bench", "gangs", "--gang-size", "0"], 2, &["--gang-size", "a whole number of at least 1"]);
    fails(&["bench", "--pods", "0"], 2, &["--pods", "a whole number of at least 1"]);
    fails(&["bench", "arrivals"], 2, &["--rate"]);
    fails(&["bench", "--scheduler-name", "other"], 1, &["--scheduler-name other needs --kubeconfig"]);
}
