//! Orders that are under way: what was asked of the API server and is not settled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::PodId;
use pellucid_model::collections::FxHashMap;
use pellucid_model::effect::{Effect, EffectId};
use pellucid_queue::UnitId;

use super::pre_bind::PreBinding;

/// A bind order that is not settled.
#[derive(Clone, Debug)]
pub(crate) struct BindingInFlight {
    pub(crate) pod: PodId,
    pub(crate) unit: UnitId,
}

/// Owns the orders of the scheduler from their making until they are settled.
#[derive(Default)]
pub(crate) struct InFlight {
    pub(crate) bindings: FxHashMap<EffectId, BindingInFlight>,
    /// The bind order of a pod. *Invariant:* the inverse of `bindings`.
    pub(crate) effect_of: FxHashMap<PodId, EffectId>,
    /// Placed pods whose PreBind is under way.
    pub(crate) pre_binding: FxHashMap<PodId, PreBinding>,
    /// Writes of PreBind, and the pods they are for.
    pub(crate) writes: FxHashMap<EffectId, PodId>,
    /// Evictions, with victim and uid.
    pub(crate) evictions: FxHashMap<EffectId, (PodId, Arc<str>)>,
    /// The uids of these victims.
    pub(crate) evicting: FxHashMap<PodId, Arc<str>>,
    /// Places that shadow mode holds, by when it gives them up.
    pub(crate) shadow_holds: BTreeSet<(Duration, PodId)>,
    /// Orders that nobody has taken yet.
    pub(crate) effects: Vec<Effect>,
    /// Effects numbered so far.
    numbered: u64,
}

impl InFlight {
    /// Returns the number of the next effect.
    pub(crate) fn next_effect_id(&mut self) -> EffectId {
        self.numbered += 1;
        EffectId(self.numbered)
    }

    /// Returns the number of placements that are not confirmed.
    pub(crate) fn n_placements(&self) -> usize {
        self.bindings.len() + self.pre_binding.len() + self.shadow_holds.len()
    }

    /// Returns the number of orders whose report is awaited: bindings, evictions, writes to volumes.
    pub(crate) fn n_unsettled(&self) -> usize {
        self.bindings.len() + self.evictions.len() + self.writes.len()
    }

    /// Forgets the binding of a pod, whether it was ordered or waits for PreBind.
    pub(crate) fn drop_binding(&mut self, id: PodId) {
        self.pre_binding.remove(&id);
        if let Some(effect) = self.effect_of.remove(&id) {
            self.bindings.remove(&effect);
        }
    }
}
