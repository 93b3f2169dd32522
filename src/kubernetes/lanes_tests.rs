//! Tests of the lanes.

use futures_util::FutureExt;
use pellucid_model::effect::{ConditionText, EffectId, EventType, PodRef, VolumeWrite};
use pellucid_model::gang::GroupStatus;
use pellucid_model::{GangKey, ObjectKind, PodKey};

use super::*;

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

fn nomination(uid: &str, node: Option<&str>) -> StatusOrder {
    StatusOrder { pod: pod(uid), condition: None, nomination: Some(node.map(Into::into)) }
}

fn evict(id: u64) -> Effect {
    let (victim, preemptor) = (pod("v"), pod("p"));
    Effect::Evict(EvictOrder { id: EffectId(id), victim, preemptor, message: "m".into() })
}

fn select_node(id: u64) -> Effect {
    let (namespace, claim, node) = ("ns".into(), "c".into(), "n".into());
    let write = VolumeWrite::SelectNode { namespace, claim, resource_version: "1".into(), node };
    Effect::Volume(VolumeOrder { id: EffectId(id), pod: pod("p"), write })
}

fn event(note: &str) -> Effect {
    let (kind, reason, action) = (EventType::Warning, "FailedScheduling", "Scheduling");
    Effect::Event(EventOrder { pod: pod("p"), kind, reason, action, note: note.into() })
}

fn lanes(binds: usize, statuses: usize, events: usize) -> Lanes {
    Lanes::new(LaneSizes { binds, evictions: 2, volumes: 2, statuses, group_statuses: 2, events })
}

fn next_condition(lanes: &Lanes) -> Option<(Arc<str>, Arc<str>)> {
    lanes.next_status().now_or_never().flatten().and_then(|c| Some((c.pod.uid, c.condition?.message)))
}

#[test]
fn binds_come_in_order_and_room_shrinks_to_nothing() {
    let lanes = lanes(2, 9, 9);
    lanes.push_all([bind(1), bind(2), bind(3)]);
    assert_eq!(lanes.room(), 0);
    for want in 1..=3 {
        let order = lanes.next_bind().now_or_never().flatten().expect("an order");
        assert_eq!(order.id, EffectId(want));
    }
    assert!(lanes.next_bind().now_or_never().is_none());
    assert_eq!(lanes.room(), 2);
    assert_eq!(lanes.counts().binds, LaneCounts { into: 3, out: 3, ..Default::default() });
}

#[test]
fn the_newest_condition_wins_and_one_pod_is_written_once_at_a_time() {
    let lanes = lanes(9, 9, 9);
    lanes.push_all([condition("a", "1"), condition("b", "1"), condition("a", "2")]);
    assert_eq!(next_condition(&lanes), Some(("a".into(), "2".into())));
    lanes.push_all([condition("a", "3")]);
    assert_eq!(next_condition(&lanes), Some(("b".into(), "1".into())));
    assert_eq!(next_condition(&lanes), None);
    lanes.status_done(&"a".into());
    assert_eq!(next_condition(&lanes), Some(("a".into(), "3".into())));
    let want = LaneCounts { into: 4, out: 3, replaced: 1, ..Default::default() };
    assert_eq!(lanes.counts().statuses, want);
}

#[test]
fn parts_of_a_status_gather_and_none_is_lost() {
    let lanes = lanes(9, 9, 9);
    let next = || lanes.next_status().now_or_never().flatten();
    lanes.push_all([condition("a", "1"), Effect::Status(nomination("a", Some("n")))]);
    lanes.push_all([Effect::Status(nomination("a", None)), condition("b", "1")]);
    let written = next().expect("an order");
    assert_eq!((&*written.pod.uid, &written.nomination), ("a", &Some(None)));
    assert_eq!(&*written.condition.clone().expect("a condition").message, "1");
    // While it is being written a newer nomination comes; the write is given up for it.
    assert!(!lanes.supersede(&written), "nothing newer waits");
    lanes.push_all([Effect::Status(nomination("a", Some("m")))]);
    assert!(lanes.supersede(&written));
    lanes.status_done(&"a".into());
    assert_eq!(next().map(|o| o.pod.uid), Some("b".into()));
    let merged = next().expect("an order");
    assert_eq!(merged.nomination, Some(Some("m".into())));
    assert_eq!(merged.condition, written.condition);
    let want = LaneCounts { into: 5, out: 3, replaced: 2, ..Default::default() };
    assert_eq!(lanes.counts().statuses, want);
}

#[test]
fn the_newest_status_of_a_pod_group_replaces_the_others() {
    let lanes = lanes(9, 9, 9);
    let order = |uid: &str, running| {
        let status = GroupStatus { running, ..GroupStatus::default() };
        let (kind, group) = (ObjectKind::PodGroupX, GangKey::new("ns", uid));
        Effect::GroupStatus(GroupStatusOrder { kind, group, uid: uid.into(), status })
    };
    let next = || {
        let order = lanes.next_group_status().now_or_never().flatten()?;
        Some((order.uid.to_string(), order.status.running))
    };
    lanes.push_all([order("a", 1), order("a", 2)]);
    assert_eq!(next(), Some(("a".into(), 2)));
    // While it is written a newer one comes, for which it is given up.
    lanes.push_all([order("a", 3), order("b", 1)]);
    assert_eq!(next(), Some(("b".into(), 1)));
    let (Effect::GroupStatus(old), Effect::GroupStatus(other)) = (order("a", 2), order("c", 1)) else {
        unreachable!("two statuses")
    };
    assert!(lanes.supersede_group(&old) && !lanes.supersede_group(&other));
    lanes.group_status_done(&"a".into());
    assert_eq!(next(), Some(("a".into(), 3)));
    lanes.push_all([order("d", 1), order("e", 1), order("f", 1)]);
    assert_eq!(next(), Some(("e".into(), 1)), "there is room for two");
    let want = LaneCounts { into: 7, out: 4, dropped: 1, replaced: 1, depth: 1 };
    assert_eq!(lanes.counts().group_statuses, want);
}

#[test]
fn evictions_and_volume_writes_are_never_dropped_and_take_room() {
    let lanes = lanes(9, 9, 9);
    assert_eq!(lanes.room(), 2);
    lanes.push_all([evict(1), select_node(2)]);
    assert_eq!(lanes.room(), 1);
    lanes.push_all([evict(3), evict(4)]);
    assert_eq!(lanes.room(), 0);
    for want in [1, 3, 4] {
        let order = lanes.next_eviction().now_or_never().flatten().expect("an order");
        assert_eq!(order.id, EffectId(want));
    }
    assert_eq!(lanes.room(), 1, "the volume write still waits");
    let order = lanes.next_volume().now_or_never().flatten().expect("an order");
    assert_eq!((order.id, lanes.room()), (EffectId(2), 2));
    assert_eq!(lanes.counts().evictions, LaneCounts { into: 3, out: 3, ..Default::default() });
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
    assert_eq!((counts.statuses.dropped, counts.statuses.depth), (1, 1));
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
