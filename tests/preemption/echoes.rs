//! Late updates of nominations and Bindings from the API server, without HTTP.

use std::sync::Arc;

use pellucid::cluster::preemptions::End;
use pellucid::cluster::{Input, NominatedBy};
use pellucid::model::Pod;
use pellucid::model::effect::BindOutcome;

use crate::driver::Core;
use crate::made::{SECOND, core_with, node, on, pod};

fn important(name: &str, milli_cpu: i64) -> Pod {
    Pod { priority: 10, ..pod(name, milli_cpu) }
}

/// Returns the pod as the API server shows it after one of our writes.
fn nominated(pod: &Pod, node: Option<&str>) -> Pod {
    Pod { nominated_node: node.map(Into::into), ..pod.clone() }
}

/// Returns the node that a pod is nominated to, if we nominated it.
fn by_us(core: &Core, pod: &Pod) -> Option<String> {
    let cluster = core.scheduler.cluster();
    let nomination = cluster.nominator().of(cluster.find_pod(&pod.key)?)?;
    (nomination.by == NominatedBy::Us).then(|| nomination.node.to_string())
}

#[test]
fn a_late_echo_of_our_own_nomination_is_not_somebody_elses() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    for name in ["a", "b"] {
        core.see(&on(&pod(&format!("low-{name}"), 1000), name));
    }
    let p = important("p", 1000);
    core.see(&p);
    core.run();
    let first = by_us(&core, &p).expect("a nomination");
    // The node is deleted before the watch shows the nomination; the pod is nominated to the other node.
    core.apply(Input::NodeDeleted(first.as_str().into()));
    core.wait(10 * SECOND);
    core.run();
    let second = by_us(&core, &p).expect("another nomination");
    assert_ne!(first, second);
    for echo in [Some(&*first), None, Some(&*second)] {
        core.see(&nominated(&p, echo));
        assert_eq!(by_us(&core, &p).as_ref(), Some(&second), "after {echo:?}");
    }
    let book = core.scheduler.cluster().preemptions();
    assert_eq!((book.open().count(), book.counts().wasted.len()), (1, 1));
    assert_eq!(book.counts().wasted[&End::NodeGone], 1);
    // A nomination written by others counts, even if it equals an earlier one of ours.
    core.see(&nominated(&p, None));
    assert_eq!(by_us(&core, &p), None);
    assert_eq!(core.scheduler.cluster().preemptions().counts().wasted[&End::NominationChanged], 1);
}

#[test]
fn a_preemption_ends_when_somebody_else_binds_the_pod_elsewhere() {
    let mut core = core_with(&[node("a", 1000)]);
    let low = on(&pod("low", 1000), "a");
    core.see(&low);
    let p = important("p", 1000);
    core.see(&p);
    core.run();
    core.delete(&low);
    core.run();
    let order = core.orders().pop().expect("a bind order");
    core.report(&order, BindOutcome::BoundElsewhere { node: "b".into() });
    core.apply(Input::PodApplied(Arc::new(on(&p, "b"))));
    let book = core.scheduler.cluster().preemptions();
    assert_eq!((book.open().count(), book.counts().wasted.get(&End::PlacedElsewhere)), (0, Some(&1)));
}
