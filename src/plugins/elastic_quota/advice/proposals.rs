//! Changes that could make a quota take a pod that it refuses: other amounts of quotas, another quota, pods that end, a
//! smaller request.
//!
//! Each is worked out on a copy of the tree, and a changed quota obeys the rules of the webhook. Whether the pod then has
//! a place is not known here: the core plans each proposal before anybody is told of it.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_framework::advice::{Change, Proposal};
use pellucid_model::quantity::{format_amount, format_milli};
use pellucid_model::{CustomKindRef, CustomObject, PodSpec};
use serde_json::{Map, Value, json};

use super::super::ELASTIC_QUOTA;
use super::super::accounting::Part;
use super::super::admission::Lack;
use super::super::args::QuotaArgs;
use super::super::quota::ElasticQuota;
use super::super::quotas::{Charge, Counted, Quotas};
use super::super::rules::{self, Gates, Known};
use super::super::tree::{QuotaIdx, Role, set_amounts};
use super::standing::Blocked;

/// Costs of changes, in the points of docs/diagnostics.md.
const MOVE: u32 = 30;
const RAISE_MAX: u32 = 35;
const RAISE_MIN: u32 = 38;
/// Number of quotas of which changes are tried, from the one that refuses upwards.
const MOST_LEVELS: usize = 4;
/// Number of quotas that are tried for the pod to move to, and number that are proposed.
const MOST_TRIED: usize = 16;
const MOST_MOVES: usize = 2;
/// Largest number of pods that are proposed to end.
const MOST_ENDING: usize = 8;
/// Number of pods of which those that end are chosen, the least important ones.
const MOST_CANDIDATES: usize = 1_000;

/// Which amounts of a quota are raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raise {
    Max,
    Min,
    Both,
}

/// A refused pod, and by what it is refused.
struct Refused<'a> {
    quotas: &'a Quotas,
    args: &'a QuotaArgs,
    spec: &'a PodSpec,
    own: QuotaIdx,
    lack: Lack,
    blocked: Vec<Blocked>,
}

impl Quotas {
    /// Returns changes with which the quota of a refused pod would take it.
    pub(super) fn proposals(&self, args: &QuotaArgs, spec: &PodSpec) -> Vec<Proposal> {
        let Some(lack) = self.lack(args, spec) else { return Vec::new() };
        let (own, blocked) = (self.quota_of(spec), self.blocked(args, spec, lack));
        let refused = Refused { quotas: self, args, spec, own, lack, blocked };
        let mut all = refused.raises();
        all.extend(refused.moves());
        all.extend(refused.ends_of_borrowers());
        all.extend(refused.ends_below(lack.quota));
        all.extend(refused.smaller());
        all
    }

    /// Works out all sums and shares anew.
    fn resettled(&mut self) {
        self.tree.add_up();
        self.tree.refresh(&self.totals, self.args.scales_min);
    }
}

impl Refused<'_> {
    /// Returns raised amounts of the quota that refuses, or of one above it that keeps it from more.
    fn raises(&self) -> Vec<Proposal> {
        let mut all = Vec::new();
        for at in self.quotas.tree.upwards(self.lack.quota).take(MOST_LEVELS) {
            let alone = [Raise::Max, Raise::Min].into_iter().filter_map(|raise| self.raised(at, raise));
            let mut found: Vec<Proposal> = alone.collect();
            if found.is_empty() {
                found.extend(self.raised(at, Raise::Both));
            }
            all.extend(found);
        }
        all
    }

    /// Returns a quota with its amounts raised by the least that makes room for the pod.
    fn raised(&self, at: QuotaIdx, raise: Raise) -> Option<Proposal> {
        let quota = self.quotas.tree.get(at);
        let old = quota.object.as_ref().filter(|_| quota.role == Role::Ordinary)?;
        let mut new = ElasticQuota::clone(old);
        for blocked in &self.blocked {
            self.raise(at, &mut new, raise, blocked)?;
        }
        if !self.fits_with(at, &new) || new == **old {
            return None;
        }
        let all = self.quotas.objects.quotas().map(|object| &*object.quota);
        let known = Known::new(all, &|_| Vec::new(), Gates::default());
        if !rules::update(&known, old, &new).is_empty() {
            return None;
        }
        let cost = if raise == Raise::Max { RAISE_MAX } else { RAISE_MIN };
        Some(proposal_of(old, new, cost))
    }

    /// Raises the amounts of one resource. Returns `None` when no amount is enough.
    fn raise(&self, at: QuotaIdx, new: &mut ElasticQuota, raise: Raise, of: &Blocked) -> Option<()> {
        let resource = self.quotas.tree.resources[of.r].clone();
        let quota = self.quotas.tree.get(at);
        let (max, min) = (*new.max.get(&resource)?, new.min.get(&resource).copied());
        // What is asked for is enough: nothing is shared out beyond it. In the quota that refuses, max must be enough.
        let asked = quota.cells[of.r].request(self.quotas.tree.lends(quota));
        let needed = of.used.checked_add(of.requested)?;
        let enough = asked.max(needed);
        if raise != Raise::Min {
            let least = if at == self.lack.quota { needed } else { max.checked_add(1)? };
            let found = match raise {
                Raise::Both => Some(needed.max(max)),
                _ => self.least(at, new, of, (least.max(max.checked_add(1)?), enough), |quota, amount| {
                    quota.max.insert(resource.clone(), amount);
                }),
            };
            new.max.insert(resource.clone(), found?);
        }
        if raise != Raise::Max {
            let most = enough.min(*new.max.get(&resource)?);
            let from = min.unwrap_or(0).checked_add(1)?;
            let found = self.least(at, new, of, (from, most), |quota, amount| {
                quota.min.insert(resource.clone(), amount);
            });
            new.min.insert(resource, found?);
        }
        Some(())
    }

    /// Returns the least amount between two with which one resource is enough, by halving: more is never worse.
    fn least(
        &self,
        at: QuotaIdx,
        of: &ElasticQuota,
        blocked: &Blocked,
        (from, to): (i64, i64),
        set: impl Fn(&mut ElasticQuota, i64),
    ) -> Option<i64> {
        let is_enough = |amount: i64| {
            let mut quota = of.clone();
            set(&mut quota, amount);
            let with = self.with(at, &quota);
            let cell = &with.tree.get(self.lack.quota).cells[blocked.r];
            let limit = match self.lack.is_fixed {
                true => cell.min.unwrap_or(i64::MAX),
                false => with.limit(self.args, self.lack.quota, blocked.r),
            };
            blocked.used.saturating_add(blocked.requested) <= limit
        };
        if from > to || !is_enough(to) {
            return None;
        }
        let (mut short, mut enough) = (from.saturating_sub(1), to);
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if is_enough(middle) { enough = middle } else { short = middle }
        }
        Some(enough)
    }

    /// Returns the quotas with another object in place of one.
    fn with(&self, at: QuotaIdx, object: &ElasticQuota) -> Quotas {
        let mut quotas = self.quotas.clone();
        let resources = quotas.tree.resources.clone();
        set_amounts(&mut quotas.tree.get_mut(at).cells, &resources, object);
        quotas.resettled();
        quotas
    }

    fn fits_with(&self, at: QuotaIdx, object: &ElasticQuota) -> bool {
        self.with(at, object).lack(self.args, self.spec).is_none()
    }

    /// Returns other quotas that would take the pod, those with the most room within their mins first.
    fn moves(&self) -> Vec<Proposal> {
        let tree = &self.quotas.tree;
        let room = |at: QuotaIdx| {
            let asked = self.quotas.asked(at, self.spec);
            let left = asked.map(|(r, amount)| {
                let (cell, amount) = (&tree.get(at).cells[r], i128::from(amount));
                let left = |of: i64| (i128::from(of) - cell.all.used - amount) * 1000 / amount;
                (left(cell.max.unwrap_or(0)), left(cell.floor()))
            });
            left.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).filter(|(max, _)| *max >= 0).map(|(_, min)| min)
        };
        let takes_pods = |at: &QuotaIdx| {
            let quota = tree.get(*at);
            let is_parent = quota.object.as_ref().is_none_or(|object| object.is_parent);
            *at != self.own && quota.role == Role::Ordinary && quota.children.is_empty() && !is_parent
        };
        let mut others: Vec<(Reverse<i128>, QuotaIdx)> = (0..tree.quotas.len())
            .filter(takes_pods)
            .filter_map(|at| room(at).map(|room| (Reverse(room), at)))
            .collect();
        others.sort_by(|a, b| (a.0, &tree.get(a.1).name).cmp(&(b.0, &tree.get(b.1).name)));
        let others = others.into_iter().take(MOST_TRIED).filter(|(_, at)| self.takes_it(*at));
        others.take(MOST_MOVES).map(|(_, at)| self.moved_to(at)).collect()
    }

    /// Returns whether a quota takes the pod if the pod belongs to it.
    fn takes_it(&self, at: QuotaIdx) -> bool {
        let mut quotas = self.quotas.clone();
        let is_fixed = quotas.is_fixed(self.spec);
        let list = &self.spec.requests.list;
        quotas.tree.count(self.own, list, is_fixed, Part::Request, -1);
        quotas.tree.count(at, list, is_fixed, Part::Request, 1);
        quotas.resettled();
        quotas.lack_in(self.args, at, self.spec).is_none()
    }

    fn moved_to(&self, at: QuotaIdx) -> Proposal {
        let name = self.quotas.tree.get(at).name.clone();
        Proposal {
            text: format!("move it to quota {name}"),
            change: Change::Label { key: keys::NAME.into(), value: name },
            cost: MOVE,
        }
    }

    /// Returns pods of the quotas that borrow what the pod lacks, so that the runtime is enough once they have ended.
    fn ends_of_borrowers(&self) -> Option<Proposal> {
        if self.lack.is_fixed {
            return None;
        }
        let quotas = self.quotas;
        let mut borrowers: Vec<QuotaIdx> = Vec::new();
        for of in &self.blocked {
            let Some((limit, "share")) = quotas.limit_of(self.lack.quota, of.r) else { continue };
            let Some(parent) = quotas.tree.get(limit).parent else { continue };
            let loans = quotas.loans(parent, of.r);
            let children = quotas.tree.get(parent).children.iter().enumerate();
            borrowers
                .extend(children.filter(|(i, c)| **c != limit && loans.borrowed[*i] > 0).map(|(_, c)| *c));
        }
        let below: Vec<QuotaIdx> = borrowers.into_iter().flat_map(|at| quotas.below(at)).collect();
        self.ends(|charge| below.contains(&charge.quota))
    }

    /// Returns pods of a quota, so that what is left of it is enough once they have ended.
    fn ends_below(&self, at: QuotaIdx) -> Option<Proposal> {
        let below = self.quotas.below(at);
        self.ends(|charge| below.contains(&charge.quota))
    }

    /// Returns the fewest pods of some quotas whose end is enough, the least important ones.
    fn ends(&self, is_of: impl Fn(&Charge) -> bool) -> Option<Proposal> {
        let quotas = self.quotas;
        let helps = |charge: &Charge| self.blocked.iter().any(|of| quotas.uses(charge, of.r) > 0);
        let going = |counted: &&Arc<Counted>| {
            let used = counted.used().filter(|used| is_of(used) && helps(used));
            used.is_some_and(|used| used.is_fixed == self.lack.is_fixed)
                && !counted.is_deleting
                && !counted.is_stand_in
        };
        let mut pods: Vec<&Arc<Counted>> = quotas.pods.iter().flatten().filter(going).collect();
        pods.sort_by_key(|counted| {
            (counted.priority, Reverse(counted.started.unwrap_or(i64::MAX)), Reverse(counted.key.clone()))
        });
        pods.truncate(MOST_CANDIDATES);
        let n = (1..=pods.len().min(MOST_ENDING)).find(|n| self.fits_without(&pods[..*n]))?;
        let mut needed: Vec<&Arc<Counted>> = pods[..n].to_vec();
        // From the most important one back, each that can stay stays.
        for at in (0..needed.len()).rev() {
            let mut fewer = needed.clone();
            fewer.remove(at);
            if !fewer.is_empty() && self.fits_without(&fewer) {
                needed = fewer;
            }
        }
        let keys = needed.into_iter().map(|counted| counted.key.clone()).collect();
        Some(Proposal { change: Change::End(keys), text: String::new(), cost: 0 })
    }

    fn fits_without(&self, pods: &[&Arc<Counted>]) -> bool {
        let mut quotas = self.quotas.clone();
        for counted in pods {
            for part in [Part::Request, Part::Used] {
                if let Some(charge) = counted.of(part) {
                    quotas.tree.count(charge.quota, charge.list(), charge.is_fixed, part, -1);
                }
            }
        }
        quotas.resettled();
        quotas.lack(self.args, self.spec).is_none()
    }

    /// Returns the request that the quota takes as it is, if it is more than nothing of each resource.
    fn smaller(&self) -> Option<Proposal> {
        let left = |of: &Blocked| {
            let left = of.limit.saturating_sub(of.used);
            (left > 0).then(|| (self.quotas.tree.resources[of.r].clone(), left))
        };
        let amounts = self.blocked.iter().map(left).collect::<Option<Vec<_>>>()?;
        Some(Proposal { change: Change::Request(amounts), text: String::new(), cost: 0 })
    }
}

/// Writes an amount without rounding.
fn exact(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format_milli(amount) } else { amount.to_string() }
}

/// Makes the proposal to change a quota.
fn proposal_of(old: &ElasticQuota, mut new: ElasticQuota, cost: u32) -> Proposal {
    let (mut texts, mut spec) = (Vec::new(), Map::new());
    for (field, before, after) in [("max", &old.max, &new.max), ("min", &old.min, &new.min)] {
        let changed = after.iter().filter(|(name, amount)| before.get(*name) != Some(*amount));
        let mut fields = Map::new();
        for (name, amount) in changed {
            let from = before.get(name).map_or("none".to_owned(), |amount| format_amount(name, *amount));
            texts.push(format!("{field} of {name} from {from} to {}", format_amount(name, *amount)));
            fields.insert(name.to_string(), json!(exact(name, *amount)));
        }
        if !fields.is_empty() {
            spec.insert(field.to_owned(), Value::Object(fields));
        }
    }
    let patch = json!({"spec": spec});
    let (name, namespace) = (new.name.clone(), new.namespace.clone());
    let resource = format!("{}.{}", ELASTIC_QUOTA.plural, ELASTIC_QUOTA.group);
    let command = format!("kubectl -n {namespace} patch {resource} {name} --type=merge -p '{patch}'");
    // What the scheduler wrote is no part of the change.
    new.written = old.written.clone();
    let object = CustomObject {
        kind: CustomKindRef(&ELASTIC_QUOTA),
        namespace,
        name: name.clone(),
        uid: Arc::default(),
        resource_version: Arc::default(),
        value: Arc::new(new),
        pod: None,
    };
    Proposal {
        change: Change::Object { object: Arc::new(object), command },
        text: format!("raise {} of quota {name}", texts.join(" and ")),
        cost,
    }
}
