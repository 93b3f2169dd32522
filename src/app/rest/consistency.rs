//! The route `GET /apis/v1/consistency`: what differed between the scheduler's state and the API server's lists.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::consistency::Consistency;
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::reads::{RowSpec, stamp};
use pellucid_http::Route;
use serde_json::json;

use crate::consistency::ConsistencyConfig;
use crate::consistency::record::ConsistencyRecord;
use crate::rest::routes::costed;
use crate::rest::rows::table;

const ROWS: RowSpec = RowSpec {
    array: "/drifts",
    nested: Some("/fields"),
    columns: "Kind ../kind, Namespace ../namespace, Name ../name, Field /field, Ours /ours, Theirs /theirs, \
              Found at ../foundAt, Repaired at ../repairedAt",
    spread: None,
};

pub(crate) fn route(record: ConsistencyRecord, config: ConsistencyConfig) -> Route<Snapshot> {
    let read = move |snapshot: &Snapshot, _: &_, info: &pellucid_http::RequestInfo| {
        costed(|| {
            let all = record.read();
            let sees = |namespace: &str| namespace.is_empty() || info.viewer.sees(namespace);
            let body = Consistency {
                interval_seconds: config.interval.as_secs_f64(),
                grace_seconds: config.grace.as_secs_f64(),
                sweeps: all.sweeps,
                open: all.open(),
                kinds: all.kinds.values().map(|(kind, _)| kind.clone()).collect(),
                drifts: all.drifts.iter().rev().filter(|drift| sees(&drift.namespace)).cloned().collect(),
                ..Consistency::default()
            };
            let mut body = json!(body);
            stamp(&mut body, "Consistency", snapshot, info.now);
            Ok(body)
        })
    };
    let summary =
        "What differed between the scheduler's state and the API server's lists, by object and field";
    Route::get("/apis/v1/consistency", "cluster", summary, BodySchema::of::<Consistency>(), read)
        .rows(|body, _| table(&ROWS, body, None))
        .described(
            "Every kind is listed now and then beside its watch (`--consistency-interval`) and compared with the published \
             state. A drift differs in two lists some seconds apart between which the object did not change; what the \
             scheduler assumed or ordered itself is none. The kind is then listed again by its watch, and a drift that \
             is gone has `repairedAt`.",
        )
}
