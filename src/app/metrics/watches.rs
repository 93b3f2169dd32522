//! Metrics of the watches and of the API server they talk to, read on each scrape.
//!
//! Every kind and cause exists from the start, so that rates are right from the first failure on.

use std::sync::atomic::AtomicU64;

use pellucid_kubernetes::watches::status::RetryCause;
use pellucid_model::Now;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::{ClusterIoViews, Label, add_counters, add_gauges};

/// Registers the metrics of the watches and of the API server probe.
pub(crate) fn watches(views: &ClusterIoViews, registry: &mut Registry) {
    let now = (views.clock)();
    let [synced, connected]: [Family<Label, Gauge>; 2] = Default::default();
    let [age, failing]: [Family<Label, Gauge<f64, AtomicU64>>; 2] = Default::default();
    let [events, lists, errors]: [Family<Label, Counter>; 3] = Default::default();
    let retries: Family<[(&'static str, &'static str); 2], Counter> = Family::default();
    for (kind, status) in views.watches.iter() {
        let (labels, report) = ([("kind", kind)], status.report());
        synced.get_or_create_owned(&labels).set(i64::from(report.synced));
        connected.get_or_create_owned(&labels).set(i64::from(report.connected));
        // A watch that never had contact has no age; `synced` shows that.
        if let Some(contact) = report.last_contact {
            age.get_or_create_owned(&labels).set(seconds(now, contact));
        }
        failing.get_or_create_owned(&labels).set(report.failing.map_or(0.0, |f| seconds(now, f.since)));
        events.get_or_create_owned(&labels).inc_by(report.events);
        lists.get_or_create_owned(&labels).inc_by(report.lists);
        errors.get_or_create_owned(&labels).inc_by(report.errors);
        for (cause, n) in RetryCause::ALL.into_iter().zip(report.retries) {
            retries.get_or_create_owned(&[("kind", kind), ("cause", cause.as_str())]).inc_by(n);
        }
    }
    registry.register("pellucid_watch_synced", "Whether a watch has delivered a complete list", synced);
    registry.register("pellucid_watch_connected", "Whether a watch is open, as far as is known", connected);
    let help = "Time since an event, a bookmark, a part of a list or the opening of a watch, in seconds";
    registry.register("pellucid_watch_contact_age_seconds", help, age);
    let help = "Time since a watch began to fail, in seconds; 0 while it does not";
    registry.register("pellucid_watch_failing_seconds", help, failing);
    registry.register("pellucid_watch_events", "Events of a watch", events);
    registry.register("pellucid_watch_lists", "Complete lists of a watch", lists);
    registry.register("pellucid_watch_errors", "Errors of a watch; it goes on after each", errors);
    let help = "Lists and watches that were made again, by cause; ended is the ordinary end of a watch";
    registry.register("pellucid_watch_retries", help, retries);
    server(views, registry);
}

fn server(views: &ClusterIoViews, registry: &mut Registry) {
    let report = views.server.report();
    let up = u64::from(report.away.is_none());
    add_gauges(registry, &[("pellucid_api_server_up", "Whether the API server answered the last probe", up)]);
    let all = [
        ("pellucid_api_server_outages", "Times the API server stopped answering probes", report.outages),
        ("pellucid_api_server_failed_probes", "Probes it did not answer", report.failed_probes),
    ];
    add_counters(registry, &all);
}

fn seconds(now: Now, since: Now) -> f64 {
    now.monotonic.saturating_sub(since.monotonic).as_secs_f64()
}
