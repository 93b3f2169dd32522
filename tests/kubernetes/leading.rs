//! What a new holder of the Lease waits for before it leads.

use std::time::Duration;

use pellucid::cluster::input::Input;
use pellucid::kubernetes::ClusterIo;
use pellucid::kubernetes::lease::election::Terms;
use pellucid::kubernetes::lease::elector::ElectionConfig;
use pellucid::kubernetes::lease::requests::LeaseName;
use pellucid::kubernetes::watches::status::RetryCause;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use crate::mock::{Answer, Mock, failure, list, pod};
use crate::watching::{event, line};

const SECOND: Duration = Duration::from_secs(1);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/pellucid/leases";

/// Serves a Lease that nobody holds yet.
pub(crate) fn serve_lease(mock: &Mock) {
    let lease =
        |version: &str| json!({"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": "me"}});
    mock.on(&format!("GET {LEASES}/pellucid"), [failure(404, "NotFound", "x")]);
    mock.on(&format!("POST {LEASES}"), [Answer::Json(201, lease("1"))]);
    mock.on(&format!("PUT {LEASES}/pellucid"), [Answer::Json(200, lease("2"))]);
}

/// Returns how an instance takes part.
pub(crate) fn election() -> ElectionConfig {
    let terms = Terms {
        identity: "me".into(),
        lease_duration: 15 * SECOND,
        renew_deadline: 10 * SECOND,
        retry_period: 2 * SECOND,
    };
    ElectionConfig { lease: LeaseName { namespace: "pellucid".into(), name: "pellucid".into() }, terms }
}

/// Takes inputs until this instance leads, and returns those about pods.
async fn until_it_leads(inputs: &mut Receiver<Input>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let input = inputs.recv().await.expect("an input");
        if matches!(input, Input::Leading(true)) {
            return lines;
        }
        if matches!(input, Input::PodsReset { .. } | Input::PodApplied(_)) {
            lines.push(line(&input));
        }
    }
}

fn at_version(mut list: Value, version: &str) -> Value {
    list["metadata"]["resourceVersion"] = version.into();
    list
}

fn behind(io: &ClusterIo) -> u64 {
    io.watches.pods.report().retries[RetryCause::Behind as usize]
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_may_have_missed_a_binding_is_listed_again_before() {
    let mock = Mock::new();
    mock.serve_all();
    serve_lease(&mock);
    // The watch never says that another one has bound the pod, though the version of the kind has moved on.
    let bound = at_version(list([pod("p", "u", Some("n"))]), "20");
    mock.on("GET /api/v1/pods", [Answer::Json(200, list([pod("p", "u", None)])), Answer::Json(200, bound)]);
    // The Lease is free only once the first lists are there.
    mock.on(&format!("GET {LEASES}/pellucid"), [Answer::Hang, failure(404, "NotFound", "x")]);
    let (io, mut inputs) = mock.start_io(|config| config.election = Some(election()));
    let lines = until_it_leads(&mut inputs).await;
    assert_eq!(lines, ["pods [\"p\"] without []", "pods [\"p\"] without []"]);
    assert_eq!((behind(&io), io.watches.nodes.report().lists), (1, 1), "nodes are not written");
    let report = io.leadership.as_ref().expect("it takes part").report();
    assert!(report.hand_over.is_none_or(|time| time < SECOND), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_passes_the_version_is_not_listed_again() {
    let mock = Mock::new();
    mock.serve_all();
    serve_lease(&mock);
    mock.on(&format!("GET {LEASES}/pellucid"), [Answer::Hang, failure(404, "NotFound", "x")]);
    let mut bound = pod("p", "u", Some("n"));
    bound["metadata"]["resourceVersion"] = "20".into();
    mock.on(
        "GET /api/v1/pods",
        [Answer::Json(200, list([pod("p", "u", None)])), Answer::Json(200, at_version(list([]), "20"))],
    );
    mock.on("WATCH /api/v1/pods", [Answer::Watch(vec![event("MODIFIED", bound)])]);
    let (io, mut inputs) = mock.start_io(|config| config.election = Some(election()));
    let lines = until_it_leads(&mut inputs).await;
    assert_eq!(lines, ["pods [\"p\"] without []", "applied ns/p"]);
    assert_eq!((behind(&io), io.watches.pods.report().lists), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_released_after_the_writes_and_not_when_one_was_aborted() {
    for (answer, is_released) in [(Answer::Json(201, json!({})), true), (Answer::Hang, false)] {
        let mock = Mock::new();
        mock.serve_all();
        serve_lease(&mock);
        mock.on("POST /api/v1/namespaces/ns/pods/p/binding", [answer]);
        let (io, mut inputs) = mock.start_io(|config| config.election = Some(election()));
        until_it_leads(&mut inputs).await;
        tokio::spawn(async move { while inputs.recv().await.is_some() {} });
        io.queues.push_all([crate::mock::bind(1, "p")]);
        mock.wait("POST /api/v1/namespaces/ns/pods/p/binding", 1).await;
        let right = io.leadership.as_ref().expect("it takes part").right.clone();
        io.shutdown(SECOND).await;
        assert_eq!(right.limit(SECOND), None);
        let puts = mock.seen("PUT");
        let released = puts.iter().filter(|put| put.body["spec"]["holderIdentity"] == "").count();
        assert_eq!(released, usize::from(is_released));
        assert!(puts.iter().filter(|put| put.body["spec"]["leaseDurationSeconds"] == 1).count() == released);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_the_lease_and_no_write_waits_beyond_it() {
    let mock = Mock::new();
    mock.serve_all();
    serve_lease(&mock);
    let binding = "POST /api/v1/namespaces/ns/pods/p/binding";
    mock.on(binding, [Answer::Hang]);
    // The Lease is acquired and never renewed.
    mock.on(&format!("GET {LEASES}/pellucid"), [failure(404, "NotFound", "x"), Answer::Hang]);
    mock.on(&format!("PUT {LEASES}/pellucid"), [Answer::Hang]);
    let (mut io, mut inputs) = mock.start_io(|config| {
        config.election = Some(election());
        config.write_timeout = 60 * SECOND;
    });
    until_it_leads(&mut inputs).await;
    let received = tokio::spawn(async move {
        let mut leading = Vec::new();
        while let Some(input) = inputs.recv().await {
            leading.extend(if let Input::Leading(is_leading) = input { Some(is_leading) } else { None });
        }
        leading
    });
    let begun = tokio::time::Instant::now();
    io.queues.push_all([crate::mock::bind(1, "p")]);
    mock.wait(binding, 1).await;
    let why = io.ended().await;
    assert!(
        why.contains("the lease pellucid/pellucid was lost: it could not be renewed within 10s"),
        "{why}"
    );
    assert!(begun.elapsed() <= 10 * SECOND, "{:?}", begun.elapsed());
    let right = io.leadership.as_ref().expect("it took part").right.clone();
    io.queues.push_all([crate::mock::bind(2, "q")]);
    while right.refused() == 0 || right.cut_off() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!((right.cut_off(), mock.seen("POST /api/v1/namespaces").len()), (1, 1));
    io.shutdown(SECOND).await;
    drop(received);
}
