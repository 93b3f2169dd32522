//! Computes which units are ahead of a unit, in the order in which they would be taken if nothing else happened.
//!
//! Reads only the units, because a reader's copy has no ordered sets. A test compares the result with the order in
//! which [`Queue::pop`] takes active units.

use std::time::Duration;

use super::{OrderKey, Queue, QueueStage, Unit, UnitId};

/// A unit's position in the queue. Units are taken by ascending position; no two units have equal positions.
///
/// Active units come first (0), in queue order. Units in backoff come next (1), by when it ends: an idle queue takes
/// them early. Units whose backoff must run its full time come last (2), by when it ends.
type QueuePosition = (u8, Duration, OrderKey);

impl Queue {
    /// Returns a unit's position, or `None` when it is in flight. A unit that waits for an event or for its gates gets
    /// the position that it would have if it were woken now.
    fn position(unit: &Unit, now: Duration) -> Option<QueuePosition> {
        let class = match unit.stage {
            QueueStage::Active | QueueStage::Gated => 0,
            QueueStage::Unschedulable if unit.backoff_until <= now => 0,
            QueueStage::Unschedulable if unit.held_until > now => 2,
            QueueStage::Backoff | QueueStage::Unschedulable => 1,
            QueueStage::ErrorBackoff => 2,
            QueueStage::InFlight | QueueStage::New => return None,
        };
        let mut order = unit.order_key();
        if unit.stage == QueueStage::Gated {
            // A unit whose gates open queues behind those that entered before.
            order = unit.order_key_at(now);
        }
        Some((class, if class == 0 { Duration::ZERO } else { unit.backoff_until }, order))
    }

    /// Returns the units that are taken before unit `of`, in order. Units that wait for an event or for their gates are
    /// ahead of no other unit.
    pub fn ahead(&self, of: UnitId, now: Duration) -> Vec<UnitId> {
        let Some(position) = self.unit(of).and_then(|unit| Self::position(unit, now)) else {
            return Vec::new();
        };
        let is_queued =
            |u: &Unit| matches!(u.stage, QueueStage::Active | QueueStage::Backoff | QueueStage::ErrorBackoff);
        let queued = self.units().filter(|(id, unit)| *id != of && is_queued(unit));
        let positions = queued.filter_map(|(id, unit)| Some((Self::position(unit, now)?, id)));
        let mut ahead: Vec<(QueuePosition, UnitId)> =
            positions.filter(|(other, _)| *other < position).collect();
        ahead.sort();
        ahead.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::ShapeId;
    use pellucid_model::{PodId, PodKey};

    use super::*;
    use crate::RefusedBy;

    const SECOND: Duration = Duration::from_secs(1);

    fn unit(number: u32, rank: i64, at: Duration) -> Unit {
        let key = PodKey::new("ns", &format!("p{number}"));
        Unit::single(PodId(number), key, 0, rank, i64::from(number % 3), at)
    }

    /// Pseudo-random numbers, the same on every machine.
    fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        }
    }

    #[test]
    fn draining_the_queue_takes_the_units_that_are_listed_as_ahead() {
        for seed in 0..50 {
            let mut random = numbers(seed);
            let mut queue = Queue::default();
            let mut ids = Vec::new();
            for n in 0..30 {
                let at = SECOND * random(4) as u32;
                ids.push(queue.add(unit(n, random(3) as i64, at), at));
            }
            // Some units are taken and come back in various stages.
            for _ in 0..random(15) {
                let Some(id) = queue.pop() else { break };
                match random(4) {
                    0 => queue.fail(id, 5 * SECOND),
                    1 => queue.gate(id),
                    2 => queue.refuse(id, ShapeId::default(), RefusedBy::default(), 5 * SECOND),
                    _ => {
                        queue.refuse(id, ShapeId::default(), RefusedBy::default(), SECOND);
                        queue.activate(id, 6 * SECOND);
                    }
                }
            }
            let readers = queue.fork();
            let active =
                ids.iter().filter(|id| queue.unit(**id).map(|u| u.stage) == Some(QueueStage::Active));
            let mut listed: Vec<(usize, UnitId)> =
                active.map(|id| (readers.ahead(*id, 6 * SECOND).len(), *id)).collect();
            listed.sort();
            let places: Vec<usize> = listed.iter().map(|(at, _)| *at).collect();
            assert_eq!(places, (0..listed.len()).collect::<Vec<_>>(), "each place once");
            if let Some((_, last)) = listed.last() {
                let ahead = readers.ahead(*last, 6 * SECOND);
                assert_eq!(ahead, listed[..listed.len() - 1].iter().map(|(_, id)| *id).collect::<Vec<_>>());
            }
            for (_, id) in listed {
                assert_eq!(queue.pop(), Some(id), "seed {seed}");
            }
        }
    }

    #[test]
    fn whoever_waits_for_an_event_is_ahead_of_nobody_and_stands_where_it_would_be_if_woken() {
        let mut queue = Queue::default();
        let [late, refused, failed, gated] =
            [0u32, 1, 2, 3].map(|n| queue.add(unit(n, i64::from(n), Duration::ZERO), Duration::ZERO));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(gated), Some(failed), Some(refused)));
        queue.gate(gated);
        queue.fail(failed, SECOND / 2);
        queue.refuse(refused, ShapeId::default(), RefusedBy(1), SECOND / 2);
        let readers = queue.fork();
        assert_eq!(readers.ahead(late, SECOND / 2), []);
        assert_eq!(readers.ahead(gated, SECOND / 2), [], "it has a higher rank than whoever is active");
        assert_eq!(readers.ahead(failed, SECOND / 2), [late], "the refused one waits for an event");
        assert_eq!(readers.ahead(refused, SECOND / 2), [late], "its backoff would have to end first");
        assert_eq!(readers.ahead(refused, 10 * SECOND), [], "its backoff is over and its rank higher");
        assert_eq!(queue.pop(), Some(late));
        assert_eq!(queue.fork().ahead(late, SECOND), [], "what is in flight is not in the line");
    }
}
