//! Rules about a quota's place: its name, its parent, its tree and the namespaces that are bound to it.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::elastic_quota::QuotaProblem;
use pellucid_model::Name;

use super::{Known, annotation, first_two, has_children, label, parent_of, problem_of};
use crate::quota::ElasticQuota;

/// Names of quotas count across namespaces.
pub(super) fn namesake(known: &Known<'_>, new: &ElasticQuota) -> Option<QuotaProblem> {
    let other = known.find(&new.name).filter(|other| other.namespace != new.namespace)?;
    let problem = format!(
        "names of quotas count across namespaces, and namespace {} has one of this name",
        other.namespace
    );
    Some(problem_of(new, "metadata.name", new.name.to_string(), problem))
}

/// Judges where a quota stands.
pub(super) fn place(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all: Vec<QuotaProblem> = parent(known, quota).into_iter().collect();
    all.extend(tree(known, quota));
    all.extend(children(known, quota));
    all.extend(namespaces(known, quota));
    all
}

fn parent(known: &Known<'_>, quota: &ElasticQuota) -> Option<QuotaProblem> {
    let name = parent_of(quota)?;
    let refuse = |problem: String| Some(problem_of(quota, &label(keys::PARENT), name.to_owned(), problem));
    if *name == *quota.name {
        return refuse("the quota is its own parent".to_owned());
    }
    let Some(parent) = known.find(name) else { return refuse("there is no quota of this name".to_owned()) };
    let mut ancestor = parent;
    for _ in 0..known.quotas.len() {
        match parent_of(ancestor).and_then(|up| known.find(up)) {
            Some(up) if up.name == quota.name => {
                return refuse(format!("the parents of {name} lead back to the quota, by {}", ancestor.name));
            }
            Some(up) => ancestor = up,
            None => break,
        }
    }
    if !parent.is_parent {
        return refuse(format!("its label {} is not \"true\", so it may not have children", keys::IS_PARENT));
    }
    None
}

fn tree_of(quota: &ElasticQuota) -> &str {
    quota.tree.as_deref().unwrap_or_default()
}

/// A tree is of one piece, but for the quota that starts it.
fn tree(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    let mut refuse = |problem: String| {
        all.push(problem_of(quota, &label(keys::TREE_ID), tree_of(quota).to_owned(), problem));
    };
    if quota.is_tree_root && tree_of(quota).is_empty() {
        refuse(format!("the label {} is \"true\", and the tree has no id", keys::IS_ROOT));
    }
    if let Some(parent) = known.parent(quota).filter(|_| !quota.is_tree_root)
        && tree_of(parent) != tree_of(quota)
    {
        refuse(format!("its parent {} is of tree {:?}", parent.name, tree_of(parent)));
    }
    let children = known.children(&quota.name, quota).filter(|child| !child.is_tree_root);
    if let Some(child) = children.into_iter().find(|child| tree_of(child) != tree_of(quota)) {
        refuse(format!("its child {} is of tree {:?}", child.name, tree_of(child)));
    }
    all
}

fn children(known: &Known<'_>, quota: &ElasticQuota) -> Option<QuotaProblem> {
    let children: Vec<&str> = known.children(&quota.name, quota).map(|child| child.name.as_str()).collect();
    if quota.is_parent || children.is_empty() {
        return None;
    }
    Some(problem_of(quota, &label(keys::IS_PARENT), "false".to_owned(), has_children(&children)))
}

/// A namespace is bound to one quota.
fn namespaces(known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let taken = |namespace: &Name| {
        let other = known.bound.get(namespace.as_str())?.iter().find(|other| other.name != quota.name)?;
        let problem = format!("the namespace is bound to quota {} already", other.name);
        Some(problem_of(quota, &annotation(keys::NAMESPACES), namespace.to_string(), problem))
    };
    quota.namespaces.iter().filter_map(taken).collect()
}

/// Judges what may not change.
pub(super) fn changes(known: &Known<'_>, old: &ElasticQuota, new: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    // The first tree of a quota is filled in from its parent.
    if !tree_of(old).is_empty() && tree_of(old) != tree_of(new) {
        let problem = format!("the tree of a quota cannot change, and was {:?}", tree_of(old));
        all.push(problem_of(new, &label(keys::TREE_ID), tree_of(new).to_owned(), problem));
    }
    if new.is_parent && !old.is_parent && !known.gates.support_parent_quota_submit_pod {
        let pods = (known.pods)(&new.name);
        if !pods.is_empty() {
            let problem = format!("it has pods: {}", first_two(&pods));
            all.push(problem_of(new, &label(keys::IS_PARENT), "true".to_owned(), problem));
        }
    }
    all
}
