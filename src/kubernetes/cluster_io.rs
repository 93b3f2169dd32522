//! Starts the watch, bind and status tasks, and stops them in order.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::input::Input;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::limits::WatchLimits;
use crate::connection::server_probe::{Probe, ServerStatus};
use crate::decode::Decoder;
use crate::lease::elector::{ElectionConfig, Elector};
use crate::lease::leadership::Leadership;
use crate::lease::requests::LeaseName;
use crate::watches::inputs::Watches;
use crate::watches::lister::Lister;
use crate::watches::reader::Reader;
use crate::watches::served::Served;
use crate::watches::watch::Watching;
use crate::writes::api_writer::ApiWriter;
use crate::writes::binder::Binder;
use crate::writes::effect_queues::{EffectQueueSizes, EffectQueues};
use crate::writes::events::EventWriter;
use crate::writes::evictor::{EvictCounters, Evictor};
use crate::writes::group_status::GroupStatusWriter;
use crate::writes::in_flight::InFlight;
use crate::writes::object_writer::{ObjectCounters, ObjectWriter};
use crate::writes::status::{StatusCounters, StatusWriter};
use crate::writes::write_right::WriteRight;
use crate::writes::writing::Writing;
use crate::{Clock, Connection};

/// Configuration for [`ClusterIo::start`].
#[derive(Clone)]
pub struct ClusterIoConfig {
    /// Clients of the API server.
    pub connection: Connection,
    /// Clock for timestamps in writes and reports.
    pub clock: Clock,
    /// Whether the API writer is open from the start; false with `--shadow`.
    pub writes: bool,
    /// Time limit of one write.
    pub write_timeout: Duration,
    /// Most bindings in flight at once; how many there are follows what the API server takes.
    pub binders: usize,
    /// Number of evictions in flight at once.
    pub evictors: usize,
    /// Number of writes of objects in flight at once.
    pub object_writers: usize,
    /// Number of pod status patches in flight at once.
    pub status_writers: usize,
    /// Number of PodGroup status patches in flight at once.
    pub group_status_writers: usize,
    /// Number of event writes in flight at once.
    pub event_writers: usize,
    /// `reportingInstance` of events, which distinguishes this process from others, for example by its pod name.
    pub instance: Arc<str>,
    /// Reads objects, with what plugins declare.
    pub decoder: Decoder,
    /// Time and size limits of lists, watches and probes.
    pub limits: WatchLimits,
    /// Leader election; without it this instance writes from the start.
    pub election: Option<ElectionConfig>,
}

impl ClusterIoConfig {
    /// Creates a configuration with defaults.
    pub fn new(connection: Connection, clock: Clock, instance: &str) -> Self {
        Self {
            connection,
            clock,
            writes: true,
            write_timeout: Duration::from_secs(10),
            binders: 128,
            evictors: 16,
            object_writers: 8,
            status_writers: 8,
            group_status_writers: 8,
            event_writers: 8,
            instance: instance.into(),
            decoder: Decoder::default(),
            limits: WatchLimits::default(),
            election: None,
        }
    }
}

/// The running watches and writers. Callers clone the `Arc`s they need before [`ClusterIo::shutdown`].
pub struct ClusterIo {
    /// Effect queues, filled by the scheduling thread.
    pub queues: Arc<EffectQueues>,
    /// The API writer that all writes go through.
    pub writer: Arc<ApiWriter>,
    /// Status of every watch.
    pub watches: Watches,
    /// Lists kinds beside their watches.
    pub lister: Lister,
    /// Whether the API server answers, as the probe sees it.
    pub server: Arc<ServerStatus>,
    /// How many Bindings may be in flight.
    pub binders: Arc<InFlight>,
    /// Counters of the evictors.
    pub evictor: Arc<EvictCounters>,
    /// Counters of the object writers.
    pub objects: Arc<ObjectCounters>,
    /// Counters of the pod status writers.
    pub statuses: Arc<StatusCounters>,
    /// Counters of the PodGroup status writers.
    pub group_statuses: Arc<StatusCounters>,
    /// This instance's part in leader election, if there is one.
    pub leadership: Option<Arc<Leadership>>,
    stop: CancellationToken,
    tasks: JoinSet<&'static str>,
    /// The elector, and what lets it release the Lease.
    elector: Option<(tokio::task::JoinHandle<String>, CancellationToken)>,
}

/// Work that a shutdown left undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Tasks that did not finish in time and were aborted.
    pub aborted: usize,
    /// Bind orders that were never sent.
    pub unsent_binds: u64,
    /// Evict orders that were never sent.
    pub unsent_evictions: u64,
    /// Object orders that were never sent.
    pub unsent_objects: u64,
}

impl ClusterIo {
    /// Starts watches and writers on the current runtime. Watched objects and effect reports go to `inputs`.
    pub fn start(config: ClusterIoConfig, inputs: Sender<Input>) -> Self {
        let limits = Arc::new(config.limits.clone());
        let server = Arc::new(ServerStatus::new(&limits));
        let client = config.connection.write.clone();
        let right =
            Arc::new(config.election.as_ref().map_or_else(WriteRight::endless, |_| WriteRight::none()));
        let (timeout, is_open) = (config.write_timeout, config.writes);
        let writer = ApiWriter::new(client, timeout, is_open, right.clone(), server.clone());
        let reader =
            Reader { client: config.connection.read.clone(), limits: limits.clone(), server: server.clone() };
        let served = Arc::new(Served::default());
        let mut io = Self {
            queues: Arc::new(EffectQueues::new(EffectQueueSizes::default(), config.clock.clone())),
            writer: Arc::new(writer),
            watches: Watches::new(config.decoder.kinds()),
            lister: Lister::new(reader.clone(), config.decoder.clone(), served.clone()),
            server,
            binders: Arc::new(InFlight::new(config.binders)),
            evictor: Arc::default(),
            objects: Arc::default(),
            statuses: Arc::default(),
            group_statuses: Arc::default(),
            leadership: None,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            elector: None,
        };
        io.start_watches(&config, reader, &served, &inputs);
        let with = Writing {
            writer: io.writer.clone(),
            queues: io.queues.clone(),
            clock: config.clock.clone(),
            stop: io.stop.clone(),
        };
        io.start_order_writers(&config, &with, &inputs);
        io.start_election(&config, right, &inputs);
        io.start_status_writers(config, &with, served);
        io
    }

    /// Starts the probe of the API server and the watches.
    fn start_watches(
        &mut self,
        config: &ClusterIoConfig,
        reader: Reader,
        served: &Arc<Served>,
        inputs: &Sender<Input>,
    ) {
        let probe = Probe {
            client: reader.client.clone(),
            pools: config.connection.pools.clone(),
            limits: reader.limits.clone(),
            server: self.server.clone(),
            clock: config.clock.clone(),
            stop: self.stop.clone(),
        };
        spawn(&mut self.tasks, "probe of the API server", probe.work());
        let watching = Watching {
            reader,
            decoder: config.decoder.clone(),
            served: served.clone(),
            inputs: inputs.clone(),
            clock: config.clock.clone(),
            stop: self.stop.clone(),
        };
        self.watches.start(&mut self.tasks, &watching);
    }

    /// Starts the writers whose orders are reported on: binders, evictors, writers of objects.
    fn start_order_writers(&mut self, config: &ClusterIoConfig, with: &Writing, reports: &Sender<Input>) {
        let in_flight = self.binders.clone();
        let worker = Binder { with: with.clone(), reports: reports.clone(), in_flight };
        spawn_each(&mut self.tasks, config.binders, "binder", || worker.clone().work());
        let evictor =
            Evictor { with: with.clone(), reports: reports.clone(), counters: self.evictor.clone() };
        spawn_each(&mut self.tasks, config.evictors, "evictor", || evictor.clone().work());
        let counters = self.objects.clone();
        let worker = ObjectWriter { with: with.clone(), reports: reports.clone(), evictor, counters };
        spawn_each(&mut self.tasks, config.object_writers, "object writer", || worker.clone().work());
    }

    /// Starts to take part in leader election, if there is one.
    fn start_election(&mut self, config: &ClusterIoConfig, right: Arc<WriteRight>, inputs: &Sender<Input>) {
        let Some(election) = &config.election else { return };
        let LeaseName { namespace, name } = &election.lease;
        let leadership = Arc::new(Leadership {
            lease: format!("{namespace}/{name}"),
            name: name.clone(),
            identity: election.terms.identity.clone(),
            lease_duration: election.terms.lease_duration,
            right,
            report: Default::default(),
        });
        let release = CancellationToken::new();
        let elector = Elector::new(
            election.clone(),
            config.connection.write.clone(),
            leadership.clone(),
            (self.watches.clone(), inputs.clone()),
            (config.clock.clone(), release.clone()),
        );
        self.leadership = Some(leadership);
        self.elector = Some((tokio::spawn(elector.run()), release));
    }

    /// Starts the writers of what people read: statuses of pods and PodGroups, and events.
    fn start_status_writers(&mut self, config: ClusterIoConfig, with: &Writing, served: Arc<Served>) {
        let counters = self.statuses.clone();
        let worker = StatusWriter { with: with.clone(), memory: Arc::default(), counters };
        spawn_each(&mut self.tasks, config.status_writers, "status writer", || worker.clone().work());
        let worker = GroupStatusWriter { with: with.clone(), served, counters: self.group_statuses.clone() };
        let (n, name) = (config.group_status_writers, "writer of PodGroup statuses");
        spawn_each(&mut self.tasks, n, name, || worker.clone().work());
        let (instance, concurrency) = (config.instance, config.event_writers);
        let worker = EventWriter { with: with.clone(), instance, concurrency };
        spawn(&mut self.tasks, "event writer", worker.work());
    }

    /// Waits until a task ends, and returns its name or why it failed. While the receiver of the inputs is alive, none
    /// ends by itself but the elector, when it has lost the Lease.
    pub async fn ended(&mut self) -> String {
        let lost = async {
            match &mut self.elector {
                Some((task, _)) => task.await,
                None => std::future::pending().await,
            }
        };
        let failed = |error| format!("a task of the I/O with the cluster failed: {error}");
        tokio::select! {
            biased;
            lost = lost => {
                self.elector = None;
                lost.unwrap_or_else(failed)
            }
            ended = self.tasks.join_next() => match ended {
                Some(Ok(name)) => format!("the {name} ended"),
                Some(Err(error)) => failed(error),
                None => "all tasks of the I/O with the cluster ended".into(),
            }
        }
    }

    /// Stops the watches at once and the writers after their current write; aborts tasks that take longer than
    /// `patience`. Releases the Lease afterwards, unless a write was aborted: that may still reach the server, so the
    /// Lease is left to expire. Meanwhile the caller must keep receiving inputs, or have dropped the receiver.
    pub async fn shutdown(mut self, patience: Duration) -> Drained {
        self.stop.cancel();
        self.queues.close();
        let finish = async { while self.tasks.join_next().await.is_some() {} };
        let in_time = tokio::time::timeout(patience, finish).await.is_ok();
        let aborted = if in_time { 0 } else { self.tasks.len() };
        self.tasks.shutdown().await;
        self.leave_election(aborted == 0).await;
        let counts = self.queues.counts();
        let drained = Drained {
            aborted,
            unsent_binds: counts.binds.depth,
            unsent_evictions: counts.evictions.depth,
            unsent_objects: counts.objects.depth,
        };
        tracing::info!(
            aborted,
            unsent_binds = drained.unsent_binds,
            unsent_evictions = drained.unsent_evictions,
            unsent_objects = drained.unsent_objects,
            "I/O with the cluster stopped"
        );
        drained
    }

    /// Ends this instance's part in leader election, and releases the Lease if it may.
    async fn leave_election(&mut self, may_release: bool) {
        let Some((task, release)) = self.elector.take() else { return };
        if may_release {
            release.cancel();
        } else {
            task.abort();
        }
        // A task that was aborted or panicked releases nothing, and the Lease expires.
        let _ = task.await;
        if let Some(leadership) = &self.leadership {
            leadership.right.end();
        }
    }
}

impl Drop for ClusterIo {
    fn drop(&mut self) {
        // The other tasks end with their set.
        if let Some((task, _)) = &self.elector {
            task.abort();
        }
    }
}

fn spawn(
    tasks: &mut JoinSet<&'static str>,
    name: &'static str,
    task: impl Future<Output = ()> + Send + 'static,
) {
    tasks.spawn(async move {
        task.await;
        name
    });
}

/// Spawns `n` tasks of the same name.
fn spawn_each<F: Future<Output = ()> + Send + 'static>(
    tasks: &mut JoinSet<&'static str>,
    n: usize,
    name: &'static str,
    task: impl Fn() -> F,
) {
    for _ in 0..n {
        spawn(tasks, name, task());
    }
}

/// Waits for SIGTERM, SIGINT or SIGHUP. SIGHUP, which a closed terminal sends, stops the process like the others,
/// because there is nothing to reload. Fails when a signal handler cannot be installed.
pub async fn stop_requested() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hangup.recv() => "SIGHUP",
    };
    tracing::info!(signal = name, "asked to stop");
    Ok(())
}
