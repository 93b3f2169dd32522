//! Watches of a few kinds, for a process that only reads: nothing here writes, elects or reports.

use std::sync::Arc;

use pellucid_cluster::input::Input;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::limits::WatchLimits;
use crate::connection::server_probe::{Probe, ServerStatus};
use crate::decode::Decoder;
use crate::kinds::Kind;
use crate::watches::lister::Lister;
use crate::watches::reader::Reader;
use crate::watches::served::Served;
use crate::watches::status::WatchStatus;
use crate::watches::watch::{Watching, watch};
use crate::{Clock, Connection};

/// Running watches of some kinds. They end when it is dropped.
pub struct Observer {
    statuses: Vec<(Kind, Arc<WatchStatus>)>,
    /// Lists kinds beside their watches.
    pub lister: Lister,
    tasks: JoinSet<&'static str>,
}

impl Observer {
    /// Starts watches of these kinds on the current runtime, whose objects go to `inputs`, and a probe of the API server.
    pub fn start(
        connection: &Connection,
        clock: Clock,
        limits: WatchLimits,
        (decoder, kinds): (Decoder, &[Kind]),
        inputs: &Sender<Input>,
    ) -> Self {
        let (limits, stop) = (Arc::new(limits), CancellationToken::new());
        let server = Arc::new(ServerStatus::new(&limits));
        let reader =
            Reader { client: connection.read.clone(), limits: limits.clone(), server: server.clone() };
        let served = Arc::new(Served::default());
        let probe = Probe {
            client: connection.read.clone(),
            pools: connection.pools.clone(),
            limits,
            server,
            clock: clock.clone(),
            stop: stop.clone(),
        };
        let lister = Lister::new(reader.clone(), decoder.clone(), served.clone());
        let with = Watching { reader, decoder, served, inputs: inputs.clone(), clock, stop };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            probe.work().await;
            "probe of the API server"
        });
        let mut statuses = Vec::new();
        for kind in kinds {
            let status = Arc::<WatchStatus>::default();
            let running = watch(*kind, with.clone(), status.clone());
            tasks.spawn(async move {
                running.await;
                "watch"
            });
            statuses.push((*kind, status));
        }
        Self { statuses, lister, tasks }
    }

    /// Returns the statuses of the watches, with the names of their kinds.
    pub fn statuses(&self) -> impl Iterator<Item = (&'static str, &Arc<WatchStatus>)> {
        self.statuses.iter().map(|(kind, status)| (kind.as_str(), status))
    }

    /// Waits until a task ends, which none does by itself while the receiver of the inputs is alive. Returns its name or
    /// why it failed.
    pub async fn ended(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(name)) => format!("the {name} ended"),
            Some(Err(error)) => format!("a watch failed: {error}"),
            None => "all watches ended".to_owned(),
        }
    }
}
