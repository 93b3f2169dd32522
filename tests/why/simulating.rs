//! `POST /apis/v1/simulate` over HTTP: what it rejects, and how it reports what does not exist.

use serde_json::{Value, json};

use crate::common::client::get;
use crate::common::dialects::member;
use crate::common::reads::{list, text};
use crate::common::running::{Hand, Running, node, pod, priority_class, start, start_with, with};

/// Path of the question.
const SIMULATE: &str = "/apis/v1/simulate";

fn refused(running: &Running, body: &Value, code: &str, parts: &[&str]) {
    let reply = running.post(SIMULATE, body);
    let answer = reply.json();
    let status = if code == "PodNotFound" { 404 } else { 400 };
    assert_eq!((reply.status, &answer["code"]), (status, &json!(code)), "{body}: {answer}");
    for part in parts {
        assert!(text(&answer, "/message").contains(part), "no {part} in {answer}");
    }
}

fn simulated(running: &Running, body: &Value) -> Value {
    let reply = running.post(SIMULATE, body);
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    reply.json()
}

/// Starts a cluster, and waits until the scheduler knows the nodes.
async fn with_nodes(names: &[&str]) -> Running {
    let running = start(names.iter().map(|name| node(name, "z", 4)).collect()).await;
    let is_ready = |body: &Value| {
        let nodes = list(body, "/nodes");
        nodes.len() == names.len() && nodes.iter().all(|node| node["ready"] == true)
    };
    running.wait("/apis/v1/nodes", "the nodes are ready", is_ready);
    running
}

/// Makes a pod that does not exist in the cluster.
fn made(name: &str, namespace: &str, requests: &Value) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_no_object_can_have_are_refused_with_field_and_value() {
    let running = with_nodes(&["a"]).await;
    let edit = |edit: Value| json!({"pods": [made("p", "default", &json!({}))], "edits": [edit]});
    let pods = |pod: Value| json!({"pods": [made("ok", "default", &json!({})), pod]});
    let snow = "☃ x";
    let shown = format!("{snow:?}");
    for (body, field, value) in [
        (edit(json!({"copyNode": {"node": "a", "name": ""}})), "edits[0].copyNode.name: ", "\"\""),
        (edit(json!({"copyNode": {"node": snow, "name": "b"}})), "edits[0].copyNode.node: ", &shown),
        (edit(json!({"removeNode": snow})), "edits[0].removeNode: ", &shown),
        (edit(json!({"uncordon": "A"})), "edits[0].uncordon: ", "\"A\""),
        (edit(json!({"addNode": {"metadata": {"name": snow}}})), "edits[0].addNode.metadata.name: ", &shown),
        (
            edit(json!({"addNode": {"metadata": {"name": "b"}, "status": {"allocatable": {"☃": "1"}}}})),
            "edits[0].addNode.status.allocatable: ",
            "\"☃\"",
        ),
        (edit(json!({"removeTaint": {"node": "a", "key": "a b"}})), "edits[0].removeTaint.key: ", "\"a b\""),
        (
            edit(json!({"labelNode": {"node": "a", "key": "k", "value": "a b"}})),
            "edits[0].labelNode.value: ",
            "\"a b\"",
        ),
        (edit(json!({"deletePod": "De/p"})), "edits[0].deletePod: ", "\"De\""),
        (edit(json!({"removeGates": {"pod": "default/☃"}})), "edits[0].removeGates.pod: ", "\"☃\""),
        (
            edit(json!({"setRequest": {"pod": "default/p", "resource": "pods", "amount": "1"}})),
            "edits[0].setRequest.resource: ",
            "\"pods\"",
        ),
        (pods(made(snow, "default", &json!({}))), "pods[1].metadata.name: ", &shown),
        (pods(made("p", "a.b", &json!({}))), "pods[1].metadata.namespace: ", "\"a.b\""),
        (
            pods(made("p", "default", &json!({"pods": "1"}))),
            "pods[1].spec.containers[0].resources.requests: ",
            "\"pods\"",
        ),
        (
            json!({"podGroups": [{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
                "metadata": {"name": "G_1"}, "spec": {"minMember": 1}}], "include": ["default/p"]}),
            "podGroups[0].metadata.name: ",
            "\"G_1\"",
        ),
        (json!({"include": ["a/b/c"]}), "include[0]: ", "\"a/b/c\""),
    ] {
        refused(&running, &body, "InvalidBody", &[field, value]);
    }
    for (wrong, field) in [
        (json!({"removeNode": "nowhere"}), "edits[0]: nowhere"),
        (json!({"setWeight": {"plugin": "Nobody", "weight": 1}}), "edits[0]: setWeight.plugin: "),
    ] {
        refused(&running, &edit(wrong), "InvalidEdit", &[field]);
    }
    // Names and amounts that an API server accepts are accepted.
    let fine = json!({"pods": [made("p.q-1", "default", &json!({"cpu": "1", "hugepages-2Mi": "0"}))],
        "edits": [{"copyNode": {"node": "a", "name": "rack-1.node-b"}}]});
    assert_eq!(list(&simulated(&running, &fine), "/placements").len(), 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_bounded_and_the_hash_is_made_when_asked_for() {
    let running = with_nodes(&["a", "b"]).await;
    let pods: Vec<Value> = (0..21).map(|i| made(&format!("p{i:02}"), "default", &json!({}))).collect();
    let asked = json!({"pods": pods, "scores": 1000});
    refused(&running, &asked, "InvalidBody", &["scores: 1000 rows for each of 21 pods", "at most 20000"]);
    let fewer = simulated(&running, &json!({"pods": pods, "scores": 900}));
    let tables = list(&fewer, "/scores");
    assert_eq!(tables.len(), 21);
    assert!(tables.iter().all(|table| list(table, "/rows").len() == 2), "{fewer}");
    assert!(tables.is_sorted_by_key(|table| table["name"].to_string()));
    assert!(fewer.get("stateHash").is_none());
    let state = running.read("/apis/v1/statehash");
    let with_hash = simulated(&running, &json!({"pods": pods, "stateHash": true}));
    assert_eq!(with_hash["stateHash"], state["hash"]);
    assert_eq!(running.read("/apis/v1/statehash")["hash"], state["hash"], "nothing has changed");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_an_edit_deletes_is_said_to_be_deleted() {
    let running = with_nodes(&["a"]).await;
    running.create([with(pod("p", 9000), "schedulingGates", json!([{"name": "example.com/wait"}]))]);
    running.wait("/apis/v1/explain/pods/default/p", "it is known", |body| body["verdict"] == "gated");
    let delete = json!({"deletePod": "default/p"});
    let body = simulated(&running, &json!({"edits": [{"removeGates": {"pod": "default/p"}}, delete]}));
    let summary = text(&list(&body, "/refused")[0], "/summary");
    assert_eq!(summary, "An edit of this request deletes it.");
    let included = json!({"edits": [delete], "include": ["default/p"]});
    refused(&running, &included, "PodNotFound", &["an edit of this request deletes pod default/p"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_priority_class_counts_as_at_an_api_server() {
    let classes = [("high", "PreemptLowerPriority"), ("polite", "Never")];
    let classes = classes.map(|(name, policy)| priority_class(name, 1000, policy));
    let mut running = start([vec![node("a", "z", 4)], classes.to_vec()].concat()).await;
    running.wait("/apis/v1/nodes", "the node is ready", |body| body["nodes"][0]["ready"] == true);
    running.place(pod("low", 4000)).await;
    let of_class = |class: &str| {
        let mut asked = made("p", "default", &json!({"cpu": "4"}));
        asked["spec"]["priorityClassName"] = json!(class);
        json!({"pods": [asked]})
    };
    let high = simulated(&running, &of_class("high"));
    assert_eq!(
        (text(&high, "/placements/0/pod"), text(&high, "/victims/0/pod")),
        ("default/p", "default/low")
    );
    let polite = simulated(&running, &of_class("polite"));
    assert_eq!(text(&polite, "/refused/0/pod"), "default/p", "{polite}");
    let system = simulated(&running, &of_class("system-node-critical"));
    assert_eq!(text(&system, "/victims/0/pod"), "default/low");
    refused(&running, &of_class("none"), "InvalidBody", &["pods[0].spec.priorityClassName: ", "\"none\""]);
    let mut both = of_class("high");
    both["pods"][0]["spec"]["priority"] = json!(7);
    refused(&running, &both, "InvalidBody", &["pods[0].spec.priority: ", "1000"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_parameter_is_not_the_same_as_none() {
    let mut running = with_nodes(&["a", "b"]).await;
    running.place(pod("p", 100)).await;
    for (path, name) in [
        ("/apis/v1/explain/pods/default/p?versus=", "versus"),
        ("/apis/v1/explain/placements/default/p?versus", "versus"),
        ("/apis/v1/summary/pending?by=", "by"),
        ("/apis/v1/summary/pending?by=,", "by"),
    ] {
        let reply = get(running.instance.address, path);
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        let value = path.split_once('=').map_or("", |(_, value)| value);
        let expected = format!("parameter `{name}` has the value `{value}`: ");
        assert!(text(&reply.json(), "/message").starts_with(&expected), "{}", reply.text());
    }
    running.stop().await;
}

/// LoadAwareScheduling, with annotations of pods that may replace what is estimated.
const LOAD_AWARE: &str = r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "pellucid", "plugins": {"multiPoint": {"enabled": [{"name": "LoadAwareScheduling"}]}},
    "pluginConfig": [{"name": "LoadAwareScheduling", "args": {"allowCustomizeEstimation": true}}]}]}"#;

/// Starts a scheduler with [`LOAD_AWARE`] and node `a`. Its time is 2026-01-01T00:00:00Z.
async fn with_load_aware() -> Running {
    let running = start_with(vec![node("a", "z", 4)], Some(LOAD_AWARE), Some(Hand::default())).await;
    running.wait("/apis/v1/nodes", "the node is ready", |body| body["nodes"][0]["ready"] == true);
    running
}

fn metric(cpu: &str) -> Value {
    json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "a"},
        "status": {"updateTime": "2025-12-31T23:59:50Z",
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": "1Gi"}}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_plugins_and_declared_annotations_count_in_a_simulation() {
    let running = with_load_aware().await;
    let mut asked = made("p", "default", &json!({"cpu": "1"}));
    let edits = json!([{"applyObject": metric("2500m")}]);
    let placed = simulated(&running, &json!({"pods": [asked]}));
    assert_eq!(text(&placed, "/placements/0/node"), "a", "{placed}");
    let refused = simulated(&running, &json!({"pods": [asked], "edits": edits}));
    assert_eq!(text(&refused, "/refused/0/nodeGroups/0/reasons/0/code"), "UsageExceeded", "{refused}");
    assert_eq!(text(&refused, "/refused/0/nodeGroups/0/details/0/node"), "a", "{refused}");
    let said = text(&refused, "/refused/0/nodeGroups/0/details/0/text");
    assert!(said.contains("limit 65 %: 2.5 cores used 10 s ago, plus 0.85 for this pod"), "{said}");
    asked["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/load-estimated-scaling-factors": r#"{"cpu": 1}"#});
    let small = simulated(&running, &json!({"pods": [asked], "edits": edits}));
    assert_eq!(text(&small, "/placements/0/node"), "a", "the annotation counts: {small}");
    let mut old = metric("100m");
    old["status"]["updateTime"] = json!("2025-12-31T23:00:00Z");
    let expired = simulated(&running, &json!({"pods": [asked], "edits": [{"applyObject": old}]}));
    assert_eq!(text(&expired, "/refused/0/nodeGroups/0/reasons/0/code"), "NodeMetricExpired", "{expired}");
    let gone = json!({"deleteObject": {"kind": "NodeMetric", "name": "a"}});
    let again = simulated(&running, &json!({"pods": [asked], "edits": [{"applyObject": old}, gone]}));
    assert_eq!(text(&again, "/placements/0/node"), "a", "{again}");
    running.stop().await;
}

/// A metric may fall when pods end, so nobody is told that the node never takes the pod; a node that is too small never does.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_measured_is_not_said_to_last() {
    let running = with_load_aware().await;
    let edits = json!([{"applyObject": metric("3900m")}]);
    let asked = |cpu: &str, in_gang: bool| {
        let pods = ["p", "q"].map(|name| {
            let pod = made(name, "default", &json!({"cpu": cpu}));
            if in_gang { member("unicore", pod, "g", 2) } else { pod }
        });
        let answer = simulated(&running, &json!({"pods": pods, "edits": edits}));
        let code = |of: &Value| text(of, "/outlook/code").to_owned();
        list(&answer, "/refused").iter().map(code).collect::<Vec<_>>()
    };
    assert_eq!(asked("1", false), ["NotKnown"; 2]);
    assert_eq!(asked("1", true), ["NotKnown"; 2], "of a gang");
    assert_eq!(asked("5", false), ["NeverFits"; 2]);
    assert_eq!(asked("5", true), ["NeverFits"; 2], "of a gang");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_object_of_a_plugin_is_refused_with_field_and_value() {
    let running = with_load_aware().await;
    let with = |field: &str, value: Value| {
        let mut changed = metric("1");
        *changed.pointer_mut(field).expect("a field") = value;
        json!({"applyObject": changed})
    };
    let delete = |object: Value| json!({"deleteObject": object});
    for (edit, code, field, value) in [
        (
            with("/kind", json!("Seat")),
            "InvalidBody",
            "edits[0].applyObject.kind: ",
            "NodeMetric.slo.koordinator.sh",
        ),
        (
            with("/apiVersion", json!("slo.koordinator.sh/v2")),
            "InvalidBody",
            "applyObject.apiVersion: ",
            "/v2",
        ),
        (with("/metadata/name", json!("A b")), "InvalidBody", "applyObject.metadata.name: ", "A b"),
        (
            with("/metadata", json!({"name": "a", "namespace": "x"})),
            "InvalidBody",
            "metadata.namespace: ",
            "\"x\"",
        ),
        (with("/status/updateTime", json!("noon")), "InvalidBody", "applyObject.status.updateTime: ", "noon"),
        (
            delete(json!({"kind": "Pod", "name": "a"})),
            "InvalidBody",
            "edits[0].deleteObject.kind: ",
            "\"Pod\"",
        ),
        (delete(json!({"kind": "NodeMetric", "name": "☃"})), "InvalidBody", "deleteObject.name: ", "☃"),
        (
            delete(json!({"kind": "NodeMetric", "namespace": "x", "name": "a"})),
            "InvalidBody",
            "deleteObject.namespace: ",
            "\"x\"",
        ),
        (
            delete(json!({"kind": "NodeMetric", "name": "a"})),
            "InvalidEdit",
            "edits[0]: a: ",
            "no such NodeMetric",
        ),
    ] {
        let body = json!({"pods": [made("p", "default", &json!({}))], "edits": [edit]});
        refused(&running, &body, code, &[field, value]);
    }
    running.stop().await;
}
