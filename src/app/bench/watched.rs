//! A pod as the bench watches it: its name and whether it has a node. The rest of the object is skipped, because the bench
//! shares the machine with what it measures.

use serde::Deserialize;

use crate::object_watch::Watched;

/// The fields of a pod that the bench reads.
#[derive(Clone, Deserialize)]
pub(super) struct WatchedPod {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

impl WatchedPod {
    pub(super) fn is_bound(&self) -> bool {
        self.spec.node_name.is_some()
    }

    pub(super) fn name(self) -> String {
        self.metadata.name
    }
}

impl Watched for WatchedPod {
    fn revision(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}
