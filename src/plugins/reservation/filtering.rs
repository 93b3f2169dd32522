//! PreFilter and Filter: pods that must have a reservation, pods that may use one, and reservations themselves.

use std::sync::Arc;

use pellucid_cluster::Cluster;
use pellucid_framework::plugin::{CycleValue, Filter, Measure, Nodes, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Cause, CauseId, Code, View};
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::ReservationPlugin;
use super::affinity::ignores_all;
use super::choosing::{Lack, Stand, choose};
use super::matching::Seeker;
use super::object::Policy;
use super::operating;
use super::reasons::{self, cause};
use super::reservations::{Reservations, offered_by, reservation_of};
use super::taking_over::Taker;

/// What the filter judges.
enum Judged {
    /// A pod that may use reservations.
    Owner,
    /// A reservation: its policy, where others have another one; its name, where it must be over a pod; and the node that
    /// its template names.
    Reservation { policy: Option<Policy>, name: Option<Name>, node: Option<Name> },
}

impl ReservationPlugin {
    fn prepare(view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let Some(pod) = view.pod() else { return PreFiltered::Skip };
        if let Some(name) = reservation_of(pod) {
            return Self::prepare_reservation(view, name);
        }
        if let Some(name) = operating::name_of(pod) {
            return Self::prepare_reservation(view, &name);
        }
        let refused = |reason, subject: &str| {
            PreFiltered::Refused(cause(Code::UnschedulableAndUnresolvable, reason, subject))
        };
        let seeker = match Seeker::of(view, pod, spec) {
            Ok(Some(seeker)) => seeker,
            Ok(None) => return PreFiltered::Skip,
            Err(text) => return refused(&reasons::UNREADABLE, &text),
        };
        if ignores_all(spec) {
            return match seeker.affinity().map(|_| seeker.nodes_with_any()) {
                None => PreFiltered::Skip,
                Some(nodes) if nodes.is_empty() => refused(&reasons::NO_MATCH, ""),
                Some(nodes) => PreFiltered::Ready { value: Arc::new(()), nodes: Some(nodes) },
            };
        }
        let value: CycleValue = Arc::new(Judged::Owner);
        // In a trial the only node that is asked about has one.
        if seeker.affinity().is_some() && !view.absent().is_empty() && seeker.has_match() {
            return PreFiltered::Ready { value, nodes: None };
        }
        if seeker.affinity().is_some() {
            let nodes: Vec<NodeIdx> = seeker.matches().into_keys().collect();
            if nodes.is_empty() {
                return refused(&reasons::NO_MATCH, "");
            }
            return PreFiltered::Ready { value, nodes: Some(nodes) };
        }
        // Nodes with reservations that match are overridden, and asked about in trials.
        match seeker.away().is_empty() {
            true => PreFiltered::Skip,
            false => PreFiltered::Ready { value, nodes: None },
        }
    }

    fn prepare_reservation(view: View<'_>, name: &Name) -> PreFiltered {
        let Some(all) = view.state::<Reservations>() else { return PreFiltered::Skip };
        let must_take = Taker::of(view, name).filter(Taker::must_take);
        let spec = all.get(name).and_then(|entry| Some(&entry.known.as_ref()?.spec));
        let policy = spec.map(|spec| spec.policy).filter(|policy| all.has_conflict(*policy));
        let node = spec.and_then(|spec| spec.wanted_node.clone());
        if policy.is_none() && must_take.is_none() && node.is_none() {
            return PreFiltered::Skip;
        }
        // In a trial the pods are away.
        let taker = must_take.as_ref().filter(|_| view.absent().is_empty());
        let nodes: Option<Vec<NodeIdx>> =
            taker.map(|taker| taker.overrides().into_iter().map(|of| of.node).collect());
        if nodes.as_ref().is_some_and(Vec::is_empty) {
            let cause = cause(Code::UnschedulableAndUnresolvable, &reasons::NOTHING_TO_TAKE, "");
            return PreFiltered::Refused(cause);
        }
        let value = Judged::Reservation { policy, name: must_take.map(|_| name.clone()), node };
        PreFiltered::Ready { value: Arc::new(value), nodes }
    }

    /// Returns why a node is refused to an owner.
    fn refusal(seeker: &Seeker<'_>, node: NodeIdx) -> Option<Cause> {
        if seeker.affinity().is_none() && seeker.on(node).is_empty() {
            return None;
        }
        let choice = choose(seeker, node, Stand::Outside);
        let is_feasible = choice.taken.is_some() || choice.fits_beside;
        (!is_feasible).then(|| reasons::lacking(&choice.lacks, seeker.affinity()))
    }
}

/// Whether a node has a reservation that does not share it with one of this policy. A pod in operating mode Reservation is
/// one while it can be used.
fn conflicts(cluster: &Cluster, all: &Reservations, node: NodeIdx, policy: Policy) -> bool {
    let pods = cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id));
    let known = pods.filter_map(|record| {
        let entry = all.get(&*offered_by(&record.pod)?)?;
        entry.known.as_ref().filter(|known| !known.is_pod || entry.available().is_some())
    });
    known.into_iter().any(|known| !known.spec.policy.agrees_with(policy))
}

impl PreFilter for ReservationPlugin {
    /// Owners are known by their names and owners, and reservations by objects of their own.
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        Self::prepare(view, spec)
    }
}

impl Filter for ReservationPlugin {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        match value.downcast_ref::<Judged>() {
            Some(Judged::Reservation { policy, name, node }) => {
                let Some(all) = view.state::<Reservations>() else { return };
                if let Some(wanted) = node {
                    let of = cause(Code::UnschedulableAndUnresolvable, &reasons::OTHER_NODE, "");
                    let refused = nodes.cause(of);
                    nodes.refuse(|node| if view.name(node) == wanted { CauseId::FEASIBLE } else { refused });
                }
                if let Some(taker) = name.as_ref().and_then(|name| Taker::of(view, name)) {
                    let of = cause(Code::UnschedulableAndUnresolvable, &reasons::NOTHING_TO_TAKE, "");
                    let refused = nodes.cause(of);
                    nodes.refuse(|node| if taker.takes_any(node) { CauseId::FEASIBLE } else { refused });
                }
                let Some(policy) = policy else { return };
                let of = cause(Code::Unschedulable, &reasons::POLICY_CONFLICT, "");
                let refused = nodes.cause(of);
                nodes.refuse(|node| match conflicts(view.cluster(), all, node, *policy) {
                    true => refused,
                    false => CauseId::FEASIBLE,
                });
            }
            Some(Judged::Owner) => {
                let Some(Ok(Some(seeker))) = view.pod().map(|pod| Seeker::of(view, pod, spec)) else {
                    return;
                };
                nodes.refuse_with(|causes, node| {
                    Self::refusal(&seeker, node).map_or(CauseId::FEASIBLE, |cause| causes.id(cause))
                });
            }
            None => {}
        }
    }

    fn measure(&self, view: View<'_>, spec: &PodSpec, _cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let Some(Ok(Some(seeker))) = view.pod().map(|pod| Seeker::of(view, pod, spec)) else {
            return Vec::new();
        };
        let mut all: Vec<Measure> = Vec::new();
        for node in nodes {
            for lack in choose(&seeker, *node, Stand::Outside).tried {
                let Lack::Reservation { resource, requested, used, capacity } = lack else { continue };
                let resource = Name::new(&format!("{resource} of the reservation"));
                let (available, best_node) = (capacity.saturating_sub(used), *node);
                match all.iter_mut().find(|known| known.resource == resource) {
                    Some(known) if known.available >= available => {}
                    Some(known) => (known.available, known.best_node) = (available, best_node),
                    None => all.push(Measure { resource, requested, available, best_node }),
                }
            }
        }
        all
    }
}
