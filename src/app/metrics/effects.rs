//! Metrics of preemption, PreBind, evictions and volume writes.
//!
//! They are read on each scrape: the record of preemptions is in the snapshot, and the writers have their own counters.
//! Every label value exists from the start, so that rates are right from the first event on.

use pellucid_cluster::Stage;
use pellucid_cluster::preemptions::End;
use pellucid_cycle::Snapshot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::app::metrics::ClusterIoViews;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// Registers the metrics of preemption and PreBind from the snapshot.
pub(in crate::app) fn state(snapshot: &Snapshot, registry: &mut Registry) {
    let (book, counts) = (snapshot.cluster.preemptions(), snapshot.cluster.preemptions().counts());
    for (name, help, n) in [
        ("scheduler_preemption_attempts", "Searches for victims", counts.attempts),
        ("pellucid_preemptions", "Searches for victims that chose a node", counts.preemptions),
        ("pellucid_useful_evictions", "Evictions whose preemptor ended bound to the node", counts.useful),
        ("pellucid_refused_evictions", "Evictions that the API server refused", counts.refused),
    ] {
        registry.register(name, help, counter(n));
    }
    let wasted: Family<CauseLabels, Counter> = Family::default();
    for end in End::ALL.into_iter().filter(|end| *end != End::Bound) {
        let n = counts.wasted.get(&end).copied().unwrap_or_default();
        wasted.get_or_create_owned(&CauseLabels { cause: end.as_str() }).inc_by(n);
    }
    let help = "Evictions for nothing, by what became of the preemption";
    registry.register("pellucid_wasted_evictions", help, wasted);
    let pre_binding = snapshot.cluster.pods().filter(|(_, r)| r.stage == Stage::PreBinding).count();
    for (name, help, n) in [
        (
            "pellucid_nominated_pods",
            "Pending pods that are nominated to a node",
            snapshot.cluster.nominator().len(),
        ),
        (
            "pellucid_preemptions_under_way",
            "Preemptions whose preemptor is not bound yet",
            book.open().count(),
        ),
        ("pellucid_pre_binding_pods", "Placed pods that wait for PreBind, such as for volumes", pre_binding),
    ] {
        let gauge: Gauge<i64> = Gauge::default();
        gauge.set(i64::try_from(n).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
}

/// Registers the counters of the writers.
pub(in crate::app) fn writers(views: &ClusterIoViews, registry: &mut Registry) {
    let (evicted, volumes) = (views.evictor.counts(), views.volumes.counts());
    let outcomes = [("deleted", evicted.deleted), ("gone", evicted.gone), ("refused", evicted.refused)];
    let help = "Evict orders by what came of them";
    registry.register("pellucid_evict_orders", help, by_outcome(&outcomes));
    let outcomes = [("written", volumes.written), ("refused", volumes.refused)];
    let help = "Writes to volumes and claims by what came of them";
    registry.register("pellucid_volume_orders", help, by_outcome(&outcomes));
    let groups = views.group_statuses.counts();
    let outcomes = [
        ("written", groups.written),
        ("unchanged", groups.unchanged),
        ("superseded", groups.superseded),
        ("gone", groups.gone),
        ("failed", groups.failed),
    ];
    let help = "Status orders of PodGroups by what came of them";
    registry.register("pellucid_group_status_orders", help, by_outcome(&outcomes));
    let unmarked = "Pods deleted although their condition DisruptionTarget could not be written";
    for (name, help, n) in [
        ("pellucid_evict_retries", "Deletes after the first of an evict order", evicted.retries),
        ("pellucid_evictions_without_condition", unmarked, evicted.without_condition),
        ("pellucid_volume_retries", "Writes after the first of a volume order", volumes.retries),
    ] {
        registry.register(name, help, counter(n));
    }
}

fn counter(n: u64) -> Counter {
    let counter: Counter = Counter::default();
    counter.inc_by(n);
    counter
}

fn by_outcome(outcomes: &[(&'static str, u64)]) -> Family<OutcomeLabels, Counter> {
    let family: Family<OutcomeLabels, Counter> = Family::default();
    for (outcome, n) in outcomes {
        family.get_or_create_owned(&OutcomeLabels { outcome }).inc_by(*n);
    }
    family
}
