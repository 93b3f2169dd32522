//! A simulation plans the pods that it is asked about, and no others that happen to wait.

use std::sync::Arc;

use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::selector::LabelSelector;
use pellucid::model::{Pod, PodSpec};

use crate::common::made::{core_with, labelled, node, on, pod};
use crate::common::reads::ask;

/// Returns a pod that bears no pod labelled `app=other` on its node.
fn keeps_away(pod: Pod) -> Pod {
    let term = PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "other".into())])),
        ..PodAffinityTerm::default()
    };
    let pod_anti_affinity = PodTerms { required: Box::new([term]), ..PodTerms::default() };
    Pod { spec: Arc::new(PodSpec { pod_anti_affinity, ..PodSpec::clone(&pod.spec) }), ..pod }
}

#[test]
fn no_pod_is_planned_because_the_last_selector_of_its_label_went() {
    let mut core = core_with(&[node("n0", 3000)]);
    for name in ["a", "b", "c"] {
        core.see(&on(&keeps_away(pod(name, 1000)), "n0"));
    }
    for (created, name) in [(1, "first"), (2, "second")] {
        core.attempt(&Pod { created, ..labelled(pod(name, 3000), "app", "web") });
    }
    for name in ["first", "second"] {
        let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{name}/feasibility"));
        assert_eq!((&body["maxCopiesNow"], &body["maxCopiesEmpty"]), (&0.into(), &1.into()), "{body:#}");
    }
}
