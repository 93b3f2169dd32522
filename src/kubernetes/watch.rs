//! Watches of Pods and Nodes: decoded off the scheduling thread, sent to it as [`Input`].
//!
//! The channel is bounded and nothing is dropped: when the scheduling thread falls behind, the watch stops
//! reading. A list replaces everything (`Reset`), because a watch that broke may have missed deletes. An
//! object that cannot be decoded is sent as quarantined, and the watch goes on.
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::client::chain;
use super::decode::{self, SlimNode, SlimPod};
use crate::cluster::input::{Input, Quarantined};
use crate::model::{Name, Node, Now, Pod, PodKey};

/// Before a watch that delivered nonsense is opened anew.
const PAUSE: Duration = Duration::from_secs(1);

/// How a watch is doing.
#[derive(Clone, Debug, Default)]
pub struct WatchReport {
    /// Whether a complete list has arrived; it stays so, a broken watch shows as errors and age.
    pub synced: bool,
    /// When anything last arrived. A quiet cluster is quiet: age alone is no error.
    pub last_event: Option<Now>,
    /// Complete lists that arrived; all but the first are restarts.
    pub lists: u64,
    /// Objects that arrived after the lists.
    pub events: u64,
    /// Objects that could not be decoded, repeats counted.
    pub quarantined: u64,
    /// Errors.
    pub errors: u64,
    /// The last error and its time. Not cleared by a later success.
    pub last_error: Option<(Arc<str>, Now)>,
}

/// Shared state of a watch.
#[derive(Debug, Default)]
pub struct WatchStatus(Mutex<WatchReport>);

impl WatchStatus {
    /// Returns how the watch is doing.
    pub fn report(&self) -> WatchReport {
        self.0.lock().clone()
    }

    /// Whether a complete list has arrived.
    pub fn is_synced(&self) -> bool {
        self.0.lock().synced
    }
}

/// What a watch needs to know of a kind.
pub(super) trait Watched: Send + 'static {
    /// Name of the kind.
    const KIND: &'static str;
    /// On the wire.
    type Slim: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static;
    /// In the model.
    type Model: Send + Sync;
    fn config() -> watcher::Config {
        watcher::Config::default()
    }
    fn decode(slim: &Self::Slim) -> Result<Self::Model, Quarantined>;
    fn applied(object: Arc<Self::Model>) -> Input;
    fn deleted(slim: &Self::Slim) -> Option<Input>;
    fn reset(objects: Vec<Arc<Self::Model>>, quarantined: Vec<Quarantined>) -> Input;
}

/// Pods that have not ended.
pub(super) struct Pods;
/// Nodes.
pub(super) struct Nodes;

impl Watched for Pods {
    const KIND: &'static str = "Pod";
    type Slim = SlimPod;
    type Model = Pod;
    fn config() -> watcher::Config {
        // A pod that ends arrives as deleted: it holds nothing any more.
        watcher::Config::default().fields("status.phase!=Succeeded,status.phase!=Failed")
    }
    fn decode(slim: &SlimPod) -> Result<Pod, Quarantined> {
        decode::pod(slim)
    }
    fn applied(pod: Arc<Pod>) -> Input {
        Input::PodApplied(pod)
    }
    fn deleted(slim: &SlimPod) -> Option<Input> {
        let namespace = slim.metadata.namespace.as_deref().unwrap_or_default();
        let name = slim.metadata.name.as_deref()?;
        Some(Input::PodDeleted(PodKey::new(namespace, name)))
    }
    fn reset(pods: Vec<Arc<Pod>>, quarantined: Vec<Quarantined>) -> Input {
        Input::PodsReset { pods, quarantined }
    }
}

impl Watched for Nodes {
    const KIND: &'static str = "Node";
    type Slim = SlimNode;
    type Model = Node;
    fn decode(slim: &SlimNode) -> Result<Node, Quarantined> {
        decode::node(slim)
    }
    fn applied(node: Arc<Node>) -> Input {
        Input::NodeApplied(node)
    }
    fn deleted(slim: &SlimNode) -> Option<Input> {
        slim.metadata.name.as_deref().map(|name| Input::NodeDeleted(Name::new(name)))
    }
    fn reset(nodes: Vec<Arc<Node>>, quarantined: Vec<Quarantined>) -> Input {
        Input::NodesReset { nodes, quarantined }
    }
}

/// Watches a kind until told to stop or until nobody listens.
pub(super) async fn watch<W: Watched>(
    client: Client,
    inputs: Sender<Input>,
    status: Arc<WatchStatus>,
    clock: Clock,
    stop: CancellationToken,
) {
    let open = || Box::pin(watcher(Api::<W::Slim>::all(client.clone()), W::config()).default_backoff());
    let mut stream = open();
    let mut translator = Translator::<W>::default();
    loop {
        let item = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            item = stream.next() => item,
        };
        let input = match item {
            Some(Ok(event)) => translator.translate(event, &status, clock()),
            Some(Err(error)) => {
                note_error::<W>(&status, &error, clock());
                if is_unreadable(&error) {
                    // The watch would go on without this change. A new list has it, or says why not.
                    tokio::time::sleep(PAUSE).await;
                    stream = open();
                }
                None
            }
            None => return,
        };
        let Some(input) = input else { continue };
        let is_list = matches!(input, Input::PodsReset { .. } | Input::NodesReset { .. });
        let sent = tokio::select! {
            () = stop.cancelled() => return,
            sent = inputs.send(input) => sent,
        };
        if sent.is_err() {
            return;
        }
        if is_list {
            // Only now: who sees `synced` may count on the list being in the channel.
            status.0.lock().synced = true;
        }
    }
}

fn note_error<W: Watched>(status: &WatchStatus, error: &watcher::Error, now: Now) {
    let text = describe(error);
    tracing::warn!(kind = W::KIND, error = %text, "watch failed, going on");
    let mut report = status.0.lock();
    report.errors += 1;
    report.last_error = Some((text.into(), now));
}

/// Whether a change was lost because its text is no JSON that makes an event.
fn is_unreadable(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_)))
}

fn describe(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(cause) => format!("list failed: {}", chain(cause)),
        watcher::Error::WatchStartFailed(cause) => format!("watch not started: {}", chain(cause)),
        watcher::Error::WatchFailed(cause) => format!("watch broke: {}", chain(cause)),
        watcher::Error::WatchError(status) => {
            format!("watch ended by the server: {} {}: {}", status.code, status.reason, status.message)
        }
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// Turns watch events into inputs, gathering a list until it is complete.
struct Translator<W: Watched> {
    objects: Vec<Arc<W::Model>>,
    quarantined: Vec<Quarantined>,
}

impl<W: Watched> Default for Translator<W> {
    fn default() -> Self {
        Self { objects: Vec::new(), quarantined: Vec::new() }
    }
}

impl<W: Watched> Translator<W> {
    fn translate(&mut self, event: Event<W::Slim>, status: &WatchStatus, now: Now) -> Option<Input> {
        let mut report = status.0.lock();
        report.last_event = Some(now);
        match event {
            Event::Init => *self = Self::default(),
            Event::InitApply(slim) => match W::decode(&slim) {
                Ok(object) => self.objects.push(Arc::new(object)),
                Err(quarantined) => {
                    report.quarantined += 1;
                    log(&quarantined);
                    self.quarantined.push(quarantined);
                }
            },
            Event::InitDone => {
                report.lists += 1;
                let list = std::mem::take(self);
                tracing::info!(kind = W::KIND, objects = list.objects.len(), "list complete");
                return Some(W::reset(list.objects, list.quarantined));
            }
            Event::Apply(slim) => {
                report.events += 1;
                return Some(match W::decode(&slim) {
                    Ok(object) => W::applied(Arc::new(object)),
                    Err(quarantined) => {
                        report.quarantined += 1;
                        log(&quarantined);
                        Input::Quarantined(quarantined)
                    }
                });
            }
            Event::Delete(slim) => {
                report.events += 1;
                return W::deleted(&slim);
            }
        }
        None
    }
}

fn log(q: &Quarantined) {
    tracing::warn!(
        kind = q.kind, namespace = %q.namespace, name = %q.name, field = %q.field, value = %q.value,
        problem = %q.problem, "object cannot be read, quarantined"
    );
}
