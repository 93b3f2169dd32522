//! `pellucid openapi`: the OpenAPI document of the REST API, as a running scheduler serves it.

use clap::Args;

use super::not_in_this_build;

/// Arguments of `openapi`.
#[derive(Debug, Args)]
pub struct OpenapiArgs {}

/// Prints the document.
pub(super) fn run(_args: &OpenapiArgs) -> anyhow::Result<()> {
    Err(not_in_this_build("openapi"))
}
