//! `pellucid gangs`: lists all gangs with their members by stage.

use std::collections::BTreeMap;

use clap::Args;
use pellucid_api::rest::gangs::GangSummary;
use serde_json::Value;

use super::gang_text;
use super::out::Paint;
use super::server::ServerArgs;

#[derive(Debug, Args)]
pub(super) struct GangsArgs {
    #[command(flatten)]
    pub server: ServerArgs,
}

pub(super) fn run(args: &GangsArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let path = "/apis/v1/plugins/Coscheduling/gangs";
    let narrow = |body: &mut Value| {
        if let Some(gangs) = body.as_object_mut() {
            gangs.retain(|name, _| args.server.wants(name));
        }
    };
    args.server
        .show_narrowed(path, narrow, |body: &BTreeMap<String, GangSummary>| gang_text::list(body, paint))
}
