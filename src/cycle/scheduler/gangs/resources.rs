//! Amounts over the whole cluster: the size of a member, and whether a gang's `minResources` are free.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::Cluster;
use pellucid_cluster::gangs::Gang;
use pellucid_model::collections::FxHashMap;
use pellucid_model::quantity::format_amount;
use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, NodeIdx};
use pellucid_recording::gang_verdict::GangRefusal;

use super::plan::GangAttempt;
use crate::scheduler::Scheduler;

/// The total of each resource over all nodes, to which members are compared.
pub(super) struct Shares {
    totals: FxHashMap<Name, i64>,
}

impl Shares {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let columns = cluster.columns();
        let total = |r| sum(cluster, |node| columns.allocatable(node, r));
        Self { totals: columns.offered().map(|r| (columns.name(r), total(r))).collect() }
    }

    /// Returns the greatest share of its total that is requested of any resource, in units of 10^-12.
    pub(super) fn size(&self, list: &ResourceList) -> u128 {
        let share = |(name, amount): (Name, i64)| match self.totals.get(&name) {
            Some(total) if *total > 0 => amount as u128 * 1_000_000_000_000 / *total as u128,
            // No node offers the resource, so no member is larger.
            _ => u128::MAX,
        };
        list.named().map(share).max().unwrap_or(0)
    }
}

fn sum(cluster: &Cluster, of: impl Fn(NodeIdx) -> i64) -> i64 {
    cluster.present().iter().fold(0_i64, |sum, node| sum.saturating_add(of(*node)))
}

/// Returns how much of a resource is free in the whole cluster, and in use by placed members of a gang.
pub fn free_for(cluster: &Cluster, gang: &Gang, name: &Name) -> i64 {
    let columns = cluster.columns();
    let Some(resource) = columns.find(name) else { return 0 };
    let free = sum(cluster, |node| columns.free(node, resource).max(0));
    let placed = gang.members.keys().filter_map(|id| cluster.pod(*id)).filter(|r| r.node.is_some());
    let own = placed.filter_map(|r| r.pod.spec.requests.list.named().find(|(n, _)| n == name));
    own.map(|(_, amount)| amount).fold(free, i64::saturating_add)
}

impl Scheduler {
    /// Returns a refusal if the whole cluster has less free than a gang's `minResources`. What the gang's members
    /// already hold counts as free.
    pub(super) fn lacks_resources(&self, attempt: &GangAttempt) -> Option<GangRefusal> {
        for (key, need) in attempt.keys.iter().zip(&attempt.needs) {
            let Some(gang) = self.cluster.gangs().get(key).filter(|_| *need > 0) else { continue };
            let Some(wanted) = &gang.definition.min_resources else { continue };
            for (name, amount) in wanted.named() {
                let free = free_for(&self.cluster, gang, &name);
                if free < amount {
                    let (asks, free) = (format_amount(&name, amount), format_amount(&name, free));
                    let message = format!("{key}: minResources asks for {asks} of {name}, {free} are free");
                    return Some(GangRefusal {
                        code: ReasonCode::GangMinResources,
                        message: message.into(),
                        root_cause: None,
                        shares: attempt.shares(&vec![0; attempt.keys.len()]),
                        not_evaluated: attempt.candidates.len() as u32,
                        orders: Vec::new(),
                        is_truncated: false,
                    });
                }
            }
        }
        None
    }
}
