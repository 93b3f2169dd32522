//! Tests the gang check with synthetic watch events: a clean run, and one violation of each kind.

use serde_json::json;

use super::super::{GPU, SyntheticNodes};
use super::*;

const LIMIT: Duration = Duration::from_secs(2);

fn job(name: &str, workers: usize) -> GangJob {
    let runs_for = Duration::from_secs(5);
    GangJob { name: name.into(), submitted_at: Duration::ZERO, workers, runs_for, model: "M".into() }
}

/// A replay on two nodes with two GPUs each.
struct Play {
    check: GangCheck,
    job: String,
    total: String,
}

impl Play {
    fn new(workers: usize) -> Self {
        let nodes = SyntheticNodes { nodes: 2, gpus: 2 }.to_json();
        let check = GangCheck::new(&nodes, &[job("j", workers)], LIMIT);
        Self { check, job: "j".into(), total: workers.to_string() }
    }

    fn pod(&self, index: usize, node: &str, phase: &str) -> Value {
        let one = json!({ GPU: "1" });
        let name = format!("{}-{index}", self.job);
        json!({
            "metadata": {
                "namespace": "default", "name": name, "uid": name,
                "annotations": { GANG_NAME: self.job, GANG_MIN: self.total, GANG_TOTAL: self.total },
            },
            "spec": { "nodeName": node, "containers": [{ "resources": { "requests": one, "limits": one } }] },
            "status": { "phase": phase },
        })
    }

    /// Observes a worker in its current state, a number of milliseconds after the start.
    fn at(&mut self, ms: u64, index: usize, node: &str, phase: &str) -> Seen {
        let pod = self.pod(index, node, phase);
        self.check.observe(&pod, false, Duration::from_millis(ms))
    }

    fn deleted(&mut self, ms: u64, index: usize, node: &str, phase: &str) -> Seen {
        let pod = self.pod(index, node, phase);
        self.check.observe(&pod, true, Duration::from_millis(ms))
    }

    /// Ends the replay after a number of milliseconds. Returns the only job's result and the faults as text.
    fn end(self, ms: u64) -> (JobResult, Vec<String>) {
        let mut outcome = self.check.finish(Duration::from_millis(ms));
        assert_eq!(outcome.fault_count, outcome.faults.len());
        let faults = outcome.faults.iter().map(ToString::to_string).collect();
        (outcome.results.remove(0), faults)
    }
}

fn ms(ms: u64) -> Option<Duration> {
    Some(Duration::from_millis(ms))
}

#[test]
fn a_clean_run_is_measured() {
    let mut play = Play::new(3);
    for (index, created) in [(0, 10), (1, 12), (2, 20)] {
        assert_eq!(play.at(created, index, "", "Pending"), Seen::Progress);
    }
    for (index, bound, node) in [(0, 50, "gpu-0"), (1, 53, "gpu-0"), (2, 60, "gpu-1")] {
        assert_eq!(play.at(bound, index, node, "Pending"), Seen::Progress);
        assert_eq!(play.at(bound + 1, index, node, "Running"), Seen::Nothing);
    }
    for (index, ended, node) in [(0, 100, "gpu-0"), (1, 101, "gpu-0")] {
        assert_eq!(play.at(ended, index, node, "Succeeded"), Seen::Progress);
    }
    assert!(!play.check.is_settled());
    let names = vec!["j-0".to_owned(), "j-1".into(), "j-2".into()];
    assert_eq!(play.at(110, 2, "gpu-1", "Succeeded"), Seen::Finished(names));
    assert!(play.check.is_settled());
    assert_eq!(play.deleted(120, 0, "gpu-0", "Succeeded"), Seen::Nothing);
    assert_eq!(play.check.outcome.most_pods, 3);
    let (result, faults) = play.end(130);
    assert_eq!(faults, Vec::<String>::new());
    let expected = JobResult {
        job: "j".into(),
        workers: 3,
        wait: ms(40),
        to_quorum: ms(10),
        // 10 ms of the first and 7 ms of the second.
        held: Duration::from_millis(17),
        finished_at: ms(110),
    };
    assert_eq!(result, expected);
}

#[test]
fn a_short_worker_may_end_before_the_quorum_is_bound() {
    let mut play = Play::new(2);
    play.at(0, 0, "gpu-0", "Pending");
    play.at(4, 0, "gpu-0", "Succeeded");
    play.at(9, 1, "gpu-0", "Pending");
    play.at(13, 1, "gpu-0", "Succeeded");
    let (result, faults) = play.end(20);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!((result.to_quorum, result.held), (ms(9), Duration::from_millis(4)));
}

#[test]
fn a_node_over_its_allocatable_is_a_violation() {
    let mut play = Play::new(3);
    for index in 0..3 {
        play.at(10, index, "gpu-1", "Pending");
    }
    for index in 0..3 {
        play.at(20, index, "gpu-1", "Succeeded");
    }
    let expected = "OVERCOMMITTED: gpu-1 holds 3 nvidia.com/gpu and has 2, since j-2 of j at 10.0 ms";
    assert_eq!(play.end(30).1, [expected]);
}

#[test]
fn a_quorum_within_the_limit_is_none_and_one_after_it_is_a_violation() {
    for (last, expected) in [
        (2_100, None),
        (
            2_101,
            Some("LATE QUORUM: j: 2 of 3 workers bound 2.000 s after its first Binding, all 3 after 2.001 s"),
        ),
        (
            7_350,
            Some("LATE QUORUM: j: 2 of 3 workers bound 2.000 s after its first Binding, all 3 after 7.250 s"),
        ),
    ] {
        let mut play = Play::new(3);
        for (bound, index) in [(100, 0), (200, 1), (last, 2)] {
            play.at(bound, index, "gpu-0", "Pending");
            play.at(bound, index, "gpu-0", "Succeeded");
        }
        let (result, faults) = play.end(9_000);
        assert_eq!(faults, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(result.to_quorum, ms(last - 100));
    }
}

#[test]
fn a_gang_that_ends_below_its_quorum_is_a_violation() {
    let mut play = Play::new(4);
    for index in 0..4 {
        play.at(0, index, "", "Pending");
    }
    play.at(1_000, 0, "gpu-0", "Pending");
    play.at(1_500, 1, "gpu-0", "Running");
    play.at(3_000, 1, "gpu-0", "Succeeded");
    let (result, faults) = play.end(62_000);
    assert_eq!(faults, ["NO QUORUM: j: 2 of 4 workers bound, still 1 min 1 s after its first Binding"]);
    assert_eq!((result.wait, result.finished_at), (None, None));
    assert_eq!(result.held, Duration::from_millis(61_000 + 1_500));
}

#[test]
fn a_job_that_never_ends_is_a_violation() {
    let mut play = Play::new(2);
    play.at(0, 0, "", "Pending");
    let expected = "NOT FINISHED: j: 2 workers: 1 created, 0 bound, 0 succeeded";
    assert_eq!(play.end(10).1, [expected]);
    let mut play = Play::new(1);
    play.at(0, 0, "gpu-0", "Running");
    let expected = "NOT FINISHED: j: 1 workers: 1 created, 1 bound, 0 succeeded";
    assert_eq!(play.end(10).1, [expected]);
}

#[test]
fn a_lost_worker_is_a_violation_and_settles_its_job() {
    let mut play = Play::new(2);
    play.at(0, 0, "gpu-0", "Running");
    play.deleted(5, 0, "gpu-0", "Running");
    assert!(play.check.is_settled());
    assert_eq!(play.end(10).1, ["LOST WORKER: j-0 of j on gpu-0 was deleted before it had succeeded"]);
    let mut play = Play::new(2);
    play.deleted(5, 1, "", "Pending");
    let expected = "LOST WORKER: j-1 of j, without a node, was deleted before it had succeeded";
    assert_eq!(play.end(10).1, [expected]);
    let mut play = Play::new(1);
    play.at(0, 0, "gpu-1", "Failed");
    assert_eq!(play.end(10).1, ["LOST WORKER: j-0 of j on gpu-1 failed"]);
}

#[test]
fn what_cannot_be_judged_is_a_violation() {
    let mut play = Play::new(2);
    play.total = "3".into();
    play.at(0, 0, "gone", "Pending");
    play.total = "two".into();
    play.at(1, 1, "gpu-0", "Pending");
    let mut stranger = play.pod(0, "", "Pending");
    stranger["metadata"]["name"] = "s".into();
    stranger["metadata"]["annotations"] = json!({});
    play.check.observe(&stranger, false, LIMIT);
    let (_, faults) = play.end(2);
    let expected = [
        "UNCLEAR: j-0 is on gone, which does not exist",
        "UNCLEAR: j-0: its gang has 3 of 3 members, but the job has 2 workers",
        "UNCLEAR: j-1: gang.scheduling.koordinator.sh/min-available is \"two\", which is no number",
        "UNCLEAR: s belongs to no job of the trace: \"\"",
        "NOT FINISHED: j: 2 workers: 2 created, 2 bound, 0 succeeded",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn of_many_violations_the_first_are_kept_and_all_are_counted() {
    let mut play = Play::new(1);
    for index in 0..60 {
        play.job = format!("stranger-{index}");
        play.at(0, 0, "", "Pending");
    }
    let outcome = play.check.finish(Duration::ZERO);
    assert_eq!((outcome.fault_count, outcome.faults.len()), (61, SHOWN));
}
