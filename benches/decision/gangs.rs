//! Gangs: one of 1,000 equal members on 5,000 nodes, 500 of 20 on 1,000 nodes, and 10,000 members that are pending when
//! the scheduler starts.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::model::Pod;
use pellucid::model::effect::Effect;
use pellucid::model::time::NoProbe;
use pellucid::recording::Outcome;

use super::line;
use super::world::{NODES, empty_scheduler, mark, node, now, pod, spec};

fn member(gang: &str, i: usize, min: u32) -> Arc<Pod> {
    let mut made = pod(&format!("{gang}-{i:04}"), spec(0));
    Arc::make_mut(&mut made).gang = Some(Arc::new(mark(gang, min)));
    made
}

fn members(gangs: usize, size: usize) -> Vec<Arc<Pod>> {
    // Interleaved, as when many jobs are created at once.
    let all = (0..size).flat_map(|i| (0..gangs).map(move |g| (g, i)));
    all.map(|(g, i)| member(&format!("gang-{g:03}"), i, size as u32)).collect()
}

fn on_nodes(n: usize) -> Scheduler {
    let mut scheduler = empty_scheduler(true);
    let nodes = (0..n).map(|i| Arc::new(node(i))).collect();
    scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
    scheduler
}

/// Schedules until nothing is active. Returns the number of placed members.
fn plan(scheduler: &mut Scheduler) -> usize {
    let mut placed = 0;
    while let Some(step) = scheduler.step(now(), &NoProbe) {
        placed += step.all().filter(|s| matches!(s.verdict.outcome, Outcome::Placed(_))).count();
        black_box(scheduler.take_effects());
    }
    placed
}

/// Returns the milliseconds to plan one gang of `size` equal members.
fn large(size: usize) -> f64 {
    let run = || {
        let mut scheduler = on_nodes(NODES);
        for pod in members(1, size) {
            scheduler.apply(Input::PodApplied(pod), now());
        }
        let start = Instant::now();
        assert_eq!(plan(&mut scheduler), size);
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..5).map(|_| run()).fold(f64::MAX, f64::min)
}

/// Returns the pods per second when planning 500 gangs of 20.
fn many() -> f64 {
    let run = || {
        let mut scheduler = on_nodes(1_000);
        for pod in members(500, 20) {
            scheduler.apply(Input::PodApplied(pod), now());
        }
        let start = Instant::now();
        assert_eq!(plan(&mut scheduler), 10_000);
        10_000.0 / start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| run()).fold(0.0, f64::max)
}

/// Returns the milliseconds from the first list to the first bind order with 10,000 pending members.
fn at_start() -> f64 {
    let run = || {
        let pods = members(500, 20);
        let mut scheduler = empty_scheduler(true);
        let nodes = (0..NODES).map(|i| Arc::new(node(i))).collect();
        let start = Instant::now();
        scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
        scheduler.apply(Input::PodsReset { pods, quarantined: Vec::new() }, now());
        loop {
            scheduler.step(now(), &NoProbe).expect("a gang is ready");
            if scheduler.take_effects().iter().any(|e| matches!(e, Effect::Bind(_))) {
                return start.elapsed().as_secs_f64() * 1e3;
            }
        }
    };
    (0..3).map(|_| run()).fold(f64::MAX, f64::min)
}

/// Returns the milliseconds to refuse a gang that lacks room for its last members.
fn refused(size: usize) -> f64 {
    let mut scheduler = on_nodes(10);
    let mut pods = members(1, size);
    let room: usize = (0..10).map(|_| 110).sum::<usize>();
    pods.truncate(size.min(room + 100));
    for pod in pods {
        scheduler.apply(Input::PodApplied(pod), now());
    }
    let start = Instant::now();
    assert_eq!(plan(&mut scheduler), 0);
    start.elapsed().as_secs_f64() * 1e3
}

/// Returns the milliseconds in which a gang finds a victim for each of its members, on nodes filled by pods of lower
/// priority.
fn preempting(size: usize) -> f64 {
    let mut scheduler = on_nodes(NODES);
    for i in 0..NODES {
        let mut filling = spec(0);
        filling.requests.list.milli_cpu = [15_950, 31_950, 63_950][i % 3];
        filling.priority = -1;
        let mut pod = pod(&format!("low-{i:04}"), filling);
        let made = Arc::make_mut(&mut pod);
        (made.priority, made.node_name) = (-1, Some(format!("node-{i:04}").as_str().into()));
        scheduler.apply(Input::PodApplied(pod), now());
    }
    for pod in members(1, size) {
        scheduler.apply(Input::PodApplied(pod), now());
    }
    let start = Instant::now();
    assert_eq!(plan(&mut scheduler), 0);
    let took = start.elapsed().as_secs_f64() * 1e3;
    assert!(scheduler.cluster().preemptions().open().count() > 0, "somebody is evicted");
    took
}

/// Prints the rows of the table.
pub(crate) fn print() {
    line("a gang of 1,000 equal members, planned", large(1_000), "ms", "50", "5");
    line("500 gangs of 20 on 1,000 nodes", many(), "pods/s", "-", "-");
    line("10,000 pending members at start, first bind", at_start(), "ms", "-", "-");
    line("a gang of 1,200 refused for want of 100 places", refused(1_200), "ms", "-", "-");
    line("a gang of 100 finds its victims", preempting(100), "ms", "-", "-");
    line("a gang of 1,000 finds its victims", preempting(1_000), "ms", "-", "-");
}
