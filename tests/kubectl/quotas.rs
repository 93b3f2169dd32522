//! The quotas of article 001 on Koordinator 0.7 through kubectl: applied as printed, but for two names that no API server
//! takes, and what the scheduler then says on them.

use pellucid::sandbox::definition;
use pellucid_api::definitions::koordinator;

use crate::common::running::node;
use crate::kubectl::{Kubectl, await_answer, contains, enabling, with_scheduler};

/// As printed there.
const QUOTAS: &str = "apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: parentA
  namespace: default
  labels:
    quota.scheduling.koordinator.sh/is-parent: \"true\"
    quota.scheduling.koordinator.sh/allow-lent-resource: \"true\"
spec:
  max:
    cpu: 100
    memory: 200Gi
  min:
    cpu: 100
    memory: 200Gi
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: childA1
  namespace: default
  labels:
    quota.scheduling.koordinator.sh/is-parent: \"false\"
    quota.scheduling.koordinator.sh/parent: \"parentA\"
    quota.scheduling.koordinator.sh/allow-lent-resource: \"true\"
spec:
  max:
    cpu: 40
    memory: 100Gi
  min:
    cpu: 20
    memory: 40Gi
";

/// The article's pod, with a spec in place of its dots.
fn pod(name: &str, quota: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  labels:
    quota.scheduling.koordinator.sh/name: \"{quota}\"
  name: {name}
  namespace: default
spec:
  schedulerName: pellucid
  containers: [{{name: c, image: i, resources: {{requests: {{cpu: \"20\"}}}}}}]
"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_articles_quotas_are_applied_and_told_what_they_may_use() {
    let objects = vec![definition(koordinator::ELASTIC_QUOTAS), node("n1", "a", 100)];
    with_scheduler(objects, |_| enabling("name: ElasticQuota"), session).await;
}

fn session(kubectl: &Kubectl) {
    let file = |manifest: &str| {
        let file = kubectl.home.path().join("applied.yaml");
        std::fs::write(&file, manifest).expect("written");
        file.display().to_string()
    };
    let refused = kubectl.output(&["apply", "-f", &file(QUOTAS)]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr);
    contains(&said, &["\"parentA\"", "\"childA1\"", "a lowercase RFC 1123 subdomain must consist of"]);

    let lower = QUOTAS.replace("parentA", "parenta").replace("childA1", "childa1");
    contains(&kubectl.says(&["apply", "-f", &file(&lower)]), &["/parenta created", "/childa1 created"]);
    for (name, quota) in [("demo-pod", "childa1"), ("second", "childa1"), ("elsewhere", "elastic-quota-a")] {
        kubectl.says(&["apply", "-f", &file(&pod(name, quota))]);
        await_answer(kubectl, &["get", "pod", name, "-o", "jsonpath={.spec.nodeName}"], "n1");
    }
    kubectl.says(&["apply", "-f", &file(&pod("third", "childa1"))]);
    let message = "jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].message}";
    let of = |quota: &str, path: &str| {
        let path = format!("jsonpath={path}");
        ["get", "elasticquotas.scheduling.sigs.k8s.io", quota, "-o", &path].map(str::to_owned)
    };
    let annotation =
        |key: &str| format!("{{.metadata.annotations.quota\\.scheduling\\.koordinator\\.sh/{key}}}");
    for (quota, path, wanted) in [
        ("childa1", "{.status.used.cpu}".to_owned(), "40"),
        ("parenta", "{.status.used.cpu}".to_owned(), "40"),
        ("childa1", annotation("runtime"), "{\"cpu\":\"40\",\"memory\":\"0\"}"),
        ("childa1", annotation("request"), "{\"cpu\":\"60\",\"memory\":\"0\"}"),
        ("parenta", annotation("request"), "{\"cpu\":\"40\",\"memory\":\"0\"}"),
    ] {
        let arguments = of(quota, &path);
        await_answer(kubectl, &arguments.each_ref().map(String::as_str), wanted);
    }
    kubectl.shows(
        &["get", "elasticquotas.scheduling.sigs.k8s.io"],
        &["USED", "MAX", "childa1", "\"cpu\":\"40\""],
    );
    let told = kubectl.says(&["get", "pod", "third", "-o", message]);
    contains(
        &told,
        &["Insufficient quotas, quotaName: childa1, ", "used: cpu:40", "exceedDimensions: [cpu]"],
    );
}
