//! Tests of the flight recorder: ids, repeats, the size limit, gaps.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::Cluster;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::{NodeIdx, PodId, PodKey};
use pellucid_queue::RefusedBy;
use pellucid_recording::flight::*;
use pellucid_recording::{Group, Refusal};

use super::lines;

fn at(second: u64) -> u64 {
    second * 1_000_000_000
}

fn short_of(resource: &str, count: usize) -> FlightEvent {
    let reason = Reason::about(ReasonCode::InsufficientResource, resource);
    let cause = Cause::new("NodeResourcesFit", Code::Unschedulable, reason);
    let group = Group { cause, count, examples: Default::default(), measures: Vec::new() };
    FlightEvent::Refused(Arc::new(Refusal::of_nodes(vec![group.into()], 9, RefusedBy::default())))
}

fn note(flight: &mut FlightRecorder, pod: u32, event: FlightEvent, cycle: u64) {
    let key = PodKey::new("d", &format!("p{pod}"));
    flight.record(PodEvent { id: PodId(pod), key: &key, node: "", event }, (cycle, at(cycle)));
}

fn nobody() -> Cluster {
    Cluster::new(0, [], Vec::new())
}

/// Returns id, name, count and `replaces` of all entries.
fn all(flight: &mut FlightRecorder) -> Vec<(u64, String, u32, u64)> {
    let log = flight.publish();
    let cluster = nobody();
    let names = log.names(0, &cluster);
    let row = log.since(0).map(|(chunk, entry)| {
        let name = names.subject(chunk, &entry).1.to_owned();
        (entry.id, name, chunk.count(&entry), chunk.replaces(&entry))
    });
    row.collect()
}

#[test]
fn repeats_of_a_reason_share_an_entry_and_other_reasons_do_not() {
    let mut flight = FlightRecorder::new(1 << 20);
    note(&mut flight, 1, FlightEvent::Added, 0);
    note(&mut flight, 1, short_of("cpu", 3), 1);
    note(&mut flight, 2, short_of("cpu", 3), 2);
    note(&mut flight, 1, short_of("cpu", 4), 3);
    note(&mut flight, 1, short_of("memory", 4), 4);
    note(&mut flight, 1, short_of("cpu", 4), 5);
    let expected = [
        (1, "p1", 1, 0),
        (2, "p1", 1, 0),
        (3, "p2", 1, 0),
        (4, "p1", 2, 2),
        (5, "p1", 1, 0),
        (6, "p1", 1, 0),
    ];
    assert_eq!(all(&mut flight), expected.map(|(id, pod, n, of)| (id, pod.to_owned(), n, of)));
    let log = flight.publish();
    let (chunk, entry) = log.since(3).next().unwrap();
    assert_eq!((chunk.first(&entry), entry.last), (1_000_000_000, 3_000_000_000));
}

#[test]
fn what_happens_between_two_attempts_keeps_them_apart() {
    let mut flight = FlightRecorder::new(1 << 20);
    note(&mut flight, 1, short_of("cpu", 3), 1);
    note(&mut flight, 1, FlightEvent::Bound, 2);
    note(&mut flight, 1, short_of("cpu", 3), 3);
    assert_eq!(all(&mut flight).last(), Some(&(3, "p1".to_owned(), 1, 0)));
}

#[test]
fn a_verdict_that_is_stored_twice_is_one_attempt() {
    let mut flight = FlightRecorder::new(1 << 20);
    let event = short_of("cpu", 3);
    note(&mut flight, 1, event.clone(), 7);
    note(&mut flight, 1, FlightEvent::Released, 7);
    note(&mut flight, 1, event, 7);
    assert_eq!(all(&mut flight).len(), 2);
}

/// 50 pods that fail forever remain 50 entries, plus a bounded number of replaced ones; nothing is pushed out.
#[test]
fn pods_that_fail_for_ever_push_nothing_out() {
    let mut flight = FlightRecorder::new(256 << 10);
    note(&mut flight, 1000, FlightEvent::Added, 0);
    let reasons = [short_of("cpu", 3), short_of("cpu", 4)];
    for round in 1..=2_000 {
        for pod in 0..50 {
            note(&mut flight, pod, reasons[round % 2].clone(), round as u64);
        }
        if round % 7 == 0 {
            drop(flight.publish());
        }
    }
    let log = flight.publish();
    assert_eq!((log.dropped, log.lowest(), log.newest), (0, 1, 100_001));
    let kept = log.since(0).count();
    assert!(kept < 400, "{kept} entries are kept");
    let live: Vec<u32> = log.since(100_001 - 50).map(|(chunk, entry)| chunk.count(&entry)).collect();
    assert_eq!(live, vec![2_000; 50]);
}

#[test]
fn the_bound_holds_and_a_reader_is_told_what_it_missed() {
    for limit in [0, 1, 900, 4 << 10, 64 << 10] {
        let mut flight = FlightRecorder::new(limit);
        for pod in 0..3_000 {
            note(&mut flight, pod, if pod % 3 == 0 { short_of("cpu", 3) } else { FlightEvent::Added }, 1);
            let log = flight.publish();
            // The newest entry may exceed the limit, however small the limit is.
            assert!(log.bytes <= limit + 1_000, "{} of {limit} bytes after {pod}", log.bytes);
        }
        let log = flight.publish();
        assert!(log.dropped > 0 && log.lowest() <= log.newest && log.newest == 3_000);
        assert_eq!(log.dropped, log.pushed_out);
        assert_eq!(log.since(0).count() as u64 + log.dropped, 3_000);
        let feed = lines(&log, &nobody(), 5, 1_000_000);
        let gap: serde_json::Value = serde_json::from_str(&feed.lines[0].1).unwrap();
        assert_eq!(gap["kind"], "Gap");
        assert_eq!((gap["from"].as_u64(), gap["to"].as_u64()), (Some(6), Some(log.pushed_out)));
        let ids: Vec<u64> = feed.lines[1..].iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, (log.pushed_out + 1..=3_000).collect::<Vec<u64>>());
        assert!(!feed.is_more);
    }
}

#[test]
fn a_reader_sees_what_was_published_whatever_comes_later() {
    let mut flight = FlightRecorder::new(8 << 10);
    for pod in 0..20 {
        note(&mut flight, pod, short_of("cpu", 3), 1);
    }
    let early = flight.publish();
    let seen: Vec<u64> = early.since(0).map(|(_, e)| e.id).collect();
    for pod in 0..2_000 {
        note(&mut flight, pod % 20, short_of("cpu", 3), u64::from(pod) + 2);
    }
    assert_eq!(early.since(0).map(|(_, e)| e.id).collect::<Vec<u64>>(), seen);
}

#[test]
fn reading_in_parts_is_reading_at_once() {
    let mut flight = FlightRecorder::new(1 << 20);
    for pod in 0..777 {
        note(&mut flight, pod, FlightEvent::Added, 1);
    }
    let log = flight.publish();
    let whole = lines(&log, &nobody(), 0, usize::MAX);
    let (mut cursor, mut parts) = (0, Vec::new());
    loop {
        let part = lines(&log, &nobody(), cursor, 100);
        cursor = part.cursor;
        parts.extend(part.lines);
        if !part.is_more {
            break;
        }
    }
    assert_eq!(parts, whole.lines);
    assert_eq!(whole.lines.len(), 777);
}

/// A feed line: its kind, `from` or else its id, and `to`.
type Told = (String, Option<u64>, Option<u64>);

/// Returns the lines after a cursor, and the cursor after them.
fn behind(log: &FlightLog, cursor: u64, at_most: usize) -> (Vec<Told>, u64) {
    let feed = lines(log, &nobody(), cursor, at_most);
    let told = feed.lines.iter().map(|(_, line)| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| line[name].as_u64();
        (line["kind"].as_str().unwrap().to_owned(), number("from").or(number("id")), number("to"))
    });
    (told.collect(), feed.cursor)
}

#[test]
fn a_cursor_of_an_earlier_process_is_told_that_nobody_knows_what_is_missing() {
    let mark = |kind: &str, from, to| (kind.to_owned(), from, to);
    let mut flight = FlightRecorder::new(1 << 20).numbered_from(1_000);
    let restarted = mark("Restarted", Some(8), Some(999));
    assert_eq!(behind(&flight.publish(), 0, 10), (vec![], 999), "nothing is recorded yet");
    assert_eq!(behind(&flight.publish(), 7, 10), (vec![restarted.clone()], 999));
    note(&mut flight, 1, FlightEvent::Added, 1);
    note(&mut flight, 1, FlightEvent::Bound, 2);
    let log = flight.publish();
    assert_eq!((log.lowest(), log.newest, log.given(), log.since(0).count()), (1_000, 1_001, 2, 2));
    let both = [mark("Added", Some(1_000), None), mark("Bound", Some(1_001), None)];
    assert_eq!(behind(&log, 0, 10), (both.to_vec(), 1_001));
    assert_eq!(behind(&log, 999, 10), (both.to_vec(), 1_001), "behind the mark");
    assert_eq!(behind(&log, 1_000, 10), (both[1..].to_vec(), 1_001));
    let told = [vec![restarted.clone()], both.to_vec()].concat();
    assert_eq!(behind(&log, 7, 10), (told, 1_001));
    assert_eq!(behind(&log, 7, 1), (vec![restarted], 999), "marks count as lines");
    // A cursor beyond the newest id: a clock was set back, or the cursor is wrong.
    let told = [vec![mark("Restarted", None, None)], both.to_vec()].concat();
    assert_eq!(behind(&log, 1_002, 10), (told, 1_001));
}

#[test]
fn after_a_restart_what_was_pushed_out_is_a_gap_of_its_own() {
    let mut flight = FlightRecorder::new(4 << 10).numbered_from(1_000);
    (0..300).for_each(|pod| note(&mut flight, pod, FlightEvent::Added, 1));
    let log = flight.publish();
    assert_eq!(log.dropped, log.pushed_out - 999);
    let gap = ("Gap".to_owned(), Some(1_000), Some(log.pushed_out));
    let restarted = ("Restarted".to_owned(), Some(8), Some(999));
    assert_eq!(behind(&log, 7, 2).0, [restarted, gap.clone()]);
    assert_eq!(behind(&log, 0, 1), (vec![gap], log.pushed_out));
}

#[test]
fn repeats_are_known_whatever_the_first_id_is_and_ids_stay_exact_in_json() {
    let mut flight = FlightRecorder::new(1 << 20).numbered_from(u64::MAX);
    note(&mut flight, 1, short_of("cpu", 3), 1);
    note(&mut flight, 1, short_of("cpu", 4), 2);
    let log = flight.publish();
    let newest = log.newest;
    assert_eq!(all(&mut flight), [(newest - 1, "p1".into(), 1, 0), (newest, "p1".into(), 2, newest - 1)]);
    assert!(newest < 1 << 53, "{newest}");
}

#[test]
fn what_was_not_recorded_leaves_a_mark() {
    let mut flight = FlightRecorder::new(1 << 20);
    note(&mut flight, 1, short_of("cpu", 3), 1);
    flight.count_unrecorded(at(2));
    flight.count_unrecorded(at(3));
    note(&mut flight, 1, short_of("cpu", 3), 4);
    let log = flight.publish();
    let kinds: Vec<(&str, u32)> =
        log.since(0).map(|(chunk, e)| (chunk.event(&e).kind(), chunk.count(&e))).collect();
    assert_eq!(kinds, [("Refused", 1), ("NotRecorded", 2), ("Refused", 1)]);
}

#[test]
fn names_are_there_as_long_as_the_placements_that_they_are_of() {
    let mut flight = FlightRecorder::new(64 << 10);
    let place = |flight: &mut FlightRecorder, number: u32, cycle: u64| {
        flight.record_placement(PodId(number), NodeIdx(number), Numbers::default(), (cycle, at(cycle)))
    };
    let leave = |flight: &mut FlightRecorder, number: u32, name: &str| {
        let newest = flight.publish().newest;
        flight.name_pod(PodId(number), newest, &PodKey::new("d", name));
        flight.name_node(NodeIdx(number), &format!("of-{name}"));
    };
    leave(&mut flight, 1, "of-nothing-that-is-recorded");
    let mut expected = vec![(place(&mut flight, 1, 1), "a")];
    leave(&mut flight, 1, "a");
    expected.push((place(&mut flight, 1, 2), "b"));
    expected.push((place(&mut flight, 2, 3), "c"));
    // Replaces most of the chunk that holds their entries, and later the chunk that holds their names.
    for cycle in 4..300 {
        note(&mut flight, 9, short_of("cpu", 3), cycle);
    }
    leave(&mut flight, 1, "b");
    leave(&mut flight, 2, "c");
    for cycle in 300..600 {
        note(&mut flight, 9, short_of("cpu", 3), cycle);
    }
    let (log, cluster) = (flight.publish(), nobody());
    let kept = log.since(0).count();
    assert!(kept < 200, "replaced ones were cleared away: {kept}");
    let names = log.names(0, &cluster);
    for (id, name) in expected {
        let (chunk, entry) = log.get(id).unwrap();
        assert_eq!(
            (names.subject(chunk, &entry), names.node(chunk, &entry)),
            (("d", name), &*format!("of-{name}"))
        );
    }
}

#[test]
fn nodes_that_come_and_go_are_bounded_too() {
    let mut flight = FlightRecorder::new(64 << 10);
    for number in 0..20_000 {
        flight.name_node(NodeIdx(number), "before-anything-was-recorded");
    }
    assert!(flight.publish().bytes < 1 << 10);
    flight.record_placement(PodId(0), NodeIdx(0), Numbers::default(), (1, at(1)));
    for number in 0..20_000 {
        flight.name_node(NodeIdx(number), "node-of-a-cluster-that-scales");
        assert!(flight.publish().bytes <= 64 << 10);
    }
    let log = flight.publish();
    assert_eq!((log.since(0).count(), log.dropped, log.pushed_out), (0, 1, 1));
}
