//! The route `GET /apis/v1/trends`: the samples of the ring, and what each of their numbers is.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::trends::{TrendMeanings, Trends};
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::reads::{RowSpec, Spread, stamp};
use pellucid_http::Route;
use serde_json::json;

use crate::rest::routes::costed;
use crate::rest::rows::table;
use crate::trends::{EVERY, SAMPLES, SharedRing};

const ROWS: RowSpec = RowSpec {
    array: "/samples",
    nested: None,
    columns: "At /at, Seconds /seconds, Pending /pending, Binds per second /bindsPerSecond, \
              Attempts per second /attemptsPerSecond, Wait p99 in seconds /waitP99Seconds, \
              Other reasons /otherReasons",
    spread: Some(Spread { array: "/reasons", name: "/code", columns: "pods /pods" }),
};

pub(crate) fn route(ring: SharedRing) -> Route<Snapshot> {
    let read = move |snapshot: &Snapshot, _: &_, info: &pellucid_http::RequestInfo| {
        costed(|| {
            let samples = ring.samples();
            let every_seconds = EVERY.as_secs();
            let body = Trends {
                every_seconds,
                most_samples: SAMPLES,
                meanings: meanings(),
                samples,
                ..Trends::default()
            };
            let mut body = json!(body);
            stamp(&mut body, "Trends", snapshot, info.now);
            Ok(body)
        })
    };
    let summary = "The last hour: pending pods by reason, Bindings and attempts per second, how long placed pods had waited";
    Route::get("/apis/v1/trends", "history", summary, BodySchema::of::<Trends>(), read)
        .rows(|body, _| table(&ROWS, body, None))
        .described(
            "A sample every ten seconds, for at most an hour, in the memory of this process: after a restart it begins anew. \
             For a longer history scrape `/metrics`.",
        )
}

fn meanings() -> TrendMeanings {
    TrendMeanings {
        reasons: "Pods that the API server shows as Pending and without a node, each once, under the key reason of its \
                  verdict, as `/apis/v1/summary/pending` and `pellucid_pending_reasons` count them. Working the verdicts \
                  out takes at most a fiftieth of the time, and a second; samples in between have no `reasons`."
            .into(),
        binds_per_second: "Increase of `pellucid_bound_pods_total`: Bindings that the API server confirmed.".into(),
        attempts_per_second: "Increase of the attempts at units of the queue, each a pod or the members of a gang that \
                              are not placed."
            .into(),
        wait_p99_seconds: "The 0.99 quantile of what `scheduler_pod_scheduling_sli_duration_seconds` gained since the \
                           sample before: from a pod's first entry into the queue to its placement, all numbers of \
                           attempts together. It is estimated from the buckets as `histogram_quantile` does; their \
                           bounds double from 0.01 s, so it may be up to twice the true one, and below 0.01 s only the \
                           bound is sure."
            .into(),
    }
}
