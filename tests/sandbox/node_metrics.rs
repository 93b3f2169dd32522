//! What nodes use: reported when a node is created and at an interval, out of the pods that run.

use super::*;

const EVERY: Duration = Duration::from_secs(15);
const USAGE: &str = "sandbox.pellucid.dev/usage";

/// Starts a sandbox that reports, with a clock that stands still.
async fn reporting() -> (Handle, Client, Api<DynamicObject>) {
    let clock = Clock::manual("2026-01-01T00:00:00Z".parse().expect("a time"));
    let (sandbox, client) = start(Config { clock, node_metrics: Some(EVERY), ..Config::default() }).await;
    let metrics = metrics(&client);
    (sandbox, client, metrics)
}

fn metrics(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("slo.koordinator.sh", "v1alpha1", "NodeMetric");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn node(name: &str) -> Node {
    of(json!({"metadata": {"name": name}}))
}

/// Returns a pod that requests a CPU and 1,000 bytes.
fn asking(name: &str, usage: Option<&str>) -> Pod {
    of(json!({
        "metadata": {"name": name, "annotations": usage.map(|usage| json!({USAGE: usage}))},
        "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1000"}}},
        ]},
    }))
}

/// Waits for the report of a time and returns its status.
async fn reported(metrics: &Api<DynamicObject>, node: &str, at: &str) -> Value {
    let is_there = |metric: Option<&DynamicObject>| {
        metric.is_some_and(|metric| metric.data["status"]["updateTime"] == at)
    };
    let found = until(metrics.clone(), node, at, is_there).await;
    found.expect("a NodeMetric").data["status"].clone()
}

#[tokio::test]
async fn a_report_adds_up_the_pods_that_run_by_then() {
    let (sandbox, client, metrics) = reporting().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    nodes.create(&PostParams::default(), &node("n1")).await.expect("created");
    let first = reported(&metrics, "n1", "2026-01-01T00:00:00Z").await;
    let system = json!({"resources": {"cpu": "100m", "memory": "256Mi"}});
    assert_eq!(first["nodeMetric"], json!({"nodeUsage": system, "systemUsage": system}));
    assert_eq!(first["podsMetric"], json!([]));

    let mut ends = asking("ends", None);
    ends.annotations_mut().insert("sandbox.pellucid.dev/run-seconds".into(), "14".into());
    for pod in [asking("busy", Some("cpu=1500m")), asking("usual", None), ends] {
        let created = pods.create(&PostParams::default(), &pod).await.expect("created");
        bind(&client, &created, "n1").await.expect("bound");
    }
    pods.create(&PostParams::default(), &asking("waits", None)).await.expect("created");
    // In one step: the pods start, one ends, and a report is due.
    sandbox.clock().advance(EVERY);
    let status = reported(&metrics, "n1", "2026-01-01T00:00:15Z").await;
    let of_pod = |name: &str, cpu: &str| {
        json!({"namespace": "default", "name": name, "priority": "koord-prod",
            "podUsage": {"resources": {"cpu": cpu, "memory": "600"}}})
    };
    assert_eq!(status["podsMetric"], json!([of_pod("busy", "1500m"), of_pod("usual", "600m")]));
    let used = json!({"resources": {"cpu": "2200m", "memory": "268436656"}});
    assert_eq!(status["nodeMetric"]["nodeUsage"], used);
    let metric = metrics.get("n1").await.expect("a NodeMetric");
    assert_eq!(metric.data["spec"]["metricCollectPolicy"]["reportIntervalSeconds"], 15);

    // Reports that were missed are left out, and one goes with its node.
    sandbox.clock().advance(Duration::from_secs(100));
    reported(&metrics, "n1", "2026-01-01T00:01:45Z").await;
    nodes.delete("n1", &DeleteParams::default()).await.expect("deleted");
    until(metrics, "n1", "gone", |metric| metric.is_none()).await;
}

#[tokio::test]
async fn usage_that_cannot_be_read_is_refused_with_field_and_value() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let refused = pods.create(&PostParams::default(), &asking("a", Some("cpu=lots"))).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("not refused: {refused:?}") };
    assert_eq!(status.code, 422);
    for words in ["metadata.annotations[sandbox.pellucid.dev/usage]", "cpu=lots", "is not a quantity"] {
        assert!(status.message.contains(words), "{words} is missing in {}", status.message);
    }
    // Nobody asked for reports, so their kind is not there.
    assert_eq!(code(&metrics(&client).list(&ListParams::default()).await.expect_err("not served")), 404);
}
