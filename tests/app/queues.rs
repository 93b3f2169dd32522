//! kube-batch's Queues through an API server: what `pellucid queues` prints, what a pod is told, and what if a Queue were
//! another.

use pellucid::plugins::proportion::NAME;
use serde_json::{Value, json};

use crate::app::command_lists::{fits, follow, run};
use crate::common::running::{node, pod, start};

const INCUBATOR: &str = "scheduling.incubator.k8s.io/v1alpha1";

pub(crate) fn queue(name: &str, weight: u32, capability: u32) -> Value {
    json!({
        "apiVersion": INCUBATOR, "kind": "Queue", "metadata": {"name": name},
        "spec": {"weight": weight, "capability": {"cpu": capability.to_string()}},
    })
}

pub(crate) fn group(name: &str) -> Value {
    json!({
        "apiVersion": INCUBATOR, "kind": "PodGroup", "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1, "queue": name},
    })
}

pub(crate) fn member(name: &str, group: &str) -> Value {
    let mut made = pod(name, 1000);
    made["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group.into();
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_holds_its_capability_is_listed_explained_and_simulated() {
    let objects = vec![node("n1", "a", 12), queue("a", 1, 2), queue("b", 1, 8), group("a"), group("b")];
    let mut cluster = start(objects).await;
    let address = cluster.instance.address;
    cluster.wait(&format!("/apis/v1/plugins/{NAME}/state"), "the queues", |body| body["queues"] == 3);
    for n in 0..2 {
        cluster.place(member(&format!("a{n}"), "a")).await;
    }
    cluster.create([member("late", "a")]);
    cluster.told("late", "queue: a, cpu: allocated 2, capability 2, pod's request 1").await;

    let explained = cluster.read("/apis/v1/explain/pods/default/late");
    let said = "queue a: cpu allocated 2 + 1 > capability 2; freed when pods of a with 1 cpu end";
    assert_eq!(explained["notes"][0]["text"], said, "{explained}");

    let listed = fits(address, &["queues"]);
    for said in ["CAPABILITY", "waits: holds all", "3 queues."] {
        assert!(listed.contains(said), "{said} is not in\n{listed}");
    }
    let explained = follow(address, &listed);
    for said in ["its capability keeps it from more", "cpu: 12 to share out", "Round 1"] {
        assert!(explained.contains(said), "{said} is not in\n{explained}");
    }
    let unknown = run(address, 100, &["queues", "nobody"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("nobody"), "{}", unknown.stderr);

    let simulate = |edits: Value| {
        let body = json!({"include": ["default/late"], "edits": edits});
        let reply = cluster.post("/apis/v1/simulate", &body);
        if reply.status == 200 {
            let meta = &reply.json()["meta"];
            assert_eq!(
                (&meta["apiVersion"], &meta["kind"]),
                (&json!("pellucid.dev/v1"), &json!("Simulation"))
            );
        }
        (reply.status, reply.json())
    };
    let placed = |edits: Value| {
        let (status, body) = simulate(edits);
        assert_eq!(status, 200, "{body}");
        body["placements"].as_array().expect("a list").len()
    };
    assert_eq!(placed(json!([])), 0);
    assert_eq!(placed(json!([{"applyObject": queue("a", 1, 3)}])), 1);
    let gone = json!([{"deleteObject": {"kind": "Queue.scheduling.incubator.k8s.io", "name": "a"}}]);
    assert_eq!(placed(gone), 0, "a gang whose queue is missing waits");
    for (object, field) in [
        (json!({"apiVersion": INCUBATOR, "kind": "Queue", "metadata": {"name": "A b"}}), "metadata.name"),
        (
            json!({"apiVersion": "scheduling.incubator.k8s.io/v2", "kind": "Queue", "metadata": {"name": "a"}}),
            "apiVersion",
        ),
        (
            json!({"apiVersion": INCUBATOR, "kind": "Queue", "metadata": {"name": "a", "namespace": "default"}}),
            "metadata.namespace",
        ),
        (
            json!({"apiVersion": INCUBATOR, "kind": "Queue", "metadata": {"name": "a"}, "spec": {"weight": -1}}),
            "spec.weight",
        ),
    ] {
        let (status, refused) = simulate(json!([{"applyObject": object}]));
        let message = refused["message"].as_str().unwrap_or_default().to_owned();
        let wanted = format!("edits[0].applyObject.{field}: ");
        assert!(status == 400 && message.contains(&wanted), "{wanted} is not in {status} {refused}");
    }
    cluster.stop().await;
}
