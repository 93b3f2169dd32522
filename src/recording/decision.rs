//! The result of an attempt: a placement, or a refusal that accounts for every node.

use std::sync::{Arc, OnceLock};

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::Plan;
use pellucid_framework::{Cause, Reason, nodes_message};
use pellucid_model::sentence::ended;
use pellucid_model::{Name, NodeIdx};
use pellucid_queue::RefusedBy;
use smallvec::SmallVec;

/// The node chosen for a pod, with the numbers of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The chosen node.
    pub node: NodeIdx,
    /// Sum of the weighted scores; `None` when nothing was scored because only one node was feasible.
    pub score: Option<i64>,
    /// Number of feasible nodes found.
    pub feasible: u32,
    /// Number of nodes evaluated.
    pub evaluated: u32,
    /// Number of nodes in the cluster.
    pub total: u32,
}

impl Placement {
    /// Makes the placement of a pod on its nominated node, the only one evaluated.
    #[inline]
    pub fn nominated(node: NodeIdx, total: usize) -> Self {
        Self { node, score: None, feasible: 1, evaluated: 1, total: total as u32 }
    }
}

/// The result of planning a pod.
#[derive(Clone, Debug)]
pub enum Decision {
    /// A node was chosen for the pod.
    Place(Placement),
    /// No node can take the pod, or the pod is refused as a whole.
    Refuse(Arc<Refusal>),
}

/// What the nodes of a group lack of one resource at decision time, in the resource's base unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMeasure {
    /// Name of the resource, or what else is counted.
    pub resource: Name,
    /// The amount that the pod requests.
    pub requested: i64,
    /// The most that a node of the group had left.
    pub available: i64,
    /// Name of the node that had the most left.
    pub best_node: Name,
}

/// The nodes that were refused for the same cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Why the nodes were refused.
    pub cause: Cause,
    /// Number of nodes.
    pub count: usize,
    /// The first of them by name.
    pub examples: SmallVec<[Name; 3]>,
    /// The numbers behind the cause, where something countable is lacking.
    pub measures: Vec<GroupMeasure>,
}

/// Why no node takes the pod. Invariant: the counts of the groups and `not_evaluated` add up to `total_nodes`.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// Number of nodes at decision time.
    pub total_nodes: usize,
    /// Number of nodes that were not evaluated.
    pub not_evaluated: usize,
    /// The other nodes by cause, the largest group first; equal groups are ordered by plugin and message.
    pub groups: Arc<[Arc<Group>]>,
    /// Why the pod is refused as a whole, in which case no node was evaluated.
    pub pod_cause: Option<Cause>,
    /// The plugins that refused the pod; the events they listen to wake it.
    pub refused_by: RefusedBy,
    /// Names of the plugins that left nodes out at PreFilter, sorted.
    pub left_out_by: Arc<[&'static str]>,
    /// The message of PostFilter, when it found nothing.
    pub post_filter: Option<Arc<str>>,
    message: OnceLock<Arc<str>>,
}

impl Refusal {
    /// Makes a refusal of the pod as a whole.
    #[inline]
    pub fn of_pod(cause: Cause, total_nodes: usize, refused_by: RefusedBy) -> Self {
        Self {
            total_nodes,
            not_evaluated: total_nodes,
            pod_cause: Some(cause),
            refused_by,
            ..Self::default()
        }
    }

    /// Makes a refusal from groups of nodes in any order.
    #[inline]
    pub fn of_nodes(mut groups: Vec<Arc<Group>>, total_nodes: usize, refused_by: RefusedBy) -> Self {
        let text = |a: &Cause, b: &Cause| a.message().cmp(&b.message()).then(a.code.cmp(&b.code));
        groups.sort_by(|a, b| {
            let of_count = b.count.cmp(&a.count).then_with(|| a.cause.plugin.cmp(b.cause.plugin));
            of_count.then_with(|| text(&a.cause, &b.cause))
        });
        let counted: usize = groups.iter().map(|g| g.count).sum();
        let (not_evaluated, groups) = (total_nodes - counted, groups.into());
        Self { total_nodes, not_evaluated, groups, refused_by, ..Self::default() }
    }

    /// Adds the names of the plugins that left nodes out, sorted.
    pub fn with_left_out_by(self, plugins: &[&'static str]) -> Self {
        Self { left_out_by: plugins.into(), message: OnceLock::new(), ..self }
    }

    /// Takes over the message of another refusal, if it says the same and is rendered.
    pub fn with_message_of(self, other: &Self) -> Self {
        let counts = |refusal: &Self| (refusal.total_nodes, refusal.not_evaluated, refusal.groups.len());
        let is_same = |(a, b): (&Arc<Group>, &Arc<Group>)| {
            Arc::ptr_eq(a, b) || (a.count == b.count && a.cause == b.cause)
        };
        let are_same = counts(&self) == counts(other)
            && self.groups.iter().zip(other.groups.iter()).all(is_same)
            && self.left_out_by == other.left_out_by
            && self.pod_cause == other.pod_cause
            && self.post_filter == other.post_filter;
        let message = if are_same { other.message.clone() } else { OnceLock::new() };
        Self { message, ..self }
    }

    /// Returns the message in kube-scheduler's grammar. It counts reasons, several per node, so its numbers may add up
    /// to more than the number of nodes. Rendered once, and shared by all pods that were refused alike.
    #[inline]
    pub fn message(&self) -> Arc<str> {
        self.message.get_or_init(|| self.render().into()).clone()
    }

    /// Returns this refusal with a PostFilter message at the end of its own.
    pub fn with_post_filter(&self, note: Arc<str>) -> Self {
        Self { post_filter: Some(note), message: OnceLock::new(), ..self.clone() }
    }

    #[inline]
    fn render(&self) -> String {
        let refused = self.render_refusal();
        match &self.post_filter {
            Some(note) => format!("{refused} preemption: {note}"),
            None => refused,
        }
    }

    fn render_refusal(&self) -> String {
        let n = self.total_nodes;
        match &self.pod_cause {
            Some(cause) if cause.reasons.iter().all(|r| is_about_the_pod(r.code)) => cause.message(),
            _ if n == 0 => ReasonCode::NoNodes.message(""),
            Some(cause) if cause.reasons.iter().all(|r| r.code == ReasonCode::NamedNodesMissing) => {
                nodes_message(n, [(cause.message(), n)].into_iter())
            }
            Some(cause) => ended(format!("0/{n} nodes are available: {}", cause.message())),
            None => {
                // Many groups share reasons, and text is dear.
                let mut counts: SmallVec<[(&Reason, usize); 8]> = SmallVec::new();
                for (reason, count) in self.reasons() {
                    match counts.iter_mut().find(|(known, _)| *known == reason) {
                        Some((_, sum)) => *sum += count,
                        None => counts.push((reason, count)),
                    }
                }
                let counts = counts.into_iter().map(|(reason, count)| (reason.message(), count));
                nodes_message(n, counts.chain(self.left_out()))
            }
        }
    }

    /// Returns what the message says of the nodes that were left out, with their number.
    fn left_out(&self) -> Option<(String, usize)> {
        let is_any = self.not_evaluated > 0 && !self.left_out_by.is_empty();
        is_any.then(|| {
            let text = ReasonCode::NamedNodesMissing.message(&self.left_out_by.join(" "));
            (text, self.not_evaluated)
        })
    }

    /// Iterates over all reasons with the number of nodes that each concerns (0 for the pod as a whole).
    #[inline]
    pub fn reasons(&self) -> impl Iterator<Item = (&Reason, usize)> {
        let of_pod = self.pod_cause.iter().flat_map(|c| c.reasons.iter().map(|r| (r, 0)));
        of_pod.chain(self.groups.iter().flat_map(|g| g.cause.reasons.iter().map(|r| (r, g.count))))
    }
}

/// Returns whether the reason's message stands alone, without a count of nodes.
fn is_about_the_pod(code: ReasonCode) -> bool {
    matches!(
        code,
        ReasonCode::SchedulingGated
            | ReasonCode::BindRefused
            | ReasonCode::PreBindFailed
            | ReasonCode::PermitTimedOut
            | ReasonCode::PlacementTakenBack
            | ReasonCode::Unreadable
            | ReasonCode::InternalError
            | ReasonCode::GangQuorumMissing
            | ReasonCode::GangQuorumOverdue
            | ReasonCode::GangGroupMissing
            | ReasonCode::GangGroupGone
            | ReasonCode::GangInvalid
            | ReasonCode::GangDialectsMixed
            | ReasonCode::GangQueueMissing
            | ReasonCode::GangNeverComplete
            | ReasonCode::GangPartnerMissing
            | ReasonCode::GangPartnerShort
            | ReasonCode::GangGroupTooLarge
            | ReasonCode::GangMinResources
            | ReasonCode::GangSiblingUnschedulable
            | ReasonCode::GangWaitTimeout
            | ReasonCode::GangRejected
            | ReasonCode::GangQuorumBroken
    )
}

/// The outcome of the last attempt at a pod.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod was given a node.
    Placed(Placement),
    /// The pod was refused, by nodes or as a whole, or its binding was refused.
    Refused(Arc<Refusal>),
    /// Scheduling gates, or those of the pod's gang, keep the pod out of the queue.
    Gated(Arc<Refusal>),
}

/// The stored outcome of one attempt. One is written per decision, so it is small; that of a placement is plain
/// numbers.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Number of the attempt (scheduling cycle).
    pub cycle: u64,
    /// Attempts at the unit so far, this one included.
    pub attempts: u32,
    /// Wall time of the decision, in nanoseconds since 1970.
    pub at: u64,
    /// Node-change counter at decision time; a larger current value means that the verdict may be stale.
    pub changes: u64,
    /// How the attempt ended.
    pub outcome: Outcome,
    /// How the search for victims went, if there was one.
    pub plan: Option<Arc<Plan>>,
}

impl Verdict {
    /// Returns the placement, or `None` when the pod was not placed.
    #[inline]
    pub fn placement(&self) -> Option<Placement> {
        match self.outcome {
            Outcome::Placed(placement) => Some(placement),
            Outcome::Refused(_) | Outcome::Gated(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pellucid_framework::Code;

    use super::*;

    fn group(plugin: &'static str, reasons: &[Reason], count: usize) -> Arc<Group> {
        let cause = Cause { plugin, code: Code::Unschedulable, reasons: reasons.iter().cloned().collect() };
        Arc::new(Group { cause, count, examples: SmallVec::new(), measures: Vec::new() })
    }

    #[test]
    fn the_message_counts_reasons_and_sorts_as_text() {
        let cpu = Reason::about(ReasonCode::InsufficientResource, "cpu");
        let memory = Reason::about(ReasonCode::InsufficientResource, "memory");
        let groups = vec![
            group("NodeResourcesFit", &[cpu.clone(), memory.clone()], 6),
            group("NodeResourcesFit", &[cpu], 4),
            group("TaintToleration", &[Reason::of(ReasonCode::UntoleratedTaint)], 1),
        ];
        let refusal = Refusal::of_nodes(groups, 12, RefusedBy::default());
        assert_eq!(refusal.not_evaluated, 1);
        assert_eq!(
            &*refusal.message(),
            "0/12 nodes are available: 1 node(s) had untolerated taint(s), 10 Insufficient cpu, 6 Insufficient memory."
        );
    }

    #[test]
    fn nodes_that_prefilter_left_out_are_counted_with_the_plugins_that_did() {
        let cpu = Reason::about(ReasonCode::InsufficientResource, "cpu");
        let refusal = Refusal::of_nodes(vec![group("NodeResourcesFit", &[cpu], 1)], 4, RefusedBy::default());
        assert_eq!(
            &*refusal.with_left_out_by(&["NodeAffinity"]).message(),
            "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        );
        let cause = Cause::new(
            "NodeAffinity",
            Code::UnschedulableAndUnresolvable,
            Reason::about(ReasonCode::NamedNodesMissing, "NodeAffinity"),
        );
        assert_eq!(
            &*Refusal::of_pod(cause, 4, RefusedBy::default()).message(),
            "0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        );
    }

    #[test]
    fn a_pod_refused_as_a_whole_and_an_empty_cluster() {
        let conflict = Cause::new(
            "NodeAffinity",
            Code::UnschedulableAndUnresolvable,
            Reason::of(ReasonCode::AffinityTermsConflict),
        );
        let refusal = Refusal::of_pod(conflict, 3, RefusedBy::default());
        assert_eq!(&*refusal.message(), "0/3 nodes are available: pod affinity terms conflict.");
        let empty = Refusal::of_nodes(Vec::new(), 0, RefusedBy::default());
        assert_eq!(&*empty.message(), "no nodes available to schedule pods");
    }
}
