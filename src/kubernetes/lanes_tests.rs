//! Tests of the lanes.

use futures_util::FutureExt;

use super::*;
use crate::framework::effect::{ConditionText, EffectId, EventType, PodRef};
use crate::model::PodKey;

fn pod(uid: &str) -> PodRef {
    PodRef { key: PodKey::new("ns", uid), uid: uid.into() }
}

fn bind(id: u64) -> Effect {
    Effect::Bind(BindOrder { id: EffectId(id), pod: pod("p"), node: "n".into(), attempt: 1 })
}

fn condition(uid: &str, message: &str) -> Effect {
    let condition = Some(ConditionText { reason: "Unschedulable", message: message.into() });
    Effect::Status(StatusOrder { pod: pod(uid), condition, nomination: None })
}

fn event(note: &str) -> Effect {
    let (kind, reason, action) = (EventType::Warning, "FailedScheduling", "Scheduling");
    Effect::Event(EventOrder { pod: pod("p"), kind, reason, action, note: note.into() })
}

fn lanes(binds: usize, conditions: usize, events: usize) -> Lanes {
    Lanes::new(LaneSizes { binds, conditions, events })
}

fn next_condition(lanes: &Lanes) -> Option<(Arc<str>, Arc<str>)> {
    lanes.next_condition().now_or_never().flatten().and_then(|c| Some((c.pod.uid, c.condition?.message)))
}

#[test]
fn binds_come_in_order_and_room_shrinks_to_nothing() {
    let lanes = lanes(2, 9, 9);
    lanes.push_all([bind(1), bind(2), bind(3)]);
    assert_eq!(lanes.bind_room(), 0);
    for want in 1..=3 {
        let order = lanes.next_bind().now_or_never().flatten().expect("an order");
        assert_eq!(order.id, EffectId(want));
    }
    assert!(lanes.next_bind().now_or_never().is_none());
    assert_eq!(lanes.bind_room(), 2);
    assert_eq!(lanes.counts().binds, LaneCounts { into: 3, out: 3, ..Default::default() });
}

#[test]
fn the_newest_condition_wins_and_one_pod_is_written_once_at_a_time() {
    let lanes = lanes(9, 9, 9);
    lanes.push_all([condition("a", "1"), condition("b", "1"), condition("a", "2")]);
    assert_eq!(next_condition(&lanes), Some(("a".into(), "2".into())));
    lanes.push_all([condition("a", "3")]);
    assert!(lanes.is_superseded("a") && !lanes.is_superseded("c"));
    assert_eq!(next_condition(&lanes), Some(("b".into(), "1".into())));
    assert_eq!(next_condition(&lanes), None);
    lanes.condition_done(&"a".into());
    assert_eq!(next_condition(&lanes), Some(("a".into(), "3".into())));
    let want = LaneCounts { into: 4, out: 3, replaced: 1, ..Default::default() };
    assert_eq!(lanes.counts().conditions, want);
}

#[test]
fn full_lanes_drop_the_oldest_and_count_it() {
    let lanes = lanes(9, 2, 2);
    lanes.push_all(["1", "2", "3"].map(event));
    assert_eq!(&*lanes.next_event().now_or_never().flatten().expect("an event").note, "2");
    lanes.push_all(["a", "b", "c"].map(|uid| condition(uid, "m")));
    assert_eq!(next_condition(&lanes), Some(("b".into(), "m".into())));
    let counts = lanes.counts();
    assert_eq!((counts.events.dropped, counts.events.depth), (1, 1));
    assert_eq!((counts.conditions.dropped, counts.conditions.depth), (1, 1));
}

#[tokio::test]
async fn one_push_wakes_as_many_pullers_as_there_are_orders() {
    let lanes = Arc::new(lanes(9, 9, 9));
    let pullers: Vec<_> = (0..3)
        .map(|_| {
            let lanes = lanes.clone();
            tokio::spawn(async move { lanes.next_bind().await })
        })
        .collect();
    tokio::task::yield_now().await;
    lanes.push_all([bind(1), bind(2), bind(3)]);
    for puller in pullers {
        assert!(puller.await.expect("a puller").is_some());
    }
}

#[tokio::test]
async fn closing_ends_every_puller() {
    let lanes = Arc::new(lanes(9, 9, 9));
    let pullers: Vec<_> = (0..3)
        .map(|_| {
            let lanes = lanes.clone();
            tokio::spawn(async move { lanes.next_event().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    lanes.close();
    for puller in pullers {
        assert!(puller.await.expect("a puller"));
    }
    lanes.push_all([bind(1)]);
    assert!(lanes.next_bind().await.is_none());
    assert_eq!(lanes.counts().binds.depth, 1);
}
