//! Quotas through an API server: what is refused, what is written on the objects, and what `pellucid quotas` prints.

use pellucid::plugins::elastic_quota::NAME;
use serde_json::{Value, json};

use crate::command_lists::{fits, follow, run};
use crate::common::running::{node, pod, start_with};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: ElasticQuota}]
";
const KIND: &str = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota";

/// Makes the definition of the kind, as Koordinator installs it, without its schema.
fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "elasticquotas.scheduling.sigs.k8s.io", "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
        }},
        "spec": {
            "group": "scheduling.sigs.k8s.io", "scope": "Namespaced",
            "names": {"plural": "elasticquotas", "kind": "ElasticQuota"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": schema,
                "subresources": {"status": {}}}],
        },
    })
}

fn quota(name: &str, parent: &str, min: u32, max: u32) -> Value {
    let is_parent = parent.is_empty().to_string();
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default", "labels": {
            "quota.scheduling.koordinator.sh/is-parent": is_parent,
            "quota.scheduling.koordinator.sh/parent": parent,
        }},
        "spec": {"min": {"cpu": min}, "max": {"cpu": max}},
    })
}

fn member(name: &str, quota: &str) -> Value {
    let mut made = pod(name, 1000);
    made["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] = quota.into();
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_borrower_is_refused_once_the_lender_wants_its_share_back() {
    let objects = vec![
        definition(),
        node("n1", "a", 10),
        quota("dept", "", 10, 10),
        quota("team-a", "dept", 4, 10),
        quota("team-b", "dept", 4, 10),
    ];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let address = cluster.instance.address;
    cluster.wait(&format!("/apis/v1/plugins/{NAME}/state"), "the quotas", |body| body["quotas"] == 3);

    // Nobody else asks for anything, so team-a borrows 2 of the 4 that team-b is guaranteed.
    for n in 0..6 {
        cluster.place(member(&format!("a{n}"), "team-a")).await;
    }
    // Now team-b does. Both have a min of 4, and of the 2 that are left each gets 1.
    cluster.create((0..5).map(|n| member(&format!("b{n}"), "team-b")));
    cluster.create([member("late", "team-a")]);
    let said = cluster.told("late", "Insufficient quotas").await;
    let numbers =
        "quotaName: team-a, runtime: cpu:5, used: cpu:6, pod's request: cpu:1, exceedDimensions: [cpu]";
    assert!(said.contains(numbers), "{said}");

    // The numbers stand on the objects.
    let is_written = |object: &Value| {
        let runtime = &object["metadata"]["annotations"]["quota.scheduling.koordinator.sh/runtime"];
        *runtime == r#"{"cpu":"5"}"# && object["status"]["used"] == json!({"cpu": "6"})
    };
    cluster.object(KIND, "team-a", "its runtime and what it uses", is_written).await;

    let listed = fits(address, &["quotas"]);
    for said in ["dept", "  team-a", "  team-b", "over by 1"] {
        assert!(listed.contains(said), "{said} is not in\n{listed}");
    }
    let explained = follow(address, &listed);
    for said in ["koordinator-root-quota > dept > team-a", "Round 1", "monitorAllQuotas is off"] {
        assert!(explained.contains(said), "{said} is not in\n{explained}");
    }
    let unknown = run(address, 100, &["quotas", "nobody"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("nobody"), "{}", unknown.stderr);
    cluster.stop().await;
}
