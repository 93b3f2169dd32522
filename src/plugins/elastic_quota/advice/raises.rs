//! Raised amounts that could make a quota take a pod: of the quota that refuses, of one above it that keeps it from more,
//! of both together where both limit, or of a built-in quota, which gets an object then.
//!
//! Each is worked out on a copy of the tree, in the least amounts that are enough, and obeys the rules of the webhook.

use std::sync::Arc;

use pellucid_framework::advice::{Change, NewObject, ObjectChange, Proposal};
use pellucid_model::quantity::{format_amount, format_milli};
use pellucid_model::{CustomKindRef, CustomObject};
use serde_json::{Map, Value, json};

use super::super::ELASTIC_QUOTA;
use super::super::quota::{Amounts, ElasticQuota};
use super::super::quotas::Quotas;
use super::super::rules::{self, Gates, Known};
use super::super::tree::{QuotaIdx, ROOT, Role, set_amounts};
use super::proposals::Refused;
use super::standing::Blocked;

/// Costs of changes, in the points of docs/diagnostics.md.
const RAISE_MAX: u32 = 35;
const RAISE_MIN: u32 = 38;
/// An amount is rounded up by at most one part in so many.
const MOST_ROUNDED: i64 = 500;
/// Number of quotas of which changes are tried, from the one that refuses upwards.
const MOST_LEVELS: usize = 4;

/// Which amounts of a quota are raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raise {
    Max,
    Min,
    Both,
}

impl Raise {
    const ALL: [Self; 3] = [Self::Max, Self::Min, Self::Both];

    fn cost(self) -> u32 {
        if self == Self::Max { RAISE_MAX } else { RAISE_MIN }
    }
}

/// Quotas as they would be, from the one that refuses upwards.
type Changed = Vec<(QuotaIdx, ElasticQuota)>;

impl Refused<'_> {
    /// Returns raised amounts of the quota that refuses, of one above it, or, if neither is enough, of several together.
    pub(super) fn raises(&self) -> Vec<Proposal> {
        let mut all = Vec::new();
        for at in self.quotas.tree.upwards(self.lack.quota).take(MOST_LEVELS) {
            let alone = [Raise::Max, Raise::Min].into_iter().filter_map(|raise| self.raised(at, raise));
            let mut found: Vec<Proposal> = alone.collect();
            if found.is_empty() {
                found.extend(self.raised(at, Raise::Both));
            }
            all.extend(found);
        }
        if all.is_empty() {
            all.extend(self.raised_together());
        }
        all.extend(self.built_in());
        all
    }

    /// Returns a quota with its amounts raised by the least that makes room for the pod.
    fn raised(&self, at: QuotaIdx, raise: Raise) -> Option<Proposal> {
        let old = self.object(at)?;
        let mut new = ElasticQuota::clone(old);
        for blocked in &self.blocked {
            self.raise(at, &mut new, raise, blocked)?;
        }
        let changed = vec![(at, new)];
        if !self.fits_with(&changed) || changed[0].1 == **old {
            return None;
        }
        self.proposal(changed, raise.cost())
    }

    /// Returns the object of a quota whose amounts can be raised.
    fn object(&self, at: QuotaIdx) -> Option<&Arc<ElasticQuota>> {
        let quota = self.quotas.tree.get(at);
        quota.object.as_ref().filter(|_| quota.role == Role::Ordinary)
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
            let from = if at == self.lack.quota { needed } else { max.checked_add(1)? };
            let from = from.max(max.checked_add(1)?);
            let found = match raise {
                Raise::Both => Some(needed.max(max)),
                _ => least(&resource, (from, enough), |amount| {
                    let mut quota = new.clone();
                    quota.max.insert(resource.clone(), amount);
                    self.takes(&self.with(&[(at, quota)]), of)
                }),
            };
            new.max.insert(resource.clone(), found?);
        }
        if raise != Raise::Max {
            let most = enough.min(*new.max.get(&resource)?);
            let from = min.unwrap_or(0).checked_add(1)?;
            let is_enough = |amount| {
                let mut quota = new.clone();
                quota.min.insert(resource.clone(), amount);
                self.takes(&self.with(&[(at, quota)]), of)
            };
            let found = least(&resource, (from, most), is_enough)?;
            new.min.insert(resource, found);
        }
        Some(())
    }

    /// Returns whether the quotas that refuse take what the pod requests of a resource.
    fn takes(&self, with: &Quotas, of: &Blocked) -> bool {
        let lacking = self.all.iter().flat_map(|(lack, blocked)| blocked.iter().map(move |of| (lack, of)));
        lacking.filter(|(_, other)| other.r == of.r).all(|(lack, of)| {
            let limit = match lack.is_fixed {
                true => with.tree.get(lack.quota).cells[of.r].min.unwrap_or(i64::MAX),
                false => with.limit(self.args, lack.quota, of.r),
            };
            of.used.saturating_add(of.requested) <= limit
        })
    }

    /// Returns the quotas with other objects in place of some.
    fn with(&self, changed: &[(QuotaIdx, ElasticQuota)]) -> Quotas {
        let mut quotas = self.quotas.clone();
        let resources = quotas.tree.resources.clone();
        for (at, object) in changed {
            set_amounts(&mut quotas.tree.get_mut(*at).cells, &resources, object);
        }
        quotas.resettled();
        quotas
    }

    fn fits_with(&self, changed: &[(QuotaIdx, ElasticQuota)]) -> bool {
        self.with(changed).lack(self.args, self.spec).is_none()
    }

    /// Returns the fewest quotas, from the one that refuses upwards, whose amounts are enough when they are raised together.
    fn raised_together(&self) -> Option<Proposal> {
        let path = self.quotas.tree.upwards(self.lack.quota).take(MOST_LEVELS);
        let path: Vec<QuotaIdx> = path.take_while(|at| self.object(*at).is_some()).collect();
        let tried = (2..=path.len()).flat_map(|n| Raise::ALL.map(|raise| (n, raise)));
        let mut found = tried.filter_map(|(n, raise)| self.raised_on(&path[..n], raise));
        found.next()
    }

    fn raised_on(&self, path: &[QuotaIdx], raise: Raise) -> Option<Proposal> {
        let objects = path.iter().map(|at| Some((*at, ElasticQuota::clone(self.object(*at)?))));
        let mut changed = objects.collect::<Option<Changed>>()?;
        for of in &self.blocked {
            if raise != Raise::Min {
                self.raise_maxes(&mut changed, of)?;
            }
            if raise != Raise::Max {
                self.raise_mins(&mut changed, of)?;
            }
        }
        if !self.fits_with(&changed) {
            return None;
        }
        if raise != Raise::Min {
            self.lower_maxes(&mut changed);
        }
        changed.retain(|(at, new)| self.object(*at).is_some_and(|old| **old != *new));
        (changed.len() > 1).then(|| self.proposal(changed, raise.cost()))?
    }

    /// Raises each max so that nothing below it is kept from what it requests.
    fn raise_maxes(&self, changed: &mut Changed, of: &Blocked) -> Option<()> {
        let resource = self.quotas.tree.resources[of.r].clone();
        for i in 0..changed.len() {
            let (at, with) = (changed[i].0, self.with(changed));
            let quota = with.tree.get(at);
            let cell = &quota.cells[of.r];
            let needed = i64::try_from(cell.all.used).ok()?.checked_add(of.requested)?;
            let enough = if i == 0 { needed } else { needed.max(cell.request(with.tree.lends(quota))) };
            let max = changed[i].1.max.get_mut(&resource)?;
            *max = enough.max(*max);
        }
        Some(())
    }

    /// Lowers each max again, from the top down, to the least that is enough beside the others.
    fn lower_maxes(&self, changed: &mut Changed) {
        for of in &self.blocked {
            let resource = &self.quotas.tree.resources[of.r];
            for i in (1..changed.len()).rev() {
                let old = self.object(changed[i].0).and_then(|object| object.max.get(resource)).copied();
                let (Some(old), Some(to)) = (old, changed[i].1.max.get(resource).copied()) else { continue };
                let from = changed[i].1.min.get(resource).copied().unwrap_or(0).max(old);
                let is_enough = |amount: i64| {
                    let mut changed = changed.clone();
                    changed[i].1.max.insert(resource.clone(), amount);
                    self.fits_with(&changed)
                };
                if let Some(found) = least(resource, (from, to), is_enough) {
                    changed[i].1.max.insert(resource.clone(), found);
                }
            }
        }
    }

    /// Raises the min of the quota that refuses to the least that is enough, and each min above to the sum of its children's.
    fn raise_mins(&self, changed: &mut Changed, of: &Blocked) -> Option<()> {
        let resource = self.quotas.tree.resources[of.r].clone();
        let old = changed.first()?.1.min.get(&resource).copied().unwrap_or(0);
        let with_min = |amount: i64| -> Option<Changed> {
            let mut with = changed.clone();
            with[0].1.min.insert(resource.clone(), amount);
            for i in 1..with.len() {
                let sum = self.sum_of_mins(&with, i, of.r)?;
                let min = with[i].1.min.get(&resource).copied().unwrap_or(0);
                with[i].1.min.insert(resource.clone(), min.max(sum));
            }
            Some(with)
        };
        let is_enough = |amount| with_min(amount).is_some_and(|with| self.takes(&self.with(&with), of));
        let most = of.used.checked_add(of.requested)?.min(*changed[0].1.max.get(&resource)?);
        let found = least(&resource, (old.checked_add(1)?, most), is_enough)?;
        let made = with_min(found)?;
        *changed = made;
        Some(())
    }

    /// Returns the sum of the mins of a changed quota's children, of which the one before it is changed too.
    fn sum_of_mins(&self, changed: &Changed, i: usize, r: usize) -> Option<i64> {
        let (tree, resource) = (&self.quotas.tree, &self.quotas.tree.resources[r]);
        let (below, object) = &changed[i - 1];
        let others = tree.get(changed[i].0).children.iter().filter(|child| *child != below);
        let own = object.min.get(resource).copied().unwrap_or(0);
        others.map(|child| tree.get(*child).cells[r].floor()).try_fold(own, i64::checked_add)
    }

    /// Makes the proposal of changed quotas, if the webhook takes them, those further up first.
    fn proposal(&self, changed: Changed, cost: u32) -> Option<Proposal> {
        let mut objects: Vec<&ElasticQuota> =
            self.quotas.objects.quotas().map(|object| &*object.quota).collect();
        let mut changes = Vec::new();
        for (at, new) in changed.iter().rev() {
            let old = self.object(*at)?;
            let known = Known::new(objects.iter().copied(), &|_| Vec::new(), Gates::default());
            if !rules::update(&known, old, new).is_empty() {
                return None;
            }
            objects.retain(|known| (&known.name, &known.namespace) != (&new.name, &new.namespace));
            objects.push(new);
            changes.push(change_of(old, new));
        }
        Some(Proposal { change: Change::Objects(changes), text: String::new(), cost })
    }

    /// Returns the object of a built-in quota that has none, with the max that makes room for the pod.
    fn built_in(&self) -> Option<Proposal> {
        let quota = self.quotas.tree.get(self.lack.quota);
        if quota.role != Role::BuiltIn || quota.object.is_some() {
            return None;
        }
        let maxes = self.maxes(self.lack.quota);
        let mut new = ElasticQuota {
            name: quota.name.clone(),
            namespace: self.quotas.args.namespace.clone(),
            parent: Some(self.quotas.tree.get(ROOT).name.clone()),
            lends: true,
            max: maxes.clone(),
            ..ElasticQuota::default()
        };
        for of in &self.blocked {
            let max = new.max.get_mut(&self.quotas.tree.resources[of.r])?;
            *max = of.used.checked_add(of.requested)?.max(*max);
        }
        let changed = [(self.lack.quota, new)];
        if !self.fits_with(&changed) {
            return None;
        }
        let [(_, new)] = changed;
        let old = ElasticQuota { max: maxes, ..new.clone() };
        let mut change = change_of(&old, &new);
        let mut manifest = new.manifest();
        manifest["apiVersion"] = json!(format!("{}/{}", ELASTIC_QUOTA.group, ELASTIC_QUOTA.version));
        manifest["kind"] = json!(ELASTIC_QUOTA.kind);
        change.command = format!("echo '{manifest}' | kubectl create -f -");
        Some(Proposal { change: Change::Objects(vec![change]), text: String::new(), cost: RAISE_MAX })
    }

    fn maxes(&self, at: QuotaIdx) -> Amounts {
        let cells = self.quotas.tree.get(at).cells.iter().zip(self.quotas.tree.resources.iter());
        cells.filter_map(|(cell, name)| Some((name.clone(), cell.max?))).collect()
    }
}

/// Returns the least amount of a resource between two that is enough, by halving: more is never worse. Where shares were
/// rounded, it may lie just below a round amount, which is taken then.
fn least(resource: &str, (from, to): (i64, i64), is_enough: impl Fn(i64) -> bool) -> Option<i64> {
    if from > to || !is_enough(to) {
        return None;
    }
    let (mut short, mut enough) = (from.saturating_sub(1), to);
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if is_enough(middle) { enough = middle } else { short = middle }
    }
    let step = if resource == "cpu" { 1000 } else { 1 << 20 };
    let round = enough.checked_add((step - enough.rem_euclid(step)) % step)?;
    Some(if round <= to && round - enough <= enough / MOST_ROUNDED { round } else { enough })
}

/// Writes an amount without rounding.
fn exact(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format_milli(amount) } else { amount.to_string() }
}

/// Makes the change of a quota.
fn change_of(old: &ElasticQuota, new: &ElasticQuota) -> ObjectChange {
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
    let object = CustomObject {
        kind: CustomKindRef(&ELASTIC_QUOTA),
        namespace,
        name: name.clone(),
        uid: Arc::default(),
        resource_version: Arc::default(),
        // What the scheduler wrote is no part of the change.
        value: Arc::new(ElasticQuota { written: old.written.clone(), ..new.clone() }),
        pod: None,
    };
    let text = format!("raise {} of quota {name}", texts.join(" and "));
    ObjectChange { object: NewObject::Custom(Arc::new(object)), text, command }
}
