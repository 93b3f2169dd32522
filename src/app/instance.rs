//! A running scheduler: the scheduling thread, the I/O with the cluster, and the REST server.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use pellucid_cluster::Input;
use pellucid_config::{Configuration, LeaderElection};
use pellucid_cycle::Registry;
use pellucid_cycle::Scheduler;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::Settings;
use pellucid_http::{BuildError, Limits, Parts, Renderer, ServeError, Server, TlsError, Version};
use pellucid_kubernetes::decode::Decoder;
use pellucid_kubernetes::lease::election::Terms;
use pellucid_kubernetes::lease::elector::ElectionConfig;
use pellucid_kubernetes::lease::requests::LeaseName;
use pellucid_kubernetes::{ClusterIo, ClusterIoConfig, Connection, WatchLimits};
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;
use pellucid_queue::QueueLimits;
use pellucid_recording::switches::Switches;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::access::{self, SecureServing};
use crate::clock::Clock;
use crate::consistency::ConsistencyConfig;
use crate::consistency::sweeper::Sweeper;
use crate::core_loop::{CoreLoop, InitialLists};
use crate::health::Health;
use crate::log::telemetry::LogControl;
use crate::metrics::resources;
use crate::metrics::{ClusterIoViews, Metrics};
use crate::progress::Progress;
use crate::quantiles::Durations;
use crate::rest::flags::Flags;
use crate::rest::routes::{self, Sources};
use crate::traces::{CoreTraces, Traces};
use crate::trends::sampler::Sampler;

/// Capacity of the input channel. When it is full, the watches stop reading.
const INPUTS_WAITING: usize = 16_384;
/// How long shutdown waits for writes in progress.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Configuration for [`Instance::start`].
pub struct InstanceConfig {
    /// Clients of the API server.
    pub connection: Connection,
    /// Profiles and limits.
    pub configuration: Configuration,
    /// Factories of the available plugins.
    pub registry: Registry,
    /// Loopback address of the REST server; port 0 takes any free one. Not used with `secure`.
    pub listen: SocketAddr,
    /// Serves HTTPS to users of the cluster instead.
    pub secure: Option<SecureServing>,
    /// Seed that orders nodes of equal score.
    pub seed: u64,
    /// Shadow mode: the scheduler name whose pods are decided on, without any write to the cluster.
    pub shadow_of: Option<String>,
    /// Runtime settings of the log, if there is one.
    pub log: Option<Arc<LogControl>>,
    /// The scheduler's clock.
    pub clock: Clock,
    /// When the state is compared with the API server's lists.
    pub consistency: ConsistencyConfig,
    /// Time and size limits of lists, watches and probes.
    pub watches: WatchLimits,
    /// The commit that the program is built from, for `/version`; empty when that is not known.
    pub git_commit: &'static str,
    /// Collects the duration of every decision. It grows without bound, so it is only for runs that end.
    pub decisions: Option<Arc<Durations>>,
}

/// Why an instance did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The REST server cannot listen on its address.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The registered routes contradict each other.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The operating system refused to start the thread.
    #[error("cannot start the scheduling thread: {0}")]
    Thread(std::io::Error),
}

/// A running scheduler.
pub struct Instance {
    /// Address of the REST server, with the actual port.
    pub address: SocketAddr,
    /// SHA-256 fingerprint of the server's certificate; `None` for plain HTTP.
    pub fingerprint: Option<String>,
    /// The tasks that read from and write to the cluster.
    pub io: ClusterIo,
    snapshot: Arc<ArcSwap<Snapshot>>,
    published: watch::Receiver<u64>,
    stop_server: CancellationToken,
    stop_core: CancellationToken,
    core_ended: oneshot::Receiver<String>,
    server: tokio::task::JoinHandle<()>,
}

impl Instance {
    /// Starts everything on the current runtime, without traces.
    pub fn start(config: InstanceConfig) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::start_traced(config, None)
    }

    /// Starts everything on the current runtime. With `traces`, attempts, Bindings and requests are traced.
    pub fn start_traced(
        config: InstanceConfig,
        traces: Option<Traces>,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::start_traced_inner(config, traces))
    }

    async fn start_traced_inner(config: InstanceConfig, traces: Option<Traces>) -> Result<Self, StartError> {
        let InstanceConfig { configuration, registry, shadow_of, log, clock, .. } = config;
        let decoder = Decoder::in_use_with(&registry, &configuration.profiles, &configuration.controllers);
        let (configz, effective) = (configuration.configz(), configuration.effective.clone());
        let switches = Arc::new(Switches::default());
        switches.set_recorder_bytes(configuration.recorder_bytes);
        switches.set_recorder_first(first_id(clock().wall));
        let flags = Flags::new(switches.clone(), log.clone(), clock.clone());
        let stop_server = CancellationToken::new();
        let authority = config.secure.is_some().then(|| access::authority(&config.connection));
        let tls = match &config.secure {
            Some(secure) => {
                Some((secure.address, secure.tls(&config.connection, stop_server.clone()).await?))
            }
            None => None,
        };
        let mut io_config = ClusterIoConfig::new(config.connection, clock.clone(), &instance_name());
        io_config.writes = shadow_of.is_none();
        io_config.decoder = decoder.clone();
        io_config.limits = config.watches;
        io_config.election = election(&configuration.leader_election).filter(|_| shadow_of.is_none());
        let elects = io_config.election.is_some();
        let shadow_of = shadow_of.as_deref().map(Name::new);
        let mut scheduler = scheduler(configuration, registry.clone(), config.seed, switches, shadow_of);
        scheduler.apply(Input::Leading(!elects), clock());
        let (shared, announce) =
            Shared::new(&mut scheduler, (&decoder, elects), clock, log, traces, config.consistency);
        let (inputs_tx, inputs) = mpsc::channel(INPUTS_WAITING);

        // Bind the address first: if it is in use, no watches must be left running.
        let parts = Parts {
            authority,
            version: version(config.git_commit),
            ..shared.server(&registry, &flags, configz, effective)
        };
        let server = Server::new(parts)?;
        let bound = match tls {
            Some((address, tls)) => server.bind_tls(address, tls).await?,
            None => server.bind(config.listen).await?,
        };
        let (address, fingerprint) = (bound.address(), bound.tls().map(|tls| tls.fingerprint()));
        let io = ClusterIo::start(io_config, inputs_tx);
        let views = ClusterIoViews::of(&io, shared.clock.clone(), shared.sources.consistency.0.clone());
        let _ = shared.io.set(views);

        let stop_core = CancellationToken::new();
        let server = tokio::spawn(bound.serve(stop_server.clone()));
        tokio::spawn(flags.run_expiry(stop_server.clone()));
        tokio::spawn(shared.sampler().run(stop_server.clone()));
        tokio::spawn(shared.sweeper(&io).run(stop_server.clone()));
        let (health, stop_health) = (shared.health, stop_server.clone());
        tokio::spawn(async move { health.run(stop_health).await });
        let (snapshot, published) = (shared.snapshot, shared.published);
        let core = CoreLoop {
            scheduler,
            inputs,
            queues: io.queues.clone(),
            clock: shared.clock,
            snapshot: snapshot.clone(),
            published: announce,
            metrics: shared.metrics,
            decisions: config.decisions,
            progress: shared.progress,
            paused: FxHashMap::default(),
            lists: InitialLists::with(decoder.kinds()),
            held_back: Vec::new(),
            traces: shared.traces.map(CoreTraces::new),
            stop: stop_core.clone(),
        };
        let core_ended = spawn_core(core).map_err(StartError::Thread)?;
        Ok(Self { address, fingerprint, io, snapshot, published, stop_server, stop_core, core_ended, server })
    }

    /// Returns the URL of the REST server.
    pub fn url(&self) -> String {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Waits for the next publication and returns the newest snapshot.
    pub async fn next_snapshot(&mut self) -> Arc<Snapshot> {
        // An error means that the scheduling thread ended; `ended` returns the reason.
        let _ = self.published.changed().await;
        self.snapshot()
    }

    /// Waits until a part ends on its own, which happens only on a failure or when the lease is lost. Returns which part
    /// and why.
    pub async fn ended(&mut self) -> String {
        tokio::select! {
            reason = self.io.ended() => reason,
            reason = &mut self.core_ended => {
                reason.unwrap_or_else(|_| "the scheduling thread ended without a word".into())
            }
        }
    }

    /// Stops the server, the writes in progress and the scheduling thread, in this order. The lease is released when
    /// nothing is written any more.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop_server.cancel();
            self.io.shutdown(STOP_PATIENCE).await;
            self.stop_core.cancel();
            // `ended` has already consumed the message if the thread ended on its own.
            if !self.core_ended.is_terminated() {
                let _ = self.core_ended.await;
            }
            let _ = self.server.await;
        })
    }
}

/// What the REST server and the scheduling loop share.
struct Shared {
    snapshot: Arc<ArcSwap<Snapshot>>,
    published: watch::Receiver<u64>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    progress: Arc<Progress>,
    clock: Clock,
    log: Option<Arc<LogControl>>,
    traces: Option<Traces>,
    sources: Sources,
    /// Set once the I/O tasks run, which is after the server has its address.
    io: Arc<OnceLock<ClusterIoViews>>,
}

impl Shared {
    /// Publishes the first snapshot. Returns also the sender that announces the following ones.
    fn new(
        scheduler: &mut Scheduler,
        (decoder, elects): (&Decoder, bool),
        clock: Clock,
        log: Option<Arc<LogControl>>,
        traces: Option<Traces>,
        consistency: ConsistencyConfig,
    ) -> (Self, watch::Sender<u64>) {
        let first = scheduler.publish(clock());
        let (announce, published) = watch::channel(first.generation);
        let metrics = Metrics::new(first.profiles.iter().map(|p| p.scheduler_name.to_string()).collect());
        if let Some(traces) = &traces {
            metrics.register_traces(traces.counts());
        }
        let (progress, io) = (Arc::<Progress>::default(), Arc::<OnceLock<ClusterIoViews>>::default());
        let health = Health::new(progress.clone(), io.clone(), decoder.kinds(), elects, clock.clone());
        let (metrics, health) = (Arc::new(metrics), Arc::new(health));
        let snapshot = Arc::new(ArcSwap::from_pointee(first));
        let sources = Sources { consistency: (Default::default(), consistency), ..Sources::default() };
        (Self { snapshot, published, metrics, health, progress, clock, log, traces, sources, io }, announce)
    }

    /// Returns the task that takes the samples of trends.
    fn sampler(&self) -> Sampler {
        let ring = self.sources.trends.clone();
        Sampler::new(self.snapshot.clone(), self.metrics.clone(), self.clock.clone(), ring)
    }

    /// Returns the task that compares the state with the API server's lists.
    fn sweeper(&self, io: &ClusterIo) -> Sweeper {
        let (record, config) = self.sources.consistency.clone();
        Sweeper {
            config,
            snapshot: self.snapshot.clone(),
            watches: io.watches.clone(),
            lister: io.lister.clone(),
            clock: self.clock.clone(),
            record,
        }
    }

    fn server(
        &self,
        registry: &Registry,
        flags: &Arc<Flags>,
        configz: serde_json::Value,
        effective: serde_json::Value,
    ) -> Parts<Snapshot> {
        let (snapshot, resources) = (self.snapshot.clone(), self.snapshot.clone());
        let load = self.snapshot.clone();
        let (metrics, observed, log) = (self.metrics.clone(), self.metrics.clone(), self.log.clone());
        let (io, health) = (self.io.clone(), self.health.clone());
        let (traces, clock) = (self.traces.clone(), self.clock.clone());
        Parts {
            routes: routes::metered(registry, effective, &self.metrics.explained, self.sources.clone()),
            load: Arc::new(move || load.load_full()),
            published: self.published.clone(),
            switches: flags.all(),
            health: self.health.checks(),
            metrics: Renderer::openmetrics(move || {
                metrics.render(&snapshot, io.get(), log.as_deref(), &health)
            }),
            resource_metrics: Renderer::openmetrics(move || resources::render(&resources.load_full())),
            configz: Arc::new(move || configz.clone()),
            version: Version::default(),
            now: self.clock.clone(),
            observe: Arc::new(move |o| {
                observed.request(o.template, o.status, o.took);
                if let Some(traces) = &traces {
                    traces.request(&o, clock());
                }
            }),
            limits: Limits::default(),
            authority: None,
            redact: access::redact(),
        }
    }
}

/// Returns the body of `/version`.
pub fn version(git_commit: &str) -> Version {
    let number = env!("CARGO_PKG_VERSION");
    let mut parts = number.split('.');
    Version {
        major: parts.next().unwrap_or_default().into(),
        minor: parts.next().unwrap_or_default().into(),
        git_version: format!("v{number}"),
        git_commit: git_commit.into(),
        compiler: "rustc".into(),
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        ..Version::default()
    }
}

/// Returns the first id of the event feed: the wall clock in microseconds. Fewer than one entry per microsecond is
/// recorded, so ids rise across restarts, and a cursor from an earlier process is recognisable.
fn first_id(wall: Duration) -> u64 {
    u64::try_from(wall.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the scheduler of a configuration.
fn scheduler(
    configuration: Configuration,
    registry: Registry,
    seed: u64,
    switches: Arc<Switches>,
    shadow_of: Option<Name>,
) -> Scheduler {
    let Configuration { profiles, initial_backoff, max_backoff, controllers, .. } = configuration;
    let limits = QueueLimits { initial_backoff, max_backoff, ..QueueLimits::default() };
    Scheduler::new(Settings { profiles, registry, limits, seed, switches, controllers, shadow_of })
}

/// Returns the name of this process in events: the pod's name when it runs in a cluster.
fn instance_name() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "pellucid".into())
}

/// Returns how this process takes part in leader election, if leaders are elected.
fn election(config: &LeaderElection) -> Option<ElectionConfig> {
    config.leader_elect.filter(|elects| *elects)?;
    let (namespace, name) = (config.resource_namespace.clone(), config.resource_name.clone());
    let terms = Terms {
        identity: format!("{}_{}", instance_name(), process_name()),
        lease_duration: config.lease_duration,
        renew_deadline: config.renew_deadline,
        retry_period: config.retry_period,
    };
    Some(ElectionConfig { lease: LeaseName { namespace, name }, terms })
}

/// Returns a random name: a pod that restarts keeps its own and must not take its former process for itself.
fn process_name() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn spawn_core(core: CoreLoop) -> std::io::Result<oneshot::Receiver<String>> {
    let (ended, receiver) = oneshot::channel();
    let progress = core.progress.clone();
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| core.run()));
        progress.ended();
        let reason = match result {
            Ok(Ok(())) => "the scheduling thread was stopped".to_string(),
            Ok(Err(error)) => format!("the scheduling thread could not start: {error}"),
            Err(_) => "the scheduling thread panicked; the message is in the log".to_string(),
        };
        let _ = ended.send(reason);
    };
    std::thread::Builder::new().name("scheduling".into()).spawn(run)?;
    Ok(receiver)
}
