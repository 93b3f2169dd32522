//! Converts nodes and pods of a trace to Kubernetes objects.

use serde_json::{Value, json};

use super::{TraceNode, TracePod};

/// GPUs in hundredths, as in Koordinator: 100 are one GPU, so that shares can be requested.
pub const GPU_CORE: &str = "koordinator.sh/gpu-core";
/// The label with a node's GPU model. It uses our own domain: labels under Alibaba's domains are set by Alibaba's
/// cloud, and a value from a trace must not look like one of those.
pub const GPU_MODEL_LABEL: &str = "pellucid.dev/gpu-model";
/// The label with a pod's class of service.
pub const QOS_LABEL: &str = "pellucid.dev/qos";
/// Pod capacity of a node: more than the usual 110, so that the trace's resources are the limit.
pub const PODS_PER_NODE: u64 = 1001;

impl TraceNode {
    /// Returns the node's GPUs in hundredths.
    pub fn gpu_core(&self) -> u64 {
        100 * self.gpus
    }
}

impl TracePod {
    /// Returns the requested GPUs in hundredths: whole GPUs, or a share of one rounded up.
    pub fn gpu_core(&self) -> u64 {
        match self.gpus {
            1 => self.gpu_milli.div_ceil(10),
            whole => 100 * whole,
        }
    }
}

/// Returns the node as an API object to create.
pub fn to_node_json(node: &TraceNode) -> Value {
    let mut labels = json!({ "kubernetes.io/hostname": node.name });
    let mut amounts = json!({
        "cpu": format!("{}m", node.cpu_milli),
        "memory": format!("{}Mi", node.memory_mib),
        "pods": PODS_PER_NODE.to_string(),
    });
    if node.gpus > 0 {
        labels[GPU_MODEL_LABEL] = node.model.as_str().into();
        amounts[GPU_CORE] = node.gpu_core().to_string().into();
    }
    ready_node(&node.name, &labels, &amounts)
}

/// Returns a node that is ready as an API object to create.
pub(super) fn ready_node(name: &str, labels: &Value, amounts: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "Replayed" }],
        },
    })
}

/// Returns the pod as an API object to create.
pub fn to_pod_json(pod: &TracePod, namespace: &str, scheduler_name: &str) -> Value {
    let mut requests = json!({
        "cpu": format!("{}m", pod.cpu_milli),
        "memory": format!("{}Mi", pod.memory_mib),
    });
    let mut container = json!({ "name": "task", "image": "registry.k8s.io/pause" });
    if pod.gpus > 0 {
        // Extended resources cannot be overcommitted: the API requires limits equal to requests.
        let gpu_core = pod.gpu_core().to_string();
        requests[GPU_CORE] = gpu_core.as_str().into();
        container["resources"]["limits"][GPU_CORE] = gpu_core.into();
    }
    container["resources"]["requests"] = requests;
    let mut spec = json!({ "schedulerName": scheduler_name, "containers": [container] });
    if !pod.models.is_empty() {
        let is_model = json!({ "key": GPU_MODEL_LABEL, "operator": "In", "values": pod.models });
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [is_model] }] });
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": namespace, "name": pod.name, "labels": { QOS_LABEL: pod.qos } },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gpus: u64, gpu_milli: u64, models: &[&str]) -> TracePod {
        TracePod {
            name: "p".into(),
            cpu_milli: 1500,
            memory_mib: 30517,
            gpus,
            gpu_milli,
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            qos: "LS".into(),
        }
    }

    #[test]
    fn gpus_count_in_hundredths() {
        for (gpus, milli, expected) in
            [(0, 0, 0), (1, 1000, 100), (1, 460, 46), (1, 461, 47), (1, 1, 1), (8, 1000, 800)]
        {
            assert_eq!(pod(gpus, milli, &[]).gpu_core(), expected, "{gpus} GPUs, {milli} thousandths");
        }
    }

    #[test]
    fn a_pod_requests_what_the_trace_says() {
        let object = to_pod_json(&pod(1, 455, &["V9", "T1"]), "default", "pellucid");
        let resources = &object["spec"]["containers"][0]["resources"];
        assert_eq!(resources["requests"], json!({ "cpu": "1500m", "memory": "30517Mi", GPU_CORE: "46" }));
        assert_eq!(resources["limits"], json!({ GPU_CORE: "46" }));
        let terms =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let expression = &object.pointer(terms).unwrap()[0]["matchExpressions"][0];
        assert_eq!(*expression, json!({ "key": GPU_MODEL_LABEL, "operator": "In", "values": ["V9", "T1"] }));
        assert_eq!(object["metadata"]["labels"][QOS_LABEL], "LS");
    }

    #[test]
    fn without_gpus_nothing_of_them_is_mentioned() {
        let pod = to_pod_json(&pod(0, 0, &[]), "default", "pellucid");
        assert!(pod["spec"].get("affinity").is_none());
        let node =
            TraceNode { name: "n".into(), cpu_milli: 32000, memory_mib: 1024, gpus: 0, model: String::new() };
        let node = to_node_json(&node);
        let amounts = json!({ "cpu": "32000m", "memory": "1024Mi", "pods": "1001" });
        assert_eq!(node["status"]["allocatable"], amounts);
        assert!(!format!("{pod}{node}").contains("gpu"));
    }
}
