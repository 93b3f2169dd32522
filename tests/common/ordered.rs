//! The scheduler's orders by kind.

use pellucid::cluster::Input;
use pellucid::cluster::preemptions::End;
use pellucid::model::effect::{
    BindOrder, Effect, EffectReport, EventOrder, EvictOrder, EvictOutcome, ObjectOrder, StatusOrder,
};
use pellucid::model::{Name, Pod};

use super::driver::Core;

/// What was ordered since the last time.
#[derive(Default)]
pub(crate) struct Ordered {
    pub(crate) bindings: Vec<BindOrder>,
    pub(crate) evictions: Vec<EvictOrder>,
    pub(crate) statuses: Vec<StatusOrder>,
    pub(crate) events: Vec<EventOrder>,
    pub(crate) writes: Vec<ObjectOrder>,
}

impl Ordered {
    /// Returns the names of the victims, sorted.
    pub(crate) fn victims(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.evictions.iter().map(|e| &*e.victim.key.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the nominations, each with the name of its pod.
    pub(crate) fn nominations(&self) -> Vec<(String, Option<Name>)> {
        let of = |s: &StatusOrder| Some((s.pod.key.name.to_string(), s.nomination.clone()?));
        self.statuses.iter().filter_map(of).collect()
    }

    /// Returns the nomination last written for a pod.
    pub(crate) fn nomination_of(&self, pod: &Pod) -> Option<Option<Name>> {
        let of_pod = self.statuses.iter().filter(|s| s.pod.uid == pod.uid);
        of_pod.filter_map(|s| s.nomination.clone()).next_back()
    }
}

impl Core {
    /// Drains all effects.
    pub(crate) fn ordered(&mut self) -> Ordered {
        let mut ordered = Ordered::default();
        for effect in self.scheduler.take_effects() {
            match effect {
                Effect::Bind(order) => ordered.bindings.push(order),
                Effect::Evict(order) => ordered.evictions.push(order),
                Effect::Status(order) => ordered.statuses.push(order),
                Effect::Event(order) => ordered.events.push(order),
                Effect::Object(order) => ordered.writes.push(order),
                Effect::GroupStatus(_) => {}
            }
        }
        ordered
    }

    /// Plans until no unit is active, and returns the orders.
    pub(crate) fn plan(&mut self) -> Ordered {
        self.run();
        self.ordered()
    }

    /// Reports the outcome of an eviction.
    pub(crate) fn evicted(&mut self, order: &EvictOrder, outcome: EvictOutcome) {
        let (id, uid) = (order.id, order.victim.uid.clone());
        self.apply(Input::Report(EffectReport::EvictDone { id, uid, outcome }));
    }

    /// Drains all effects and returns the reasons of conditions and of events.
    pub(crate) fn told(&mut self) -> (Vec<&'static str>, Vec<&'static str>) {
        let ordered = self.ordered();
        let conditions = ordered.statuses.iter().filter_map(|order| Some(order.condition.as_ref()?.reason));
        (conditions.collect(), ordered.events.iter().map(|order| order.reason).collect())
    }

    /// Returns the node that a pod is nominated to.
    pub(crate) fn nominated(&self, pod: &Pod) -> Option<String> {
        self.scheduler.cluster().nominator().of(self.id(pod)?).map(|n| n.node.to_string())
    }

    /// Returns how many evictions were wasted by this end of their preemption.
    pub(crate) fn wasted(&self, end: End) -> u64 {
        self.scheduler.cluster().preemptions().counts().wasted.get(&end).copied().unwrap_or(0)
    }
}
