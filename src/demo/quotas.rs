//! The quotas of the demo: a tree of six over the 20 FPGAs of the memory pool. One team borrows and uses more than its
//! share by now, one is refused for it, and two wait for room that is theirs.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_plugins::elastic_quota::ELASTIC_QUOTA;
use serde_json::{Value, json};

use super::cluster::{NAMESPACE, pod};

/// An extended resource, so that the quotas leave the other pods of the demo alone.
pub(super) const FPGA: &str = "example.com/fpga";
/// FPGAs of a node of the memory pool.
pub(super) const PER_NODE: u32 = 5;

/// Returns the quotas, parents first.
pub(super) fn tree() -> Vec<Value> {
    vec![
        quota("research", None, 12, 20),
        quota("product", None, 8, 8),
        quota("vision", Some("research"), 4, 20),
        quota("speech", Some("research"), 4, 8),
        quota("nlp", Some("research"), 4, 12),
        quota("search", Some("product"), 8, 8),
    ]
}

fn quota(name: &str, parent: Option<&str>, min: u32, max: u32) -> Value {
    let amount = |n: u32| json!({FPGA: n.to_string()});
    let mut labels = json!({keys::IS_PARENT: parent.is_none().to_string()});
    if let Some(parent) = parent {
        labels[keys::PARENT] = parent.into();
    }
    json!({
        "apiVersion": format!("{}/{}", ELASTIC_QUOTA.group, ELASTIC_QUOTA.version),
        "kind": ELASTIC_QUOTA.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"min": amount(min), "max": amount(max)},
    })
}

/// Returns a pod of a quota that uses four FPGAs and nothing else.
fn of(quota: &str, n: u32) -> Value {
    let mut pod = pod(&format!("{quota}-{n}"), "0", "0");
    pod["metadata"]["labels"][keys::NAME] = quota.into();
    let amounts = json!({FPGA: "4"});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    pod
}

/// Returns the pods that use 16 FPGAs while nobody else asks for any, 8 of them borrowed.
pub(super) fn running() -> Vec<Value> {
    (1..=4).map(|n| of("vision", n)).collect()
}

/// Returns the pods that come then: two are within their quotas' mins, and one is beyond its quota's share for that.
pub(super) fn waiting() -> Vec<Value> {
    vec![of("nlp", 1), of("search", 1), of("vision", 5)]
}
