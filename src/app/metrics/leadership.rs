//! Metrics of leader election, read on each scrape. There are none without it.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use pellucid_kubernetes::lease::leadership::Leadership;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::add_counters;

/// Registers the metrics of leader election.
pub(super) fn leadership(leadership: &Leadership, registry: &mut Registry) {
    let report = leadership.report();
    let status: Family<[(&'static str, String); 1], Gauge> = Family::default();
    let labels = [("name", leadership.name.clone())];
    status.get_or_create_owned(&labels).set(i64::from(leadership.is_holder()));
    registry.register("leader_election_master_status", "Whether this instance holds the lease", status);
    let help = "Time from the former holder's last change of the lease, or else from acquiring it, until this \
                instance scheduled, in seconds";
    register_seconds("pellucid_leader_election_hand_over_seconds", help, report.hand_over, registry);
    let help =
        "Time from acquiring the lease until the watches had passed what was written before, in seconds";
    register_seconds("pellucid_leader_election_catch_up_seconds", help, report.caught_up_in, registry);
    let right = &leadership.right;
    let all = [
        (
            "pellucid_leader_election_refused_writes",
            "Writes that were not sent because this instance does not hold the lease",
            right.refused(),
        ),
        (
            "pellucid_leader_election_cut_off_writes",
            "Writes that were in flight, unanswered, when the right to write ended",
            right.cut_off(),
        ),
        (
            "pellucid_leader_election_failed_requests",
            "Requests for the lease that failed, without conflicts",
            report.failed_requests,
        ),
    ];
    add_counters(registry, &all);
}

/// Registers a duration in seconds, once it is known.
fn register_seconds(name: &str, help: &str, time: Option<Duration>, registry: &mut Registry) {
    if let Some(time) = time {
        let gauge: Gauge<f64, AtomicU64> = Gauge::default();
        gauge.set(time.as_secs_f64());
        registry.register(name, help, gauge);
    }
}
