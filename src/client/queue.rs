//! `pellucid queue`: what waits, by stage and controller or unit by unit, and who is ahead of a pod or gang.

use clap::Args;
use pellucid_api::rest::queue::{Queue, QueueCounts};
use serde_json::Value;

use super::filters::{AskedList, ListArgs, walk};
use super::out::Paint;
use super::pods;
use super::queue_text::{self, Place};
use super::server::{ObjectName, ServerArgs};

/// The stages of the queue, in the order of its lists.
const STAGES: &str = "active,backoff,unschedulable,gated";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pellucid queue --stage unschedulable --all\n  pellucid queue shop/web-0"
)]
pub struct QueueArgs {
    /// A pod or gang whose place is wanted: NAMESPACE/NAME, or NAME; the whole queue when absent
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) unit: Option<ObjectName>,
    #[command(flatten)]
    pub(crate) asked: AskedList,
}

pub(crate) fn run(args: &QueueArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    args.asked.run(|list, server| match &args.unit {
        Some(unit) => {
            let name = server.full(unit)?;
            let path = format!("/apis/v1/queue?position={name}&limit=1");
            server.show(&path, |body: &Place| queue_text::place(&name, body, list.rows(server), paint))
        }
        None if list.wants_items(server) => {
            let path = "/apis/v1/queue";
            let body = walk(server, path, &list.query(server, &[]), "units", list.rows(server))?;
            server.shown(path, body, |body: &Queue| queue_text::units(body, paint))
        }
        None => groups(list, server, paint),
    })
}

/// Returns a row for each stage, controller and shape.
fn groups(list: &ListArgs, server: &ServerArgs, paint: Paint) -> anyhow::Result<String> {
    let mut by = vec![("by", "stage,owner,shape")];
    if list.stage.is_none() {
        by.push(("stage", STAGES));
    }
    let body = pods::groups(list, server, &by)?;
    if body.rows.is_empty() {
        return Ok("Nothing waits.".to_owned());
    }
    let path = format!("/apis/v1/queue?limit=1&minGeneration={}", body.meta.snapshot_generation);
    let counts = server.body(&path)?.get_mut("counts").map(Value::take).unwrap_or_default();
    let counts: QueueCounts = server.understood(&path, counts)?;
    Ok(queue_text::groups(&body, &counts, paint))
}
