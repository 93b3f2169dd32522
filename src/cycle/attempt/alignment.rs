//! Asks the topology hint providers of a profile about nodes, and refuses nodes on which they do not agree.
//!
//! Runs on the nodes that passed the ordinary filters; its refusals are stored in [`NodeResultCache`] and
//! are made anew with the pods or the object of the node. The winner is asked again before it takes the pod, which
//! gives the affinity for Reserve. How hints are merged is in [`pellucid_framework::merge`].
//!
//! [`NodeResultCache`]: crate::attempt::node_result_cache::NodeResultCache

use pellucid_api::reason::ReasonCode;
use pellucid_framework::merge::merge;
use pellucid_framework::plugin::{CycleValue, Nodes};
use pellucid_framework::profile::{Enabled, Profile};
use pellucid_framework::topology::{NumaPolicy, NumaTopology};
use pellucid_framework::{NumaAffinity, TopologyHints, View};
use pellucid_model::cause::{Cause, CauseId, Code, Reason};
use pellucid_model::{NodeIdx, PodSpec};
use smallvec::SmallVec;

use crate::attempt::chain::PluginTally;
use crate::attempt::node_result_cache::CycleContext;

/// The providers that have something to say about the pods of one shape.
#[derive(Default)]
pub(crate) struct Alignment {
    /// Indices in `profile.topology_hints`, ascending, with the prepared values.
    providers: SmallVec<[(usize, CycleValue); 2]>,
}

impl Alignment {
    /// Asks the providers of a profile whether they have something to say. Where none of those has that knows topologies, no
    /// hints are merged, so the others are not asked.
    pub(crate) fn of(profile: &Profile, view: View<'_>, spec: &PodSpec) -> Self {
        let all = || profile.topology_hints.iter().enumerate();
        let asked = |knows: bool| {
            all().filter_map(move |(at, e)| {
                let hints = e.plugin.topology_hints().filter(|hints| hints.knows_topologies() == knows)?;
                Some((at, hints.prepare(view, spec)?))
            })
        };
        let mut providers: SmallVec<[(usize, CycleValue); 2]> = asked(true).collect();
        if !providers.is_empty() {
            providers.extend(asked(false));
            providers.sort_by_key(|(at, _)| *at);
        }
        Self { providers }
    }

    /// Returns whether no provider has anything to say, so that no node is refused.
    pub(crate) fn is_idle(&self) -> bool {
        self.providers.is_empty()
    }

    /// Removes the nodes on which the hints do not agree, and calls `refused` for each.
    pub(crate) fn filter(
        &self,
        ctx: &CycleContext<'_>,
        nodes: &mut Nodes<'_>,
        tally: &mut [PluginTally],
        mut refused: impl FnMut(NodeIdx),
    ) {
        if self.is_idle() {
            return;
        }
        let start = ctx.probe.nanos();
        nodes.refuse_with(|causes, node| match self.affinity(ctx.profile, ctx.view, ctx.spec, node) {
            Ok(_) => CauseId::FEASIBLE,
            Err(cause) => {
                refused(node);
                let mut all = ctx.profile.topology_hints.iter();
                if let Some(by) = all.find(|e| e.plugin.name() == cause.plugin) {
                    tally[by.index].nodes_refused += 1;
                }
                causes.id(cause)
            }
        });
        // The time of all providers counts for the first.
        if let Some(first) = self.providers.first().map(|(at, _)| ctx.profile.topology_hints[*at].index) {
            tally[first].nanos += ctx.probe.nanos().saturating_sub(start);
        }
    }

    /// Returns the affinity that the providers agree on for a pod on a node, `None` where the node demands none.
    fn affinity(
        &self,
        profile: &Profile,
        view: View<'_>,
        spec: &PodSpec,
        node: NodeIdx,
    ) -> Result<Option<NumaAffinity>, Cause> {
        let mut agreed = None;
        for (name, provider, value) in self.asked(profile) {
            agree(&mut agreed, name, provider.topology(view, spec, value, node)?);
        }
        let Some((name, topology)) = agreed.filter(|(_, topology)| demands(topology)) else {
            return Ok(None);
        };
        let mut hints = Vec::new();
        for (_, provider, value) in self.asked(profile) {
            hints.extend(provider.hints(view, spec, value, node)?);
        }
        let affinity = merge(&topology, &hints).ok_or_else(|| mismatch(name))?;
        for (_, provider, value) in self.asked(profile) {
            provider.fits(view, spec, value, node, affinity)?;
        }
        Ok(Some(affinity))
    }

    /// Returns everything for which a node is refused, not only the first: what each provider says against it, and that those
    /// without an objection do not agree.
    pub(crate) fn every_cause(&self, ctx: &CycleContext<'_>, node: NodeIdx) -> Vec<Cause> {
        let (profile, view, spec) = (ctx.profile, ctx.view, ctx.spec);
        let (mut causes, mut agreed) = (Vec::new(), None);
        for (name, provider, value) in self.asked(profile) {
            match provider.topology(view, spec, value, node) {
                Ok(found) => agree(&mut agreed, name, found),
                Err(cause) => causes.push(cause),
            }
        }
        let Some((name, topology)) = agreed.filter(|(_, topology)| demands(topology)) else { return causes };
        let (mut hints, mut able) = (Vec::new(), Vec::new());
        for (_, provider, value) in self.asked(profile) {
            match provider.hints(view, spec, value, node) {
                Ok(given) => {
                    hints.extend(given);
                    able.push((provider, value));
                }
                Err(cause) => causes.push(cause),
            }
        }
        match merge(&topology, &hints) {
            None => causes.push(mismatch(name)),
            Some(affinity) => {
                let fits = able.iter().map(|(of, value)| of.fits(view, spec, value, node, affinity));
                causes.extend(fits.filter_map(Result::err));
            }
        }
        causes
    }

    /// Iterates over the providers with their names and prepared values.
    fn asked<'a>(
        &'a self,
        profile: &'a Profile,
    ) -> impl Iterator<Item = (&'static str, &'a dyn TopologyHints, &'a CycleValue)> {
        self.providers.iter().filter_map(move |(at, value)| {
            let plugin = &profile.topology_hints[*at].plugin;
            Some((plugin.name(), plugin.topology_hints()?, value))
        })
    }
}

/// Adds what another provider knows of a node; the strictest policy counts, and names its plugin.
fn agree(agreed: &mut Option<(&'static str, NumaTopology)>, name: &'static str, found: Option<NumaTopology>) {
    let Some(found) = found else { return };
    *agreed = Some(match agreed.take() {
        Some((first, known)) if found.policy <= known.policy => (first, known.with(found)),
        Some((_, known)) => (name, known.with(found)),
        None => (name, found),
    });
}

/// Returns whether hints are merged on a node.
fn demands(topology: &NumaTopology) -> bool {
    topology.policy != NumaPolicy::None && !topology.nodes.is_empty()
}

fn mismatch(plugin: &'static str) -> Cause {
    Cause::new(plugin, Code::Unschedulable, Reason::of(ReasonCode::NumaTopologyMismatch))
}

/// Returns the affinity of a pod on a node, `None` where the node demands none. The pod must not be placed yet, because
/// hints are about what is free. Fails with the cause for which [`Alignment::filter`] refuses the node.
pub(crate) fn affinity(
    profile: &Profile,
    view: View<'_>,
    spec: &PodSpec,
    node: NodeIdx,
) -> Result<Option<NumaAffinity>, Cause> {
    Alignment::of(profile, view, spec).affinity(profile, view, spec, node)
}

/// Nodes, each with the affinity of a pod there.
pub(crate) type Affinities = SmallVec<[(NodeIdx, Option<NumaAffinity>); 2]>;

/// Returns nodes with the affinities of a pod on them, `None` where the node demands none or the hints do not agree. `None`
/// if no provider has anything to say of the pod.
pub(crate) fn affinities(ctx: &CycleContext<'_>, nodes: &[NodeIdx]) -> Option<Affinities> {
    let alignment = Alignment::of(ctx.profile, ctx.view, ctx.spec);
    if alignment.is_idle() {
        return None;
    }
    let of = |node: &NodeIdx| alignment.affinity(ctx.profile, ctx.view, ctx.spec, *node).ok().flatten();
    Some(nodes.iter().map(|node| (*node, of(node))).collect())
}

/// Iterates over the providers that have something to say about a pod, by their index in the profile's list of plugins.
pub(crate) fn providers(profile: &Profile, view: View<'_>, spec: &PodSpec) -> impl Iterator<Item = usize> {
    let providers = Alignment::of(profile, view, spec).providers.into_iter();
    providers.map(|(at, _)| profile.topology_hints[at].index)
}

/// Returns the plugins that had a part in a cause besides the one that it names: hints that do not agree are the matter
/// of all providers.
pub(crate) fn also_behind<'p>(profile: &'p Profile, cause: &Cause) -> &'p [Enabled] {
    let is_mismatch = cause.reasons.iter().any(|reason| reason.code == ReasonCode::NumaTopologyMismatch);
    if is_mismatch { profile.topology_hints.as_slice() } else { &[] }
}
