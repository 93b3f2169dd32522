//! Counting pods: a pod's requests count in its quota and in all quotas above it.
//!
//! What a pod requests counts from when it comes until it has ended. What it uses counts while it has a place, from
//! Reserve on, also in trials. A change walks up from the pod's quota, and ends where nothing changes any more.

use pellucid_model::requests::ResourceList;
use smallvec::SmallVec;

use super::tree::{Cell, QuotaIdx, Sums, Tree};

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its requests as such.
    Request,
    /// What it uses.
    Used,
}

impl Sums {
    /// Adds an amount, which may be negative.
    fn add(&mut self, amount: i128, is_fixed: bool, part: Part) {
        let fixed = if is_fixed { amount } else { 0 };
        match part {
            Part::Request => {
                (self.request, self.fixed_request) = (self.request + amount, self.fixed_request + fixed)
            }
            Part::Used => (self.used, self.fixed_used) = (self.used + amount, self.fixed_used + fixed),
        }
    }
}

/// What a pod requests of the resources that its quota counts.
type Amounts = SmallVec<[(usize, i128); 4]>;

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
        let mut amounts = self.amounts(at, requests);
        amounts.iter_mut().for_each(|(_, amount)| *amount *= times);
        match part {
            Part::Request => {
                let own = self.get_mut(at);
                for (r, amount) in &amounts {
                    own.cells[*r].own.add(*amount, is_fixed, part);
                }
                for (r, amount) in amounts {
                    self.add_request(at, r, amount, if is_fixed { amount } else { 0 });
                }
            }
            Part::Used => {
                self.add_used(at, &amounts, is_fixed);
                self.guarantee(at);
            }
        }
    }

    /// Counts a pod in its own quota alone; [`add_up`](Self::add_up) follows.
    pub(super) fn count_own(&mut self, at: QuotaIdx, requests: &ResourceList, is_fixed: bool, part: Part) {
        let amounts = self.amounts(at, requests);
        let quota = self.get_mut(at);
        for (r, amount) in amounts {
            quota.cells[r].own.add(amount, is_fixed, part);
        }
    }

    /// Returns what counts of a pod of a quota. A resource without a max is not counted.
    fn amounts(&self, at: QuotaIdx, requests: &ResourceList) -> Amounts {
        let cells = self.quotas[at].cells.iter().zip(self.resources.iter()).enumerate();
        let counted = cells.filter(|(_, (cell, _))| cell.max.is_some());
        let amounts = counted.map(|(r, (_, name))| (r, i128::from(requests.amount(name))));
        amounts.filter(|(_, amount)| *amount != 0).collect()
    }

    /// Adds what is used to a quota and to those above it.
    fn add_used(&mut self, at: QuotaIdx, amounts: &Amounts, is_fixed: bool) {
        let mut next = Some(at);
        while let Some(up) = next {
            let quota = self.get_mut(up);
            for (r, amount) in amounts {
                let cell = &mut quota.cells[*r];
                cell.all.add(*amount, is_fixed, Part::Used);
                if up == at {
                    cell.own.add(*amount, is_fixed, Part::Used);
                }
            }
            next = quota.parent;
        }
    }

    /// Adds a request for one resource to a quota, and what follows to those above it: each asks its parent for what it
    /// requests within its limits.
    fn add_request(&mut self, mut at: QuotaIdx, r: usize, mut request: i128, fixed: i128) {
        while request != 0 || fixed != 0 {
            let lends = self.lends(&self.quotas[at]);
            let quota = self.get_mut(at);
            let (cell, parent) = (&mut quota.cells[r], quota.parent);
            let before = i128::from(cell.limited_request(lends));
            cell.all.request += request;
            cell.all.fixed_request += fixed;
            request = i128::from(cell.limited_request(lends)) - before;
            let Some(parent) = parent else { return };
            if request != 0 {
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
        let (order, guarantees) = (self.bottom_up(), self.guarantees_usage);
        for at in 0..self.quotas.len() {
            let cells = &mut self.get_mut(at).cells;
            let allocated = |cell: &Cell| if guarantees { cell.own.used } else { 0 };
            cells.iter_mut().for_each(|cell| (cell.all, cell.allocated) = (cell.own, allocated(cell)));
        }
        for at in order {
            let Some(parent) = self.quotas[at].parent else { continue };
            let lends = self.lends(&self.quotas[at]);
            for r in 0..self.resources.len() {
                let cell = self.quotas[at].cells[r];
                let above = &mut self.get_mut(parent).cells[r];
                above.all.request += i128::from(cell.limited_request(lends));
                above.all.used += cell.all.used;
                above.all.fixed_request += cell.all.fixed_request;
                above.all.fixed_used += cell.all.fixed_used;
                if guarantees {
                    above.allocated += i128::from(cell.guaranteed());
                }
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
