//! Starts and stops a sandbox, and lets a program control it without HTTP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::BoxFuture;
use pellucid_api::definitions::koordinator;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Part};
use crate::clock::Clock;
use crate::controllers;
use crate::errors::ApiError;
use crate::faults::Faults;
use crate::kinds::annotations::devices::{Devices, describe};
use crate::kinds::groups::{self, Gangs, definition};
use crate::kinds::meta;
use crate::koordlet::metrics::Reports;
use crate::koordlet::{devices, topologies};
use crate::kubelet;
use crate::options::Options;
use crate::requests::connection::{Connections, Cut, CuttableListener};
use crate::requests::server::{Server, handle};
use crate::users::User;
use crate::write_log::{LoggedWrite, WriteLog};

/// Delays of the pod lifecycle on nodes.
#[derive(Clone, Copy, Debug)]
pub struct Kubelet {
    /// Time from binding to Running.
    pub start_delay: Duration,
    /// Longest time that a deleted pod takes to end; a shorter grace period is respected.
    pub stop_delay: Duration,
}

impl Default for Kubelet {
    fn default() -> Self {
        Self { start_delay: Duration::from_millis(100), stop_delay: Duration::from_secs(1) }
    }
}

/// Configuration for [`Sandbox::start`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Whether the address may be reachable from other machines. There is no authentication.
    pub beyond_loopback: bool,
    /// The sandbox's clock.
    pub clock: Clock,
    /// The pod lifecycle. With `None`, bound pods stay Pending and deleted ones Terminating.
    pub kubelet: Option<Kubelet>,
    /// Time between two reports of what each node uses, as NodeMetrics; at least a second. With `None`, or without
    /// the pod lifecycle, there are none.
    pub node_metrics: Option<Duration>,
    /// Whether nodes whose annotation describes a machine report it as NodeResourceTopologies. Initial nodes with such an
    /// annotation turn it on.
    pub node_topologies: bool,
    /// Whether nodes whose annotation describes devices report them as Devices, with amounts of the nodes. Initial nodes with
    /// such an annotation turn it on.
    pub devices: bool,
    /// Devices of the initial nodes that offer `nvidia.com/gpu` and have no such annotation, in its form.
    pub gpus: Option<String>,
    /// Whether the controllers run: workloads, disruption budgets, volumes, garbage collection and the protection of
    /// PodGroups. Without them a deleted native PodGroup keeps its finalizer, as on an API server without a controller
    /// manager.
    pub controllers: bool,
    /// How many changes of each table the history holds for watches.
    pub history: usize,
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Which kinds of gangs are served.
    pub gangs: Gangs,
    /// How many requests that write are kept for [`Handle::writes`].
    pub write_log: usize,
    /// Users that TokenReview and SubjectAccessReview know. The sandbox itself lets everybody do everything.
    pub users: Vec<User>,
    /// Objects to create at the start, in this order.
    pub objects: Vec<Value>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            beyond_loopback: false,
            clock: Clock::real(),
            kubelet: Some(Kubelet::default()),
            node_metrics: None,
            node_topologies: false,
            devices: false,
            gpus: None,
            controllers: true,
            history: 32_768,
            seed: 1,
            gangs: Gangs::default(),
            write_log: 0,
            users: Vec::new(),
            objects: Vec::new(),
        }
    }
}

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Other machines could reach the address, and `beyond_loopback` is not set.
    #[error(
        "refusing to listen on {address}: whoever reaches this address can change and delete everything, without a \
         password"
    )]
    NotLoopback {
        /// The refused address.
        address: SocketAddr,
    },
    /// The address cannot be bound, for example because it is in use.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The devices of initial nodes cannot be read.
    #[error("devices {form:?}: {why}")]
    Gpus {
        /// The short form.
        form: String,
        /// What is wrong.
        why: String,
    },
    /// An initial object was rejected.
    #[error("object {kind} {name:?} was refused: {message}")]
    Object {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// Why it was rejected.
        message: String,
    },
}

/// An in-memory API server.
#[derive(Debug)]
pub struct Sandbox;

impl Sandbox {
    /// Starts a sandbox on the current tokio runtime. It stops when the handle is dropped.
    pub fn start(config: Config) -> BoxFuture<'static, Result<Handle, StartError>> {
        Box::pin(Self::start_inner(config))
    }

    async fn start_inner(mut config: Config) -> Result<Handle, StartError> {
        if !config.beyond_loopback && !config.listen.ip().to_canonical().is_loopback() {
            return Err(StartError::NotLoopback { address: config.listen });
        }
        if let Some(form) = &config.gpus {
            Devices::parse(form).map_err(|why| StartError::Gpus { form: form.clone(), why })?;
            config.objects.iter_mut().for_each(|object| describe(object, form));
        }
        let refuse = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let shutdown = CancellationToken::new();
        let api = Api::new(
            config.clock.clone(),
            config.seed,
            config.history,
            config.gangs.native,
            shutdown.clone(),
        );
        let connections = Connections::new(config.clock.clone());
        let server = Arc::new(Server {
            api,
            users: config.users,
            faults: Faults::new(config.clock),
            writes: WriteLog::new(config.write_log),
            address,
            shutdown: shutdown.clone(),
            connections: connections.clone(),
        });
        let mut handle_of_it = Handle { server: server.clone(), tasks: Vec::new() };
        for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            handle_of_it
                .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?;
        }
        let mut missing = if config.gangs.custom { groups::definitions() } else { Vec::new() };
        missing.extend(config.node_metrics.map(|_| definition(koordinator::NODE_METRICS)));
        let has_machines = config.node_topologies || config.objects.iter().any(topologies::describes_machine);
        missing.extend(has_machines.then(|| definition(koordinator::NODE_RESOURCE_TOPOLOGIES)));
        let has_devices = config.devices || config.objects.iter().any(devices::describes_devices);
        missing.extend(has_devices.then(|| definition(koordinator::DEVICES)));
        missing.retain(|definition| !config.objects.iter().any(|object| brings(object, definition)));
        missing.into_iter().try_for_each(|definition| handle_of_it.create(definition))?;
        if config.controllers {
            handle_of_it.tasks.push(tokio::spawn(controllers::run(server.clone())));
            handle_of_it.tasks.push(tokio::spawn(controllers::volumes::run(server.clone())));
        }
        if let Some(kubelet) = config.kubelet {
            let reports = config.node_metrics.map(|every| Reports::new(&server, every));
            handle_of_it.tasks.push(tokio::spawn(kubelet::run(server.clone(), kubelet, reports)));
        }
        if has_machines {
            handle_of_it.tasks.push(tokio::spawn(topologies::run(server.clone())));
        }
        if has_devices {
            handle_of_it.tasks.push(tokio::spawn(devices::run(server.clone())));
        }
        for object in config.objects {
            handle_of_it.create(object)?;
        }
        let router = Router::new().fallback(handle).with_state(server);
        let service = router.into_make_service_with_connect_info::<Cut>();
        let serve = axum::serve(CuttableListener::new(listener, address, connections), service)
            .with_graceful_shutdown(shutdown.cancelled_owned());
        handle_of_it.tasks.push(tokio::spawn(async move {
            // The accept loop does not end by itself and reports no errors.
            let _ = serve.await;
        }));
        Ok(handle_of_it)
    }
}

/// Returns whether an object, or an item of a list, has the kind and name of a definition.
fn brings(object: &Value, definition: &Value) -> bool {
    let is_same =
        object["kind"] == definition["kind"] && object["metadata"]["name"] == definition["metadata"]["name"];
    is_same || object["items"].as_array().into_iter().flatten().any(|item| brings(item, definition))
}

/// A running sandbox. Dropping it stops the sandbox.
pub struct Handle {
    pub(super) server: Arc<Server>,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("address", &self.server.address).finish_non_exhaustive()
    }
}

impl Handle {
    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Returns a client configuration for it.
    pub fn kube_config(&self) -> kube::Config {
        kube::Config::new(self.url().parse().expect("a socket address makes a URL"))
    }

    /// Returns its clock; a manual one can be advanced.
    pub fn clock(&self) -> &Clock {
        &self.server.api.clock
    }

    /// Returns its fault rules.
    pub fn faults(&self) -> &Faults {
        &self.server.faults
    }

    /// Returns the newest requests that write, in the order in which they arrived.
    pub fn writes(&self) -> Vec<LoggedWrite> {
        self.server.writes.all()
    }

    /// Simulates a restart of the server: all connections close, connecting is refused for `time` on the sandbox's
    /// clock, then the same data is served on the same port. The controllers and the kubelet keep running. After
    /// [`Handle::compact`], watches cannot resume, as after a restart that lost the watch cache.
    pub fn restart(&self, time: Duration) {
        self.server.connections.restart(time);
    }

    /// Returns the revision of the newest change.
    pub fn revision(&self) -> u64 {
        self.server.api.store.revision()
    }

    /// Drops all history and raises the revision to at least `revision`. Older watches and lists get a 410.
    pub fn compact(&self, revision: u64) {
        self.server.api.store.compact(revision);
    }

    /// Returns the number of objects of a kind, named by plural and group: `pods`, `jobs.batch`.
    pub fn count(&self, table: &str) -> usize {
        self.server.api.store.len(table)
    }

    /// Creates an object without HTTP, as a seed. The object keeps its status. A List creates all of its items.
    pub fn create(&self, object: Value) -> Result<(), StartError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind_name) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = meta::text(&object, "name").to_owned();
        let refused =
            |message: String| StartError::Object { kind: kind_name.clone(), name: name.clone(), message };
        if kind_name == "List" || kind_name.ends_with("List") && object["items"].is_array() {
            let items = object["items"].as_array().cloned().unwrap_or_default();
            return items.into_iter().try_for_each(|item| self.create(item));
        }
        let api = &self.server.api;
        let kind = api.kinds.load().find_kind(&version, &kind_name).cloned();
        let Some(kind) = kind else {
            return Err(refused(format!("no kind {kind_name:?} in version {version:?} is served")));
        };
        let namespace = match meta::text(&object, "namespace") {
            _ if !kind.namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        let mut object = object.clone();
        for key in ["resourceVersion", "uid", "managedFields"] {
            meta::metadata(&mut object).remove(key);
        }
        let status = object["status"].clone();
        let why = |error: Box<ApiError>| refused(error.message.clone());
        let written = api.create(&kind, namespace, object, &Options::default()).map_err(why)?;
        if kind.subresource("status").is_some() && status.is_object() {
            let keep = |old: &Value| {
                let mut new = old.clone();
                json_patch::merge(&mut new["status"], &status);
                Ok(new)
            };
            api.update(&kind, &written.object.key, Part::Status, &Options::default(), keep).map_err(why)?;
        }
        Ok(())
    }

    /// Stops the server, its watches and its controllers, and waits for them.
    pub async fn stop(mut self) {
        self.server.shutdown.cancel();
        for task in self.tasks.drain(..) {
            // A panic has been logged already.
            let _ = task.await;
        }
    }

    /// Waits until the sandbox ends.
    pub async fn ended(&self) {
        self.server.shutdown.cancelled().await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.server.shutdown.cancel();
    }
}
