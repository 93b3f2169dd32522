//! Tests the three filter rules and their order, the namespaces of terms, weights, and wake-ups of refused pods.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ClusterEvent;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_framework::list::List;
use pellucid_framework::plugin::{Hint, Hints};
use pellucid_framework::{Code, PluginFactory};
use pellucid_model::object::Namespace;
use pellucid_model::relations::{PodAffinityTerm, PodTerms, WeightedTerm};
use pellucid_model::selector::LabelSelector;
use pellucid_model::{NodeIdx, Object, Pod, PodKey, PodSpec};
use serde_json::json;

use super::*;
use crate::relations::testing::{in_zone, labelled, pairs, selecting, zone_term};
use crate::testing::{TestCluster, cluster_of, filter_all, filter_causes, measures, pre_filter};

const NOT_NEAR: &str = "node(s) didn't match pod affinity rules";
const NOT_FAR: &str = "node(s) didn't match pod anti-affinity rules";
const NOT_WANTED: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

fn plugin(args: serde_json::Value) -> InterPodAffinity {
    InterPodAffinity { args: args::read(&args).expect("valid") }
}

fn by_default() -> InterPodAffinity {
    plugin(serde_json::Value::Null)
}

fn required(terms: &[PodAffinityTerm]) -> PodTerms {
    PodTerms { required: terms.into(), ..PodTerms::default() }
}

fn preferred(weight: i32, term: PodAffinityTerm) -> PodTerms {
    PodTerms { preferred: Box::new([WeightedTerm { weight, term }]), ..PodTerms::default() }
}

fn near(terms: PodTerms) -> PodSpec {
    PodSpec { pod_affinity: terms, ..PodSpec::default() }
}

fn far(terms: PodTerms) -> PodSpec {
    PodSpec { pod_anti_affinity: terms, ..PodSpec::default() }
}

fn app(name: &str, app: &str, spec: PodSpec) -> Pod {
    labelled(name, &[("app", app)], spec)
}

fn on(node: &str, pod: Pod) -> Pod {
    Pod { node_name: Some(node.into()), ..pod }
}

/// Returns a cluster with zones za (a1, a2) and zb (b1), and a node without a zone.
fn zones() -> TestCluster {
    cluster_of([in_zone("a1", "za"), in_zone("a2", "za"), in_zone("b1", "zb"), in_zone("none", "")])
}

/// Returns the refused nodes and their distinct messages.
fn refused(cluster: &mut TestCluster, pod: Pod) -> (Vec<String>, String) {
    let pod = cluster.see(pod);
    let all = filter_all(&by_default(), cluster, &pod.spec);
    let texts: std::collections::BTreeSet<String> = all.values().cloned().collect();
    let texts: Vec<String> = texts.into_iter().collect();
    (all.into_keys().collect(), texts.join(" | "))
}

#[test]
fn the_three_rules() {
    let web = || zone_term("app", "web");
    for (existing, pod, nodes, message) in [
        (
            app("e", "web", PodSpec::default()),
            app("p", "db", near(required(&[web()]))),
            &["b1", "none"][..],
            NOT_NEAR,
        ),
        (
            app("e", "web", PodSpec::default()),
            app("p", "db", far(required(&[web()]))),
            &["a1", "a2"],
            NOT_FAR,
        ),
        (
            app("e", "db", far(required(&[web()]))),
            app("p", "web", PodSpec::default()),
            &["a1", "a2"],
            NOT_WANTED,
        ),
        (app("e", "db", far(required(&[web()]))), app("p", "db", PodSpec::default()), &[], ""),
        (app("e", "web", PodSpec::default()), app("p", "web", PodSpec::default()), &[], ""),
    ] {
        let mut cluster = zones();
        cluster.see(on("a1", existing));
        let got = refused(&mut cluster, pod);
        assert_eq!(got, (nodes.iter().map(ToString::to_string).collect(), message.to_owned()));
    }
}

#[test]
fn causes_say_whether_removing_pods_could_help_and_affinity_comes_first() {
    let web = || zone_term("app", "web");
    let mut cluster = zones();
    cluster.see(on("a1", app("e", "web", far(required(&[zone_term("app", "db")])))));
    for (spec, node, code, reason) in [
        (near(required(&[web()])), "b1", Code::UnschedulableAndUnresolvable, ReasonCode::PodAffinityMismatch),
        (far(required(&[web()])), "a1", Code::Unschedulable, ReasonCode::PodAntiAffinityConflict),
        (near(required(&[web()])), "a1", Code::Unschedulable, ReasonCode::ExistingAntiAffinityConflict),
    ] {
        let pod = cluster.see(app("p", "db", spec));
        let causes = filter_causes(&by_default(), &cluster, &pod.spec);
        assert_eq!((causes[node].code, causes[node].reasons[0].code), (code, reason));
    }
    let plain = cluster.see(app("p", "none", PodSpec::default()));
    assert!(matches!(pre_filter(&by_default(), &cluster, &plain.spec), Ok(None)), "nothing to say: skipped");
}

#[test]
fn a_refusal_says_how_many_pods_are_in_the_way_at_the_least() {
    let mut cluster = cluster_of([in_zone("a", "za"), in_zone("b", "zb"), in_zone("c", "zc")]);
    cluster.put(("app", "web"), &["a", "a", "a", "b", "b"]);
    cluster.see(on("c", app("e", "x", far(required(&[zone_term("app", "db")])))));
    let pod = cluster.see(app("p", "db", far(required(&[zone_term("app", "web")]))));
    let zone = "topology.kubernetes.io/zone";
    let in_the_way = (format!("pods to avoid in {zone}"), 2, 0, "b".to_owned());
    let unwelcome = (format!("pods that avoid it in {zone}"), 1, 0, "c".to_owned());
    assert_eq!(measures(&by_default(), &cluster, &pod.spec), [in_the_way, unwelcome]);
    // Missing required affinity has no number to report.
    let pod = cluster.see(app("q", "x", near(required(&[zone_term("app", "cache")]))));
    assert_eq!(measures(&by_default(), &cluster, &pod.spec), []);
}

#[test]
fn the_first_of_its_kind_may_go_anywhere_with_the_keys() {
    let me = || near(required(&[zone_term("app", "web")]));
    let mut cluster = zones();
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["none"]);
    assert_eq!(refused(&mut cluster, app("p", "db", me())).0.len(), 4, "it is not of the kind it wants");
    // A pod on a node without the key is in no domain; a pod in a zone is.
    cluster.put(("app", "web"), &["none"]);
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["none"]);
    cluster.put(("app", "web"), &["b1"]);
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["a1", "a2", "none"]);
    // A pod that is being deleted still counts; a pod whose node is gone does not.
    let last = cluster.cluster.slot(cluster.idx("b1")).pods[0];
    let last = (*cluster.cluster.pod(last).expect("it is there").pod).clone();
    cluster.see(Pod { deleting: true, ..last });
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["a1", "a2", "none"]);
    cluster.cluster.delete_node(&"b1".into(), &mut Vec::new());
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["none"]);
    cluster.apply(in_zone("b1", "zb"));
    assert_eq!(refused(&mut cluster, app("p", "web", me())).0, ["a1", "a2", "none"]);
}

#[test]
fn only_pods_that_match_every_term_are_near() {
    let both = near(required(&[zone_term("app", "web"), zone_term("tier", "fe")]));
    let mut cluster = zones();
    cluster.see(on("a1", labelled("one", &[("app", "web")], PodSpec::default())));
    cluster.see(on("b1", labelled("two", &[("app", "web"), ("tier", "fe")], PodSpec::default())));
    assert_eq!(refused(&mut cluster, app("p", "db", both)).0, ["a1", "a2", "none"]);
    // For anti-affinity, matching any term is enough.
    let both = far(required(&[zone_term("app", "web"), zone_term("tier", "fe")]));
    assert_eq!(refused(&mut cluster, app("p", "db", both)).0, ["a1", "a2", "b1"]);
}

#[test]
fn which_namespaces_a_term_is_about() {
    let plain = || zone_term("app", "web");
    let named = |names: &[&str]| PodAffinityTerm {
        namespaces: names.iter().map(|n| (*n).into()).collect(),
        ..plain()
    };
    let chosen = |selector: LabelSelector| PodAffinityTerm { namespace_selector: Some(selector), ..plain() };
    for (term, is_about) in [
        (plain(), false),
        (named(&["other"]), true),
        (named(&["d"]), false),
        (chosen(selecting("team", "x")), true),
        (chosen(selecting("team", "y")), false),
        (chosen(LabelSelector::default()), true),
        (PodAffinityTerm { namespace_selector: Some(selecting("team", "y")), ..named(&["other"]) }, true),
        (PodAffinityTerm { selector: None, ..named(&["other"]) }, false),
    ] {
        let elsewhere = |pod: Pod| Pod { key: PodKey::new("other", "e"), ..pod };
        let mut cluster = zones();
        let labels = pairs(&[("team", "x")]);
        cluster.object(Object::Namespace(Namespace { name: "other".into(), labels }));
        cluster.see(on("a1", elsewhere(app("e", "web", PodSpec::default()))));
        let got = refused(&mut cluster, app("p", "db", far(required(std::slice::from_ref(&term)))));
        assert_eq!(!got.0.is_empty(), is_about, "own term {term:?}");
        // The same with the roles exchanged.
        let mut cluster = zones();
        let labels = pairs(&[("team", "x")]);
        cluster.object(Object::Namespace(Namespace { name: "other".into(), labels }));
        cluster.see(on("a1", app("e", "db", far(required(std::slice::from_ref(&term))))));
        let got = refused(&mut cluster, elsewhere(app("p", "web", PodSpec::default())));
        assert_eq!(!got.0.is_empty(), is_about, "term of another {term:?}");
    }
}

#[test]
fn scores_by_hand() {
    let web = || zone_term("app", "web");
    let mut cluster = zones();
    cluster.put(("app", "web"), &["a1", "a2", "b1"]);
    let mut scores = |plugin: &InterPodAffinity, pod: Pod| {
        let pod = cluster.see(pod);
        cluster.scores(plugin, &pod.spec)
    };
    let db = |spec| app("p", "db", spec);
    assert_eq!(
        scores(&by_default(), db(near(preferred(10, web())))),
        Some([vec![20, 20, 10, 0], vec![100, 100, 50, 0]])
    );
    assert_eq!(
        scores(&by_default(), db(far(preferred(3, web())))),
        Some([vec![-6, -6, -3, 0], vec![0, 0, 50, 100]])
    );
    // Truncated: 100 * (2 - 0) / 3.
    let thirds =
        PodTerms { preferred: near(preferred(1, web())).pod_affinity.preferred, ..PodTerms::default() };
    assert_eq!(scores(&by_default(), db(near(thirds))).map(|[_, n]| n), Some(vec![100, 100, 50, 0]));
    assert_eq!(scores(&by_default(), db(near(preferred(5, zone_term("app", "x"))))), None, "nobody matches");
    assert_eq!(scores(&by_default(), db(PodSpec::default())), None);
}

#[test]
fn what_pods_there_are_ask_of_a_newcomer_counts() {
    let web = || zone_term("app", "web");
    for (spec, args, want) in [
        (near(required(&[web()])), json!({}), Some(vec![1, 1, 0, 0])),
        (near(required(&[web()])), json!({"hardPodAffinityWeight": 7}), Some(vec![7, 7, 0, 0])),
        (near(required(&[web()])), json!({"hardPodAffinityWeight": 0}), None),
        (near(preferred(9, web())), json!({}), Some(vec![9, 9, 0, 0])),
        (far(preferred(9, web())), json!({}), Some(vec![-9, -9, 0, 0])),
        (far(preferred(9, web())), json!({"ignorePreferredTermsOfExistingPods": true}), None),
        (far(required(&[web()])), json!({}), None),
    ] {
        let mut cluster = zones();
        cluster.see(on("a2", app("e", "db", spec.clone())));
        let pod = cluster.see(app("p", "web", PodSpec::default()));
        let got = cluster.scores(&plugin(args.clone()), &pod.spec);
        assert_eq!(got.map(|[raw, _]| raw), want, "{args} {spec:?}");
        let stranger = cluster.see(app("q", "db", PodSpec::default()));
        assert_eq!(cluster.scores(&plugin(args), &stranger.spec), None);
    }
    // Terms that cancel each other out still count as present.
    let mut cluster = zones();
    cluster.see(on("a1", app("e", "db", near(preferred(9, web())))));
    cluster.see(on("a1", app("f", "db", far(preferred(9, web())))));
    let pod = cluster.see(app("p", "web", PodSpec::default()));
    assert_eq!(cluster.scores(&by_default(), &pod.spec), Some([vec![0; 4], vec![0; 4]]));
}

#[test]
fn arguments() {
    for (args, field) in [
        (json!({"hardPodAffinityWeight": 101}), "hardPodAffinityWeight"),
        (json!({"hardPodAffinityWeight": -1}), "hardPodAffinityWeight"),
        (json!({"ignorePreferredTermsOfExistingPods": "yes"}), "ignorePreferredTermsOfExistingPods"),
    ] {
        let problems = args::read(&args).expect_err("it is wrong");
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [field], "{args}");
    }
    let shown = json!({"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": false});
    assert_eq!(by_default().args(), shown);
}

#[test]
fn reads() {
    let mut cluster = zones();
    let terms = PodSpec {
        pod_affinity: preferred(5, zone_term("app", "db")),
        ..far(required(&[zone_term("app", "web")]))
    };
    cluster.see(on("a1", app("e", "web", terms)));
    let read = |at: usize, node: &str| {
        let params = [("nodeName".to_owned(), node.to_owned())].into();
        let now = pellucid_model::Now::default();
        (registration().endpoints()[at].read)(&ReadContext {
            view: cluster.view(),
            params: &params,
            now,
            list: &List::default(),
        })
    };
    let row = |kind: &str, selector: &str, weight: i32| {
        json!({"kind": kind, "topologyKey": "topology.kubernetes.io/zone", "namespaces": ["d"],
            "namespaceSelector": null, "selector": selector, "weight": weight, "pods": 1, "nodes": 1, "domains": 1})
    };
    let rows = json!([row("preferred affinity", "app=db", 5), row("required anti-affinity", "app=web", 0)]);
    let state = read(0, "").expect("it answers");
    assert_eq!((&state["terms"], &state["totalTerms"]), (&rows, &json!(2)));
    assert_eq!(read(1, "a2").expect("the node exists")["terms"], rows, "it lies in the same zone");
    assert_eq!(read(1, "b1").expect("the node exists")["terms"], json!([]));
    assert!(matches!(read(1, "gone"), Err(ReadError::NotFound { code: "NodeNotFound", .. })));
}

#[test]
fn events_wake_a_pod_only_when_they_could_help() {
    let web = || zone_term("app", "web");
    let wants = app("wants", "db", near(required(&[web()])));
    let avoids = app("avoids", "db", far(required(&[web()])));
    let plain = app("plain", "db", PodSpec::default());
    let bound = |cluster: &mut TestCluster, pod: Pod| {
        let mut events = Vec::new();
        cluster.cluster.apply_pod(Arc::new(on("a1", pod)), &mut events);
        events
    };
    let wakes = |cluster: &TestCluster, pod: &Pod, events: &[ClusterEvent]| {
        events.iter().any(|e| by_default().hint(cluster.view(), pod, e) == Hint::Queue)
    };
    let mut cluster = zones();
    let [wants, avoids, plain] = [wants, avoids, plain].map(|pod| cluster.see(pod));
    let seen = bound(&mut cluster, app("x", "other", PodSpec::default()));
    assert!(![&wants, &avoids].iter().any(|pod| wakes(&cluster, pod, &seen)));
    let seen = bound(&mut cluster, app("x", "web", PodSpec::default()));
    assert!(wakes(&cluster, &wants, &seen) && !wakes(&cluster, &avoids, &seen), "it matches now");
    let seen = bound(&mut cluster, app("x", "other", PodSpec::default()));
    assert!(!wakes(&cluster, &wants, &seen) && wakes(&cluster, &avoids, &seen), "it no longer does");
    // A deleted pod wakes the pods that avoid it and the pods it avoids.
    let gone = |pod: &Pod| [ClusterEvent::PodReleased { pod: Arc::new(pod.clone()), node: NodeIdx(0) }];
    let was_web = cluster.see(app("y", "web", PodSpec::default()));
    assert!(wakes(&cluster, &avoids, &gone(&was_web)) && !wakes(&cluster, &plain, &gone(&was_web)));
    let was_hostile = cluster.see(app("y", "x", far(required(&[zone_term("app", "db")]))));
    assert!(wakes(&cluster, &plain, &gone(&was_hostile)) && !wakes(&cluster, &wants, &gone(&avoids)));
    // Nodes: new ones with the keys, and moves into other domains.
    let came = cluster.apply(in_zone("new", ""));
    assert!(!wakes(&cluster, &wants, &came) && wakes(&cluster, &avoids, &came));
    let moved = cluster.apply(in_zone("new", "zc"));
    assert!(wakes(&cluster, &wants, &moved) && wakes(&cluster, &avoids, &moved));
    assert!(!wakes(&cluster, &plain, &moved), "nothing that keeps it away goes by zones");
    // A namespace matters to pods whose terms select namespaces.
    let namespace = Object::Namespace(Namespace { name: "n".into(), labels: pairs(&[("team", "x")]) });
    let seen = [ClusterEvent::ObjectChanged { old: None, new: Some(Arc::new(namespace)) }];
    let term = PodAffinityTerm { namespace_selector: Some(selecting("team", "x")), ..web() };
    let selects = cluster.see(app("q", "db", near(required(&[term]))));
    assert!(wakes(&cluster, &selects, &seen) && !wakes(&cluster, &wants, &seen));
}

/// Each case was found by the law in `tests/laws`.
#[test]
fn what_ceases_to_count_wakes_those_it_kept_out() {
    let hint = |cluster: &TestCluster, pod: &Pod, events: &[ClusterEvent]| {
        let heard = |e: &&ClusterEvent| by_default().events().any(e.kinds());
        events.iter().filter(heard).any(|e| by_default().hint(cluster.view(), pod, e) == Hint::Queue)
    };
    // Pods on a removed node no longer count, which also matters for other nodes of their zone.
    let mut cluster = zones();
    cluster.see(on("a2", app("e", "web", far(required(&[zone_term("app", "cache")])))));
    let web = || zone_term("app", "web");
    let [avoids, first, kept_out, plain, wants] = [
        app("avoids", "db", far(required(&[web()]))),
        app("first", "web", near(required(&[web()]))),
        app("out", "cache", PodSpec::default()),
        app("plain", "db", PodSpec::default()),
        app("wants", "db", near(required(&[web()]))),
    ]
    .map(|pod| cluster.see(pod));
    let mut gone = Vec::new();
    cluster.cluster.delete_node(&"a2".into(), &mut gone);
    for (pod, want) in [(&avoids, true), (&first, true), (&kept_out, true), (&plain, false), (&wants, false)]
    {
        assert_eq!(hint(&cluster, pod, &gone), want, "{}", pod.key);
    }
    // The last pod that it requires becomes another kind, or that pod's node leaves all domains.
    let mut cluster = zones();
    let first = cluster.see(app("first", "web", near(required(&[web()]))));
    cluster.see(on("a1", app("e", "web", PodSpec::default())));
    let left = cluster.apply(in_zone("a1", ""));
    assert!(hint(&cluster, &first, &left));
    let mut changed = Vec::new();
    cluster.cluster.apply_pod(Arc::new(on("a1", app("e", "db", PodSpec::default()))), &mut changed);
    assert!(hint(&cluster, &first, &changed));
    // The pod still matches one of two terms, which keeps it away from other nodes.
    let everybody = PodAffinityTerm { selector: Some(Default::default()), ..web() };
    let host = PodAffinityTerm { topology_key: "kubernetes.io/hostname".into(), ..web() };
    let avoids = cluster.see(app("avoids", "x", far(required(&[everybody, host]))));
    cluster.see(on("none", app("f", "web", PodSpec::default())));
    let mut changed = Vec::new();
    cluster.cluster.apply_pod(Arc::new(on("none", app("f", "db", PodSpec::default()))), &mut changed);
    assert!(hint(&cluster, &avoids, &changed));
    // A deleted namespace has no labels.
    let namespace = Object::Namespace(Namespace { name: "n".into(), labels: pairs(&[("team", "x")]) });
    let gone = [ClusterEvent::ObjectChanged { old: Some(Arc::new(namespace)), new: None }];
    let term = PodAffinityTerm { namespace_selector: Some(selecting("team", "x")), ..web() };
    let selects = cluster.see(app("q", "db", far(required(&[term]))));
    assert!(hint(&cluster, &selects, &gone));
}
