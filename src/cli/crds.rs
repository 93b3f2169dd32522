//! `pellucid crds`: the custom resource definitions to apply to a cluster.

use super::out;

/// Prints them. A YAML comment, so that `pellucid crds | kubectl apply -f -` says what is the matter.
pub(super) fn run() -> anyhow::Result<()> {
    out::line("# This version has no custom resources: they come with gangs. There is nothing to apply.")
}
