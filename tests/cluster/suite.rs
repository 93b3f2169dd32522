//! The target of the suite: a client, what was created there, and how it goes away again.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config, ResourceExt};
use parking_lot::Mutex;
use pellucid::sandbox::{self, Handle, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::PATIENCE;
use crate::common::running::node;

/// Namespace of the suite.
pub(crate) const NAMESPACE: &str = "pellucid-suite";
/// Scheduler name of its pods, which no pod of others has.
pub(crate) const SCHEDULER: &str = "pellucid-suite";
/// Label of all its objects, and key of the taint of its nodes.
pub(crate) const MARK: &str = "pellucid.dev/cluster-suite";
/// Its nodes, which have two CPUs each.
pub(crate) const NODES: [&str; 3] = ["pellucid-suite-a", "pellucid-suite-b", "pellucid-suite-c"];
/// Lets the suite run where others have pods or nodes.
const SHARED: &str = "PELLUCID_CLUSTER_SHARED";
/// Pause between two looks at an object.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a namespace may take to go by itself.
const NAMESPACE_GOES: Duration = Duration::from_secs(10);
const CLUSTER_SCOPED: [&str; 8] = [
    "Namespace",
    "Node",
    "PersistentVolume",
    "StorageClass",
    "PriorityClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
];

/// A cluster, and what the suite made there.
#[derive(Clone)]
pub(crate) struct Suite {
    pub(crate) client: Client,
    pub(crate) config: Config,
    /// Whether `KUBECONFIG` named it.
    pub(crate) is_real: bool,
    /// Kinds, as `version/Kind`, and names in the order of creation.
    created: Arc<Mutex<Vec<(String, String)>>>,
    /// Keeps the sandbox running.
    _sandbox: Option<Arc<Handle>>,
}

impl Suite {
    /// Connects to the cluster of `KUBECONFIG`, or to a new sandbox. Panics where others have pods or nodes.
    pub(crate) async fn open() -> Self {
        let _is_set_already = rustls::crypto::ring::default_provider().install_default();
        let is_real = std::env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty());
        let (config, sandbox) = if is_real {
            (Config::infer().await.expect("KUBECONFIG names a readable file"), None)
        } else {
            let config = sandbox::Config { kubelet: None, ..sandbox::Config::default() };
            let handle = Sandbox::start(config).await.expect("a sandbox");
            (handle.kube_config(), Some(Arc::new(handle)))
        };
        let client = Client::try_from(config.clone()).expect("a client");
        let suite = Self { client, config, is_real, created: Arc::default(), _sandbox: sandbox };
        suite.refuse_foreign_workloads().await;
        suite
    }

    async fn refuse_foreign_workloads(&self) {
        let others = ListParams::default().labels(&format!("!{MARK}"));
        let pods = Api::<Pod>::all(self.client.clone()).list(&others).await.expect("pods can be listed");
        let nodes = Api::<Node>::all(self.client.clone()).list(&others).await.expect("nodes can be listed");
        let (pods, nodes) = (pods.items.len(), nodes.items.len());
        let is_allowed = std::env::var(SHARED).is_ok_and(|value| value == "1");
        assert!(
            pods + nodes == 0 || is_allowed,
            "{} has {pods} pods and {nodes} nodes that this suite did not make; it runs beside them with {SHARED}=1",
            self.config.cluster_url
        );
    }

    /// Returns an API client for a kind, such as `v1/Pod`.
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (version, kind) = kind.rsplit_once('/').expect("version/Kind");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if CLUSTER_SCOPED.contains(&kind) {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    /// Creates an object with the suite's label, in its namespace if its kind has one.
    pub(crate) async fn create(&self, mut object: Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let kind = format!("{}/{}", text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        object["metadata"]["labels"][MARK] = "true".into();
        let fields = object["metadata"].as_object_mut().expect("metadata");
        fields.remove("namespace");
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let made = self.api(&kind).create(&PostParams::default(), &object).await;
        made.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
        self.created.lock().push((kind, name));
    }

    /// Changes an object, or its status.
    pub(crate) async fn patch(&self, kind: &str, name: &str, change: &Value) {
        let (api, parameters) = (self.api(kind), PatchParams::default());
        let done = if change.get("status").is_some() {
            api.patch_status(name, &parameters, &Patch::Merge(change)).await
        } else {
            api.patch(name, &parameters, &Patch::Merge(change)).await
        };
        done.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
    }

    /// Reads an object; null when it does not exist.
    pub(crate) async fn read(&self, kind: &str, name: &str) -> Value {
        json!(self.api(kind).get_opt(name).await.unwrap_or_else(|error| panic!("{kind} {name}: {error}")))
    }

    /// Waits until an object satisfies a condition.
    pub(crate) async fn wait(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        match self.within(PATIENCE, kind, name, is_so).await {
            Ok(object) => object,
            Err(last) => panic!("{kind} {name}: {what} did not come about; last seen {last:#}"),
        }
    }

    /// Waits this long for an object to satisfy a condition; fails with what was seen last.
    pub(crate) async fn within(
        &self,
        patience: Duration,
        kind: &str,
        name: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value, Value> {
        let end = Instant::now() + patience;
        loop {
            let object = self.read(kind, name).await;
            if is_so(&object) {
                return Ok(object);
            }
            if Instant::now() >= end {
                return Err(object);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns whether the server has a version of a group.
    pub(crate) async fn serves(&self, version: &str) -> bool {
        let groups = self.client.list_api_groups().await.expect("discovery");
        groups.groups.iter().flat_map(|group| &group.versions).any(|one| one.group_version == version)
    }

    /// Creates the namespace, rights, definitions and nodes.
    pub(crate) async fn set_up(&self) {
        let named = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": NAMESPACE}});
        self.create(named("v1", "Namespace")).await;
        self.create(named("v1", "ServiceAccount")).await;
        self.create_rights().await;
        self.create_definitions().await;
        for name in NODES {
            let mut made = node(name, "z", 2);
            made["metadata"]["labels"][MARK] = "true".into();
            made["spec"] = json!({"taints": [{"key": MARK, "effect": "NoSchedule"}]});
            self.create(made).await;
        }
    }

    /// Creates the roles of `deploy/` that the scheduler works with, under names of the suite.
    async fn create_rights(&self) {
        let text = include_str!("../../deploy/base/rbac.yaml");
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
        let elsewhere = |object: &Value| object["metadata"]["namespace"] == "kube-system";
        for mut object in documents.into_iter().filter(|object| !elsewhere(object)) {
            object["metadata"]["name"] = NAMESPACE.into();
            if object.get("roleRef").is_some() {
                object["roleRef"]["name"] = NAMESPACE.into();
                object["subjects"][0]["name"] = NAMESPACE.into();
                object["subjects"][0]["namespace"] = NAMESPACE.into();
            }
            self.create(object).await;
        }
    }

    /// Creates the definitions of gangs' kinds that the server does not have.
    async fn create_definitions(&self) {
        const KIND: &str = "apiextensions.k8s.io/v1/CustomResourceDefinition";
        for text in pellucid_api::definitions::DEFINITIONS {
            let object = pellucid::sandbox::definition(text);
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            if !self.read(KIND, &name).await.is_null() {
                continue;
            }
            self.create(object).await;
            let is_served = |object: &Value| {
                let conditions = object["status"]["conditions"].as_array();
                conditions.is_some_and(|all| {
                    all.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
                })
            };
            self.wait(KIND, &name, "established", is_served).await;
        }
    }

    /// Deletes what the suite created, the newest first, and what schedulers wrote beside it. Panics if something stays.
    pub(crate) async fn take_down(&self) {
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        for kind in ["coordination.k8s.io/v1/Lease", "events.k8s.io/v1/Event"] {
            let all = self.api(kind).list(&ListParams::default()).await.expect("listed");
            self.created.lock().extend(all.items.iter().map(|one| (kind.to_owned(), one.name_any())));
        }
        let created: Vec<_> = self.created.lock().drain(..).rev().collect();
        for (kind, name) in &created {
            // Claims and volumes keep finalizers until a controller takes them.
            if kind.contains("PersistentVolume") && !self.read(kind, name).await.is_null() {
                self.patch(kind, name, &json!({"metadata": {"finalizers": null}})).await;
            }
            match self.api(kind).delete(name, &at_once).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                done => _ = done.unwrap_or_else(|error| panic!("{kind} {name}: {error}")),
            }
            if kind == "v1/Namespace" {
                self.end_namespace().await;
            }
        }
        for (kind, name) in &created {
            self.wait(kind, name, "gone", Value::is_null).await;
        }
    }

    /// Ends the deletion of the namespace where no controller does; everything in it is deleted.
    async fn end_namespace(&self) {
        let Err(mut object) = self.within(NAMESPACE_GOES, "v1/Namespace", NAMESPACE, Value::is_null).await
        else {
            return;
        };
        object["spec"]["finalizers"] = json!([]);
        let path = format!("/api/v1/namespaces/{NAMESPACE}/finalize");
        let request = http::Request::put(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a request");
        self.client.request::<Value>(request).await.expect("finalized");
    }
}
