//! Changes that could make a quota take a pod that it refuses: other amounts of quotas (`raises`), another quota, pods that
//! end, a smaller request.
//!
//! Each is worked out on a copy of the tree, and a changed quota obeys the rules of the webhook. Whether the pod then has
//! a place is not known here: the core plans each proposal before anybody is told of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_framework::advice::{Change, Proposal};
use pellucid_model::PodSpec;

use super::super::accounting::Part;
use super::super::admission::Lack;
use super::super::args::QuotaArgs;
use super::super::quotas::{Charge, Counted, Quotas};
use super::super::tree::{DEFAULT, QuotaIdx, ROOT, Role, SYSTEM};
use super::standing::Blocked;

/// Cost of a move, in the points of docs/diagnostics.md.
const MOVE: u32 = 30;
/// Number of quotas that are tried for the pod to move to, and number that are proposed.
const MOST_TRIED: usize = 16;
const MOST_MOVES: usize = 2;
/// Largest number of pods that are proposed to end.
const MOST_ENDING: usize = 8;
/// Number of pods of which those that end are chosen, the least important ones.
const MOST_CANDIDATES: usize = 1_000;

/// A refused pod, and by what it is refused.
pub(super) struct Refused<'a> {
    pub(super) quotas: &'a Quotas,
    pub(super) args: &'a QuotaArgs,
    pub(super) spec: &'a PodSpec,
    own: QuotaIdx,
    pub(super) lack: Lack,
    pub(super) blocked: Vec<Blocked>,
    /// All that it lacks, that of `lack` first.
    pub(super) all: Vec<(Lack, Vec<Blocked>)>,
}

impl Quotas {
    /// Returns changes with which the quota of a refused pod would take it.
    pub(super) fn proposals(&self, args: &QuotaArgs, spec: &PodSpec) -> Vec<Proposal> {
        let Some(lack) = self.lack(args, spec) else { return Vec::new() };
        let (own, blocked) = (self.quota_of(spec), self.blocked(args, spec, lack));
        let all = self.lacks_with_amounts(args, spec);
        let refused = Refused { quotas: self, args, spec, own, lack, blocked, all };
        let mut all = refused.raises();
        all.extend(refused.moves());
        all.extend(refused.ends_of_others());
        all.extend(refused.ends_below(lack.quota));
        all.extend(refused.smaller());
        all
    }

    /// Works out all sums and shares anew.
    pub(super) fn resettled(&mut self) {
        self.tree.add_up();
        self.tree.refresh(&self.totals, self.args.scales_min);
    }
}

impl Refused<'_> {
    /// Returns other quotas that would take the pod, those with the most room within their mins first.
    fn moves(&self) -> Vec<Proposal> {
        let tree = &self.quotas.tree;
        let room = |at: QuotaIdx| {
            let asked = self.quotas.asked(at, self.spec);
            let left = asked.map(|(r, amount)| {
                let (cell, amount) = (&tree.get(at).cells[r], i128::from(amount));
                let left = |of: i64| (i128::from(of) - cell.all.used - amount) * 1000 / amount;
                (left(cell.max.unwrap_or(0)), left(cell.floor()))
            });
            left.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).filter(|(max, _)| *max >= 0).map(|(_, min)| min)
        };
        let takes_pods = |at: &QuotaIdx| {
            let quota = tree.get(*at);
            let is_parent = quota.object.as_ref().is_none_or(|object| object.is_parent);
            *at != self.own && quota.role == Role::Ordinary && quota.children.is_empty() && !is_parent
        };
        let mut others: Vec<(Reverse<i128>, QuotaIdx)> = (0..tree.quotas.len())
            .filter(takes_pods)
            .filter_map(|at| room(at).map(|room| (Reverse(room), at)))
            .collect();
        others.sort_by(|a, b| (a.0, &tree.get(a.1).name).cmp(&(b.0, &tree.get(b.1).name)));
        let others = others.into_iter().take(MOST_TRIED).filter(|(_, at)| self.takes_it(*at));
        others.take(MOST_MOVES).map(|(_, at)| self.moved_to(at)).collect()
    }

    /// Returns whether a quota takes the pod if the pod belongs to it.
    fn takes_it(&self, at: QuotaIdx) -> bool {
        let mut quotas = self.quotas.clone();
        let is_fixed = quotas.is_fixed(self.spec);
        let list = &self.spec.requests.list;
        quotas.tree.count(self.own, list, is_fixed, Part::Request, -1);
        quotas.tree.count(at, list, is_fixed, Part::Request, 1);
        quotas.resettled();
        quotas.lack_in(self.args, at, self.spec).is_none()
    }

    fn moved_to(&self, at: QuotaIdx) -> Proposal {
        let name = self.quotas.tree.get(at).name.clone();
        Proposal {
            text: format!("move it to quota {name}"),
            change: Change::Label { key: keys::NAME.into(), value: name },
            cost: MOVE,
        }
    }

    /// Returns pods of the quotas that borrow what the pod lacks, or else of any that share it, or of the built-in ones,
    /// whose pods come off what is shared, so that the runtime is enough once they have ended.
    fn ends_of_others(&self) -> Option<Proposal> {
        let quotas = self.quotas;
        let (mut borrowers, mut others, mut is_cut_at_root) = (Vec::new(), Vec::new(), false);
        let shared = self.blocked.iter().filter(|_| !self.lack.is_fixed);
        for (at, r) in shared.flat_map(|of| self.shared_at(of.r)) {
            let Some(parent) = quotas.tree.get(at).parent else { continue };
            is_cut_at_root |= parent == ROOT;
            let loans = quotas.loans(parent, r);
            let siblings = quotas.tree.get(parent).children.iter().enumerate().filter(|(_, c)| **c != at);
            for (i, sibling) in siblings {
                let found = if loans.borrowed[i] > 0 { &mut borrowers } else { &mut others };
                found.extend(quotas.below(*sibling));
            }
        }
        let of_borrowers = self.ends(|charge| borrowers.contains(&charge.quota));
        others.extend(borrowers.iter().copied());
        let is_other = |charge: &Charge| others.contains(&charge.quota);
        let is_built_in = |charge: &Charge| [SYSTEM, DEFAULT].contains(&charge.quota);
        let of_any = || self.ends(|charge| is_other(charge) || is_built_in(charge));
        of_borrowers.or_else(|| self.ends(is_other)).or_else(|| is_cut_at_root.then(of_any).flatten())
    }

    /// Returns the quotas whose share among their siblings keeps the pod's from more of a resource: the one where its
    /// request is cut, or, where that one has its max, those below it that share what it has.
    fn shared_at(&self, r: usize) -> Vec<(QuotaIdx, usize)> {
        let up = || self.quotas.tree.upwards(self.lack.quota);
        match self.quotas.limit_of(self.lack.quota, r) {
            Some((limit, "share")) => vec![(limit, r)],
            Some((limit, "max")) => up().take_while(|at| *at != limit).map(|at| (at, r)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns pods of a quota, so that what is left of it is enough once they have ended.
    fn ends_below(&self, at: QuotaIdx) -> Option<Proposal> {
        let below = self.quotas.below(at);
        self.ends(|charge| below.contains(&charge.quota))
    }

    /// Returns the fewest pods of some quotas whose end is enough, the least important ones.
    fn ends(&self, is_of: impl Fn(&Charge) -> bool) -> Option<Proposal> {
        let quotas = self.quotas;
        let helps = |charge: &Charge| self.blocked.iter().any(|of| quotas.uses(charge, of.r) > 0);
        let going = |counted: &&Arc<Counted>| {
            let used = counted.used().filter(|used| is_of(used) && helps(used));
            used.is_some_and(|used| self.all.iter().any(|(lack, _)| lack.is_fixed == used.is_fixed))
                && !counted.is_deleting
                && !counted.is_stand_in
                && counted.can_leave
        };
        let mut pods: Vec<&Arc<Counted>> = quotas.pods.iter().flatten().filter(going).collect();
        pods.sort_by_key(|counted| {
            (counted.priority, Reverse(counted.started.unwrap_or(i64::MAX)), Reverse(counted.key.clone()))
        });
        pods.truncate(MOST_CANDIDATES);
        let n = (1..=pods.len().min(MOST_ENDING)).find(|n| self.fits_without(&pods[..*n]))?;
        let mut needed: Vec<&Arc<Counted>> = pods[..n].to_vec();
        // From the most important one back, each that can stay stays.
        for at in (0..needed.len()).rev() {
            let mut fewer = needed.clone();
            fewer.remove(at);
            if !fewer.is_empty() && self.fits_without(&fewer) {
                needed = fewer;
            }
        }
        let keys = needed.into_iter().map(|counted| counted.key.clone()).collect();
        Some(Proposal { change: Change::End(keys), text: String::new(), cost: 0 })
    }

    fn fits_without(&self, pods: &[&Arc<Counted>]) -> bool {
        let mut quotas = self.quotas.clone();
        for counted in pods {
            for part in [Part::Request, Part::Used] {
                if let Some(charge) = counted.of(part) {
                    quotas.tree.count(charge.quota, charge.list(), charge.is_fixed, part, -1);
                }
            }
        }
        quotas.resettled();
        quotas.lack(self.args, self.spec).is_none()
    }

    /// Returns the request that the quota takes as it is, if it is more than nothing of each resource.
    fn smaller(&self) -> Option<Proposal> {
        let mut least: BTreeMap<usize, i64> = BTreeMap::new();
        for of in self.all.iter().flat_map(|(_, blocked)| blocked) {
            let left = of.limit.saturating_sub(of.used);
            least.entry(of.r).and_modify(|least| *least = left.min(*least)).or_insert(left);
        }
        let amount =
            |(r, left): (usize, i64)| (left > 0).then(|| (self.quotas.tree.resources[r].clone(), left));
        let amounts = least.into_iter().map(amount).collect::<Option<Vec<_>>>()?;
        Some(Proposal { change: Change::Request(amounts), text: String::new(), cost: 0 })
    }
}
