//! Watches: objects are decoded off the scheduling thread and sent to it as [`Input`]. The kinds are in `watched`.
//!
//! The channel is bounded and nothing is dropped: when the scheduling thread falls behind, the watch stops
//! reading. A list replaces everything (`Reset`), because a watch that broke may have missed deletes. An
//! object that cannot be decoded is sent as quarantined, and the watch goes on. A kind that the server does
//! not serve has no objects, until it is served: it is asked for every half minute, so a CustomResourceDefinition may
//! come and go.
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

use std::borrow::Cow;
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
use super::served::Served;
use crate::cluster::input::{Input, Quarantined};
use crate::model::Now;

/// Before a watch that delivered nonsense is opened anew.
const UNREADABLE: Duration = Duration::from_secs(1);
/// Before the server is asked again for a kind that it does not serve.
const UNSERVED: Duration = Duration::from_secs(30);
/// Before the server is asked again where a kind is served, when it did not say or is of two minds.
const UNDISCOVERED: Duration = Duration::from_secs(1);

/// How a watch is doing.
#[derive(Clone, Debug, Default)]
pub struct WatchReport {
    /// Whether a complete list has arrived; it stays so, a broken watch shows as errors and age.
    pub synced: bool,
    /// Whether the server said that it does not know the kind. Then there are no objects of it.
    pub unserved: bool,
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
pub(super) trait Watched: Send + Sync + 'static {
    /// On the wire.
    type Slim: Resource<DynamicType: Clone> + Clone + Debug + DeserializeOwned + Send + Sync + 'static;
    /// In the model.
    type Model: Send + Sync;
    /// Name of the kind.
    fn kind(&self) -> &'static str;
    /// Where it is served, as far as that is fixed.
    fn resource(&self) -> <Self::Slim as Resource>::DynamicType;
    /// Asks where it is served; `None`: nowhere.
    fn locate(
        &self,
        _: &Watching,
    ) -> impl Future<Output = Result<Option<<Self::Slim as Resource>::DynamicType>, kube::Error>> + Send {
        std::future::ready(Ok(Some(self.resource())))
    }
    /// Whether [`Watched::locate`] asks the server.
    fn is_discovered(&self) -> bool {
        false
    }
    /// Whether a server that does not serve it simply has none.
    fn is_optional(&self) -> bool {
        false
    }
    fn decode(&self, slim: &Self::Slim) -> Result<Self::Model, Quarantined>;
    /// Whether an object belongs into a list. What is not in a list is gone.
    fn is_listed(&self, _: &Self::Model) -> bool {
        true
    }
    fn applied(&self, object: Arc<Self::Model>) -> Input;
    fn deleted(&self, slim: &Self::Slim) -> Option<Input>;
    fn reset(&self, objects: Vec<Arc<Self::Model>>, quarantined: Vec<Quarantined>) -> Input;
}

/// What every watch works with.
#[derive(Clone)]
pub(super) struct Watching {
    pub(super) client: Client,
    pub(super) served: Arc<Served>,
    pub(super) inputs: Sender<Input>,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
}

/// Watches a kind until told to stop or until nobody listens.
pub(super) async fn watch<W: Watched>(watched: W, with: Watching, status: Arc<WatchStatus>) {
    loop {
        let pause = tokio::select! {
            biased;
            () = with.stop.cancelled() => return,
            pause = follow(&watched, &with, &status) => pause,
        };
        let Some(pause) = pause else { return };
        tokio::select! {
            () = with.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Watches until the watch has to be opened anew, and returns how long to wait before; `None`: nobody listens.
async fn follow<W: Watched>(watched: &W, with: &Watching, status: &WatchStatus) -> Option<Duration> {
    let resource = match watched.locate(with).await {
        Ok(Some(resource)) => resource,
        Ok(None) => {
            let input = note_unserved(watched, status, (with.clock)());
            send(with, status, input).await?;
            return Some(UNSERVED);
        }
        Err(error) => {
            let text = format!("discovery failed: {}", chain(&error));
            note_error(watched.kind(), status, text, (with.clock)());
            return Some(UNDISCOVERED);
        }
    };
    let api = Api::<W::Slim>::all_with(with.client.clone(), &resource);
    let mut stream = Box::pin(watcher(api, watcher::Config::default()).default_backoff());
    let mut gathered = Gathered::default();
    loop {
        let mut pause = None;
        let input = match stream.next().await? {
            Ok(event) => gathered.translate(watched, event, status, (with.clock)()),
            Err(error) if watched.is_optional() && !watched.is_discovered() && is_unserved(&error) => {
                pause = Some(UNSERVED);
                note_unserved(watched, status, (with.clock)())
            }
            Err(error) => {
                let rights = (W::Slim::group(&resource), W::Slim::plural(&resource));
                note_error(watched.kind(), status, describe(&error, rights), (with.clock)());
                if is_unreadable(&error) {
                    // The watch would go on without this change. A new list has it, or says why not.
                    pause = Some(UNREADABLE);
                } else if watched.is_discovered() && is_unserved(&error) {
                    // Perhaps another version is served now.
                    pause = Some(UNDISCOVERED);
                }
                None
            }
        };
        send(with, status, input).await?;
        if pause.is_some() {
            return pause;
        }
    }
}

/// Sends an input, when there is one; `None`: nobody listens.
async fn send(with: &Watching, status: &WatchStatus, input: Option<Input>) -> Option<()> {
    let Some(input) = input else { return Some(()) };
    let is_list = is_list(&input);
    with.inputs.send(input).await.ok()?;
    if is_list {
        // Only now: who sees `synced` may count on the list being in the channel.
        status.0.lock().synced = true;
    }
    Some(())
}

fn is_list(input: &Input) -> bool {
    matches!(input, Input::PodsReset { .. } | Input::NodesReset { .. } | Input::ObjectsReset { .. })
}

/// Notes that the server does not know the kind. Returns an empty list the first time.
fn note_unserved<W: Watched>(watched: &W, status: &WatchStatus, now: Now) -> Option<Input> {
    let mut report = status.0.lock();
    report.last_event = Some(now);
    if std::mem::replace(&mut report.unserved, true) {
        return None;
    }
    tracing::warn!(kind = watched.kind(), "kind is not served, going on as if there were none");
    Some(watched.reset(Vec::new(), Vec::new()))
}

fn note_error(kind: &str, status: &WatchStatus, text: String, now: Now) {
    tracing::warn!(kind, error = %text, "watch failed, going on");
    let mut report = status.0.lock();
    report.errors += 1;
    report.last_error = Some((text.into(), now));
}

/// Whether the server does not know the kind at all.
fn is_unserved(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchStartFailed};
    matches!(error, InitialListFailed(kube::Error::Api(s)) | WatchStartFailed(kube::Error::Api(s)) if s.code == 404)
}

/// Whether a change was lost because its text is no JSON that makes an event.
fn is_unreadable(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_)))
}

/// Writes an error; `rights` is group and plural of the kind.
fn describe(error: &watcher::Error, rights: (Cow<'_, str>, Cow<'_, str>)) -> String {
    let missing = |cause: &kube::Error, verb: &str| match cause {
        kube::Error::Api(status) if status.is_forbidden() => {
            format!("; the missing right: {verb} {} in API group {:?}", rights.1, rights.0)
        }
        _ => String::new(),
    };
    match error {
        watcher::Error::InitialListFailed(cause) => {
            format!("list failed: {}{}", chain(cause), missing(cause, "list"))
        }
        watcher::Error::WatchStartFailed(cause) => {
            format!("watch not started: {}{}", chain(cause), missing(cause, "watch"))
        }
        watcher::Error::WatchFailed(cause) => format!("watch broke: {}", chain(cause)),
        watcher::Error::WatchError(status) => {
            format!("watch ended by the server: {} {}: {}", status.code, status.reason, status.message)
        }
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// The objects of a list, until it is complete.
struct Gathered<M> {
    objects: Vec<Arc<M>>,
    quarantined: Vec<Quarantined>,
}

impl<M> Default for Gathered<M> {
    fn default() -> Self {
        Self { objects: Vec::new(), quarantined: Vec::new() }
    }
}

impl<M> Gathered<M> {
    /// Turns a watch event into an input, when it makes one.
    fn translate<W: Watched<Model = M>>(
        &mut self,
        watched: &W,
        event: Event<W::Slim>,
        status: &WatchStatus,
        now: Now,
    ) -> Option<Input> {
        let mut report = status.0.lock();
        report.last_event = Some(now);
        match event {
            Event::Init => *self = Self::default(),
            Event::InitApply(slim) => match watched.decode(&slim) {
                Ok(object) if watched.is_listed(&object) => self.objects.push(Arc::new(object)),
                Ok(_) => {}
                Err(quarantined) => {
                    report.quarantined += 1;
                    log(&quarantined);
                    self.quarantined.push(quarantined);
                }
            },
            Event::InitDone => {
                report.lists += 1;
                report.unserved = false;
                let list = std::mem::take(self);
                tracing::info!(kind = watched.kind(), objects = list.objects.len(), "list complete");
                return Some(watched.reset(list.objects, list.quarantined));
            }
            Event::Apply(slim) => {
                report.events += 1;
                return Some(match watched.decode(&slim) {
                    Ok(object) => watched.applied(Arc::new(object)),
                    Err(quarantined) => {
                        report.quarantined += 1;
                        log(&quarantined);
                        Input::Quarantined(quarantined)
                    }
                });
            }
            Event::Delete(slim) => {
                report.events += 1;
                return watched.deleted(&slim);
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
