//! Sums per domain: a column of a topology key, and a number for each of its values.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::{Name, NodeIdx};

use super::super::relations::{Class, Column, NO_VALUE, NodeCounts, Relations};
use super::terms::reaches;

/// The numbers of one key.
pub(super) struct SumsOfKey {
    key: Name,
    column: Arc<Column>,
    sums: Vec<i64>,
}

impl SumsOfKey {
    /// Returns the key.
    pub(super) fn name(&self) -> &Name {
        &self.key
    }

    /// Returns the number of a node's domain; `None` when the node lacks the key.
    #[inline]
    pub(super) fn on(&self, node: NodeIdx) -> Option<i64> {
        let value = self.column.of(node);
        if value == NO_VALUE { None } else { Some(self.sums[value as usize]) }
    }
}

/// Numbers per key and value.
#[derive(Default)]
pub(super) struct Sums {
    keys: Vec<SumsOfKey>,
    /// Whether anything was added, were it 0 together.
    any: bool,
}

impl Sums {
    /// Makes room for a key and returns its place.
    pub(super) fn key(&mut self, relations: &Relations, key: &Name) -> usize {
        self.keys.iter().position(|k| k.key == *key).unwrap_or_else(|| {
            let column = relations.topology.column(key);
            let sums = vec![0; column.len()];
            self.keys.push(SumsOfKey { key: key.clone(), column, sums });
            self.keys.len() - 1
        })
    }

    /// Adds a weight for every pod counted, in the domain of its node.
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

    /// Whether no pod was counted on a node with a key.
    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Returns the keys, in the order in which they came.
    pub(super) fn keys(&self) -> &[SumsOfKey] {
        &self.keys
    }
}

/// Calls back for every class of placed pods that a term of a pod in namespace `home` is about.
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
