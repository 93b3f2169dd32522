//! Late updates of nominations and Bindings from the API server, without HTTP.

use pellucid::cluster::preemptions::End;
use pellucid::cluster::{Input, NominatedBy};
use pellucid::model::Pod;
use pellucid::model::effect::BindOutcome;

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, on, pod, ranked};

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
    let p = ranked("p", 1000, 10);
    core.attempt(&p);
    let first = by_us(&core, &p).expect("a nomination");
    // The node is deleted before the watch shows the nomination; the pod is nominated to the other node.
    core.apply(Input::NodeDeleted(first.as_str().into()));
    core.run_after(10 * SECOND);
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
    assert_eq!(core.wasted(End::NominationChanged), 1);
}

#[test]
fn a_preemption_ends_when_somebody_else_binds_the_pod_elsewhere() {
    let mut core = core_with(&[node("a", 1000)]);
    let low = on(&pod("low", 1000), "a");
    core.see(&low);
    let p = ranked("p", 1000, 10);
    core.attempt(&p);
    core.delete(&low);
    core.run();
    let order = core.orders().pop().expect("a bind order");
    core.report(&order, BindOutcome::BoundElsewhere { node: "b".into() });
    core.see(&on(&p, "b"));
    let open = core.scheduler.cluster().preemptions().open().count();
    assert_eq!((open, core.wasted(End::PlacedElsewhere)), (0, 1));
}
