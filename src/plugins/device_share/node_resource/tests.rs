//! What the controller writes, and when.

use pellucid_framework::Plugin;
use pellucid_model::CustomKindRef;
use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;

use super::super::device::GPU_MODEL;
use super::*;
use pellucid_plugin_helper::testing::{TestCluster, node};

/// A plugin that does nothing but bring the state.
struct Bare;

impl Plugin for Bare {
    fn name(&self) -> &'static str {
        "Bare"
    }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(NodeResources::default())]
    }
}

fn cluster() -> TestCluster {
    let plugin: Arc<dyn Plugin> = Arc::new(Bare);
    TestCluster::with(&[plugin], [with_amounts("a", &[])])
}

fn with_amounts(name: &str, amounts: &[(&str, i64)]) -> Node {
    let scalars = amounts.iter().map(|(name, amount)| (Name::new(name), *amount)).collect();
    let made = node(name);
    Node { uid: "u".into(), allocatable: ResourceList { scalars, ..made.allocatable.clone() }, ..made }
}

/// A Device of GPUs of 8 GiB, of which the first ones are healthy.
fn device(cards: usize, healthy: usize) -> Value {
    let resources = json!({
        "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu-memory-ratio": 100,
    });
    let card = |minor: usize| json!({"type": "gpu", "minor": minor, "health": minor < healthy, "resources": resources});
    json!({"spec": {"devices": (0..cards).map(card).collect::<Value>()}})
}

fn report(cluster: &mut TestCluster, manifest: &Value) {
    let object = CustomObject {
        kind: CustomKindRef(&DEVICE),
        namespace: Name::default(),
        name: "a".into(),
        uid: "d".into(),
        resource_version: manifest.to_string().as_str().into(),
        pod: None,
        value: (DEVICE.decode)(manifest).expect("a Device"),
    };
    cluster.cluster.apply_custom(Arc::new(object), &mut Vec::new());
}

fn at(seconds: u64) -> Now {
    Now { monotonic: Duration::from_secs(seconds), wall: Duration::from_secs(seconds) }
}

/// Returns what is written at a time, and settles it.
fn written(cluster: &mut TestCluster, seconds: u64, outcome: &WriteOutcome) -> Vec<String> {
    cluster.cluster.expire_plugin_state(at(seconds), &mut Vec::new());
    let due = cluster.cluster.due_writes(at(seconds));
    for one in &due {
        cluster.cluster.write_settled(one.state, &one.write, outcome, &mut Vec::new());
    }
    due.iter().map(|one| one.write.to_string()).collect()
}

fn status(amounts: &str) -> String {
    format!(r#"patch status of nodes a {{"status":{{"allocatable":{amounts},"capacity":{amounts}}}}}"#)
}

const EIGHT: &str = r#"{"koordinator.sh/gpu":"800","koordinator.sh/gpu-core":"800","koordinator.sh/gpu-memory":"64Gi","koordinator.sh/gpu-memory-ratio":"800"}"#;

/// What a node says that has what [`EIGHT`] wants.
fn published() -> Node {
    let amounts = [
        ("koordinator.sh/gpu", 800),
        ("koordinator.sh/gpu-core", 800),
        ("koordinator.sh/gpu-memory", 64 << 30),
        ("koordinator.sh/gpu-memory-ratio", 800),
    ];
    with_amounts("a", &amounts)
}

#[test]
fn eight_cards_are_published_once_followed_and_taken_away() {
    let mut cluster = cluster();
    assert_eq!(written(&mut cluster, 1, &WriteOutcome::Written), [""; 0], "without a Device nothing is owed");
    report(&mut cluster, &device(8, 8));
    assert_eq!(written(&mut cluster, 2, &WriteOutcome::Written), [status(EIGHT)]);
    assert_eq!(written(&mut cluster, 3, &WriteOutcome::Written), [""; 0], "it was ordered");
    cluster.apply(published());
    assert_eq!(written(&mut cluster, 4, &WriteOutcome::Written), [""; 0], "it stands there");
    // A card breaks.
    report(&mut cluster, &device(8, 7));
    let seven = EIGHT.replace("800", "700").replace("64Gi", "56Gi");
    assert_eq!(written(&mut cluster, 5, &WriteOutcome::Written), [status(&seven)]);
    // All have.
    report(&mut cluster, &device(8, 0));
    let all = written(&mut cluster, 6, &WriteOutcome::Written);
    let patch: Value = serde_json::from_str(all[0].split_once(" a ").expect("a patch").1).expect("JSON");
    assert_eq!(all.len(), 1, "{all:?}");
    for list in ["allocatable", "capacity"] {
        let names = patch["status"][list].as_object().expect("amounts");
        assert!(names.values().all(Value::is_null) && names.len() == 8, "old and new names: {patch}");
    }
    cluster.apply(with_amounts("a", &[]));
    assert_eq!(written(&mut cluster, 7, &WriteOutcome::Written), [""; 0]);
}

#[test]
fn labels_of_the_device_come_to_the_node_and_another_vendor_has_no_common_name() {
    let mut cluster = cluster();
    let mut amd = device(1, 1);
    let labels = json!({GPU_VENDOR: "amd", "node.koordinator.sh/gpu-model": "MI300", "other": "x"});
    amd["metadata"] = json!({"labels": labels});
    report(&mut cluster, &amd);
    let all = written(&mut cluster, 1, &WriteOutcome::Written);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(!all[0].contains(r#""koordinator.sh/gpu""#), "{}", all[0]);
    let want = r#"patch nodes a {"metadata":{"labels":{"node.koordinator.sh/gpu-model":"MI300","node.koordinator.sh/gpu-vendor":"amd"}}}"#;
    assert_eq!(all[1], want);
    let labels = Labels::new([(GPU_VENDOR.into(), "amd".into()), (GPU_MODEL.into(), "MI300".into())]);
    cluster.apply(Node { labels, ..with_amounts("a", &[]) });
    assert_eq!(written(&mut cluster, 2, &WriteOutcome::Written).len(), 1, "the amounts were lost meanwhile");
}

#[test]
fn a_refused_write_is_tried_again_and_a_lost_one_at_the_next_look() {
    let mut cluster = cluster();
    report(&mut cluster, &device(8, 8));
    let refused = WriteOutcome::Refused { status: 403, message: "no".into() };
    assert_eq!(written(&mut cluster, 1, &refused).len(), 1);
    assert_eq!(written(&mut cluster, 2, &refused).len(), 0);
    assert_eq!(written(&mut cluster, 11, &WriteOutcome::Written).len(), 1);
    // Written, and never seen.
    assert_eq!(written(&mut cluster, 100, &WriteOutcome::Written).len(), 0);
    assert_eq!(written(&mut cluster, 1 + INTERVAL.as_secs(), &WriteOutcome::Written), [status(EIGHT)]);
    let state = cluster.view().state::<NodeResources>().expect("the state");
    let (_, entry) = state.shown().next().expect("a node");
    assert_eq!((entry.is_in_step(), entry.problem.as_deref()), (false, None));
}

#[test]
fn amounts_that_nobody_stands_for_are_taken_away() {
    let mut cluster = cluster();
    let amounts = [("koordinator.sh/rdma", 200), ("nvidia.com/gpu", 8), ("koordinator.sh/fpga", 100)];
    cluster.apply(with_amounts("a", &amounts));
    let gone = status(r#"{"koordinator.sh/rdma":null,"kubernetes.io/rdma":null}"#);
    assert_eq!(written(&mut cluster, 1, &WriteOutcome::Written), [gone]);
}
