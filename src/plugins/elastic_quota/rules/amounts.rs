//! Rules about amounts: of one quota, and of a quota, its parent and its children.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::elastic_quota::QuotaProblem;
use pellucid_model::Name;

use super::{Known, amount, annotation, parent_of, problem_of, text};
use crate::quota::{Amounts, ElasticQuota};

/// Judges the amounts of one quota: signs, min against max, max against what is used.
pub(super) fn own(quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    let none = Amounts::new();
    let weight = quota.shared_weight.as_ref().unwrap_or(&none);
    let weight_field = annotation(keys::SHARED_WEIGHT);
    for (field, list) in [("spec.max", &quota.max), ("spec.min", &quota.min), (&*weight_field, weight)] {
        for (name, _) in list.iter().filter(|(_, amount)| **amount < 0) {
            let problem = "it is below 0, which counts as 0".to_owned();
            all.push(problem_of(quota, &format!("{field}.{name}"), text(list, name), problem));
        }
    }
    for (name, min) in &quota.min {
        let problem = match quota.max.get(name) {
            None => "max does not have the resource, so it does not count".to_owned(),
            Some(max) if max < min => {
                format!("it is above max, {}, which limits requests", text(&quota.max, name))
            }
            Some(_) => continue,
        };
        all.push(problem_of(quota, &format!("spec.min.{name}"), text(&quota.min, name), problem));
    }
    for name in &quota.max_strict_check_resource_keys {
        let (max, used) = (quota.max.get(name), quota.written.used.get(name).copied().unwrap_or(0));
        if max.is_some_and(|max| *max < used) {
            let problem = format!("it is below what is used, {}", amount(name, used));
            all.push(problem_of(quota, &format!("spec.max.{name}"), text(&quota.max, name), problem));
        }
    }
    all
}

/// Judges a quota below its parent, and the mins of its children together. Over all quotas each contradiction is found
/// once.
pub(super) fn below_parent(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    if let Some(parent) = known.parent(quota) {
        all.extend(resources(known, quota, parent, quota));
        if !is_free(quota) {
            all.extend(guarantees(known, quota, parent));
        }
    }
    if !quota.allows_force_update {
        all.extend(sum_of_mins(known, quota, quota, None));
    }
    all
}

/// Judges what a written quota brings about at others: the sum of mins below its parent, and its children's resources.
pub(super) fn at_relatives(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    if let Some(parent) = known.parent(quota).filter(|_| !is_free(quota)) {
        all.extend(sum_of_mins(known, quota, parent, Some(quota)));
    }
    for child in known.children(&quota.name, quota) {
        all.extend(resources(known, child, quota, quota));
    }
    all
}

/// Returns whether the mins above a quota do not bind it.
fn is_free(quota: &ElasticQuota) -> bool {
    quota.is_tree_root || quota.allows_force_update
}

/// Judges whether a child has the resources that its parent allows. `judged` is the one of both that is written.
fn resources(
    known: &Known<'_>,
    child: &ElasticQuota,
    parent: &ElasticQuota,
    judged: &ElasticQuota,
) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    let relation = |other: &ElasticQuota| match std::ptr::eq(child, judged) {
        true => format!("its parent {}", other.name),
        false => format!("its child {}", child.name),
    };
    let mut refuse = |field: &str, list: &Amounts, name: &Name, verb: &str| {
        let problem = format!("{} {verb}", relation(parent));
        all.push(problem_of(judged, &format!("{field}.{name}"), text(list, name), problem));
    };
    let is_child = std::ptr::eq(child, judged);
    for (name, amount) in child.max.iter().filter(|(name, _)| !parent.max.contains_key(*name)) {
        match is_child {
            true => refuse("spec.max", &child.max, name, "has no max for the resource"),
            false => {
                let verb = format!("has a max for the resource, {}", super::amount(name, *amount));
                refuse("spec.max", &parent.max, name, &verb);
            }
        }
    }
    let missing = parent.max.keys().filter(|name| !child.max.contains_key(*name));
    for name in missing.filter(|_| !known.gates.enable_update_resource_key) {
        let (list, verb) = match is_child {
            true => (&child.max, format!("has a max for the resource, {}", text(&parent.max, name))),
            false => (&parent.max, "has no max for the resource".to_owned()),
        };
        refuse("spec.max", list, name, &verb);
    }
    for (name, amount) in child.min.iter().filter(|(name, _)| !parent.min.contains_key(*name)) {
        match is_child {
            true => refuse("spec.min", &child.min, name, "has no min for the resource"),
            false => {
                let verb = format!("has a min for the resource, {}", super::amount(name, *amount));
                refuse("spec.min", &parent.min, name, &verb);
            }
        }
    }
    all
}

/// Judges the sum of the mins of a parent's children, `with` one of them as it is written. The children of the root are
/// bounded by the cluster, which is not judged here.
fn sum_of_mins(
    known: &Known<'_>,
    judged: &ElasticQuota,
    parent: &ElasticQuota,
    with: Option<&ElasticQuota>,
) -> Vec<QuotaProblem> {
    let others = known.children(&parent.name, judged).filter(|child| !child.is_tree_root);
    let children: Vec<&ElasticQuota> = others.chain(with).collect();
    let mut all = Vec::new();
    for (name, min) in &parent.min {
        let mins = children.iter().filter_map(|child| child.min.get(name));
        let sum: i128 = mins.map(|min| i128::from((*min).max(0))).sum();
        // An own min of 0 makes no sum too large.
        let is_part = with.is_none_or(|child| child.min.get(name).is_some_and(|own| *own > 0));
        if sum <= i128::from((*min).max(0)) || !is_part {
            continue;
        }
        let sum = amount(name, i64::try_from(sum).unwrap_or(i64::MAX));
        let problem = match with {
            Some(_) => format!(
                "the mins of the children of {} add up to {sum}, more than its min, {}",
                parent.name,
                text(&parent.min, name)
            ),
            None => format!("the mins of its children add up to {sum}"),
        };
        all.push(problem_of(judged, &format!("spec.min.{name}"), text(&judged.min, name), problem));
    }
    all
}

/// Judges what a quota and its siblings are guaranteed, up to the first quota of the tree: what the children of a quota are
/// guaranteed together it must be able to give, which is at most its max. Guaranteed is the greater of min and the
/// annotation that the scheduler writes.
fn guarantees(known: &Known<'_>, quota: &ElasticQuota, parent: &ElasticQuota) -> Vec<QuotaProblem> {
    let guaranteed = |of: &ElasticQuota, name: &Name| {
        let written = of.guaranteed().get(name).copied().unwrap_or(0);
        i128::from(written.max(of.min.get(name).copied().unwrap_or(0)))
    };
    let mut all = Vec::new();
    for (name, min) in quota.min.iter().filter(|(_, min)| **min > 0) {
        let (mut child, mut above) = (quota, Some(parent));
        let mut needed = i128::from(*min).max(guaranteed(quota, name));
        // A circle of parents is no longer than there are quotas.
        for _ in 0..known.quotas.len() {
            let Some(parent) = above else { break };
            needed += known.children(&parent.name, child).map(|other| guaranteed(other, name)).sum::<i128>();
            let Some(max) = parent.max.get(name) else { break };
            if needed > i128::from(*max) {
                let problem = format!(
                    "the children of {} would be guaranteed {}, more than its max, {}",
                    parent.name,
                    amount(name, i64::try_from(needed).unwrap_or(i64::MAX)),
                    text(&parent.max, name)
                );
                all.push(problem_of(quota, &format!("spec.min.{name}"), text(&quota.min, name), problem));
                break;
            }
            needed = needed.max(guaranteed(parent, name));
            child = parent;
            above = if parent.is_tree_root { None } else { parent_of(parent).and_then(|up| known.find(up)) };
        }
    }
    all
}
