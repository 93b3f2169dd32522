//! All watches, and what they tell the scheduling thread.
//!
//! Pods that have ended are watched too, because a gang counts them; those in no gang do not get beyond a list.

use std::sync::Arc;

use pellucid_cluster::input::{Input, Quarantined};
use pellucid_model::{Name, ObjectKind, PodKey};
use tokio::task::JoinSet;

use crate::decode::{Decoded, Item};
use crate::watches::kind::Kind;
use crate::watches::status::WatchStatus;
use crate::watches::watch::{Watching, watch};

/// How each watch is doing.
#[derive(Clone, Debug, Default)]
pub struct Watches {
    /// The watch of Pods.
    pub pods: Arc<WatchStatus>,
    /// The watch of Nodes.
    pub nodes: Arc<WatchStatus>,
    objects: [Arc<WatchStatus>; ObjectKind::ALL.len()],
}

impl Watches {
    /// Returns the watch of a kind.
    pub fn of(&self, kind: ObjectKind) -> &Arc<WatchStatus> {
        &self.objects[kind as usize]
    }

    /// Iterates over all of them with the names of the kinds.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arc<WatchStatus>)> {
        let others = ObjectKind::ALL.into_iter().map(|kind| (kind.as_str(), self.of(kind)));
        [("Pod", &self.pods), ("Node", &self.nodes)].into_iter().chain(others)
    }

    /// Whether every watch has delivered a complete list.
    pub fn are_synced(&self) -> bool {
        self.iter().all(|(_, status)| status.is_synced())
    }

    /// Starts them all; each task returns its name when it ends.
    pub(crate) fn start(&self, tasks: &mut JoinSet<&'static str>, with: &Watching) {
        let mut start = |kind, status: &Arc<WatchStatus>, name| {
            let running = watch(kind, with.clone(), status.clone());
            tasks.spawn(async move {
                running.await;
                name
            });
        };
        start(Kind::Pod, &self.pods, "watch of Pods");
        start(Kind::Node, &self.nodes, "watch of Nodes");
        for kind in ObjectKind::ALL {
            start(Kind::Object(kind), self.of(kind), "watch of another kind");
        }
    }
}

/// Whether an object belongs into a list. What is not in a list is gone.
pub(crate) fn is_listed(object: &Decoded) -> bool {
    match object {
        // There may be many that ended long ago, and they hold nothing.
        Decoded::Pod(pod) => !pod.phase.is_terminal() || pod.gang.is_some(),
        Decoded::Node(_) | Decoded::Object(_) => true,
    }
}

/// An object was added or changed.
pub(crate) fn applied(object: Decoded) -> Input {
    match object {
        Decoded::Pod(pod) => Input::PodApplied(pod),
        Decoded::Node(node) => Input::NodeApplied(node),
        Decoded::Object(object) => Input::ObjectApplied(object),
    }
}

/// An object is gone.
pub(crate) fn deleted(kind: Kind, item: &Item) -> Input {
    match kind {
        Kind::Pod => Input::PodDeleted(PodKey::new(&item.namespace, &item.name)),
        Kind::Node => Input::NodeDeleted(Name::new(&item.name)),
        Kind::Object(kind) => Input::ObjectDeleted(kind, (item.namespace.clone(), Name::new(&item.name))),
    }
}

/// These are all objects of a kind.
pub(crate) fn reset(kind: Kind, objects: Vec<Decoded>, quarantined: Vec<Quarantined>) -> Input {
    let objects = objects.into_iter();
    match kind {
        Kind::Pod => Input::PodsReset {
            pods: objects.filter_map(|o| if let Decoded::Pod(pod) = o { Some(pod) } else { None }).collect(),
            quarantined,
        },
        Kind::Node => Input::NodesReset {
            nodes: objects
                .filter_map(|o| if let Decoded::Node(node) = o { Some(node) } else { None })
                .collect(),
            quarantined,
        },
        Kind::Object(kind) => Input::ObjectsReset {
            kind,
            objects: objects
                .filter_map(|o| if let Decoded::Object(o) = o { Some(o) } else { None })
                .collect(),
            quarantined,
        },
    }
}
