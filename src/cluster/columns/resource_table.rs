//! Assigns column numbers to the resources besides the four fixed ones.
//!
//! A resource has a number while some node offers it; afterwards another resource may get the number. The number of
//! columns is bounded. A resource that finds no free column is left out: pods that request it get a cause that says so,
//! and it gets the next column that becomes free.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

/// Maximum number of columns. Only nodes create columns, so pods cannot fill the table.
const MOST: usize = 1024;

/// The table, part of `Columns`. Numbers start at 0.
#[derive(Clone, Debug)]
pub(crate) struct ResourceTable {
    /// Names by number; `None` marks a free number.
    pub(super) names: Vec<Option<Name>>,
    /// How many nodes offer the resource, by number.
    offers: Vec<u32>,
    pub(super) index: FxHashMap<Name, usize>,
    free: BTreeSet<usize>,
    /// Resources without a column, with the number of nodes that offer them.
    pub(super) left_out: BTreeMap<Name, u32>,
    most: usize,
    /// Counts the changes of what a number or name refers to.
    pub(super) version: u64,
}

impl Default for ResourceTable {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            offers: Vec::new(),
            index: FxHashMap::default(),
            free: BTreeSet::new(),
            left_out: BTreeMap::new(),
            most: MOST,
            version: 0,
        }
    }
}

impl ResourceTable {
    pub(crate) fn find(&self, name: &Name) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Returns the name of a number, or `None` when the number is free.
    pub(crate) fn name(&self, number: usize) -> Option<&Name> {
        self.names.get(number)?.as_ref()
    }

    /// Iterates over the numbers in use, in ascending order.
    pub(crate) fn offered(&self) -> impl Iterator<Item = usize> {
        self.names.iter().enumerate().filter(|(_, name)| name.is_some()).map(|(number, _)| number)
    }

    /// Counts one more node that offers a resource. Returns its number and whether that is new, or `None` when it is
    /// left out.
    pub(crate) fn offer(&mut self, name: &Name) -> Option<(usize, bool)> {
        if let Some(number) = self.find(name) {
            self.offers[number] += 1;
            return Some((number, false));
        }
        let number = self.free.pop_first().or((self.names.len() < self.most).then_some(self.names.len()));
        let Some(number) = number else {
            *self.left_out.entry(name.clone()).or_default() += 1;
            return None;
        };
        if number == self.names.len() {
            self.names.push(None);
            self.offers.push(0);
        }
        self.names[number] = Some(name.clone());
        self.offers[number] = 1;
        self.index.insert(name.clone(), number);
        self.version += 1;
        Some((number, true))
    }

    /// Counts one node fewer that offers a resource. Returns its number if that was the last node; [`Self::release`]
    /// then frees the number.
    pub(crate) fn withdraw(&mut self, name: &Name) -> Option<usize> {
        let Some(number) = self.find(name) else {
            if let Some(nodes) = self.left_out.get_mut(name) {
                *nodes -= 1;
                if *nodes == 0 {
                    self.left_out.remove(name);
                }
            }
            return None;
        };
        self.offers[number] -= 1;
        (self.offers[number] == 0).then_some(number)
    }

    /// Frees a number that no node offers any more. Returns whether it was freed.
    pub(crate) fn release(&mut self, number: usize) -> bool {
        if self.offers[number] > 0 {
            return false;
        }
        let Some(name) = self.names[number].take() else { return false };
        self.index.remove(&name);
        self.free.insert(number);
        self.version += 1;
        true
    }

    /// Removes a resource from those left out when a number is free for it, and returns its name.
    pub(crate) fn admit(&mut self) -> Option<Name> {
        let has_room = !self.free.is_empty() || self.names.len() < self.most;
        if has_room { self.left_out.pop_first().map(|(name, _)| name) } else { None }
    }

    /// Sets the maximum number of columns, for tests.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most;
    }
}
