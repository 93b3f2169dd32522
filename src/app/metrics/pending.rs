//! Metrics of pending pods by queue stage and by reason, read from the published snapshot on each scrape.

use std::collections::BTreeMap;

use pellucid_cycle::Snapshot;
use pellucid_diagnosis::verdict::verdicts;
use pellucid_diagnosis::views::pending::{pods_by_stage, waiting};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::gauges_by;

pub(crate) fn state(snapshot: &Snapshot, registry: &mut Registry) {
    let pending = gauges_by("queue", pods_by_stage(snapshot).map(|(stage, n)| (stage, n as u64)));
    registry.register("scheduler_pending_pods", "Pending pods by queue, a gang by its members", pending);
    let mut counts: BTreeMap<(&'static str, &str), i64> = BTreeMap::new();
    let verdicts = verdicts(snapshot, snapshot.published);
    for pod in waiting(snapshot, &verdicts) {
        *counts.entry((pod.code.as_str(), pod.profile)).or_default() += 1;
    }
    let reasons: Family<[(&'static str, String); 2], Gauge> = Family::default();
    for ((code, profile), n) in counts {
        reasons.get_or_create_owned(&[("code", code.to_owned()), ("profile", profile.to_owned())]).set(n);
    }
    let help =
        "Pods without a node by the reason that keeps them, each once; /apis/v1/summary/pending has more";
    registry.register("pellucid_pending_reasons", help, reasons);
}
