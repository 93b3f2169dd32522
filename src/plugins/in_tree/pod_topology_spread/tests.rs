//! Tests skew, domains and weights against values computed by hand, default constraints, and wake-ups of refused pods.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ClusterEvent;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_framework::list::List;
use pellucid_framework::plugin::{Hint, Hints};
use pellucid_framework::{Code, PluginFactory};
use pellucid_model::object::Workload;
use pellucid_model::relations::{NodeInclusion, Owner, OwnerKind, SpreadConstraint};
use pellucid_model::taint::{Taint, TaintEffect};
use pellucid_model::{Node, Object, Pod, PodSpec};
use serde_json::json;

use super::*;
use crate::relations::testing::{in_zone, labelled, pairs, selecting};
use crate::testing::{TestCluster, cluster_of, filter_all, filter_causes, measures, pre_filter};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const SKEWED: &str = "node(s) didn't match pod topology spread constraints";

fn plugin(args: serde_json::Value) -> PodTopologySpread {
    PodTopologySpread { defaults: args::read(&args).expect("valid") }
}

fn by_default() -> PodTopologySpread {
    plugin(serde_json::Value::Null)
}

fn constraint(key: &str, max_skew: i32, is_hard: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        is_hard,
        selector: Some(selecting("app", "web")),
        min_domains: 1,
        node_affinity_policy: NodeInclusion::Honor,
        node_taints_policy: NodeInclusion::Ignore,
    }
}

fn web(name: &str, spread: &[SpreadConstraint]) -> Pod {
    labelled(name, &[("app", "web")], PodSpec { spread: spread.into(), ..PodSpec::default() })
}

/// Returns a cluster with zones za (a1, a2) and zb (b1), and a node without a zone.
fn zones() -> TestCluster {
    cluster_of([in_zone("a1", "za"), in_zone("a2", "za"), in_zone("b1", "zb"), in_zone("none", "")])
}

fn refused(cluster: &mut TestCluster, pod: Pod) -> Vec<String> {
    let pod = cluster.see(pod);
    let all = filter_all(&by_default(), cluster, &pod.spec).into_iter();
    all.filter(|(_, text)| text == SKEWED).map(|(node, _)| node).collect()
}

#[test]
fn no_domain_gets_further_ahead_than_max_skew() {
    for (max_skew, in_za, in_zb, want) in [
        (1, 0, 0, &[][..]),
        (1, 1, 0, &["a1", "a2"]),
        (1, 1, 1, &[]),
        (2, 2, 1, &[]),
        (2, 3, 1, &["a1", "a2"]),
        (1, 0, 5, &["b1"]),
    ] {
        let mut cluster = zones();
        cluster.put(("app", "web"), &["a1", "a2", "a1"][..in_za]);
        cluster.put(("app", "web"), &["b1"; 5][..in_zb]);
        cluster.put(("app", "db"), &["b1", "none"]);
        let got = refused(&mut cluster, web("p", &[constraint(ZONE, max_skew, true)]));
        assert_eq!(got, want, "{max_skew} {in_za} {in_zb}");
    }
}

#[test]
fn causes_say_whether_removing_pods_could_help() {
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1"]);
    let pod = cluster.see(web("p", &[constraint(ZONE, 1, true)]));
    let causes = filter_causes(&by_default(), &cluster, &pod.spec);
    let said = |node: &str| (causes[node].code, causes[node].reasons[0].code);
    assert_eq!(said("a2"), (Code::Unschedulable, ReasonCode::SpreadSkewTooLarge));
    assert_eq!(said("none"), (Code::UnschedulableAndUnresolvable, ReasonCode::SpreadLabelMissing));
    assert_eq!(causes["none"].message(), format!("{SKEWED} (missing required label)"));
    let soft = cluster.see(web("soft", &[constraint(ZONE, 1, false)]));
    assert!(matches!(pre_filter(&by_default(), &cluster, &soft.spec), Ok(None)), "nothing hard: skipped");
}

#[test]
fn a_refusal_says_how_large_the_skew_would_be_at_the_least() {
    let mut cluster = cluster_of([in_zone("a", "za"), in_zone("b", "zb"), in_zone("c", "zc")]);
    cluster.put(("app", "web"), &["a", "a", "a", "b", "b"]);
    let pod = cluster.see(web("p", &[constraint(ZONE, 1, true), constraint(HOST, 5, true)]));
    let want = [(format!("skew of {ZONE}"), 3, 1, "b".to_owned())];
    assert_eq!(measures(&by_default(), &cluster, &pod.spec), want, "c would take it, b is nearest");
    // A node is counted for the constraint that refuses it; a node without the label is counted for none.
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1", "a1", "a2"]);
    let pod = cluster.see(web("p", &[constraint(ZONE, 3, true), constraint(HOST, 2, true)]));
    let want = [(format!("skew of {ZONE}"), 4, 3), (format!("skew of {HOST}"), 3, 2)];
    let got = measures(&by_default(), &cluster, &pod.spec);
    assert_eq!(got.iter().map(|(what, n, most, _)| (what.clone(), *n, *most)).collect::<Vec<_>>(), want);
    assert_eq!(got[1].3, "a1", "a2 has one pod less and is within maxSkew 2");
}

#[test]
fn who_is_counted() {
    let other = || labelled("other", &[("app", "db")], PodSpec::default());
    // A pod that does not match its own selector adds nothing to its domain.
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1"]);
    let spread = [constraint(ZONE, 1, true)];
    let spec = PodSpec { spread: spread.clone().into(), ..PodSpec::default() };
    assert!(refused(&mut cluster, Pod { spec: spec.into(), ..other() }).is_empty());
    // Pods of other namespaces and pods that are being deleted do not count.
    let mut cluster = zones();
    let elsewhere = Pod { key: pellucid_model::PodKey::new("e", "x"), ..web("x", &[]) };
    for pod in [elsewhere, Pod { deleting: true, ..web("y", &[]) }] {
        cluster.see(Pod { node_name: Some("a1".into()), ..pod });
    }
    assert!(refused(&mut cluster, web("p", &spread)).is_empty());
    // Pods on a removed node do not count until the node is back.
    cluster.put(("app", "web"), &["a1"]);
    assert_eq!(refused(&mut cluster, web("p", &spread)), ["a1", "a2"]);
    cluster.cluster.delete_node(&"a1".into(), &mut Vec::new());
    assert!(refused(&mut cluster, web("p", &spread)).is_empty());
    cluster.apply(in_zone("a1", "za"));
    assert_eq!(refused(&mut cluster, web("p", &spread)), ["a1", "a2"]);
    // An absent selector counts nothing.
    let none = SpreadConstraint { selector: None, ..constraint(ZONE, 1, true) };
    assert!(refused(&mut cluster, web("p", &[none])).is_empty());
    // One without requirements neither, though the pod matches it.
    let every = Some(pellucid_model::selector::LabelSelector::new([]));
    let every = SpreadConstraint { selector: every, ..constraint(ZONE, 1, true) };
    assert!(refused(&mut cluster, web("p", &[every])).is_empty());
}

#[test]
fn with_too_few_domains_the_minimum_is_zero() {
    for (min_domains, want) in [(2, 0), (3, 3)] {
        let mut cluster = zones();
        cluster.put(("app", "web"), &["a1", "b1"]);
        let rule = SpreadConstraint { min_domains, ..constraint(ZONE, 1, true) };
        assert_eq!(refused(&mut cluster, web("p", &[rule])).len(), want, "{min_domains}");
    }
}

#[test]
fn policies_say_which_nodes_count() {
    use NodeInclusion::{Honor, Ignore};
    // zb is empty, but the pod cannot run there.
    for (affinity, taints, is_tainted, want) in [
        (Honor, Ignore, false, 0),
        (Ignore, Ignore, false, 2),
        (Ignore, Honor, true, 0),
        (Ignore, Ignore, true, 2),
    ] {
        let mut cluster = zones();
        cluster.put(("app", "web"), &["a1"]);
        let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoSchedule };
        let taints_of_b = if is_tainted { vec![taint] } else { Vec::new() };
        cluster.apply(Node { taints: taints_of_b.into(), ..in_zone("b1", "zb") });
        let rule = SpreadConstraint {
            node_affinity_policy: affinity,
            node_taints_policy: taints,
            ..constraint(ZONE, 1, true)
        };
        let mut pod = web("p", &[rule]);
        let mut spec = (*pod.spec).clone();
        spec.affinity.selector = Box::new([(ZONE.into(), "za".into())]);
        pod.spec = spec.into();
        // One pod in za, minimum 1 when zb does not count: another pod makes a skew of 1.
        let got = refused(&mut cluster, pod);
        assert_eq!(got.len(), want, "{affinity:?} {taints:?} {is_tainted}: {got:?}");
    }
}

#[test]
fn nodes_that_lack_another_key_are_no_domain() {
    // b1 has no hostname, so zb does not count for the zone either.
    let mut cluster =
        cluster_of([in_zone("a1", "za"), Node { labels: pairs(&[(ZONE, "zb")]), ..in_zone("b1", "") }]);
    cluster.put(("app", "web"), &["a1", "a1"]);
    let both = [constraint(ZONE, 1, true), constraint(HOST, 9, true)];
    assert!(refused(&mut cluster, web("p", &both)).is_empty());
    assert_eq!(refused(&mut cluster, web("p", &both[..1])), ["a1"]);
}

#[test]
fn scores_by_hand() {
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1", "a1", "b1"]);
    let scores = |cluster: &mut TestCluster, plugin: &PodTopologySpread, pod: Pod| {
        let pod = cluster.see(pod);
        cluster.scores(plugin, &pod.spec)
    };
    // Two zones: ln 4 = 1.386. za has 2 pods: 2.77 -> 3; zb 1: 1.39 -> 1. The node without a zone is ignored.
    let by_zone = scores(&mut cluster, &by_default(), web("p", &[constraint(ZONE, 1, false)]));
    assert_eq!(by_zone, Some([vec![3, 3, 1, 0], vec![33, 33, 100, 0]]));
    // Three such nodes: ln 5 = 1.609; a1 3.22 + 2.77 = 5.99, a2 2.77, b1 1.61 + 1.39 = 3.00.
    let both = [constraint(HOST, 1, false), constraint(ZONE, 1, false)];
    let by_both = scores(&mut cluster, &by_default(), web("p", &both));
    assert_eq!(by_both, Some([vec![6, 3, 3, 0], vec![50, 100, 100, 0]]));
    // No pod matches: all nodes score the same.
    let nobody = SpreadConstraint { selector: Some(selecting("app", "x")), ..constraint(ZONE, 1, false) };
    let of_nobody = scores(&mut cluster, &by_default(), web("p", &[nobody]));
    assert_eq!(of_nobody, Some([vec![0; 4], vec![100, 100, 100, 0]]));
    assert_eq!(scores(&mut cluster, &by_default(), web("p", &[constraint(ZONE, 1, true)])), None);
    assert_eq!(scores(&mut cluster, &by_default(), web("p", &[])), None, "neither Service nor owner");
}

#[test]
fn defaults_take_their_selector_from_services_and_the_owner() {
    let service = |name: &str, key: &str, value: &str| {
        let selector = Some(selecting(key, value));
        Object::Service(Workload {
            namespace: "d".into(),
            name: name.into(),
            selector,
            replicas: None,
            controller: None,
        })
    };
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1", "a1", "b1", "none"]);
    let spec = |cluster: &mut TestCluster, owner: Option<OwnerKind>| {
        let owner = owner.map(|kind| Owner { kind, name: "o".into() });
        let spec = PodSpec { owner, ..PodSpec::default() };
        cluster.see(labelled("p", &[("app", "web"), ("tier", "fe")], spec)).spec.clone()
    };
    let own = spec(&mut cluster, Some(OwnerKind::ReplicaSet));
    assert_eq!(cluster.scores(&by_default(), &own), None, "the owner is not known");
    cluster.object(service("front", "app", "web"));
    cluster.object(service("others", "app", "db"));
    // Hostname: 4 nodes, ln 6 = 1.792, + 2. Zone: za, zb and none, ln 5 = 1.609, + 4. a1 5.58 + 7.22 = 12.80,
    // a2 2 + 7.22, b1 3.79 + 5.61 = 9.40. A node without a zone is spread by hostname: 3.79.
    let plain = spec(&mut cluster, None);
    let want = Some([vec![13, 9, 9, 4], vec![30, 61, 61, 100]]);
    assert_eq!(cluster.scores(&by_default(), &plain), want);
    // The owner's requirements are added, and no pod has the other label.
    let owner = Workload {
        namespace: "d".into(),
        name: "o".into(),
        selector: Some(selecting("tier", "fe")),
        replicas: Some(1),
        controller: None,
    };
    cluster.object(Object::ReplicaSet(owner.clone()));
    let own = spec(&mut cluster, Some(OwnerKind::ReplicaSet));
    assert_eq!(cluster.scores(&by_default(), &own).map(|[raw, _]| raw), Some(vec![6, 6, 6, 2]));
    // A ReplicationController's pairs replace a Service's under the same key.
    let selector = Some(selecting("app", "x"));
    cluster.object(Object::ReplicationController(Workload { selector, ..owner }));
    let own = spec(&mut cluster, Some(OwnerKind::ReplicationController));
    assert_eq!(cluster.scores(&by_default(), &own).map(|[raw, _]| raw), Some(vec![6, 6, 6, 2]));
    // A list may contain hard constraints, and ignores nodes that lack a key.
    let list = plugin(json!({"defaultingType": "List", "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
    ]}));
    let plain = spec(&mut cluster, None);
    assert_eq!(filter_all(&list, &cluster, &plain).keys().collect::<Vec<_>>(), ["a1", "a2", "none"]);
    assert_eq!(cluster.scores(&list, &plain).map(|[_, normalised]| normalised[3]), Some(0));
    // A pod with constraints of its own has only those.
    let own = cluster.see(web("p", &[constraint(HOST, 9, true)])).spec.clone();
    assert!(filter_all(&list, &cluster, &own).is_empty() && cluster.scores(&list, &own).is_none());
}

#[test]
fn arguments() {
    let rule = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
    let with = |changes: serde_json::Value| {
        let mut made = rule.clone();
        for (name, value) in changes.as_object().expect("an object") {
            made[name] = value.clone();
        }
        json!({"defaultingType": "List", "defaultConstraints": [made]})
    };
    for (args, field) in [
        (json!({"defaultingType": "Else"}), "defaultingType"),
        (json!({"defaultConstraints": [rule.clone()]}), "defaultingType"),
        (with(json!({"maxSkew": 0})), "defaultConstraints[0].maxSkew"),
        (with(json!({"topologyKey": ""})), "defaultConstraints[0].topologyKey"),
        (with(json!({"whenUnsatisfiable": "x"})), "defaultConstraints[0].whenUnsatisfiable"),
        (with(json!({"labelSelector": {}})), "defaultConstraints[0].labelSelector"),
        (with(json!({"nodeTaintsPolicy": "x"})), "defaultConstraints[0].nodeTaintsPolicy"),
        (
            json!({"defaultingType": "List", "defaultConstraints": [rule.clone(), rule.clone()]}),
            "defaultConstraints[1]",
        ),
    ] {
        let problems = args::read(&args).expect_err("it is wrong");
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [field], "{args}");
    }
    let list = with(json!({}));
    assert_eq!(plugin(list.clone()).args(), list);
    assert_eq!(by_default().args(), json!({"defaultingType": "System", "defaultConstraints": []}));
}

#[test]
fn reads() {
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1", "a2", "a2"]);
    cluster.see(web("p", &[constraint(ZONE, 1, true)]));
    let params = |name: &str| [("namespace", "d"), ("name", name)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let read = |at: usize, name: &str| {
        let (params, now) = (params(name).into(), pellucid_model::Now::default());
        (registration().endpoints()[at].read)(&ReadContext {
            view: cluster.view(),
            params: &params,
            now,
            list: &List::default(),
        })
    };
    let state = read(0, "").expect("it answers");
    assert_eq!(
        state["constraints"],
        json!([{"namespace": "d", "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
            "minDomains": 1, "selector": "app=web", "pods": 1, "pendingPods": 1, "matchingPods": 3, "domains": 2,
            "fewest": 0, "most": 3,
            "emptiest": [{"value": "zb", "pods": 0}, {"value": "za", "pods": 3}],
            "fullest": [{"value": "za", "pods": 3}, {"value": "zb", "pods": 0}]}])
    );
    let pod = read(1, "p").expect("the pod exists");
    assert_eq!((&pod["isDefaulted"], &pod["constraints"][0]["globalMinimum"]), (&json!(false), &json!(0)));
    let domain = |value: &str, pods: u32, skew: i64, is_within: bool| {
        json!({"constraint": 0, "topologyKey": ZONE, "value": value, "matchingPods": pods, "skew": skew,
            "isWithin": is_within})
    };
    assert_eq!(pod["domains"], json!([domain("za", 3, 4, false), domain("zb", 0, 1, true)]));
    assert!(matches!(read(1, "gone"), Err(ReadError::NotFound { code: "PodNotFound", .. })));
}

#[test]
fn events_wake_a_pod_only_when_they_could_help() {
    let mut cluster = zones();
    let pod = cluster.see(web("p", &[constraint(ZONE, 1, true)]));
    let events = |cluster: &mut TestCluster, pod: Pod| {
        let mut events = Vec::new();
        cluster.cluster.apply_pod(Arc::new(pod), &mut events);
        events
    };
    let hint = |cluster: &TestCluster, events: &[ClusterEvent]| {
        let wakes = |e: &ClusterEvent| by_default().hint(cluster.view(), &pod, e) == Hint::Queue;
        events.iter().any(wakes)
    };
    let on = |pod: Pod| Pod { node_name: Some("b1".into()), ..pod };
    let db = || labelled("x", &[("app", "db")], PodSpec::default());
    for (seen, want, why) in [
        (on(db()), false, "it is not counted"),
        (Pod { key: pellucid_model::PodKey::new("e", "x"), ..on(web("x", &[])) }, false, "another namespace"),
        (on(web("x", &[])), true, "now it is counted"),
        (Pod { deleting: true, ..on(web("x", &[])) }, true, "it no longer counts"),
    ] {
        let came = events(&mut cluster, seen);
        assert_eq!(hint(&cluster, &came), want, "{why}");
    }
    let gone = |pod: Pod| ClusterEvent::PodReleased { pod: Arc::new(pod), node: pellucid_model::NodeIdx(0) };
    let counted = (*cluster.see(web("y", &[]))).clone();
    assert!(hint(&cluster, &[gone(counted.clone())]));
    assert!(!hint(&cluster, &[gone(Pod { deleting: true, ..counted })]), "it did not count before");
    // Nodes: other domains wake; other amounts, and taints that no policy honours, do not.
    let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoSchedule };
    for (node, want) in [
        (in_zone("none", "zc"), true),
        (Node { unschedulable: true, ..in_zone("none", "zc") }, false),
        (Node { taints: Arc::new([taint]), ..in_zone("none", "zc") }, false),
        (in_zone("none", "zd"), true),
        (in_zone("new", "zd"), true),
        (in_zone("newer", ""), false),
    ] {
        let came = cluster.apply(node);
        assert_eq!(hint(&cluster, &came), want, "{came:?}");
    }
}

#[test]
fn services_wake_pods_that_default_constraints_refuse() {
    let hard = json!({"defaultingType": "List", "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]});
    let mut cluster = zones();
    let pod = cluster.see(web("p", &[]));
    let own = cluster.see(web("q", &[constraint(ZONE, 1, true)]));
    let service = |namespace: &str| {
        let (namespace, name) = (namespace.into(), "s".into());
        let service =
            Object::Service(Workload { namespace, name, selector: None, replicas: None, controller: None });
        ClusterEvent::ObjectChanged { old: None, new: Some(service.into()) }
    };
    for (args, pod, namespace, want) in [
        (hard.clone(), &pod, "d", true),
        (hard.clone(), &pod, "e", false),
        (hard, &own, "d", false),
        (serde_json::Value::Null, &pod, "d", false),
    ] {
        let (plugin, event) = (plugin(args), service(namespace));
        let is_heard = plugin.events().any(event.kinds());
        let wakes = is_heard && plugin.hint(cluster.view(), pod, &event) == Hint::Queue;
        assert_eq!(wakes, want, "{} {namespace}", pod.key);
    }
}
