//! Sums per domain: a topology column and a sum for each of its values.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::{Name, NodeIdx};

use super::super::relations::{Class, Column, NO_VALUE, NodeCounts, Relations};
use super::terms::reaches;

/// The sums of one topology key.
pub(super) struct SumsOfKey {
    key: Name,
    column: Arc<Column>,
    sums: Vec<i64>,
}

impl SumsOfKey {
    /// Returns the topology key.
    pub(super) fn name(&self) -> &Name {
        &self.key
    }

    /// Returns the sum of a node's domain; `None` when the node lacks the key.
    #[inline]
    pub(super) fn on(&self, node: NodeIdx) -> Option<i64> {
        let value = self.column.of(node);
        if value == NO_VALUE { None } else { Some(self.sums[value as usize]) }
    }
}

/// Sums per topology key and value.
#[derive(Default)]
pub(super) struct Sums {
    keys: Vec<SumsOfKey>,
    /// Whether anything was added, even if the sums are 0.
    any: bool,
}

impl Sums {
    /// Adds a topology key if it is new and returns its index.
    pub(super) fn key(&mut self, relations: &Relations, key: &Name) -> usize {
        self.keys.iter().position(|k| k.key == *key).unwrap_or_else(|| {
            let column = relations.topology.column(key);
            let sums = vec![0; column.len()];
            self.keys.push(SumsOfKey { key: key.clone(), column, sums });
            self.keys.len() - 1
        })
    }

    /// Adds `weight` for every counted pod to the domain of its node.
    pub(super) fn add(&mut self, at: usize, counts: &NodeCounts, weight: i64) {
        let SumsOfKey { column, sums, .. } = &mut self.keys[at];
        let mut any = self.any;
        counts.for_each(|node, pods| {
            let value = column.of(node);
            if value != NO_VALUE {
                sums[value as usize] += weight * i64::from(pods);
                any = true;
            }
        });
        self.any = any;
    }

    /// Returns whether no pod was counted on a node with one of the keys.
    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Returns the sums in the order in which their keys were added.
    pub(super) fn keys(&self) -> &[SumsOfKey] {
        &self.keys
    }
}

/// Calls `with` for every class of placed pods that matches a term of a pod in namespace `home`.
pub(super) fn for_each_about<'a>(
    view: View<'a>,
    relations: &'a Relations,
    term: &PodAffinityTerm,
    home: &Name,
    mut with: impl FnMut(&'a Class),
) {
    let Some(selector) = &term.selector else { return };
    if term.namespace_selector.is_some() {
        for namespace in relations.classes.namespaces().filter(|n| reaches(view, term, home, n)) {
            relations.classes.matching(namespace, selector, &mut with);
        }
    } else if term.namespaces.is_empty() {
        relations.classes.matching(home, selector, with);
    } else {
        for (at, namespace) in term.namespaces.iter().enumerate() {
            if !term.namespaces[..at].contains(namespace) {
                relations.classes.matching(namespace, selector, &mut with);
            }
        }
    }
}
