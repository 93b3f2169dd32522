//! Gauges that plugins register, read from the published snapshot on each scrape.

use std::sync::atomic::AtomicU64;

use pellucid_cycle::Snapshot;
use pellucid_framework::View;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;

/// Registers the gauges of the plugins that some profile enables.
pub(crate) fn gauges(snapshot: &Snapshot, registry: &mut Registry) {
    let view = View::new(&snapshot.cluster);
    let is_enabled =
        |name: &str| snapshot.profiles.iter().flat_map(|p| &p.plugins).any(|plugin| plugin.name() == name);
    let enabled = snapshot.registry.iter().filter(|factory| is_enabled(factory.name()));
    for of in enabled.flat_map(|factory| factory.gauges()) {
        let family: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
        for (values, number) in (of.read)(view) {
            family.get_or_create_owned(&of.labels.iter().copied().zip(values).collect()).set(number);
        }
        registry.register(of.name, of.help, family);
    }
}
