//! What is known about every node for the pods of one shape, and how it catches up with changes.
//!
//! One row per node: the cause that refuses it, or raw scores and their total. A row is computed again
//! only when something it reads changed: the pods on the node (most often), the node object, or the set of
//! nodes. Normalised totals are redone when the greatest raw score moves. A gang of equal members costs one
//! scan and one row per pick. Plugins that read anything else (other nodes' pods, volumes) and nominations are
//! not in here: see `attempt`. Decisions are the same as with rows made anew each time; a test compares.

use std::sync::Arc;

use pellucid_cluster::changes::Changed;
use pellucid_framework::View;
use pellucid_framework::profile::Profile;
use pellucid_model::cause::{CauseId, Causes};
use pellucid_model::time::Probe;
use pellucid_model::{NodeIdx, PodSpec};
use pellucid_recording::Refusal;

use crate::attempt::chain::{self, FilterChain, PluginTally, Prepared};
use crate::attempt::global_plugins::{Attempt, Globals};
use crate::attempt::scores::{Scores, Touched};

/// What a cycle is about: the profile, the state, the pod's spec, and where to count.
pub struct CycleContext<'a> {
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
pub struct NodeResultCache {
    position: Option<(u64, u64)>,
    pub(crate) prepared: Prepared,
    pub(crate) causes: Causes,
    /// One entry per node slot.
    pub(crate) mask: Vec<CauseId>,
    pub(crate) n_feasible: usize,
    /// The feasible nodes, ascending, while `listed`.
    feasible: Vec<NodeIdx>,
    listed: bool,
    pub(crate) scores: Option<Scores>,
    /// The place of the first active filter that looks at more than the node object.
    first_usage: usize,
    /// Per cause, whether its plugin comes before that place.
    lasting: Vec<bool>,
    /// Nodes in tie order, for sampled searches.
    pub(crate) order: Vec<NodeIdx>,
    /// The feasible nodes that the last search found, when it was a sampled one.
    pub(crate) sample: Vec<NodeIdx>,
    scratch: Scratch,
    /// The refusal made of these rows, while they do not change.
    pub(crate) refusal: Option<Arc<Refusal>>,
    pub(crate) globals: Globals,
    /// What holds for the attempt under way besides the rows, when there is anything.
    pub(crate) attempt: Option<Attempt>,
    /// Whether a plugin that may read anything had something to say about the last attempt.
    pub(crate) reads_others: bool,
    /// Work done since it was last taken; see `work`.
    pub(crate) work: u64,
}

/// Lists that are filled at each catching up, kept for their room.
#[derive(Default)]
struct Scratch {
    /// Nodes whose pods changed, one bit each.
    usage: Vec<u64>,
    /// Nodes whose object changed, ascending.
    objects: Vec<NodeIdx>,
    by_usage: Vec<NodeIdx>,
    by_object: Vec<NodeIdx>,
    touched: Vec<Touched>,
}

impl Scratch {
    fn collect(&mut self, changed: impl Iterator<Item = (NodeIdx, Changed)>, n_slots: usize) {
        self.usage.clear();
        self.usage.resize(n_slots.div_ceil(64), 0);
        self.objects.clear();
        for (node, what) in changed {
            match what {
                Changed::Usage => self.usage[node.index() / 64] |= 1 << (node.index() % 64),
                Changed::Object => self.objects.push(node),
            }
        }
        self.objects.sort_unstable();
        self.objects.dedup();
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.usage.iter().all(|word| *word == 0)
    }
}

fn for_each_bit(words: &[u64], mut each: impl FnMut(NodeIdx)) {
    for (i, word) in words.iter().enumerate() {
        let mut left = *word;
        while left != 0 {
            each(NodeIdx((i * 64) as u32 + left.trailing_zeros()));
            left &= left - 1;
        }
    }
}

fn is_candidate(cause: CauseId) -> bool {
    cause != CauseId::ABSENT && cause != CauseId::NOT_EVALUATED
}

impl NodeResultCache {
    /// Brings the rows up to date. `reuse` false makes them anew.
    pub fn run_filters(&mut self, ctx: &CycleContext<'_>, reuse: bool, tally: &mut [PluginTally]) {
        let changes = ctx.view.cluster().changes();
        let head = changes.head();
        let reusable = reuse && self.mask.len() == ctx.view.cluster().n_slots();
        let since = self.position.filter(|_| reusable).and_then(|at| changes.since(at));
        match since {
            Some(changed) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.collect(changed, self.mask.len());
                if !scratch.is_empty() {
                    self.catch_up(ctx, &mut scratch, tally);
                }
                self.scratch = scratch;
            }
            None => self.rebuild(ctx, None, tally),
        }
        self.position = Some(head);
    }

    /// Makes the row of one node anew; the others count as not looked at. For questions about that node alone.
    pub(crate) fn look_at(&mut self, ctx: &CycleContext<'_>, node: NodeIdx, tally: &mut [PluginTally]) {
        self.rebuild(ctx, Some(node), tally);
        self.position = None;
    }

    fn rebuild(&mut self, ctx: &CycleContext<'_>, only: Option<NodeIdx>, tally: &mut [PluginTally]) {
        self.refusal = None;
        self.listed = false;
        self.scores = None;
        self.causes = Causes::default();
        self.lasting.clear();
        self.order.clear();
        self.mask.clear();
        self.mask.resize(ctx.view.cluster().n_slots(), CauseId::ABSENT);
        for node in ctx.view.nodes() {
            self.mask[node.index()] = CauseId::NOT_EVALUATED;
        }
        self.globals = Globals::of(ctx.profile);
        let local = chain::places(ctx.profile, |e| !chain::filters_globally(e));
        self.prepared = chain::prepare(&local, ctx.profile, ctx.view, ctx.spec, tally);
        self.n_feasible = 0;
        if self.prepared.refused.is_none() {
            let mut nodes = match &self.prepared.candidates {
                Some(some) => some.clone(),
                None => ctx.view.nodes().to_vec(),
            };
            nodes.retain(|node| only.is_none_or(|only| *node == only));
            self.work += nodes.len() as u64;
            self.first_usage = self.chain(ctx).first_usage();
            self.filter(ctx, 0, &mut nodes, tally);
            self.n_feasible = nodes.len();
        }
    }

    fn chain<'a>(&'a self, ctx: &CycleContext<'a>) -> FilterChain<'a> {
        FilterChain {
            profile: ctx.profile,
            view: ctx.view,
            spec: ctx.spec,
            values: self.prepared.values(),
            probe: ctx.probe,
        }
    }

    fn filter(
        &mut self,
        ctx: &CycleContext<'_>,
        from: usize,
        nodes: &mut Vec<NodeIdx>,
        tally: &mut [PluginTally],
    ) {
        let chain = FilterChain {
            profile: ctx.profile,
            view: ctx.view,
            spec: ctx.spec,
            values: self.prepared.values(),
            probe: ctx.probe,
        };
        chain.run(from, nodes, &mut self.causes, &mut self.mask, tally);
        for (_, cause) in self.causes.iter().skip(self.lasting.len()) {
            let at = ctx.profile.filter.iter().position(|e| e.plugin.name() == cause.plugin);
            self.lasting.push(at.is_some_and(|at| at < self.first_usage));
        }
    }

    /// Recomputes the rows of changed nodes.
    fn catch_up(&mut self, ctx: &CycleContext<'_>, scratch: &mut Scratch, tally: &mut [PluginTally]) {
        if self.prepared.refused.is_some() {
            return;
        }
        let Scratch { usage, objects, by_usage, by_object, touched } = scratch;
        touched.clear();
        by_usage.clear();
        for_each_bit(usage, |node| {
            let cause = self.mask[node.index()];
            // What a plugin refused that does not look at pods stays refused.
            let lasts = cause.is_cause() && self.lasting.get(usize::from(cause.0) - 1) == Some(&true);
            if !lasts && is_candidate(cause) && objects.binary_search(&node).is_err() {
                by_usage.push(node);
                touched.push(Touched { node, was: cause.is_feasible(), object: false });
            }
        });
        by_object.clear();
        for node in objects.iter().filter(|n| is_candidate(self.mask[n.index()])) {
            by_object.push(*node);
            touched.push(Touched { node: *node, was: self.mask[node.index()].is_feasible(), object: true });
        }
        if touched.is_empty() {
            return;
        }
        self.work += touched.len() as u64;
        self.refusal = None;
        self.filter(ctx, self.first_usage, by_usage, tally);
        self.filter(ctx, 0, by_object, tally);
        for row in touched.iter() {
            let is = self.mask[row.node.index()].is_feasible();
            self.n_feasible = self.n_feasible + usize::from(is) - usize::from(row.was);
            self.listed &= is == row.was;
        }
        if let Some(scores) = &mut self.scores {
            scores.catch_up(ctx, &self.mask, touched, tally);
        }
    }

    /// Makes sure the feasible nodes are scored.
    pub(crate) fn run_scores(&mut self, ctx: &CycleContext<'_>, tally: &mut [PluginTally]) -> &mut Scores {
        if self.scores.is_none() {
            self.work += self.n_feasible as u64;
        }
        let mask = &self.mask;
        self.scores.get_or_insert_with(|| Scores::make(ctx, mask, tally))
    }

    /// Returns the best feasible node by total and tie order, when they are scored.
    pub(crate) fn best(&mut self, ctx: &CycleContext<'_>) -> Option<(NodeIdx, i64)> {
        self.scores.as_mut()?.best(ctx)
    }

    /// Returns the cause of every node slot as the attempt has it, and the table behind the ids.
    pub(crate) fn current(&self) -> (&[CauseId], &Causes) {
        match &self.attempt {
            Some(attempt) => (&attempt.mask, &attempt.causes),
            None => (&self.mask, &self.causes),
        }
    }

    /// Iterates over the feasible nodes, ascending.
    pub fn feasible(&self) -> impl Iterator<Item = NodeIdx> {
        let feasible = self.current().0.iter().enumerate().filter(|(_, c)| c.is_feasible());
        feasible.map(|(i, _)| NodeIdx(i as u32))
    }

    /// Returns why PreFilter refuses the pod as a whole, if it does.
    pub(crate) fn refused_as_a_whole(&self) -> Option<&pellucid_framework::Cause> {
        let of_attempt = self.attempt.as_ref().and_then(|a| a.refused.as_ref());
        of_attempt.or(self.prepared.refused.as_ref().map(|(_, cause)| cause))
    }

    /// Takes the list of the feasible nodes, to be given back with [`Self::give_feasible`]. It is made when
    /// it is not known, which most changes leave it.
    pub(crate) fn take_feasible(&mut self) -> Vec<NodeIdx> {
        let mut list = std::mem::take(&mut self.feasible);
        if !self.listed || self.attempt.is_some() {
            list.clear();
            list.extend(self.feasible());
        }
        list
    }

    pub(crate) fn give_feasible(&mut self, list: Vec<NodeIdx>) {
        self.listed = self.attempt.is_none();
        self.feasible = list;
    }

    /// Whether a slot has no node object.
    pub(crate) fn is_absent(&self, node: NodeIdx) -> bool {
        self.mask.get(node.index()).is_none_or(|cause| *cause == CauseId::ABSENT)
    }

    /// Returns the cause that refuses a node, if one does.
    pub fn cause(&self, node: NodeIdx) -> Option<&pellucid_framework::Cause> {
        let (mask, causes) = self.current();
        causes.get(*mask.get(node.index())?)
    }
}

/// The order among nodes with equal totals: the greater tie hash first, then by name.
pub fn tie_order(view: View<'_>, a: NodeIdx, b: NodeIdx) -> std::cmp::Ordering {
    let (a, b) = (view.cluster().slot(a), view.cluster().slot(b));
    b.tie.cmp(&a.tie).then_with(|| a.name.cmp(&b.name))
}
