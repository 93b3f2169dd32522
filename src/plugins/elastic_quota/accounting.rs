//! Counting pods: a pod's requests count in its quota and in all quotas above it.
//!
//! What a pod requests counts from when it comes until it has ended. What it uses counts while it has a place, from
//! Reserve on, also in trials. A change walks up from the pod's quota, and ends where nothing changes any more.

use pellucid_model::requests::ResourceList;

use super::tree::{Cell, QuotaIdx, Sums, Tree};

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its requests as such.
    Request,
    /// What it uses.
    Used,
}

impl Tree {
    /// Counts a pod (`times` is 1) or no longer counts it (-1) in a quota and above.
    pub(super) fn count(
        &mut self,
        at: QuotaIdx,
        requests: &ResourceList,
        is_fixed: bool,
        part: Part,
        times: i128,
    ) {
        for r in 0..self.resources.len() {
            let Some(sums) = self.sums(at, r, requests, is_fixed, part) else { continue };
            self.get_mut(at).cells[r].own.add(&sums, times);
            self.add(at, r, &sums, times);
        }
        if part == Part::Used {
            self.guarantee(at);
        }
    }

    /// Counts a pod in its own quota alone; [`add_up`](Self::add_up) follows.
    pub(super) fn count_own(&mut self, at: QuotaIdx, requests: &ResourceList, is_fixed: bool, part: Part) {
        for r in 0..self.resources.len() {
            if let Some(sums) = self.sums(at, r, requests, is_fixed, part) {
                self.get_mut(at).cells[r].own.add(&sums, 1);
            }
        }
    }

    /// Returns what a pod adds in one resource, `None` for nothing. A resource without a max is not counted.
    fn sums(
        &self,
        at: QuotaIdx,
        r: usize,
        requests: &ResourceList,
        is_fixed: bool,
        part: Part,
    ) -> Option<Sums> {
        let amount = i128::from(requests.amount(&self.resources[r]));
        if amount == 0 || self.quotas[at].cells[r].max.is_none() {
            return None;
        }
        let fixed = if is_fixed { amount } else { 0 };
        Some(match part {
            Part::Request => Sums { request: amount, fixed_request: fixed, ..Sums::default() },
            Part::Used => Sums { used: amount, fixed_used: fixed, ..Sums::default() },
        })
    }

    /// Adds sums of one resource to a quota, and what follows to those above it.
    fn add(&mut self, at: QuotaIdx, r: usize, sums: &Sums, times: i128) {
        let (mut at, mut change) = (at, Sums::default());
        change.add(sums, times);
        while change != Sums::default() {
            let lends = self.lends(&self.quotas[at]);
            let quota = self.get_mut(at);
            let (cell, parent) = (&mut quota.cells[r], quota.parent);
            let before = i128::from(cell.limited_request(lends));
            cell.all.add(&change, 1);
            change.request = i128::from(cell.limited_request(lends)) - before;
            let Some(parent) = parent else { return };
            if change.request != 0 {
                self.get_mut(parent).is_dirty = true;
            }
            at = parent;
        }
    }

    /// Works out anew what is allocated and guaranteed in a quota and above, after what its pods use has changed.
    fn guarantee(&mut self, at: QuotaIdx) {
        if !self.guarantees_usage {
            return;
        }
        let path: Vec<QuotaIdx> = self.upwards(at).collect();
        for at in path {
            let mut has_changed = false;
            for r in 0..self.resources.len() {
                let quota = &self.quotas[at];
                let of_child = |child: &QuotaIdx| i128::from(self.quotas[*child].cells[r].guaranteed());
                let allocated = quota.cells[r].own.used + quota.children.iter().map(of_child).sum::<i128>();
                if allocated != quota.cells[r].allocated {
                    self.get_mut(at).cells[r].allocated = allocated;
                    has_changed = true;
                }
            }
            match self.quotas[at].parent {
                Some(parent) if has_changed => self.get_mut(parent).is_dirty = true,
                _ => return,
            }
        }
    }

    /// Works out all sums above the leaves from what each quota's own pods add up to.
    pub(super) fn add_up(&mut self) {
        let order: Vec<QuotaIdx> = self.bottom_up();
        for at in 0..self.quotas.len() {
            let cells = &mut self.get_mut(at).cells;
            cells
                .iter_mut()
                .for_each(|cell: &mut Cell| (cell.all, cell.allocated) = (cell.own, cell.own.used));
        }
        for at in order {
            let Some(parent) = self.quotas[at].parent else { continue };
            let lends = self.lends(&self.quotas[at]);
            for r in 0..self.resources.len() {
                let cell = self.quotas[at].cells[r];
                let up = Sums { request: i128::from(cell.limited_request(lends)), ..cell.all };
                let above = &mut self.get_mut(parent).cells[r];
                above.all.add(&up, 1);
                above.allocated += i128::from(cell.guaranteed());
            }
        }
        for at in self.downwards.clone().iter() {
            self.get_mut(*at).is_dirty = true;
        }
    }

    /// Returns all quotas, children before their parents.
    fn bottom_up(&self) -> Vec<QuotaIdx> {
        let mut depth = vec![0; self.quotas.len()];
        for at in self.downwards.iter() {
            for child in self.quotas[*at].children.iter() {
                depth[*child] = depth[*at] + 1;
            }
        }
        let mut all: Vec<QuotaIdx> = (0..self.quotas.len()).collect();
        all.sort_by_key(|at| std::cmp::Reverse(depth[*at]));
        all
    }
}
