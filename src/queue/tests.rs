//! The queue's behaviour, on a clock of plain numbers.

use super::*;
use crate::model::PodKey;

const SECOND: Duration = Duration::from_secs(1);

fn unit(n: u32, rank: i64) -> Unit {
    Unit::single(PodId(n), PodKey::new("default", &format!("p{n}")), 0, rank, 0, Duration::ZERO)
}

fn refuse(queue: &mut Queue, id: UnitId, plugin: usize, now: Duration) {
    let mut by = RefusedBy::default();
    by.insert(plugin);
    queue.refuse(id, ShapeId(0), by, now);
}

#[test]
fn greater_rank_first_then_earlier_then_key() {
    let mut queue = Queue::default();
    let late = queue.add(unit(1, 0), SECOND);
    let early = queue.add(unit(3, 0), Duration::ZERO);
    let same_time = queue.add(unit(2, 0), Duration::ZERO);
    let important = queue.add(unit(4, 10), 2 * SECOND);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, [important, same_time, early, late]);
    assert_eq!(queue.counts().in_flight, 4);
}

#[test]
fn backoff_doubles_to_its_limit() {
    let limits = QueueLimits::default();
    let seconds: Vec<u64> = (1..7).map(|n| backoff(limits, n).as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
    assert_eq!(backoff(limits, u32::MAX), limits.max_backoff);
}

#[test]
fn a_refused_unit_waits_for_its_event_and_then_for_its_backoff() {
    let mut queue = Queue::default();
    let id = queue.add(unit(1, 0), Duration::ZERO);
    queue.pop();
    refuse(&mut queue, id, 3, Duration::ZERO);
    assert_eq!(queue.counts().unschedulable, 1);

    queue.wake(SECOND / 2, |group, _| group.refused_by.contains(2));
    assert_eq!(queue.counts().unschedulable, 1, "another plugin's event");

    queue.wake(SECOND / 2, |group, _| group.refused_by.contains(3));
    assert_eq!(queue.counts().backoff, 1);
    assert_eq!(queue.next_deadline(), Some(SECOND));
    queue.flush(SECOND / 2);
    assert!(!queue.has_active());
    queue.flush(SECOND);
    assert_eq!(queue.pop(), Some(id));
}

#[test]
fn a_unit_whose_backoff_is_over_is_active_at_once() {
    let mut queue = Queue::default();
    let id = queue.add(unit(1, 0), Duration::ZERO);
    queue.pop();
    refuse(&mut queue, id, 3, Duration::ZERO);
    queue.wake(2 * SECOND, |_, _| true);
    assert_eq!(queue.counts().active, 1);
}

#[test]
fn nothing_is_forgotten_for_more_than_the_expiry() {
    let mut queue = Queue::default();
    let id = queue.add(unit(1, 0), Duration::ZERO);
    queue.pop();
    refuse(&mut queue, id, 0, Duration::ZERO);
    assert_eq!(queue.next_deadline(), Some(QueueLimits::default().max_unschedulable));
    queue.flush(QueueLimits::default().max_unschedulable);
    assert_eq!((queue.counts().active, queue.counts().unschedulable), (1, 0));
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn gates_hold_and_open() {
    let mut queue = Queue::default();
    let id = queue.add_gated(unit(1, 0), Duration::ZERO);
    assert_eq!(queue.pop(), None);
    queue.ungate(id, SECOND);
    queue.gate(id);
    assert_eq!((queue.counts().gated, queue.counts().active), (1, 0));
    queue.ungate(id, SECOND);
    assert_eq!(queue.pop(), Some(id));
}

#[test]
fn a_removed_unit_leaves_nothing_behind() {
    let mut queue = Queue::default();
    for stage in 0..4 {
        let id = queue.add(unit(stage, 0), Duration::ZERO);
        match stage {
            1 => refuse(&mut queue, id, 0, Duration::ZERO),
            2 => queue.fail(id, Duration::ZERO),
            3 => queue.gate(id),
            _ => {}
        }
        assert_eq!(queue.unit_of(PodId(stage)), Some(id));
        assert!(queue.remove(id).is_some());
        assert_eq!(queue.unit_of(PodId(stage)), None);
    }
    assert_eq!(queue.counts(), QueueStages::default());
    assert_eq!(queue.next_deadline(), None);
    assert!(queue.unschedulable.is_empty());
}

#[test]
fn a_changed_rank_keeps_the_stage() {
    let mut queue = Queue::default();
    let a = queue.add(unit(1, 0), Duration::ZERO);
    let b = queue.add(unit(2, 0), Duration::ZERO);
    queue.reorder(b, 5);
    assert_eq!(queue.pop(), Some(b));
    queue.fail(b, Duration::ZERO);
    queue.reorder(b, 6);
    queue.flush(SECOND);
    assert_eq!((queue.pop(), queue.pop()), (Some(b), Some(a)));
}
