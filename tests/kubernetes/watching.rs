//! Watches: lists, changes, deletes, unreadable objects, errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid::cluster::input::Input;
use pellucid::framework::{Plugin, PluginFactory, Registration};
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::ObjectKind;
use pellucid::model::custom::CustomKind;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use crate::mock::{Answer, Mock, failure, list, pod};

fn unreadable(name: &str) -> Value {
    let mut pod = pod(name, "u", None);
    pod["spec"]["containers"] = json!([{"resources": {"requests": {"cpu": "1x"}}}]);
    pod
}

pub(crate) fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

/// Renders an input as one line.
pub(crate) fn line(input: &Input) -> String {
    match input {
        Input::PodApplied(pod) => format!("applied {}", pod.key),
        Input::PodDeleted(key) => format!("deleted {key}"),
        Input::PodsReset { pods, quarantined } => {
            let pods: Vec<_> = pods.iter().map(|pod| pod.key.name.to_string()).collect();
            let bad: Vec<_> = quarantined.iter().map(|q| format!("{} at {}", q.name, q.field)).collect();
            format!("pods {pods:?} without {bad:?}")
        }
        Input::NodeApplied(node) => format!("applied node {}", node.name),
        Input::NodeDeleted(name) => format!("deleted node {name}"),
        Input::NodesReset { nodes, .. } => format!("{} nodes", nodes.len()),
        Input::ObjectApplied(object) => format!("applied {} {}", object.kind().as_str(), object.key().1),
        Input::ObjectDeleted(kind, key) => format!("deleted {} {}", kind.as_str(), key.1),
        Input::ObjectsReset { kind, objects, quarantined } => {
            let names: Vec<_> = objects.iter().map(|o| o.key().1.to_string()).collect();
            let bad: Vec<_> = quarantined.iter().map(|q| format!("{} at {}", q.name, q.field)).collect();
            format!("{} {names:?} without {bad:?}", kind.as_str())
        }
        Input::CustomApplied(_) | Input::CustomDeleted(..) | Input::CustomReset { .. } => {
            panic!("no plugin brings a kind")
        }
        Input::Quarantined(q) => format!("quarantined {} at {}", q.name, q.field),
        Input::Report(report) => format!("{report:?}"),
        Input::Leading(is_leading) => format!("leading {is_leading}"),
    }
}

/// Waits for an input, and renders it as one line.
pub(crate) async fn next(inputs: &mut Receiver<Input>) -> String {
    line(&inputs.recv().await.expect("an input"))
}

#[tokio::test(start_paused = true)]
async fn a_change_that_names_no_object_is_not_lost() {
    let mock = Mock::new();
    let lists = [list([]), list([pod("a", "u", None)])];
    mock.on("GET /api/v1/pods", lists.map(|list| Answer::Json(200, list)));
    let nonsense = event("ADDED", json!({"metadata": "not an object"}));
    mock.on("WATCH /api/v1/pods", [Answer::Watch(vec![nonsense]), Answer::Watch(Vec::new())]);
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let (_io, mut inputs) = mock.start_io(|_| {});
    for want in ["pods [] without []", "pods [\"a\"] without []"] {
        assert_eq!(next(&mut inputs).await, want);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_changes_and_deletes_arrive_and_an_unreadable_pod_stops_nothing() {
    let mock = Mock::new();
    mock.on(
        "GET /api/v1/pods",
        [
            Answer::Json(200, list([pod("a", "u", None), unreadable("bad"), pod("b", "u", Some("n"))])),
            Answer::Json(200, list([pod("c", "u", None)])),
        ],
    );
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    mock.on(
        "WATCH /api/v1/pods",
        [
            Answer::Watch(vec![
                event("MODIFIED", unreadable("a")),
                event("ADDED", pod("c", "u", None)),
                event("MODIFIED", pod("a", "u", None)),
                event("DELETED", pod("b", "u", None)),
                event(
                    "BOOKMARK",
                    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "12"}}),
                ),
                event("ERROR", gone),
            ]),
            Answer::Watch(Vec::new()),
        ],
    );
    // Nodes stay silent, so the order of inputs is that of the pods.
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let (io, mut inputs) = mock.start_io(|_| {});
    for want in [
        "pods [\"a\", \"b\"] without [\"bad at spec.containers[0].resources.requests.cpu\"]",
        "quarantined a at spec.containers[0].resources.requests.cpu",
        "applied ns/c",
        "applied ns/a",
        "deleted ns/b",
        "pods [\"c\"] without []",
    ] {
        assert_eq!(next(&mut inputs).await, want);
    }
    let report = io.watches.pods.report();
    assert_eq!((report.synced, report.lists, report.quarantined, report.errors), (true, 2, 2, 1));
    let error = report.last_error.expect("an error").0;
    assert_eq!(&*error, "watch ended by the server: 410 Expired: too old");
    assert!(!io.watches.are_synced());
    let query = &mock.seen("GET /api/v1/pods")[0].query;
    assert!(!query.contains("fieldSelector"), "pods that ended are watched too: {query}");
    assert_eq!(io.shutdown(std::time::Duration::from_secs(1)).await.aborted, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_tried_again_and_shown() {
    let mock = Mock::new();
    let node = json!({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2"}}});
    mock.on(
        "GET /api/v1/nodes",
        [
            failure(403, "Forbidden", "nodes is forbidden"),
            failure(500, "InternalError", "oops"),
            Answer::Json(200, list([node])),
        ],
    );
    let (io, mut inputs) = mock.start_io(|_| {});
    let mut lines = [next(&mut inputs).await, next(&mut inputs).await];
    lines.sort();
    assert_eq!(lines, ["1 nodes", "pods [] without []"]);
    let report = io.watches.nodes.report();
    assert_eq!((report.errors, report.lists), (2, 1));
    let error = report.last_error.expect("an error").0;
    assert_eq!(&*error, "list failed: 500 InternalError: oops");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_no_event_leads_to_a_new_list() {
    let mock = Mock::new();
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    mock.on(
        "WATCH /api/v1/pods",
        [
            Answer::Watch(vec![json!("nonsense"), event("ADDED", pod("a", "u", None))]),
            Answer::Watch(Vec::new()),
        ],
    );
    let (io, mut inputs) = mock.start_io(|_| {});
    assert_eq!(next(&mut inputs).await, "pods [] without []");
    mock.on("GET /api/v1/pods", [Answer::Json(200, list([pod("a", "u", None), pod("b", "u", None)]))]);
    assert_eq!(next(&mut inputs).await, "pods [\"a\", \"b\"] without []");
    assert_eq!((io.watches.pods.report().errors, io.watches.pods.report().lists), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn every_kind_is_listed_and_watched() {
    let mock = Mock::new();
    mock.serve_all();
    let (io, mut inputs) = mock.start_io(|_| {});
    let mut lists = BTreeSet::new();
    while lists.len() < 23 {
        lists.insert(next(&mut inputs).await);
    }
    let want = ObjectKind::ALL.map(|kind| format!("{} [] without []", kind.as_str()));
    assert!(want.iter().all(|line| lists.contains(line)), "{lists:?}");
    mock.wait("WATCH", 23).await;
    assert!(io.watches.are_synced());
    assert_eq!(io.watches.iter().count(), 23);
}

#[tokio::test(start_paused = true)]
async fn objects_of_other_kinds_arrive_as_pods_do() {
    let mock = Mock::silent();
    let claim = |name: &str, mode: &str| {
        json!({"metadata": {"namespace": "ns", "name": name, "resourceVersion": "9"},
            "spec": {"accessModes": [mode]}})
    };
    let path = "/api/v1/persistentvolumeclaims";
    let items = [claim("a", "ReadWriteOnce"), claim("bad", "Never")];
    mock.on(&format!("GET {path}"), [Answer::Json(200, list(items))]);
    mock.on(
        &format!("WATCH {path}"),
        [Answer::Watch(vec![
            event("ADDED", claim("b", "ReadWriteMany")),
            event("MODIFIED", claim("b", "Never")),
            event("DELETED", claim("a", "ReadWriteOnce")),
        ])],
    );
    let (io, mut inputs) = mock.start_io(|_| {});
    for want in [
        "PersistentVolumeClaim [\"a\"] without [\"bad at spec.accessModes[0]\"]",
        "applied PersistentVolumeClaim b",
        "quarantined b at spec.accessModes[0]",
        "deleted PersistentVolumeClaim a",
    ] {
        assert_eq!(next(&mut inputs).await, want);
    }
    assert!(io.watches.of(ObjectKind::PersistentVolumeClaim).is_synced() && !io.watches.are_synced());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_has_no_objects_until_it_is() {
    let mock = Mock::silent();
    let path = "/apis/storage.k8s.io/v1/csidrivers";
    let driver = json!({"metadata": {"name": "d"}});
    let absent = || failure(404, "NotFound", "the server could not find the requested resource");
    mock.on(&format!("GET {path}"), [absent(), absent(), Answer::Json(200, list([driver]))]);
    mock.on(&format!("WATCH {path}"), [Answer::Watch(Vec::new())]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let status = io.watches.of(ObjectKind::CsiDriver).clone();
    assert_eq!(next(&mut inputs).await, "CSIDriver [] without []");
    mock.wait(&format!("GET {path}"), 2).await;
    let report = status.report();
    assert_eq!((report.synced, report.unserved, report.lists, report.errors), (true, true, 0, 0));
    assert_eq!(next(&mut inputs).await, "CSIDriver [\"d\"] without []");
    assert!(!status.report().unserved);
}

static NEEDED: CustomKind = CustomKind {
    group: "example.com",
    version: "v1",
    kind: "Needed",
    plural: "needed",
    qualified: "Needed.example.com",
    is_namespaced: true,
    is_required: true,
    is_decisive: true,
    verbs: &[],
    pod: None,
    decode: |_| Ok(Arc::new(())),
    encode: |_| Value::Null,
};

static LIKED: CustomKind = CustomKind {
    group: "example.com",
    version: "v1",
    kind: "Liked",
    plural: "liked",
    qualified: "Liked.example.com",
    is_namespaced: true,
    is_required: false,
    is_decisive: false,
    verbs: &[],
    pod: None,
    decode: |_| Ok(Arc::new(())),
    encode: |_| Value::Null,
};

/// A plugin that brings kinds and does nothing.
struct Plain;

impl Plugin for Plain {
    fn name(&self) -> &'static str {
        "Plain"
    }
}

#[tokio::test(start_paused = true)]
async fn a_required_kind_of_a_plugin_is_waited_for_until_it_is_served() {
    let mock = Mock::silent();
    let path = "/apis/example.com/v1/needed";
    let absent = || failure(404, "NotFound", "the server could not find the requested resource");
    mock.on(&format!("GET {path}"), [absent(), absent(), Answer::Json(200, list([]))]);
    mock.on(&format!("WATCH {path}"), [Answer::Watch(Vec::new())]);
    let plain = Registration::without_args("Plain", "Brings kinds", || Plain);
    let registry: [Box<dyn PluginFactory>; 1] = [Box::new(plain.with_kinds([&NEEDED, &LIKED]))];
    let (io, mut inputs) = mock.start_io(|config| config.decoder = Decoder::of(&registry));
    let report = |name: &str| {
        let (_, status) = io.watches.iter().find(|(kind, _)| *kind == name).expect("it is watched");
        status.report()
    };
    for (want, is_synced) in [("Liked.example.com", false), ("Needed.example.com", true)] {
        let Input::CustomReset { kind, objects, .. } = inputs.recv().await.expect("an input") else {
            panic!("not a list of a plugin's kind")
        };
        assert_eq!((kind.0.qualified, objects.len()), (want, 0));
        assert_eq!(report("Needed.example.com").synced, is_synced);
    }
    let (needed, liked) = (report("Needed.example.com"), report("Liked.example.com"));
    assert_eq!((needed.unserved, needed.errors), (false, 2));
    assert_eq!((liked.unserved, liked.errors), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_served_are_an_error() {
    let mock = Mock::new();
    mock.on("GET /api/v1/pods", [failure(404, "NotFound", "no pods here")]);
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let (io, _inputs) = mock.start_io(|_| {});
    mock.wait("GET /api/v1/pods", 2).await;
    assert_eq!((io.watches.pods.is_synced(), io.watches.pods.report().errors > 0), (false, true));
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_named() {
    let mock = Mock::new();
    let path = "GET /apis/storage.k8s.io/v1/csinodes";
    mock.on(path, [failure(403, "Forbidden", "no")]);
    let (io, _inputs) = mock.start_io(|_| {});
    mock.wait(path, 2).await;
    let report = io.watches.of(ObjectKind::CsiNode).report();
    let want =
        "list failed: 403 Forbidden: no; the missing right: list csinodes in API group \"storage.k8s.io\"";
    assert_eq!((report.synced, &*report.last_error.expect("an error").0), (false, want));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_no_decision_reads_is_left_out_while_it_is_forbidden() {
    let mock = Mock::silent();
    let path = "/apis/example.com/v1/liked";
    let forbidden = || failure(403, "Forbidden", "no");
    let liked = json!({"metadata": {"namespace": "ns", "name": "a"}});
    mock.on(&format!("GET {path}"), [forbidden(), forbidden(), Answer::Json(200, list([liked]))]);
    mock.on(&format!("WATCH {path}"), [Answer::Watch(Vec::new())]);
    // One that decisions read is waited for.
    mock.on("GET /apis/example.com/v1/needed", [forbidden()]);
    let plain = Registration::without_args("Plain", "Brings kinds", || Plain);
    let registry: [Box<dyn PluginFactory>; 1] = [Box::new(plain.with_kinds([&NEEDED, &LIKED]))];
    let (io, mut inputs) = mock.start_io(|config| config.decoder = Decoder::of(&registry));
    let report = |name: &str| {
        let (_, status) = io.watches.iter().find(|(kind, _)| *kind == name).expect("it is watched");
        status.report()
    };
    for (n, errors, unserved) in [(0, 1, true), (1, 2, false)] {
        let Input::CustomReset { kind, objects, .. } = inputs.recv().await.expect("an input") else {
            panic!("not a list of a plugin's kind")
        };
        let liked = report("Liked.example.com");
        assert_eq!((kind.0.qualified, objects.len()), ("Liked.example.com", n));
        assert_eq!((liked.synced, liked.unserved, liked.errors), (true, unserved, errors));
        let error = liked.last_error.expect("an error").0;
        let right = "the missing right: list liked in API group \"example.com\"";
        assert!(error.ends_with(right), "{error}");
    }
    assert!(!report("Needed.example.com").synced);
}
