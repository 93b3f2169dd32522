//! Reads end when their caller's time limit does, however much there is to compute.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use pellucid::cycle::Snapshot;
use pellucid::cycle::what_if::edit::Edit;
use pellucid::diagnosis::dump::{Dump, Source};
use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::model::cancellation::{Cancellation, Cancelled, run_cancellable};
use pellucid::model::gang::GangTerms;
use pellucid::model::{GangKey, Pod};

use crate::common::driver::Core;
use crate::common::reads::ask_snapshot;
use crate::gangs::made::{core_with, member, members, single, terms};

/// A time limit that expires after a number of checks.
struct Questions(Cell<usize>);

impl Cancellation for Questions {
    fn is_over(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }
}

fn after<T>(questions: usize, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    run_cancellable(Rc::new(Questions(Cell::new(questions))), work)
}

/// Makes gangs of one member, each naming the previous and the next one.
fn ring(n: usize) -> Vec<Pod> {
    let name = |at: usize| format!("r{:03}", at % n);
    let gang = |at: usize| {
        let groups: Arc<[GangKey]> = [at + n - 1, at, at + 1].map(|at| GangKey::new("ns", &name(at))).into();
        let terms = GangTerms { groups, ..terms(1) };
        member(&name(at), &format!("{}-0", name(at)), 1000, terms)
    };
    (0..n).map(gang).collect()
}

/// Makes two small nodes, a ring and a gang that find no room, a pod that is too large, and one that is placed.
fn world() -> (Core, Snapshot) {
    let mut core = core_with(&[2000, 2000]);
    core.attempt(&single("placed", 1000));
    core.see_all(&members("g", 5, 1000, &terms(5)));
    core.see_all(&ring(6));
    core.attempt(&single("large", 9000));
    let snapshot = core.scheduler.publish(core.now);
    (core, snapshot)
}

#[test]
fn what_is_worked_out_for_a_reader_can_be_given_up() {
    let (core, snapshot) = world();
    let ask = |target: &str, questions: usize| {
        let answer = || ask_snapshot(&snapshot, &core, target);
        after(questions, || answer().map_err(|error| panic!("{target}: {error:?}")).is_ok())
    };
    for target in [
        "/apis/v1/explain/pods/ns/large/suggestions",
        "/apis/v1/explain/pods/ns/large/nearest",
        "/apis/v1/explain/pods/ns/large/feasibility",
        "/apis/v1/explain/pods/ns/large?mode=exhaustive",
        "/apis/v1/explain/pods/ns/large?refresh=true",
        "/apis/v1/explain/gangs/ns/g/suggestions",
        "/apis/v1/explain/gangs/ns/r001",
        "/apis/v1/explain/placements/ns/placed",
        "/apis/v1/explain/nodes/n0",
        "/apis/v1/queue",
        "/apis/v1/plugins/Coscheduling/gangs",
    ] {
        assert_eq!(ask(target, 0), Err(Cancelled), "{target}");
        // The snapshot remains usable: the next reader gets an answer.
        assert_eq!(ask(target, usize::MAX), Ok(true), "{target}");
    }
    let configuration = serde_json::Value::Null;
    let snapshot = || Dump::of(&Source { snapshot: &snapshot, configuration: &configuration, redact: true });
    assert!(after(0, snapshot).is_err());
    assert!(after(usize::MAX, snapshot).is_ok());
}

#[test]
fn a_simulation_is_given_up_in_every_part_of_it() {
    let (core, snapshot) = world();
    let renamed = |pod: Pod| Pod { key: pellucid::model::PodKey::new("other", &pod.key.name), ..pod };
    let edits = ring(12).into_iter().map(|pod| Edit::ApplyPod(Arc::new(renamed(pod))));
    let question = Question { edits: edits.collect(), ..Question::default() };
    let simulated =
        |questions| after(questions, || simulate(&snapshot, &question, core.now).map(|_| ()).is_ok());
    // The loops check often enough: there is little work between two checks.
    let asked = Rc::new(Questions(Cell::new(usize::MAX)));
    run_cancellable(asked.clone(), || simulate(&snapshot, &question, core.now).map(|_| ()))
        .expect("patience")
        .expect("planned");
    let total = usize::MAX - asked.0.get();
    assert!(total > 12 * 12, "{total} questions for a ring of 12 gangs");
    for at in (0..total).step_by(total / 50) {
        assert_eq!(simulated(at), Err(Cancelled), "after {at} of {total} questions");
    }
    assert_eq!(simulated(total), Ok(true));
}
