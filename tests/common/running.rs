//! Runs a sandbox and a scheduler in this process, for end-to-end tests.
//!
//! Tests read the scheduler over its REST API, and the cluster through a watch of all pods and plain API calls.
//! Nothing sleeps: a read is repeated when the state has a newer generation, a pod is checked when it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use pellucid::app::clock;
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::kubernetes::Connection;
use pellucid::model::Now;
use pellucid::sandbox::{Clock, Config, Handle, Kubelet, Sandbox};
use pellucid::{config, plugins};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{LOOK_EVERY, PATIENCE, client};

/// All pods as the watch reports them, by name for namespace `default`, else by `namespace/name`.
pub type Pods = BTreeMap<String, Pod>;

/// The scheduler's time in seconds, advanced by the test.
#[derive(Clone, Default)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    /// Advances the time by seconds; returns the new time.
    pub fn advance(&self, seconds: u64) -> u64 {
        self.0.fetch_add(seconds, Ordering::SeqCst) + seconds
    }

    /// Returns the scheduler's clock. It starts at the same time as the sandbox's.
    pub fn clock(&self) -> clock::Clock {
        let seconds = Arc::clone(&self.0);
        Arc::new(move || {
            let monotonic = Duration::from_secs(seconds.load(Ordering::SeqCst));
            Now { monotonic, wall: Duration::from_secs(START_SECONDS) + monotonic }
        })
    }
}

/// When the sandbox's clock starts, also in seconds since 1970.
const START: &str = "2026-01-01T00:00:00Z";
const START_SECONDS: u64 = 1_767_225_600;

/// A sandbox, a scheduler connected to it, and a watch of its pods.
pub struct Running {
    /// The API server.
    pub sandbox: Handle,
    /// A client of the sandbox that does not retry.
    pub client: Client,
    /// The scheduler.
    pub instance: Instance,
    hand: Option<Hand>,
    pods: Arc<Mutex<Pods>>,
    changed: watch::Receiver<u64>,
    watching: tokio::task::JoinHandle<()>,
}

/// Starts a sandbox and a scheduler. The sandbox's clock stands still; pods run at once and end only when the clock
/// advances.
pub async fn start(objects: Vec<Value>) -> Running {
    start_with(objects, None, None).await
}

/// Does the same with a configuration, and optionally with the scheduler's clock advanced by the test.
pub async fn start_with(objects: Vec<Value>, configuration: Option<&str>, hand: Option<Hand>) -> Running {
    let registry = plugins::registry();
    let configuration = match configuration {
        Some(text) => config::parse(text, "the test's", &registry).unwrap_or_else(|wrong| panic!("{wrong}")),
        None => config::default(&registry).expect("the default configuration"),
    };
    start_configured(objects, configuration, hand).await
}

/// Does the same in real time, so that faults with a duration end on their own.
pub async fn start_on_real_time(objects: Vec<Value>) -> Running {
    let configuration = config::default(&plugins::registry()).expect("the default configuration");
    start_on(Clock::real(), objects, configuration, None).await
}

/// Does the same with a parsed configuration.
pub async fn start_configured(
    objects: Vec<Value>,
    configuration: config::Configuration,
    hand: Option<Hand>,
) -> Running {
    start_on(Clock::manual(START.parse().expect("a time")), objects, configuration, hand).await
}

/// Starts a sandbox; returns it and a client that does not retry.
pub async fn sandbox(config: Config) -> (Handle, Client) {
    let sandbox = Sandbox::start(config).await.expect("a sandbox");
    let mut settings = sandbox.kube_config();
    settings.default_retry = false;
    (sandbox, Client::try_from(settings).expect("a client"))
}

/// Returns the parts of a scheduler that connects to an API server with these settings and has the default configuration.
pub async fn parts(settings: kube::Config) -> InstanceConfig {
    let registry = Arc::new(plugins::registry());
    let connection = Connection::with_config(settings, "test", PATIENCE).await;
    InstanceConfig {
        connection: connection.expect("a connection"),
        configuration: config::default(&registry).expect("the default configuration"),
        registry,
        listen: ([127, 0, 0, 1], 0).into(),
        secure: None,
        seed: 7,
        shadow_of: None,
        log: None,
        clock: clock::system(),
        consistency: Default::default(),
        watches: Default::default(),
        git_commit: "",
        decisions: None,
    }
}

async fn start_on(
    clock: Clock,
    objects: Vec<Value>,
    configuration: config::Configuration,
    hand: Option<Hand>,
) -> Running {
    let kubelet = Some(Kubelet { start_delay: Duration::ZERO, stop_delay: Duration::from_secs(3600) });
    let (sandbox, client) = sandbox(Config { objects, clock, kubelet, ..Config::default() }).await;
    let clock = hand.as_ref().map_or_else(clock::system, Hand::clock);
    let parts = InstanceConfig { configuration, clock, ..parts(sandbox.kube_config()).await };
    let instance = Instance::start(parts).await.expect("an instance");
    let pods = Arc::default();
    let (changes, changed) = watch::channel(0);
    let watching = tokio::spawn(follow(client.clone(), Arc::clone(&pods), changes));
    Running { sandbox, client, instance, hand, pods, changed, watching }
}

fn key_of(pod: &Pod) -> String {
    match pod.namespace().as_deref() {
        None | Some("default") => pod.name_any(),
        Some(namespace) => format!("{namespace}/{}", pod.name_any()),
    }
}

async fn follow(client: Client, pods: Arc<Mutex<Pods>>, changes: watch::Sender<u64>) {
    let api: Api<Pod> = Api::all(client);
    let mut events = Box::pin(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => pods.lock().clear(),
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => {
                pods.lock().insert(key_of(&pod), pod);
            }
            Ok(watcher::Event::Delete(pod)) => _ = pods.lock().remove(&key_of(&pod)),
            Ok(watcher::Event::InitDone) => {}
            // The server of a failed test is gone; its runtime ends tasks that yield.
            Err(_) => tokio::task::yield_now().await,
        }
        changes.send_modify(|n| *n += 1);
    }
}

impl Running {
    /// Creates objects directly in the sandbox, bypassing HTTP.
    pub fn create(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.sandbox.create(object).expect("created");
        }
    }

    /// Advances the sandbox's clock by seconds.
    pub fn pass(&self, seconds: u64) {
        self.sandbox.clock().advance(Duration::from_secs(seconds));
    }

    /// Advances the scheduler's clock by seconds, when the test controls it. The scheduler sleeps until a deadline
    /// computed before, so a change to an object that no decision reads wakes it.
    pub async fn let_pass(&self, seconds: u64) {
        let hand = self.hand.as_ref().expect("the scheduler's time is moved by hand");
        let now = hand.advance(seconds);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"seconds": now.to_string()}}}));
        let namespaces = self.api("v1/Namespace");
        namespaces.patch("default", &PatchParams::default(), &patch).await.expect("patched");
    }

    /// Returns an API client for a kind, such as `v1/PersistentVolume`.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (version, kind) = kind.rsplit_once('/').expect("version/Kind");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match kind {
            "Namespace" | "Node" | "PersistentVolume" | "StorageClass" | "PriorityClass" | "Reservation"
            | "Device" => Api::all_with(self.client.clone(), &resource),
            _ => Api::default_namespaced_with(self.client.clone(), &resource),
        }
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    /// Deletes a pod without a grace period.
    pub async fn kill(&self, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.api("v1/Pod").delete(name, &now).await.expect("deleted");
    }

    /// Changes the status of a pod, as another program would.
    pub async fn set_status(&self, pod: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api("v1/Pod").patch_status(pod, &PatchParams::default(), &patch).await.expect("patched");
    }

    /// Waits until an object satisfies a condition. Its JSON is null while it does not exist.
    pub async fn object(&self, kind: &str, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Box::pin(watcher::watch_object(self.api(kind), name));
        let mut last = Value::Null;
        loop {
            match tokio::time::timeout(PATIENCE, seen.next()).await {
                Ok(Some(Ok(object))) => {
                    last = json!(object);
                    if wanted(&last) {
                        return last;
                    }
                }
                Ok(Some(Err(_))) => {}
                Ok(None) | Err(_) => panic!("{kind} {name}: {what} did not come about; last seen {last:#}"),
            }
        }
    }

    /// Waits for an event about a pod with this reason and these words.
    pub async fn event(&self, pod: &str, reason: &str, words: &str) {
        let mut events = Box::pin(watcher(self.api("events.k8s.io/v1/Event"), watcher::Config::default()));
        let mut seen = Vec::new();
        loop {
            match tokio::time::timeout(PATIENCE, events.next()).await {
                Ok(Some(Ok(watcher::Event::Apply(event) | watcher::Event::InitApply(event)))) => {
                    let event = &event.data;
                    let note = event["note"].as_str().unwrap_or_default();
                    if event["regarding"]["name"] == pod && event["reason"] == reason && note.contains(words)
                    {
                        return;
                    }
                    seen.push(format!("{} {}: {note}", event["regarding"]["name"], event["reason"]));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => panic!("no event {reason} of {pod} with {words:?} among {seen:#?}"),
            }
        }
    }

    /// Waits until the pods of the API server satisfy `look`; returns what it found.
    pub async fn pods<T>(&mut self, what: &str, look: impl Fn(&Pods) -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            self.changed.borrow_and_update();
            if let Some(found) = look(&self.pods.lock()) {
                return found;
            }
            if tokio::time::timeout_at(deadline, self.changed.changed()).await.is_err() {
                let shown = |(name, pod): (&String, &Pod)| {
                    let status = pod.status.clone().unwrap_or_default();
                    format!(
                        "{name} on {:?}, nominated {:?}, deleted {:?}, {:?}",
                        node_of(pod),
                        status.nominated_node_name,
                        pod.metadata.deletion_timestamp.is_some(),
                        message(pod)
                    )
                };
                let all: Vec<String> = self.pods.lock().iter().map(shown).collect();
                panic!("{what} did not come about; the pods are {all:#?}");
            }
        }
    }

    /// Waits until one pod satisfies a condition.
    pub async fn pod(&mut self, name: &str, what: &str, wanted: impl Fn(&Pod) -> bool) -> Pod {
        let what = format!("{name}: {what}");
        self.pods(&what, |pods| pods.get(name).filter(|p| wanted(p)).cloned()).await
    }

    /// Waits until a pod is bound; returns its node.
    pub async fn bound(&mut self, name: &str) -> String {
        let pod = self.pod(name, "bound", |p| node_of(p).is_some()).await;
        node_of(&pod).unwrap_or_default().to_owned()
    }

    /// Creates a pod in namespace `default` and waits until it is bound, also as the REST API shows it; returns its node.
    pub async fn place(&mut self, pod: Value) -> String {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        self.create([pod]);
        let node = self.bound(&name).await;
        let path = format!("/apis/v1/explain/pods/default/{name}");
        self.wait(&path, "the pod is placed", |body| body["verdict"] == "placed");
        node
    }

    /// Waits until the PodScheduled condition of a pod contains these words; returns its message.
    pub async fn told(&mut self, name: &str, words: &str) -> String {
        let has = |p: &Pod| message(p).is_some_and(|m| m.contains(words));
        let pod = self.pod(name, words, has).await;
        message(&pod).unwrap_or_default().to_owned()
    }

    /// Reads a path of the REST API.
    pub fn read(&self, path: &str) -> Value {
        let reply = client::get(self.instance.address, path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends a `PUT` as `curl --data` does.
    pub fn put(&self, path: &str, body: &str) -> client::Reply {
        client::put(self.instance.address, path, body)
    }

    /// Reads a path as text, in any format.
    pub fn text(&self, path: &str) -> String {
        client::get(self.instance.address, path).text().to_owned()
    }

    /// Returns the status code of a path that may not exist.
    pub fn status_of(&self, path: &str) -> u16 {
        client::get(self.instance.address, path).status
    }

    /// Waits until a condition holds that no generation of the snapshot reflects, by polling.
    pub async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let asked = async {
            while !holds() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{what}: did not come about"));
    }

    /// Sends JSON in a `POST`.
    pub fn post(&self, path: &str, body: &Value) -> client::Reply {
        client::post(self.instance.address, path, body)
    }

    /// Reads a path again with every newer generation until its body satisfies a condition. The condition must depend
    /// on the body alone; otherwise a newer generation may never come (see [`Running::until`]).
    pub fn wait(&self, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        client::wait(self.instance.address, path, what, wanted)
    }

    /// Returns `/metrics`.
    pub fn metrics(&self) -> String {
        client::get(self.instance.address, "/metrics").text().to_owned()
    }

    /// Returns the value of a sample of `/metrics`, given its name with labels.
    pub fn metric(&self, sample: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        let line = line.unwrap_or_else(|| panic!("no sample {sample} in {text}"));
        line.trim().parse().expect("a number")
    }

    /// Stops the watch, the scheduler and the sandbox.
    pub async fn stop(self) {
        self.watching.abort();
        self.instance.stop().await;
        self.sandbox.stop().await;
    }
}

/// Returns the node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Returns the node that a pod is nominated to.
pub fn nominated(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref()
}

/// Returns the message of a pod's PodScheduled condition while it is False.
pub fn message(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?.message.as_deref()
}

/// Returns whether a pod is being deleted.
pub fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Makes a node in a zone.
pub fn node(name: &str, zone: &str, cpu: u32) -> Value {
    let amounts = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone
        }},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Makes a pod of ours that requests CPU.
pub fn pod(name: &str, milli_cpu: u32) -> Value {
    let requests = json!({"cpu": format!("{milli_cpu}m")});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "schedulerName": "pellucid", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        },
    })
}

/// Sets a field of a pod's spec.
pub fn with(mut pod: Value, field: &str, value: Value) -> Value {
    pod["spec"][field] = value;
    pod
}

/// Makes a PriorityClass.
pub fn priority_class(name: &str, value: i32, policy: &str) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
        "value": value, "preemptionPolicy": policy
    })
}
