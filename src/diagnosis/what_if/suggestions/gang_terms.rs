//! Changes of what gangs declare: fewer members for a quorum, less that must be free before anything is planned.

use pellucid_recording::gang_verdict::GangShare;

use super::gang_parts::{set_min_resources, set_quorum};
use super::gangs::{Search, Tried};
use super::parts::Part;
use crate::gangs::outlook::GangOutlook;

impl Search<'_> {
    /// Lowers the quorum to what has places now, or to the members that are there.
    pub(super) fn by_quorum(&self, look: &GangOutlook) -> Option<Tried> {
        let ready = || self.pending().filter(|id| self.is_ready(*id)).count() as u32;
        let min = self.gang.counted() + look.slots_now.unwrap_or_else(ready);
        let is_less = min > 0 && min < self.gang.definition.min && !self.gang.definition.is_basic;
        is_less.then(|| Tried { parts: vec![set_quorum(self.snapshot, self.gang, min)], slots: None })
    }

    /// Lowers the quorums of all gangs of the group that lack places to what has places now, if it is not this gang alone.
    pub(super) fn by_quorums(&self, look: &GangOutlook) -> Option<Tried> {
        let shares = look.refusal.iter().flat_map(|refusal| &refusal.shares);
        let lacking: Vec<_> = shares.filter(|share| share.placeable < share.wanted).collect();
        if lacking.iter().all(|share| share.gang == *self.key) {
            return None;
        }
        let part = |share: &&GangShare| {
            let gang = self.snapshot.cluster.gangs().get(&share.gang)?;
            let min = gang.counted() + share.placeable;
            (min > 0 && !gang.definition.is_basic).then(|| set_quorum(self.snapshot, gang, min))
        };
        let parts = lacking.iter().map(part).collect::<Option<Vec<Part>>>()?;
        Some(Tried { parts, slots: None })
    }

    /// Lowers what must be free before the group is planned to what is free.
    pub(super) fn by_min_resources(&self) -> Option<Tried> {
        let gangs = self.group.iter().filter_map(|key| self.snapshot.cluster.gangs().get(key));
        let parts: Vec<Part> = gangs.flat_map(|gang| set_min_resources(self.snapshot, gang)).collect();
        (!parts.is_empty()).then_some(Tried { parts, slots: None })
    }
}
