//! One gang declared in each of the five dialects: its PodGroup, if the dialect has one, and its members.

use serde_json::{Value, json};

use super::running::with;

/// The dialects of gangs.
pub const DIALECTS: [&str; 5] = ["unicore", "coscheduling", "koordinator", "kube-batch", "native"];

/// API versions of PodGroups.
pub const X: &str = "scheduling.x-k8s.io/v1alpha1";
/// Does the same for kube-batch.
pub const KUBE_BATCH: &str = "scheduling.incubator.k8s.io/v1alpha1";
/// Does the same for Kubernetes itself.
pub const NATIVE: &str = "scheduling.k8s.io/v1alpha2";

/// Makes a pod a member of a gang that needs this quorum.
pub fn member(dialect: &str, mut pod: Value, gang: &str, quorum: usize) -> Value {
    let metadata = &mut pod["metadata"];
    match dialect {
        "unicore" => {
            metadata["labels"]["gang.unicore.mcyou.cn/name"] = gang.into();
            metadata["labels"]["gang.unicore.mcyou.cn/available-count"] = quorum.to_string().into();
        }
        "coscheduling" => metadata["labels"]["scheduling.x-k8s.io/pod-group"] = gang.into(),
        "koordinator" => {
            metadata["annotations"]["gang.scheduling.koordinator.sh/name"] = gang.into();
            metadata["annotations"]["gang.scheduling.koordinator.sh/min-available"] =
                quorum.to_string().into();
        }
        "kube-batch" => metadata["annotations"]["scheduling.k8s.io/group-name"] = gang.into(),
        "native" => return with(pod, "schedulingGroup", json!({"podGroupName": gang})),
        _ => panic!("no dialect {dialect}"),
    }
    pod
}

/// Makes the PodGroup of a gang, or `None` where the members say everything.
pub fn pod_group(dialect: &str, gang: &str, quorum: usize) -> Option<Value> {
    let (version, spec) = match dialect {
        "coscheduling" => (X, json!({"minMember": quorum})),
        "kube-batch" => (KUBE_BATCH, json!({"minMember": quorum})),
        "native" => (NATIVE, json!({"schedulingPolicy": {"gang": {"minCount": quorum}}})),
        _ => return None,
    };
    let metadata = json!({"name": gang, "namespace": "default"});
    Some(json!({"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}))
}
