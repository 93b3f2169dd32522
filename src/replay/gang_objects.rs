//! Creates nodes and gang workers as Kubernetes objects.
//!
//! Gangs are declared with Koordinator's annotations only, so no custom resource is needed. A gang that declares only
//! its name and its numbers is strict.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use super::GangJob;
use super::objects::ready_node;
use super::quota_file::QUOTA_NAME;
use super::rows::MOST_GPUS;

/// The resource that workers request.
pub const GPU: &str = "nvidia.com/gpu";
/// The annotation with the gang's name.
pub const GANG_NAME: &str = "gang.scheduling.koordinator.sh/name";
/// The annotation with the number of members that must be placed together.
pub const GANG_MIN: &str = "gang.scheduling.koordinator.sh/min-available";
/// The annotation with the total number of members.
pub const GANG_TOTAL: &str = "gang.scheduling.koordinator.sh/total-number";
/// The annotation with the model that a job trains.
const MODEL: &str = "pellucid.dev/model";
/// The annotation with the run time of a pod in the sandbox.
const RUN_SECONDS: &str = "sandbox.pellucid.dev/run-seconds";
/// Maximum number of nodes; more is a mistake.
const MOST_NODES: u64 = 10_000;
/// Pod capacity of a node in addition to the pods that use its GPUs.
const OTHER_PODS: u64 = 110;

/// Equal nodes that are not read from a file: `64x8gpu` means 64 nodes with 8 GPUs each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticNodes {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of GPUs per node.
    pub gpus: u64,
}

impl FromStr for SyntheticNodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} is not of the form NxGgpu, for example 64x8gpu");
        let (nodes, gpus) = text.strip_suffix("gpu").and_then(|t| t.split_once('x')).ok_or_else(form)?;
        let number = |text: &str, what: &str, most: u64| {
            let number: u64 = text.parse().map_err(|_| form())?;
            match number {
                n if (1..=most).contains(&n) => Ok(n),
                n => Err(format!("{n} {what}: must be 1 to {most}")),
            }
        };
        Ok(Self {
            nodes: number(nodes, "nodes", MOST_NODES)?,
            gpus: number(gpus, "GPUs per node", MOST_GPUS)?,
        })
    }
}

impl fmt::Display for SyntheticNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}gpu", self.nodes, self.gpus)
    }
}

impl SyntheticNodes {
    /// Returns the total number of GPUs.
    pub fn all_gpus(self) -> u64 {
        self.nodes * self.gpus
    }

    /// Returns the nodes as API objects to create. Their CPU, memory and pods suffice, so that GPUs are the limit.
    pub fn to_json(self) -> Vec<Value> {
        let width = (self.nodes - 1).to_string().len();
        (0..self.nodes).map(|index| self.node(&format!("gpu-{index:0width$}"))).collect()
    }

    fn node(self, name: &str) -> Value {
        let amounts = json!({
            "cpu": (12 * self.gpus).to_string(),
            "memory": format!("{}Gi", 64 * self.gpus),
            "pods": (OTHER_PODS + self.gpus).to_string(),
            GPU: self.gpus.to_string(),
        });
        ready_node(name, &json!({ "kubernetes.io/hostname": name }), &amounts)
    }
}

/// Returns a worker of a job as an API object to create. The worker runs for `runs_for`, not for the job's run time, and
/// belongs to `quota` if there are quotas.
pub fn to_worker_json(
    job: &GangJob,
    index: usize,
    runs_for: Duration,
    quota: Option<&str>,
    (namespace, scheduler_name): (&str, &str),
) -> Value {
    let workers = job.workers.to_string();
    let annotations = json!({
        GANG_NAME: job.name,
        GANG_MIN: workers,
        GANG_TOTAL: workers,
        MODEL: job.model,
        RUN_SECONDS: format!("{:.9}", runs_for.as_secs_f64()),
    });
    let one_gpu = json!({ GPU: "1" });
    let container = json!({
        "name": "worker",
        "image": "registry.k8s.io/pause",
        // Extended resources cannot be overcommitted: the API requires limits equal to requests.
        "resources": { "requests": one_gpu, "limits": one_gpu },
    });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": format!("{}-{index}", job.name),
            "labels": quota.map_or_else(|| json!({}), |quota| json!({ QUOTA_NAME: quota })),
            "annotations": annotations,
        },
        "spec": { "schedulerName": scheduler_name, "restartPolicy": "Never", "containers": [container] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_from_one_word() {
        let read = SyntheticNodes::from_str;
        let nodes = read("64x8gpu").unwrap();
        assert_eq!((nodes, nodes.all_gpus()), (SyntheticNodes { nodes: 64, gpus: 8 }, 512));
        assert_eq!(nodes.to_string(), "64x8gpu");
        for text in ["", "64", "64x8", "x8gpu", "64xgpu", "64x8gpus", "-1x8gpu", "1.5x8gpu"] {
            let form = format!("{text:?} is not of the form NxGgpu, for example 64x8gpu");
            assert_eq!(read(text).unwrap_err(), form);
        }
        assert_eq!(read("0x8gpu").unwrap_err(), "0 nodes: must be 1 to 10000");
        assert_eq!(read("1x1025gpu").unwrap_err(), "1025 GPUs per node: must be 1 to 1024");
    }

    #[test]
    fn nodes_have_gpus_and_names_in_order() {
        let nodes = SyntheticNodes { nodes: 11, gpus: 4 }.to_json();
        assert_eq!(nodes[3]["metadata"]["name"], "gpu-03");
        assert_eq!(nodes[10]["status"]["allocatable"][GPU], "4");
    }

    #[test]
    fn a_worker_says_its_gang_its_gpu_and_its_time() {
        let job = GangJob {
            name: "j".into(),
            submitted_at: Duration::ZERO,
            workers: 3,
            runs_for: Duration::from_secs(41),
            model: "Net (size 4)".into(),
        };
        let worker =
            to_worker_json(&job, 2, Duration::from_micros(4100), Some("team-a"), ("default", "pellucid"));
        assert_eq!(worker["metadata"]["name"], "j-2");
        assert_eq!(worker["metadata"]["labels"], json!({ QUOTA_NAME: "team-a" }));
        let annotations = json!({
            GANG_NAME: "j", GANG_MIN: "3", GANG_TOTAL: "3", MODEL: "Net (size 4)", RUN_SECONDS: "0.004100000",
        });
        assert_eq!(worker["metadata"]["annotations"], annotations);
        assert_eq!(worker["spec"]["restartPolicy"], "Never");
        let resources = &worker["spec"]["containers"][0]["resources"];
        assert_eq!(*resources, json!({ "requests": { GPU: "1" }, "limits": { GPU: "1" } }));
    }
}
