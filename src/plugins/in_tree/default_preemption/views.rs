//! The `state` endpoint of DefaultPreemption.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::preemption::DefaultPreemptionState;
use pellucid_framework::bodies;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use serde_json::{Value, json};

/// Maximum number of listed preemptions, and of listed nominations.
const MOST: usize = 1000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let body = BodySchema::of::<DefaultPreemptionState>();
    let about = "Preemptions under way, nominations, and what came of earlier ones";
    vec![Endpoint::new("state", about, body, state).with_rows("underWay")]
}

fn state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let cluster = cx.view.cluster();
    let (book, counts) = (cluster.preemptions(), cluster.preemptions().counts());
    let nominations = cluster.nominator().nodes().flat_map(|(_, pods)| {
        pods.iter().filter_map(|id| Some((cluster.pod(*id)?, cluster.nominator().of(*id)?)))
    });
    Ok(json!(DefaultPreemptionState {
        attempts: counts.attempts,
        preemptions: counts.preemptions,
        victims: counts.victims,
        useful_evictions: counts.useful,
        wasted_evictions: counts.wasted.iter().map(|(end, n)| (end.as_str().to_owned(), *n)).collect(),
        refused_evictions: counts.refused,
        under_way: book.open().take(MOST).map(|(_, p)| bodies::preemption(p, cx.now)).collect(),
        nominations: nominations
            .take(MOST)
            .map(|(record, nomination)| bodies::nomination(record, nomination, cx.now))
            .collect(),
        ended: book.ended().map(|p| bodies::preemption(p, cx.now)).collect(),
    }))
}
