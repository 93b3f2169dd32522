//! Cards of a Device through kubectl: the controller publishes them on the node, follows a broken one and takes them away.

use pellucid::app::instance::InstanceConfig;
use pellucid::config::Configuration;
use pellucid::framework::controllers;
use pellucid::sandbox::definition;
use pellucid_api::definitions::koordinator;

use crate::kubectl::{Kubectl, await_answer, with_scheduler};

/// A node without cards, and its Device of eight.
fn manifests() -> String {
    let mut text = String::from(
        "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-8}\n---\napiVersion: scheduling.koordinator.sh/v1alpha1\nkind: Device\n\
         metadata: {name: gpu-8}\nspec:\n  devices:\n",
    );
    for minor in 0..8 {
        text += &format!(
            "  - {{type: gpu, minor: {minor}, id: GPU-{minor}, health: true, resources: {{koordinator.sh/gpu-core: \"100\", \
             koordinator.sh/gpu-memory: 8Gi, koordinator.sh/gpu-memory-ratio: \"100\"}}}}\n"
        );
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_cards_are_published_on_their_node() {
    // A kind that comes later is found when the scheduler looks again.
    let objects = vec![definition(koordinator::DEVICES)];
    let configure = |made: &InstanceConfig| {
        let named = controllers::named(&made.registry, &["noderesource".to_owned()]);
        // DeviceShare is in no profile.
        Configuration { controllers: named.expect("it is known"), ..made.configuration.clone() }
    };
    with_scheduler(objects, configure, session).await;
}

fn session(kubectl: &Kubectl) {
    let file = kubectl.home.path().join("eight.yaml");
    std::fs::write(&file, manifests()).expect("written");
    kubectl.says(&["apply", "-f", &file.display().to_string()]);
    let amounts = ["core", "memory", "memory-ratio"]
        .map(|of| format!("{{.status.allocatable.koordinator\\.sh/gpu-{of}}}"));
    let shown = format!("jsonpath={}", amounts.join(" "));
    let node = ["get", "node", "gpu-8", "-o", &shown];
    await_answer(kubectl, &node, "800 64Gi 800");
    let broken = r#"[{"op": "replace", "path": "/spec/devices/3/health", "value": false}]"#;
    kubectl.says(&["patch", "devices.scheduling.koordinator.sh", "gpu-8", "--type=json", "-p", broken]);
    await_answer(kubectl, &node, "700 56Gi 700");
    kubectl.says(&["delete", "devices.scheduling.koordinator.sh", "gpu-8"]);
    await_answer(kubectl, &node, "");
}
