//! CPUs and NUMA nodes through an API server: machines of the sandbox, what a Binding writes, refusals, and a restart.

use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::plugins::node_numa_resource::NAME;
use pellucid::{config, plugins};
use serde_json::{Value, json};

use crate::common::running::{node, parts, pod, start_with};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: NodeNUMAResource}]
";
const STATUS: &str = "scheduling.koordinator.sh/resource-status";
const MACHINE: &str = "sandbox.pellucid.dev/machine";

fn machine(name: &str, short: &str, cpus: u32, policy: &str) -> Value {
    let mut made = node(name, "a", cpus);
    made["metadata"]["annotations"] = json!({MACHINE: short});
    made["metadata"]["labels"]["node.koordinator.sh/numa-topology-policy"] = json!(policy);
    made
}

/// A pod with CPUs of its own, in whole cores, and 4 GiB.
fn pinned(name: &str, cpus: u32) -> Value {
    let mut made = pod(name, cpus * 1000);
    made["metadata"]["labels"]["koordinator.sh/qosClass"] = json!("LSR");
    let spec = json!({"requiredCPUBindPolicy": "FullPCPUs"}).to_string();
    made["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/resource-spec": spec});
    made["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("4Gi");
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cpus_are_given_written_and_found_again() {
    // 2 NUMA nodes of 4 cores with 2 threads; siblings are 8 apart.
    let short = "1 socket x 2 NUMA x 4 cores x 2 threads";
    let objects = vec![machine("n1", short, 16, "SingleNUMANode")];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let path = format!("/apis/v1/plugins/{NAME}/nodes/n1");
    cluster.wait(&path, "the machine", |body| body["cpuTopology"]["numCPUs"] == 16);

    cluster.place(pinned("a", 4)).await;
    let own = |status: &Value| serde_json::from_str::<Value>(status.as_str().unwrap_or("null")).unwrap();
    let bound = cluster.object("v1/Pod", "a", "marked", |pod| pod["spec"]["nodeName"] == "n1").await;
    let zone = json!({"node": 0, "resources": {"cpu": "4", "memory": "4Gi"}});
    assert_eq!(
        own(&bound["metadata"]["annotations"][STATUS]),
        json!({"cpuset": "0-1,8-9", "numaNodeResources": [zone]})
    );
    let body = cluster.wait(&path, "the pod", |body| body["allocatedPods"][0]["name"] == "a");
    assert_eq!(body["availableCPUs"], "2-7,10-15");
    assert_eq!(body["remainingNUMANodeResources"][0]["resources"], json!({"cpu": "4", "memory": "28Gi"}));
    let available = cluster.read(&format!("/apis/v1/plugins/{NAME}/availableCPUs/n1"));
    assert_eq!(
        (&available["availableCPUs"], &available["allocated"]["8"]["coreID"]),
        (&json!("2-7,10-15"), &json!(0))
    );
    let reported = cluster.read(&format!("/apis/v1/plugins/{NAME}/cpuTopologyOptions/n1"));
    assert_eq!(
        (&reported["maxRefCount"], &reported["numaTopologyPolicy"]),
        (&json!(1), &json!("SingleNUMANode"))
    );

    // 8 CPUs in whole cores are left in NUMA node 1 alone.
    cluster.place(pinned("b", 8)).await;
    cluster.create([pinned("c", 6)]);
    cluster.told("c", "1 Insufficient cpu").await;
    cluster.create([pinned("d", 3)]);
    cluster.told("d", "1 node(s) requested cpus not multiple cpus per core").await;
    let said = cluster.text("/apis/v1/explain/pods/default/d");
    assert!(said.contains("its cores have 2 threads, and the pod asks for 3 CPUs"), "{said}");

    // Another process finds what stands on the pods.
    let registry = plugins::registry();
    let configuration = config::parse(CONFIGURATION, "the test's", &registry).expect("valid");
    let again = InstanceConfig { configuration, ..parts(cluster.sandbox.kube_config()).await };
    let again = Instance::start(again).await.expect("an instance");
    std::mem::replace(&mut cluster.instance, again).stop().await;
    cluster.wait(&path, "both pods and the machine", |body| {
        let pods = body["allocatedPods"].as_array().map_or(0, Vec::len);
        pods == 2 && body["availableCPUs"] == "2-3,10-11"
    });
    cluster.kill("a").await;
    let bound = cluster.object("v1/Pod", "c", "bound", |pod| pod["spec"]["nodeName"] == "n1").await;
    assert_eq!(own(&bound["metadata"]["annotations"][STATUS])["cpuset"], "0-2,8-10");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_align_is_refused_with_what_each_numa_node_lacks() {
    let objects = vec![machine("n1", "1x2x4x2", 16, "SingleNUMANode")];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let path = format!("/apis/v1/plugins/{NAME}/nodes/n1");
    cluster.wait(&path, "the machine", |body| body["cpuTopology"]["numCPUs"] == 16);
    cluster.place(pinned("a", 4)).await;
    cluster.place(pinned("b", 6)).await;
    cluster.create([pinned("c", 6)]);
    cluster.told("c", "0/1 nodes are available: 1 node(s) NUMA Topology affinity error.").await;
    let said = cluster.text("/apis/v1/explain/pods/default/c");
    let words = "under SingleNUMANode the pod asks for 6 cpu and 4Gi memory; NUMA 0: 4 of 8 cpu, too little alone, 28Gi of 32Gi memory, \
                 2 of 4 cores free in whole; NUMA 1: 2 of 8 cpu, too little alone, 28Gi of 32Gi memory, 1 of 4 cores free in whole";
    assert!(said.contains(words), "{said}");
    let refused = cluster.sandbox.create(machine("n2", "2 sockets x 2 cores", 4, ""));
    let why = refused.expect_err("no machine").to_string();
    assert!(why.contains("must be like 2 sockets x 2 NUMA x 16 cores x 2 threads"), "{why}");
    cluster.stop().await;
}

/// A NodeResourceTopology of these CPUs (id, core, socket, NUMA node), and of what the kubelet gave to two pods.
fn reported(name: &str, cpus: &[(u32, u32, u32, u32)], cpusets: [&str; 2]) -> Value {
    let cpu = |(id, core, socket, node): &(u32, u32, u32, u32)| json!({"id": id, "core": core, "socket": socket, "node": node});
    let detail = json!({"detail": cpus.iter().map(cpu).collect::<Value>()}).to_string();
    let pod = |cpuset: &str| json!({"namespace": "k", "name": cpuset, "uid": cpuset, "cpuset": cpuset, "managedByKubelet": true});
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": {
            "node.koordinator.sh/cpu-topology": detail,
            "node.koordinator.sh/pod-cpu-allocs": json!(cpusets.map(pod)).to_string(),
        }},
        "topologyPolicies": ["None"], "zones": [],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_topology_is_shown_and_refuses_only_pods_with_cpus_of_their_own() {
    let objects = vec![machine("n1", "1x2x4x2", 16, ""), node("n2", "a", 16)];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let split = [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 1, 1)];
    cluster.create([reported("n2", &split, ["0-1", "1"])]);
    let path = format!("/apis/v1/plugins/{NAME}/nodes/n2");
    let body = cluster.wait(&path, "problems", |body| body["problems"][0].is_object());
    for words in ["core 1 lies in sockets 0 and 1", "another pod has its CPUs 1 too"] {
        assert!(body["problems"].to_string().contains(words), "{body}");
    }
    let on_n2 = |mut pod: Value| {
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n2"});
        pod
    };
    assert_eq!(cluster.place(on_n2(pod("plain", 1000))).await, "n2");
    cluster.create([on_n2(pinned("own", 2))]);
    cluster.told("own", "1 node(s) invalid CPU Topology").await;
    let said = cluster.text("/apis/v1/explain/pods/default/own");
    assert!(said.contains("core 1 lies in sockets 0 and 1"), "{said}");
    cluster.stop().await;
}
