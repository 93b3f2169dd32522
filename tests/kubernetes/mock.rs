//! A scripted API server that records its requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http::{StatusCode, header};
use parking_lot::Mutex;
use pellucid::cluster::input::Input;
use pellucid::kubernetes::{Clock, ClusterIo, ClusterIoConfig, Connection};
use pellucid::model::effect::{
    BindOrder, BindOutcome, ConditionText, Effect, EffectId, EffectReport, EventOrder, EventType, EvictOrder,
    EvictOutcome, GroupStatusOrder, ObjectOrder, ObjectPart, ObjectRef, ObjectWrite, PodRef, Precondition,
    StatusOrder, WriteOutcome,
};
use pellucid::model::gang::{GroupCondition, GroupPhase, GroupStatus};
use pellucid::model::{GangKey, Now, ObjectKind, Pages, Pod, PodKey};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{Notify, watch};
use tower::ServiceExt as _;

/// Paths of the kinds other than Pods and Nodes.
pub(crate) const OTHERS: [&str; 21] = [
    "/api/v1/namespaces",
    "/api/v1/services",
    "/api/v1/replicationcontrollers",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.incubator.k8s.io/v1alpha1/podgroups",
    "/apis/scheduling.sigs.dev/v1alpha2/podgroups",
    "/apis/scheduling.incubator.k8s.io/v1alpha1/queues",
    "/apis/scheduling.sigs.dev/v1alpha2/queues",
    "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    "/apis/scheduling.k8s.io/v1alpha2/workloads",
];

/// Path that lists the versions of Kubernetes' own PodGroups.
pub(crate) const NATIVE: &str = "/apis/scheduling.k8s.io";

/// A scripted response.
#[derive(Clone)]
pub(crate) enum Answer {
    Json(u16, Value),
    /// 429 with a `Retry-After` in seconds and without a `Status`.
    Later(u64),
    /// Never responds.
    Hang,
    /// 201 once the gate is opened.
    Gate(Arc<Notify>),
    /// A watch that sends these events and then stays silent.
    Watch(Vec<Value>),
    /// A watch that sends a bookmark at this interval.
    Bookmarks(Duration),
    /// A watch that breaks after this time.
    Breaks(Duration),
}

/// A fault of the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Accepts requests and never responds; open watches are silent.
    Hang,
    /// Refuses connections and breaks existing ones.
    Refuse,
    /// Responds to everything with 429 and `Retry-After: 3600`; open watches are silent.
    Later,
    /// Responds to everything with 503 and breaks open watches.
    Unavailable,
    /// Watches end as soon as they begin.
    EndAtOnce,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) what: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Script {
    answers: BTreeMap<String, VecDeque<Answer>>,
    seen: Vec<Seen>,
}

/// The scripted server.
#[derive(Clone, Default)]
pub(crate) struct Mock {
    script: Arc<Mutex<Script>>,
    changed: Arc<Notify>,
    fault: watch::Sender<Option<Fault>>,
    cut: Arc<Notify>,
}

impl Mock {
    /// Makes a server with empty lists of pods and nodes. Other kinds are silent, so the order of inputs is that of
    /// pods and nodes.
    pub(crate) fn new() -> Self {
        let mock = Self::default();
        for path in OTHERS {
            mock.on(&format!("GET {path}"), [Answer::Hang]);
        }
        mock.on(&format!("GET {NATIVE}"), [Answer::Hang]);
        for path in ["/api/v1/pods", "/api/v1/nodes"] {
            mock.serve(path, []);
        }
        mock
    }

    /// Makes a server in which pods and nodes are silent too.
    pub(crate) fn silent() -> Self {
        let mock = Self::new();
        for path in ["/api/v1/pods", "/api/v1/nodes"] {
            mock.on(&format!("GET {path}"), [Answer::Hang]);
        }
        mock
    }

    /// Sets the versions of the group `scheduling.k8s.io`, and the resources of each.
    pub(crate) fn discover(&self, versions: &[(&str, &[&str])]) {
        let names: Vec<_> = versions.iter().map(|(version, _)| json!({"version": version})).collect();
        for (version, resources) in versions {
            let resources: Vec<_> = resources.iter().map(|name| json!({"name": name})).collect();
            let page = json!({"kind": "APIResourceList", "resources": resources});
            self.on(&format!("GET {NATIVE}/{version}"), [Answer::Json(200, page)]);
        }
        self.on(
            &format!("GET {NATIVE}"),
            [Answer::Json(200, json!({"kind": "APIGroup", "versions": names}))],
        );
    }

    /// Serves every kind with empty lists.
    pub(crate) fn serve_all(&self) {
        for path in OTHERS {
            self.serve(path, []);
        }
        self.discover(&[("v1", &["priorityclasses"]), ("v1alpha2", &["podgroups", "workloads"])]);
    }

    /// Serves a list, and then a silent watch.
    pub(crate) fn serve(&self, path: &str, items: impl IntoIterator<Item = Value>) {
        self.on(&format!("GET {path}"), [Answer::Json(200, list(items))]);
        self.on(&format!("WATCH {path}"), [Answer::Watch(Vec::new())]);
    }

    /// Sets the responses to a kind of request, such as `GET /api/v1/pods`; the last one repeats. `WATCH` is a watch from a
    /// version, `STREAM` one that begins with all objects.
    pub(crate) fn on(&self, what: &str, answers: impl IntoIterator<Item = Answer>) {
        self.script.lock().answers.insert(what.into(), answers.into_iter().collect());
    }

    /// Returns the requests with this prefix, in order.
    pub(crate) fn seen(&self, what: &str) -> Vec<Seen> {
        self.script.lock().seen.iter().filter(|seen| seen.what.starts_with(what)).cloned().collect()
    }

    /// Waits for this many requests with this prefix.
    pub(crate) async fn wait(&self, what: &str, count: usize) -> Vec<Seen> {
        loop {
            let seen = self.seen(what);
            if seen.len() >= count {
                return seen;
            }
            self.changed.notified().await;
        }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    pub(crate) fn client(&self) -> kube::Client {
        let (fault, router) = (self.fault.subscribe(), self.router());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (fault, router) = (*fault.borrow(), router.clone());
            async move {
                match fault {
                    Some(Fault::Refuse) => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
                    _ => router.oneshot(request.map(Body::new)).await.map_err(std::io::Error::other),
                }
            }
        });
        kube::Client::new(service, "default")
    }

    /// Sets the fault of the server.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        self.fault.send_replace(fault);
    }

    /// Breaks the open watches of [`Answer::Watch`].
    pub(crate) fn cut_watches(&self) {
        self.cut.notify_waiters();
    }

    /// Starts the I/O rooms against this server.
    pub(crate) fn start_io(&self, change: impl FnOnce(&mut ClusterIoConfig)) -> (ClusterIo, Receiver<Input>) {
        let connection = Connection::of_clients(self.client(), self.client());
        let mut config = ClusterIoConfig::new(connection, clock(), "test");
        change(&mut config);
        // The smallest possible channel: there is constant back-pressure, and nothing may be lost.
        let (inputs, received) = channel(1);
        (ClusterIo::start(config, inputs), received)
    }
}

async fn answer(State(mock): State<Mock>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
    let query = head.uri.query().unwrap_or_default().to_owned();
    let is_stream = query.contains("sendInitialEvents=true");
    let method = match (is_stream, query.contains("watch=true")) {
        (true, _) => "STREAM",
        (false, true) => "WATCH",
        (false, false) => head.method.as_str(),
    };
    let what = format!("{method} {}", head.uri.path());
    if is_stream && mock.fault.borrow().is_none() && !mock.script.lock().answers.contains_key(&what) {
        // As a server that does not know streamed lists; tests that are not about them need not know of it.
        let message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return json_response(422, &status(422, "Invalid", message));
    }
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let answer = {
        let mut script = mock.script.lock();
        let (what, content_type) = (what.clone(), content_type.unwrap_or_default().to_owned());
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let answer = match script.answers.get_mut(&what) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        script.seen.push(Seen { what, query, content_type, body });
        answer
    };
    mock.changed.notify_one();
    let fault = *mock.fault.borrow();
    match fault {
        Some(Fault::Hang) => return std::future::pending().await,
        Some(Fault::Later) => return later(3600),
        Some(Fault::Unavailable) => return json_response(503, &status(503, "ServiceUnavailable", "down")),
        Some(Fault::EndAtOnce) if method == "WATCH" => return ().into_response(),
        Some(Fault::EndAtOnce | Fault::Refuse) | None => {}
    }
    match answer {
        Some(Answer::Json(code, body)) => json_response(code, &body),
        Some(Answer::Later(seconds)) => later(seconds),
        Some(Answer::Hang) => std::future::pending().await,
        Some(Answer::Gate(gate)) => {
            gate.notified().await;
            json_response(201, &json!({}))
        }
        Some(Answer::Watch(events)) => {
            let silence = stream::once(broken(mock.fault.subscribe(), mock.cut.clone()));
            Body::from_stream(lines(events).chain(silence)).into_response()
        }
        Some(Answer::Breaks(after)) => {
            let end = async move {
                tokio::time::sleep(after).await;
                Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
            };
            Body::from_stream(stream::once(end)).into_response()
        }
        Some(Answer::Bookmarks(every)) => {
            let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"resourceVersion": "11"}}});
            let bookmarks = stream::unfold((), move |()| {
                let line = Ok::<_, std::io::Error>(Bytes::from(format!("{bookmark}\n")));
                async move {
                    tokio::time::sleep(every).await;
                    Some((line, ()))
                }
            });
            Body::from_stream(bookmarks).into_response()
        }
        None => json_response(404, &status(404, "NotFound", &format!("no answer to {what}"))),
    }
}

fn lines(events: Vec<Value>) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send {
    stream::iter(events.into_iter().map(|event| Ok(Bytes::from(format!("{event}\n")))))
}

/// Ends a watch when the fault breaks its connection, or when it is cut.
async fn broken(
    mut fault: watch::Receiver<Option<Fault>>,
    cut: Arc<Notify>,
) -> Result<Bytes, std::io::Error> {
    let breaks =
        |fault: &Option<Fault>| matches!(fault, Some(Fault::Refuse | Fault::Unavailable | Fault::EndAtOnce));
    let broken = async {
        if fault.wait_for(breaks).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = broken => {}
        () = cut.notified() => {}
    }
    Err(std::io::ErrorKind::ConnectionReset.into())
}

fn later(seconds: u64) -> Response {
    let headers = [(header::RETRY_AFTER, seconds.to_string())];
    (StatusCode::TOO_MANY_REQUESTS, headers, "too many requests").into_response()
}

fn json_response(code: u16, body: &Value) -> Response {
    let code = StatusCode::from_u16(code).expect("a status");
    (code, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Returns a clock that follows the (paused) time of the runtime.
pub(crate) fn clock() -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || {
        let monotonic = start.elapsed();
        Now { monotonic, wall: Duration::from_secs(1_800_000_000) + monotonic }
    })
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code})
}

pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Json(code, status(code, reason, message))
}

pub(crate) fn ok() -> Answer {
    Answer::Json(200, json!({}))
}

pub(crate) fn list(items: impl IntoIterator<Item = Value>) -> Value {
    let items: Vec<_> = items.into_iter().collect();
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": items})
}

/// Returns a pod as the API server shows it.
pub(crate) fn pod(name: &str, uid: &str, node: Option<&str>) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "9"},
        "spec": {"nodeName": node, "schedulerName": "pellucid"}})
}

pub(crate) fn pod_ref(name: &str) -> PodRef {
    PodRef { key: PodKey::new("ns", name), uid: format!("uid-{name}").into() }
}

pub(crate) fn bind(id: u64, name: &str) -> Effect {
    let PodRef { key, uid } = pod_ref(name);
    let mut names = Pages::default();
    names.set(0, "n1".into());
    Effect::Bind(BindOrder {
        id: EffectId(id),
        pod: Arc::new(Pod { key, uid, ..Pod::default() }),
        node: names.in_page(0),
        marks: None,
        attempt: 1,
    })
}

pub(crate) fn condition(name: &str, message: &str) -> Effect {
    let condition = Some(ConditionText { reason: "Unschedulable", message: message.into() });
    Effect::Status(StatusOrder { pod: pod_ref(name), condition, nomination: None })
}

pub(crate) fn nomination(name: &str, node: Option<&str>) -> Effect {
    let nomination = Some(node.map(Into::into));
    Effect::Status(StatusOrder { pod: pod_ref(name), condition: None, nomination })
}

pub(crate) fn evict(id: u64, name: &str) -> Effect {
    let (victim, preemptor) = (pod_ref(name), pod_ref("preemptor"));
    Effect::Evict(EvictOrder { id: EffectId(id), victim, preemptor, message: "make room".into() })
}

/// Makes an order of a plugin.
pub(crate) fn object(id: u64, write: ObjectWrite) -> Effect {
    Effect::Object(ObjectOrder { id: EffectId(id), pod: Some(pod_ref("p")), plugin: "Test", write })
}

/// Makes the reference to an object of the core group.
pub(crate) fn core_object(plural: &'static str, namespace: Option<&str>, name: &str) -> ObjectRef {
    let namespace = namespace.map(Into::into);
    ObjectRef { group: "", version: "v1", plural, namespace, name: name.into() }
}

pub(crate) fn bind_volume(id: u64) -> Effect {
    let write = ObjectWrite::Patch {
        object: core_object("persistentvolumes", None, "pv"),
        part: ObjectPart::Main,
        precondition: Precondition::resource_version("7".into()),
        patch: Arc::new(json!({"spec": {"claimRef": {"uid": "uid-c"}}})),
    };
    object(id, write)
}

pub(crate) fn select_node(id: u64) -> Effect {
    let write = ObjectWrite::Patch {
        object: core_object("persistentvolumeclaims", Some("ns"), "c"),
        part: ObjectPart::Main,
        precondition: Precondition::resource_version("8".into()),
        patch: Arc::new(json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}})),
    };
    object(id, write)
}

pub(crate) fn group_status(kind: ObjectKind, name: &str, running: u32, message: Option<&str>) -> Effect {
    let kind_of_condition =
        if kind == ObjectKind::PodGroupNative { "PodGroupScheduled" } else { "Unschedulable" };
    let condition = message.map(|message| GroupCondition {
        kind: kind_of_condition,
        is_true: false,
        reason: "Unschedulable".into(),
        message: message.into(),
    });
    let phase = Some(GroupPhase::Scheduling);
    let status = GroupStatus { phase, running, condition, ..GroupStatus::default() };
    let (group, uid) = (GangKey::new("ns", name), format!("uid-{name}").into());
    Effect::GroupStatus(GroupStatusOrder { kind, group, uid, status })
}

pub(crate) fn event(name: &str, note: &str) -> Effect {
    Effect::Event(EventOrder {
        object: None,
        pod: pod_ref(name),
        kind: EventType::Warning,
        reason: "FailedScheduling",
        action: "Scheduling",
        note: note.into(),
    })
}

/// Waits for the next report that a bind order is settled; skips other inputs.
pub(crate) async fn bind_done(inputs: &mut Receiver<Input>) -> (EffectId, BindOutcome) {
    loop {
        if let Input::Report(EffectReport::BindDone { id, outcome, .. }) =
            inputs.recv().await.expect("an input")
        {
            return (id, outcome);
        }
    }
}

/// Waits for the next report that an evict order is settled.
pub(crate) async fn evict_done(inputs: &mut Receiver<Input>) -> (EffectId, EvictOutcome) {
    loop {
        if let Input::Report(EffectReport::EvictDone { id, outcome, .. }) =
            inputs.recv().await.expect("an input")
        {
            return (id, outcome);
        }
    }
}

/// Waits for the next report that an object order is settled.
pub(crate) async fn object_done(inputs: &mut Receiver<Input>) -> (EffectId, WriteOutcome) {
    loop {
        if let Input::Report(EffectReport::ObjectDone { id, outcome }) =
            inputs.recv().await.expect("an input")
        {
            return (id, outcome);
        }
    }
}
