//! Tests of the queues.

use std::iter::repeat_n;
use std::time::Duration;

use futures_util::FutureExt;
use pellucid_model::effect::{ConditionText, EffectId, EventType, ObjectWrite, PodRef};
use pellucid_model::gang::GroupStatus;
use pellucid_model::{GangKey, ObjectKind, Pages, Pod, PodKey};
use tokio::task::JoinSet;

use super::*;

fn pod(uid: &str) -> PodRef {
    PodRef { key: PodKey::new("ns", uid), uid: uid.into() }
}

fn bind(id: u64) -> Effect {
    let pod = Arc::new(Pod { key: PodKey::new("ns", "p"), uid: "p".into(), ..Pod::default() });
    let mut names = Pages::default();
    names.set(0, "n".into());
    Effect::Bind(BindOrder { id: EffectId(id), pod, node: names.in_page(0), marks: None, attempt: 1 })
}

fn condition(uid: &str, message: &str) -> Effect {
    let condition = Some(ConditionText { reason: "Unschedulable", message: message.into() });
    Effect::Status(StatusOrder { pod: pod(uid), condition, nomination: None })
}

fn nomination(uid: &str, node: Option<&str>) -> StatusOrder {
    StatusOrder { pod: pod(uid), condition: None, nomination: Some(node.map(Into::into)) }
}

fn evict(id: u64) -> Effect {
    let (victim, preemptor) = (pod("v"), pod("p"));
    Effect::Evict(EvictOrder { id: EffectId(id), victim, preemptor, message: "m".into() })
}

fn object(id: u64) -> Effect {
    let write = ObjectWrite::Evict { pod: pod("p"), reason: "Test", message: "m".into() };
    Effect::Object(ObjectOrder { id: EffectId(id), pod: None, plugin: "Test", write })
}

fn event(note: &str) -> Effect {
    let (kind, reason, action) = (EventType::Warning, "FailedScheduling", "Scheduling");
    Effect::Event(EventOrder { pod: pod("p"), object: None, kind, reason, action, note: note.into() })
}

/// What the clock always says.
const TIME: Now = Now { monotonic: Duration::from_secs(7), wall: Duration::from_secs(1_000_007) };

fn queues(binds: usize, statuses: usize, events: usize) -> EffectQueues {
    let [evictions, objects, group_statuses] = [2; 3];
    let sizes = EffectQueueSizes { binds, evictions, objects, statuses, group_statuses, events };
    EffectQueues::new(sizes, Arc::new(|| TIME))
}

fn next_condition(queues: &EffectQueues) -> Option<(Arc<str>, Arc<str>)> {
    queues.next_status().now_or_never().flatten().and_then(|c| Some((c.pod.uid, c.condition?.message)))
}

#[test]
fn binds_come_in_order_and_room_shrinks_to_nothing() {
    let queues = queues(2, 9, 9);
    queues.push_all([bind(1), bind(2), bind(3)]);
    assert_eq!(queues.room(), 0);
    for want in 1..=3 {
        let order = queues.next_bind().now_or_never().flatten().expect("an order");
        assert_eq!(order.id, EffectId(want));
    }
    assert!(queues.next_bind().now_or_never().is_none());
    assert_eq!(queues.room(), 2);
    assert_eq!(queues.counts().binds, QueueCounts { into: 3, out: 3, ..Default::default() });
}

#[test]
fn the_newest_condition_wins_and_one_pod_is_written_once_at_a_time() {
    let queues = queues(9, 9, 9);
    queues.push_all([condition("a", "1"), condition("b", "1"), condition("a", "2")]);
    assert_eq!(next_condition(&queues), Some(("a".into(), "2".into())));
    queues.push_all([condition("a", "3")]);
    assert_eq!(next_condition(&queues), Some(("b".into(), "1".into())));
    assert_eq!(next_condition(&queues), None);
    queues.status_done(&"a".into());
    assert_eq!(next_condition(&queues), Some(("a".into(), "3".into())));
    let want = QueueCounts { into: 4, out: 3, replaced: 1, ..Default::default() };
    assert_eq!(queues.counts().statuses, want);
}

#[test]
fn parts_of_a_status_gather_and_none_is_lost() {
    let queues = queues(9, 9, 9);
    let next = || queues.next_status().now_or_never().flatten();
    queues.push_all([condition("a", "1"), Effect::Status(nomination("a", Some("n")))]);
    queues.push_all([Effect::Status(nomination("a", None)), condition("b", "1")]);
    let written = next().expect("an order");
    assert_eq!((&*written.pod.uid, &written.nomination), ("a", &Some(None)));
    assert_eq!(&*written.condition.clone().expect("a condition").message, "1");
    // A newer nomination arrives during the write, which is dropped in its favour.
    assert!(!queues.supersede(&written), "nothing newer waits");
    queues.push_all([Effect::Status(nomination("a", Some("m")))]);
    assert!(queues.supersede(&written));
    queues.status_done(&"a".into());
    assert_eq!(next().map(|o| o.pod.uid), Some("b".into()));
    let merged = next().expect("an order");
    assert_eq!(merged.nomination, Some(Some("m".into())));
    assert_eq!(merged.condition, written.condition);
    let want = QueueCounts { into: 5, out: 3, replaced: 2, ..Default::default() };
    assert_eq!(queues.counts().statuses, want);
}

#[test]
fn the_newest_status_of_a_pod_group_replaces_the_others() {
    let queues = queues(9, 9, 9);
    let order = |uid: &str, running| {
        let status = GroupStatus { running, ..GroupStatus::default() };
        let (kind, group) = (ObjectKind::PodGroupX, GangKey::new("ns", uid));
        Effect::GroupStatus(GroupStatusOrder { kind, group, uid: uid.into(), status })
    };
    let next = || {
        let order = queues.next_group_status().now_or_never().flatten()?;
        Some((order.uid.to_string(), order.status.running))
    };
    queues.push_all([order("a", 1), order("a", 2)]);
    assert_eq!(next(), Some(("a".into(), 2)));
    // A newer order arrives during the write, which is dropped in its favour.
    queues.push_all([order("a", 3), order("b", 1)]);
    assert_eq!(next(), Some(("b".into(), 1)));
    let (Effect::GroupStatus(old), Effect::GroupStatus(other)) = (order("a", 2), order("c", 1)) else {
        unreachable!("two statuses")
    };
    assert!(queues.supersede_group(&old) && !queues.supersede_group(&other));
    queues.group_status_done(&"a".into());
    assert_eq!(next(), Some(("a".into(), 3)));
    queues.push_all([order("d", 1), order("e", 1), order("f", 1)]);
    assert_eq!(next(), Some(("e".into(), 1)), "there is room for two");
    let want = QueueCounts { into: 7, out: 4, dropped: 1, replaced: 1, depth: 1 };
    assert_eq!(queues.counts().group_statuses, want);
}

#[test]
fn evictions_and_writes_of_objects_are_never_dropped_and_take_room() {
    let queues = queues(9, 9, 9);
    assert_eq!(queues.room(), 2);
    queues.push_all([evict(1), object(2)]);
    assert_eq!(queues.room(), 1);
    queues.push_all([evict(3), evict(4)]);
    assert_eq!(queues.room(), 0);
    for want in [1, 3, 4] {
        let order = queues.next_eviction().now_or_never().flatten().expect("an order");
        assert_eq!(order.id, EffectId(want));
    }
    assert_eq!(queues.room(), 1, "the write still waits");
    let order = queues.next_object().now_or_never().flatten().expect("an order");
    assert_eq!((order.id, queues.room()), (EffectId(2), 2));
    assert_eq!(queues.counts().evictions, QueueCounts { into: 3, out: 3, ..Default::default() });
}

#[test]
fn full_queues_drop_the_oldest_and_count_it() {
    let queues = queues(9, 2, 2);
    queues.push_all(["1", "2", "3"].map(event));
    assert_eq!(&*queues.next_event().now_or_never().flatten().expect("an event").0.note, "2");
    queues.push_all(["a", "b", "c"].map(|uid| condition(uid, "m")));
    assert_eq!(next_condition(&queues), Some(("b".into(), "m".into())));
    let counts = queues.counts();
    assert_eq!((counts.events.dropped, counts.events.depth), (1, 1));
    assert_eq!((counts.statuses.dropped, counts.statuses.depth), (1, 1));
}

#[tokio::test]
async fn one_push_wakes_as_many_pullers_as_there_are_orders() {
    let queues = Arc::new(queues(9, 9, 9));
    let pulls = repeat_n(queues.clone(), 3).map(|queues| async move { queues.next_bind().await.is_some() });
    let pullers: JoinSet<bool> = pulls.collect();
    tokio::task::yield_now().await;
    queues.push_all([bind(1), bind(2), bind(3)]);
    assert_eq!(pullers.join_all().await, [true; 3]);
}

#[tokio::test]
async fn closing_ends_every_puller() {
    let queues = Arc::new(queues(9, 9, 9));
    let pulls = repeat_n(queues.clone(), 3).map(|queues| async move { queues.next_event().await.is_none() });
    let pullers: JoinSet<bool> = pulls.collect();
    tokio::task::yield_now().await;
    queues.close();
    assert_eq!(pullers.join_all().await, [true; 3]);
    queues.push_all([bind(1)]);
    assert!(queues.next_bind().await.is_none());
    assert_eq!(queues.counts().binds.depth, 1);
}

#[test]
fn events_wait_for_bindings_until_they_would_be_dropped() {
    let queues = queues(9, 9, 16);
    let next = || queues.next_event().now_or_never().flatten().map(|(event, _)| event.note.to_string());
    queues.push_all([bind(1), bind(2), event("first")]);
    assert_eq!(next(), None, "two Bindings wait");
    queues.next_bind().now_or_never().flatten().expect("an order");
    assert_eq!(next(), None, "one Binding waits");
    queues.next_bind().now_or_never().flatten().expect("an order");
    assert_eq!(next().as_deref(), Some("first"));
    queues.push_all([bind(3)].into_iter().chain((0..15).map(|n| event(&n.to_string()))));
    assert_eq!(next().as_deref(), Some("0"), "more than seven eighths");
    assert_eq!((next(), queues.counts().events.dropped), (None, 0));
}

#[test]
fn events_wait_while_many_bindings_are_in_flight_and_keep_their_time() {
    let queues = queues(99, 9, 16);
    queues.push_all((0..=BESIDE_EVENTS as u64).map(bind).chain([event("first")]));
    (0..=BESIDE_EVENTS).for_each(|_| assert!(queues.next_bind().now_or_never().flatten().is_some()));
    assert!(queues.next_event().now_or_never().is_none(), "one more than may be beside it");
    queues.bind_done();
    let (_, time) = queues.next_event().now_or_never().flatten().expect("an event");
    assert_eq!(time, TIME);
}

#[tokio::test]
async fn the_last_binding_wakes_who_waits_for_an_event() {
    let queues = Arc::new(queues(9, 9, 16));
    queues.push_all([bind(1), event("first")]);
    let waiting = tokio::spawn({
        let queues = queues.clone();
        async move { queues.next_event().await.map(|(event, _)| event.note.to_string()) }
    });
    tokio::task::yield_now().await;
    queues.next_bind().await.expect("an order");
    assert_eq!(waiting.await.expect("it ends").as_deref(), Some("first"));
}
