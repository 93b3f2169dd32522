//! Reservations through an API server: placed by a write of their status, used by their owner, and read over HTTP.

use pellucid::plugins::reservation::NAME;
use serde_json::{Value, json};

use crate::app::command_lists::{fits, follow, run};
use crate::common::running::{Hand, node, pod, start_with};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: Reservation, weight: 5000}]
";
const KIND: &str = "scheduling.koordinator.sh/v1alpha1/Reservation";
const TAKEN: &str = "scheduling.koordinator.sh/reservation-allocated";

fn definition() -> Value {
    pellucid::sandbox::definition(pellucid_api::definitions::koordinator::RESERVATIONS)
}

/// Makes a reservation for pods with label app=web, as large as a pod.
fn reservation(name: &str, milli_cpu: u32) -> Value {
    let spec = pod("template", milli_cpu)["spec"].clone();
    json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": name},
        "spec": {"ttl": "0s", "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}], "template": {"spec": spec}},
    })
}

fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_keeps_its_room_until_its_owner_comes() {
    let objects = vec![definition(), node("n1", "a", 4)];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    cluster.create([reservation("large", 9000), reservation("web", 3000)]);
    let placed = cluster.object(KIND, "web", "available", |object| phase(object) == "Available").await;
    assert_eq!(placed["status"]["nodeName"], "n1", "{placed}");
    assert_eq!(placed["status"]["allocatable"]["cpu"], "3", "{placed}");

    // Others cannot have the room, and one that is too large says why as a pod does.
    cluster.create([pod("other", 2000)]);
    cluster.told("other", "Insufficient cpu").await;
    let waits = cluster.object(KIND, "large", "refused", |of| of["status"]["conditions"].is_array()).await;
    let told = waits["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{waits}");
    let detail = cluster.read(&format!("/apis/v1/plugins/{NAME}/reservations/large"));
    let explained = cluster.read(detail["explanation"].as_str().expect("where it is explained"));
    assert_eq!(explained["verdict"], "refused", "{explained}");

    assert_eq!(cluster.place(pod("web", 3000)).await, "n1");
    let bound = cluster.pod("web", "in its reservation", |pod| {
        pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(TAKEN))
    });
    assert!(bound.await.metadata.annotations.expect("annotations")[TAKEN].contains("\"web\""));
    let used = cluster.object(KIND, "web", "used up", |object| phase(object) == "Succeeded").await;
    assert_eq!(used["status"]["currentOwners"][0]["name"], "web", "{used}");
    let detail = cluster.read(&format!("/apis/v1/plugins/{NAME}/reservations/web"));
    let path = detail["history"].as_str().expect("where its history is").to_owned();
    let history = cluster.wait(&path, "its end", |body| kinds(body).last() == Some(&"Ended"));
    assert_eq!(kinds(&history), ["Added", "Placed", "Bound", "OwnerCame", "Ended"], "{history}");
    assert_eq!(history["entries"][3]["by"], "default/web", "{history}");
    assert_eq!(history["entries"][3]["message"], "default/web stands in it and uses it up.");
    let refused = cluster.read("/apis/v1/history/objects/Reservation/large");
    assert_eq!(kinds(&refused), ["Added", "Refused"], "{refused}");
    let path = format!("/apis/v1/plugins/{NAME}/reservations?stage=Succeeded");
    cluster.wait(&path, "it is listed as used up", |body| body["items"][0]["name"] == "web");
    assert_eq!(cluster.status_of(&format!("/apis/v1/plugins/{NAME}/reservations/none")), 404);
    cluster.stop().await;
}

fn kinds(history: &Value) -> Vec<&str> {
    let entries = history["entries"].as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().filter_map(|entry| entry["kind"].as_str()).collect()
}

/// A reservation that lasts a minute: what waits for its room has it then, and the history says so, also after it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_expires_and_another_pod_gets_its_room() {
    let objects = vec![definition(), node("n1", "a", 4)];
    let mut cluster = start_with(objects, Some(CONFIGURATION), Some(Hand::default())).await;
    let mut short = reservation("short", 3000);
    short["spec"]["ttl"] = json!("60s");
    cluster.create([short]);
    cluster.object(KIND, "short", "available", |object| phase(object) == "Available").await;
    cluster.create([pod("other", 3000)]);
    cluster.told("other", "Insufficient cpu").await;
    cluster.let_pass(59).await;
    let held = cluster.object(KIND, "short", "there", |_| true).await;
    assert_eq!(phase(&held), "Available", "a second is left");

    cluster.let_pass(1).await;
    let other =
        cluster.object("v1/Pod", "other", "bound", |object| object["spec"]["nodeName"].is_string()).await;
    assert_eq!(other["spec"]["nodeName"], "n1", "{other}");
    let ended = cluster.object(KIND, "short", "expired", |object| phase(object) == "Failed").await;
    let conditions = ended["status"]["conditions"].as_array().expect("conditions");
    assert!(conditions.iter().any(|of| of["type"] == "Ready" && of["reason"] == "Expired"), "{ended}");
    let path = "/apis/v1/history/objects/Reservation/short";
    let history = cluster.wait(path, "its end", |body| kinds(body).last() == Some(&"Ended"));
    assert_eq!(kinds(&history), ["Added", "Placed", "Bound", "Expired", "Ended"], "{history}");

    let node = format!("/apis/v1/plugins/{NAME}/nodeReservations/n1");
    assert_eq!(cluster.read(&node)["items"], json!([]), "what has expired holds nothing");
    cluster.delete(KIND, "short").await;
    let gone = cluster.wait(path, "its deletion", |body| kinds(body).last() == Some(&"Deleted"));
    assert_eq!(gone["name"], "short", "{gone}");
    let told = fits(cluster.instance.address, &["reservations", "short", "--history"]);
    for said in ["What happened to short:", "It has expired: what is left of it is free.", "It is deleted."] {
        assert!(told.contains(said), "{said} is not in\n{told}");
    }
    cluster.stop().await;
}

/// One restricted reservation of 3 cores: who stands in it, who does not and why, and what if it did not exist?
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_is_read_and_can_be_left_out_of_a_simulation() {
    let mut cluster = start_with(vec![definition(), node("n1", "a", 4)], Some(CONFIGURATION), None).await;
    let address = cluster.instance.address;
    let mut held = reservation("web", 3000);
    held["spec"]["allocateOnce"] = json!(false);
    held["spec"]["allocatePolicy"] = json!("Restricted");
    cluster.create([held, reservation("large", 9000)]);
    cluster.object(KIND, "web", "available", |object| phase(object) == "Available").await;
    cluster.object(KIND, "large", "refused", |of| of["status"]["conditions"].is_array()).await;

    let owner = |name: &str, milli_cpu: u32| {
        let mut made = pod(name, milli_cpu);
        made["metadata"]["labels"] = json!({"app": "web"});
        made
    };
    assert_eq!(cluster.place(owner("web-1", 2000)).await, "n1");
    cluster.create([owner("web-2", 2000), pod("other", 2000)]);
    cluster.told("web-2", "Insufficient cpu by node").await;
    cluster.told("other", "Insufficient cpu").await;

    let path = format!("/apis/v1/plugins/{NAME}/reservations/web");
    let detail = cluster.wait(&path, "its owners", |body| body["currentOwners"][0]["Name"] == "web-1");
    assert_eq!(detail["left"]["cpu"], "1", "{detail}");
    let reason = "too little cpu left: 2 requested, 2 of 3 in use";
    let waits = detail["candidates"].as_array().expect("a list");
    assert!(waits.iter().any(|of| of["pod"] == "default/web-2" && of["reason"] == reason), "{detail}");
    let explained = cluster.text("/apis/v1/explain/pods/default/web-2");
    assert!(explained.contains("1 Reservation(s) matched owner total"), "{explained}");
    let of_pod = cluster.read("/apis/v1/explain/pods/default/web-2/reservations");
    let rows = of_pod["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["reservation"] == "web" && row["reason"] == reason), "{of_pod}");
    assert!(rows.iter().any(|row| row["reason"] == "the reservation is Pending"), "{of_pod}");
    assert_eq!(cluster.metric(r#"pellucid_reservations{phase="Available"}"#), 1.0);
    assert_eq!(
        cluster.metric(r#"pellucid_reservation_resource{name="web",resource="cpu",type="left"}"#),
        1.0
    );

    let listed = fits(address, &["reservations"]);
    for said in ["large", "Pending", "web", "Available", "n1", "2 reservations."] {
        assert!(listed.contains(said), "{said} is not in\n{listed}");
    }
    // The one that waits, with the verdict on it.
    let explained = follow(address, &listed);
    for said in ["large: Pending", "default/reservation:large: refused", "1 Insufficient cpu"] {
        assert!(explained.contains(said), "{said} is not in\n{explained}");
    }
    let one = run(address, 100, &["reservations", "web"]);
    for said in ["web: Available on n1", "default/web-1", "default/web-2", reason] {
        assert!(one.stdout.contains(said), "{said} is not in\n{}", one.stdout);
    }
    assert_eq!(run(address, 100, &["reservations", "none"]).code, Some(1));

    // Pods that must go are named as what they are.
    let fixes = cluster.text("/apis/v1/explain/pods/default/other/suggestions");
    assert!(fixes.contains("kubectl delete reservations.scheduling.koordinator.sh web"), "{fixes}");
    assert!(!fixes.contains("delete pod reservation:"), "{fixes}");

    let simulate = |edits: Value| {
        let body = json!({"include": ["default/other"], "edits": edits});
        cluster.post("/apis/v1/simulate", &body).json()
    };
    assert_eq!(simulate(json!([]))["placements"], json!([]));
    let without = simulate(json!([{"deleteObject": {"kind": "Reservation", "name": "web"}}]));
    assert_eq!(without["placements"][0]["pod"], "default/other", "{without}");
    assert_eq!(without["placements"][0]["node"], "n1", "{without}");
    cluster.stop().await;
}
