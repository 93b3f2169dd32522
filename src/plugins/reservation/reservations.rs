//! The state of the plugin: all reservations, who stands in the room of which, and what is left of it.
//!
//! A reservation's pod takes what is left: the hold of an owner has it give up what the owner takes of its room. What
//! stands on objects (`status` of the reservation, the annotation of the owner) is enough to make all of it again.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::derived::{HookContext, Placed, Told, Touched};
use pellucid_cluster::objects::ObjectKey;
use pellucid_cluster::{DerivedState, Given, HoldValue, Stage};
use pellucid_model::effect::{ObjectWrite, WriteOutcome};
use pellucid_model::{CowMap, CustomKindRef, CustomObject, Name, Node, NodeIdx, Now, Pod, PodId};

use super::NAME;
use super::args::ReservationArgs;
use super::entry::{Entry, Known, Owner, StandIn, Taken};
use super::index::Index;
use super::object::{Phase, Policy, Reservation};
use super::operating;
use super::reading::story;
use super::taking_over::TakenOver;
use super::writes::Writes;

/// All reservations.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    pub(super) args: Arc<ReservationArgs>,
    all: CowMap<Name, Arc<Entry>>,
    /// Names of the placed reservations of each node, sorted.
    by_node: CowMap<Name, Arc<Vec<Name>>>,
    /// Names of the nodes that exist.
    pub(super) nodes: CowMap<Name, NodeIdx>,
    n_known: usize,
    /// How many that have not ended have a policy, by whether it is the default one.
    by_policy: [usize; 2],
    /// How many have an order.
    n_ordered: usize,
    /// How many are about to be placed over pods.
    n_taking_over: usize,
    /// Those that pods may use.
    pub(super) index: Index,
    /// Names of reservations whose pods had a node and are off it: for a trial, or until they are placed again.
    away: Vec<Name>,
    /// When something changes by time alone, as seconds since 1970.
    deadlines: Arc<BTreeSet<(i64, Name)>>,
    pub(super) writes: Writes,
    /// Pods that give up another amount than was said last.
    given: Vec<(PodId, Option<Arc<Given>>)>,
}

impl Reservations {
    pub(super) fn new(args: Arc<ReservationArgs>) -> Self {
        Self {
            args,
            all: CowMap::default(),
            by_node: CowMap::default(),
            nodes: CowMap::default(),
            n_known: 0,
            by_policy: [0; 2],
            n_ordered: 0,
            n_taking_over: 0,
            index: Index::default(),
            away: Vec::new(),
            deadlines: Arc::default(),
            writes: Writes::default(),
            given: Vec::new(),
        }
    }

    /// Returns whether there is no reservation.
    pub(super) fn is_empty(&self) -> bool {
        self.n_known == 0
    }

    /// Iterates over the reservations that have an object, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Entry, &Known)> {
        self.all.iter().filter_map(|(name, entry)| Some((name, &**entry, entry.known.as_ref()?)))
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Entry> {
        self.all.get(name).map(|entry| &**entry)
    }

    /// Iterates over the placed reservations of a node, by name.
    pub(super) fn on_node(&self, node: &Name) -> impl Iterator<Item = (&Name, &Entry)> {
        let names = self.by_node.get(node).into_iter().flat_map(|names| names.iter());
        names.filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Iterates over the reservations whose pods had a node and are off it.
    pub(super) fn away(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        self.away.iter().filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Returns whether any reservation has an order.
    pub(super) fn has_order(&self) -> bool {
        self.n_ordered > 0
    }

    /// Returns whether any reservation has a policy that does not share a node with this one.
    pub(super) fn has_conflict(&self, policy: Policy) -> bool {
        self.by_policy[usize::from(policy == Policy::Default)] > 0
    }

    /// Returns the nodes with available reservations, ascending.
    pub(super) fn placed_on(&self) -> Vec<NodeIdx> {
        let known = self.iter().filter_map(|(_, entry, _)| entry.available());
        let node = |(known, _): (&Known, &StandIn)| self.nodes.get(known.spec.status.node.as_ref()?).copied();
        let mut all: Vec<NodeIdx> = known.filter_map(node).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Changes a reservation, and has its pod give up what it must. What is left of it without object and owners goes.
    fn change(&mut self, name: &Name, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.all.remove(name).map(Arc::unwrap_or_clone).unwrap_or_default();
        let (was_open, was_known) = (entry.open_to(), entry.known.clone());
        let was_taking_over = !entry.taken_over.is_empty();
        change(&mut entry);
        self.count(was_known.as_ref(), entry.known.as_ref());
        self.n_taking_over += usize::from(!entry.taken_over.is_empty());
        self.n_taking_over -= usize::from(was_taking_over);
        let is_open = entry.open_to();
        if was_open.as_ref().map(|(owners, _)| owners) != is_open.as_ref().map(|(owners, _)| owners) {
            if let Some((owners, _)) = was_open {
                self.index.close(&owners, name);
            }
            if let Some((owners, terms)) = is_open {
                self.index.open(&owners, &terms, name);
            }
        }
        let given = entry.to_give();
        if let Some(pod) = entry.stand_in.as_ref().filter(|_| given != entry.given) {
            self.given.push((pod.id, given.clone()));
        }
        entry.given = given;
        if entry.known.is_some() || !entry.all_owners.is_empty() || entry.stand_in.is_some() {
            self.all.insert(name.clone(), Arc::new(entry));
        }
    }

    /// Keeps the numbers of reservations current.
    fn count(&mut self, old: Option<&Known>, new: Option<&Known>) {
        for (known, comes) in [(old, false), (new, true)] {
            let Some(spec) = known.map(|known| &known.spec) else { continue };
            let change = |n: &mut usize| *n = if comes { *n + 1 } else { n.saturating_sub(1) };
            change(&mut self.n_known);
            if spec.order.is_some() {
                change(&mut self.n_ordered);
            }
            if !spec.status.phase.has_ended() {
                change(&mut self.by_policy[usize::from(spec.policy != Policy::Default)]);
            }
        }
    }

    /// Takes an owner in (`owner` is its hold), or out.
    fn change_owner(&mut self, placed: &Placed<'_>, hold: &HoldValue, comes: bool) -> Touched {
        if let Some(over) = hold.downcast_ref::<TakenOver>() {
            self.change(&over.name, |entry| {
                entry.taken_over = if comes { over.guests.clone() } else { Vec::new() };
            });
            return Touched::node(placed.node);
        }
        let Some(taken) = hold.downcast_ref::<Taken>() else { return Touched::Nothing };
        let pod = placed.pod;
        if taken.is_bound {
            self.writes.note(&taken.name);
        }
        self.change(&taken.name, |entry| {
            if comes {
                let owner = Owner {
                    key: pod.key.clone(),
                    uid: pod.uid.clone(),
                    requests: pod.spec.requests.clone(),
                    is_bound: taken.is_bound,
                    of: taken.uid.clone(),
                    node: placed.node,
                };
                entry.all_owners.insert(placed.id, owner);
            } else {
                entry.all_owners.remove(&placed.id);
            }
        });
        Touched::node(placed.node)
    }

    /// Handles a pod in operating mode Reservation that came, changed or left, with its object before and after.
    fn operating_pod(&mut self, name: &Name, (id, old, new): (PodId, Option<&Pod>, Option<&Pod>)) -> Touched {
        let node = |pod: Option<&Pod>| pod.filter(|pod| operating::is_open(pod))?.node_name.clone();
        // Its label may come and go while it runs.
        let [old, new] = [old, new].map(|pod| pod.filter(|pod| operating::name_of(pod).is_some()));
        self.index(name, node(old).as_ref(), node(new).as_ref());
        if new.is_none() {
            self.away.retain(|known| known != name);
        }
        self.change(name, |entry| {
            entry.known = new.and_then(operating::known);
            entry.stand_in = new.map(|pod| StandIn::new(id, &pod.spec.requests));
            if old.is_none() {
                entry.given = None;
            }
        });
        Touched::Attempts
    }

    /// Handles that a pod is no more, over which a reservation may be about to be placed.
    fn guest_left(&mut self, id: PodId) -> Touched {
        if self.n_taking_over == 0 {
            return Touched::Nothing;
        }
        let is_guest = |entry: &Entry| entry.taken_over.iter().any(|(guest, _)| *guest == id);
        let found = self.all.iter().find(|(_, entry)| is_guest(entry));
        if let Some(name) = found.map(|(name, _)| name.clone()) {
            self.change(&name, |entry| entry.taken_over.retain(|(guest, _)| *guest != id));
        }
        Touched::Nothing
    }

    fn index(&mut self, name: &Name, old: Option<&Name>, new: Option<&Name>) {
        if old == new {
            return;
        }
        if let Some(names) = old.and_then(|node| self.by_node.get_mut(node)) {
            Arc::make_mut(names).retain(|known| known != name);
        }
        if let Some(node) = new {
            let mut names = self.by_node.get(node).cloned().unwrap_or_default();
            let list = Arc::make_mut(&mut names);
            let at = list.partition_point(|known| known < name);
            list.insert(at, name.clone());
            self.by_node.insert(node.clone(), names);
        }
    }

    /// Returns the node that the object's status names, while the reservation is there to be used.
    fn node_of(object: Option<&CustomObject>) -> Option<Name> {
        let spec = object?.get::<Reservation>()?;
        spec.status.node.clone().filter(|_| spec.status.phase == Phase::Available)
    }

    /// Returns when a reservation changes by time alone, in seconds since 1970: it expires, or is to be deleted.
    fn deadline(&self, spec: &Reservation) -> Option<i64> {
        match spec.status.phase.has_ended() {
            false => spec.expires,
            true => self.args.deleted_at(spec),
        }
    }
}

/// What a pod in operating mode Reservation holds while it is ready.
struct Offer;

/// Returns the name of the reservation whose room a pod keeps: for which it stands, or which it is.
pub(super) fn offered_by(pod: &Pod) -> Option<Cow<'_, Name>> {
    reservation_of(pod).map(Cow::Borrowed).or_else(|| operating::name_of(pod).map(Cow::Owned))
}

/// Returns the name of the reservation for which a pod stands.
pub(super) fn reservation_of(pod: &Pod) -> Option<&Name> {
    let of = pod.stands_for.as_ref()?;
    (&*of.kind == super::RESERVATION.kind && of.api_version.starts_with(super::RESERVATION.group))
        .then_some(&of.name)
}

impl DerivedState for Reservations {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        NAME
    }

    fn pod_came(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        if let Some(name) = operating::name_of(pod) {
            return self.operating_pod(&name, (id, None, Some(pod)));
        }
        let Some(name) = reservation_of(pod) else { return Touched::Nothing };
        let stand_in = StandIn::new(id, &pod.spec.requests);
        self.change(&name.clone(), |entry| {
            (entry.stand_in, entry.given) = (Some(stand_in), None);
        });
        Touched::Attempts
    }

    fn pod_changed(&mut self, _cx: &HookContext<'_>, id: PodId, old: &Pod, new: &Pod) -> Touched {
        if let Some(name) = operating::name_of(new).or_else(|| operating::name_of(old)) {
            return self.operating_pod(&name, (id, Some(old), Some(new)));
        }
        if old.spec.requests == new.spec.requests {
            return Touched::Nothing;
        }
        if let Some(name) = reservation_of(new) {
            let stand_in = StandIn::new(id, &new.spec.requests);
            self.change(&name.clone(), |entry| entry.stand_in = Some(stand_in));
            return Touched::Attempts;
        }
        Touched::Nothing
    }

    fn pod_left(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        if let Some(name) = operating::name_of(pod) {
            return self.operating_pod(&name, (id, Some(pod), None));
        }
        let Some(name) = reservation_of(pod) else { return self.guest_left(id) };
        self.away.retain(|known| known != name);
        self.change(&name.clone(), |entry| entry.stand_in = None);
        Touched::Attempts
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let Some(name) = offered_by(placed.pod) else { return };
        if let Some(at) = self.away.iter().rposition(|known| *known == *name) {
            self.away.swap_remove(at);
        }
        if self.get(&name).is_some_and(|entry| entry.at != Some(placed.node)) {
            self.change(&name, |entry| entry.at = Some(placed.node));
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        if let Some(name) = offered_by(placed.pod) {
            self.away.push(name.into_owned());
        }
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        match (old, new) {
            (None, Some(new)) => drop(self.nodes.insert(new.name.clone(), node)),
            (Some(old), None) => {
                self.nodes.remove(&old.name);
                let names: Vec<Name> = self.on_node(&old.name).map(|(name, _)| name.clone()).collect();
                names.iter().for_each(|name| self.writes.note(name));
            }
            _ => {}
        }
        Touched::Nothing
    }

    fn custom_changed(
        &mut self,
        cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|object| object.get::<Reservation>().is_some()) else {
            return Touched::Nothing;
        };
        let name = &object.name;
        self.index(name, Self::node_of(old).as_ref(), Self::node_of(new).as_ref());
        let spec_of = |object: Option<&CustomObject>| object.and_then(CustomObject::shared::<Reservation>);
        if let Some(at) = spec_of(old).and_then(|spec| self.deadline(&spec)) {
            Arc::make_mut(&mut self.deadlines).remove(&(at, name.clone()));
        }
        let known = new.zip(spec_of(new)).map(|(object, spec)| {
            let of_template = object.pod.as_ref().and_then(|pod| pod.as_ref().err());
            let of_template = of_template.map(|problem| Arc::from(format!("spec.template.{problem}")));
            let problem = spec.problem().map(Arc::from).or(of_template);
            let (uid, resource_version) = (object.uid.clone(), object.resource_version.clone());
            Known { spec, uid, resource_version, problem, is_pod: false }
        });
        let is_new = old.map(|old| &old.uid) != new.map(|new| &new.uid);
        if let Some(at) = known.as_ref().and_then(|known| self.deadline(&known.spec)) {
            Arc::make_mut(&mut self.deadlines).insert((at, name.clone()));
        }
        self.writes.came_back(name);
        self.change(name, |entry| {
            if is_new {
                (entry.refused, entry.evicted, entry.is_expired) = (None, None, false);
            }
            let is_late = |known: &Known| known.spec.expires.is_some_and(|at| at <= seconds(cx.now));
            entry.is_expired |= known.as_ref().is_some_and(is_late);
            entry.known = known;
        });
        Touched::Attempts
    }

    fn told(&self, old: Option<&CustomObject>, new: Option<&CustomObject>) -> Vec<Told> {
        story::told(old, new)
    }

    fn stand_in_refused(&mut self, _cx: &HookContext<'_>, pod: &Pod, message: &Arc<str>) {
        let Some(name) = reservation_of(pod) else { return };
        if self.get(name).is_some_and(|entry| entry.refused.as_ref() != Some(message)) {
            self.writes.note(name);
            self.change(&name.clone(), |entry| entry.refused = Some(message.clone()));
        }
    }

    fn stand_in_evicted(&mut self, _cx: &HookContext<'_>, pod: &Pod, message: &Arc<str>) {
        let Some(name) = reservation_of(pod) else { return };
        self.writes.note(name);
        self.change(&name.clone(), |entry| entry.evicted = Some(message.clone()));
    }

    fn gives_up_room(&self) -> bool {
        true
    }

    fn given_up(&mut self) -> Vec<(PodId, Option<Arc<Given>>)> {
        std::mem::take(&mut self.given)
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<Duration> {
        let at = self.deadlines.first().map(|(at, _)| {
            let wall = Duration::from_secs(u64::try_from(*at).unwrap_or(0));
            now.monotonic + wall.saturating_sub(now.wall)
        });
        at.into_iter().chain(self.writes.deadline()).min()
    }

    fn expire(&mut self, now: Now) -> Touched {
        self.writes.expire(now);
        let mut touched = Touched::Nothing;
        while let Some((at, name)) = self.deadlines.first().filter(|(at, _)| *at <= seconds(now)).cloned() {
            Arc::make_mut(&mut self.deadlines).remove(&(at, name.clone()));
            self.writes.note(&name);
            self.change(&name, |entry| entry.is_expired = true);
            touched = Touched::Attempts;
        }
        touched
    }

    fn due_writes(&mut self, cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        let mut writes = std::mem::take(&mut self.writes);
        let due = writes.due(self, cx.now);
        self.writes = writes;
        due
    }

    fn ending_objects(&self) -> Vec<(CustomKindRef, ObjectKey)> {
        let names = self.writes.ending(self).into_iter();
        names.map(|name| (CustomKindRef(&super::RESERVATION), (Name::default(), name))).collect()
    }

    fn write_settled(
        &mut self,
        cx: &HookContext<'_>,
        write: &ObjectWrite,
        outcome: &WriteOutcome,
    ) -> Touched {
        self.writes.settled(write, outcome, cx.now);
        Touched::Nothing
    }

    fn reserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.change_owner(placed, hold, true)
    }

    fn unreserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.change_owner(placed, hold, false)
    }

    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        placed: &Placed<'_>,
        held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        if operating::name_of(placed.pod).is_some() {
            // It wakes those that wait for the room.
            let offer = held.filter(|held| held.is::<Offer>()).cloned();
            return operating::is_open(placed.pod).then(|| offer.unwrap_or_else(|| Arc::new(Offer)));
        }
        let known = held.and_then(|held| Some((held, held.downcast_ref::<Taken>()?)));
        match known {
            Some((held, taken)) if taken.is_bound || placed.stage != Stage::Bound => Some(held.clone()),
            Some((_, taken)) => Some(Arc::new(Taken { is_bound: true, ..taken.clone() })),
            None => Taken::read(placed.pod).map(|taken| Arc::new(taken) as HoldValue),
        }
    }
}

/// Returns the wall time in whole seconds.
pub(super) fn seconds(now: Now) -> i64 {
    i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX)
}
