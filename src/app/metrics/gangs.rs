//! Metrics of gangs: gangs by state, members by stage, attempts, and expired waits.
//!
//! Gauges are read from the published snapshot on each scrape. Attempts are counted as they end, with the time from the
//! first entry into the queue to the placement of the quorum.

use std::time::Duration;

use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::Step;
use pellucid_diagnosis::gangs::tally::tally;
use pellucid_recording::Outcome;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::metrics::{Label, add_counters, add_gauges, gauges_by};

/// Counters of attempts at gangs, updated as attempts end.
pub(crate) struct GangAttempts {
    placed: Counter,
    partly: Counter,
    refused: Counter,
    quorum_wait: Histogram,
}

impl GangAttempts {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let attempts: Family<Label, Counter> = Family::default();
        let of = |result| attempts.get_or_create_owned(&[("result", result)]);
        let made = Self {
            placed: of("placed"),
            partly: of("partly"),
            refused: of("refused"),
            quorum_wait: Histogram::new(exponential_buckets(0.01, 2.0, 20)),
        };
        let help =
            "Attempts at gang groups by result: placed, partly (members wait for others, NonStrict), refused";
        registry.register("pellucid_gang_attempts", help, attempts);
        let help = "Time from a gang group's first entry into the queue to the attempt that placed its members, in \
                    seconds";
        registry.register("pellucid_gang_quorum_wait_seconds", help, made.quorum_wait.clone());
        made
    }

    /// Counts an attempt if its unit is a gang.
    pub(crate) fn count(&self, step: &Step, now: Duration) {
        if step.gang.is_none() {
            return;
        }
        let placed = step.all().filter(|s| matches!(s.verdict.outcome, Outcome::Placed(_))).count();
        if placed == 0 {
            self.refused.inc();
        } else if placed < step.all().count() {
            self.partly.inc();
        } else {
            self.placed.inc();
            self.quorum_wait.observe(now.saturating_sub(step.first_queued_at).as_secs_f64());
        }
    }
}

/// Registers the gauges and counters that are read from the snapshot.
pub(crate) fn state(snapshot: &Snapshot, registry: &mut Registry) {
    let tally = tally(snapshot);
    registry.register("pellucid_gangs", "Gangs by state", gauges_by("state", tally.states));
    let members = gauges_by("stage", tally.members);
    registry.register("pellucid_gang_members", "Members of gangs by stage, each in exactly one", members);
    let help = "Gang groups with members that wait in the queue";
    add_gauges(registry, &[("scheduler_waiting_gang_group_number", help, tally.waiting_groups)]);
    let timeouts = snapshot.counters.gang_timeouts;
    add_counters(registry, &[("pellucid_gang_timeouts", "Waits of gangs that ran out", timeouts)]);
}
