//! The shares of quotas: how much each may use now (its runtime), from the total of its tree downwards.
//!
//! Only quotas whose children's requests, or whose own share, has changed are worked out again.

use super::tree::{Cell, DEFAULT, Quota, QuotaIdx, ROOT, Role, SYSTEM, Tree};
use pellucid_plugin_helper::water_filling::{Claim, Round, fill, fill_in_rounds};

/// What there is to share out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// What all nodes have, by resource of the tree.
    pub(super) nodes: Vec<i128>,
    /// What trees of their own have, by the position of their first quota.
    pub(super) trees: Vec<(QuotaIdx, Vec<i128>)>,
}

/// How a scaled min comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scaling {
    /// What the children have to share.
    pub(super) total: i64,
    /// Sum of their mins, which is more.
    pub(super) mins: i128,
}

impl Tree {
    /// Works out all shares that may have changed. Returns whether one has.
    pub(super) fn refresh(&mut self, totals: &Totals, scales_min: bool) -> bool {
        let mut has_changed = false;
        for at in self.downwards.clone().iter().copied() {
            if self.quotas[at].role == Role::Root && self.set_total(at, totals) {
                self.get_mut(at).is_dirty = true;
            }
            if self.quotas[at].is_dirty {
                has_changed |= self.distribute(at, scales_min);
                self.get_mut(at).is_dirty = false;
            }
        }
        has_changed
    }

    /// Sets the total of a root. Returns whether it changed.
    fn set_total(&mut self, root: QuotaIdx, totals: &Totals) -> bool {
        let mut has_changed = false;
        for r in 0..self.resources.len() {
            let total = super::tree::clamp(self.total(root, r, totals));
            if self.quotas[root].cells[r].runtime != total {
                self.get_mut(root).cells[r].runtime = total;
                has_changed = true;
            }
        }
        has_changed
    }

    /// Returns what a root has, exactly.
    pub(super) fn total(&self, root: QuotaIdx, r: usize, totals: &Totals) -> i128 {
        if root != ROOT {
            let own = totals.trees.iter().filter(|(at, _)| self.quotas[*at].parent == Some(root));
            return own.map(|(_, total)| total[r]).sum();
        }
        let used = |at: QuotaIdx| self.quotas[at].cells[r].all.used;
        let is_taken_off = |at: QuotaIdx| {
            let quota = &self.quotas[at];
            quota.parent != Some(ROOT) && quota.object.as_ref().is_some_and(|o| !o.ignores_default_tree)
        };
        let others = totals.trees.iter().filter(|(at, _)| is_taken_off(*at)).map(|(_, total)| total[r]);
        totals.nodes[r] - used(SYSTEM) - used(DEFAULT) - others.sum::<i128>()
    }

    /// Shares out what a quota has among its children. Returns whether a share changed.
    fn distribute(&mut self, parent: QuotaIdx, scales_min: bool) -> bool {
        let children = self.quotas[parent].children.clone();
        let mut has_changed = false;
        let mut claims = Vec::with_capacity(children.len());
        for r in 0..self.resources.len() {
            let total = self.quotas[parent].cells[r].runtime;
            let scaling = self.scaling(parent, r, scales_min);
            claims.clear();
            for child in children.iter() {
                let before = self.quotas[*child].cells[r];
                let scaled_min = scaling.map_or(before.floor(), |scaling| scaling.min_of(&before));
                if (before.scaled_min, before.is_scaled) != (scaled_min, scaling.is_some()) {
                    let cell = &mut self.get_mut(*child).cells[r];
                    (cell.scaled_min, cell.is_scaled) = (scaled_min, scaling.is_some());
                    has_changed = true;
                }
                claims.push(self.claim(&self.quotas[*child], r));
            }
            for (child, runtime) in children.iter().zip(fill(total, &claims)) {
                if self.quotas[*child].cells[r].runtime != runtime {
                    let child = self.get_mut(*child);
                    child.cells[r].runtime = runtime;
                    child.is_dirty = !child.children.is_empty();
                    has_changed = true;
                }
            }
        }
        has_changed
    }

    /// Returns what a quota claims of its parent.
    pub(super) fn claim(&self, quota: &Quota, r: usize) -> Claim {
        let (cell, lends) = (&quota.cells[r], self.lends(quota));
        let guaranteed =
            if self.guarantees_usage { cell.guaranteed().max(cell.scaled_min) } else { cell.scaled_min };
        Claim { weight: cell.weight, request: cell.limited_request(lends), guaranteed, lends }
    }

    /// Returns how the mins of a quota's children are scaled, or `None` when there is enough for all.
    pub(super) fn scaling(&self, parent: QuotaIdx, r: usize, scales_min: bool) -> Option<Scaling> {
        let quota = &self.quotas[parent];
        let total = quota.cells[r].runtime;
        let mins = quota.children.iter().map(|child| i128::from(self.quotas[*child].cells[r].floor())).sum();
        (scales_min && mins > i128::from(total)).then_some(Scaling { total, mins })
    }

    /// Returns the rounds in which what a quota has is shared among its children, whose positions the shares have.
    pub(super) fn rounds(&self, parent: QuotaIdx, r: usize) -> (Vec<Claim>, Vec<Round>) {
        let quota = &self.quotas[parent];
        let claims: Vec<Claim> =
            quota.children.iter().map(|child| self.claim(&self.quotas[*child], r)).collect();
        let mut rounds = Vec::new();
        fill_in_rounds(quota.cells[r].runtime, &claims, |round| rounds.push(round));
        (claims, rounds)
    }
}

impl Scaling {
    /// Returns the part of a child's min that there is enough for, rounded down.
    fn min_of(self, cell: &Cell) -> i64 {
        (i128::from(self.total.max(0)) * i128::from(cell.floor()) / self.mins) as i64
    }
}
