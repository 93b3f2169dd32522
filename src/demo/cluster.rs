//! The cluster of `pellucid demo`: thirty-three nodes of a small company, pods that fit, and pods that do not, each for a
//! different reason.

use serde_json::{Map, Value, json};

use super::{accelerators, load, quotas};

pub(super) const NAMESPACE: &str = "demo";

/// A set of equal nodes.
struct Pool {
    name: &'static str,
    count: usize,
    cpu: &'static str,
    memory: &'static str,
    gpus: u32,
    fpgas: u32,
    pods: &'static str,
    taint: Option<(&'static str, &'static str)>,
    cordoned: bool,
}

const GENERAL: Pool = Pool {
    name: "general",
    count: 16,
    cpu: "8",
    memory: "32Gi",
    gpus: 0,
    fpgas: 0,
    pods: "110",
    taint: None,
    cordoned: false,
};

const POOLS: &[Pool] = &[
    GENERAL,
    Pool { name: "memory", count: 4, cpu: "16", memory: "128Gi", fpgas: quotas::PER_NODE, ..GENERAL },
    Pool { name: "gpu", count: 4, cpu: "32", memory: "256Gi", gpus: 8, taint: GPU_TAINT, ..GENERAL },
    Pool { name: "edge", count: 2, cpu: "4", memory: "8Gi", ..GENERAL },
    Pool { name: "tiny", count: 1, cpu: "2", memory: "4Gi", pods: "2", ..GENERAL },
    Pool { name: "repair", count: 2, cordoned: true, ..GENERAL },
    Pool { name: "finance", count: 1, taint: Some(("team", "finance")), ..GENERAL },
    Pool {
        name: accelerators::POOL,
        count: accelerators::NODES,
        cpu: "32",
        memory: "64Gi",
        taint: Some(accelerators::TAINT),
        ..GENERAL
    },
];
const GPU_TAINT: Option<(&str, &str)> = Some(("nvidia.com/gpu", "present"));

pub(super) fn nodes() -> Vec<Value> {
    POOLS.iter().flat_map(|pool| (1..=pool.count).map(move |n| node(pool, n))).collect()
}

fn node(pool: &Pool, n: usize) -> Value {
    let name = format!("{}-{n:02}", pool.name);
    let mut amounts = json!({
        "cpu": pool.cpu, "memory": pool.memory, "pods": pool.pods, "ephemeral-storage": "100Gi",
    });
    if pool.gpus > 0 {
        amounts["nvidia.com/gpu"] = json!(pool.gpus.to_string());
    }
    if pool.fpgas > 0 {
        amounts[quotas::FPGA] = json!(pool.fpgas.to_string());
    }
    let is_described = pool.name == accelerators::POOL;
    let annotations = accelerators::ANNOTATIONS.iter().filter(|_| is_described);
    let annotations: Map<String, Value> =
        annotations.map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let taint = |(key, value): (&str, &str)| json!({"key": key, "value": value, "effect": "NoSchedule"});
    let taints: Vec<Value> = pool.taint.map(taint).into_iter().collect();
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": annotations,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": format!("zone-{}", ["a", "b", "c"][n % 3]),
                "pool": pool.name,
            },
        },
        "spec": {"unschedulable": pool.cordoned, "taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": [
                {"names": ["registry.example/web:1.4"], "sizeBytes": if n.is_multiple_of(2) { 480_000_000 } else { 0 }},
            ],
        },
    });
    if is_described {
        let (key, value) = accelerators::POLICY;
        node["metadata"]["labels"][key] = json!(value);
    }
    node
}

/// Returns a plain pod, for callers to extend.
pub(super) fn pod(name: &str, cpu: &str, memory: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {
            "schedulerName": pellucid_config::DEFAULT_SCHEDULER_NAME,
            "containers": [{
                "name": "main",
                "image": "registry.example/web:1.4",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }],
        },
    })
}

pub(super) fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    if let Some((parent, field)) = pointer.rsplit_once('/')
        && let Some(parent) = pod.pointer_mut(parent)
    {
        parent[field] = value;
    }
    pod
}

pub(super) fn in_pool(pod: Value, pool: &str) -> Value {
    with(pod, "/spec/nodeSelector", json!({"pool": pool}))
}

fn with_host_port(pod: Value, port: u16) -> Value {
    with(pod, "/spec/containers/0/ports", json!([{"containerPort": port, "hostPort": port}]))
}

pub(super) fn with_gpus(pod: Value, n: u32) -> Value {
    let amounts = json!({"nvidia.com/gpu": n.to_string()});
    let mut pod = with(pod, "/spec/containers/0/resources/limits", amounts.clone());
    pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] =
        amounts["nvidia.com/gpu"].clone();
    with(pod, "/spec/tolerations", json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]))
}

/// Returns the Deployments and pods that fit.
pub(super) fn fitting() -> Vec<Value> {
    let mut all = vec![
        load::using(deployment("web", 12, "500m", "1Gi"), "/spec/template/metadata", "cpu=1500m,memory=2Gi"),
        deployment("api", 8, "1", "2Gi"),
        deployment("cache", 3, "2", "24Gi"),
    ];
    all.extend((1..=3).map(|n| with_gpus(pod(&format!("training-{n}"), "8", "64Gi"), 4)));
    let ingress = |n| {
        let pod = with_host_port(in_pool(pod(&format!("ingress-{n}"), "500m", "512Mi"), "edge"), 443);
        // It may use all CPUs of its node, and nearly does.
        let pod = with(pod, "/spec/containers/0/resources/limits", json!({"cpu": "4"}));
        load::using(pod, "/metadata", "cpu=3600m")
    };
    all.extend((1..=2).map(ingress));
    all.extend((1..=2).map(|n| in_pool(pod(&format!("sidekick-{n}"), "100m", "64Mi"), "tiny")));
    all
}

fn deployment(name: &str, replicas: u32, cpu: &str, memory: &str) -> Value {
    let template = pod(name, cpu, memory);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    })
}

/// Returns the pods that cannot be placed, each for a different reason.
pub(super) fn stuck() -> Vec<Value> {
    vec![
        pod("needs-500-cores", "500", "1Gi"),
        with_gpus(pod("needs-16-gpus", "4", "8Gi"), 16),
        in_pool(pod("wants-a-pool-nobody-has", "100m", "64Mi"), "quantum"),
        in_pool(pod("not-of-finance", "100m", "64Mi"), "finance"),
        in_pool(pod("waits-for-repair", "100m", "64Mi"), "repair"),
        with_host_port(in_pool(pod("third-on-port-443", "100m", "64Mi"), "edge"), 443),
        in_pool(pod("third-on-tiny", "100m", "64Mi"), "tiny"),
        with(
            pod("gated", "100m", "64Mi"),
            "/spec/schedulingGates",
            json!([{"name": "demo.example/approval"}]),
        ),
    ]
}

/// Name of the pod that preempts another one.
pub(super) const URGENT: &str = "urgent";

/// Returns a PriorityClass of high priority and a pod of it, which must preempt one of the two pods on the tiny node.
pub(super) fn urgent() -> Vec<Value> {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
        "value": 1000,
    });
    let pod = in_pool(pod(URGENT, "100m", "64Mi"), "tiny");
    vec![class, with(pod, "/spec/priorityClassName", json!("urgent"))]
}

/// Returns a pod that this scheduler cannot read: it uses an operator that only a newer API could define. The scheduler
/// must not guess, and must continue with all other objects.
pub(super) fn unreadable() -> Value {
    let requirement = json!({"key": "pool", "operator": "Near", "values": ["general"]});
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    with(pod("unreadable", "100m", "64Mi"), "/spec/affinity", affinity)
}

/// Returns a small Job with pods that run for 8 seconds, where nodes use little.
pub(super) fn job(n: u64) -> Value {
    let pod = with(pod("tick", "250m", "128Mi"), "/spec/restartPolicy", json!("Never"));
    let pod = load::aware(with(pod, "/spec/containers/0/image", json!("registry.example/tick:2.0")));
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("tick-{n}"), "namespace": NAMESPACE},
        "spec": {
            "completions": 3,
            "parallelism": 3,
            "template": {
                "metadata": {"annotations": {"sandbox.pellucid.dev/run-seconds": "8"}},
                "spec": pod["spec"],
            },
        },
    })
}
