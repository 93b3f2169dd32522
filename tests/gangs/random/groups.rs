//! Gangs that name each other in random histories: their pods change one after another, and groups always equal those
//! formed from scratch.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::cycle::scheduler::gangs::gate::block;
use pellucid::model::{GangKey, Pod};
use pellucid::queue::QueueStage;

use super::{GANGS, Life, gang_key, name};

impl Life {
    pub(super) fn named(&self, g: usize) -> Arc<[GangKey]> {
        let is_like = |other: &usize| self.kinds[*other].is_strict == self.kinds[g].is_strict;
        let named = (0..GANGS).filter(|other| self.names[g] & (1 << other) != 0).filter(is_like);
        let named: BTreeSet<usize> = named.chain([g]).collect();
        if named.len() == 1 { Arc::default() } else { named.into_iter().map(gang_key).collect() }
    }

    /// Updates the pods of a gang one after another.
    pub(super) fn name_others(&mut self, g: usize, others: usize) {
        self.names[g] = others;
        let groups = self.named(g);
        let of_gang = |pod: &&mut Pod| pod.member_of() == Some(&gang_key(g));
        let mut changed = Vec::new();
        for pod in self.pods.values_mut().filter(of_gang) {
            let mut mark = pod.gang.as_deref().cloned().expect("it is a member");
            mark.terms.groups = groups.clone();
            pod.gang = Some(Arc::new(mark));
            changed.push(pod.clone());
        }
        for pod in changed {
            self.core.see(&pod);
            self.take_orders();
            self.check();
        }
    }

    pub(super) fn move_members(&mut self, all: &[(usize, usize, usize)]) {
        for (g, p, to) in
            all.iter().filter(|(g, _, to)| self.kinds[*g].is_strict == self.kinds[*to].is_strict)
        {
            let mark = self.member(*to, *p).gang;
            if let Some(pod) = self.pods.get_mut(&name(*g, *p)) {
                pod.gang = mark;
            }
        }
        let pods = self.pods.values().cloned().map(Arc::new).collect();
        self.core.apply(Input::PodsReset { pods, quarantined: Vec::new() });
    }

    /// Checks that groups, their units and their blocks equal those formed from scratch.
    pub(super) fn check_groups(&self) {
        let cluster = self.core.scheduler.cluster();
        let (gangs, queue) = (cluster.gangs(), self.core.scheduler.queue());
        let names = |a: &GangKey, b: &GangKey| gangs.get(a).is_some_and(|g| g.definition.groups.contains(b));
        let all: Vec<GangKey> = gangs.all().into_keys().cloned().collect();
        let pending = |key: &GangKey| -> BTreeSet<_> {
            let members = gangs.get(key).expect("known").members.keys().copied();
            members.filter(|id| cluster.pod(*id).is_some_and(|r| r.stage == Stage::Pending)).collect()
        };
        for key in &all {
            let mut group = BTreeSet::from([key]);
            while let Some(next) = all
                .iter()
                .find(|next| !group.contains(next) && group.iter().any(|k| names(k, next) && names(next, k)))
            {
                group.insert(next);
            }
            assert_eq!(gangs.group_of(key).iter().collect::<BTreeSet<_>>(), group, "{key}");
            let named = gangs.get(key).expect("known").definition.groups.iter();
            let one_sided: Vec<_> = named.filter(|k| *k != key && !names(k, key)).cloned().collect();
            assert_eq!((gangs.one_sided(key), gangs.get(key).map(|g| g.has_partners())), {
                let has_partners = one_sided.is_empty();
                (one_sided, Some(has_partners))
            });
            if group.iter().all(|k| gangs.get(k).is_some_and(|gang| gang.is_satisfied())) {
                continue;
            }
            let pods: BTreeSet<_> = group.iter().flat_map(|k| pending(k)).collect();
            let Some(unit) = pods.first().and_then(|id| queue.unit(queue.unit_of(*id)?)) else { continue };
            assert_eq!(unit.pods.iter().copied().collect::<BTreeSet<_>>(), pods, "the unit of {key}");
            assert_eq!(unit.gang.as_ref(), group.first().copied(), "the name of the unit of {key}");
            let ready = |k: &GangKey| pending(k).len() as u32;
            let blocked = group.iter().find_map(|k| block(gangs, k, ready));
            let is_gated = unit.stage == QueueStage::Gated;
            assert_eq!(is_gated, blocked.is_some(), "{key}: {blocked:?} and {unit:?}");
        }
    }
}
