//! Whether one domain of a topology key has places for a gang. Numbers are tried on a scheduler of their own.

use std::sync::Arc;

use pellucid::model::gang::GangTerms;
use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{Name, Node, Pod, PodSpec};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{self, labelled, on};
use crate::common::reads::{ask, list, text};
use crate::gangs::made::{SECOND, host, members, non_strict, single, terms};

const TOPOLOGY: &str = "/apis/v1/explain/gangs/ns/g/topology";
const RACK: &str = "example.com/rack";

fn labelled_node(name: &str, milli_cpu: i64, key: &str, value: &str) -> Node {
    Node { labels: Labels::new([(key.into(), value.into())]), ..host(name, milli_cpu) }
}

/// Makes racks `r0`, `r1`, ... of one node each, with this much CPU.
fn racks(sizes: &[i64]) -> Core {
    let rack = |(i, size): (usize, &i64)| labelled_node(&format!("n{i}"), *size, RACK, &format!("r{i}"));
    made::core_with(&sizes.iter().enumerate().map(rack).collect::<Vec<_>>())
}

fn with_spec(pod: &Pod, change: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut spec = PodSpec::clone(&pod.spec);
    change(&mut spec);
    Pod { spec: Arc::new(spec), ..pod.clone() }
}

/// Makes members of gang `g` that all need to be in one domain of a key.
fn together(n: usize, key: &str, terms: &GangTerms) -> Vec<Pod> {
    let selector = LabelSelector::of_pairs(&[("job".into(), "g".into())]);
    let term =
        PodAffinityTerm { topology_key: key.into(), selector: Some(selector), ..PodAffinityTerm::default() };
    let required = PodTerms { required: Box::new([term]), ..PodTerms::default() };
    let bind = |pod: &Pod| with_spec(pod, |spec| spec.pod_affinity = required.clone());
    members("g", n, 1000, terms).iter().map(|pod| labelled(bind(pod), "job", "g")).collect()
}

/// Returns what each domain has places for, by name.
fn slots(body: &Value) -> Vec<(&str, u64)> {
    let slots = |domain| (text(domain, "/value"), domain["slots"].as_u64().unwrap_or(u64::MAX));
    let mut all: Vec<_> = list(body, "/domains").iter().map(slots).collect();
    all.sort_unstable();
    all
}

/// Returns how many of the pods get places in an equal cluster when all have this label in their `nodeSelector`.
fn when_bound(core: &mut Core, pods: &[Pod], key: &str, value: &str) -> usize {
    let pair: (Name, Name) = (key.into(), value.into());
    let bound: Vec<Pod> = pods
        .iter()
        .map(|pod| with_spec(pod, |spec| spec.affinity.selector = [pair.clone()].into()))
        .collect();
    core.attempt_all(&bound);
    core.placed(&bound)
}

#[test]
fn two_racks_of_three_are_too_fragmented_for_four() {
    let mut core = racks(&[3000, 3000]);
    core.attempt_all(&together(4, RACK, &terms(4)));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(
        (&body["verdict"]["code"], &body["key"]),
        (&json!("TopologyFragmented"), &json!(RACK)),
        "{body:#}"
    );
    assert_eq!((&body["origin"], &body["required"]), (&json!("podAffinity"), &json!(4)));
    assert_eq!(body["best"], json!({"domain": "r0", "slots": 3, "missing": 1}));
    assert_eq!(slots(&body), [("r0", 3), ("r1", 3)]);
    assert_eq!(body["slotsNow"], 3, "they must be together: {body:#}");
    assert_eq!(body["domains"][0]["free"]["cpu"], 3000);
    // It is true when tried: a quorum of three has its places in either rack, one of four in none.
    for rack in ["r0", "r1"] {
        for (quorum, placed) in [(3, 3), (4, 0)] {
            let mut core = racks(&[3000, 3000]);
            let pods = together(quorum, RACK, &terms(quorum as u32));
            assert_eq!(when_bound(&mut core, &pods, RACK, rack), placed, "{quorum} in {rack}");
        }
    }
    // One core more in a rack makes it fit, and the scheduler finds that rack.
    core.see_node(&labelled_node("n1", 4000, RACK, "r1"));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(body["verdict"]["code"], "TopologyFits", "{body:#}");
    assert_eq!(body["best"], json!({"domain": "r1", "slots": 4, "missing": 0}));
}

#[test]
fn domains_that_have_too_little_between_them_are_short() {
    let mut core = racks(&[1000, 2000]);
    core.attempt_all(&together(4, RACK, &terms(4)));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(body["verdict"]["code"], "TopologyShort", "{body:#}");
    assert_eq!((slots(&body), &body["best"]["missing"]), (vec![("r0", 1), ("r1", 2)], &json!(2)));
}

#[test]
fn a_gang_that_fits_in_pieces_is_told_so_beside_its_own_numbers() {
    // A single gang without terms of its own: racks only matter when asked for.
    let mut core = racks(&[3000, 3000]);
    let pods = members("g", 4, 1000, &terms(4));
    core.see_all(&pods);
    let body = ask(&mut core, &format!("{TOPOLOGY}?key={RACK}"));
    assert_eq!(
        (&body["verdict"]["code"], &body["slotsNow"], &body["others"]),
        (&json!("TopologyFragmented"), &json!(4), &json!([])),
        "{body:#}"
    );
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(body["key"], "topology.kubernetes.io/zone", "{body:#}");
    assert_eq!((&body["domains"], &body["nodesWithout"]), (&json!([]), &json!(2)));
    assert_eq!((&body["verdict"]["code"], &body["best"]), (&json!("TopologyShort"), &Value::Null));
    assert_eq!(body["others"][0]["key"], "kubernetes.io/hostname");
    core.run();
    assert_eq!(core.placed(&pods), 4);
    let body = ask(&mut core, &format!("{TOPOLOGY}?key={RACK}"));
    assert_eq!((&body["required"], &body["domains"]), (&json!(0), &json!([])), "{body:#}");
    assert_eq!(body["verdict"]["code"], "GangPlaced", "{body:#}");
}

#[test]
fn members_that_are_placed_bind_the_others_to_their_rack() {
    let mut core = racks(&[2000, 4000]);
    core.see(&on(&single("filler", 3000), "n1"));
    let pods = together(4, RACK, &non_strict(4, 600 * SECOND));
    core.attempt_all(&pods);
    assert_eq!(core.placed(&pods), 2);
    core.delete(&single("filler", 3000));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(body["required"], 2, "{body:#}");
    // There is room in r1, but two members wait in r0 and the others must be where they are.
    assert_eq!(slots(&body), [("r0", 0), ("r1", 0)], "{body:#}");
    assert_eq!(body["verdict"]["code"], "TopologyShort");
    let there = |value: &str| {
        list(&body, "/domains").iter().find(|d| text(d, "/value") == value).map(|d| &d["members"])
    };
    assert_eq!((there("r0"), there("r1")), (Some(&json!(2)), Some(&json!(0))));
}

#[test]
fn a_gang_that_cannot_be_planned_has_its_own_verdict() {
    let mut core = racks(&[3000]);
    core.see_all(&together(2, RACK, &terms(3)));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(body["verdict"]["code"], "GangQuorumMissing", "{body:#}");
    assert_eq!((&body["domains"], &body["slotsNow"], &body["key"]), (&json!([]), &Value::Null, &json!(RACK)));
}

#[test]
fn more_domains_than_are_planned_are_not_claimed_to_be_short() {
    let mut core = racks(&[1000; 101]);
    core.see_all(&together(2, RACK, &terms(2)));
    let body = ask(&mut core, TOPOLOGY);
    assert_eq!(
        (&body["verdict"]["code"], &body["meta"]["truncated"]),
        (&json!("TopologyNotKnown"), &json!(true))
    );
    assert_eq!((list(&body, "/domains").len(), &body["domainCount"]), (100, &json!(101)));
}
