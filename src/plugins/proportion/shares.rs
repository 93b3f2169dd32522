//! What each queue deserves of the cluster: of each resource a part by weight, at most what the queue requests and at
//! most its capability. What one does not need goes to the others.

use std::sync::Arc;

use pellucid_model::Name;

use super::amounts::{Amounts, clamp};
use super::queues::{Queues, Tenant};
use pellucid_plugin_helper::water_filling::{Claim, Round, fill, fill_in_rounds};

/// The resources whose shares must be worked out anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stale {
    is_everything: bool,
    resources: Vec<Name>,
}

impl Stale {
    pub(super) fn add(&mut self, resource: &Name) {
        if !self.is_everything && !self.resources.contains(resource) {
            self.resources.push(resource.clone());
        }
    }

    pub(super) fn add_everything(&mut self) {
        self.is_everything = true;
        self.resources.clear();
    }

    fn contains(&self, resource: &Name) -> bool {
        self.is_everything || self.resources.contains(resource)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_everything && self.resources.is_empty()
    }
}

/// How a resource was shared out, by existing queue.
pub(super) struct Rounds {
    pub(super) claims: Vec<Claim>,
    pub(super) shares: Vec<i64>,
    pub(super) rounds: Vec<Round>,
}

impl Queues {
    /// Works out the shares that may have changed. Returns whether one has.
    pub(super) fn settle(&mut self) -> bool {
        if !self.is_active() {
            return false;
        }
        let stale = std::mem::take(&mut self.stale);
        let resources = if stale.is_everything { self.resources() } else { stale.resources };
        let mut has_changed = false;
        for resource in &resources {
            has_changed |= self.share_out(resource);
        }
        if stale.is_everything {
            has_changed |= self.forget_missing();
        }
        has_changed
    }

    /// Returns the resources that queues request or have shares of, sorted.
    pub(super) fn resources(&self) -> Vec<Name> {
        let tenants = self.existing.iter().filter_map(|queue| self.tenants.get(queue));
        let named = tenants.flat_map(|tenant| tenant.sums.requested.iter().chain(tenant.deserved.iter()));
        let mut all: Vec<Name> = named.map(|(resource, _)| resource.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Takes back the shares of queues that do not exist any more.
    fn forget_missing(&mut self) -> bool {
        let is_missing = |(queue, _): &(&Name, &Arc<Tenant>)| !self.exists(queue);
        let missing = self.tenants.iter().filter(is_missing);
        let missing = missing.filter(|(_, tenant)| !tenant.deserved.is_empty());
        let missing: Vec<Name> = missing.map(|(queue, _)| queue.clone()).collect();
        for queue in &missing {
            if let Some(tenant) = self.tenants.get_mut(queue) {
                Arc::make_mut(tenant).deserved = Amounts::default();
            }
            self.forget_unused(queue);
        }
        !missing.is_empty()
    }

    fn forget_unused(&mut self, queue: &Name) {
        if self.tenants.get(queue).is_some_and(|tenant| **tenant == Tenant::default()) {
            self.tenants.remove(queue);
        }
    }

    /// Returns what each existing queue claims of a resource; `more` is what one of them requests beyond its pods.
    fn claims(&self, resource: &Name, more: Option<(&Name, i128)>) -> Vec<Claim> {
        let claim = |queue: &Name| {
            let requested = self.tenants.get(queue).map_or(0, |t| t.sums.requested.get(resource));
            let more = more.filter(|(of, _)| *of == queue).map_or(0, |(_, amount)| amount);
            let limit = self.capability(queue, resource).unwrap_or(i128::MAX);
            let request = clamp((requested + more).min(limit));
            Claim { weight: self.weight(queue), request, guaranteed: 0, lends: true }
        };
        self.existing.iter().map(claim).collect()
    }

    /// Returns what each existing queue claims of a resource, what it gets, and the rounds in which it does.
    pub(super) fn rounds(&self, resource: &Name) -> Rounds {
        let claims = self.claims(resource, None);
        let mut rounds = Vec::new();
        let shares = fill_in_rounds(clamp(self.total.get(resource)), &claims, |round| rounds.push(round));
        Rounds { claims, shares, rounds }
    }

    /// Returns each existing queue's part of a resource by weight alone, as if all requested all of it.
    pub(super) fn parts(&self, resource: &Name) -> Vec<i64> {
        let claim = |queue: &Name| Claim {
            weight: self.weight(queue),
            request: i64::MAX,
            guaranteed: 0,
            lends: true,
        };
        let claims: Vec<Claim> = self.existing.iter().map(claim).collect();
        fill(clamp(self.total.get(resource)), &claims)
    }

    fn share_out(&mut self, resource: &Name) -> bool {
        let claims = self.claims(resource, None);
        let shares = fill(clamp(self.total.get(resource)), &claims);
        let mut has_changed = false;
        for (queue, share) in self.existing.clone().iter().zip(shares) {
            let known = self.tenants.get(queue).map_or(0, |tenant| tenant.deserved.get(resource));
            if known == i128::from(share) {
                continue;
            }
            has_changed = true;
            // A queue that deserves something requests it, so it is known; one that is not asked for any more is too.
            if let Some(tenant) = self.tenants.get_mut(queue) {
                Arc::make_mut(tenant).deserved.set(resource, share.into());
            }
            self.forget_unused(queue);
        }
        has_changed
    }

    /// Returns what a queue deserves of a resource when a pod asks for `amount` of it.
    ///
    /// A pending pod counts in the queue's request already; one that people only ask about does not. The queue has no
    /// other request open then, since otherwise its share does not depend on one pod more.
    pub(super) fn deserved_with(&self, queue: &Name, resource: &Name, amount: i128) -> i128 {
        let tenant = self.tenants.get(queue);
        let is_open = |t: &Arc<Tenant>| t.sums.requested.get(resource) > t.sums.allocated.get(resource);
        let is_open = tenant.is_some_and(is_open);
        if let Some(tenant) = tenant.filter(|_| is_open && !self.stale.contains(resource)) {
            return tenant.deserved.get(resource);
        }
        let claims = self.claims(resource, (!is_open).then_some((queue, amount)));
        let shares = fill(clamp(self.total.get(resource)), &claims);
        let at = self.existing.binary_search(queue).ok();
        at.and_then(|at| shares.get(at)).map_or(0, |share| i128::from(*share))
    }
}
