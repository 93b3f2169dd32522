//! `pellucid openapi`: prints the OpenAPI document of the REST API, as a running scheduler serves it.

use clap::Args;

use super::out;

/// Arguments of `openapi`.
#[derive(Debug, Args)]
pub struct OpenapiArgs {}

pub(super) fn run(_args: &OpenapiArgs) -> anyhow::Result<()> {
    let routes = crate::app::rest::routes::routes(&pellucid_plugins::registry());
    let document = pellucid_http::openapi(&routes, &crate::app::instance::version().git_version)?;
    out::line(&serde_json::to_string_pretty(&document)?)
}
