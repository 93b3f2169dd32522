//! Gauges: numbers of a plugin's state for `/metrics`, read from the published snapshot on each scrape.

use super::view::View;

/// A family of gauges.
#[derive(Clone, Copy, Debug)]
pub struct GaugeFamily {
    /// Name of the metric, with the prefix `pellucid_` and its unit where it has one.
    pub name: &'static str,
    /// What it says, in one sentence without a full stop.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Computes the samples: the values of the labels, in their order, and the number. Invariant: there is a bound on how
    /// many there are, whatever the cluster holds.
    pub read: fn(View<'_>) -> Vec<(Vec<String>, f64)>,
}
