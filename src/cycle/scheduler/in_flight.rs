//! In-flight orders: what was requested of the API server and is not settled yet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::FxHashMap;
use pellucid_model::effect::{Effect, EffectId};
use pellucid_model::{CowMap, PodId};
use pellucid_queue::UnitId;

use crate::scheduler::object_orders::Writer;
use crate::scheduler::pre_bind::{PermitWait, PreBinding};

/// Owns the scheduler's orders until they are settled.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Bind orders, with the pod and its unit.
    pub(crate) bindings: FxHashMap<EffectId, (PodId, UnitId)>,
    /// The bind order of each pod. *Invariant:* the inverse of `bindings`.
    pub(crate) effect_of: FxHashMap<PodId, EffectId>,
    /// Placed pods whose Permit or PreBind is in progress.
    pub(crate) pre_binding: FxHashMap<PodId, PreBinding>,
    /// Those of them that wait at Permit, for readers.
    pub(crate) permit_waits: CowMap<PodId, PermitWait>,
    /// Object orders, with who hears what came of them.
    pub(crate) writes: FxHashMap<EffectId, Writer>,
    /// Eviction orders, with the victim and its uid.
    pub(crate) evictions: FxHashMap<EffectId, (PodId, Arc<str>)>,
    /// The uids of the victims in `evictions`.
    pub(crate) evicting: FxHashMap<PodId, Arc<str>>,
    /// Places held in shadow mode, by expiry.
    pub(crate) shadow_holds: BTreeSet<(Duration, PodId)>,
    /// Orders that the caller has not taken yet.
    pub(crate) effects: Vec<Effect>,
    /// Number of the last effect.
    numbered: u64,
}

/// Orders for which there is room at most before they come.
const MOST_ROOM: usize = 256;

impl InFlight {
    /// Takes the orders. There is room for as many afterwards, so that they are not copied while the list grows.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        let room = self.effects.len().min(MOST_ROOM);
        std::mem::replace(&mut self.effects, Vec::with_capacity(room))
    }

    pub(crate) fn next_effect_id(&mut self) -> EffectId {
        self.numbered += 1;
        EffectId(self.numbered)
    }

    /// Drops the binding of a pod, whether it was ordered or still waits for Permit or PreBind.
    pub(crate) fn drop_binding(&mut self, id: PodId) {
        if self.pre_binding.remove(&id).is_some_and(|entry| entry.waits_at_permit()) {
            self.permit_waits.remove(&id);
        }
        if let Some(effect) = self.effect_of.remove(&id) {
            self.bindings.remove(&effect);
        }
    }
}
