//! Shadow mode beside a scheduler that really binds: the same decisions with ties broken otherwise are all among the best,
//! what differs is listed with its reason, and nothing is written.
//!
//! The judgements alone, on a simulated clock, are tried in `tests/core/shadow.rs`; recorded decisions of kube-scheduler in
//! `tests/oracle/shadow.rs`.

use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::Client;
use kube::api::{ListParams, PostParams};
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::config;
use pellucid::sandbox::{Config, Handle};
use serde_json::{Value, json};

use crate::app::command_lists::{fits, follow, run};
use crate::common::running::{self, message, node, parts, pod, with};
use crate::common::{LOOK_EVERY, PATIENCE, client};

const OTHER: &str = "other";
const SHADOW: &str = "/apis/v1/shadow";
/// Pods that the other scheduler gets one by one, and at once.
const PODS: usize = 60;

async fn sandbox(objects: Vec<Value>) -> (Handle, Client) {
    running::sandbox(Config { objects, write_log: 10_000, ..Config::default() }).await
}

/// Returns the parts of a scheduler that the sandbox's log of writes knows by this name.
async fn named(sandbox: &Handle, agent: &'static str) -> InstanceConfig {
    let mut settings = sandbox.kube_config();
    settings.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    parts(settings).await
}

async fn shadow(sandbox: &Handle) -> Instance {
    let parts = InstanceConfig { shadow_of: Some(OTHER.into()), ..named(sandbox, "shadow").await };
    let instance = Instance::start(parts).await.expect("an instance");
    let synced = async {
        while !instance.io.watches.are_synced() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, synced).await.expect("it knows all lists");
    instance
}

/// Starts a scheduler under the name that is shadowed. Another seed breaks ties otherwise.
async fn other(sandbox: &Handle) -> Instance {
    let mut parts = named(sandbox, OTHER).await;
    let text = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": OTHER}],
    });
    let configuration = config::parse(&text.to_string(), "the test's", &parts.registry);
    parts.configuration = configuration.unwrap_or_else(|wrong| panic!("{wrong}"));
    parts.seed = 99;
    Instance::start(parts).await.expect("an instance")
}

fn theirs(name: &str, milli_cpu: u32) -> Value {
    with(pod(name, milli_cpu), "schedulerName", OTHER.into())
}

/// Binds a pod by hand, as the other scheduler.
async fn bind(client: &Client, name: &str, node: &str) {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    let binding: Binding = serde_json::from_value(binding).expect("a binding");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let bound = pods.create_subresource("binding", name, &PostParams::default(), &binding).await;
    let _: Status = bound.expect("bound by them");
}

/// Waits until this many Bindings were judged; returns the report.
fn judged(instance: &Instance, bindings: usize) -> Value {
    client::wait(instance.address, SHADOW, "all Bindings are judged", |body| {
        let judged = &body["judged"];
        judged["bindings"].as_u64().zip(judged["notJudged"].as_u64()).map(|(a, b)| a + b)
            == Some(bindings as u64)
    })
}

fn check_no_write(sandbox: &Handle) {
    let writes = sandbox.writes();
    assert!(writes.iter().any(|write| write.path.contains("/binding")), "somebody binds");
    let of_shadow: Vec<_> = writes.iter().filter(|write| write.user_agent.starts_with("shadow")).collect();
    assert!(of_shadow.is_empty(), "{of_shadow:?}");
}

/// Checks that a disagreement says why: the plugins' scores add up to the distance.
fn check_explained(of: &Value) {
    assert_eq!(of["judgement"], "LowerScore", "{of:#}");
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let shares = of["shares"].as_array().expect("plugins");
    let sum: i64 = shares.iter().map(|share| number(&share["ours"]) - number(&share["theirs"])).sum();
    assert_eq!(sum, number(&of["bestTotal"]) - number(&of["theirTotal"]), "{of:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_scheduler_with_other_ties_is_feasible_and_best() {
    let (sandbox, _) = sandbox((0..12).map(|n| node(&format!("n{n:02}"), "z", 8)).collect()).await;
    let shadow = shadow(&sandbox).await;
    let other = other(&sandbox).await;
    let create = |n: usize| {
        let size = 100 + u32::try_from(n * 37 % 250).expect("small");
        sandbox.create(theirs(&format!("p{n}"), size)).expect("a pod");
    };
    // One by one: nothing is assumed that nobody outside can know.
    let mut body = Value::Null;
    for n in 0..PODS {
        create(n);
        body = judged(&shadow, n + 1);
    }
    let all = &body["judged"];
    let percents = (&all["feasiblePercent"], &all["bestScorePercent"]);
    assert_eq!(percents, (&json!(100.0), &json!(100.0)), "{body:#}");
    assert_eq!((&all["bindings"], &body["disagreements"]), (&json!(PODS), &json!([])), "{body:#}");
    let (same, equal) = (all["sameNode"].as_u64(), all["equalScore"].as_u64());
    assert!(same > Some(0) && equal > Some(0), "ties are broken otherwise: {all:#}");
    // A drain: its Bindings may arrive in another order than they were decided in, and then the report says by which plugins.
    (PODS..2 * PODS).for_each(create);
    let body = judged(&shadow, 2 * PODS);
    let all = &body["judged"];
    assert_eq!((&all["feasiblePercent"], &all["infeasible"]), (&json!(100.0), &json!(0)), "{body:#}");
    body["disagreements"].as_array().expect("a list").iter().for_each(check_explained);
    assert_eq!(body["count"], all["lowerScore"]);
    println!(
        "{} Bindings, feasible {} %, best by score {} %",
        all["bindings"], all["feasiblePercent"], all["bestScorePercent"]
    );
    check_no_write(&sandbox);
    other.stop().await;
    shadow.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disagreements_are_a_list_that_fits_a_screen() {
    let (small, large) = (node("small", "z", 1), node("large", "z", 64));
    let (sandbox, client) = sandbox(vec![small, large]).await;
    let shadow = shadow(&sandbox).await;
    for n in 0..PODS {
        let name = format!("a-pod-with-a-rather-long-name-of-a-deployment-{n:02}");
        sandbox.create(theirs(&name, 2_000)).expect("a pod");
        bind(&client, &name, "small").await;
    }
    let body = judged(&shadow, PODS);
    assert_eq!(body["judged"]["infeasible"], PODS, "{:#}", body["judged"]);
    let read = |query: &str| client::get(shadow.address, &format!("{SHADOW}{query}"));
    let listed = |query: &str| read(query).json()["disagreements"].as_array().expect("a list").len();
    for all in ["", "?judgement=Infeasible,LowerScore", "?reason=InsufficientResource", "?node=small"] {
        assert_eq!(listed(all), PODS, "{all}");
    }
    for none in ["?judgement=LowerScore", "?namespace=kube-system", "?olderThan=1h", "?minPriority=1"] {
        assert_eq!(listed(none), 0, "{none}");
    }
    let page = read("?limit=25&fields=pod,judgement,reasons&sort=name").json();
    assert_eq!((&page["count"], &page["meta"]["remainingItemCount"]), (&json!(PODS), &json!(PODS - 25)));
    let first = &page["disagreements"][0];
    assert!(first["pod"].as_str().is_some_and(|pod| pod.ends_with("-00")), "{first:#}");
    assert_eq!((&first["reasons"][0]["code"], &first["at"]), (&json!("InsufficientResource"), &Value::Null));
    let token = page["meta"]["continue"].as_str().expect("a token");
    let rest = read(&format!("?limit=100&sort=name&continue={token}")).json();
    assert_eq!(rest["disagreements"].as_array().map(Vec::len), Some(PODS - 25));
    assert_eq!(read("?owner=Job/x").status, 400);

    let shown = fits(shadow.address, &["shadow"]);
    assert!(shown.contains("0.00 % went to a node that we find feasible,"), "{shown}");
    assert!(shown.contains("60 disagreements.\nand 35 more disagreements: --limit 60 shows all"), "{shown}");
    assert!(follow(shadow.address, &shown).contains("default/a-pod-with"));
    let none = run(shadow.address, 100, &["shadow", "--judgement", "LowerScore"]);
    assert!(none.code == Some(0) && !none.stdout.contains("a-pod-with"), "{}", none.stdout);
    let all = run(shadow.address, 100, &["shadow", "--all", "-o", "json"]).stdout;
    let all: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(all["disagreements"].as_array().map(Vec::len), Some(PODS));
    check_no_write(&sandbox);
    shadow.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shadow_mode_writes_nothing_and_counts_agreement() {
    let (sandbox, client) = sandbox(vec![node("only", "z", 4)]).await;
    let instance = shadow(&sandbox).await;
    sandbox.create(theirs("fits", 1000)).expect("a pod");
    sandbox.create(theirs("too-big", 64_000)).expect("a pod");
    client::wait(instance.address, "/apis/v1/queue", "both are decided", |body| {
        body["units"]
            .as_array()
            .is_some_and(|units| units.iter().any(|unit| unit["stage"] == "unschedulable"))
            && instance.snapshot().counters.attempts >= 2
    });
    bind(&client, "fits", "only").await;
    let body = judged(&instance, 1);
    assert_eq!(
        (&body["agreed"], &body["disagreed"], &body["notCompared"]),
        (&json!(1), &json!(0), &json!(0))
    );
    assert_eq!(body["agreementPercent"], 100.0);
    let judged = &body["judged"];
    assert_eq!(
        (&judged["bindings"], &judged["sameNode"], &judged["feasiblePercent"]),
        (&json!(1), &json!(1), &json!(100.0))
    );
    assert!(
        judged["oursTook"]["pods"] == 1 && judged["theirsTook"]["p50"].as_f64() > Some(0.0),
        "{judged:#}"
    );
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let refused = pods.get("too-big").await.expect("a pod");
    assert_eq!(message(&refused), None, "shadow mode wrote a condition");
    let events: Api<Event> = Api::all(client.clone());
    let ours = events.list(&ListParams::default()).await.expect("events");
    assert!(ours.items.iter().all(|e| e.reporting_controller.as_deref() != Some("pellucid")));
    assert_eq!(instance.io.queues.counts().binds.into, 0);
    check_no_write(&sandbox);
    instance.stop().await;
    sandbox.stop().await;
}
