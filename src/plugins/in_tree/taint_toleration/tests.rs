//! Tests refusing and discouraging taints, and wake-ups of refused pods.

use pellucid_model::taint::TolerationOperator;

use super::*;
use crate::testing::{TestCluster, cluster_of, filter_all, node, pod_with, raw_scores};

fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.into(), value: value.into(), effect }
}

fn tainted(name: &str, taints: &[Taint]) -> Node {
    Node { taints: taints.into(), ..node(name) }
}

fn equal(key: &str, value: &str, effect: Option<TaintEffect>) -> Toleration {
    Toleration { key: key.into(), operator: TolerationOperator::Equal, value: value.into(), effect }
}

fn tolerating(tolerations: &[Toleration]) -> Pod {
    pod_with(PodSpec { tolerations: tolerations.into(), ..PodSpec::default() })
}

use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};

#[test]
fn every_hard_taint_must_be_tolerated() {
    let cluster = cluster_of([
        node("free"),
        tainted("soft", &[taint("k", "v", PreferNoSchedule)]),
        tainted("hard", &[taint("k", "v", NoSchedule)]),
        tainted("both", &[taint("k", "v", NoSchedule), taint("x", "", NoExecute)]),
    ]);
    let refused = filter_all(&TaintToleration, &cluster, &PodSpec::default());
    assert_eq!(refused.keys().map(String::as_str).collect::<Vec<_>>(), ["both", "hard"]);
    assert_eq!(refused["hard"], "node(s) had untolerated taint(s)");
    let pod = tolerating(&[equal("k", "v", None)]);
    assert_eq!(filter_all(&TaintToleration, &cluster, &pod.spec).keys().collect::<Vec<_>>(), ["both"]);
}

#[test]
fn untolerated_soft_taints_are_counted() {
    let soft = |key: &str| taint(key, "", PreferNoSchedule);
    let cluster = cluster_of([
        node("none"),
        tainted("one", &[soft("a"), taint("h", "", NoSchedule)]),
        tainted("two", &[soft("a"), soft("b")]),
    ]);
    let scores = |pod: &Pod| raw_scores(&TaintToleration, &cluster, &pod.spec);
    assert_eq!(scores(&tolerating(&[])), Some(vec![0, 1, 2]));
    assert_eq!(scores(&tolerating(&[equal("a", "", None)])), Some(vec![0, 0, 1]));
    assert_eq!(scores(&tolerating(&[equal("a", "", Some(NoSchedule))])), Some(vec![0, 1, 2]));
    assert_eq!(TaintToleration.normalize().apply(1, 2), 50);
}

#[test]
fn a_taint_that_goes_or_a_new_toleration_wakes_the_pod() {
    let mut cluster = cluster_of([tainted("n", &[taint("k", "v", NoSchedule)])]);
    let pod = tolerating(&[]);
    let n = cluster.idx("n");
    let hint = |cluster: &TestCluster, pod: &Pod, event: &ClusterEvent| {
        TaintToleration.hint(cluster.view(), pod, event)
    };
    assert_eq!(hint(&cluster, &pod, &ClusterEvent::NodeAdded(n)), Hint::Skip);
    let [event] = &cluster.apply(node("n"))[..] else { panic!("one event") };
    assert_eq!(hint(&cluster, &pod, event), Hint::Queue);
    assert_eq!(hint(&cluster, &tolerating(&[equal("k", "v", None)]), event), Hint::Skip);
    assert_eq!(hint(&cluster, &pod, &ClusterEvent::NodeAdded(n)), Hint::Queue);
    let updated =
        |old: &Pod| ClusterEvent::PendingUpdated { id: pellucid_model::PodId(0), old: Arc::new(old.clone()) };
    assert_eq!(hint(&cluster, &tolerating(&[equal("k", "v", None)]), &updated(&pod)), Hint::Queue);
    assert_eq!(hint(&cluster, &pod, &updated(&pod)), Hint::Skip);
}
