//! The kinds that are watched: Pods, Nodes, and every kind of [`ObjectKind`].
//!
//! Pods that have ended are watched too, because a gang counts them; those in no gang do not get beyond a list.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::ApiResource;
use pellucid_cluster::input::{Input, Quarantined};
use pellucid_model::{Name, Node, Object, ObjectKind, Pod, PodKey};
use tokio::task::JoinSet;

use super::decode::{self, Body, ForKind, SlimNode, SlimObject, SlimPod};
use super::reader::ReadError;
use super::served;
use super::watch::{Watched, Watching, watch};
use super::watch_status::WatchStatus;

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
    pub(super) fn start(&self, tasks: &mut JoinSet<&'static str>, with: &Watching) {
        let (pods, nodes) =
            (watch(Pods, with.clone(), self.pods.clone()), watch(Nodes, with.clone(), self.nodes.clone()));
        tasks.spawn(async {
            pods.await;
            "watch of Pods"
        });
        tasks.spawn(async {
            nodes.await;
            "watch of Nodes"
        });
        for kind in ObjectKind::ALL {
            decode::for_kind(kind, Start { kind, tasks, with, status: self.of(kind) });
        }
    }
}

/// Starts the watch of one kind.
struct Start<'a> {
    kind: ObjectKind,
    tasks: &'a mut JoinSet<&'static str>,
    with: &'a Watching,
    status: &'a Arc<WatchStatus>,
}

impl ForKind for Start<'_> {
    type Output = ();
    fn with<B: Body>(self) {
        let objects = Objects { kind: self.kind, body: PhantomData::<fn() -> B> };
        let running = watch(objects, self.with.clone(), self.status.clone());
        self.tasks.spawn(async {
            running.await;
            "watch of another kind"
        });
    }
}

/// Pods.
struct Pods;
/// Nodes.
struct Nodes;
/// Objects of another kind, with what is read of them.
struct Objects<B> {
    kind: ObjectKind,
    body: PhantomData<fn() -> B>,
}

impl Watched for Pods {
    type Slim = SlimPod;
    type Model = Pod;
    fn kind(&self) -> &'static str {
        "Pod"
    }
    fn resource(&self) {}
    fn decode(&self, slim: &SlimPod) -> Result<Pod, Quarantined> {
        decode::pod(slim)
    }
    fn is_listed(&self, pod: &Pod) -> bool {
        // There may be many that ended long ago, and they hold nothing.
        !pod.phase.is_terminal() || pod.gang.is_some()
    }
    fn applied(&self, pod: Arc<Pod>) -> Input {
        Input::PodApplied(pod)
    }
    fn deleted(&self, slim: &SlimPod) -> Option<Input> {
        let namespace = slim.metadata.namespace.as_deref().unwrap_or_default();
        let name = slim.metadata.name.as_deref()?;
        Some(Input::PodDeleted(PodKey::new(namespace, name)))
    }
    fn reset(&self, pods: Vec<Arc<Pod>>, quarantined: Vec<Quarantined>) -> Input {
        Input::PodsReset { pods, quarantined }
    }
}

impl Watched for Nodes {
    type Slim = SlimNode;
    type Model = Node;
    fn kind(&self) -> &'static str {
        "Node"
    }
    fn resource(&self) {}
    fn decode(&self, slim: &SlimNode) -> Result<Node, Quarantined> {
        decode::node(slim)
    }
    fn applied(&self, node: Arc<Node>) -> Input {
        Input::NodeApplied(node)
    }
    fn deleted(&self, slim: &SlimNode) -> Option<Input> {
        slim.metadata.name.as_deref().map(|name| Input::NodeDeleted(Name::new(name)))
    }
    fn reset(&self, nodes: Vec<Arc<Node>>, quarantined: Vec<Quarantined>) -> Input {
        Input::NodesReset { nodes, quarantined }
    }
}

impl<B: Body> Watched for Objects<B> {
    type Slim = SlimObject<B>;
    type Model = Object;
    fn kind(&self) -> &'static str {
        self.kind.as_str()
    }
    fn resource(&self) -> ApiResource {
        decode::resource(self.kind)
    }
    async fn locate(&self, with: &Watching) -> Result<Option<ApiResource>, ReadError> {
        if self.is_discovered() {
            return with.served.locate(&with.reader, self.kind).await;
        }
        Ok(Some(self.resource()))
    }
    fn is_discovered(&self) -> bool {
        served::is_discovered(self.kind)
    }
    fn is_optional(&self) -> bool {
        true
    }
    fn decode(&self, slim: &SlimObject<B>) -> Result<Object, Quarantined> {
        decode::object(self.kind, slim)
    }
    fn applied(&self, object: Arc<Object>) -> Input {
        Input::ObjectApplied(object)
    }
    fn deleted(&self, slim: &SlimObject<B>) -> Option<Input> {
        let namespace = Name::new(slim.metadata.namespace.as_deref().unwrap_or_default());
        let name = Name::new(slim.metadata.name.as_deref()?);
        Some(Input::ObjectDeleted(self.kind, (namespace, name)))
    }
    fn reset(&self, objects: Vec<Arc<Object>>, quarantined: Vec<Quarantined>) -> Input {
        Input::ObjectsReset { kind: self.kind, objects, quarantined }
    }
}
