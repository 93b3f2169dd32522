//! Metrics of preemption, PreBind, evictions and writes of objects.
//!
//! Values are read on each scrape, from the record of preemptions in the snapshot and from the counters of the writers.
//! Every label value exists from the start, so that rates are right from the first event on.

use pellucid_cluster::Stage;
use pellucid_cluster::preemptions::End;
use pellucid_cycle::Snapshot;
use prometheus_client::registry::Registry;

use crate::metrics::{ClusterIoViews, add_counters, add_gauges, counters_by};

/// Registers the metrics of preemption and PreBind from the snapshot.
pub(crate) fn state(snapshot: &Snapshot, registry: &mut Registry) {
    let (book, counts) = (snapshot.cluster.preemptions(), snapshot.cluster.preemptions().counts());
    let all = [
        ("scheduler_preemption_attempts", "Searches for victims", counts.attempts),
        ("pellucid_preemptions", "Searches for victims that chose a node", counts.preemptions),
        ("pellucid_useful_evictions", "Evictions whose preemptor ended bound to the node", counts.useful),
        ("pellucid_refused_evictions", "Evictions that the API server refused", counts.refused),
    ];
    add_counters(registry, &all);
    let ends = End::ALL.into_iter().filter(|end| *end != End::Bound);
    let wasted = ends.map(|end| (end.as_str(), counts.wasted.get(&end).copied().unwrap_or_default()));
    let help = "Evictions for nothing, by what became of the preemption";
    registry.register("pellucid_wasted_evictions", help, counters_by("cause", wasted));
    let (nominated, open) = (snapshot.cluster.nominator().len(), book.open().count());
    let pre_binding = snapshot.cluster.pods().filter(|(_, r)| r.stage == Stage::PreBinding).count();
    let all = [
        ("pellucid_nominated_pods", "Pending pods that are nominated to a node", nominated as u64),
        ("pellucid_preemptions_under_way", "Preemptions whose preemptor is not bound yet", open as u64),
        (
            "pellucid_pre_binding_pods",
            "Placed pods that wait for PreBind, such as for volumes",
            pre_binding as u64,
        ),
    ];
    add_gauges(registry, &all);
}

pub(crate) fn writers(views: &ClusterIoViews, registry: &mut Registry) {
    let help = "Bindings that may be in flight at once, which follows what the API server takes";
    add_gauges(registry, &[("pellucid_bindings_in_flight_bound", help, views.binders.bound() as u64)]);
    let (evicted, objects) = (views.evictor.counts(), views.objects.counts());
    let outcomes = [("deleted", evicted.deleted), ("gone", evicted.gone), ("refused", evicted.refused)];
    let help = "Evict orders by what came of them";
    registry.register("pellucid_evict_orders", help, counters_by("outcome", outcomes));
    let outcomes =
        [("written", objects.written), ("existing", objects.existing), ("refused", objects.refused)];
    let help = "Writes of objects for plugins, such as of volumes and claims, by what came of them";
    registry.register("pellucid_object_orders", help, counters_by("outcome", outcomes));
    let groups = views.group_statuses.counts();
    let outcomes = [
        ("written", groups.written),
        ("unchanged", groups.unchanged),
        ("superseded", groups.superseded),
        ("gone", groups.gone),
        ("failed", groups.failed),
    ];
    let help = "Status orders of PodGroups by what came of them";
    registry.register("pellucid_group_status_orders", help, counters_by("outcome", outcomes));
    let unmarked = "Pods deleted although their condition DisruptionTarget could not be written";
    let all = [
        ("pellucid_evict_retries", "Deletes after the first of an evict order", evicted.retries),
        ("pellucid_evictions_without_condition", unmarked, evicted.without_condition),
        ("pellucid_object_retries", "Writes after the first of an object order", objects.retries),
    ];
    add_counters(registry, &all);
}
