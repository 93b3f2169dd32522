//! Fixes with which pods ask less of their nodes and of other pods.

use pellucid::cycle::what_if::edit::{Edit, Target};
use pellucid::model::Pod;
use pellucid::model::pod::Qos;
use pellucid::model::selector::{Labels, NodeSelectorTerm, Operator, Requirement};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{core_with, labelled, node, on, pod};
use crate::common::reads::{ask, list, text};
use crate::why::fixing::{beside, controlled, with_spec};

fn fixes(core: &mut Core, name: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{name}/suggestions"))
}

fn texts(body: &Value) -> Vec<&str> {
    list(body, "/fixes").iter().map(|fix| text(fix, "/text")).collect()
}

/// Returns a pod whose node affinity names these nodes alone.
fn naming(pod: Pod, nodes: &[&str]) -> Pod {
    let values = nodes.iter().map(|name| (*name).into()).collect();
    let field = Requirement { key: "metadata.name".into(), operator: Operator::In, values };
    let term = NodeSelectorTerm { fields: Box::new([field]), ..NodeSelectorTerm::default() };
    with_spec(pod, |spec| spec.affinity.required = Some(Box::new([term])))
}

#[test]
fn a_pod_that_names_a_node_that_is_gone_is_told_which_and_may_run_elsewhere() {
    let mut core = core_with(&[node("n", 1000)]);
    core.attempt(&naming(pod("p", 100), &["gone"]));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert_eq!(text(&body, "/keyReason/code"), "NamedNodesMissing");
    let begin =
        "Not placed: its node affinity names node gone alone, which is not in the cluster. Nothing if";
    assert!(text(&body, "/summary").starts_with(begin), "{body:#}");
    let body = fixes(&mut core, "p");
    let [fix] = list(&body, "/fixes") else { panic!("{body:#}") };
    assert_eq!(text(fix, "/text"), "let it run on other nodes (no nodeSelector, no required node affinity)");
    assert_eq!((text(fix, "/node"), text(fix, "/inCompany")), ("n", "holds"));
}

/// Its controller makes it anew for the same node, whatever its template says.
#[test]
fn a_pod_of_a_daemon_set_is_not_told_to_run_elsewhere() {
    let mut core = core_with(&[node("n", 1000), node("full", 100)]);
    let daemon = |name: &str, node: &str| {
        let pod = with_spec(naming(pod(name, 500), &[node]), |spec| spec.is_daemon = true);
        controlled(pod, "DaemonSet", "d")
    };
    core.attempt(&daemon("p", "gone"));
    core.attempt(&daemon("q", "full"));
    assert_eq!(texts(&fixes(&mut core, "p")), Vec::<&str>::new());
    let body = fixes(&mut core, "q");
    assert!(texts(&body).iter().all(|text| !text.contains("other nodes")), "{body:#}");
    assert!(texts(&body)[0].starts_with("request 100m of cpu"), "{body:#}");
}

#[test]
fn what_is_required_of_other_pods_may_be_a_preference() {
    let host = |name: &str| {
        let labels = Labels::new([("kubernetes.io/hostname".into(), name.into())]);
        pellucid::model::Node { labels, ..node(name, 1000) }
    };
    let mut core = core_with(&[host("n")]);
    core.see(&on(&labelled(pod("a", 100), "app", "a"), "n"));
    let apart = with_spec(pod("apart", 100), |spec| {
        spec.pod_anti_affinity = beside("app", "a", "kubernetes.io/hostname");
    });
    let near = with_spec(pod("near", 100), |spec| {
        spec.pod_affinity = beside("app", "b", "kubernetes.io/hostname");
    });
    core.attempt(&apart);
    core.attempt(&near);
    for (name, begin, field) in [
        ("apart", "only prefer to be away from other pods", "podAntiAffinity"),
        ("near", "only prefer other pods beside it", "podAffinity"),
    ] {
        let body = fixes(&mut core, name);
        let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text").starts_with(begin));
        let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
        assert_eq!(text(fix, "/node"), "n");
        let edit = format!("relaxP{}", &field[1..]);
        assert_eq!(fix["edits"], json!([{edit: {"pod": format!("ns/{name}")}}]));
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let command = text(fix, "/parts/0/command");
        assert!(
            command.contains(&format!("(.spec.affinity.{field} | select(.{required})) |= ")),
            "{command}"
        );
    }
}

#[test]
fn a_pod_that_is_to_request_something_is_no_best_effort_then() {
    let best_effort = with_spec(pod("p", 0), |spec| spec.qos = Qos::BestEffort);
    let request = |amount| Edit::SetRequest {
        of: Target::Pod(best_effort.key.clone()),
        resource: "cpu".into(),
        amount,
        instead_of: None,
    };
    let more = request(450).changed(&best_effort);
    assert_eq!(more.spec.qos, Qos::Burstable);
    assert_eq!(request(0).changed(&more).spec.qos, Qos::BestEffort);
}
