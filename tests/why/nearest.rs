//! The nearest nodes: all answers agree on them.

use pellucid::cluster::Stage;
use pellucid::cycle::what_if::question::{Answer, Question};
use pellucid::model::selector::{Labels, NodeAffinity};
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{Name, Node, Pod, PodKey, PodSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::config;
use crate::common::made::{core_with, node, pod};
use crate::common::reads::{ask, ask_snapshot, list, number, text};
use crate::why::stories::{Story, nodes, ours, story};

/// Returns the distance and the failed requirements of a node.
fn told(near: &Value) -> (f64, Vec<String>) {
    let failed =
        list(near, "/failed").iter().map(|f| format!("{}/{}/{}", f["plugin"], f["code"], f["subject"]));
    (near["distance"].as_f64().expect("a number"), failed.collect())
}

/// Checks that an explanation names as nearest the first nodes of `/nearest`, with the same reasons.
fn agrees(own: &Value, listed: &Value) -> Result<(), TestCaseError> {
    let near = list(listed, "/nodes");
    let nearest = &own["nearest"];
    if nearest.is_null() {
        let is_whole = !list(own, "/podReasons").is_empty() || !list(listed, "/podReasons").is_empty();
        prop_assert!(near.is_empty() || is_whole || own["verdict"] != "refused", "{}\n{}", own, listed);
        return Ok(());
    }
    let examples = list(nearest, "/exampleNodes");
    let count = number(nearest, "/count") as usize;
    prop_assert_eq!(examples.len(), count.min(3));
    for (example, near) in examples.iter().zip(near) {
        prop_assert_eq!(example, &near["node"], "{}\n{}", own, listed);
    }
    let is_like_first = |near: &Value| told(near) == told(&near_first(listed));
    prop_assert!(near[..count].iter().all(is_like_first), "{}\n{}", own, listed);
    let codes = |body: &Value, pointer: &str| {
        let mut codes: Vec<String> =
            list(body, pointer).iter().map(|r| text(r, "/code").to_owned()).collect();
        codes.sort();
        codes
    };
    prop_assert_eq!(codes(nearest, "/reasons"), codes(&near[0], "/failed"));
    let is_static = list(&near[0], "/failed").iter().any(|failed| failed["static"] == true);
    prop_assert_eq!(nearest["code"] == "UnschedulableAndUnresolvable", is_static);
    prop_assert_eq!(list(nearest, "/shortfalls").len(), list(&near[0], "/shortfalls").len());
    let summary = text(own, "/summary");
    if summary.contains("Nearest") {
        prop_assert!(summary.contains(&format!("{}: ", text(&near[0], "/node"))), "{}", summary);
    }
    prop_assert_eq!(
        summary.contains("Nearest"),
        number(nearest, "/count") < number(own, "/totalNodes"),
        "{}",
        summary
    );
    Ok(())
}

fn near_first(listed: &Value) -> Value {
    list(listed, "/nodes")[0].clone()
}

fn check(story: &Story) -> Result<(), TestCaseError> {
    let mut core = story.play();
    let snapshot = core.scheduler.publish(core.now);
    let names = nodes(&core);
    for key in ours(&core, |record| record.stage == Stage::Pending) {
        let pod = format!("/apis/v1/explain/pods/{key}");
        let listed = ask_snapshot(&snapshot, &core, &format!("{pod}/nearest?k=100")).expect("known");
        for refresh in ["", "?refresh=true"] {
            agrees(&ask_snapshot(&snapshot, &core, &format!("{pod}{refresh}")).expect("known"), &listed)?;
        }
        if !list(&listed, "/podReasons").is_empty() {
            continue;
        }
        let near = list(&listed, "/nodes");
        prop_assert_eq!(near.len() + number(&listed, "/feasibleNodes") as usize, names.len());
        let rank = |near: &Value| {
            let is_static = list(near, "/failed").iter().any(|failed| failed["static"] == true);
            (told(near).0, is_static)
        };
        prop_assert!(near.is_sorted_by(|a, b| rank(a) <= rank(b)), "{}", listed);
        // A node is listed when a cycle would not take it, with nominated pods counted.
        let (namespace, name) = key.split_once('/').expect("a key");
        let id = snapshot.cluster.find_pod(&PodKey::new(namespace, name)).expect("known");
        let question = Question::ask(&snapshot.cluster, &snapshot.profiles[0], id).expect("known");
        for name in &names {
            let on = snapshot.cluster.find_node(&Name::new(name)).expect("known");
            let is_listed = near.iter().any(|near| near["node"] == **name);
            let takes = matches!(question.answer(on), Answer::Takes);
            prop_assert_eq!(is_listed, !takes, "{} on {}: {}", &key, name, &listed);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..config() })]

    #[test]
    fn all_that_is_said_to_be_nearest_is_the_same(story in story()) {
        check(&story)?;
    }
}

fn closed(name: &str) -> Node {
    Node { unschedulable: true, ..node(name, 4000) }
}

/// Makes a pod that requires nodes with a label.
fn choosy(name: &str, milli_cpu: i64) -> Pod {
    let plain = pod(name, milli_cpu);
    let affinity = NodeAffinity { selector: [("pool".into(), "a".into())].into(), ..NodeAffinity::default() };
    Pod { spec: PodSpec { affinity, ..PodSpec::clone(&plain.spec) }.into(), ..plain }
}

fn order(body: &Value) -> Vec<(&str, f64)> {
    list(body, "/nodes").iter().map(|near| (text(near, "/node"), told(near).0)).collect()
}

#[test]
fn a_node_that_is_asked_for_and_closed_is_nearer_than_open_ones_of_others() {
    let labels = |node: Node| Node { labels: Labels::new([("pool".into(), "a".into())]), ..node };
    let taint = |key: &str| Taint { key: key.into(), value: "".into(), effect: TaintEffect::NoSchedule };
    let tainted = Node { taints: [taint("one"), taint("two")].into(), ..labels(node("kept", 4000)) };
    let mut core = core_with(&[node("a-other", 4000), labels(closed("shut")), tainted]);
    core.attempt(&choosy("p", 1000));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p/nearest");
    assert_eq!(order(&body), [("shut", 2.0), ("kept", 4.0), ("a-other", 10.0)]);
    let own = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert_eq!(own["nearest"]["exampleNodes"], json!(["shut"]));
    let summary = text(&own, "/summary");
    assert!(summary.starts_with("None of 3 nodes fits, for 3 causes. Nearest is shut: "), "{summary}");
    // Each taint is named, and the remedy once.
    core.apply(pellucid::cluster::Input::NodeDeleted("shut".into()));
    let own = ask(&mut core, "/apis/v1/explain/pods/ns/p?refresh=true");
    let summary = text(&own, "/summary");
    assert!(summary.contains("(one:NoSchedule), ") && summary.contains("(two:NoSchedule). "), "{summary}");
    assert_eq!(summary.matches("toleration").count(), 1, "{summary}");
}

#[test]
fn room_that_is_promised_to_others_is_not_there() {
    let mut core = core_with(&[node("n1", 4000), node("n2", 1000)]);
    let nominee = Pod {
        nominated_node: Some("n1".into()),
        gates: ["g".into()].into(),
        priority: 5,
        ..pod("first", 3000)
    };
    core.see(&nominee);
    core.attempt(&pod("p", 2000));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p/nearest");
    // Both n1 and n2 lack half of the request; but removing pods could help on n1.
    let near = &list(&body, "/nodes")[0];
    assert_eq!((text(near, "/node"), told(near).0), ("n1", 1.5));
    assert_eq!(number(near, "/shortfalls/0/available"), 1000);
    assert_eq!(number(near, "/shortfalls/0/shortfall"), 1000);
    let own = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert_eq!((&own["nearest"]["exampleNodes"], &own["nearest"]["count"]), (&json!(["n1"]), &json!(1)));
    assert_eq!(number(&own, "/nearest/shortfalls/0/available"), 1000);
}
