//! `pellucid crds`: the custom resource definitions of gangs, for `kubectl apply -f -`.

use pellucid_api::definitions::DEFINITIONS;

use super::out;

/// Prints them as YAML documents.
pub(super) fn run() -> anyhow::Result<()> {
    out::line(DEFINITIONS.join("---\n").trim_end())
}
