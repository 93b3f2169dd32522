//! Reads a pod back to resolve a write with an unknown outcome.

use pellucid_model::{Name, PodKey};
use serde::Deserialize;

use crate::writes::api_writer::{ApiWriter, WriteError, pod_path};

/// State of a pod after a write with an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodReadback {
    /// The pod does not exist, or another pod has its name.
    Gone,
    /// The pod exists.
    There {
        /// The node it is bound to.
        node: Option<Name>,
        /// Whether it is being deleted.
        deleting: bool,
    },
}

#[derive(Deserialize)]
struct PodRead {
    metadata: MetaRead,
    #[serde(default)]
    spec: SpecRead,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaRead {
    uid: String,
    deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecRead {
    node_name: Option<String>,
}

/// Reads a pod once. Fails when the server does not answer, or answers with any error but 404.
pub(crate) async fn read_back(
    writer: &ApiWriter,
    key: &PodKey,
    uid: &str,
) -> Result<PodReadback, WriteError> {
    let path = pod_path(&key.namespace, &key.name, "");
    let read = match writer.read::<PodRead>(path).await {
        Err(error) if error.is_not_found() => return Ok(PodReadback::Gone),
        read => read?,
    };
    if read.metadata.uid != uid {
        return Ok(PodReadback::Gone);
    }
    Ok(PodReadback::There {
        node: read.spec.node_name.filter(|node| !node.is_empty()).map(|node| Name::new(&node)),
        deleting: read.metadata.deletion_timestamp.is_some(),
    })
}
