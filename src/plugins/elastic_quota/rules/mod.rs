//! The admission rules of quotas: what may be written, and what is filled in.
//!
//! Pure functions over the quotas that exist and their pods. The webhook asks them before an object is stored
//! ([`create`], [`update`], [`delete`], [`defaults`](defaulting::defaults), [`pods`]); the scheduler asks [`standing`] about
//! objects that are stored already, so what slipped past the webhook shows as a problem of its quota. Every refusal names
//! the quota, the key and the numbers that contradict each other.
//!
//! `amounts` compares amounts, `places` the place in the tree, `defaulting` fills in, `pods` has the rules of pods.

mod amounts;
pub mod defaulting;
mod places;
pub mod pods;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::elastic_quota::QuotaProblem;
use pellucid_model::Name;
use serde_json::Value;

use super::quota::{Amounts, ElasticQuota, resource_list};

/// Settings of the rules, named after Koordinator's feature gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// `ElasticQuotaEnableUpdateResourceKey`: a quota may have a max for some of its parent's resources only.
    pub enable_update_resource_key: bool,
    /// `SupportParentQuotaSubmitPod`: pods may name a quota that has children.
    pub support_parent_quota_submit_pod: bool,
}

/// Returns the names of up to two pods of a quota, each with its namespace.
pub type PodsOf<'a> = &'a dyn Fn(&str) -> Vec<String>;

/// What exists when a rule is asked.
pub struct Known<'a> {
    /// All objects, by name and namespace.
    quotas: BTreeMap<(&'a str, &'a str), &'a ElasticQuota>,
    children: BTreeMap<&'a str, Vec<&'a ElasticQuota>>,
    /// The quotas that each namespace is bound to.
    bound: BTreeMap<&'a str, Vec<&'a ElasticQuota>>,
    pods: PodsOf<'a>,
    gates: Gates,
}

impl<'a> Known<'a> {
    /// Indexes the quotas that exist.
    pub fn new(quotas: impl IntoIterator<Item = &'a ElasticQuota>, pods: PodsOf<'a>, gates: Gates) -> Self {
        let mut known =
            Self { quotas: BTreeMap::new(), children: BTreeMap::new(), bound: BTreeMap::new(), pods, gates };
        for quota in quotas {
            known.quotas.insert((quota.name.as_str(), quota.namespace.as_str()), quota);
            if let Some(parent) = parent_of(quota) {
                known.children.entry(parent).or_default().push(quota);
            }
            for namespace in &quota.namespaces {
                known.bound.entry(namespace).or_default().push(quota);
            }
        }
        known
    }

    /// Returns the quota that counts under a name: the one that was created first.
    fn find(&self, name: &str) -> Option<&'a ElasticQuota> {
        let same = self.quotas.range((name, "")..).take_while(|((of, _), _)| *of == name);
        same.map(|(_, quota)| *quota).min_by_key(|quota| quota.created)
    }

    /// Iterates over the children of a quota without one that is judged.
    fn children(&self, parent: &str, judged: &ElasticQuota) -> impl Iterator<Item = &'a ElasticQuota> {
        let name = judged.name.clone();
        self.children.get(parent).into_iter().flatten().copied().filter(move |child| child.name != name)
    }

    /// Returns the parent of a quota, `None` for a child of the root or when there is none of that name.
    fn parent(&self, quota: &ElasticQuota) -> Option<&'a ElasticQuota> {
        parent_of(quota).and_then(|name| self.find(name))
    }
}

/// Judges a quota that is to be created. No problem, and it may be.
pub fn create(known: &Known<'_>, new: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = unreadable(new);
    all.extend(places::namesake(known, new));
    all.extend(standing(known, new));
    all.extend(amounts::at_relatives(known, new));
    all
}

/// Returns whether a change concerns nothing but what the scheduler writes, and other labels and annotations. Such a change
/// is always allowed, and nothing is filled in.
pub fn is_unchanged(old: &ElasticQuota, new: &ElasticQuota) -> bool {
    old.says_the_same(new)
}

/// Judges the change of a quota. A change of nothing but what the scheduler writes is always allowed, so that a quota which
/// slipped past the rules can be accounted for and deleted.
pub fn update(known: &Known<'_>, old: &ElasticQuota, new: &ElasticQuota) -> Vec<QuotaProblem> {
    if is_unchanged(old, new) {
        return Vec::new();
    }
    if is_built_in(&old.name) {
        let problem = "built-in quotas cannot be changed".to_owned();
        return vec![problem_of(old, "metadata.name", old.name.to_string(), problem)];
    }
    let mut all = unreadable(new);
    all.extend(places::changes(known, old, new));
    all.extend(standing(known, new));
    all.extend(amounts::at_relatives(known, new));
    all
}

/// Judges the deletion of a quota.
pub fn delete(known: &Known<'_>, old: &ElasticQuota) -> Vec<QuotaProblem> {
    let refuse = |problem: String| vec![problem_of(old, "metadata.name", old.name.to_string(), problem)];
    if is_built_in(&old.name) {
        return refuse("built-in quotas cannot be deleted".to_owned());
    }
    // Another object of the name goes on, with its children and pods.
    if known.find(&old.name).is_some_and(|counts| counts.namespace != old.namespace) {
        return Vec::new();
    }
    let children: Vec<&str> = known.children(&old.name, old).map(|child| child.name.as_str()).collect();
    if !children.is_empty() {
        return refuse(has_children(&children));
    }
    match (known.pods)(&old.name) {
        pods if pods.is_empty() => Vec::new(),
        pods => refuse(format!("it has pods: {}", first_two(&pods))),
    }
}

/// Judges a quota as it stands, whoever wrote it. Each problem is one that [`create`] and [`update`] refuse.
pub fn standing(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    if is_built_in(&quota.name) {
        return Vec::new();
    }
    let mut all = amounts::own(quota);
    all.extend(places::place(known, quota));
    all.extend(amounts::below_parent(known, quota));
    all
}

pub(super) fn unreadable(quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let of = |error: &pellucid_framework::manifest::FieldError| {
        problem_of(quota, &error.field, error.value.clone(), error.problem.clone())
    };
    quota.problems.iter().map(of).collect()
}

/// Returns the name of a quota's parent, `None` for a child of the root.
fn parent_of(quota: &ElasticQuota) -> Option<&str> {
    quota.parent.as_deref().filter(|name| !is_root(name))
}

/// Returns whether a name is the root's: both of its names count, because a label gives no namespace.
fn is_root(name: &str) -> bool {
    keys::ROOT_QUOTA.contains(&name)
}

/// Returns whether a name is that of a built-in quota. Those of 0.7 are ordinary words, and free for others.
fn is_built_in(name: &str) -> bool {
    [keys::ROOT_QUOTA, keys::SYSTEM_QUOTA, keys::DEFAULT_QUOTA].iter().any(|names| names[0] == name)
}

fn first_two<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(2).map(T::as_ref).collect();
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn has_children(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "child" } else { "children" };
    format!("it has {} {noun}: {}", names.len(), first_two(names))
}

/// Writes the amount of a resource.
fn text(amounts: &Amounts, name: &Name) -> String {
    resource_list(amounts)[name.as_str()].as_str().unwrap_or("0").to_owned()
}

/// Writes an amount.
fn amount(name: &Name, amount: i64) -> String {
    let list = Amounts::from([(name.clone(), amount)]);
    text(&list, name)
}

/// Returns the field of a label or an annotation.
pub(super) fn label(key: &str) -> String {
    format!("metadata.labels.{key}")
}

fn annotation(key: &str) -> String {
    format!("metadata.annotations.{key}")
}

pub(super) fn problem_of(quota: &ElasticQuota, field: &str, value: String, problem: String) -> QuotaProblem {
    QuotaProblem {
        quota: quota.name.to_string(),
        namespace: quota.namespace.to_string(),
        field: field.to_owned(),
        value,
        problem,
    }
}

/// Writes a problem as a sentence for whoever sent the object.
pub fn sentence(problem: &QuotaProblem) -> String {
    let QuotaProblem { quota, field, value, problem, .. } = problem;
    format!("quota {quota}: {field} {}: {problem}", Value::from(value.as_str()))
}
