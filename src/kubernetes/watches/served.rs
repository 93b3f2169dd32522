//! Finds the version in which the API server serves native PodGroups and Workloads, by discovery.
//!
//! Kubernetes 1.36 serves v1alpha2; 1.37 serves v1beta1 and v1alpha3. The first supported version in the server's
//! order of preference is used; unknown later versions are assumed to have the same shape. v1alpha1 (1.35) is another
//! API: its Workload contains the groups, and pods name it in another field. It is skipped.

use std::sync::Arc;

use kube::core::ApiResource;
use parking_lot::Mutex;
use pellucid_model::ObjectKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::kinds::Kind;
use crate::watches::reader::{ReadError, Reader};

/// Versions with an incompatible shape.
const UNSUPPORTED: [&str; 1] = ["v1alpha1"];

/// Holds the served version of native PodGroups. Set by their watch, read by the writer of their status.
#[derive(Debug, Default)]
pub(crate) struct Served(Mutex<Option<Arc<str>>>);

impl Served {
    /// Returns the version; `None` while native PodGroups are not served.
    pub(crate) fn version(&self) -> Option<Arc<str>> {
        self.0.lock().clone()
    }

    /// Finds out where a discovered kind is served; `None` if it is not.
    pub(crate) async fn locate(&self, reader: &Reader, kind: Kind) -> Result<Option<ApiResource>, ReadError> {
        let found = locate(reader, kind.api_resource()).await?;
        if kind == Kind::Object(ObjectKind::PodGroupNative) {
            *self.0.lock() = found.as_ref().map(|resource| resource.version.as_str().into());
        }
        if let Some(resource) = &found {
            tracing::debug!(kind = kind.as_str(), version = %resource.version, "kind is served");
        }
        Ok(found)
    }
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Returns the first supported version of the group that has the resource.
async fn locate(reader: &Reader, known: ApiResource) -> Result<Option<ApiResource>, ReadError> {
    let path = format!("/apis/{}", known.group);
    let Some(group) = read::<Group>(reader, &path).await? else { return Ok(None) };
    for Version { version } in group.versions {
        if UNSUPPORTED.contains(&version.as_str()) {
            continue;
        }
        let Some(all) = read::<Resources>(reader, &format!("{path}/{version}")).await? else { continue };
        if all.resources.iter().any(|resource| resource.name == known.plural) {
            let api_version = format!("{}/{version}", known.group);
            return Ok(Some(ApiResource { version, api_version, ..known }));
        }
    }
    Ok(None)
}

/// Reads a discovery document; `None` on a 404.
async fn read<T: DeserializeOwned>(reader: &Reader, path: &str) -> Result<Option<T>, ReadError> {
    match reader.read(path).await {
        Ok(page) => Ok(Some(page)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
