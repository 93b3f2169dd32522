//! What nodes fail is whole, and said term by term: every reason of a plugin, and the whole question behind a typo.

use std::sync::Arc;

use pellucid::model::pod::{HostPort, Protocol};
use pellucid::model::relations::{NodeInclusion, PodAffinityTerm, PodTerms, SpreadConstraint};
use pellucid::model::selector::{LabelSelector, Labels, NodeAffinity};
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Name, Node, Pod, PodSpec};
use serde_json::Value;

use crate::common::driver::Core;
use crate::common::made::{core_with, labelled, node, on, pod};
use crate::common::reads::{ask, list, text};
use crate::common::storage::{bound, using};

fn with(pod: Pod, change: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut spec = PodSpec::clone(&pod.spec);
    change(&mut spec);
    Pod { spec: Arc::new(spec), ..pod }
}

fn on_labels(node: Node, labels: &[(&str, &str)]) -> Node {
    Node { labels: Labels::new(labels.iter().map(|(k, v)| (Name::new(k), Name::new(v)))), ..node }
}

/// Makes a node with its own name as hostname label.
fn host(name: &str) -> Node {
    on_labels(node(name, 4000), &[("kubernetes.io/hostname", name)])
}

fn selector(key: &str, value: &str) -> LabelSelector {
    LabelSelector::of_pairs(&[(key.into(), value.into())])
}

fn by_host(app: &str) -> PodTerms {
    let term = PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".into(),
        selector: Some(selector("app", app)),
        ..PodAffinityTerm::default()
    };
    PodTerms { required: [term].into(), ..PodTerms::default() }
}

/// Makes a pod with a value of label `app` that keeps away from pods with another one.
fn apart(name: &str, app: &str, from: &str) -> Pod {
    with(labelled(pod(name, 100), "app", app), |spec| spec.pod_anti_affinity = by_host(from))
}

fn codes(body: &Value, pointer: &str) -> Vec<String> {
    let mut all: Vec<String> = list(body, pointer).iter().map(|r| text(r, "/code").to_owned()).collect();
    all.sort();
    all
}

fn texts(body: &Value) -> Vec<&str> {
    list(body, "/requirements").iter().map(|of| text(of, "/text")).collect()
}

/// Tries a pod and explains it.
fn refused(core: &mut Core, pod: &Pod) -> Value {
    core.attempt(pod);
    let body = ask(core, &format!("/apis/v1/explain/pods/{}?mode=exhaustive", pod.key));
    assert_eq!(body["verdict"], "refused", "{body:#}");
    body
}

#[test]
fn anti_affinity_of_both_sides_is_named() {
    let mut core = core_with(&[host("n1")]);
    core.see(&on(&apart("f", "a", "x"), "n1"));
    let body = refused(&mut core, &apart("c", "x", "a"));
    let both = ["ExistingAntiAffinityConflict", "PodAntiAffinityConflict"];
    assert_eq!(codes(&body, "/exhaustive/nodes/n1/failed"), both);
    assert_eq!(codes(&body, "/nearest/reasons"), both);
    for code in both {
        assert_eq!(body["exhaustive"]["codes"][code]["soleBlockerNodes"], 0, "{code}");
    }
    assert_eq!(
        texts(&body),
        [
            "pod anti-affinity to app=a by kubernetes.io/hostname: 1 placed pod matches, in 1 domain with 1 of 1 \
             nodes; on n1 ns/f",
            "anti-affinity of placed pods to app=x by kubernetes.io/hostname: 1 placed pod asks for it, in 1 domain \
             with 1 of 1 nodes; on n1 ns/f",
        ]
    );
    // The cycle's own words stay.
    let own = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.";
    assert!(text(&body, "/message").starts_with(own), "{body:#}");
    // Without its own term, c is still refused; without the other side's too, it is not.
    let plain = labelled(pod("plain", 100), "app", "x");
    assert_eq!(codes(&refused(&mut core, &plain), "/nearest/reasons"), both[..1]);
    core.attempt(&labelled(pod("other", 100), "app", "y"));
    assert_eq!(ask(&mut core, "/apis/v1/explain/pods/ns/other")["verdict"], "placed");
}

#[test]
fn with_one_node_group_the_nearest_nodes_still_say_all_that_they_fail() {
    let taint = Taint { key: "team".into(), value: "a".into(), effect: TaintEffect::NoSchedule };
    let mut core = core_with(&[Node { taints: [taint].into(), ..node("n1", 1000) }]);
    let body = refused(&mut core, &pod("p", 2000));
    assert_eq!(list(&body, "/nodeGroups").len(), 1);
    assert_eq!(codes(&body, "/nearest/reasons"), ["InsufficientResource", "UntoleratedTaint"]);
    assert_eq!(
        texts(&body),
        [
            "taint team=a:NoSchedule: on 1 of 1 nodes",
            "cpu: 2 requested; 0 of 1 nodes have that free (the most is 1 on n1), 0 offer that much at all",
        ]
    );
}

#[test]
fn what_is_fixed_is_said_reason_by_reason() {
    let mut core = core_with(&[host("n1"), host("n2")]);
    core.see(&on(&labelled(pod("f", 100), "app", "a"), "n1"));
    // Nobody matches the affinity, and f, which may leave, stands against the anti-affinity.
    let both = with(apart("p", "x", "a"), |spec| spec.pod_affinity = by_host("cache"));
    let body = refused(&mut core, &both);
    let failed = list(&body, "/exhaustive/nodes/n1/failed");
    let is_static = |code: &str| &failed.iter().find(|f| f["code"] == code).expect("it fails")["static"];
    assert_eq!(
        (is_static("PodAffinityMismatch"), is_static("PodAntiAffinityConflict")),
        (&true.into(), &false.into())
    );
    // What DaemonSets hold does not become free.
    let daemon = with(pod("d", 3000), |spec| spec.is_daemon = true);
    core.see(&on(&daemon, "n2"));
    core.see(&on(&pod("full", 3900), "n1"));
    let body = refused(&mut core, &pod("q", 2000));
    let fixed = |node: &str| body["exhaustive"]["nodes"][node]["failed"][0]["static"].clone();
    assert_eq!((fixed("n1"), fixed("n2")), (false.into(), true.into()));
}

#[test]
fn each_thing_that_one_change_relaxes_is_a_requirement() {
    let port = |port| HostPort { protocol: Protocol::Tcp, ip: "0.0.0.0".into(), port };
    let ports = |name: &str, all: &[u16]| {
        with(pod(name, 100), |spec| spec.host_ports = all.iter().map(|p| port(*p)).collect())
    };
    let mut core = core_with(&[node("n1", 4000)]);
    core.see(&on(&ports("a", &[80]), "n1"));
    core.see(&on(&ports("b", &[443]), "n1"));
    let body = refused(&mut core, &ports("p", &[80, 443, 8080]));
    let failed = list(&body, "/exhaustive/nodes/n1/failed");
    let subjects: Vec<&str> = failed.iter().map(|f| text(f, "/subject")).collect();
    assert_eq!(subjects, ["443/TCP", "80/TCP"]);
    assert_eq!(
        texts(&body),
        [
            "host port 80/TCP: taken on 1 of 1 nodes: on n1 ns/a",
            "host port 443/TCP: taken on 1 of 1 nodes: on n1 ns/b",
        ]
    );
    assert_eq!(
        text(&body, "/nearest/details/0/text"),
        "host port 80/TCP is held by ns/a, host port 443/TCP is held by ns/b"
    );
}

#[test]
fn a_typo_in_a_node_selector_is_asked_about() {
    let disks = ["ssd", "ssd", "ssd", "hdd", "hdd"];
    let of = |(i, disk): (usize, &&str)| on_labels(node(&format!("n{i}"), 4000), &[("disktype", disk)]);
    let mut core = core_with(&disks.iter().enumerate().map(of).collect::<Vec<_>>());
    let affinity =
        NodeAffinity { selector: [("disktype".into(), "sdd".into())].into(), ..NodeAffinity::default() };
    let body = refused(&mut core, &with(pod("p", 100), |spec| spec.affinity = affinity));
    assert_eq!(
        texts(&body),
        ["nodeSelector disktype=sdd: 0 of 5 nodes; values there: ssd (3), hdd (2); did you mean ssd?"]
    );
    let of = &body["requirements"][0];
    assert_eq!(
        (&of["key"], &of["operator"], &of["values"][0]),
        (&"disktype".into(), &"In".into(), &"sdd".into())
    );
    assert_eq!(
        (&of["nodes"], &of["totalNodes"], &of["found"][0]["count"]),
        (&0.into(), &5.into(), &3.into())
    );
    assert_eq!(of["didYouMean"][0]["meant"], "ssd");
    assert_eq!(body["exhaustive"]["requirements"], body["requirements"]);
    assert_eq!(text(&body, "/nearest/details/0/text"), "nodeSelector disktype=sdd: disktype is ssd");
}

#[test]
fn a_toleration_that_misses_a_taint_by_little_is_named() {
    let taint = Taint { key: "dedicated".into(), value: "gpu".into(), effect: TaintEffect::NoSchedule };
    let mut core = core_with(&[Node { taints: [taint].into(), ..node("n1", 4000) }]);
    let toleration = Toleration {
        key: "dedicated".into(),
        operator: TolerationOperator::Equal,
        value: "gpus".into(),
        effect: None,
    };
    let body = refused(&mut core, &with(pod("p", 100), |spec| spec.tolerations = [toleration].into()));
    assert_eq!(
        texts(&body),
        [
            "taint dedicated=gpu:NoSchedule: on 1 of 1 nodes; the pod's toleration of dedicated is for the value \
             \"gpus\""
        ]
    );
}

#[test]
fn a_spread_constraint_shows_its_domains() {
    let zone = "topology.kubernetes.io/zone";
    let mut core = core_with(&[
        on_labels(node("a1", 4000), &[(zone, "a")]),
        on_labels(node("a2", 4000), &[(zone, "a")]),
        on_labels(node("b1", 100), &[(zone, "b")]),
        node("none", 4000),
    ]);
    core.see(&on(&labelled(pod("w1", 100), "app", "web"), "a1"));
    core.see(&on(&labelled(pod("w2", 100), "app", "web"), "a2"));
    core.see(&on(&pod("full", 100), "b1"));
    let constraint = SpreadConstraint {
        max_skew: 1,
        topology_key: zone.into(),
        is_hard: true,
        selector: Some(selector("app", "web")),
        min_domains: 1,
        node_affinity_policy: NodeInclusion::Honor,
        node_taints_policy: NodeInclusion::Ignore,
    };
    let spread = with(labelled(pod("p", 100), "app", "web"), |spec| spec.spread = [constraint].into());
    let body = refused(&mut core, &spread);
    let all = texts(&body);
    let want = "topology spread of app=web over topology.kubernetes.io/zone, maxSkew 1: 1 of 4 nodes; matching pods: \
                a (2), b (0); the fewest is 0; where it is refused the skew would be 3 or more; 1 of 4 nodes have no \
                label topology.kubernetes.io/zone";
    assert!(all.contains(&want), "{all:#?}");
    let of = list(&body, "/requirements")
        .iter()
        .find(|of| of["plugin"] == "PodTopologySpread")
        .expect("it refuses");
    assert_eq!((&of["spread"]["minimum"], &of["spread"]["leastSkew"]), (&0.into(), &3.into()));
}

#[test]
fn affinity_to_pods_that_are_not_there_is_asked_about() {
    let mut core = core_with(&[host("n1")]);
    core.see(&on(&labelled(pod("cache", 100), "app", "cache"), "n1"));
    let near = with(pod("p", 100), |spec| spec.pod_affinity = by_host("cahce"));
    let body = refused(&mut core, &near);
    assert_eq!(
        texts(&body),
        [
            "pod affinity to app=cahce by kubernetes.io/hostname: no placed pod matches; values of app there: cache \
             (1); did you mean cache?"
        ]
    );
}

#[test]
fn a_volume_that_is_elsewhere_and_a_claim_that_is_not_there_are_named() {
    let mut core = core_with(&[host("n1"), host("n2")]);
    for object in bound("pv-1", Some("n3"), "data") {
        core.see_object(object);
    }
    let body = refused(&mut core, &using(pod("p", 100), "data"));
    assert_eq!(texts(&body), ["claim data: volume pv-1 is reached from 0 of 2 nodes, those with host=n3"]);
    assert_eq!(text(&body, "/nearest/reasons/0/subject"), "data");
    let body = refused(&mut core, &using(pod("q", 100), "dta"));
    assert_eq!(texts(&body), ["claim dta: there is none in namespace ns; did you mean data?"]);
}
