//! Which resource has which column beside the four fixed ones.
//!
//! A resource has a column while some node offers it; then the number is given to another one. There is a most number of
//! columns. A resource that finds none is left out: pods that request it are told, and it gets the next that is free.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;

/// Columns at most. Only nodes make columns, so pods cannot fill the table.
const MOST: usize = 1024;

/// The table. Numbers count from 0.
#[derive(Clone, Debug)]
pub(crate) struct ResourceTable {
    /// Names by number; `None`: free.
    names: Vec<Option<Name>>,
    /// Nodes that offer some of it, by number.
    offers: Vec<u32>,
    index: FxHashMap<Name, usize>,
    free: BTreeSet<usize>,
    /// Resources without a column, by the nodes that offer them.
    left_out: BTreeMap<Name, u32>,
    most: usize,
    /// Counts changes of what names stand for.
    version: u64,
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

    /// Returns the name of a number, `None` when it is free.
    pub(crate) fn name(&self, number: usize) -> Option<&Name> {
        self.names.get(number)?.as_ref()
    }

    /// Returns how many numbers were given out at most; all are below it.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Iterates over the numbers in use, ascending.
    pub(crate) fn offered(&self) -> impl Iterator<Item = usize> {
        self.names.iter().enumerate().filter(|(_, name)| name.is_some()).map(|(number, _)| number)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Iterates over the resources that nodes offer and that have no column.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Name> {
        self.left_out.keys()
    }

    pub(crate) fn is_left_out(&self, name: &Name) -> bool {
        !self.left_out.is_empty() && self.left_out.contains_key(name)
    }

    /// Returns how many resources nodes offer, and how many of them have a column.
    pub(crate) fn numbers(&self) -> (usize, usize) {
        (self.index.len() + self.left_out.len(), self.index.len())
    }

    /// One more node offers a resource. Returns its number, and whether that is new; `None` when it is left out.
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

    /// One node less offers a resource. Returns its number when that was the last one; [`Self::release`] frees it.
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

    /// Frees a number that no node offers any more. Returns whether it did.
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

    /// Takes a resource off the list of those left out when there is a number for it.
    pub(crate) fn admit(&mut self) -> Option<Name> {
        let has_room = !self.free.is_empty() || self.names.len() < self.most;
        if has_room { self.left_out.pop_first().map(|(name, _)| name) } else { None }
    }

    /// Sets the bound, for tests.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most;
    }
}
