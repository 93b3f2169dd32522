//! Gauges of queues: their amounts by resource, their weights, and how many of their pods wait.
//!
//! The number of series is bounded: beyond the bounds, queues and resources later in the order of names have none, and a
//! gauge says how many queues those are.

use std::collections::BTreeMap;

use pellucid_framework::View;
use pellucid_framework::gauges::GaugeFamily;
use pellucid_model::Name;
use pellucid_plugin_helper::listing::pending;

use super::super::amounts::{Amounts, units};
use super::super::queues::{Queues, Tenant};

/// Largest number of queues with gauges. Each has four per resource.
const MOST_QUEUES: usize = 200;
/// Largest number of resources with gauges.
const MOST_RESOURCES: usize = 32;

pub(crate) static ALL: [GaugeFamily; 4] = [
    GaugeFamily {
        name: "pellucid_proportion_queue",
        help: "Amounts of kube-batch's Queues in cores, bytes or units: deserved, allocated, request, capability",
        labels: &["queue", "resource", "type"],
        read: amounts,
    },
    GaugeFamily {
        name: "pellucid_proportion_queue_weight",
        help: "Weights of kube-batch's Queues",
        labels: &["queue"],
        read: |view| by_queue(view, |queues, queue| queues.weight(queue) as f64),
    },
    GaugeFamily {
        name: "pellucid_proportion_queue_pending_pods",
        help: "Pods of kube-batch's Queues that have no place",
        labels: &["queue"],
        read: |view| {
            let counts = view.state::<Queues>().map(|queues| pods_pending(view, queues)).unwrap_or_default();
            by_queue(view, |_, queue| counts.get(queue).copied().unwrap_or(0.0))
        },
    },
    GaugeFamily {
        name: "pellucid_proportion_queues_left_out",
        help: "Queues of kube-batch without gauges, because there are more than 200",
        labels: &[],
        read: |view| {
            let Some(queues) = view.state::<Queues>() else { return Vec::new() };
            let left_out = queues.existing.len().saturating_sub(MOST_QUEUES);
            vec![(Vec::new(), left_out as f64)]
        },
    },
];

/// Returns one sample per queue, if there is a Queue.
fn by_queue(view: View<'_>, of: impl Fn(&Queues, &Name) -> f64) -> Vec<(Vec<String>, f64)> {
    let Some(queues) = view.state::<Queues>().filter(|queues| queues.is_active()) else { return Vec::new() };
    let shown = queues.existing.iter().take(MOST_QUEUES);
    shown.map(|queue| (vec![queue.to_string()], of(queues, queue))).collect()
}

fn amounts(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    let Some(queues) = view.state::<Queues>().filter(|queues| queues.is_active()) else { return Vec::new() };
    // What no node offers cannot be shared out.
    let mut resources = queues.resources();
    resources.retain(|resource| queues.total.get(resource) > 0);
    resources.truncate(MOST_RESOURCES);
    let mut all = Vec::new();
    for queue in queues.existing.iter().take(MOST_QUEUES) {
        let tenant = queues.tenants.get(queue);
        for resource in &resources {
            let of = |amount: fn(&Tenant) -> &Amounts| {
                Some(tenant.map_or(0, |tenant| amount(tenant).get(resource)))
            };
            let values = [
                ("deserved", of(|tenant| &tenant.deserved)),
                ("allocated", of(|tenant| &tenant.sums.allocated)),
                ("request", of(|tenant| &tenant.sums.requested)),
                ("capability", queues.capability(queue, resource)),
            ];
            let sample = |(kind, amount): (&str, Option<i128>)| {
                let labels = vec![queue.to_string(), resource.to_string(), kind.to_owned()];
                Some((labels, units(resource, amount?)))
            };
            all.extend(values.into_iter().filter_map(sample));
        }
    }
    all
}

fn pods_pending(view: View<'_>, queues: &Queues) -> BTreeMap<Name, f64> {
    let mut counts: BTreeMap<Name, f64> = BTreeMap::new();
    for record in pending(view) {
        if let Some(queue) = queues.queue_of(&record.pod.spec) {
            *counts.entry(queue.clone()).or_default() += 1.0;
        }
    }
    counts
}
