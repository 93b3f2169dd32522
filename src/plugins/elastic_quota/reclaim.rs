//! Reclaim: a quota below its min takes back, at scheduling time, what others borrowed. On with argument
//! `enableReclaim`.
//!
//! A pod that fits within its quota's min and finds no node takes the room of pods whose quota is above its runtime. The
//! quota that is furthest above is asked first. Of a quota no more goes than what it has beyond both its min and its
//! runtime, so nobody is pushed below a min, and what was taken back is not taken back again: the quota that lost pods is
//! no longer above its runtime, and the one that gained them is within its min. Priorities do not matter, except for the
//! order among the victims.

use std::cmp::Reverse;

use pellucid_cluster::PodRecord;
use pellucid_framework::plugin::{Evaluator, Plugin, PostFilter};
use pellucid_framework::post_filter::{PostFiltered, Preemptor};
use pellucid_framework::victim_search::{self, VictimRules};
use pellucid_framework::{Cause, View};
use pellucid_model::{NodeIdx, PodSpec};

use super::ElasticQuotaPlugin;
use super::quotas::{Charge, Quotas};
use super::tree::{QuotaIdx, Role};

/// The search for victims in one quota.
struct Reclaim<'a> {
    plugin: &'a ElasticQuotaPlugin,
    from: QuotaIdx,
}

/// Takes back room for a pod. Returns what was found, `None` when there is nothing to take back.
pub(super) fn post_filter(
    plugin: &ElasticQuotaPlugin,
    evaluator: &mut dyn Evaluator,
) -> Option<PostFiltered> {
    let lenders = {
        let view = evaluator.view();
        let quotas = view.state::<Quotas>()?;
        let spec = &view.cluster().pod(evaluator.pod())?.pod.spec;
        quotas.lenders_of(spec)
    };
    lenders.into_iter().find_map(|from| {
        let found = victim_search::post_filter(&Reclaim { plugin, from }, evaluator);
        matches!(found, PostFiltered::Nominate(_)).then_some(found)
    })
}

impl Quotas {
    /// Returns the quotas from which a pod may take back room, the one furthest above its share first; none when its
    /// own quota would not stay within its min.
    pub(super) fn lenders_of(&self, spec: &PodSpec) -> Vec<QuotaIdx> {
        let own = self.quota_of(spec);
        let cells = &self.tree.get(own).cells;
        let is_within = |(r, amount): (usize, i64)| {
            cells[r].all.used + i128::from(amount) <= i128::from(cells[r].scaled_min)
        };
        let asked: Vec<(usize, i64)> = self.asked(own, spec).collect();
        if asked.is_empty()
            || self.tree.get(own).role != Role::Ordinary
            || !asked.iter().copied().all(is_within)
        {
            return Vec::new();
        }
        let tree = &self.tree.get(own).tree;
        let is_other = |at: &QuotaIdx| {
            let quota = self.tree.get(*at);
            *at != own && quota.role == Role::Ordinary && quota.children.is_empty() && quota.tree == *tree
        };
        let mut above: Vec<(Reverse<i128>, QuotaIdx)> = (0..self.tree.quotas.len())
            .filter(is_other)
            .map(|at| (Reverse(asked.iter().map(|(r, _)| self.reclaimable(at, *r)).max().unwrap_or(0)), at))
            .filter(|(Reverse(amount), _)| *amount > 0)
            .collect();
        above.sort_by(|a, b| (a.0, &self.tree.get(a.1).name).cmp(&(b.0, &self.tree.get(b.1).name)));
        above.into_iter().map(|(_, at)| at).collect()
    }

    /// Returns what a quota has beyond its share, and beyond its min.
    pub(super) fn reclaimable(&self, at: QuotaIdx, r: usize) -> i128 {
        let cell = &self.tree.get(at).cells[r];
        cell.all.used - i128::from(cell.runtime.max(cell.floor()))
    }

    /// Returns whether a pod may go so that its quota, without it and the less important pods on its node, keeps its
    /// share of what the preemptor asks for.
    fn may_be_reclaimed(&self, view: View<'_>, victim: &PodRecord, from: QuotaIdx, asks: &PodSpec) -> bool {
        let Some(node) = victim.node else { return false };
        let cluster = view.cluster();
        let rank = |record: &PodRecord| {
            let pod = &record.pod;
            (pod.priority, Reverse(pod.started.unwrap_or(i64::MAX)), Reverse(pod.key.clone()))
        };
        let own = rank(victim);
        let goes_before = |record: &&PodRecord| {
            self.quota_of(&record.pod.spec) == from && !self.is_fixed(&record.pod.spec) && rank(record) <= own
        };
        let on_node = || cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id)).filter(goes_before);
        let is_above = |r: &usize| self.reclaimable(from, *r) > 0;
        let mut asked = self.asked(self.quota_of(asks), asks).map(|(r, _)| r).filter(is_above);
        asked.all(|r| {
            let going = on_node().map(|record| self.uses_of(&record.pod.spec, from, r)).sum::<i128>();
            going <= self.reclaimable(from, r)
        })
    }

    fn uses_of(&self, spec: &std::sync::Arc<PodSpec>, quota: QuotaIdx, r: usize) -> i128 {
        self.uses(&Charge { quota, spec: spec.clone(), taken: None, is_fixed: false }, r)
    }
}

impl Plugin for Reclaim<'_> {
    fn name(&self) -> &'static str {
        self.plugin.name()
    }
}

impl PostFilter for Reclaim<'_> {
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered {
        victim_search::post_filter(self, evaluator)
    }

    fn condition(&self, view: View<'_>, preemptor: &Preemptor<'_>, node: NodeIdx) -> Result<(), Cause> {
        self.plugin.condition(view, preemptor, node)
    }
}

impl VictimRules for Reclaim<'_> {
    fn may_be_victim(&self, view: View<'_>, preemptor: &Preemptor<'_>, victim: &PodRecord) -> bool {
        view.state::<Quotas>().is_some_and(|quotas| {
            quotas.quota_of(&victim.pod.spec) == self.from
                && quotas.may_be_reclaimed(view, victim, self.from, &preemptor.pod.spec)
        })
    }
}
