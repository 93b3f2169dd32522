//! Watches of gang kinds: kinds that appear and disappear, the version of the native ones, pods that have ended.

use pellucid::cluster::input::Input;
use pellucid::kubernetes::ClusterIo;
use pellucid::model::ObjectKind;
use serde_json::{Value, json};

use crate::mock::{Answer, Mock, NATIVE, failure, list, pod};
use crate::watching::{event, next};

const X: &str = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

fn absent() -> Answer {
    failure(404, "NotFound", "the server could not find the requested resource")
}

fn group(name: &str) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": "u", "resourceVersion": "9"},
        "spec": {"minMember": 2, "schedulingPolicy": {"gang": {"minCount": 2}}}})
}

fn report(io: &ClusterIo, kind: ObjectKind) -> (bool, bool, u64) {
    let report = io.watches.of(kind).report();
    (report.synced, report.unserved, report.errors)
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_be_installed_and_removed_while_the_watch_runs() {
    let mock = Mock::silent();
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let items = list([group("g")]);
    mock.on(
        &format!("GET {X}"),
        [absent(), absent(), Answer::Json(200, items.clone()), absent(), Answer::Json(200, items)],
    );
    let ended = vec![event("MODIFIED", group("g")), event("ERROR", gone)];
    mock.on(&format!("WATCH {X}"), [Answer::Watch(ended), Answer::Watch(Vec::new())]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let start = tokio::time::Instant::now();
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.x-k8s.io [] without []");
    mock.wait(&format!("GET {X}"), 2).await;
    assert_eq!(report(&io, ObjectKind::PodGroupX), (true, true, 0));
    assert_eq!(start.elapsed().as_secs(), 30, "a slow question");
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.x-k8s.io [\"g\"] without []");
    assert!(!report(&io, ObjectKind::PodGroupX).1);
    assert_eq!(next(&mut inputs).await, "applied PodGroup.scheduling.x-k8s.io g");
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.x-k8s.io [] without []", "removed");
    assert!(report(&io, ObjectKind::PodGroupX).1);
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.x-k8s.io [\"g\"] without []", "and back");
}

#[tokio::test(start_paused = true)]
async fn the_version_of_native_groups_is_found_by_discovery() {
    let mock = Mock::silent();
    // Kubernetes 1.35: an unsupported version.
    mock.discover(&[("v1", &["priorityclasses"]), ("v1alpha1", &["podgroups", "workloads"])]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let mut lists = [next(&mut inputs).await, next(&mut inputs).await];
    lists.sort();
    let none = ["PodGroup.scheduling.k8s.io [] without []", "Workload.scheduling.k8s.io [] without []"];
    assert_eq!(lists, none);
    assert_eq!(report(&io, ObjectKind::PodGroupNative), (true, true, 0));
    // Enabled, in 1.37; Workloads stay disabled.
    mock.serve(&format!("{NATIVE}/v1beta1/podgroups"), [group("g")]);
    mock.discover(&[("v1", &["priorityclasses"]), ("v1beta1", &["podgroups", "podgroups/status"])]);
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.k8s.io [\"g\"] without []");
    assert_eq!(report(&io, ObjectKind::PodGroupNative), (true, false, 0));
    assert!(report(&io, ObjectKind::WorkloadNative).1);
    assert_eq!(mock.seen(&format!("GET {NATIVE}/v1alpha1")).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_upgraded_is_followed_to_the_new_version_without_losing_a_group() {
    let mock = Mock::silent();
    let path = |version: &str| format!("{NATIVE}/{version}/podgroups");
    mock.on(&format!("GET {}", path("v1alpha2")), [Answer::Json(200, list([group("g")])), absent()]);
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    mock.on(&format!("WATCH {}", path("v1alpha2")), [Answer::Watch(vec![event("ERROR", gone)])]);
    mock.discover(&[("v1alpha2", &["podgroups"])]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let mut lists = [next(&mut inputs).await, next(&mut inputs).await];
    lists.sort();
    assert_eq!(lists[0], "PodGroup.scheduling.k8s.io [\"g\"] without []");
    mock.serve(&path("v1beta1"), [group("g"), group("h")]);
    mock.discover(&[("v1beta1", &["podgroups"])]);
    assert_eq!(next(&mut inputs).await, "PodGroup.scheduling.k8s.io [\"g\", \"h\"] without []");
    let (synced, unserved, errors) = report(&io, ObjectKind::PodGroupNative);
    assert!(synced && !unserved && errors > 0);
}

#[tokio::test(start_paused = true)]
async fn discovery_that_fails_is_tried_again_and_shown() {
    let mock = Mock::silent();
    let page = Answer::Json(200, json!({"versions": []}));
    mock.on(
        &format!("GET {NATIVE}"),
        [failure(403, "Forbidden", "no"), failure(403, "Forbidden", "no"), page],
    );
    let (io, mut inputs) = mock.start_io(|_| {});
    next(&mut inputs).await;
    next(&mut inputs).await;
    let errors = [ObjectKind::PodGroupNative, ObjectKind::WorkloadNative]
        .map(|kind| io.watches.of(kind).report().last_error);
    let texts: Vec<_> = errors.into_iter().flatten().map(|(text, _)| text).collect();
    assert_eq!(&*texts[0], "discovery failed: 403 Forbidden: no");
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_arrive_and_those_in_no_gang_stay_out_of_lists() {
    let mock = Mock::new();
    mock.on("GET /api/v1/nodes", [Answer::Hang]);
    let ended = |name: &str, phase: &str, gang: Option<&str>| {
        let mut pod = pod(name, "u", Some("n"));
        pod["status"] = json!({"phase": phase});
        if let Some(gang) = gang {
            pod["metadata"]["labels"] = json!({"scheduling.x-k8s.io/pod-group": gang});
        }
        pod
    };
    let items = [
        ended("a", "Running", None),
        ended("b", "Succeeded", None),
        ended("c", "Failed", Some("g")),
        ended("d", "Failed", None),
    ];
    mock.on("GET /api/v1/pods", [Answer::Json(200, list(items))]);
    mock.on("WATCH /api/v1/pods", [Answer::Watch(vec![event("MODIFIED", ended("a", "Succeeded", None))])]);
    let (_io, mut inputs) = mock.start_io(|_| {});
    assert_eq!(next(&mut inputs).await, "pods [\"a\", \"c\"] without []");
    let Some(Input::PodApplied(pod)) = inputs.recv().await else { panic!("a change") };
    assert!(pod.phase.is_terminal());
}
