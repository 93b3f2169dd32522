//! A reservation through kubectl: applied, Available on its node, used up by its one owner, whose room nobody else had.

use pellucid::sandbox::definition;
use pellucid_api::definitions::koordinator;

use crate::common::running::node;
use crate::kubectl::{Kubectl, await_answer, enabling, with_scheduler};

/// A reservation of 3 CPUs for pods with label app=web, which one of them uses up, as `allocateOnce` says by default.
const RESERVATION: &str = "apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: web}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  ttl: 1h
  template:
    spec:
      schedulerName: pellucid
      containers: [{name: c, image: i, resources: {requests: {cpu: \"3\"}}}]
";

fn pod(name: &str, app: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {app}}}}}\nspec:\n  schedulerName: pellucid\n  \
         containers: [{{name: c, image: i, resources: {{requests: {{cpu: \"2\"}}}}}}]\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_uses_up_a_reservation_that_is_allocated_once() {
    let objects = vec![definition(koordinator::RESERVATIONS), node("n1", "a", 4)];
    with_scheduler(objects, |_| enabling("name: Reservation, weight: 5000"), session).await;
}

fn session(kubectl: &Kubectl) {
    let apply = |name: &str, manifest: &str| {
        let file = kubectl.home.path().join(format!("{name}.yaml"));
        std::fs::write(&file, manifest).expect("written");
        kubectl.says(&["apply", "-f", &file.display().to_string()])
    };
    apply("reservation", RESERVATION);
    let status = "jsonpath={.status.phase} {.status.nodeName} {.status.allocatable.cpu}";
    let reservation = ["get", "reservations.scheduling.koordinator.sh", "web"];
    await_answer(kubectl, &[&reservation[..], &["-o", status]].concat(), "Available n1 3");
    // The room is kept, and only its owner gets it.
    apply("other", &pod("other", "db"));
    let scheduled = "jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].status}";
    await_answer(kubectl, &["get", "pod", "other", "-o", scheduled], "False");
    apply("owner", &pod("owner", "web"));
    await_answer(kubectl, &["get", "pod", "owner", "-o", "jsonpath={.spec.nodeName}"], "n1");
    let owners = "jsonpath={.status.phase} {.status.currentOwners[*].name}";
    await_answer(kubectl, &[&reservation[..], &["-o", owners]].concat(), "Succeeded owner");
    // What the owner leaves of it is free again.
    await_answer(kubectl, &["get", "pod", "other", "-o", "jsonpath={.spec.nodeName}"], "n1");
    kubectl.shows(&reservation, &["web", "Succeeded", "n1"]);
    kubectl.shows(&["describe", reservation[1], "web"], &["Phase:", "Succeeded", "owner"]);
}
