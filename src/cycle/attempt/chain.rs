//! Runs a profile's plugins over sets of nodes, and counts their calls.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::Score;
use pellucid_framework::plugin::{CycleValue, Nodes, PreFiltered, PreScored, Reads};
use pellucid_framework::profile::{Enabled, Profile};
use pellucid_model::NodeIdx;
use pellucid_model::cause::{Cause, CauseId, Causes, Code, Reason};
use smallvec::SmallVec;

use crate::attempt::alignment;
use crate::attempt::node_result_cache::CycleContext;

/// Counters of one plugin, for its `stats` endpoint and `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PluginTally {
    /// Pods that PreFilter refused as a whole.
    pub pods_refused: u64,
    /// Calls of Filter, each for a set of nodes.
    pub filter_calls: u64,
    /// Nodes that were passed to Filter.
    pub nodes_filtered: u64,
    /// Nodes that Filter or topology hints refused.
    pub nodes_refused: u64,
    /// Calls of Score, each for a set of nodes.
    pub score_calls: u64,
    /// Nodes that were passed to Score.
    pub nodes_scored: u64,
    /// Time spent in Filter, Score and topology hints, in nanoseconds; that of all hints counts for the first provider.
    pub nanos: u64,
}

/// The results of PreFilter for a pod.
#[derive(Clone, Default)]
pub(crate) struct Prepared {
    /// Values by index in `profile.filter`, ascending; plugins that skip or were not asked have none.
    pub(crate) values: SmallVec<[(usize, CycleValue); 4]>,
    /// The only nodes to evaluate, if plugins restricted them.
    pub(crate) candidates: Option<Vec<NodeIdx>>,
    /// The plugins that restricted them, by their index in the profile.
    pub(crate) restricting: SmallVec<[usize; 2]>,
    /// Why the pod is refused as a whole, by the plugin at this index of `profile.pre_filter`.
    pub(crate) refused: Option<(usize, Cause)>,
    /// Whether a plugin had something to say of the pod.
    pub(crate) is_concerned: bool,
}

/// The plugins to run, each by its index in `profile.pre_filter` and in `profile.filter`. Those without a PreFilter
/// come first, the others in the order of PreFilter.
pub(crate) type Places = SmallVec<[(Option<usize>, Option<usize>); 8]>;

/// Returns the indices of the plugins for which `is_asked` holds.
pub(crate) fn places(profile: &Profile, is_asked: impl Fn(&Enabled) -> bool) -> Places {
    let same = |list: &[Enabled], index: usize| list.iter().position(|e| e.index == index);
    let bare =
        profile.filter.iter().enumerate().filter(|(_, e)| same(&profile.pre_filter, e.index).is_none());
    let bare = bare.filter(|(_, e)| is_asked(e)).map(|(at, _)| (None, Some(at)));
    let asked = profile.pre_filter.iter().enumerate().filter(|(_, e)| is_asked(e));
    bare.chain(asked.map(|(place, e)| (Some(place), same(&profile.filter, e.index)))).collect()
}

/// Whether a plugin's filter must run at every attempt. The values of PreFilter are cached per shape, so they must not
/// depend on the pods on nodes either.
pub(crate) fn filters_globally(enabled: &Enabled) -> bool {
    let filter = enabled.plugin.filter().map(|f| f.reads());
    let prepared = enabled.plugin.pre_filter().map(|f| f.reads());
    filter == Some(Reads::Everything) || matches!(prepared, Some(Reads::Everything | Reads::Usage))
}

/// Whether a plugin's score must run at every attempt.
pub(crate) fn scores_globally(enabled: &Enabled) -> bool {
    let score = enabled.plugin.score().map(|s| s.reads());
    let prepared = enabled.plugin.pre_score().map(|s| s.reads());
    score == Some(Reads::Everything) || matches!(prepared, Some(Reads::Everything | Reads::Usage))
}

/// Returns the value for plugins without a PreFilter or PreScore.
fn no_value() -> CycleValue {
    Arc::new(())
}

/// Runs PreFilter of some plugins. A pod that has nothing to do with them costs no memory.
pub(crate) fn prepare(places: &Places, ctx: &CycleContext<'_>, tally: &mut [PluginTally]) -> Prepared {
    let mut prepared = Prepared::default();
    // The first plugin that restricts the pod, and whether one of them names no node that is there.
    let (mut first, mut names_missing) = (None, false);
    for (place, at) in places.iter().copied() {
        let Some(place) = place else {
            if at.is_some_and(|at| ctx.aside.has(&ctx.profile.filter[at])) {
                continue;
            }
            prepared.is_concerned = true;
            prepared.values.extend(at.map(|at| (at, no_value())));
            continue;
        };
        let enabled = &ctx.profile.pre_filter[place];
        if ctx.aside.has(enabled) {
            continue;
        }
        let Some(plugin) = enabled.plugin.pre_filter() else { continue };
        let prefiltered = match plugin.pre_filter(ctx.view, ctx.spec) {
            PreFiltered::Refused(cause) => PreFiltered::Refused(cause),
            passed => ctx.refused_beside_nominees(plugin).map_or(passed, PreFiltered::Refused),
        };
        match prefiltered {
            PreFiltered::Skip => {}
            PreFiltered::Ready { value, nodes } => {
                prepared.is_concerned = true;
                if let Some(nodes) = nodes {
                    prepared.restricting.push(enabled.index);
                    first = first.or(Some((place, enabled.plugin.name())));
                    names_missing |= nodes.is_empty();
                    match &mut prepared.candidates {
                        None => prepared.candidates = Some(nodes),
                        Some(known) => known.retain(|n| nodes.binary_search(n).is_ok()),
                    }
                }
                prepared.values.extend(at.map(|at| (at, value)));
            }
            PreFiltered::Refused(cause) => {
                tally[enabled.index].pods_refused += 1;
                // What no preemption resolves stands before what one may resolve, whichever plugin comes first.
                if cause.code == Code::UnschedulableAndUnresolvable {
                    prepared.refused = Some((place, cause));
                    return prepared;
                }
                prepared.refused.get_or_insert((place, cause));
            }
        }
    }
    prepared.values.sort_by_key(|(at, _)| *at);
    let is_left = prepared.candidates.as_ref().is_none_or(|nodes| !nodes.is_empty());
    if let Some((place, plugin)) = first.filter(|_| prepared.refused.is_none() && !is_left) {
        let code = if names_missing { ReasonCode::NamedNodesMissing } else { ReasonCode::PluginsDisagree };
        prepared.refused = Some((place, left_no_node(ctx.profile, code, plugin, &prepared.restricting)));
    }
    prepared
}

/// Returns the cause of a pod that plugins, given by their indices, restrict to no node that is there.
pub(crate) fn left_no_node(
    profile: &Profile,
    code: ReasonCode,
    plugin: &'static str,
    restricting: &[usize],
) -> Cause {
    let names = plugin_names(profile, restricting).join(" ");
    Cause::new(plugin, Code::UnschedulableAndUnresolvable, Reason::about(code, &*names))
}

/// Returns the names of plugins, given by their indices, sorted.
pub(crate) fn plugin_names(profile: &Profile, plugins: &[usize]) -> Vec<&'static str> {
    let mut names: Vec<&str> = plugins.iter().map(|at| profile.plugins[*at].name()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The filters of a profile with their PreFilter values, for one evaluation.
pub(crate) struct FilterChain<'a> {
    pub(crate) ctx: &'a CycleContext<'a>,
    /// Values by index in `profile.filter`, ascending.
    pub(crate) values: &'a [(usize, CycleValue)],
}

impl FilterChain<'_> {
    /// Returns the index of the first active filter that reads more than the node object, or `usize::MAX`.
    pub(crate) fn first_usage(&self) -> usize {
        let filters = &self.ctx.profile.filter;
        let looks = |at: &usize| filters[*at].plugin.filter().is_some_and(|f| f.reads() >= Reads::Usage);
        self.values.iter().map(|(at, _)| *at).find(looks).unwrap_or(usize::MAX)
    }

    /// Removes from `nodes` those that a filter from index `from` on refuses, and writes their causes to `mask`.
    pub(crate) fn run(
        &self,
        from: usize,
        nodes: &mut Vec<NodeIdx>,
        causes: &mut Causes,
        mask: &mut [CauseId],
        tally: &mut [PluginTally],
    ) {
        for node in nodes.iter() {
            mask[node.index()] = CauseId::FEASIBLE;
        }
        for (at, value) in self.values.iter().skip_while(|(at, _)| *at < from) {
            let enabled = &self.ctx.profile.filter[*at];
            let Some(filter) = enabled.plugin.filter() else { continue };
            if nodes.is_empty() {
                return;
            }
            let before = nodes.len();
            let start = self.ctx.probe.nanos();
            filter.filter(self.ctx.view, self.ctx.spec, value, &mut Nodes::new(nodes, causes, mask));
            let tally = &mut tally[enabled.index];
            tally.nanos += self.ctx.probe.nanos().saturating_sub(start);
            tally.filter_calls += 1;
            tally.nodes_filtered += before as u64;
            tally.nodes_refused += (before - nodes.len()) as u64;
        }
    }
}

/// Runs PreScore of the plugins whose scores are cached. Returns one entry per entry of `profile.score`: `None` for
/// plugins that skip, and for those whose scores are not cached.
pub(crate) fn prepare_scores(ctx: &CycleContext<'_>, nodes: &[NodeIdx]) -> Vec<Option<CycleValue>> {
    let prepare = |enabled: &Enabled| {
        if scores_globally(enabled) {
            return None;
        }
        let pre_score = ctx.profile.pre_score.iter().find(|p| p.index == enabled.index);
        prepare_score(pre_score, ctx, nodes)
    };
    ctx.profile.score.iter().map(prepare).collect()
}

/// Runs a plugin's PreScore, if it has one. Returns `None` if the plugin skips.
pub(crate) fn prepare_score(
    pre_score: Option<&Enabled>,
    ctx: &CycleContext<'_>,
    nodes: &[NodeIdx],
) -> Option<CycleValue> {
    let pre_score = pre_score.and_then(|enabled| enabled.plugin.pre_score());
    match pre_score.map(|p| p.pre_score(ctx.view, ctx.spec, nodes)) {
        None => Some(no_value()),
        Some(PreScored::Skip) => None,
        Some(PreScored::Ready(value)) => Some(value),
    }
}

/// Runs Score of a plugin.
pub(crate) fn score(
    by: (&Enabled, &dyn Score, &CycleValue),
    ctx: &CycleContext<'_>,
    nodes: &[NodeIdx],
    out: &mut Vec<i64>,
    tally: &mut [PluginTally],
) {
    score_with((by, true), ctx, nodes, out, tally);
}

/// Does the same. `has_hints` says whether a provider of topology hints may have something to say of the pod.
pub(crate) fn score_with(
    ((enabled, plugin, value), has_hints): ((&Enabled, &dyn Score, &CycleValue), bool),
    ctx: &CycleContext<'_>,
    nodes: &[NodeIdx],
    out: &mut Vec<i64>,
    tally: &mut [PluginTally],
) {
    out.clear();
    out.resize(nodes.len(), 0);
    let start = ctx.probe.nanos();
    let affinities =
        if has_hints && plugin.reads_affinity() { alignment::affinities(ctx, nodes) } else { None };
    match affinities {
        Some(nodes) => plugin.score_aligned(ctx.view, ctx.spec, value, &nodes, out),
        None => plugin.score(ctx.view, ctx.spec, value, nodes, out),
    }
    let tally = &mut tally[enabled.index];
    tally.nanos += ctx.probe.nanos().saturating_sub(start);
    tally.score_calls += 1;
    tally.nodes_scored += nodes.len() as u64;
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::Cluster;
    use pellucid_framework::{Plugin, PreFilter, View};
    use pellucid_model::PodSpec;

    use super::*;

    /// A plugin that wants the pod on one node.
    struct Only(&'static str, Option<u32>);

    impl Plugin for Only {
        fn name(&self) -> &'static str {
            self.0
        }
        fn pre_filter(&self) -> Option<&dyn PreFilter> {
            Some(self)
        }
    }

    impl PreFilter for Only {
        fn reads(&self) -> Reads {
            Reads::Node
        }
        fn pre_filter(&self, _view: View<'_>, _spec: &PodSpec) -> PreFiltered {
            PreFiltered::Ready { value: Arc::new(()), nodes: Some(self.1.map(NodeIdx).into_iter().collect()) }
        }
    }

    /// Returns why plugins A and B refuse a pod that they restrict to these nodes.
    fn refused_by(a: Option<u32>, b: Option<u32>) -> Cause {
        let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(Only("A", a)), Arc::new(Only("B", b))];
        let enabled = plugins.iter().enumerate();
        let pre_filter =
            enabled.map(|(index, plugin)| Enabled { plugin: plugin.clone(), weight: 0, index }).collect();
        let profile = Profile { plugins, pre_filter, ..Profile::default() };
        let (cluster, spec) = (Cluster::new(0, [], Vec::new()), PodSpec::default());
        let ctx = CycleContext::new(&profile, View::new(&cluster), &spec);
        let prepared = prepare(&places(&profile, |_| true), &ctx, &mut [PluginTally::default(); 2]);
        prepared.refused.expect("it is refused").1
    }

    #[test]
    fn plugins_without_a_node_in_common_refuse_the_pod() {
        let cause = refused_by(Some(1), Some(2));
        assert_eq!(cause.reasons[0].code, ReasonCode::PluginsDisagree);
        assert_eq!(cause.message(), "node(s) didn't satisfy plugin(s) [A B] simultaneously");
        let cause = refused_by(Some(1), None);
        assert_eq!(cause.reasons[0].code, ReasonCode::NamedNodesMissing);
        assert_eq!(cause.message(), "node(s) didn't satisfy plugin(s) [A B]");
    }
}
