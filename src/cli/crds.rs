//! `pellucid crds`: prints the CustomResourceDefinitions of gangs, for `kubectl apply -f -`.

use pellucid_api::definitions::DEFINITIONS;

use super::out;

pub(super) fn run() -> anyhow::Result<()> {
    out::line(DEFINITIONS.join("---\n").trim_end())
}
