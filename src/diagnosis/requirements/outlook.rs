//! Whether a pending pod fits now, after preemption, once other pods have left, or never.
//!
//! "Never" is asked of a cluster that is emptied of all pods that can leave, once with and once without the pods that
//! this pod needs where they are (`Filter::needs`). A requirement that a node fails in both is failed whichever pods
//! leave: what pods take up shrinks with every pod that leaves, and what the pod needs is there in full. A pod needs no
//! such cluster when every node fails something of which its plugin says that it stays whichever pods leave
//! (`NodeReason::is_fixed`). Anything that was not found out is `NotKnown`.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use pellucid_api::rest::explain::Outlook;
use pellucid_cluster::{Cluster, PodRecord, ShapeId};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::{Masks, Requirement, masks_of_pod_on};
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::View;
use pellucid_framework::plugin::Filter;
use pellucid_framework::profile::Profile;
use pellucid_model::collections::FxHashSet;
use pellucid_model::{Name, NodeIdx, Now, PodId, PodKey, PodSpec, cancellation};

use crate::called::{called, called_in_words, called_together};
use crate::known::known;

use crate::requirements::nearest::order;
use crate::requirements::victims::{takes_without_its_pods, victims_among};
use crate::requirements::{PodRequirements, ask};

/// Codes of outlooks.
pub(crate) const NOW: &str = "FitsNow";
pub(crate) const PREEMPTING: &str = "FitsAfterPreemption";
pub(crate) const NOT_NOW: &str = "NotNow";
pub(crate) const NEVER: &str = "NeverFits";
pub(crate) const HELD: &str = "HeldBack";
pub(crate) const UNKNOWN: &str = "NotKnown";

/// Of nodes that refuse a pod for what is measured on them.
const MEASURED: &str =
    "what is measured on nodes keeps it off them, which may change when pods on them end, or by itself";

const NOT_FOUND: &str = "no set of pods was found whose end would help";

/// Number of pods that are listed to leave.
const MOST_LISTED: usize = 8;
/// Number of nodes on which a set of pods to leave is searched for.
const MOST_NODES: usize = 8;

fn of(code: &str, message: impl Into<String>) -> Outlook {
    Outlook { code: code.into(), message: message.into(), ..Outlook::default() }
}

/// Returns the outlook of a pod that is refused as a whole.
pub(crate) fn held_back() -> Outlook {
    of(HELD, "the pod itself is held back, whatever the nodes have free")
}

/// Returns the outlook of a pod. A placed pod is judged as if it had no place, a member of a gang on its own.
pub(crate) fn outlook(snapshot: &Snapshot, asked: &PodRequirements<'_>, now: Now) -> Outlook {
    let nodes = asked.cluster.present();
    if asked.masks.pod.is_none() && nodes.iter().any(|node| asked.masks.of(*node) == 0) {
        return of(NOW, "a node takes it as things are");
    }
    if asked.is_closed() && !evicts_who_stays(snapshot, asked) {
        return never(snapshot, asked);
    }
    if let Some(node) = preempts(snapshot, asked, now) {
        return under_way(snapshot, asked.id, &node)
            .unwrap_or_else(|| of(PREEMPTING, "a node takes it when pods of lower priority are evicted"));
    }
    if let Some(found) = one_node(snapshot, asked, now) {
        return found;
    }
    let emptied = Emptied::of(snapshot, asked);
    if let Some(is_alone) = emptied.takes() {
        return of(NOT_NOW, emptied.ended(is_alone));
    }
    if asked.masks.pod.is_some() && emptied.all.masks.pod.is_some() {
        return held_back();
    }
    if let Some(found) = emptied.one_node(snapshot, now) {
        return found;
    }
    if !emptied.is_never() {
        return of(UNKNOWN, if emptied.is_measured() { MEASURED } else { NOT_FOUND });
    }
    // Preemption takes pods that come back from one node, which is not tried here.
    let with_evicted = || Emptied::with(snapshot, asked, asked.cluster.present(), true).takes().is_some();
    if evicts_who_stays(snapshot, asked) && with_evicted() {
        return of(UNKNOWN, NOT_FOUND);
    }
    never(snapshot, asked)
}

/// How nodes without the pods that can leave stand to a pod.
#[derive(Default)]
pub(crate) struct WhenEmptied {
    /// Whether none takes it, whatever is measured and whichever pods get places.
    pub(crate) is_never: bool,
    /// Whether one refuses it for what is measured there, and for nothing else.
    pub(crate) is_measured: bool,
}

/// Returns how emptied nodes stand to a pod, a member of a gang on its own.
pub(crate) fn when_emptied(snapshot: &Snapshot, id: PodId) -> Option<WhenEmptied> {
    let asked = ask(snapshot, id)?;
    let emptied = Emptied::of(snapshot, &asked);
    let is_asked = emptied.all.masks.pod.is_none();
    let is_never = is_asked && emptied.is_never() && !waits_for_pending(snapshot, &asked);
    Some(WhenEmptied { is_never, is_measured: emptied.is_measured() })
}

/// Returns what a node fails whichever pods leave, measured amounts aside.
pub(crate) fn lasting_on(
    snapshot: &Snapshot,
    asked: &PodRequirements<'_>,
    node: NodeIdx,
) -> Vec<Requirement> {
    let emptied = Emptied::on(snapshot, asked, &[node]);
    let kept: Option<Vec<&Requirement>> = emptied.but_needed().map(|kept| kept.failed(node).collect());
    let is_kept = |of: &&Requirement| kept.as_ref().is_none_or(|kept| kept.contains(of));
    emptied.all.failed(node).filter(is_kept).cloned().collect()
}

/// Returns the outlook of a pod that every node refuses whichever pods leave.
fn never(snapshot: &Snapshot, asked: &PodRequirements<'_>) -> Outlook {
    if waits_for_pending(snapshot, asked) {
        return of(UNKNOWN, "it must be near pods that have no place yet");
    }
    of(NEVER, "it never fits the nodes as they are, not even once all pods have left that can")
}

/// Returns whether the pod needs a pod that has no place yet.
fn waits_for_pending(snapshot: &Snapshot, asked: &PodRequirements<'_>) -> bool {
    let (filters, view) = (filters(asked), View::new(&asked.cluster));
    let is_needed = |other: &PodSpec| needs(&filters, (view, &asked.record.pod.spec), other);
    known(snapshot).population.any_pending(&snapshot.cluster, asked.id, is_needed)
}

/// Returns the outlook of a pod for which pods of a node are being evicted, if that node takes it once they have left.
fn under_way(snapshot: &Snapshot, id: PodId, place: &Name) -> Option<Outlook> {
    let cluster = &snapshot.cluster;
    let preemption = cluster.preemptions().of(id).filter(|preemption| preemption.node == *place)?;
    let awaited = preemption.victims.iter().filter(|victim| victim.state.is_awaited());
    let leave: Vec<PodKey> = awaited.map(|victim| victim.key.clone()).collect();
    let who = match &leave[..] {
        [] => return None,
        [one] => format!("{} has left, which is being evicted for it", called_in_words(cluster, one)),
        some => {
            format!("{} have left, which are being evicted for it", called_together(cluster, some))
        }
    };
    Some(Outlook {
        node: Some(place.to_string()),
        would_leave: leave.iter().take(MOST_LISTED).map(|key| called(cluster, key)).collect(),
        ..of(PREEMPTING, format!("{place} takes it once {who}"))
    })
}

/// Returns whether the pod may evict pods whose end gives no room to others, as they come back where they were.
fn evicts_who_stays(snapshot: &Snapshot, asked: &PodRequirements<'_>) -> bool {
    let pod = &asked.record.pod;
    !pod.never_preempts && known(snapshot).population.has_lower_that_stays(&snapshot.cluster, pod.priority)
}

/// Returns the place that the pod has after preemption. A pending pod keeps its nomination.
fn preempts(snapshot: &Snapshot, asked: &PodRequirements<'_>, now: Now) -> Option<Name> {
    let pod = &asked.record.pod;
    let nominated = snapshot.cluster.nominator().of(asked.id).is_some();
    let has_lower = || known(snapshot).population.has_lower(&snapshot.cluster, pod.priority);
    let has_victims = !pod.never_preempts && has_lower();
    if !nominated && !has_victims {
        return None;
    }
    let is_placed = asked.record.node.is_some();
    let mut simulation =
        if is_placed { Simulation::without(snapshot, asked.id, now) } else { Simulation::of(snapshot, now) };
    let key = &pod.key;
    simulation.ask(key);
    simulation.plan(true);
    // Not when it only waits for pods that others are deleting.
    let is_by_us = nominated || !simulation.evicted().is_empty();
    simulation
        .placed()
        .into_iter()
        .find(|(of, _)| *of == key)
        .filter(|_| is_by_us)
        .map(|(_, node)| node.clone())
}

/// Finds a node that takes the pod once some pods on it have left, among the nearest. Verified on a copy.
fn one_node(snapshot: &Snapshot, asked: &PodRequirements<'_>, now: Now) -> Option<Outlook> {
    if asked.masks.pod.is_some() {
        return None;
    }
    let mut kinds = BTreeSet::new();
    let nearest = order(asked);
    let free = nearest.iter().filter(|near| near.is_free() && kinds.insert(near.kind()));
    for near in free.take(MOST_NODES) {
        cancellation::check();
        let Some(leave) = victims_among(&asked.cluster, asked, near.node) else { continue };
        let name = asked.cluster.node_name(near.node);
        if verified(snapshot, asked, &leave, name, now) {
            return Some(leaving(&snapshot.cluster, name, &leave));
        }
    }
    None
}

/// Returns whether the pod has a place once these pods have left.
fn verified(
    snapshot: &Snapshot,
    asked: &PodRequirements<'_>,
    leave: &[PodKey],
    node: &Name,
    now: Now,
) -> bool {
    let mut simulation = Simulation::without(snapshot, asked.id, now);
    let is_gone = leave.iter().all(|key| simulation.edit(&Edit::DeletePod(key.clone())).is_ok());
    is_gone && simulation.place_copy(&asked.record.pod).is_some_and(|place| place == *node)
}

fn leaving(cluster: &Cluster, node: &Name, leave: &[PodKey]) -> Outlook {
    let message = match leave {
        [one] => format!("{node} would take it if {} ended", called_in_words(cluster, one)),
        some => format!("{node} would take it if {} on it ended", called_together(cluster, some)),
    };
    Outlook {
        node: Some(node.to_string()),
        would_leave: leave.iter().take(MOST_LISTED).map(|key| called(cluster, key)).collect(),
        ..of(NOT_NOW, message)
    }
}

/// A state from which pods have left, and what every node then fails.
pub(crate) struct State {
    pub(crate) cluster: Cluster,
    pub(crate) masks: Masks,
    /// The bits of what is measured on nodes, so that it may change.
    measured: u64,
}

impl State {
    fn of(mut cluster: Cluster, asked: &PodRequirements<'_>, nodes: &[NodeIdx]) -> Self {
        cluster.bring_back(asked.id);
        let spec = &asked.record.pod.spec;
        let masks = masks_of_pod_on(&mut cluster, asked.profile, (asked.id, spec), nodes);
        let measured = measured(asked, &masks);
        Self { cluster, masks, measured }
    }

    fn takes(&self) -> bool {
        self.masks.pod.is_none() && self.cluster.present().iter().any(|node| self.masks.of(*node) == 0)
    }

    /// Returns the requirements that a node fails and that are not measured; all alike of a pod that is refused as a whole.
    fn failed(&self, node: NodeIdx) -> impl Iterator<Item = &Requirement> {
        let lasting = self.masks.of(node) & !self.measured;
        self.masks.requirements(lasting).map(|(_, requirement)| requirement)
    }
}

/// Returns whether a plugin of this name refuses nodes for what is measured on them.
pub(crate) fn refuses_for_measured(profile: &Profile, name: &str) -> bool {
    let mut own = profile.filter.iter().filter(|enabled| enabled.plugin.name() == name);
    own.any(|enabled| enabled.plugin.filter().is_some_and(Filter::is_measured))
}

/// Returns the bits of what is measured on nodes.
fn measured(asked: &PodRequirements<'_>, masks: &Masks) -> u64 {
    let all = masks.requirements(u64::MAX).filter(|(_, of)| refuses_for_measured(asked.profile, of.plugin));
    all.fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// The cluster without the pods that can leave, and without those of them that the pod does not need.
pub(crate) struct Emptied<'a> {
    snapshot: &'a Snapshot,
    asked: &'a PodRequirements<'a>,
    /// The nodes that are asked.
    nodes: Vec<NodeIdx>,
    /// Whether pods that come back where they were are gone too, of which the pod may evict some.
    evicts: bool,
    all: State,
    /// `None` when no placed pod that can leave is needed.
    but_needed: OnceCell<Option<State>>,
}

impl<'a> Emptied<'a> {
    fn of(snapshot: &'a Snapshot, asked: &'a PodRequirements<'a>) -> Self {
        Self::on(snapshot, asked, asked.cluster.present())
    }

    fn on(snapshot: &'a Snapshot, asked: &'a PodRequirements<'a>, nodes: &[NodeIdx]) -> Self {
        Self::with(snapshot, asked, nodes, false)
    }

    fn with(snapshot: &'a Snapshot, asked: &'a PodRequirements<'a>, nodes: &[NodeIdx], evicts: bool) -> Self {
        // Of a pod without a place the emptied cluster is that of every other one.
        let all = match asked.record.node {
            None if !evicts => {
                known(snapshot).emptied(|| without(&snapshot.cluster, |r| r.pod.can_leave())).fork()
            }
            _ => without(&asked.cluster, |r| leaves_for(asked, r, evicts)),
        };
        let all = State::of(all, asked, nodes);
        Self { snapshot, asked, nodes: nodes.to_vec(), evicts, all, but_needed: OnceCell::new() }
    }

    fn but_needed(&self) -> Option<&State> {
        let state = || {
            let (asked, shapes) = (self.asked, needed_shapes(self.snapshot, self.asked));
            let is_needed = |r: &PodRecord| shapes.contains(&r.shape);
            let mut placed = asked.cluster.pods().filter(|(_, r)| r.node.is_some() && r.pod.can_leave());
            let is_any = !shapes.is_empty() && placed.any(|(_, r)| is_needed(r));
            let leaves = |r: &PodRecord| leaves_for(asked, r, self.evicts) && !is_needed(r);
            is_any.then(|| State::of(without(&asked.cluster, leaves), asked, &self.nodes))
        };
        self.but_needed.get_or_init(state).as_ref()
    }

    /// Returns whether a node takes the pod, and whether that is without the needed pods.
    fn takes(&self) -> Option<bool> {
        if self.all.takes() {
            return Some(true);
        }
        self.but_needed().is_some_and(State::takes).then_some(false)
    }

    /// Returns what has to end for a node to take the pod, in words; `is_alone` says whether it needs no other pod.
    fn ended(&self, is_alone: bool) -> String {
        let known = known(self.snapshot);
        let all = known.leavers(&self.snapshot.cluster);
        let what = match (is_alone, self.one_suffices()) {
            (true, true) => format!("the {all} on it ended"),
            (true, false) => format!("other {all} ended, on whichever nodes they are"),
            (false, true) => format!("the {all} on it ended that it does not need"),
            (false, false) => format!("{all} ended that it does not need, on whichever nodes they are"),
        };
        format!("a node would take it if {what}")
    }

    /// Returns whether one of the nearest nodes takes the pod once only the pods on that node have left, but for those that
    /// are needed if the pod fits only beside them. What keeps a pod off may be on several nodes, or be used there, as a
    /// quota is.
    fn one_suffices(&self) -> bool {
        let (asked, is_alone) = (self.asked, self.all.takes());
        let Some(state) = (if is_alone { Some(&self.all) } else { self.but_needed() }) else { return false };
        let needed = if is_alone { FxHashSet::default() } else { needed_shapes(self.snapshot, asked) };
        let mut kinds = BTreeSet::new();
        let all = order(asked);
        // Of a pod that is refused as a whole no node was asked.
        let free = all.iter().filter(|near| near.is_free() && state.masks.of(near.node) == 0);
        let mut nearest = free.filter(|near| kinds.insert(near.kind())).take(MOST_NODES);
        nearest.any(|near| takes_without_its_pods(asked, near.node, |r| needed.contains(&r.shape)))
    }

    /// Finds a node that takes the pod when only some of the needed pods stay.
    fn one_node(&self, snapshot: &Snapshot, now: Now) -> Option<Outlook> {
        let state = self.but_needed()?;
        if state.masks.pod.is_some() {
            return None;
        }
        let by_name = state.cluster.by_name().iter();
        let open = by_name.filter(|node| state.masks.fixed_of(**node) == 0 && !self.is_closed(**node));
        for node in open.take(MOST_NODES) {
            cancellation::check();
            let Some(leave) = victims_among(&state.cluster, self.asked, *node) else { continue };
            let gone = state.cluster.pods().filter(|(_, r)| r.node.is_some()).map(|(_, r)| r.pod.key.clone());
            let stay: BTreeSet<PodKey> = gone.filter(|key| !leave.contains(key)).collect();
            let placed = self.asked.cluster.pods().filter(|(_, r)| r.node.is_some() && r.pod.can_leave());
            let all: Vec<PodKey> =
                placed.map(|(_, r)| r.pod.key.clone()).filter(|key| !stay.contains(key)).collect();
            let name = state.cluster.node_name(*node);
            if verified(snapshot, self.asked, &all, name, now) {
                return Some(of(
                    NOT_NOW,
                    format!(
                        "{name} would take it if {} ended that it does not need",
                        known(snapshot).leavers(&snapshot.cluster)
                    ),
                ));
            }
        }
        None
    }

    /// Returns whether a node fails a requirement whichever pods leave.
    fn is_closed(&self, node: NodeIdx) -> bool {
        let Some(kept) = self.but_needed() else { return self.all.failed(node).next().is_some() };
        let kept: Vec<&Requirement> = kept.failed(node).collect();
        self.all.failed(node).any(|requirement| kept.contains(&requirement))
    }

    /// Returns whether a node fails nothing but what is measured on it.
    fn is_measured(&self) -> bool {
        let alone = |node: &NodeIdx| self.all.masks.of(*node) != 0 && self.all.failed(*node).next().is_none();
        self.all.masks.pod.is_none() && self.all.cluster.present().iter().any(alone)
    }

    /// Returns whether every node fails something whichever pods leave.
    fn is_never(&self) -> bool {
        if self.all.masks.pod.is_some() {
            return self.but_needed().is_none_or(|kept| kept.masks.pod.is_some());
        }
        self.all.cluster.present().iter().all(|node| self.is_closed(*node))
    }
}

/// Returns whether a filter may refuse a pod of this spec once the other pod is gone.
fn needs(filters: &[&dyn Filter], (view, spec): (View<'_>, &PodSpec), other: &PodSpec) -> bool {
    filters.iter().any(|filter| filter.needs(view, spec, other))
}

fn filters<'a>(asked: &'a PodRequirements<'_>) -> Vec<&'a dyn Filter> {
    asked.profile.filter.iter().filter_map(|enabled| enabled.plugin.filter()).collect()
}

/// Returns the shapes of the placed pods that can leave, of which the pod may need some where they are.
fn needed_shapes(snapshot: &Snapshot, asked: &PodRequirements<'_>) -> FxHashSet<ShapeId> {
    let (known, filters, view) = (known(snapshot), filters(asked), View::new(&asked.cluster));
    let leaving = known.population.leaving(&snapshot.cluster);
    let of_pod = (view, &*asked.record.pod.spec);
    leaving.filter(|(_, spec)| needs(&filters, of_pod, spec)).map(|(shape, _)| shape).collect()
}

/// Returns whether the end of a pod gives its room to the one that is asked about: if it does not come back where it was, or
/// if that one may evict it.
fn leaves_for(asked: &PodRequirements<'_>, record: &PodRecord, evicts: bool) -> bool {
    record.pod.can_leave() || evicts && record.pod.priority < asked.record.pod.priority
}

/// Returns a copy of the state without the pods that `leaves` accepts, pending ones too, and without nominations.
fn without(cluster: &Cluster, leaves: impl Fn(&PodRecord) -> bool) -> Cluster {
    let mut cluster = cluster.fork();
    let gone = cluster.pods().filter(|(_, r)| leaves(r));
    let gone: Vec<PodId> = gone.map(|(id, _)| id).collect();
    cluster.withdraw(&gone);
    let nominated: Vec<PodId> = cluster.nominator().nodes().flat_map(|(_, pods)| pods.to_vec()).collect();
    for id in nominated {
        cluster.nominator_mut().end(id);
    }
    cluster
}

/// Returns the emptied cluster that takes the pod: without all pods that can leave, or without those of them that the pod
/// does not need, if it fits only there.
pub(crate) fn emptied_for(snapshot: &Snapshot, asked: &PodRequirements<'_>) -> Cluster {
    let emptied = Emptied::of(snapshot, asked);
    match (emptied.takes(), emptied.but_needed()) {
        (Some(false), Some(but_needed)) => but_needed.cluster.fork(),
        _ => emptied.all.cluster.fork(),
    }
}
