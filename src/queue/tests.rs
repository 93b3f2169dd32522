//! Tests the queue with fixed times.

use pellucid_cluster::{EventKinds, ShapeId};
use pellucid_model::PodKey;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn unit(n: u32, rank: i64) -> Unit {
    Unit::single(PodId(n), PodKey::new("default", &format!("p{n}")), 0, rank, 0, Duration::ZERO)
}

/// Adds a unit at time zero and takes it.
fn taken(queue: &mut Queue, unit: Unit) -> UnitId {
    let id = queue.add(unit, Duration::ZERO);
    queue.pop();
    id
}

/// Sends the queue an event about a node.
fn happen(queue: &mut Queue, at: Duration, ask: impl FnMut(&WakeGroup, PodId, RefusedBy) -> RefusedBy) {
    queue.wake(of(EventKinds::NODE_ADD, at), ask);
}

fn of(kinds: EventKinds, at: Duration) -> QueueEvent<'static> {
    QueueEvent { kinds, at, object: &|| EventObject::Node("n".into()), own: None }
}

fn refuse(queue: &mut Queue, id: UnitId, plugin: usize, now: Duration) {
    let mut by = RefusedBy::default();
    by.insert(plugin);
    queue.refuse(id, ShapeId(0), by, now);
}

#[test]
fn within_a_window_the_larger_first_and_never_across_ranks() {
    let mut queue = Queue::default();
    let second = Duration::from_secs(1);
    let sized = |n: u32, rank: i64, size: i64, at: Duration| {
        let unit = Unit::single(PodId(n), PodKey::new("default", &format!("p{n}")), 0, rank, 0, at);
        unit.sized(size, second)
    };
    for (n, rank, size, millis) in
        [(1, 0, 5, 1000), (2, 0, 9, 1999), (3, 0, 99, 2000), (4, 0, 9, 1500), (5, 1, 1, 5000)]
    {
        queue.add(sized(n, rank, size, Duration::from_millis(millis)), Duration::from_millis(millis));
    }
    let taken: Vec<UnitId> = std::iter::from_fn(|| queue.pop()).collect();
    let order: Vec<u32> = taken.iter().map(|id| queue.unit(*id).expect("a unit").pods[0].0).collect();
    assert_eq!(order, [5, 4, 2, 1, 3]);
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
    let seconds: Vec<u64> = (1..7).map(|n| limits.backoff(n).as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
    assert_eq!(limits.backoff(u32::MAX), limits.max_backoff);
    // Backoffs end at the start of the second in which they would end.
    let end = |milliseconds| limits.backoff_end(1, Duration::from_millis(milliseconds)).as_millis();
    assert_eq!((end(0), end(1), end(999), end(1000)), (1000, 1000, 1000, 2000));
    let exact = QueueLimits { pop_from_backoff: false, ..limits };
    assert_eq!(exact.backoff_end(1, SECOND / 2), 3 * SECOND / 2);
}

#[test]
fn a_refused_unit_waits_for_its_event_and_then_for_its_backoff() {
    let mut queue = Queue::default();
    let id = taken(&mut queue, unit(1, 0));
    refuse(&mut queue, id, 3, Duration::ZERO);
    assert_eq!(queue.counts().unschedulable, 1);

    happen(&mut queue, SECOND / 2, |_, _, _| RefusedBy::default());
    assert_eq!(queue.counts().unschedulable, 1, "its plugin says Skip");
    assert_eq!(queue.unit(id).and_then(|u| u.wakeup.clone()), None);

    happen(&mut queue, SECOND / 2, |group, _, asked| {
        assert_eq!(group.plugins, asked);
        asked
    });
    assert_eq!(queue.counts().backoff, 1);
    assert_eq!(queue.next_deadline(), Some(SECOND));
    let by = queue.unit(id).and_then(|u| u.wakeup.clone()).expect("it was woken");
    assert_eq!(
        (by.event.number, by.reason),
        (2, WakeupReason::Hints { asked: RefusedBy(8), queue: RefusedBy(8) })
    );
    queue.flush(SECOND / 2);
    assert_eq!(queue.counts().backoff, 1);
    queue.flush(SECOND);
    assert_eq!((queue.counts().active, queue.pop()), (1, Some(id)));
}

#[test]
fn a_pod_that_is_made_anew_does_not_back_off() {
    let mut queue = Queue::default();
    let id = taken(&mut queue, unit(1, 0));
    refuse(&mut queue, id, 3, Duration::ZERO);
    queue.renew(id);
    assert_eq!(queue.counts().unschedulable, 1, "it waits on");
    queue.activate(id, Duration::ZERO);
    assert_eq!(queue.pop(), Some(id));
    assert_eq!(queue.unit(id).map(|unit| unit.attempts), Some(1));
    queue.fail(id, Duration::ZERO);
    queue.renew(id);
    assert_eq!((queue.counts().error_backoff, queue.counts().active), (0, 1));
    let known = queue.unit(id).expect("it is there");
    assert_eq!((known.attempts, known.errors, known.backoff_until), (0, 0, Duration::ZERO));
}

#[test]
fn a_unit_whose_backoff_is_over_is_active_at_once() {
    let mut queue = Queue::default();
    let id = taken(&mut queue, unit(1, 0));
    refuse(&mut queue, id, 3, Duration::ZERO);
    happen(&mut queue, 2 * SECOND, |_, _, asked| asked);
    assert_eq!(queue.counts().active, 1);
}

#[test]
fn without_backoff_a_woken_or_failed_unit_is_active_at_once() {
    let limits = QueueLimits { max_backoff: Duration::ZERO, ..QueueLimits::default() };
    let mut queue = Queue::new(limits, Listening::default());
    let id = taken(&mut queue, unit(1, 0));
    queue.fail(id, SECOND / 3);
    assert_eq!(queue.pop(), Some(id));
    refuse(&mut queue, id, 3, SECOND / 3);
    happen(&mut queue, SECOND / 3, |_, _, asked| asked);
    assert_eq!(queue.counts().active, 1);
}

#[test]
fn an_idle_queue_gives_the_backoff_that_ends_first_and_leaves_errors_alone() {
    let mut queue = Queue::default();
    let ids: Vec<UnitId> = (0..4).map(|n| taken(&mut queue, unit(n, i64::from(n)))).collect();
    queue.fail(ids[3], Duration::ZERO);
    // The first two backoffs end in the same second, whatever the milliseconds, so rank decides.
    refuse(&mut queue, ids[0], 0, Duration::from_millis(100));
    refuse(&mut queue, ids[1], 0, Duration::from_millis(900));
    refuse(&mut queue, ids[2], 0, Duration::from_millis(1100));
    happen(&mut queue, Duration::from_millis(950), |_, _, asked| asked);
    let counts = queue.counts();
    assert_eq!((counts.backoff, counts.error_backoff, counts.in_flight), (4, 1, 0));
    assert!(queue.can_pop());
    let taken: Vec<UnitId> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(taken, [ids[1], ids[0], ids[2]]);
    assert!(!queue.can_pop(), "the error sits its backoff out");
    assert_eq!((queue.next_deadline(), queue.counts().error_backoff), (Some(SECOND), 1));
    queue.flush(SECOND);
    assert_eq!(queue.pop(), Some(ids[3]));
    // An active unit is always taken first.
    refuse(&mut queue, ids[3], 0, SECOND);
    happen(&mut queue, SECOND, |_, _, asked| asked);
    let fresh = queue.add(unit(9, -5), SECOND);
    assert_eq!((queue.pop(), queue.pop()), (Some(fresh), Some(ids[3])));
}

#[test]
fn a_switch_keeps_idle_queues_from_taking_backoffs() {
    let limits = QueueLimits { pop_from_backoff: false, ..QueueLimits::default() };
    let mut queue = Queue::new(limits, Listening::default());
    let id = taken(&mut queue, unit(1, 0));
    refuse(&mut queue, id, 0, Duration::ZERO);
    happen(&mut queue, Duration::ZERO, |_, _, asked| asked);
    assert!(!queue.can_pop() && queue.pop().is_none());
}

#[test]
fn only_groups_that_listen_are_asked() {
    let listening = Listening::new([vec![EventKinds::POD_DELETE, EventKinds::NODE_ADD]]);
    let mut queue = Queue::new(QueueLimits::default(), listening);
    let ids: Vec<UnitId> = (0..3).map(|n| taken(&mut queue, unit(n, 0))).collect();
    refuse(&mut queue, ids[0], 0, Duration::ZERO);
    refuse(&mut queue, ids[1], 1, Duration::ZERO);
    queue.refuse(ids[2], ShapeId(7), RefusedBy(3), Duration::ZERO);
    let mut asked = Vec::new();
    happen(&mut queue, SECOND, |_, pod, plugins| {
        asked.push((pod, plugins));
        RefusedBy::default()
    });
    asked.sort();
    assert_eq!(asked, [(PodId(1), RefusedBy(2)), (PodId(2), RefusedBy(2))]);
    queue.wake(of(EventKinds::NODE_LABEL, SECOND), |_, _, _| panic!("nobody listens"));
    assert_eq!(queue.events().skipped().collect::<Vec<_>>(), [(EventKinds::NODE_LABEL, 1)]);
    assert_eq!(queue.events().since(EventKinds::NODE_ADD, 0).len(), 1);
    assert_eq!(queue.events().since(EventKinds::NODE_LABEL, 0).len(), 0);
    for at in 0..40 {
        queue.wake(of(EventKinds::POD_DELETE, at * SECOND), |_, _, _| RefusedBy::default());
    }
    let kept = queue.events().since(EventKinds::POD_DELETE, 0);
    assert_eq!((kept.len(), kept[0].at), (EVENTS_KEPT, 39 * SECOND));
    // A unit that causes an event is not woken by it; the others of its group are.
    let other = taken(&mut queue, unit(5, 0));
    refuse(&mut queue, other, 0, Duration::ZERO);
    let own = QueueEvent { own: Some(ids[0]), ..of(EventKinds::POD_DELETE, SECOND) };
    queue.wake(own, |group, _, asked| if group.plugins.0 == 1 { asked } else { RefusedBy::default() });
    let stage = |id: UnitId| queue.unit(id).map(|u| u.stage);
    assert_eq!(stage(ids[0]), Some(QueueStage::Unschedulable));
    assert_eq!(stage(other), Some(QueueStage::Active));
}

#[test]
fn what_a_plugin_activates_is_tried_at_once() {
    let mut queue = Queue::default();
    let ids: Vec<UnitId> = (0..4).map(|n| taken(&mut queue, unit(n, 0))).collect();
    refuse(&mut queue, ids[0], 0, Duration::ZERO);
    queue.fail(ids[1], Duration::ZERO);
    queue.gate(ids[2]);
    for id in &ids {
        queue.activate(*id, SECOND / 2);
    }
    let counts = queue.counts();
    assert_eq!((counts.active, counts.gated, counts.in_flight), (2, 1, 1));
    queue.fail(ids[3], SECOND / 2);
    assert_eq!(queue.counts().active, 3, "it had been asked for while it was away");
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn nothing_is_forgotten_for_more_than_the_expiry() {
    let mut queue = Queue::default();
    let id = taken(&mut queue, unit(1, 0));
    refuse(&mut queue, id, 0, Duration::ZERO);
    assert_eq!(queue.next_deadline(), Some(QueueLimits::default().max_unschedulable));
    queue.flush(QueueLimits::default().max_unschedulable);
    assert_eq!((queue.counts().active, queue.counts().unschedulable), (1, 0));
    assert_eq!(queue.next_deadline(), None);
    let by = queue.unit(id).and_then(|u| u.wakeup.clone()).expect("it was woken");
    assert_eq!(by.reason, WakeupReason::Timeout);
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

#[test]
fn units_compare_as_their_order_keys_do() {
    let at = |n: u32, rank: i64, created: i64, at: u64| {
        let key = PodKey::new("default", &format!("p{n}"));
        Unit::single(PodId(n), key, 0, rank, created, Duration::from_secs(at))
    };
    let units =
        [at(1, 0, 0, 0), at(2, 0, 0, 0), at(3, 5, 0, 0), at(4, 0, 3, 0), at(0, 0, 3, 7), at(5, 5, 1, 7)];
    for (a, b) in units.iter().flat_map(|a| units.iter().map(move |b| (a, b))) {
        assert_eq!(a.order(b), a.order_key().cmp(&b.order_key()), "{} and {}", a.key, b.key);
    }
}
