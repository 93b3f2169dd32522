//! Gauges of quotas: their amounts by resource, and how many of their pods wait.
//!
//! The number of series is bounded: beyond the bound, quotas later in the order of names have none, and a gauge says how
//! many those are.

use std::collections::BTreeMap;

use pellucid_framework::View;
use pellucid_framework::gauges::GaugeFamily;

use super::super::quotas::Quotas;
use super::super::tree::{QuotaIdx, Role, clamp};

/// Largest number of quotas with gauges. Each has six per resource.
const MOST_QUOTAS: usize = 200;

pub(crate) static ALL: [GaugeFamily; 3] = [
    GaugeFamily {
        name: "pellucid_elasticquota",
        help: "Amounts of ElasticQuotas in cores, bytes or units: min, max, runtime, used, request, borrowed (the part of \
               runtime beyond min)",
        labels: &["quota", "resource", "type"],
        read: amounts,
    },
    GaugeFamily {
        name: "pellucid_elasticquota_pending_pods",
        help: "Pods of ElasticQuotas that have no place",
        labels: &["quota"],
        read: pending,
    },
    GaugeFamily {
        name: "pellucid_elasticquota_left_out",
        help: "ElasticQuotas without gauges, because there are more than 200",
        labels: &[],
        read: |view| {
            let Some(quotas) = view.state::<Quotas>() else { return Vec::new() };
            let left_out = quotas.by_name().len().saturating_sub(MOST_QUOTAS);
            vec![(Vec::new(), left_out as f64)]
        },
    },
];

impl Quotas {
    /// Returns the quotas that have a share or a limit, by name.
    fn by_name(&self) -> Vec<QuotaIdx> {
        let mut all: Vec<QuotaIdx> =
            (0..self.tree.quotas.len()).filter(|at| self.tree.get(*at).role == Role::Ordinary).collect();
        all.sort_by(|a, b| self.tree.get(*a).name.cmp(&self.tree.get(*b).name));
        all
    }
}

fn amounts(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    let Some(quotas) = view.state::<Quotas>() else { return Vec::new() };
    let mut all = Vec::new();
    for at in quotas.by_name().into_iter().take(MOST_QUOTAS) {
        let quota = quotas.tree.get(at);
        let counted = quota.cells.iter().enumerate().filter_map(|(r, cell)| Some((r, cell, cell.max?)));
        for (r, cell, max) in counted {
            let resource = &quotas.tree.resources[r];
            let unit = if &**resource == "cpu" { 1000.0 } else { 1.0 };
            let values = [
                ("min", cell.floor()),
                ("max", max),
                ("runtime", cell.runtime),
                ("used", clamp(cell.all.used)),
                ("request", cell.request(quotas.tree.lends(quota))),
                ("borrowed", (cell.runtime - cell.scaled_min).max(0)),
            ];
            let sample = |(kind, amount): (&str, i64)| {
                let labels = vec![quota.name.to_string(), resource.to_string(), kind.to_owned()];
                (labels, amount as f64 / unit)
            };
            all.extend(values.map(sample));
        }
    }
    all
}

fn pending(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    let Some(quotas) = view.state::<Quotas>() else { return Vec::new() };
    let mut counts: BTreeMap<QuotaIdx, u32> = BTreeMap::new();
    for counted in quotas.pods.iter().flatten().filter(|counted| counted.used().is_none()) {
        if let Some(charge) = &counted.requested {
            *counts.entry(charge.quota).or_default() += 1;
        }
    }
    let of = |at: QuotaIdx| {
        let n = counts.get(&at).copied().unwrap_or(0);
        (vec![quotas.tree.get(at).name.to_string()], f64::from(n))
    };
    quotas.by_name().into_iter().take(MOST_QUOTAS).map(of).collect()
}
