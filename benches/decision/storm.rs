//! Wake storm: many refused pods, each with a unique shape, and many deleted pods.

use std::sync::Arc;
use std::time::Instant;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::model::time::NoProbe;
use pellucid::model::{Name, Pod, PodSpec};

use super::world::{NODES, now, pod, scheduler, spec};

/// Number of refused pods, which is also the number of wake groups.
pub(crate) const GROUPS: usize = 10_000;

/// Returns a scheduler with a pod on every node and [`GROUPS`] refused pods. `lacks` turns a spec that fits into one
/// that does not.
fn stormy(lacks: impl Fn(&mut PodSpec, usize)) -> (Scheduler, Vec<Arc<Pod>>) {
    let mut scheduler = scheduler(true);
    let running: Vec<Arc<Pod>> = (0..NODES)
        .map(|i| {
            let mut pod = pod(&format!("running-{i:04}"), spec(0));
            Arc::make_mut(&mut pod).node_name = Some(Name::new(&format!("node-{i:04}")));
            pod
        })
        .collect();
    for pod in &running {
        scheduler.apply(Input::PodApplied(pod.clone()), now());
    }
    for i in 0..GROUPS {
        let mut spec = spec(0);
        lacks(&mut spec, i);
        scheduler.apply(Input::PodApplied(pod(&format!("refused-{i:05}"), spec)), now());
        drop(scheduler.step(now(), &NoProbe));
        drop(scheduler.take_effects());
    }
    assert_eq!(scheduler.queue().counts().unschedulable, GROUPS);
    (scheduler, running)
}

/// Deletes the running pods. Returns the milliseconds and the number of refused pods that were woken.
fn storm((mut scheduler, running): (Scheduler, Vec<Arc<Pod>>)) -> (f64, usize) {
    let start = Instant::now();
    for pod in running {
        scheduler.apply(Input::PodDeleted(pod.key.clone()), now());
    }
    let took = start.elapsed().as_secs_f64() * 1e3;
    (took, GROUPS - scheduler.queue().counts().unschedulable)
}

/// Runs a storm with refused pods that select a label no node has.
pub(crate) fn of_selectors() -> (f64, usize) {
    storm(stormy(|spec, i| {
        let label = (Name::new("rack"), Name::new(&format!("r{i}")));
        spec.affinity.selector = [label].into();
    }))
}

/// Runs a storm with refused pods that request more CPU than any node has.
pub(crate) fn of_requests() -> (f64, usize) {
    storm(stormy(|spec, i| spec.requests.list.milli_cpu = 1_000_000 + i as i64))
}
