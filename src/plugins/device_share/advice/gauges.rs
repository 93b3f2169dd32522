//! Gauges of devices, for the whole cluster by type: how many there are, how much of them pods have, and how much of what is
//! free is in parts of devices.

use std::collections::BTreeMap;

use pellucid_framework::View;
use pellucid_framework::gauges::GaugeFamily;

use super::super::amounts::Resource;
use super::super::node_devices::NodeDevices;
use super::super::row::{CardInUse, Row};

/// Largest number of types with gauges, by name.
const MOST_TYPES: usize = 8;

pub(crate) static ALL: [GaugeFamily; 3] = [
    GaugeFamily {
        name: "pellucid_devices",
        help: "Devices by type and state: unhealthy, unused, shared (pods have a part and a part is free), full",
        labels: &["type", "state"],
        read: counts,
    },
    GaugeFamily {
        name: "pellucid_device_amount",
        help: "Amounts of healthy devices, in bytes or percent of a device: total, allocated, free",
        labels: &["type", "resource", "state"],
        read: amounts,
    },
    GaugeFamily {
        name: "pellucid_device_fragments",
        help: "Devices' worth of free capacity on devices of which pods have a part",
        labels: &["type"],
        read: fragments,
    },
];

fn rows(view: View<'_>) -> impl Iterator<Item = &Row> {
    let devices = view.state::<NodeDevices>();
    view.cluster().by_name().iter().filter_map(move |node| devices?.row(*node))
}

/// Adds up a number per card by some labels, of the first types by name.
fn sums<const N: usize>(
    view: View<'_>,
    of: impl Fn(CardInUse<'_>) -> Vec<([String; N], f64)>,
) -> Vec<(Vec<String>, f64)> {
    let mut types: BTreeMap<String, BTreeMap<[String; N], f64>> = BTreeMap::new();
    for card in rows(view).flat_map(Row::cards).filter(|card| card.info.is_some()) {
        let sums = types.entry(card.kind.to_string()).or_default();
        of(card).into_iter().for_each(|(labels, n)| *sums.entry(labels).or_default() += n);
    }
    let all = types.into_iter().take(MOST_TYPES);
    let sample = |kind: &String, labels: [String; N]| std::iter::once(kind.clone()).chain(labels).collect();
    all.flat_map(|(kind, sums)| sums.into_iter().map(move |(labels, n)| (sample(&kind, labels), n))).collect()
}

fn counts(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    sums(view, |card| {
        let state = match card.taken.pods {
            _ if !card.healthy => "unhealthy",
            0 => "unused",
            _ if share_free(card) > 0.0 => "shared",
            _ => "full",
        };
        vec![([state.to_owned()], 1.0)]
    })
}

fn amounts(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    sums(view, |card| {
        let left = card.free();
        let of = |(resource, total): (Resource, i64)| {
            let of =
                |state: &str, amount: i64| ([resource.name().to_owned(), state.to_owned()], amount as f64);
            [
                of("total", total),
                of("allocated", card.taken.used.get(resource)),
                of("free", left.get(resource)),
            ]
        };
        card.total.iter().flat_map(of).collect()
    })
}

fn fragments(view: View<'_>) -> Vec<(Vec<String>, f64)> {
    sums(view, |card| {
        let part = if card.healthy && card.taken.pods > 0 { share_free(card) } else { 0.0 };
        vec![([], part)]
    })
}

/// Returns the part of a device that is free: the least of its resources'.
fn share_free(card: CardInUse<'_>) -> f64 {
    let left = card.free();
    let shares = card.total.iter().filter(|(_, total)| *total > 0);
    shares.map(|(r, total)| left.get(r) as f64 / total as f64).fold(f64::NAN, f64::min).max(0.0)
}
