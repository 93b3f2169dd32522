//! The node's side agrees with each pod's own explanation of the node.

use pellucid::cluster::Stage;
use pellucid::cycle::what_if::question::{Answer, Question};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs, ResourceList};
use pellucid::model::selector::{NodeAffinity, NodeSelectorTerm, Operator, Requirement};
use pellucid::model::{Name, Node, Pod, PodKey, PodSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::config;
use crate::common::driver::Core;
use crate::common::made::{core_with, in_gang, node, pod};
use crate::common::reads::{ask, ask_snapshot, code_of, list, number, text, try_ask};
use crate::why::stories::{Story, nodes, ours, story};

/// Returns how a pod's own evaluation, of all nodes at once, refuses a node: the plugin and the codes, or `None` if
/// it fits.
fn own_word(snapshot: &pellucid::cycle::Snapshot, key: &str, on: &str) -> Option<(String, Vec<String>)> {
    let (namespace, name) = key.split_once('/').expect("a key");
    let id = snapshot.cluster.find_pod(&PodKey::new(namespace, name)).expect("known");
    let question = Question::ask(&snapshot.cluster, &snapshot.profiles[0], id).expect("known");
    match question.answer(snapshot.cluster.find_node(&Name::new(on)).expect("known")) {
        Answer::Takes => None,
        Answer::Gone => panic!("{on} is there"),
        Answer::LeftOut => Some(("Scheduler".into(), vec!["NodeLeftOut".into()])),
        Answer::Refuses(cause) => {
            Some((cause.plugin.into(), cause.reasons.iter().map(|r| r.code.as_str().into()).collect()))
        }
    }
}

fn word(refused: &Value) -> (String, Vec<String>) {
    let codes = list(refused, "/reasons").iter().map(|r| text(r, "/code").to_owned());
    (text(refused, "/plugin").to_owned(), codes.collect())
}

fn check(story: &Story) -> Result<(), TestCaseError> {
    let mut core = story.play();
    let snapshot = core.scheduler.publish(core.now);
    let pending = ours(&core, |record| record.stage == Stage::Pending);
    let gated = ours(&core, |r| r.stage == Stage::Pending && !r.pod.gates.is_empty());
    for name in nodes(&core) {
        let body = ask_snapshot(&snapshot, &core, &format!("/apis/v1/explain/nodes/{name}")).expect("known");
        let (accepts, refuses) = (list(&body, "/accepts"), list(&body, "/refuses"));
        prop_assert_eq!(accepts.len() + refuses.len(), pending.len());
        prop_assert_eq!(number(&body, "/pendingConsidered") as usize, pending.len());
        for accepted in accepts {
            prop_assert_eq!(own_word(&snapshot, text(accepted, "/pod"), &name), None);
        }
        for refused in refuses {
            let pod = text(refused, "/pod");
            if gated.iter().any(|key| key == pod) {
                prop_assert_eq!(text(refused, "/plugin"), "SchedulingGates");
            } else {
                prop_assert_eq!(Some(word(refused)), own_word(&snapshot, pod, &name), "{} on {}", pod, name);
            }
        }
        check_explanations(&snapshot, &core, &name, refuses)?;
    }
    Ok(())
}

/// Checks the same against the refreshed explanations, where they name the node as an example.
fn check_explanations(
    snapshot: &pellucid::cycle::Snapshot,
    core: &Core,
    name: &str,
    refuses: &[Value],
) -> Result<(), TestCaseError> {
    for refused in refuses {
        let target = format!("/apis/v1/explain/pods/{}?refresh=true", text(refused, "/pod"));
        let own = ask_snapshot(snapshot, core, &target).expect("known");
        for group in list(&own, "/nodeGroups") {
            if list(group, "/exampleNodes").contains(&json!(name)) {
                prop_assert_eq!(word(group), word(refused));
                prop_assert_eq!(&group["code"], &refused["code"]);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..config() })]

    #[test]
    fn a_node_says_of_each_pod_what_the_pod_says_of_it(story in story()) {
        check(&story)?;
    }
}

const GPU: &str = "nvidia.com/gpu";

fn gpu_node(milli_cpu: i64, gpus: i64) -> Node {
    let scalars = [(Name::new(GPU), gpus)].into();
    let allocatable =
        ResourceList { milli_cpu, memory: 64 << 30, pods: 10, scalars, ..ResourceList::default() };
    Node { allocatable, ..node("n1", milli_cpu) }
}

fn asks(name: &str, milli_cpu: i64, gpus: i64) -> Pod {
    let amounts = vec![("cpu".into(), milli_cpu), (GPU.into(), gpus)];
    let containers = vec![ContainerRequests::of(amounts)];
    let requests = PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() });
    Pod { spec: PodSpec { requests, n_containers: 1, ..PodSpec::default() }.into(), ..pod(name, 0) }
}

#[test]
fn gpus_without_a_core_are_stranded_and_the_core_is_named() {
    let mut core = core_with(&[gpu_node(4000, 8)]);
    core.place(&pod("full", 4000));
    core.attempt(&asks("trainer", 1000, 1));
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1");
    assert_eq!(number(&body, "/pendingConsidered"), 1);
    let stranded: Vec<&Value> = list(&body, "/stranded").iter().filter(|s| s["resource"] == GPU).collect();
    assert_eq!(
        (stranded.len(), text(stranded[0], "/blockedBy"), number(stranded[0], "/amount")),
        (1, "cpu", 8)
    );
    assert_eq!((number(stranded[0], "/pods"), number(&body, "/free/cpu")), (1, 0));
    // A pod that requests more than is free is blocked by the resource itself.
    core.delete(&pod("full", 4000));
    core.see(&asks("trainer", 1000, 9));
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1");
    let gpus = list(&body, "/stranded").iter().find(|s| s["resource"] == GPU).expect("stranded");
    assert_eq!(text(gpus, "/blockedBy"), GPU);
    // Once a pod can use the GPUs they are not stranded.
    core.see(&asks("tester", 1000, 1));
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1");
    assert_eq!(list(&body, "/stranded"), [] as [Value; 0]);
    assert_eq!(text(&list(&body, "/accepts")[0], "/pod"), "ns/tester");
}

#[test]
fn a_node_that_pre_filter_left_out_says_so() {
    let mut core = core_with(&[node("n1", 4000), node("n2", 4000)]);
    let only =
        Requirement { key: "metadata.name".into(), operator: Operator::In, values: Box::new(["n2".into()]) };
    let term = NodeSelectorTerm { fields: [only].into(), ..NodeSelectorTerm::default() };
    let affinity = NodeAffinity { required: Some([term].into()), ..NodeAffinity::default() };
    let p = pod("p", 100);
    core.see(&Pod { spec: PodSpec { affinity, ..(*p.spec).clone() }.into(), ..p });
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1");
    assert_eq!(text(&body, "/refuses/0/reasons/0/code"), "NodeLeftOut");
    assert_eq!(list(&ask(&mut core, "/apis/v1/explain/nodes/n2"), "/accepts").len(), 1);
}

#[test]
fn a_limit_takes_the_highest_priority_and_says_that_it_cut() {
    let mut core = core_with(&[node("n1", 100)]);
    for i in 0..5 {
        core.see(&Pod { priority: i, ..pod(&format!("p{i}"), 1000) });
    }
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1?limit=2");
    let pods: Vec<&str> = list(&body, "/refuses").iter().map(|r| text(r, "/pod")).collect();
    assert_eq!((pods, number(&body, "/pendingTotal")), (vec!["ns/p4", "ns/p3"], 5));
    assert_eq!((&body["truncated"], &body["meta"]["truncated"]), (&json!(true), &json!(true)));
    assert_eq!(ask(&mut core, "/apis/v1/explain/nodes/n1")["truncated"], false);
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/explain/nodes/nowhere")), "NodeNotFound");
}

#[test]
fn a_member_of_a_gang_is_asked_about_alone_and_shows_its_gang() {
    let mut core = core_with(&[node("n1", 4000)]);
    core.see(&in_gang(pod("member", 1000), "g", 3));
    let body = ask(&mut core, "/apis/v1/explain/nodes/n1");
    assert_eq!(list(&body, "/accepts"), [json!({"pod": "ns/member", "gang": "ns/g"})]);
}
