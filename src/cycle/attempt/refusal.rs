//! Makes the refusal of an attempt that finds no node. It accounts for every node, in groups by cause, with the numbers behind
//! each cause.
//!
//! Pods that fit nowhere are tried again after others were placed on a few nodes. So groups are kept in step with the nodes that
//! change. A group's nodes are all looked at again only when a node changes that the group names, or where its numbers change by
//! themselves. While causes and counts stay the same, the message is taken over from the last refusal.

use std::mem::take;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::{Lack, LackedAmount};
use pellucid_framework::plugin::{Filter, Measure, PreFiltered};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, View};
use pellucid_model::cause::CauseId;
use pellucid_model::{Name, NodeIdx, PodSpec};
use pellucid_queue::RefusedBy;
use pellucid_recording::{Group, GroupMeasure, Refusal};
use smallvec::SmallVec;

use crate::attempt::node_result_cache::{CycleContext, NodeResultCache, tie_order};
use crate::attempt::{alignment, chain, overrides};

/// Number of example nodes per group of a refusal.
const EXAMPLES: usize = 3;
/// With more changes than this, groups are made anew.
const MANY: usize = 64;

/// The last refusal that the results of a shape led to, and what has changed since.
#[derive(Default)]
pub(crate) struct LastRefusal {
    refusal: Option<Arc<Refusal>>,
    /// Whether the results are those that it was made from.
    is_current: bool,
    /// When it was made, if it has numbers that change by themselves. In seconds, as they do.
    measured_at: Option<u64>,
    /// Its groups by cause; `None` for a cause that no node had. Empty while none are known.
    groups: Groups,
    /// Nodes that have changed since, with the cause that each had then.
    changed: Vec<(NodeIdx, CauseId)>,
}

/// Groups by cause.
type Groups = Vec<Option<Known>>;

struct Known {
    group: Arc<Group>,
    /// The best nodes of its measures.
    best: SmallVec<[NodeIdx; 4]>,
    /// Whether what is measured on its nodes changes by itself.
    is_measured: bool,
}

impl LastRefusal {
    /// Notes that the pods on a node changed, with the cause that it had before.
    pub(crate) fn note_change(&mut self, node: NodeIdx, cause: CauseId) {
        self.is_current = false;
        if self.groups.is_empty() {
            return;
        }
        self.changed.push((node, cause));
        if self.changed.len() > MANY {
            self.forget_groups();
        }
    }

    /// Drops the groups: those of the next refusal are made from all nodes.
    pub(crate) fn forget_groups(&mut self) {
        self.is_current = false;
        self.groups.clear();
        self.changed.clear();
    }
}

impl NodeResultCache {
    /// Returns the refusal. It is reused while the results do not change, unless the attempt has results of its own.
    pub(super) fn refuse(&mut self, ctx: &CycleContext<'_>) -> Arc<Refusal> {
        let is_of_shape = self.attempt.is_none();
        let second = ctx.view.cluster().now().wall.as_secs();
        let LastRefusal { refusal: last, is_current, measured_at, .. } = &self.last_refusal;
        let holds = is_of_shape && *is_current && measured_at.is_none_or(|at| at == second);
        if let Some(last) = last.as_ref().filter(|_| holds) {
            return last.clone();
        }
        let total = ctx.view.nodes().len();
        self.work += total as u64;
        let (mut groups, mut changed) = match is_of_shape {
            true => (take(&mut self.last_refusal.groups), take(&mut self.last_refusal.changed)),
            false => Default::default(),
        };
        let refusal = match self.refused_as_a_whole() {
            Some(cause) => refusal_of_pod(ctx.profile, cause.clone(), total),
            None => {
                self.update(&mut groups, &mut changed, ctx);
                let groups = groups.iter().flatten().map(|known| known.group.clone()).collect();
                self.refusal_of_nodes(ctx.profile, groups, total)
            }
        };
        let last = &mut self.last_refusal.refusal;
        let refusal = Arc::new(match last {
            Some(last) => refusal.with_message_of(last),
            None => refusal,
        });
        if is_of_shape {
            changed.clear();
            let is_measured = groups.iter().flatten().any(|known| known.is_measured);
            self.last_refusal = LastRefusal {
                refusal: Some(refusal.clone()),
                is_current: true,
                measured_at: is_measured.then_some(second),
                groups,
                changed,
            };
        }
        refusal
    }

    /// Returns the refusal by nodes. Plugins that left nodes out at PreFilter refused the pod there.
    fn refusal_of_nodes(&self, profile: &Profile, groups: Vec<Arc<Group>>, total: usize) -> Refusal {
        let of_attempt = self.attempt.iter().flat_map(|attempt| &attempt.restricting);
        let restricting: SmallVec<[usize; 2]> =
            self.prepared.restricting.iter().chain(of_attempt).copied().collect();
        if let Some(first) = restricting.first().filter(|_| groups.is_empty()) {
            let plugin = profile.plugins[*first].name();
            let cause = chain::left_no_node(profile, ReasonCode::PluginsDisagree, plugin, &restricting);
            return refusal_of_pod(profile, cause, total);
        }
        let mut by = refused_by(profile, groups.iter().map(|g| &g.cause));
        restricting.iter().for_each(|plugin| by.insert(*plugin));
        let names = chain::plugin_names(profile, &restricting);
        Refusal::of_nodes(groups, total, by).with_left_out_by(&names)
    }

    /// Updates groups by the nodes that have changed since they were made. Makes all when there are none.
    fn update(&self, groups: &mut Groups, changed: &mut Vec<(NodeIdx, CauseId)>, ctx: &CycleContext<'_>) {
        let (mask, causes) = self.current();
        let are_known = !groups.is_empty();
        groups.resize_with(causes.iter().count(), || None);
        // The nodes of groups that are made anew.
        let mut members: Vec<Option<Vec<NodeIdx>>> = vec![(!are_known).then(Vec::new); groups.len()];
        // Of the notes about a node the first says what it was refused for.
        changed.sort_by_key(|(node, _)| *node);
        changed.dedup_by_key(|(node, _)| *node);
        let change =
            |(node, was): &(NodeIdx, CauseId)| Change { node: *node, was: *was, is: mask[node.index()] };
        let changes: SmallVec<[Change; 8]> = changed.iter().map(change).collect();
        for ((group, (id, cause)), nodes) in groups.iter_mut().zip(causes.iter()).zip(&mut members) {
            let comes = changes.iter().any(|change| change.is == id);
            let is_measured = match group {
                Some(known) => known.is_measured,
                None => comes && is_measured(ctx, cause),
            };
            if is_measured {
                *nodes = Some(Vec::new());
            } else if comes || changes.iter().any(|change| change.was == id) {
                match self.updated(group.as_ref(), (id, cause), &changes, ctx) {
                    Some(known) => *group = Some(known),
                    None => *nodes = Some(Vec::new()),
                }
            }
        }
        if members.iter().all(Option::is_none) {
            return;
        }
        for node in ctx.view.cluster().by_name() {
            let at = usize::from(mask[node.index()].0).wrapping_sub(1);
            if let Some(Some(nodes)) = members.get_mut(at) {
                nodes.push(*node);
            }
        }
        for ((group, (_, cause)), nodes) in groups.iter_mut().zip(causes.iter()).zip(members) {
            let Some(nodes) = nodes else { continue };
            let examples = || nodes.iter().take(EXAMPLES).map(|node| ctx.view.name(*node).clone()).collect();
            let made = || self.group(cause, (nodes.len(), examples()), &nodes, ctx);
            *group = (!nodes.is_empty()).then(made);
        }
    }

    /// Returns a group after changes of nodes that have its cause or had it; `None` if all of its nodes must be looked at.
    fn updated(
        &self,
        known: Option<&Known>,
        (id, cause): (CauseId, &Cause),
        changes: &[Change],
        ctx: &CycleContext<'_>,
    ) -> Option<Known> {
        let name = |node: NodeIdx| ctx.view.name(node);
        let (mut count, mut examples, mut nodes) = (0, SmallVec::<[Name; EXAMPLES]>::new(), Vec::new());
        if let Some(Known { group, best, .. }) = known {
            let spoils = |change: &Change| {
                let leaves = change.is != id && group.examples.contains(name(change.node));
                change.was == id && (leaves || best.contains(&change.node))
            };
            if changes.iter().any(spoils) {
                return None;
            }
            count = group.count - changes.iter().filter(|change| change.was == id && change.is != id).count();
            examples.extend(group.examples.iter().cloned());
            nodes.extend_from_slice(best);
        }
        for change in changes.iter().filter(|change| change.is == id) {
            if change.was != id {
                count += 1;
                examples.push(name(change.node).clone());
            }
            nodes.push(change.node);
        }
        examples.sort_unstable();
        examples.truncate(EXAMPLES);
        // What is measured over the best of a group's nodes is measured over all of them.
        nodes.sort_unstable_by(|a, b| name(*a).cmp(name(*b)));
        nodes.dedup();
        (count > 0).then(|| self.group(cause, (count, examples), &nodes, ctx))
    }

    /// Makes a group, measured over some nodes.
    fn group(
        &self,
        cause: &Cause,
        (count, examples): (usize, SmallVec<[Name; EXAMPLES]>),
        nodes: &[NodeIdx],
        ctx: &CycleContext<'_>,
    ) -> Known {
        let measures = self.measures(ctx, cause, nodes);
        let best = measures.iter().map(|measure| measure.best_node).collect();
        let shown = |m: Measure| GroupMeasure {
            resource: m.resource,
            requested: m.requested,
            available: m.available,
            best_node: ctx.view.name(m.best_node).clone(),
        };
        let measures = measures.into_iter().map(shown).collect();
        let group = Arc::new(Group { cause: cause.clone(), count, examples, measures });
        Known { group, best, is_measured: is_measured(ctx, cause) }
    }

    /// Returns what a refused node lacks for the pod, or `None` when it was not refused by itself. An amount that only
    /// nominated pods make too small is left out.
    pub(crate) fn lack(&self, ctx: &CycleContext<'_>, node: NodeIdx) -> Option<Lack> {
        let cause = self.cause(node)?.clone();
        let all = self.measures(ctx, &cause, &[node]).into_iter().filter(|m| m.requested > m.available);
        let amounts = all.map(|m| LackedAmount {
            resource: m.resource,
            requested: m.requested,
            available: m.available,
        });
        Some(Lack { amounts: amounts.collect(), cause })
    }

    /// Returns the numbers behind a cause over the nodes refused with it: of overridden nodes those of their trials.
    fn measures(&self, ctx: &CycleContext<'_>, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        match self.overridden() {
            [] => measure(ctx, cause, nodes),
            overridden => {
                let is_plain = |node: &NodeIdx| overrides::find(overridden, *node).is_none();
                let plain: Vec<NodeIdx> = nodes.iter().copied().filter(is_plain).collect();
                let all = if plain.is_empty() { Vec::new() } else { measure(ctx, cause, &plain) };
                let own = nodes.iter().filter_map(|node| overrides::find(overridden, *node));
                own.flat_map(|of| &of.measures).fold(all, |all, one| with_nearest(ctx.view, all, one))
            }
        }
    }
}

/// A node that changed.
struct Change {
    node: NodeIdx,
    /// What it was refused for, or feasible.
    was: CauseId,
    is: CauseId,
}

/// Returns the numbers behind a cause over some nodes.
pub(crate) fn measure(ctx: &CycleContext<'_>, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
    filter_behind(ctx, cause).map_or_else(Vec::new, |filter| filter.measure(ctx.view, ctx.spec, cause, nodes))
}

/// Returns whether the numbers behind a cause change by themselves.
fn is_measured(ctx: &CycleContext<'_>, cause: &Cause) -> bool {
    filter_behind(ctx, cause).is_some_and(Filter::is_measured)
}

fn filter_behind<'a>(ctx: &CycleContext<'a>, cause: &Cause) -> Option<&'a dyn Filter> {
    ctx.profile.filter[ctx.place_of(cause)?].plugin.filter()
}

/// Adds a measure, unless that of another node for the same resource is nearer to what the pod needs. The tie order
/// decides between equal nodes.
fn with_nearest(view: View<'_>, mut all: Vec<Measure>, one: &Measure) -> Vec<Measure> {
    let lack = |m: &Measure| m.requested.saturating_sub(m.available);
    let order = |a: &Measure, b: &Measure| {
        lack(a).cmp(&lack(b)).then_with(|| tie_order(view, a.best_node, b.best_node))
    };
    match all.iter_mut().find(|known| known.resource == one.resource) {
        Some(known) if order(one, known).is_lt() => *known = one.clone(),
        Some(_) => {}
        None => all.push(one.clone()),
    }
    all
}

/// Returns the refusal of a pod as a whole, by the plugin behind the cause.
pub(crate) fn refusal_of_pod(profile: &Profile, cause: Cause, total_nodes: usize) -> Refusal {
    let by = refused_by(profile, std::iter::once(&cause));
    Refusal::of_pod(cause, total_nodes, by)
}

/// Returns the set of plugins behind these causes.
fn refused_by<'c>(profile: &Profile, causes: impl Iterator<Item = &'c Cause>) -> RefusedBy {
    let mut by = RefusedBy::default();
    for cause in causes {
        if let Some(at) = profile.plugins.iter().position(|p| p.name() == cause.plugin) {
            by.insert(at);
        }
        for enabled in alignment::also_behind(profile, cause) {
            by.insert(enabled.index);
        }
    }
    // What they keep for the pod may come to stand where another plugin refused it.
    for enabled in &profile.node_overrides {
        by.insert(enabled.index);
    }
    by
}

/// Returns the plugins that may refuse nodes to a pod: those that filter, the providers of topology hints, and those that
/// override nodes. Others whose PreFilter skips the pod are left out.
pub(crate) fn plugins_that_filter(profile: &Profile, view: View<'_>, spec: &PodSpec) -> RefusedBy {
    let mut all = RefusedBy::default();
    for (place, at) in chain::places(profile, |_| true) {
        let enabled = place.map(|place| &profile.pre_filter[place]).or(at.map(|at| &profile.filter[at]));
        let Some(enabled) = enabled else { continue };
        let pre_filter = place.and_then(|_| enabled.plugin.pre_filter());
        if pre_filter.is_none_or(|p| !matches!(p.pre_filter(view, spec), PreFiltered::Skip)) {
            all.insert(enabled.index);
        }
    }
    alignment::providers(profile, view, spec).for_each(|plugin| all.insert(plugin));
    profile.node_overrides.iter().for_each(|enabled| all.insert(enabled.index));
    all
}
