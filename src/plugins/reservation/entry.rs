//! One reservation as the state knows it: its object, the pod that stands for it, and the pods in its room.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::keys::reservation as keys;
use pellucid_cluster::Given;
use pellucid_model::effect::BindingMarks;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{Name, NodeIdx, Pod, PodId, PodKey};
use serde_json::{Value, json};
use smallvec::SmallVec;

use super::object::{Amounts, Phase, Policy, Reservation, named};
use super::owners::OwnerTerm;

/// What an owner holds: its place in a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Name of the reservation.
    pub(super) name: Name,
    /// Its uid.
    pub(super) uid: Arc<str>,
    /// Whether the API server has confirmed the owner's Binding.
    pub(super) is_bound: bool,
}

impl Taken {
    /// Returns the annotation from which it is read back.
    pub(super) fn marks(&self) -> BindingMarks {
        BindingMarks::annotation(keys::RESERVATION_ALLOCATED, self.text())
    }

    pub(super) fn text(&self) -> String {
        match self.name.split_once('/') {
            Some((namespace, name)) => json!({"name": name, "namespace": namespace, "uid": &*self.uid}),
            None => json!({"name": self.name.as_str(), "uid": &*self.uid}),
        }
        .to_string()
    }

    pub(super) fn read(pod: &Pod) -> Option<Self> {
        let value: Value = serde_json::from_str(pod.marks.text(keys::RESERVATION_ALLOCATED)?).ok()?;
        let (name, uid) = (value["name"].as_str()?, value["uid"].as_str()?);
        let name = match value["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Name::new(&format!("{namespace}/{name}")),
            None => name.into(),
        };
        Some(Self { name, uid: uid.into(), is_bound: true })
    }
}

/// A pod that stands in a reservation's room.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) key: PodKey,
    pub(super) uid: Arc<str>,
    pub(super) requests: PodRequests,
    pub(super) is_bound: bool,
    /// uid of the reservation that it holds.
    pub(super) of: Arc<str>,
    /// The node that it is on.
    pub(super) node: NodeIdx,
}

/// A reservation's object.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) spec: Arc<Reservation>,
    pub(super) uid: Arc<str>,
    pub(super) resource_version: Arc<str>,
    /// What is wrong with its owners or its template.
    pub(super) problem: Option<Arc<str>>,
    /// Whether it is a pod in operating mode Reservation.
    pub(super) is_pod: bool,
}

/// The pod that stands for a reservation.
#[derive(Clone, Debug)]
pub(super) struct StandIn {
    pub(super) id: PodId,
    /// What it requests: all that is reserved.
    pub(super) requests: PodRequests,
    /// The same by name.
    reserved: Amounts,
}

impl StandIn {
    pub(super) fn new(id: PodId, requests: &PodRequests) -> Self {
        Self { id, requests: requests.clone(), reserved: named(&requests.list) }
    }
}

/// A reservation.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// `None` while only owners are known.
    pub(super) known: Option<Known>,
    pub(super) stand_in: Option<StandIn>,
    pub(super) all_owners: BTreeMap<PodId, Owner>,
    /// Pods over which its pod is placed, until the object says so; from then on they are owners as any.
    pub(super) taken_over: Vec<(PodId, Owner)>,
    /// The node that its pod had last.
    pub(super) at: Option<NodeIdx>,
    /// Why it could not be placed at the last try.
    pub(super) refused: Option<Arc<str>>,
    /// Why it is evicted, until its object says that it has ended.
    pub(super) evicted: Option<Arc<str>>,
    pub(super) is_expired: bool,
    /// What its pod gives up to owners.
    pub(super) given: Option<Arc<Given>>,
}

impl Entry {
    /// Iterates over the pods in its room, in no meaningful order.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.guests().map(|(_, owner)| owner)
    }

    /// Does the same with their ids.
    pub(super) fn guests(&self) -> impl Iterator<Item = (PodId, &Owner)> {
        let known = self.known.as_ref();
        // A pod that is a reservation and is not ready any more keeps its owner.
        let is_waiting = known.is_some_and(|known| !known.is_pod && known.spec.status.phase.is_waiting());
        let is_in = move |owner: &Owner| {
            known.is_some_and(|known| known.uid == owner.of) && self.at.is_none_or(|at| at == owner.node)
        };
        let bound = self.all_owners.iter().filter(move |(_, owner)| !is_waiting && is_in(owner));
        let taken_over = self.taken_over.iter().filter(move |_| is_waiting);
        bound.map(|(id, owner)| (*id, owner)).chain(taken_over.map(|(id, owner)| (*id, owner)))
    }

    /// Returns what is reserved.
    pub(super) fn allocatable(&self) -> &Amounts {
        static NOTHING: Amounts = Amounts::new();
        self.stand_in.as_ref().map_or(&NOTHING, |pod| &pod.reserved)
    }

    /// Returns what owners request of a resource, including what overflows the reservation.
    pub(super) fn used(&self, resource: &Name) -> i64 {
        self.owners().map(|owner| amount(&owner.requests.list, resource)).fold(0, i64::saturating_add)
    }

    /// Returns what its pod still takes of a resource on the node.
    pub(super) fn left(&self, resource: &Name) -> i64 {
        let all = self.stand_in.as_ref().map_or(0, |pod| amount(&pod.requests.list, resource));
        (all - self.used(resource)).max(0)
    }

    /// Returns what of it owners may have: not what the reservation keeps back.
    pub(super) fn usable(&self, resource: &Name) -> i64 {
        let kept = self.known.as_ref().map_or(0, |known| known.spec.kept_back(self.allocatable(), resource));
        (self.left(resource) - kept).max(0)
    }

    /// Returns the object, if pods may use the reservation: it is placed, has not expired, and no owner has used it up.
    pub(super) fn available(&self) -> Option<(&Known, &StandIn)> {
        let (known, stand_in) = (self.known.as_ref()?, self.stand_in.as_ref()?);
        let is_used_up = known.spec.once && self.owners().next().is_some();
        let is_open = known.spec.status.phase == Phase::Available
            && !self.is_expired
            && self.evicted.is_none()
            && !is_used_up;
        is_open.then_some((known, stand_in))
    }

    /// Returns the owners of a reservation that pods may use, as text and as terms.
    pub(super) fn open_to(&self) -> Option<(Name, Arc<[OwnerTerm]>)> {
        let (known, _) = self.available()?;
        let terms = known.spec.owners.as_ref().ok()?;
        known.spec.status.node.as_ref()?;
        Some((known.spec.owners_text.clone(), terms.clone()))
    }

    /// Returns what its pod should give up: what owners take, up to what it has.
    pub(super) fn to_give(&self) -> Option<Arc<Given>> {
        let own = &self.stand_in.as_ref()?.requests;
        self.owners().next()?;
        let sum = |of: &dyn Fn(&PodRequests) -> i64| {
            let all = self.owners().map(|owner| of(&owner.requests)).fold(0, i64::saturating_add);
            all.clamp(0, of(own).max(0))
        };
        let scalars = own.list.scalars.iter();
        let scalars = scalars.map(|(name, _)| (name.clone(), sum(&|of| of.list.scalar(name)))).collect();
        let amounts = PodRequests {
            list: ResourceList {
                milli_cpu: sum(&|of| of.list.milli_cpu),
                memory: sum(&|of| of.list.memory),
                ephemeral_storage: sum(&|of| of.list.ephemeral_storage),
                pods: 1,
                scalars,
            },
            non_zero_milli_cpu: sum(&|of| of.non_zero_milli_cpu),
            non_zero_memory: sum(&|of| of.non_zero_memory),
            by_containers: None,
        };
        let is_limit = self.known.as_ref()?.spec.policy == Policy::Restricted;
        let mut guests: SmallVec<[PodId; 2]> = self.guests().map(|(id, _)| id).collect();
        guests.sort_unstable();
        Some(Arc::new(Given { amounts, guests, is_limit }))
    }
}

/// Returns the amount of a resource in a list.
pub(super) fn amount(list: &ResourceList, resource: &Name) -> i64 {
    match &**resource {
        "cpu" => list.milli_cpu,
        "memory" => list.memory,
        "ephemeral-storage" => list.ephemeral_storage,
        _ => list.scalar(resource),
    }
}
