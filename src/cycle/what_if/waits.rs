//! Waits at Permit that run out in a simulation: the waiting members of a gang group give up their places, and the group is
//! tried again before or after whoever can use the room.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::Stage;
use pellucid_model::GangKey;

use super::line::QueueEnd;
use super::simulation::{ROUND, Simulation};

/// Longer than all that is waited for in a simulation, so that a group stays away until it is called back.
const AWAY: Duration = Duration::from_secs(1 << 30);

impl Simulation {
    /// Returns the groups of gangs of which members wait at Permit, by what represents each, in the order in which their
    /// waits run out; `None` if a pod waits for something else.
    pub fn waiting_groups(&self) -> Option<Vec<GangKey>> {
        let cluster = &self.scheduler.cluster;
        let mut groups: BTreeMap<GangKey, Duration> = BTreeMap::new();
        for (id, record) in cluster.pods().filter(|(_, record)| record.stage == Stage::Waiting) {
            let gang = cluster.gangs().get(record.pod.member_of()?)?;
            let until = gang.members.get(&id)?.deadline?;
            let rep = cluster.gangs().group_of(&gang.key).into_iter().min()?;
            let first = groups.entry(rep).or_insert(until);
            *first = until.min(*first);
        }
        let mut groups: Vec<(Duration, GangKey)> = groups.into_iter().map(|(key, at)| (at, key)).collect();
        groups.sort_unstable();
        Some(groups.into_iter().map(|(_, rep)| rep).collect())
    }

    /// Lets the waits of groups run out, and plans: with the groups before all others, or without them.
    pub fn end_waits(&mut self, groups: &[GangKey], again: QueueEnd) {
        for rep in groups {
            self.scheduler.release_waiting(rep, ReasonCode::GangWaitTimeout, "the wait ran out", self.now);
            let Some(unit) = self.scheduler.unit_of_group(rep) else { continue };
            match again {
                QueueEnd::Front => self.scheduler.queue.requeue_since(unit, Duration::ZERO),
                QueueEnd::Back => self.scheduler.queue.back_off(unit, AWAY, self.now.monotonic),
            }
        }
        self.scheduler.review_gangs(self.now);
        self.scheduler.queue.flush(self.now.monotonic + ROUND);
        self.go_on();
    }

    /// Keeps groups of gangs from being tried before they are called back: whoever is planned comes before them.
    pub fn keep_away(&mut self, groups: Vec<GangKey>) {
        self.away = groups;
    }

    pub(super) fn send_away(&mut self) {
        for rep in &self.away {
            if let Some(unit) = self.scheduler.unit_of_group(rep) {
                self.scheduler.queue.back_off(unit, AWAY, self.now.monotonic);
            }
        }
    }

    /// Tries the groups again that stayed away, and plans on.
    pub fn call_back(&mut self) {
        self.away.clear();
        self.scheduler.queue.flush(self.now.monotonic + AWAY + ROUND);
        self.go_on();
    }
}
