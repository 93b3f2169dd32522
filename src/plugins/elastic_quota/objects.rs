//! The objects and nodes that trees are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;
use pellucid_model::{CustomObject, Name, Node, NodeIdx, Pages};

use super::profile::ElasticQuotaProfile;
use super::quota::ElasticQuota;
use super::shares::Totals;
use super::tree::{QuotaIdx, Tree};

/// A quota's object, with what a write of it needs.
#[derive(Clone, Debug)]
pub(super) struct QuotaObject {
    pub(super) quota: Arc<ElasticQuota>,
    pub(super) uid: Arc<str>,
}

/// What a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeFacts {
    labels: Labels,
    allocatable: ResourceList,
}

/// All objects and nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// By name, then namespace.
    quotas: Arc<BTreeMap<(Name, Name), QuotaObject>>,
    profiles: Arc<BTreeMap<(Name, Name), Arc<ElasticQuotaProfile>>>,
    nodes: Pages<Option<Arc<NodeFacts>>>,
    /// What all nodes have.
    capacity: Arc<BTreeMap<Name, i128>>,
}

/// What follows from a changed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    Nothing,
    /// The object says the same but for what the scheduler wrote.
    Rewritten,
    /// What there is to share has changed.
    Totals,
    /// The tree must be made anew.
    Tree,
}

impl Objects {
    /// Takes over a changed object.
    pub(super) fn change(&mut self, old: Option<&CustomObject>, new: Option<&CustomObject>) -> Consequence {
        let Some(object) = new.or(old) else { return Consequence::Nothing };
        let key = (object.name.clone(), object.namespace.clone());
        if object.get::<ElasticQuotaProfile>().is_some() {
            let profiles = Arc::make_mut(&mut self.profiles);
            match new.and_then(CustomObject::shared) {
                Some(profile) => drop(profiles.insert(key, profile)),
                None => drop(profiles.remove(&key)),
            }
            return Consequence::Totals;
        }
        if object.get::<ElasticQuota>().is_none() {
            return Consequence::Nothing;
        }
        let quotas = Arc::make_mut(&mut self.quotas);
        let Some(quota) = new.and_then(CustomObject::shared::<ElasticQuota>) else {
            quotas.remove(&key);
            return Consequence::Tree;
        };
        let is_same = |known: &QuotaObject| known.quota.says_the_same(&quota);
        let before = quotas.insert(key, QuotaObject { quota: quota.clone(), uid: object.uid.clone() });
        if before.as_ref().is_some_and(is_same) { Consequence::Rewritten } else { Consequence::Tree }
    }

    /// Takes over a changed node. Returns whether what there is has changed.
    pub(super) fn change_node(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> bool {
        let facts = |n: &Node| NodeFacts { labels: n.labels.clone(), allocatable: n.allocatable.clone() };
        let (before, after) = (old.map(facts), new.map(facts));
        if before == after {
            return false;
        }
        let capacity = Arc::make_mut(&mut self.capacity);
        for (facts, times) in [(&before, -1), (&after, 1)] {
            for (name, amount) in facts.iter().flat_map(|facts| facts.allocatable.named()) {
                *capacity.entry(name).or_default() += times * i128::from(amount);
            }
        }
        capacity.retain(|_, amount| *amount != 0);
        self.nodes.set(node.index(), after.map(Arc::new));
        true
    }

    /// Returns the quotas that count, by name: of several with one name the one that was created first.
    pub(super) fn counting(&self) -> Vec<Arc<ElasticQuota>> {
        let mut all: Vec<Arc<ElasticQuota>> = Vec::new();
        for object in self.quotas.values() {
            let quota = &object.quota;
            match all.last_mut().filter(|last| last.name == quota.name) {
                Some(last) if quota.created < last.created => *last = quota.clone(),
                Some(_) => {}
                None => all.push(quota.clone()),
            }
        }
        all
    }

    /// Iterates over all objects of quotas, by name.
    pub(super) fn quotas(&self) -> impl Iterator<Item = &QuotaObject> {
        self.quotas.values()
    }

    /// Returns the object of a quota.
    pub(super) fn find(&self, quota: &ElasticQuota) -> Option<&QuotaObject> {
        self.quotas.get(&(quota.name.clone(), quota.namespace.clone()))
    }

    /// Returns the profile of a tree's first quota.
    pub(super) fn profile_of(&self, quota: &ElasticQuota) -> Option<&Arc<ElasticQuotaProfile>> {
        let is_of = |profile: &&Arc<ElasticQuotaProfile>| match &quota.profile {
            Some(named) => profile.name == *named,
            None => profile.quota == quota.name,
        };
        self.profiles.values().find(is_of)
    }

    /// Returns what there is to share out in each tree.
    pub(super) fn totals(&self, tree: &Tree) -> Totals {
        let of = |name: &Name| self.capacity.get(name).copied().unwrap_or(0);
        let mut totals = Totals { nodes: tree.resources.iter().map(of).collect(), trees: Vec::new() };
        for (at, quota) in tree.quotas.iter().enumerate() {
            let object = quota.object.as_ref().filter(|object| object.is_tree_root && !quota.tree.is_empty());
            if let Some(object) = object {
                totals.trees.push((at, self.total_of_tree(tree, object)));
            }
        }
        totals
    }

    /// Returns what a tree has: the nodes of its profile, or what its first quota's annotation says.
    fn total_of_tree(&self, tree: &Tree, first: &ElasticQuota) -> Vec<i128> {
        if let Some(profile) = self.profile_of(first) {
            return tree.resources.iter().map(|name| self.total_of_profile(profile, name)).collect();
        }
        let said = |name: &Name| first.total_resource.as_ref().and_then(|total| total.get(name)).copied();
        tree.resources.iter().map(|name| i128::from(said(name).unwrap_or(0).max(0))).collect()
    }

    fn total_of_profile(&self, profile: &ElasticQuotaProfile, resource: &Name) -> i128 {
        if !profile.resources.contains(resource) {
            return 0;
        }
        let selects = |facts: &&NodeFacts| profile.nodes.as_ref().is_some_and(|s| s.matches(&facts.labels));
        let nodes = self.nodes.iter().flatten().map(|facts| &**facts).filter(selects);
        profile.part_of(nodes.map(|facts| i128::from(facts.allocatable.amount(resource))).sum())
    }

    /// Whether the labels of nodes matter.
    pub(super) fn has_profiles(&self) -> bool {
        !self.profiles.is_empty()
    }
}

/// Returns the position of a quota's object in the tree, if it counts.
pub(super) fn position(tree: &Tree, quota: &ElasticQuota) -> Option<QuotaIdx> {
    let is_it = |at: &QuotaIdx| {
        tree.get(*at).object.as_ref().is_some_and(|object| object.namespace == quota.namespace)
    };
    tree.find(&quota.name).filter(is_it)
}
