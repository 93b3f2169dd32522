//! Starts all watches, and turns their objects into inputs of the scheduling thread.
//!
//! Terminal pods are watched too, because a gang counts its finished members. Terminal pods without a gang are left
//! out of lists.

use std::sync::Arc;

use pellucid_cluster::input::{Input, Quarantined};
use pellucid_model::{CustomKindRef, Name, ObjectKind, PodKey};
use tokio::task::JoinSet;

use crate::decode::{Decoded, Item};
use crate::kinds::Kind;
use crate::watches::status::{WatchReport, WatchStatus};
use crate::watches::watch::{Watching, watch};

/// Holds the status of every watch.
#[derive(Clone, Debug, Default)]
pub struct Watches {
    /// Status of the watch of Pods.
    pub pods: Arc<WatchStatus>,
    /// Status of the watch of Nodes.
    pub nodes: Arc<WatchStatus>,
    objects: [Arc<WatchStatus>; ObjectKind::ALL.len()],
    custom: Vec<(CustomKindRef, Arc<WatchStatus>)>,
}

impl Watches {
    /// Makes the statuses of the built-in kinds and of those that plugins bring.
    pub fn new(custom: &[CustomKindRef]) -> Self {
        let custom = custom.iter().map(|kind| (*kind, Arc::default())).collect();
        Self { custom, ..Self::default() }
    }

    /// Returns the status of the watch of another kind.
    pub fn of(&self, kind: ObjectKind) -> &Arc<WatchStatus> {
        &self.objects[kind as usize]
    }

    fn all(&self) -> impl Iterator<Item = (Kind, &Arc<WatchStatus>)> {
        let others = ObjectKind::ALL.into_iter().map(|kind| (Kind::Object(kind), self.of(kind)));
        let custom = self.custom.iter().map(|(kind, status)| (Kind::Custom(*kind), status));
        [(Kind::Pod, &self.pods), (Kind::Node, &self.nodes)].into_iter().chain(others).chain(custom)
    }

    /// Iterates over all statuses with the names of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arc<WatchStatus>)> {
        self.all().map(|(kind, status)| (kind.as_str(), status))
    }

    /// Returns the kinds whose watches have delivered a complete list and that the API server serves.
    pub fn kinds(&self) -> Vec<Kind> {
        let has_list = |status: &WatchStatus| {
            let report = status.report();
            report.synced && !report.unserved
        };
        self.all().filter(|(_, status)| has_list(status)).map(|(kind, _)| kind).collect()
    }

    /// Returns the status of the watch of any kind; `None` when nobody watches it.
    pub fn report(&self, kind: Kind) -> Option<WatchReport> {
        self.all().find(|(of, _)| *of == kind).map(|(_, status)| status.report())
    }

    /// Has the watch of a kind list it again. Returns once the list is in the channel of inputs, which may be never if
    /// the API server does not answer.
    pub async fn list_again(&self, kind: Kind) {
        let Some((_, status)) = self.all().find(|(of, _)| *of == kind) else { return };
        let request = status.catch_ups().ask_for_list();
        status.catch_ups().fulfilled(request).await;
    }

    /// Returns whether every watch has delivered a complete list.
    pub fn are_synced(&self) -> bool {
        self.iter().all(|(_, status)| status.is_synced())
    }

    /// Waits until the watches of all kinds that a scheduler writes have passed what was written before. What they
    /// passed is in the channel of inputs then. A kind that is not served has nothing to pass.
    pub(crate) async fn catch_up(&self) {
        let written = self
            .all()
            .filter(|(kind, status)| !kind.resource().verbs.is_empty() && !status.report().unserved);
        let asked: Vec<_> = written.map(|(_, status)| (status, status.catch_ups().ask())).collect();
        for (status, request) in asked {
            status.catch_ups().fulfilled(request).await;
        }
    }

    /// Starts all watches. Each task returns its name when it ends.
    pub(crate) fn start(&self, tasks: &mut JoinSet<&'static str>, with: &Watching) {
        for (kind, status) in self.all() {
            let running = watch(kind, with.clone(), status.clone());
            tasks.spawn(async move {
                running.await;
                "watch"
            });
        }
    }
}

/// Returns whether an object belongs in a list. The scheduler treats an object that is missing from a list as deleted.
pub(crate) fn is_listed(object: &Decoded) -> bool {
    match object {
        // There may be many long-finished pods, and they hold no resources.
        Decoded::Pod(pod) => !pod.phase.is_terminal() || pod.gang.is_some(),
        Decoded::Node(_) | Decoded::Object(_) | Decoded::Custom(_) => true,
    }
}

/// Returns the input for an added or changed object.
pub(crate) fn applied(object: Decoded) -> Input {
    match object {
        Decoded::Pod(pod) => Input::PodApplied(pod),
        Decoded::Node(node) => Input::NodeApplied(node),
        Decoded::Object(object) => Input::ObjectApplied(object),
        Decoded::Custom(object) => Input::CustomApplied(object),
    }
}

/// Returns the input for a deleted object.
pub(crate) fn deleted(kind: Kind, item: &Item) -> Input {
    match kind {
        Kind::Pod => Input::PodDeleted(PodKey::new(&item.namespace, &item.name)),
        Kind::Node => Input::NodeDeleted(Name::new(&item.name)),
        Kind::Object(kind) => Input::ObjectDeleted(kind, (item.namespace.clone(), Name::new(&item.name))),
        Kind::Custom(kind) => Input::CustomDeleted(kind, (item.namespace.clone(), Name::new(&item.name))),
    }
}

/// Returns the input for a complete list.
pub(crate) fn reset(kind: Kind, objects: Vec<Decoded>, quarantined: Vec<Quarantined>) -> Input {
    let objects = objects.into_iter();
    match kind {
        Kind::Pod => {
            let pods = objects.filter_map(|o| if let Decoded::Pod(pod) = o { Some(pod) } else { None });
            Input::PodsReset { pods: pods.collect(), quarantined }
        }
        Kind::Node => {
            let nodes = objects.filter_map(|o| if let Decoded::Node(node) = o { Some(node) } else { None });
            Input::NodesReset { nodes: nodes.collect(), quarantined }
        }
        Kind::Object(kind) => {
            let objects = objects.filter_map(|o| if let Decoded::Object(o) = o { Some(o) } else { None });
            Input::ObjectsReset { kind, objects: objects.collect(), quarantined }
        }
        Kind::Custom(kind) => {
            let objects = objects.filter_map(|o| if let Decoded::Custom(o) = o { Some(o) } else { None });
            Input::CustomReset { kind, objects: objects.collect(), quarantined }
        }
    }
}
