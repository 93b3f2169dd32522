//! `/metrics/resources`: what each pod requests, under kube-scheduler's metric name.
//!
//! `kube_pod_resource_limit` is not served: the state holds no limits, because no decision depends on them.

use pellucid_cycle::Snapshot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    namespace: String,
    pod: String,
    node: String,
    scheduler: String,
    priority: String,
    resource: String,
    unit: &'static str,
}

/// Renders the page as OpenMetrics text.
pub fn render(snapshot: &Snapshot) -> String {
    let family: Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>> = Family::default();
    for (_, record) in snapshot.cluster.pods() {
        let list = &record.pod.spec.requests.list;
        let fixed = [
            ("cpu", "cores", list.milli_cpu as f64 / 1000.0),
            ("memory", "bytes", list.memory as f64),
            ("ephemeral-storage", "bytes", list.ephemeral_storage as f64),
        ];
        let scalars = list.scalars.iter().map(|(name, v)| (&**name, "integer", *v as f64));
        for (resource, unit, amount) in fixed.into_iter().filter(|(.., v)| *v != 0.0).chain(scalars) {
            let labels = Labels {
                namespace: record.pod.key.namespace.to_string(),
                pod: record.pod.key.name.to_string(),
                node: record.node.map(|n| snapshot.cluster.node_name(n).to_string()).unwrap_or_default(),
                scheduler: record.pod.scheduler_name.to_string(),
                priority: record.pod.priority.to_string(),
                resource: resource.to_string(),
                unit,
            };
            family.get_or_create_owned(&labels).set(amount);
        }
    }
    let mut registry = Registry::default();
    let help = "What a pod requests, by resource, in the unit of the label";
    registry.register("kube_pod_resource_request", help, family);
    let mut text = String::new();
    let _ = encode(&mut text, &registry);
    text
}
