//! What is known about every node for the pods of one shape, and how it catches up with changes.
//!
//! One row per node: the cause that refuses it, or raw scores and their total. A row is computed again
//! only when something it reads changed: the pods on the node (most often), the node object, or the set of
//! nodes. Normalised totals are redone when the greatest raw score moves. A gang of equal members costs one
//! scan and one row per pick. Decisions are the same as with rows made anew each time; a test compares.

use std::sync::Arc;

use super::chain::{self, FilterChain, PluginTally, Prepared};
use super::decision::Refusal;
use super::tournament::Tournament;
use crate::cluster::changes::Changed;
use crate::framework::cause::{CauseId, Causes};
use crate::framework::plugin::{CycleValue, Normalize, Plugin, Reads};
use crate::framework::profile::{Enabled, Profile};
use crate::framework::{Score, View};
use crate::model::time::Probe;
use crate::model::{NodeIdx, PodSpec};

/// What a cycle is about: the profile, the state, the pod's spec, and where to count.
pub struct Subject<'a> {
    /// Profile.
    pub profile: &'a Profile,
    /// State.
    pub view: View<'a>,
    /// Spec of the pod.
    pub spec: &'a PodSpec,
    /// Measures plugins; no decision reads it.
    pub probe: &'a dyn Probe,
}

/// The rows of one shape in one profile.
#[derive(Default)]
pub struct Rows {
    position: Option<(u64, u64)>,
    pub(super) prepared: Prepared,
    pub(super) causes: Causes,
    /// One entry per node slot.
    pub(super) mask: Vec<CauseId>,
    pub(super) n_feasible: usize,
    pub(super) scores: Option<Scores>,
    /// The refusal made of these rows, while they do not change.
    pub(super) refusal: Option<Arc<Refusal>>,
}

/// Scores of the feasible nodes.
pub(super) struct Scores {
    /// One entry per entry of `profile.score`; `None` when the plugin skipped.
    pub(super) values: Vec<Option<CycleValue>>,
    /// Raw scores per entry and slot; empty when skipped.
    pub(super) raw: Vec<Vec<i32>>,
    pub(super) greatest: Vec<Greatest>,
    /// Sum of weighted scores per slot; meaningless for refused nodes.
    pub(super) total: Vec<i64>,
    tree: Tournament,
}

/// The greatest raw score over the feasible nodes, and how many have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Greatest {
    pub(super) raw: i32,
    count: u32,
}

impl Greatest {
    fn add(&mut self, raw: i32) {
        if self.count == 0 || raw > self.raw {
            *self = Self { raw, count: 1 };
        } else if raw == self.raw {
            self.count += 1;
        }
    }

    fn remove(&mut self, raw: i32) {
        if raw == self.raw {
            self.count = self.count.saturating_sub(1);
        }
    }
}

impl Rows {
    /// Brings the rows up to date. `reuse` false makes them anew.
    pub fn sync(&mut self, of: &Subject<'_>, reuse: bool, tally: &mut [PluginTally]) {
        let changes = of.view.cluster().changes();
        let head = changes.head();
        let reusable =
            reuse && self.mask.len() == of.view.cluster().n_slots() && !reads_everything(of.profile);
        let since = self.position.filter(|_| reusable).and_then(|at| changes.since(at));
        match since {
            Some(changed) => {
                let (usage, objects) = distinct(changed);
                if !usage.is_empty() || !objects.is_empty() {
                    self.catch_up(of, usage, objects, tally);
                }
            }
            None => self.rebuild(of, tally),
        }
        self.position = Some(head);
    }

    fn rebuild(&mut self, of: &Subject<'_>, tally: &mut [PluginTally]) {
        self.refusal = None;
        self.scores = None;
        self.causes = Causes::default();
        self.mask.clear();
        self.mask.resize(of.view.cluster().n_slots(), CauseId::ABSENT);
        for node in of.view.nodes() {
            self.mask[node.index()] = CauseId::NOT_EVALUATED;
        }
        self.prepared = chain::prepare(of.profile, of.view, of.spec, tally);
        self.n_feasible = 0;
        if self.prepared.refused.is_none() {
            let mut nodes = match &self.prepared.candidates {
                Some(some) => some.clone(),
                None => of.view.nodes().to_vec(),
            };
            self.filter(of, 0, &mut nodes, tally);
            self.n_feasible = nodes.len();
        }
    }

    fn filter(&mut self, of: &Subject<'_>, from: usize, nodes: &mut Vec<NodeIdx>, tally: &mut [PluginTally]) {
        let chain = FilterChain {
            profile: of.profile,
            view: of.view,
            spec: of.spec,
            values: &self.prepared.values,
            probe: of.probe,
        };
        chain.run(from, nodes, &mut self.causes, &mut self.mask, tally);
    }

    /// Recomputes the rows of some nodes. Both lists are ascending and have no node in common.
    fn catch_up(
        &mut self,
        of: &Subject<'_>,
        usage: Vec<NodeIdx>,
        objects: Vec<NodeIdx>,
        tally: &mut [PluginTally],
    ) {
        if self.prepared.refused.is_some() {
            return;
        }
        self.refusal = None;
        let first_usage = self.first_usage(of);
        let is_candidate = |rows: &Self, n: &NodeIdx| {
            rows.mask[n.index()] != CauseId::ABSENT && rows.mask[n.index()] != CauseId::NOT_EVALUATED
        };
        let mut by_usage: Vec<NodeIdx> = usage
            .into_iter()
            .filter(|n| is_candidate(self, n) && !self.is_refused_before(of.profile, *n, first_usage))
            .collect();
        let mut by_object: Vec<NodeIdx> = objects.into_iter().filter(|n| is_candidate(self, n)).collect();
        let mut touched: Vec<(NodeIdx, bool)> = Vec::with_capacity(by_usage.len() + by_object.len());
        touched.extend(by_usage.iter().chain(&by_object).map(|n| (*n, self.mask[n.index()].is_feasible())));

        self.filter(of, first_usage, &mut by_usage, tally);
        self.filter(of, 0, &mut by_object, tally);
        for (node, was) in &touched {
            let is = self.mask[node.index()].is_feasible();
            self.n_feasible = self.n_feasible + usize::from(is) - usize::from(*was);
        }
        let Some(mut scores) = self.scores.take() else { return };
        scores.catch_up(of, &self.mask, &touched, &by_object, tally);
        self.scores = Some(scores);
    }

    fn first_usage(&self, of: &Subject<'_>) -> usize {
        FilterChain {
            profile: of.profile,
            view: of.view,
            spec: of.spec,
            values: &self.prepared.values,
            probe: of.probe,
        }
        .first_usage()
    }

    /// Whether the node is refused by a plugin before place `first`: what pods take cannot change that.
    fn is_refused_before(&self, profile: &Profile, node: NodeIdx, first: usize) -> bool {
        let Some(cause) = self.causes.get(self.mask[node.index()]) else { return false };
        profile.filter.iter().position(|e| e.plugin.name() == cause.plugin).is_some_and(|at| at < first)
    }

    /// Makes sure the feasible nodes are scored.
    pub(super) fn ensure_scores(&mut self, of: &Subject<'_>, tally: &mut [PluginTally]) -> &mut Scores {
        let mask = &self.mask;
        self.scores.get_or_insert_with(|| Scores::make(of, mask, tally))
    }

    /// Returns the best feasible node by total and tie order. Scores must have been ensured.
    pub(super) fn best(&self) -> Option<(NodeIdx, i64)> {
        let scores = self.scores.as_ref()?;
        let node = scores.tree.best()?;
        Some((node, scores.total[node.index()]))
    }

    /// Iterates over the feasible nodes, ascending.
    pub fn feasible(&self) -> impl Iterator<Item = NodeIdx> {
        let feasible = self.mask.iter().enumerate().filter(|(_, c)| c.is_feasible());
        feasible.map(|(i, _)| NodeIdx(i as u32))
    }

    /// Returns the cause that refuses a node, if one does.
    pub fn cause(&self, node: NodeIdx) -> Option<&crate::framework::Cause> {
        self.causes.get(*self.mask.get(node.index())?)
    }
}

impl Scores {
    fn make(of: &Subject<'_>, mask: &[CauseId], tally: &mut [PluginTally]) -> Self {
        let values = chain::prepare_scores(of.profile, of.view, of.spec);
        let n = mask.len();
        let mut scores = Self {
            raw: values.iter().map(|v| if v.is_some() { vec![0; n] } else { Vec::new() }).collect(),
            greatest: vec![Greatest::default(); values.len()],
            total: vec![0; n],
            tree: Tournament::default(),
            values,
        };
        let feasible: Vec<NodeIdx> =
            (0..n as u32).map(NodeIdx).filter(|i| mask[i.index()].is_feasible()).collect();
        scores.fill(of, &feasible, Reads::Node, tally);
        for i in 0..scores.values.len() {
            scores.find_greatest(i, mask);
        }
        scores.total_all(of, mask);
        scores
    }

    fn active<'a>(&self, of: &Subject<'a>) -> Vec<(usize, &'a dyn Score, CycleValue)> {
        let entries = of.profile.score.iter().enumerate();
        entries.filter_map(|(i, e)| Some((i, e.plugin.score()?, self.values[i].clone()?))).collect()
    }

    /// Fills raw scores of nodes, by the plugins that read at least as much as `least`.
    fn fill(&mut self, of: &Subject<'_>, nodes: &[NodeIdx], least: Reads, tally: &mut [PluginTally]) {
        if nodes.is_empty() {
            return;
        }
        let mut out = Vec::new();
        for (i, plugin, value) in self.active(of).into_iter().filter(|(_, p, _)| p.reads() >= least) {
            let entry = (&of.profile.score[i], plugin, &value);
            chain::score(entry, (of.view, of.spec), nodes, &mut out, tally, of.probe);
            for (node, raw) in nodes.iter().zip(&out) {
                self.raw[i][node.index()] = (*raw).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            }
        }
    }

    fn catch_up(
        &mut self,
        of: &Subject<'_>,
        mask: &[CauseId],
        touched: &[(NodeIdx, bool)],
        by_object: &[NodeIdx],
        tally: &mut [PluginTally],
    ) {
        let normalising: Vec<usize> = self
            .active(of)
            .iter()
            .filter(|(_, p, _)| p.normalize() != Normalize::Identity)
            .map(|(i, ..)| *i)
            .collect();
        let before: Vec<i32> = normalising.iter().map(|i| self.greatest[*i].raw).collect();
        for (node, _) in touched.iter().filter(|(_, was)| *was) {
            for i in &normalising {
                self.greatest[*i].remove(self.raw[*i][node.index()]);
            }
        }
        // Those whose greatest score nobody has any more: another node may have the second greatest.
        let lost: Vec<usize> = normalising.iter().copied().filter(|i| self.greatest[*i].count == 0).collect();
        let is_feasible = |n: &NodeIdx| mask[n.index()].is_feasible();
        let stayed = |(n, was): &(NodeIdx, bool)| *was && is_feasible(n) && !by_object.contains(n);
        let only_usage: Vec<NodeIdx> = touched.iter().filter(|t| stayed(t)).map(|(n, _)| *n).collect();
        let everything: Vec<NodeIdx> =
            touched.iter().filter(|t| is_feasible(&t.0) && !stayed(t)).map(|(n, _)| *n).collect();
        self.fill(of, &only_usage, Reads::Usage, tally);
        self.fill(of, &everything, Reads::Node, tally);
        for (node, _) in touched.iter().filter(|(n, _)| is_feasible(n)) {
            for i in &normalising {
                self.greatest[*i].add(self.raw[*i][node.index()]);
            }
        }
        let mut moved = false;
        for (i, before) in normalising.iter().zip(before) {
            if lost.contains(i) {
                self.find_greatest(*i, mask);
            }
            moved |= self.greatest[*i].raw != before;
        }
        if moved {
            return self.total_all(of, mask);
        }
        for (node, _) in touched {
            self.total[node.index()] = self.total_of(of, *node);
            let total = &self.total;
            self.tree.update(node.index(), is_feasible(node), |a, b| beats(of.view, total, a, b));
        }
    }

    fn find_greatest(&mut self, i: usize, mask: &[CauseId]) {
        let mut greatest = Greatest::default();
        for (raw, _) in self.raw[i].iter().zip(mask).filter(|(_, c)| c.is_feasible()) {
            greatest.add(*raw);
        }
        self.greatest[i] = greatest;
    }

    fn total_all(&mut self, of: &Subject<'_>, mask: &[CauseId]) {
        for (i, _) in mask.iter().enumerate().filter(|(_, c)| c.is_feasible()) {
            self.total[i] = self.total_of(of, NodeIdx(i as u32));
        }
        let total = &self.total;
        self.tree.rebuild(mask.len(), |i| mask[i].is_feasible(), |a, b| beats(of.view, total, a, b));
    }

    fn total_of(&self, of: &Subject<'_>, node: NodeIdx) -> i64 {
        let mut total = 0;
        for (i, enabled) in of.profile.score.iter().enumerate() {
            if let Some((_, weighted)) = self.share(of.profile, i, node, self.greatest[i].raw) {
                debug_assert!(enabled.weight > 0);
                total += weighted;
            }
        }
        total
    }

    /// Returns what entry `i` gives a node: normalised, and times its weight; `None` when it skipped.
    pub(super) fn share(
        &self,
        profile: &Profile,
        i: usize,
        node: NodeIdx,
        greatest: i32,
    ) -> Option<(i64, i64)> {
        self.values[i].as_ref()?;
        let enabled = &profile.score[i];
        let raw = i64::from(self.raw[i][node.index()]);
        let normalized = enabled.plugin.score()?.normalize().apply(raw, i64::from(greatest));
        Some((normalized, normalized * enabled.weight))
    }
}

/// Whether node `a` goes before node `b`: by total, then by the greater tie hash, then by name.
fn beats(view: View<'_>, total: &[i64], a: u32, b: u32) -> bool {
    let (x, y) = (total[a as usize], total[b as usize]);
    x > y || (x == y && wins_tie(view, NodeIdx(a), NodeIdx(b)))
}

/// The order among nodes with equal totals.
pub(super) fn wins_tie(view: View<'_>, a: NodeIdx, b: NodeIdx) -> bool {
    let (a, b) = (view.cluster().slot(a), view.cluster().slot(b));
    a.tie > b.tie || (a.tie == b.tie && a.name < b.name)
}

fn reads_everything(profile: &Profile) -> bool {
    let reads = |list: &[Enabled], of: fn(&dyn Plugin) -> Option<Reads>, what: &[Reads]| {
        list.iter().filter_map(|e| of(&*e.plugin)).any(|r| what.contains(&r))
    };
    // What is prepared per shape is kept with the rows, so it may not depend on the pods of nodes either.
    let (all, kept) = (&[Reads::Everything], &[Reads::Everything, Reads::Usage]);
    reads(&profile.filter, |p| p.filter().map(|f| f.reads()), all)
        || reads(&profile.score, |p| p.score().map(|s| s.reads()), all)
        || reads(&profile.pre_filter, |p| p.pre_filter().map(|f| f.reads()), kept)
        || reads(&profile.pre_score, |p| p.pre_score().map(|s| s.reads()), kept)
}

/// Splits changes into nodes whose pods changed and nodes whose object changed, each once, ascending.
fn distinct(changed: impl Iterator<Item = (NodeIdx, Changed)>) -> (Vec<NodeIdx>, Vec<NodeIdx>) {
    let (mut usage, mut objects) = (Vec::new(), Vec::new());
    for (node, what) in changed {
        match what {
            Changed::Usage => usage.push(node),
            Changed::Object => objects.push(node),
        }
    }
    usage.sort_unstable();
    usage.dedup();
    if !objects.is_empty() {
        objects.sort_unstable();
        objects.dedup();
        usage.retain(|n| objects.binary_search(n).is_err());
    }
    (usage, objects)
}
