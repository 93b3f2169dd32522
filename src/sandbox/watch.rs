//! Watches: a cursor in a table's history, turned into a stream of lines.
//!
//! A watch has no buffer of its own: it reads the history when its client is ready for more. When a client falls behind
//! the history, its cursor expires and the watch ends with a 410.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::clock::later;
use crate::errors::{ApiError, ApiResult};
use crate::faults::{Caller, Fault, Moment};
use crate::kinds::meta;
use crate::kinds::registry::Kind;
use crate::options::{Options, View};
use crate::requests::connection::Cut;
use crate::requests::read::{self, Selection};
use crate::requests::render::{Renderer, to_bytes};
use crate::requests::server::Server;
use crate::store::{Change, Event, Next, Object};

/// Most objects or events in one chunk.
const CHUNK: usize = 256;
/// Bytes after which a chunk is sent. Larger buffers come from the system each time, which clears them.
const CHUNK_BYTES: usize = 64 << 10;
/// Duration of a watch in seconds, when the client sets none.
const DEFAULT_TIMEOUT: u64 = 1800;
/// Interval of bookmarks on a quiet watch.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// How long before its end a watch sends a last bookmark.
const FAREWELL: Duration = Duration::from_secs(2);

/// An open watch.
pub(super) struct Watch {
    server: Arc<Server>,
    kind: Arc<Kind>,
    selection: Selection,
    view: View,
    include_object: String,
    /// Path and query, and who asks, to match fault rules.
    path: String,
    user_agent: String,
    cut: Cut,
    changed: watch::Receiver<u64>,
    faults_added: watch::Receiver<usize>,
    cursor: u64,
    initial: Vec<Arc<Object>>,
    /// Whether the bookmark that ends the initial events is still to be sent.
    announces_initial_end: bool,
    deadline: Timestamp,
    bookmarks: bool,
    next_bookmark: Option<Timestamp>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Silent,
    Breaking,
    Ended,
}

fn caller<'a>(path: &'a str, user_agent: &'a str) -> Caller<'a> {
    Caller { method: "GET", path, user_agent }
}

/// Ends the response in the middle of the body, so that the connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut by a sandbox fault")]
pub(super) struct Broken;

impl Watch {
    /// Opens a watch, or refuses the request.
    pub(super) fn open(
        server: &Arc<Server>,
        kind: Arc<Kind>,
        selection: Selection,
        options: &Options,
        view: View,
        (path, user_agent, cut): (String, String, Cut),
    ) -> ApiResult<Self> {
        let revision = read::revision(&options.revision)?;
        let changed = server.api.store.subscribe(&kind.storage);
        let wants_initial = options.initial_events || revision == 0;
        let (initial, cursor) = if wants_initial {
            let page = server.api.store.list(&kind.storage, &selection.namespace);
            let items = page.items.into_iter().filter(|object| selection.has(object)).rev().collect();
            (items, page.revision)
        } else {
            (Vec::new(), revision)
        };
        let now = server.api.clock.now();
        let deadline = later(now, Duration::from_secs(options.timeout.unwrap_or(DEFAULT_TIMEOUT)));
        let state = match server.faults.take(caller(&path, &user_agent), Moment::WatchOpens) {
            None => State::Open,
            Some((Fault::EndWatch, _)) => State::Ended,
            Some(_) => State::Silent,
        };
        let mut watch = Self {
            server: server.clone(),
            kind,
            selection,
            view,
            include_object: options.include_object.clone(),
            path,
            user_agent,
            cut,
            changed,
            faults_added: server.faults.additions(),
            cursor,
            initial,
            announces_initial_end: options.initial_events,
            deadline,
            bookmarks: options.bookmarks,
            next_bookmark: None,
            state,
        };
        watch.plan_bookmark(now);
        Ok(watch)
    }

    /// Turns the watch into the chunks of a response body.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Broken>> {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|chunk| (chunk, watch)) })
    }

    fn plan_bookmark(&mut self, now: Timestamp) {
        let farewell = self.deadline.checked_sub(FAREWELL).unwrap_or(self.deadline);
        let next = if farewell > now { farewell.min(later(now, HEARTBEAT)) } else { later(now, HEARTBEAT) };
        self.next_bookmark = (self.bookmarks && next <= self.deadline).then_some(next);
    }

    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        loop {
            match self.state {
                State::Open => {}
                State::Silent => {
                    self.server.shutdown.cancelled().await;
                    return None;
                }
                State::Breaking => {
                    // Let the half line reach the client first.
                    tokio::task::yield_now().await;
                    self.state = State::Ended;
                    return Some(Err(Broken));
                }
                State::Ended => return None,
            }
            self.faults_added.borrow_and_update();
            if let Some((fault, _)) = self.server.faults.take(self.caller(), Moment::WatchOpen) {
                if fault == Fault::Reset {
                    self.cut.reset();
                    return None;
                }
                self.state = State::Silent;
                continue;
            }
            let mut out = BytesMut::new();
            self.changed.borrow_and_update();
            let has_more = self.fill(&mut out);
            if !out.is_empty() {
                return Some(Ok(out.freeze()));
            }
            if has_more {
                continue;
            }
            let now = self.server.api.clock.now();
            if self.next_bookmark.is_some_and(|at| at <= now) {
                self.plan_bookmark(now);
                self.renderer().bookmark(self.cursor, false, &mut out);
                return Some(Ok(out.freeze()));
            }
            if now >= self.deadline {
                return None;
            }
            self.wait().await?;
            // Requests that are ready go first: what they write goes out in one chunk, and clients are woken once.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until there may be something to do. Returns `None` if the server stops.
    async fn wait(&mut self) -> Option<()> {
        let wake = self.next_bookmark.unwrap_or(self.deadline).min(self.deadline);
        tokio::select! {
            changed = self.changed.changed() => changed.ok(),
            added = self.faults_added.changed() => added.ok(),
            () = self.server.api.clock.wait_until(wake) => Some(()),
            () = self.server.shutdown.cancelled() => None,
        }
    }

    fn caller(&self) -> Caller<'_> {
        caller(&self.path, &self.user_agent)
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer::new(&self.kind, self.view, &self.include_object, self.server.api.clock.now())
    }

    /// Writes the lines that are ready. Returns whether there may be more.
    fn fill(&mut self, out: &mut BytesMut) -> bool {
        if !self.initial.is_empty() {
            let start = self.initial.len().saturating_sub(CHUNK);
            let chunk = self.initial.split_off(start);
            let renderer = self.renderer();
            chunk.iter().rev().for_each(|object| renderer.line("ADDED", object, out));
            return true;
        }
        if self.announces_initial_end {
            self.announces_initial_end = false;
            self.renderer().bookmark(self.cursor, true, out);
            return true;
        }
        match self.server.api.store.after(&self.kind.storage, self.cursor, CHUNK) {
            Next::Expired(oldest) => {
                self.end_gone(&ApiError::too_old(self.cursor, oldest), out);
                false
            }
            Next::Events(events, reached) => {
                for event in &events {
                    self.cursor = event.object.revision;
                    self.write(event, out);
                    if self.state != State::Open {
                        return false;
                    }
                    if out.len() >= CHUNK_BYTES {
                        return true;
                    }
                }
                self.cursor = self.cursor.max(reached);
                !events.is_empty()
            }
        }
    }

    fn end_gone(&mut self, error: &ApiError, out: &mut BytesMut) {
        Renderer::raw_line("ERROR", &to_bytes(&error.status()), out);
        self.state = State::Ended;
    }

    /// Writes an event as this watch sees it: an object that enters or leaves the selection is added or deleted.
    fn write(&mut self, event: &Event, out: &mut BytesMut) {
        let is_in = event.change != Change::Deleted && self.selection.has(&event.object);
        let previous = event.previous.as_ref().filter(|object| self.selection.has(object));
        let moved;
        let (word, object) = match (previous, is_in) {
            (None, false) => return,
            (None, true) => ("ADDED", &*event.object),
            (Some(_), true) => ("MODIFIED", &*event.object),
            (Some(_), false) if event.change == Change::Deleted => ("DELETED", &*event.object),
            (Some(previous), false) => {
                // The client gets the object as it last saw it, with the revision of the change.
                let mut value = previous.value();
                let revision = event.object.revision.to_string();
                meta::metadata(&mut value).insert("resourceVersion".into(), revision.into());
                moved = Object { revision: event.object.revision, ..Object::unstored(&self.kind, &value) };
                ("DELETED", &moved)
            }
        };
        let start = out.len();
        self.renderer().line(word, object, out);
        match self.server.faults.take(self.caller(), Moment::WatchEvent).map(|(fault, _)| fault) {
            None => {}
            Some(Fault::DuplicateEvent) => {
                let line = out[start..].to_vec();
                out.extend_from_slice(&line);
            }
            Some(Fault::LoseEvent) => out.truncate(start),
            Some(Fault::UndecodableEvent) => {
                out.truncate(start);
                Renderer::raw_line(word, b"{\"metadata\":\"not an object\"}", out);
            }
            Some(Fault::DropMidLine) => {
                out.truncate(start + (out.len() - start) / 2);
                self.state = State::Breaking;
            }
            Some(_) => {
                out.truncate(start);
                self.end_gone(&ApiError::injected(410, None), out);
            }
        }
    }
}
