//! What is filled in when a quota is written: its parent, its tree and its weight.

use std::collections::BTreeMap;

use pellucid_api::keys::elastic_quota as keys;

use super::{Known, is_built_in};
use crate::quota::{Amounts, ElasticQuota, resource_list};

/// Labels and annotations to set on a quota; those that are there are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// Labels.
    pub labels: BTreeMap<&'static str, String>,
    /// Annotations.
    pub annotations: BTreeMap<&'static str, String>,
}

/// Returns what is filled in: the root as parent when none is named, the tree of the parent, and max as weight. The weight
/// gets and loses the resources that max gets and loses; the others keep theirs.
pub fn defaults(known: &Known<'_>, new: &ElasticQuota) -> Defaults {
    let mut made = Defaults::default();
    if is_built_in(&new.name) {
        return made;
    }
    if new.parent.is_none() && !is_unreadable(new, keys::PARENT) {
        made.labels.insert(keys::PARENT, keys::ROOT_QUOTA[0].to_owned());
    }
    if let Some(tree) = known.parent(new).and_then(|parent| parent.tree.as_ref())
        && new.tree.is_none()
    {
        made.labels.insert(keys::TREE_ID, tree.to_string());
    }
    let weight = match &new.shared_weight {
        None => new.max.clone(),
        Some(given) => {
            let of = |(name, max): (_, &i64)| (Clone::clone(name), given.get(name).copied().unwrap_or(*max));
            new.max.iter().map(of).collect::<Amounts>()
        }
    };
    if new.shared_weight.as_ref() != Some(&weight) && !is_unreadable(new, keys::SHARED_WEIGHT) {
        made.annotations.insert(keys::SHARED_WEIGHT, resource_list(&weight).to_string());
    }
    made
}

/// Returns whether a key has a value that could not be read. It is refused instead of replaced.
fn is_unreadable(quota: &ElasticQuota, key: &str) -> bool {
    quota.problems.iter().any(|problem| problem.field.ends_with(key))
}
