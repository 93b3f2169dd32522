//! What a fix of one node costs at least, from what the node fails: the order in which nodes are tried.
//!
//! The estimate is cheap enough to be made for every node. What it leaves out (which pods must leave, what else a change
//! brings about) only makes a fix more expensive.

use pellucid_api::reason::ReasonCode;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_model::{GangKey, Name, NodeIdx};

use super::labels;
use super::parts::{Part, Side, cut_cost, is_tied};
use super::victims::{self, DELETE};
use crate::requirements::{PodRequirements, missing};

/// What a part of a fix does, whichever node and pods it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Uncordon,
    RemoveTaint,
    Tolerate,
    Label,
    /// Gives the pod a value of this label.
    LabelPod(Name),
    /// Gives the pod a value of this annotation.
    AnnotatePod(Name),
    Move,
    DropNodeAffinity,
    DropHostPorts,
    RelaxSpread,
    RelaxPodAffinity,
    RelaxPodAntiAffinity,
    /// Requests this much of a resource.
    Request(Name, i64),
    Delete,
    CopyNode,
    /// Lowers the quorum of this gang.
    Quorum(GangKey),
    /// Lowers what must be free of this resource before a gang is planned.
    MinResource(Name),
    /// Makes an object this one, as a text.
    Object(String),
    Other,
}

impl Kind {
    pub(super) fn of(edit: &Edit) -> Self {
        match edit {
            Edit::Uncordon(_) => Self::Uncordon,
            Edit::RemoveTaint { .. } => Self::RemoveTaint,
            Edit::AddToleration { .. } => Self::Tolerate,
            Edit::LabelNode { .. } | Edit::RemoveLabel { .. } => Self::Label,
            Edit::LabelPod { key, .. } => Self::LabelPod(key.clone()),
            Edit::AnnotatePod { key, .. } => Self::AnnotatePod(key.clone()),
            Edit::MovePod { .. } => Self::Move,
            Edit::ApplyCustom(object) => Self::Object((object.kind.0.encode)(&object.value).to_string()),
            Edit::ApplyObject(object) => Self::Object(format!("{object:?}")),
            Edit::DropNodeAffinity(_) => Self::DropNodeAffinity,
            Edit::DropHostPorts(_) => Self::DropHostPorts,
            Edit::RelaxSpread(_) => Self::RelaxSpread,
            Edit::RelaxPodAffinity(_) => Self::RelaxPodAffinity,
            Edit::RelaxPodAntiAffinity(_) => Self::RelaxPodAntiAffinity,
            Edit::SetRequest { resource, amount, .. } => Self::Request(resource.clone(), *amount),
            Edit::DeletePod(_) => Self::Delete,
            Edit::SetQuorum { gang, .. } => Self::Quorum(gang.clone()),
            Edit::SetMinResource { resource, .. } => Self::MinResource(resource.clone()),
            Edit::CopyNode { .. } => Self::CopyNode,
            _ => Self::Other,
        }
    }

    /// Whether this asks for all that `known` asks for.
    fn contains(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Request(resource, amount), Self::Request(other, enough)) => {
                resource == other && amount <= enough
            }
            _ => self == known,
        }
    }
}

/// Returns the kinds of parts.
pub(super) fn kinds(parts: &[Part]) -> Vec<Kind> {
    parts.iter().map(|part| Kind::of(&part.edit)).collect()
}

/// Returns whether a change adds nothing to a known one: it does every kind of thing that the known one does, on
/// whichever node, and allows no larger request.
pub(super) fn is_no_better(change: &[Kind], known: &[Kind]) -> bool {
    known.iter().all(|known| change.iter().any(|kind| kind.contains(known)))
}

/// The least cost of a fix on one node, and what it does.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    pub(super) cost: u32,
    pub(super) kinds: Vec<Kind>,
}

impl Estimate {
    fn add(&mut self, (kind, cost): (Kind, u32)) {
        // One deletion, label or dropped term may answer several requirements.
        let is_shared = !matches!(kind, Kind::RemoveTaint | Kind::Tolerate | Kind::Request(..));
        if !is_shared || !self.kinds.contains(&kind) {
            self.cost += cost;
            self.kinds.push(kind);
        }
    }

    /// Estimates a fix of a node on one side. Returns `None` when there is none.
    pub(super) fn of(asked: &PodRequirements<'_>, node: NodeIdx, side: Side) -> Option<Self> {
        let mask = asked.masks.of(node);
        let is_cordoned =
            asked.masks.requirements(mask).any(|(_, r)| r.reason.code == ReasonCode::NodeUnschedulable);
        let fixed = asked.masks.fixed_of(node);
        let mut estimate = Self::default();
        for (bit, requirement) in asked.masks.requirements(mask) {
            if is_cordoned && is_cordon(requirement) {
                // Whatever opens the node removes its taint.
                continue;
            }
            let pod = || of_pod(asked, node, requirement);
            let cluster = || of_cluster(asked, node, requirement, fixed & (1 << bit) != 0);
            estimate.add(match side {
                Side::Pod => pod().or_else(cluster)?,
                Side::Cluster => cluster().or_else(pod)?,
                Side::Cheapest => match (pod(), cluster()) {
                    (Some(pod), Some(cluster)) if cluster.1 < pod.1 => cluster,
                    (Some(pod), _) => pod,
                    (None, cluster) => cluster?,
                },
            });
        }
        Some(estimate)
    }

    /// Whether it deletes pods, of which the estimate does not say how many.
    pub(super) fn deletes(&self) -> bool {
        self.kinds.contains(&Kind::Delete)
    }

    /// Counts the pods that must leave the node at least. Returns `None` when that does not help.
    pub(super) fn count_victims(&mut self, asked: &PodRequirements<'_>, node: NodeIdx) -> Option<()> {
        let more = u32::try_from(victims::least(asked, node)?.saturating_sub(1)).ok()?;
        self.cost += more * DELETE;
        Some(())
    }
}

/// Whether a requirement is the taint of a cordon.
fn is_cordon(requirement: &Requirement) -> bool {
    let subject = requirement.reason.subject.as_deref();
    requirement.reason.code == ReasonCode::UntoleratedTaint
        && subject == Some("node.kubernetes.io/unschedulable:NoSchedule")
}

fn of_pod(asked: &PodRequirements<'_>, node: NodeIdx, requirement: &Requirement) -> Option<(Kind, u32)> {
    let spec = &asked.record.pod.spec;
    Some(match requirement.reason.code {
        ReasonCode::InsufficientResource => {
            let (requested, available) = missing(asked, node, requirement)?;
            let resource = requirement.reason.subject.clone()?;
            (available > 0).then(|| (Kind::Request(resource, available), cut_cost(requested, available)))?
        }
        ReasonCode::UntoleratedTaint => (Kind::Tolerate, 20),
        ReasonCode::NodeAffinityMismatch | ReasonCode::NodeNameMismatch if !is_tied(asked) => {
            (Kind::DropNodeAffinity, 45)
        }
        ReasonCode::HostPortConflict => (Kind::DropHostPorts, 45),
        code => match requirement.plugin {
            "PodTopologySpread" => (Kind::RelaxSpread, 40),
            "InterPodAffinity"
                if code == ReasonCode::PodAffinityMismatch && !spec.pod_affinity.required.is_empty() =>
            {
                (Kind::RelaxPodAffinity, 50)
            }
            "InterPodAffinity"
                if code == ReasonCode::PodAntiAffinityConflict
                    && !spec.pod_anti_affinity.required.is_empty() =>
            {
                (Kind::RelaxPodAntiAffinity, 50)
            }
            _ => return None,
        },
    })
}

fn of_cluster(
    asked: &PodRequirements<'_>,
    node: NodeIdx,
    requirement: &Requirement,
    is_fixed: bool,
) -> Option<(Kind, u32)> {
    match requirement.reason.code {
        ReasonCode::NodeUnschedulable => Some((Kind::Uncordon, 10)),
        ReasonCode::UntoleratedTaint if is_cordon(requirement) => Some((Kind::Uncordon, 10)),
        ReasonCode::UntoleratedTaint => Some((Kind::RemoveTaint, 30)),
        ReasonCode::NodeAffinityMismatch => {
            let (cost, _) = labels::cheapest(&asked.record.pod.spec.affinity, asked.cluster.node(node)?)?;
            Some((Kind::Label, cost))
        }
        _ => (!is_fixed).then_some((Kind::Delete, DELETE)),
    }
}
