//! Strict gangs in each dialect, as their users write them: what is created of one, and what the API server must serve.
//! The quorum of a gang is all of its members.

use anyhow::Context as _;
use pellucid_api::keys::{coscheduling, koordinator, kube_batch, unicore};
use pellucid_model::gang::Dialect;
use serde_json::{Value, json};

use crate::bench::objects::{delete_all, names};
use crate::client;

/// Returns the API version of a dialect's PodGroups, or `None` where the pods say everything.
fn api_version(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Unicore | Dialect::Koordinator => None,
        Dialect::Coscheduling => Some("scheduling.x-k8s.io/v1alpha1"),
        Dialect::KubeBatch => Some("scheduling.incubator.k8s.io/v1alpha1"),
        Dialect::Native => Some("scheduling.k8s.io/v1alpha2"),
    }
}

/// Returns the PodGroup of a gang, or `None` where the pods say everything.
pub(super) fn pod_group(dialect: Dialect, namespace: &str, gang: &str, quorum: usize) -> Option<Value> {
    let version = api_version(dialect)?;
    let spec = match dialect {
        Dialect::Native => json!({"schedulingPolicy": {"gang": {"minCount": quorum}}}),
        _ => json!({"minMember": quorum}),
    };
    let metadata = json!({"name": gang, "namespace": namespace});
    Some(json!({"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}))
}

/// Returns the pod as a member of a gang.
pub(super) fn member(dialect: Dialect, mut pod: Value, gang: &str, quorum: usize) -> Value {
    let quorum = quorum.to_string();
    let metadata = &mut pod["metadata"];
    match dialect {
        Dialect::Unicore => {
            metadata["labels"] = json!({unicore::NAME: gang, unicore::AVAILABLE_COUNT: quorum});
        }
        Dialect::Coscheduling => metadata["labels"] = json!({coscheduling::POD_GROUP: gang}),
        Dialect::Koordinator => {
            metadata["annotations"] = json!({koordinator::NAME: gang, koordinator::MIN_AVAILABLE: quorum});
        }
        Dialect::KubeBatch => metadata["annotations"] = json!({kube_batch::GROUP_NAME: gang}),
        Dialect::Native => pod["spec"]["schedulingGroup"] = json!({"podGroupName": gang}),
    }
    pod
}

/// Returns the dialects that the API server has the kinds for. Fails on one that it has not, unless `or_fewer`.
pub(super) async fn served(
    client: &kube::Client,
    namespace: &str,
    dialects: &[Dialect],
    or_fewer: bool,
) -> anyhow::Result<Vec<Dialect>> {
    let mut served = Vec::new();
    for &dialect in dialects {
        let Some(version) = api_version(dialect) else {
            served.push(dialect);
            continue;
        };
        let is_served = pod_groups(client, &path(version, namespace)).await?.is_some();
        anyhow::ensure!(
            is_served || or_fewer,
            "--dialect {} needs the PodGroups of {version}, which the API server does not serve",
            dialect.as_str()
        );
        if is_served {
            served.push(dialect);
        }
    }
    Ok(served)
}

/// Deletes all PodGroups in the namespace.
pub(super) async fn delete_pod_groups(client: &kube::Client, namespace: &str) -> anyhow::Result<()> {
    for version in Dialect::ALL.into_iter().filter_map(api_version) {
        let path = path(version, namespace);
        let found = pod_groups(client, &path).await?.unwrap_or_default();
        delete_all(client, &path, found).await?;
    }
    Ok(())
}

fn path(version: &str, namespace: &str) -> String {
    format!("/apis/{version}/namespaces/{namespace}/podgroups")
}

/// Returns the names of the PodGroups at a path, or `None` if the API server does not have the kind.
async fn pod_groups(client: &kube::Client, path: &str) -> anyhow::Result<Option<Vec<String>>> {
    match client::list(client, path).await {
        Ok(found) => Ok(Some(names(&found))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(failed) => Err(failed).with_context(|| format!("cannot list {path}")),
    }
}
