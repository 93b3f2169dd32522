//! Which reservations a pod may use, and why not the others.

use std::collections::BTreeMap;

use pellucid_framework::View;
use pellucid_model::taint::{Taint, TaintEffect, tolerated};
use pellucid_model::{Name, NodeIdx, Pod, PodSpec};
use smallvec::SmallVec;

use super::affinity::{Affinity, Wishes, wishes};
use super::entry::{Entry, Known, StandIn, amount};
use super::index::Group;
use super::object::{Reservation, amounts_of};
use super::reservations::Reservations;
use super::{operating, owners};

/// Why an owner may not use a reservation, in the order in which reservations are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mismatch {
    /// The pod asks for another one by name.
    Name,
    Affinity,
    Unschedulable,
    NotExact,
    /// A taint that is not tolerated, as `{key: value}`.
    Taint(String),
}

impl Mismatch {
    /// Returns what a number of reservations is said to be.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Unschedulable => "is unschedulable".into(),
            Self::Name => "didn't match the requested reservation name".into(),
            Self::Affinity => "didn't match affinity rules".into(),
            Self::Taint(taint) => format!("had untolerated taint {taint}"),
            Self::NotExact => "is not exact matched".into(),
        }
    }
}

/// How many reservations have a pod as an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) owned: usize,
    /// Those of them that the pod asks for by name and may use.
    pub(super) named: usize,
    /// The others that it may not use, by what keeps it from them.
    pub(super) others: BTreeMap<Mismatch, usize>,
}

/// A pod and what it wants of reservations.
pub(super) struct Seeker<'a> {
    pub(super) view: View<'a>,
    pub(super) all: &'a Reservations,
    pod: &'a Pod,
    /// The spec in question, which may differ from the pod's.
    pub(super) spec: &'a PodSpec,
    pub(super) wishes: Wishes,
    /// What it requests.
    pub(super) wanted: SmallVec<[(Name, i64); 4]>,
    /// The reservations that have the pod as an owner.
    groups: SmallVec<[&'a Group; 2]>,
}

/// A reservation that the pod may use.
#[derive(Clone, Copy)]
pub(super) struct Match<'a> {
    pub(super) name: &'a Name,
    pub(super) entry: &'a Entry,
    pub(super) known: &'a Known,
    pub(super) stand_in: &'a StandIn,
    pub(super) node: NodeIdx,
}

impl<'a> Seeker<'a> {
    /// Makes it for a pod. `None` when the pod owns no reservation and needs none, or stands for one. Fails with what is
    /// wrong with its annotations.
    pub(super) fn of(view: View<'a>, pod: &'a Pod, spec: &'a PodSpec) -> Result<Option<Self>, String> {
        let Some(all) = view.state::<Reservations>() else { return Ok(None) };
        let groups = all.index.of_pod(pod);
        // Most pods own no reservation and say nothing of any.
        if groups.is_empty() && spec.annotations.iter().next().is_none() {
            return Ok(None);
        }
        let wishes = wishes(spec)?;
        let is_reservation = pod.stands_for.is_some() || operating::name_of(pod).is_some();
        if is_reservation || groups.is_empty() && wishes.affinity.is_none() {
            return Ok(None);
        }
        let wanted = amounts_of(&spec.requests.list).collect();
        Ok(Some(Self { view, all, pod, spec, wishes, wanted, groups }))
    }

    /// Returns the affinity of a pod that must have a reservation.
    pub(super) fn affinity(&self) -> Option<&Affinity> {
        self.wishes.affinity.as_ref()
    }

    /// Returns whether a reservation that is about to be placed may take the pod over: the pod does not ask for another one.
    pub(super) fn may_be_taken_over(
        (view, all): (View<'a>, &'a Reservations),
        pod: &'a Pod,
        (name, entry): (&Name, &Entry),
        node: NodeIdx,
    ) -> bool {
        let spec = &*pod.spec;
        let (Ok(wishes), Some(known), Some(stand_in)) = (wishes(spec), &entry.known, &entry.stand_in) else {
            return false;
        };
        let seeker = Self { view, all, pod, spec, wishes, wanted: SmallVec::new(), groups: SmallVec::new() };
        let other = match seeker.affinity().and_then(|affinity| affinity.name.as_ref()) {
            Some(wanted) => wanted != name,
            None => seeker.mismatch_affinity(name, &known.spec, node).is_some(),
        };
        !other && !seeker.differs(stand_in)
    }

    /// Returns what of a reservation keeps the pod from using it; `None` when the pod is no owner or the reservation is
    /// not there to be used, or is on a node that the pod does not select.
    pub(super) fn judge(&self, name: &'a Name, entry: &'a Entry) -> Option<Result<Match<'a>, Mismatch>> {
        let owners = entry.known.as_ref()?.spec.owners.as_deref().ok()?;
        if owners::matches(owners, self.pod) { self.judge_owned(name, entry) } else { None }
    }

    /// Does the same of a reservation that has the pod as an owner.
    fn judge_owned(&self, name: &'a Name, entry: &'a Entry) -> Option<Result<Match<'a>, Mismatch>> {
        let (known, stand_in) = entry.available()?;
        let node = *self.all.nodes.get(known.spec.status.node.as_ref()?)?;
        // One on a node that the pod does not want is not there for it.
        if !self.selects(node) {
            return None;
        }
        Some(match self.mismatch(name, known, stand_in, node) {
            Some(mismatch) => Err(mismatch),
            None => Ok(Match { name, entry, known, stand_in, node }),
        })
    }

    /// Returns the first thing that keeps the pod from a reservation, in Koordinator's order. Of one that the pod names only
    /// the amounts are compared.
    fn mismatch(&self, name: &Name, known: &Known, stand_in: &StandIn, node: NodeIdx) -> Option<Mismatch> {
        let wanted = self.affinity().and_then(|affinity| affinity.name.as_ref());
        let other = match wanted {
            Some(wanted) => (wanted != name).then_some(Mismatch::Name),
            None => self.mismatch_unnamed(name, &known.spec, node),
        };
        other.or_else(|| self.differs(stand_in).then_some(Mismatch::NotExact))
    }

    /// Whether the reservation holds another amount than the pod requests, of what must be the same.
    fn differs(&self, stand_in: &StandIn) -> bool {
        let (own, wanted) = (&stand_in.requests.list, &self.spec.requests.list);
        self.wishes.exact.iter().any(|resource| amount(own, resource) != amount(wanted, resource))
    }

    /// Does the same, but for the amounts, for a pod that names no reservation.
    fn mismatch_unnamed(&self, name: &Name, spec: &Reservation, node: NodeIdx) -> Option<Mismatch> {
        // Tolerated as the taint that a cordoned node has.
        let cordoned = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: Name::default(),
            effect: TaintEffect::NoSchedule,
        };
        let affinity = self.affinity();
        if spec.unschedulable && !affinity.is_some_and(|of| tolerated(&of.tolerations, &cordoned)) {
            return Some(Mismatch::Unschedulable);
        }
        self.mismatch_affinity(name, spec, node)
    }

    /// Does the same for the pod's affinity alone.
    fn mismatch_affinity(&self, name: &Name, spec: &Reservation, node: NodeIdx) -> Option<Mismatch> {
        // As in Koordinator, taints do not keep out pods that may do without a reservation.
        let looking = self.affinity()?;
        let is_hard = |effect| matches!(effect, TaintEffect::NoSchedule | TaintEffect::NoExecute);
        let keeps_out = |taint: &&Taint| is_hard(taint.effect) && !tolerated(&looking.tolerations, taint);
        if let Some(taint) = spec.taints.iter().find(keeps_out) {
            return Some(Mismatch::Taint(format!("{{{}: {}}}", taint.key, taint.value)));
        }
        let is_selected = looking.selects(name, &spec.labels, self.view.labels(node));
        (!is_selected).then_some(Mismatch::Affinity)
    }

    /// Iterates over the reservations that have the pod as an owner and may be used.
    fn owned(&self) -> impl Iterator<Item = (&'a Name, &'a Entry)> {
        let all = self.all;
        let names = self.groups.iter().flat_map(|group| &group.open);
        names.filter_map(move |name| Some((name, all.get(name)?)))
    }

    /// Iterates over the reservations that the pod may use.
    fn usable(&self) -> impl Iterator<Item = Match<'a>> {
        let wanted = self.affinity().and_then(|affinity| affinity.name.as_ref());
        let named = wanted.and_then(|wanted| self.groups.iter().find_map(|group| group.find(wanted)));
        let named = named.and_then(|name| Some((name, self.all.get(name)?)));
        let others = wanted.is_none().then(|| self.owned());
        let all = named.into_iter().chain(others.into_iter().flatten());
        all.filter_map(|(name, entry)| self.judge_owned(name, entry)?.ok())
    }

    /// Returns the reservations that the pod may use, by node and name.
    pub(super) fn matches(&self) -> BTreeMap<NodeIdx, Vec<Match<'a>>> {
        let mut all: BTreeMap<NodeIdx, Vec<Match<'a>>> = BTreeMap::new();
        self.usable().for_each(|found| all.entry(found.node).or_default().push(found));
        all.values_mut().for_each(|matches| matches.sort_by(|a, b| a.name.cmp(b.name)));
        all
    }

    /// Returns the nodes where there are available reservations, of whoever. A pod that names one sees that one's node alone.
    pub(super) fn nodes_with_any(&self) -> Vec<NodeIdx> {
        let named = self.affinity().and_then(|affinity| self.all.get(affinity.name.as_ref()?));
        let known = named.and_then(|entry| entry.known.as_ref()).filter(|known| !known.is_pod);
        let only = known.and_then(|known| known.spec.status.node.as_ref());
        let mut nodes = self.all.placed_on();
        nodes.retain(|node| only.is_none_or(|only| self.view.name(*node) == only) && self.selects(*node));
        nodes
    }

    /// Returns whether the pod selects a node.
    fn selects(&self, node: NodeIdx) -> bool {
        let labels = self.view.labels(node);
        labels.is_some_and(|labels| self.spec.affinity.accepts(self.view.name(node), labels))
    }

    /// Returns whether the pod may use any reservation.
    pub(super) fn has_match(&self) -> bool {
        self.usable().next().is_some()
    }

    /// Returns the nodes of the reservations that the pod may use and whose pods are off their nodes. All others are
    /// overridden, so what holds for this pod on their nodes is said in trials.
    pub(super) fn away(&self) -> SmallVec<[NodeIdx; 2]> {
        let found = self.all.away().filter_map(|(name, entry)| self.judge(name, entry)?.ok());
        found.map(|found| found.node).collect()
    }

    /// Returns the reservations of a node that the pod may use, by name.
    pub(super) fn on(&self, node: NodeIdx) -> Vec<Match<'a>> {
        let all = self.all.on_node(self.view.name(node));
        all.filter_map(|(name, entry)| self.judge(name, entry)?.ok()).collect()
    }

    /// Counts the reservations that have the pod as an owner.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // A pod that names its reservation looks at the node of that one alone.
        let named = self.affinity().and_then(|affinity| affinity.name.as_ref());
        let node_of = |entry: &Entry| entry.known.as_ref().and_then(|known| known.spec.status.node.clone());
        let only = named.and_then(|name| node_of(self.all.get(name)?));
        for (name, entry) in self.owned() {
            if only.is_some() && node_of(entry) != only {
                continue;
            }
            let Some(judged) = self.judge_owned(name, entry) else { continue };
            counts.owned += 1;
            match judged {
                Ok(_) => counts.named += usize::from(named.is_some()),
                Err(mismatch) => *counts.others.entry(mismatch).or_insert(0) += 1,
            }
        }
        counts
    }
}
