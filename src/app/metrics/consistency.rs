//! Metrics of the comparisons with the API server's lists, read on each scrape.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::{ClusterIoViews, Label, add_counters, add_gauges};

/// Registers the metrics of comparisons. Every kind exists from the start, so that rates are right from the first drift on.
pub(super) fn consistency(views: &ClusterIoViews, registry: &mut Registry) {
    let all = views.consistency.read();
    let [found, repaired, failed]: [Family<Label, Counter>; 3] = Default::default();
    let objects: Family<Label, Gauge> = Family::default();
    for (kind, _) in views.watches.iter() {
        let labels = [("kind", kind)];
        let (last, counts) = all.kinds.get(kind).cloned().unwrap_or_default();
        found.get_or_create_owned(&labels).inc_by(counts.found);
        repaired.get_or_create_owned(&labels).inc_by(counts.repaired);
        failed.get_or_create_owned(&labels).inc_by(counts.failed);
        objects.get_or_create_owned(&labels).set(i64::try_from(last.objects).unwrap_or(i64::MAX));
    }
    let help = "Objects of the last list that was compared with the state";
    registry.register("pellucid_consistency_objects", help, objects);
    let help = "Objects found to differ from the API server's for longer than an event takes";
    registry.register("pellucid_consistency_drifts", help, found);
    let help = "Of them, those that were gone after their kind was listed again";
    registry.register("pellucid_consistency_repaired_drifts", help, repaired);
    let help = "Comparisons that were given up, because a list failed or the watch was broken";
    registry.register("pellucid_consistency_failures", help, failed);
    let open = ("pellucid_consistency_open_drifts", "Drifts that are not repaired", all.open() as u64);
    add_gauges(registry, &[open]);
    let sweeps = ("pellucid_consistency_sweeps", "Complete comparisons of all kinds", all.sweeps);
    add_counters(registry, &[sweeps]);
}
