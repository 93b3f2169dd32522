//! Overuse: pods are evicted from a quota that uses more than its runtime for too long, until it is within it again.
//!
//! A quota is over when others take back what it borrowed. After `delayEvictTime` without a break its least important
//! pods go: the lowest priority first, then the latest start. Only pods that use something of what is too much are
//! looked at, and one that can stay in the end stays. Pods that are not preemptible, pods whose PodDisruptionBudget allows
//! no more, and pods on their way out are left alone; what the latter use counts as free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid_framework::post_filter::Budgets;
use pellucid_model::effect::{ObjectWrite, PodRef};
use pellucid_model::object::{Budget, Object};
use pellucid_model::{Name, Now};

use super::quotas::{Charge, Counted, Quotas};
use super::tree::{QuotaIdx, Role, SYSTEM};

/// Reason of the condition that evicted pods get.
pub(super) const REASON: &str = "ElasticQuotaOveruse";

/// What is known of quotas that are over.
#[derive(Clone, Debug, Default)]
pub(super) struct Overuse {
    /// Since when each quota is over, or since its last eviction, on the monotonic clock.
    since: BTreeMap<Name, Duration>,
    /// Quotas that were over for long enough.
    triggered: BTreeSet<Name>,
    /// uids of pods whose eviction was ordered.
    pub(super) ordered: BTreeSet<Arc<str>>,
    /// All PodDisruptionBudgets, by namespace and name.
    budgets: Arc<BTreeMap<(Name, Name), Budget>>,
    /// Whether something has changed since the last look.
    has_news: bool,
    next_look: Duration,
}

impl Overuse {
    /// Notes that amounts have changed.
    pub(super) fn note(&mut self) {
        self.has_news = true;
    }

    /// Takes over a changed PodDisruptionBudget; other objects are none of its business.
    pub(super) fn change_budget(&mut self, old: Option<&Object>, new: Option<&Object>) {
        if let Some(Object::PodDisruptionBudget(budget)) = new {
            let key = (budget.namespace.clone(), budget.name.clone());
            Arc::make_mut(&mut self.budgets).insert(key, budget.clone());
        } else if let Some(Object::PodDisruptionBudget(budget)) = old {
            Arc::make_mut(&mut self.budgets).remove(&(budget.namespace.clone(), budget.name.clone()));
        }
    }

    /// Returns when quotas are looked at again.
    pub(super) fn deadline(&self) -> Option<Duration> {
        (self.has_news || !self.since.is_empty()).then_some(self.next_look)
    }

    /// Returns since when a quota is over, on the monotonic clock.
    pub(super) fn since(&self, name: &Name) -> Option<Duration> {
        self.since.get(name).copied()
    }
}

/// Who would be evicted from a quota.
pub(super) struct Revocable {
    /// The pods that go, the least important first.
    pub(super) going: Vec<Arc<Counted>>,
    /// Pods that are less important than some that go, each with the budget that keeps it.
    pub(super) held_back: Vec<(Arc<Counted>, Name)>,
}

impl Quotas {
    /// Whether overuse is watched.
    pub(super) fn monitors(&self) -> bool {
        self.args.monitors_all && self.args.limits_runtime
    }

    /// Looks for quotas that are over, if it is time.
    pub(super) fn look_for_overuse(&mut self, now: Now) {
        if !self.monitors() || self.overuse.deadline().is_none_or(|at| at > now.monotonic) {
            return;
        }
        self.overuse.has_news = false;
        self.overuse.next_look = now.monotonic + self.args.revoke_interval;
        let mut over: BTreeMap<Name, Duration> = BTreeMap::new();
        for at in SYSTEM + 1..self.tree.quotas.len() {
            let quota = self.tree.get(at);
            if quota.role == Role::Root || self.excess(at).is_empty() {
                continue;
            }
            let mut since = self.overuse.since(&quota.name).unwrap_or(now.monotonic);
            if now.monotonic.saturating_sub(since) > self.args.delay_evict {
                self.overuse.triggered.insert(quota.name.clone());
                since = now.monotonic;
            }
            over.insert(quota.name.clone(), since);
        }
        let triggered = &mut self.overuse.triggered;
        triggered.retain(|name| over.contains_key(name));
        self.overuse.since = over;
        if !self.overuse.ordered.is_empty() {
            let counted: BTreeSet<&Arc<str>> =
                self.pods.iter().flatten().map(|counted| &counted.uid).collect();
            self.overuse.ordered.retain(|uid| counted.contains(uid));
        }
    }

    /// Returns by how much a quota uses more than it may, by resource.
    pub(super) fn excess(&self, at: QuotaIdx) -> Vec<(usize, i128)> {
        let cells = self.tree.get(at).cells.iter().enumerate().filter(|(_, cell)| cell.max.is_some());
        let over = cells.map(|(r, cell)| (r, cell.all.used - i128::from(self.limit(&self.args, at, r))));
        over.filter(|(_, amount)| *amount > 0).collect()
    }

    /// Returns the evictions that are due.
    pub(super) fn due_evictions(&mut self) -> Vec<ObjectWrite> {
        let mut all = Vec::new();
        for name in std::mem::take(&mut self.overuse.triggered) {
            let Some(at) = self.tree.find(&name) else { continue };
            let message: Arc<str> = format!(
                "quota {name} used more than its runtime for longer than {:?}",
                self.args.delay_evict
            )
            .into();
            for counted in self.revocable(at).going {
                self.overuse.ordered.insert(counted.uid.clone());
                let pod = PodRef { key: counted.key.clone(), uid: counted.uid.clone() };
                all.push(ObjectWrite::Evict { pod, reason: REASON, message: message.clone() });
            }
        }
        all
    }

    /// Returns the pods that would be evicted from a quota now.
    pub(super) fn revocable(&self, at: QuotaIdx) -> Revocable {
        let mut budgets = Budgets::of(self.overuse.budgets.values());
        let mut held_back = Vec::new();
        let mut excess = self.excess(at);
        let below: BTreeSet<QuotaIdx> = self.below(at);
        let mut pods: Vec<(&Arc<Counted>, &Charge)> = Vec::new();
        for counted in self.pods.iter().flatten() {
            let Some(charge) = counted.used().filter(|charge| below.contains(&charge.quota)) else {
                continue;
            };
            match counted.is_deleting || self.overuse.ordered.contains(&counted.uid) {
                true => {
                    if !counted.is_deleting {
                        budgets.take(&counted.key, &counted.labels);
                    }
                    self.take_off(&mut excess, charge, 1);
                }
                false if charge.is_fixed || counted.is_stand_in => {}
                false => pods.push((counted, charge)),
            }
        }
        let is_over = |excess: &[(usize, i128)]| excess.iter().any(|(_, amount)| *amount > 0);
        pods.sort_by_key(|(counted, _)| {
            (counted.priority, Reverse(counted.started.unwrap_or(i64::MAX)), Reverse(counted.key.clone()))
        });
        let mut taken: Vec<(&Arc<Counted>, &Charge)> = Vec::new();
        for (counted, charge) in pods {
            if !is_over(&excess) {
                break;
            }
            let helps = |(r, over): &(usize, i128)| *over > 0 && self.uses(charge, *r) > 0;
            if excess.iter().any(helps) {
                if let Some(budget) = budgets.exceeded_by(&counted.key, &counted.labels) {
                    held_back.push((counted.clone(), budget.name.clone()));
                    continue;
                }
                budgets.take(&counted.key, &counted.labels);
                self.take_off(&mut excess, charge, 1);
                taken.push((counted, charge));
            }
        }
        if is_over(&excess) {
            let going = taken.into_iter().map(|(counted, _)| counted.clone()).collect();
            return Revocable { going, held_back };
        }
        // From the most important one back, each that can stay stays.
        let mut going = Vec::new();
        for (counted, charge) in taken.into_iter().rev() {
            self.take_off(&mut excess, charge, -1);
            if is_over(&excess) {
                self.take_off(&mut excess, charge, 1);
                going.push(counted.clone());
            }
        }
        going.reverse();
        Revocable { going, held_back }
    }

    /// Returns a quota and all below it.
    pub(super) fn below(&self, at: QuotaIdx) -> BTreeSet<QuotaIdx> {
        let mut all = BTreeSet::from([at]);
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            let children = self.tree.get(at).children.iter().copied();
            open.extend(children.filter(|child| all.insert(*child)));
        }
        all
    }

    pub(super) fn uses(&self, charge: &Charge, r: usize) -> i128 {
        let counts = self.tree.get(charge.quota).cells[r].max.is_some();
        if counts { i128::from(charge.list().amount(&self.tree.resources[r])) } else { 0 }
    }

    fn take_off(&self, excess: &mut [(usize, i128)], charge: &Charge, times: i128) {
        for (r, amount) in excess {
            *amount -= times * self.uses(charge, *r);
        }
    }
}
