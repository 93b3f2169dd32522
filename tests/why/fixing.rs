//! Fixes of single pods: which node is the cheapest, what is never proposed, whether a fix holds with the other pending
//! pods, and whom to change with which command.

use std::sync::Arc;

use pellucid::model::gang::Controller;
use pellucid::model::object::Workload;
use pellucid::model::pod::{HostPort, RequestField};
use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::selector::{
    LabelSelector, Labels, NodeAffinity, NodeSelectorTerm, Operator, Requirement,
};
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{Name, Node, Object, Pod, PodSpec};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{core_with, in_gang, labelled, node, on, pod, ranked};
use crate::common::reads::{ask, list, number, text};

pub(crate) fn names(pairs: &[(&str, &str)]) -> Vec<(Name, Name)> {
    pairs.iter().map(|(key, value)| (Name::new(key), Name::new(value))).collect()
}

fn with_labels(node: Node, labels: &[(&str, &str)]) -> Node {
    Node { labels: Labels::new(names(labels)), ..node }
}

pub(crate) fn with_spec(pod: Pod, change: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut spec = PodSpec::clone(&pod.spec);
    change(&mut spec);
    Pod { spec: Arc::new(spec), ..pod }
}

pub(crate) fn controlled(pod: Pod, kind: &str, name: &str) -> Pod {
    Pod { controller: Some(Controller { uid: "u".into(), kind: kind.into(), name: name.into() }), ..pod }
}

/// Returns a term that selects pods with this label within a domain.
pub(crate) fn beside(key: &str, value: &str, topology_key: &str) -> PodTerms {
    let selector = Some(LabelSelector::of_pairs(&names(&[(key, value)])));
    let term = PodAffinityTerm { topology_key: topology_key.into(), selector, ..PodAffinityTerm::default() };
    PodTerms { required: Box::new([term]), ..PodTerms::default() }
}

fn fixes(core: &mut Core, name: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{name}/suggestions"))
}

fn texts(body: &Value) -> Vec<&str> {
    list(body, "/fixes").iter().map(|fix| text(fix, "/text")).collect()
}

fn commands(body: &Value) -> Vec<&str> {
    let parts = list(body, "/fixes").iter().flat_map(|fix| list(fix, "/parts"));
    parts.filter_map(|part| part["command"].as_str()).collect()
}

#[test]
fn of_two_nodes_that_fail_the_same_the_one_with_the_pod_in_the_way_is_found() {
    let zone = |name: &str| with_labels(node(name, 4000), &[("topology.kubernetes.io/zone", "z")]);
    let mut core = core_with(&[zone("n1"), zone("n2")]);
    core.see(&on(&labelled(pod("f", 100), "app", "a"), "n2"));
    let away = with_spec(labelled(pod("p", 100), "app", "b"), |spec| {
        spec.pod_anti_affinity = beside("app", "a", "topology.kubernetes.io/zone");
    });
    core.attempt(&away);
    let body = fixes(&mut core, "p");
    assert!(texts(&body).contains(&"let pod ns/f go"), "{body:#}");
}

#[test]
fn a_pod_on_a_full_node_may_keep_another_out_of_the_zone() {
    let zone = |name: &str, cpu| with_labels(node(name, cpu), &[("topology.kubernetes.io/zone", "z")]);
    let mut core = core_with(&[zone("n1", 4000), zone("n2", 1000)]);
    core.see(&on(&with_spec(pod("d", 900), |spec| spec.is_daemon = true), "n2"));
    core.see(&on(&labelled(pod("f", 100), "app", "a"), "n2"));
    let away = with_spec(labelled(pod("p", 500), "app", "b"), |spec| {
        spec.pod_anti_affinity = beside("app", "a", "topology.kubernetes.io/zone");
    });
    core.attempt(&away);
    let body = fixes(&mut core, "p");
    let fix = list(&body, "/fixes").iter().find(|fix| fix["text"] == "let pod ns/f go");
    assert_eq!(fix.map(|fix| text(fix, "/node")), Some("n1"), "{body:#}");
}

#[test]
fn a_cheaper_label_on_another_node_wins() {
    let mut core = core_with(&[node("n1", 4000), with_labels(node("n2", 4000), &[("disk", "ssd")])]);
    let picky = with_spec(pod("p", 100), |spec| {
        spec.affinity.selector = names(&[("disk", "ssd"), ("pool", "gpu")]).into();
    });
    core.attempt(&picky);
    let body = fixes(&mut core, "p");
    let first = &list(&body, "/fixes")[0];
    assert_eq!((text(first, "/text"), number(first, "/cost")), ("label node n2 with pool=gpu", 25));
    assert_eq!(commands(&body)[0], "kubectl label nodes n2 pool=gpu");
    assert!(texts(&body)[1..].iter().all(|text| !text.contains("label node")), "{body:#}");
}

#[test]
fn required_node_affinity_gets_labels_except_those_of_others() {
    let requirement = |key: &str, operator, values: &[&str]| Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(|v| Name::new(v)).collect(),
    };
    let wants = |name: &str, of: Requirement| {
        let term = NodeSelectorTerm { expressions: Box::new([of]), ..NodeSelectorTerm::default() };
        let affinity = NodeAffinity { required: Some(Box::new([term])), ..NodeAffinity::default() };
        with_spec(pod(name, 100), |spec| spec.affinity = affinity)
    };
    let labels = [("kubernetes.io/hostname", "n"), ("topology.kubernetes.io/zone", "z"), ("old", "yes")];
    let mut core = core_with(&[with_labels(node("n", 4000), &labels)]);
    core.attempt(&wants("in", requirement("pool", Operator::In, &["a", "b"])));
    core.attempt(&wants("gone", requirement("old", Operator::DoesNotExist, &[])));
    core.attempt(&wants("zone", requirement("topology.kubernetes.io/zone", Operator::In, &["y"])));
    core.attempt(&wants("host", requirement("kubernetes.io/hostname", Operator::In, &["m"])));
    assert_eq!(commands(&fixes(&mut core, "in"))[0], "kubectl label nodes n pool=a");
    assert_eq!(commands(&fixes(&mut core, "gone"))[0], "kubectl label nodes n old-");
    for name in ["zone", "host"] {
        let body = fixes(&mut core, name);
        assert!(texts(&body).iter().all(|text| !text.contains("label")), "{body:#}");
        assert!(!list(&body, "/fixes").is_empty(), "{body:#}");
    }
}

#[test]
fn pods_that_come_back_are_not_proposed_to_go() {
    let mut core = core_with(&[node("n", 1000)]);
    let daemon = with_spec(pod("daemon", 500), |spec| spec.is_daemon = true);
    core.see(&on(&daemon, "n"));
    core.see(&on(&Pod { is_static: true, ..pod("static", 500) }, "n"));
    core.attempt(&pod("p", 500));
    let body = fixes(&mut core, "p");
    assert!(texts(&body).iter().all(|text| !text.contains("go")), "{body:#}");
}

#[test]
fn a_pod_ahead_in_the_queue_takes_what_a_fix_frees_and_what_holds_is_offered() {
    let mut core = core_with(&[node("n", 1000)]);
    core.see(&on(&pod("filler", 1000), "n"));
    core.attempt(&ranked("ahead", 1000, 0));
    core.wait(std::time::Duration::from_secs(1));
    core.attempt(&pod("p", 1000));
    let first = fixes(&mut core, "ahead");
    assert_eq!(texts(&first)[0], "let pod ns/filler go");
    assert_eq!(text(&first, "/fixes/0/inCompany"), "holds");
    let body = fixes(&mut core, "p");
    assert_eq!(texts(&body)[0], "let pod ns/filler go");
    assert_eq!(text(&body, "/fixes/0/inCompany"), "taken");
    assert_eq!(body["fixes"][0]["takenBy"], json!(["ns/ahead"]));
    let holds: Vec<&Value> = list(&body, "/fixes").iter().filter(|f| f["inCompany"] == "holds").collect();
    assert_eq!(holds.len(), 1, "{body:#}");
    assert_eq!(
        (text(holds[0], "/text"), &holds[0]["widened"]),
        ("add a node like n (2 times)", &json!(true))
    );
    assert!(list(&body, "/fixes").is_sorted_by_key(|fix| number(fix, "/cost")));
}

#[test]
fn a_replacement_of_higher_priority_takes_the_room_of_the_pod_that_went() {
    let mut core = core_with(&[node("n", 1000)]);
    core.see(&on(&controlled(ranked("web-1", 1000, 5), "ReplicaSet", "web"), "n"));
    core.attempt(&pod("p", 1000));
    let body = fixes(&mut core, "p");
    let of =
        |text: &str| list(&body, "/fixes").iter().find(|fix| fix["text"] == text).expect("a fix").clone();
    let deleted = of("let pod ns/web-1 go");
    assert_eq!((&deleted["inCompany"], &deleted["takenBy"]), (&json!("taken"), &json!(["ns/web-1"])));
    assert_eq!(of("add a node like n")["inCompany"], "holds");
    // One of equal priority queues behind the pod, whose backoff is over.
    let mut core = core_with(&[node("n", 1000)]);
    core.see(&on(&controlled(pod("web-1", 1000), "ReplicaSet", "web"), "n"));
    core.attempt(&pod("p", 1000));
    core.wait(std::time::Duration::from_secs(1));
    assert_eq!(text(&fixes(&mut core, "p"), "/fixes/0/inCompany"), "holds");
    // What an unknown controller does is not known.
    let mut core = core_with(&[node("n", 1000)]);
    core.see(&on(&controlled(pod("x-1", 1000), "Rocket", "x"), "n"));
    core.attempt(&pod("p", 1000));
    assert_eq!(text(&fixes(&mut core, "p"), "/fixes/0/inCompany"), "unknown");
}

/// A node that fails a pod of 2 CPUs for its size, with the fixes of a pod of this controller.
fn owned(kind: &str, name: &str, of_one: bool) -> (Value, Value) {
    let mut core = core_with(&[node("n", 1000)]);
    let controller = Some(Controller { uid: "d".into(), kind: "Deployment".into(), name: "web".into() });
    let set = Workload { namespace: "ns".into(), name: "web-7d".into(), controller, ..Workload::default() };
    core.see_object(Object::ReplicaSet(set));
    let mut pod = Pod { requests_of_one: of_one, ..pod("p", 2000) };
    if !kind.is_empty() {
        pod = controlled(pod, kind, name);
    }
    core.attempt(&pod);
    (ask(&mut core, "/apis/v1/explain/pods/ns/p"), fixes(&mut core, "p"))
}

#[test]
fn requesting_less_names_the_owner_and_has_a_command_that_works_on_it() {
    let start = "kubectl -n ns";
    let job = "| del(.spec.selector, .spec.template.metadata.labels[\"controller-uid\"], \
               .spec.template.metadata.labels[\"batch.kubernetes.io/controller-uid\"])";
    for (kind, name, owner, want) in [
        (
            "ReplicaSet",
            "web-7d",
            json!({"kind": "Deployment", "name": "web"}),
            format!("{start} set resources deployment web --requests=cpu=1"),
        ),
        (
            "StatefulSet",
            "db",
            json!({"kind": "StatefulSet", "name": "db"}),
            format!("{start} set resources statefulset db --requests=cpu=1 && {start} delete pod p"),
        ),
        (
            "Job",
            "j",
            json!({"kind": "Job", "name": "j"}),
            format!(
                "{start} get job j -o json | jq '.spec.template.spec.containers[0].resources.requests[\"cpu\"] = \"1\" \
                 {job}' | {start} replace --force -f -"
            ),
        ),
        (
            "",
            "",
            Value::Null,
            format!(
                "{start} get pod p -o json | jq '.spec.containers[0].resources.requests[\"cpu\"] = \"1\"' | \
                 {start} replace --force -f -"
            ),
        ),
    ] {
        let (explained, body) = owned(kind, name, true);
        assert_eq!(explained["owner"], owner, "{kind}");
        let fix = &list(&body, "/fixes")[0];
        assert_eq!((&fix["owner"], text(fix, "/parts/0/command")), (&owner, &*want), "{kind}: {body:#}");
        assert_eq!(fix["parts"][0]["owner"], owner);
    }
    // A ReplicaSet that is not known is named itself.
    assert_eq!(owned("ReplicaSet", "other", true).0["owner"], json!({"kind": "ReplicaSet", "name": "other"}));
    // Of several containers only the sum is known, and of unknown kinds no command.
    let (_, sum) = owned("ReplicaSet", "web-7d", false);
    let text_of = "request 1 of cpu instead of 2, all its containers together (in Deployment web)";
    assert_eq!(
        (text(&sum, "/fixes/0/text"), &sum["fixes"][0]["parts"][0]["command"]),
        (text_of, &Value::Null)
    );
    assert_eq!(owned("Rocket", "r", true).1["fixes"][0]["parts"][0]["command"], Value::Null);
}

#[test]
fn other_changes_of_a_pod_are_made_at_its_owner_too() {
    let mut core = core_with(&[node("n", 4000)]);
    let port = HostPort { protocol: pellucid::model::pod::Protocol::Tcp, ip: "0.0.0.0".into(), port: 80 };
    let ports = |spec: &mut PodSpec| spec.host_ports = Box::new([port.clone()]);
    core.see(&on(&with_spec(pod("holder", 100), ports), "n"));
    core.attempt(&controlled(with_spec(pod("p", 100), ports), "Deployment", "web"));
    core.attempt(&controlled(
        with_spec(pod("q", 100), |spec| {
            spec.affinity.selector = names(&[("kubernetes.io/arch", "arm")]).into()
        }),
        "StatefulSet",
        "db",
    ));
    let body = fixes(&mut core, "p");
    assert_eq!(
        commands(&body)[0],
        "kubectl -n ns get deployment web -o json | jq 'del(.spec.template.spec.hostNetwork, \
         .spec.template.spec.containers[].ports[]?.hostPort, \
         .spec.template.spec.initContainers[]?.ports[]?.hostPort)' | kubectl -n ns replace -f -"
    );
    assert_eq!(
        commands(&fixes(&mut core, "q"))[0],
        "kubectl -n ns patch statefulset db --type=merge -p \
         '{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":null}}}}' && kubectl -n ns delete pod q"
    );
}

/// Several changes of one pod: what the pod itself is given would be lost when it is made anew, and it is made anew once.
#[test]
fn changes_that_belong_together_are_all_made_where_the_pod_is_made() {
    let of = |kind: &str| {
        let taint = Taint { key: "k".into(), value: "".into(), effect: TaintEffect::NoSchedule };
        let mut core = core_with(&[Node { taints: [taint].into(), ..node("n", 1000) }]);
        let pod = Pod { requests_of_one: true, ..pod("p", 2000) };
        core.attempt(&if kind.is_empty() { pod } else { controlled(pod, kind, "o") });
        let body = fixes(&mut core, "p");
        let both =
            |fix: &&Value| text(fix, "/text").starts_with("tolerate") && list(fix, "/parts").len() == 2;
        let fix = list(&body, "/fixes").iter().find(both).unwrap_or_else(|| panic!("{body:#}"));
        list(fix, "/parts").iter().map(|part| text(part, "/command").to_owned()).collect::<Vec<_>>()
    };
    let toleration = r#"[{"effect":"NoSchedule","key":"k","operator":"Equal","value":""}]"#;
    let job = of("Job");
    let start = "kubectl -n ns get job o -o json | jq '.spec.template.spec";
    assert!(job[0].starts_with(&format!("{start}.tolerations += {toleration} | ")), "{job:?}");
    assert!(job[1].starts_with(&format!("{start}.containers[0].resources")), "{job:?}");
    let set = of("ReplicaSet");
    let get = "kubectl -n ns get replicaset o -o json | jq";
    assert_eq!(
        set,
        [
            format!("{get} '.spec.template.spec.tolerations += {toleration}' | kubectl -n ns replace -f -"),
            "kubectl -n ns set resources replicaset o --requests=cpu=1 && kubectl -n ns delete pod p".into()
        ]
    );
    let alone = of("");
    assert!(alone[0].starts_with("kubectl -n ns patch pod p --type=json"), "{alone:?}");
}

#[test]
fn members_of_a_gang_are_changed_where_they_are_made() {
    let start = "kubectl -n ns";
    let set = |object: &str| {
        format!(
            "{start} get {object} -o json | jq '.spec.containers[0].resources.requests[\"cpu\"] = \"1\"' | {start} replace --force -f -"
        )
    };
    let of = |owners: [&str; 2], kind: &str| {
        let mut core = core_with(&[node("n0", 1000), node("n1", 1000)]);
        for (name, owner) in ["a", "b"].into_iter().zip(owners) {
            let member = in_gang(Pod { requests_of_one: true, ..pod(name, 2000) }, "g", 2);
            let is_made = !kind.is_empty();
            core.see(&if is_made { controlled(member, kind, owner) } else { member });
        }
        core.run();
        let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g/suggestions");
        let fix =
            list(&body, "/fixes").iter().find(|fix| text(fix, "/text") == "request 1 of cpu instead of 2");
        fix.unwrap_or_else(|| panic!("{body:#}")).clone()
    };
    let alone = of(["", ""], "");
    assert_eq!(text(&alone, "/parts/0/command"), format!("for p in a b; do {}; done", set("pod $p")));
    assert_eq!(text(&alone, "/gang/text"), "2 of 2 members have places then: the whole gang");
    for (owners, kind, want) in [
        (
            ["w", "w"],
            "StatefulSet",
            format!("{start} set resources statefulset w --requests=cpu=1 && {start} delete pod a b"),
        ),
        (
            ["x", "y"],
            "Deployment",
            format!(
                "{start} set resources deployment x --requests=cpu=1 && {start} set resources deployment y --requests=cpu=1"
            ),
        ),
    ] {
        let fix = of(owners, kind);
        assert_eq!(
            (text(&fix, "/parts/0/command"), &fix["parts"][0]["recreate"]),
            (&*want, &Value::Bool(true))
        );
        let owners: std::collections::BTreeSet<String> =
            owners.iter().map(|name| format!("{kind}/{name}")).collect();
        assert_eq!(fix["gang"]["owners"], json!(owners));
    }
    assert_eq!(of(["r", "r"], "Rocket")["parts"][0]["command"], Value::Null);
}

#[test]
fn five_thousand_nodes_are_all_looked_at() {
    let nodes: Vec<Node> = (0..5_000).map(|i| node(&format!("n{i:04}"), 16_000)).collect();
    let mut core = core_with(&nodes);
    for i in 0..nodes.len() {
        // One node is nearly enough, and on one a single small pod is in the way.
        let amounts: &[i64] = match i {
            4_321 => &[12_500],
            1_234 => &[12_000, 1_000],
            _ => &[7_000, 7_000],
        };
        for (at, amount) in amounts.iter().enumerate() {
            core.see(&on(&pod(&format!("filler-{i:04}-{at}"), *amount), &format!("n{i:04}")));
        }
    }
    core.attempt(&pod("p", 4_000));
    let body = fixes(&mut core, "p");
    assert_eq!(
        text(&body, "/fixes/0/text"),
        "request 3500m of cpu instead of 4, all its containers together"
    );
    assert_eq!((text(&body, "/fixes/0/node"), &body["meta"]["truncated"]), ("n4321", &json!(false)));
    assert_eq!(number(&body, "/fixes/1/cost"), 60, "{body:#}");
}

/// What decides the request is changed: `spec.resources`, or an init container that requests more than the containers.
#[test]
fn the_field_that_decides_a_request_is_named_and_changed() {
    let of_field = |field: RequestField| {
        let field = RequestField { resource: "cpu".into(), ..field };
        let mut core = core_with(&[node("n", 1000)]);
        core.attempt(&Pod { request_fields: [field].into(), ..pod("p", 2000) });
        let body = fixes(&mut core, "p");
        let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text").starts_with("request"));
        let part = &list(fix.unwrap_or_else(|| panic!("{body:#}")), "/parts")[0];
        (text(part, "/text").to_owned(), part["command"].as_str().map(str::to_owned))
    };
    let of = |init_container: Option<(usize, Name)>, rest| {
        of_field(RequestField { init_container, rest, ..RequestField::default() })
    };
    let of_amount = |path: &str, amount: &str| {
        Some(format!(
            "kubectl -n ns get pod p -o json | jq '.spec{path}.requests[\"cpu\"] = \"{amount}\"' | kubectl -n ns replace --force -f -"
        ))
    };
    let command = |path: &str| of_amount(path, "1");
    assert_eq!(
        of(None, 500),
        ("request 1 of cpu instead of 2 in spec.resources".into(), command(".resources"))
    );
    assert_eq!(
        of(Some((1, "setup".into())), 1000),
        (
            "request 1 of cpu instead of 2 in init container setup".into(),
            command(".initContainers[1].resources")
        )
    );
    // What the other containers request stays.
    let container = Some((1, "main".into()));
    let field = RequestField { container, rest: 400, beside: 400, ..RequestField::default() };
    assert_eq!(
        of_field(field),
        (
            "request 1 of cpu instead of 2 in all: 600m in container main".into(),
            of_amount(".containers[1].resources", "600m")
        )
    );
    // With it lowered, the containers still request more.
    assert_eq!(of(None, 1500), ("request 1 of cpu instead of 2, all its containers together".into(), None));
}

#[test]
fn amounts_of_memory_are_written_as_people_write_them() {
    let memory = |amount: i64| [(Name::new("example.com/gpu-memory"), amount)].into();
    let mut large = node("n", 1000);
    large.allocatable.scalars = memory(12_025_908_429);
    let mut core = core_with(&[large]);
    let wants = with_spec(Pod { requests_of_one: true, ..pod("p", 100) }, |spec| {
        spec.requests.list.scalars = memory(13 << 30);
    });
    core.attempt(&wants);
    let body = fixes(&mut core, "p");
    assert_eq!(texts(&body)[0], "request 11468Mi of example.com/gpu-memory instead of 13Gi");
    assert!(commands(&body)[0].contains("[\"example.com/gpu-memory\"] = \"11468Mi\""), "{body:#}");
}

/// Returns a pod that needs a pod of `db` on its node.
fn near_db() -> Pod {
    with_spec(pod("p", 800), |spec| spec.pod_affinity = beside("app", "db", "kubernetes.io/hostname"))
}

/// The pod that is needed is the least important one, and so the first that would go.
#[test]
fn a_pod_that_is_needed_on_a_node_stays_when_others_go() {
    let host = with_labels(node("n", 1000), &[("kubernetes.io/hostname", "n")]);
    let mut core = core_with(&[host]);
    core.see(&on(&labelled(ranked("db", 200, -1), "app", "db"), "n"));
    core.see(&on(&pod("filler", 700), "n"));
    core.attempt(&near_db());
    let body = fixes(&mut core, "p");
    assert!(texts(&body).contains(&"let pod ns/filler go"), "{body:#}");
    let explained = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert_eq!(text(&explained, "/outlook/message"), "n would take it if pod ns/filler ended");
}

/// Either pod of the node is enough for what the pod needs beside it. The one that would go first has too little.
#[test]
fn of_two_pods_of_which_one_is_needed_the_one_in_the_way_goes() {
    let host = with_labels(node("n", 1000), &[("kubernetes.io/hostname", "n")]);
    let mut core = core_with(&[host]);
    for (name, milli_cpu, priority) in [("small", 100, -1), ("large", 900, 0)] {
        core.see(&on(&labelled(ranked(name, milli_cpu, priority), "app", "db"), "n"));
    }
    core.attempt(&near_db());
    let body = fixes(&mut core, "p");
    assert!(texts(&body).contains(&"let pod ns/large go"), "{body:#}");
    let explained = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert_eq!(text(&explained, "/outlook/message"), "n would take it if pod ns/large ended");
}
