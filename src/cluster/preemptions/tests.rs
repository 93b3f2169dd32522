//! Tests the record of preemptions: what is counted, and which preemptors are reported as clear.

use super::*;

fn victim(pod: u32) -> Victim {
    Victim {
        pod: PodId(pod),
        key: PodKey::new("d", &format!("v{pod}")),
        uid: format!("u{pod}").into(),
        stands_for: None,
        priority: 0,
        violates_budget: false,
        state: VictimState::Ordered,
        chosen: Now::default(),
        since: Now::default(),
        is_counted: true,
    }
}

fn preemption(victims: &[u32]) -> Preemption {
    Preemption {
        preemptor: PodKey::new("d", "p"),
        uid: "p".into(),
        priority: 10,
        node: "n".into(),
        decided: Now::default(),
        cycle: 1,
        victims: victims.iter().map(|v| victim(*v)).collect(),
        plan: Arc::default(),
        gang: None,
        end: None,
    }
}

#[test]
fn the_preemptor_is_told_when_the_last_victim_is_out_of_the_way() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    book.begin(PodId(9), preemption(&[1, 2]), &[]);
    assert!(book.set_victim_state(PodId(1), VictimState::Terminating, now).is_empty());
    assert!(book.set_victim_state(PodId(1), VictimState::Gone, now).is_empty());
    assert!(book.victim(PodId(1)).is_none());
    assert_eq!(book.set_victim_state(PodId(2), VictimState::Refused("no".into()), now)[..], [PodId(9)]);
    assert!(book.end(PodId(9), End::PlacedElsewhere, now));
    assert!(!book.end(PodId(9), End::Bound, now));
    let counts = book.counts();
    assert_eq!(counts.wasted[&End::PlacedElsewhere], 1, "a refused eviction cost nothing");
    assert_eq!((counts.victims, counts.refused), (2, 1));
    assert_eq!(book.ended().count(), 1);
}

#[test]
fn the_preemption_of_a_whole_gang_counts_as_one() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    let group: Arc<[GangKey]> = [GangKey::new("d", "g")].into();
    for member in 0..3 {
        let gang = Some(GangPart { group: group.clone(), members: 3, is_counted: member == 0 });
        book.begin(PodId(9 + member), Preemption { gang, ..preemption(&[member]) }, &[]);
    }
    let of_gang = book.of_gang(&group[0]);
    assert_eq!(of_gang.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [9, 10, 11]);
    assert_eq!(book.set_victim_state(PodId(1), VictimState::Gone, now)[..], [PodId(10)]);
    assert_eq!((book.counts().preemptions, book.counts().victims), (1, 3));
}

#[test]
fn every_victim_is_useful_or_wasted() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    book.begin(PodId(9), preemption(&[1, 2]), &[]);
    book.begin(PodId(9), Preemption { node: "m".into(), ..preemption(&[3]) }, &[]);
    book.end(PodId(9), End::Bound, now);
    let counts = book.counts();
    assert_eq!((counts.victims, counts.useful, counts.wasted[&End::ChosenAgain]), (3, 1, 2));
}

fn cancelled(victims: &[u32]) -> Preemption {
    let mut preemption = preemption(victims);
    preemption.victims.iter_mut().for_each(|v| v.state = VictimState::Cancelled);
    preemption
}

#[test]
fn a_second_choice_of_the_same_node_wastes_nothing() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    book.begin(PodId(9), preemption(&[1, 2]), &[]);
    book.set_victim_state(PodId(1), VictimState::Gone, now);
    assert_eq!(book.set_victim_state(PodId(2), VictimState::Refused("no".into()), now)[..], [PodId(9)]);
    book.begin(PodId(9), preemption(&[2]), &[]);
    assert_eq!(book.of(PodId(9)).map(|p| p.victims.len()), Some(2));
    assert_eq!(book.set_victim_state(PodId(2), VictimState::Gone, now)[..], [PodId(9)]);
    book.end(PodId(9), End::Bound, now);
    let counts = book.counts();
    assert_eq!((counts.victims, counts.useful, counts.refused, counts.wasted.len()), (3, 2, 1, 0));
    assert_eq!(counts.preemptions, 1);
    // A victim that is not bound yet may lose its place, get another one and lose that too.
    book.begin(PodId(9), cancelled(&[4]), &[]);
    book.begin(PodId(9), cancelled(&[4]), &[]);
    book.end(PodId(9), End::Bound, now);
    let counts = book.counts();
    assert_eq!((counts.victims, counts.useful, counts.wasted[&End::ChosenAgain]), (5, 3, 1));
}

/// Marks victims as already being evicted for somebody else.
fn leaving(mut preemption: Preemption, pods: &[u32]) -> Preemption {
    for victim in preemption.victims.iter_mut().filter(|v| pods.contains(&v.pod.0)) {
        (victim.state, victim.is_counted) = (VictimState::Terminating, false);
    }
    preemption
}

#[test]
fn a_victim_that_several_wait_for_is_counted_once_and_all_are_told() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    book.begin(PodId(8), preemption(&[1]), &[]);
    book.begin(PodId(9), leaving(preemption(&[1, 2]), &[1]), &[]);
    assert_eq!(book.set_victim_state(PodId(1), VictimState::Gone, now)[..], [PodId(8)]);
    assert_eq!(book.set_victim_state(PodId(2), VictimState::Gone, now)[..], [PodId(9)]);
    assert!(book.open().all(|(_, p)| p.is_clear()));
    book.end(PodId(8), End::PreemptorGone, now);
    book.end(PodId(9), End::Bound, now);
    let counts = book.counts();
    assert_eq!((counts.victims, counts.useful, counts.wasted[&End::PreemptorGone]), (2, 1, 1));
}

#[test]
fn who_overtakes_takes_the_victims_over() {
    let (mut book, now) = (Preemptions::default(), Now::default());
    book.begin(PodId(8), preemption(&[1, 2]), &[]);
    book.begin(PodId(9), leaving(preemption(&[1]), &[1]), &[PodId(8)]);
    assert!(book.end(PodId(8), End::Overtaken, now));
    assert_eq!(book.set_victim_state(PodId(1), VictimState::Gone, now)[..], [PodId(9)]);
    book.end(PodId(9), End::Bound, now);
    let counts = book.counts();
    assert_eq!((counts.victims, counts.useful, counts.wasted[&End::Overtaken]), (2, 1, 1));
    // The same holds when the pod itself chooses again.
    book.begin(PodId(8), preemption(&[3]), &[]);
    book.begin(PodId(8), leaving(preemption(&[3]), &[3]), &[]);
    book.end(PodId(8), End::Bound, now);
    assert_eq!((book.counts().victims, book.counts().useful), (3, 2));
}
