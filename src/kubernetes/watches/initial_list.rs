//! How a watch gets all objects of its kind: as a stream, else in pages.
//!
//! A stream (WatchList) is a watch that begins with every object and a bookmark that ends them, and then goes on with the
//! changes. The server sends the objects one by one out of its cache, where it builds each page of a list in memory; it is
//! what client-go asks for first, too. A server may not know streams, and one may break: the same list is then read in
//! pages, of which none is read twice.
//!
//! Not here: how a page is read (`list`), and what happens to changes (`watch`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Request;
use kube::core::params::WatchParams;
use pellucid_cluster::input::Quarantined;
use pellucid_model::Name;
use tokio::time::{Instant, timeout};

use crate::decode::{Decoded, Event};
use crate::kinds::path;
use crate::watches::inputs;
use crate::watches::list::Listing;
use crate::watches::list_items::ListError;
use crate::watches::reader::{Lines, ReadError};
use crate::watches::watch::{Next, Position, Watcher, log};

/// Whether lists are asked for as streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    /// The next list is.
    Wanted,
    /// The last one failed; the list is read in pages.
    Failed,
    /// The server does not know them, or they are off.
    Unsupported,
}

/// The objects of a stream so far, in the order of lists. Events between them may change or delete earlier ones.
type Streamed = BTreeMap<(Name, Arc<str>), Result<Decoded, Quarantined>>;

impl Watcher {
    /// Reads all objects from the start of a watch, and goes on with it.
    pub(super) async fn stream(&mut self) -> Next {
        let mut listing = Listing::fulfilling(self.status.catch_ups().asked());
        let mut all = Streamed::new();
        let limit = self.limits.watch;
        let read =
            timeout(limit, self.read_stream(&mut all)).await.unwrap_or(Err(ReadError::NoAnswer(limit)));
        let (lines, version) = match read {
            Ok(read) => read,
            Err(error) => {
                let is_unknown = matches!(error.code(), Some(400 | 422));
                self.streaming = if is_unknown { Streaming::Unsupported } else { Streaming::Failed };
                tracing::info!(kind = self.kind.as_str(), %error, "no streamed list, reading it in pages");
                return Some((Position::List(Listing::default()), Duration::ZERO));
            }
        };
        for object in all.into_values() {
            match object {
                Ok(object) => listing.objects.push(object),
                Err(quarantined) => listing.quarantined.push(quarantined),
            }
        }
        self.completed(listing).await?;
        self.go_on(lines, version).await
    }

    /// Reads events until the bookmark that ends the first objects. Returns the open watch and the version it is at.
    async fn read_stream(&self, all: &mut Streamed) -> Result<(Lines, String), ReadError> {
        let params = WatchParams { send_initial_events: true, ..self.watch_params() };
        let request = Request::new(path(&self.resource)).watch(&params, "");
        let request = request.map_err(|e| ReadError::Unreadable(e.to_string()))?;
        let reader = &self.with.reader;
        let mut recovery = reader.server.subscribe();
        let body = reader.open(request, self.limits.list_answer).await?;
        let mut lines = Lines::new(body, self.limits.object_bytes);
        loop {
            let silence = self.limits.page_silence;
            let line = tokio::select! {
                biased;
                line = timeout(silence, lines.next()) => line.map_err(|_| ReadError::Silent(silence))??,
                () = recovery.answer_is_lost() => return Err(ReadError::Lost),
            };
            let line =
                line.ok_or_else(|| ReadError::Connection("the stream ended before its last object".into()))?;
            self.status.received(self.now());
            match self.event(&line)? {
                Event::Applied(item) => {
                    let key = (item.namespace, item.name);
                    match item.object {
                        Ok(object) if !inputs::is_listed(&object) => drop(all.remove(&key)),
                        object => {
                            if let Err(quarantined) = &object {
                                self.status.quarantined();
                                log(quarantined);
                            }
                            all.insert(key, object);
                        }
                    }
                }
                Event::Deleted(item) => drop(all.remove(&(item.namespace, item.name))),
                Event::Bookmark { version, ends_initial: true } => return Ok((lines, version)),
                Event::Bookmark { .. } => {}
                Event::Error(status) => return Err(ReadError::Status { status, retry_after: None }),
            }
        }
    }

    /// Records that all objects are known, and sends them; `None` when the input channel is closed.
    async fn completed(&mut self, listing: Listing) -> Option<()> {
        self.status.listed(self.now());
        tracing::info!(kind = self.kind.as_str(), objects = listing.objects.len(), "list complete");
        self.send_list(listing).await?;
        self.listed = Some(Instant::now());
        Some(())
    }

    /// Reads one page of a list. After the last page, sends the complete list.
    pub(super) async fn list(&mut self, mut listing: Listing) -> Next {
        let (kind, status, clock, decoder) = (self.kind, &self.status, &self.with.clock, &self.with.decoder);
        let take = |listing: &mut Listing, item: &[u8]| {
            let item = decoder.with(|| kind.read(item)).map_err(|e| ListError::Item(e.to_string()))?;
            match item.object {
                Ok(object) if inputs::is_listed(&object) => listing.objects.push(object),
                Ok(_) => {}
                Err(quarantined) => {
                    status.quarantined();
                    log(&quarantined);
                    listing.quarantined.push(quarantined);
                }
            }
            Ok(())
        };
        listing.request.get_or_insert_with(|| status.catch_ups().asked());
        let path = path(&self.resource);
        let on_part = || status.received(clock());
        let read = listing.read_page(&self.with.reader, &path, &mut self.page_size, take, on_part).await;
        let version = match read {
            Ok(Some(version)) => version,
            Ok(None) => return Some((Position::List(listing), Duration::ZERO)),
            Err(error) => return self.list_failed(error, listing).await,
        };
        self.completed(listing).await?;
        if self.streaming == Streaming::Failed {
            self.streaming = Streaming::Wanted;
        }
        Some((Position::Watch { version, is_doubtful: false }, Duration::ZERO))
    }

    async fn list_failed(&mut self, error: ReadError, listing: Listing) -> Next {
        if error.code() == Some(404) && !self.kind.resource().is_required {
            return self.not_found("list failed", &error).await;
        }
        let text = format!("list failed: {error}{}", self.missing_right(&error, "list"));
        if error.code() == Some(403) && !self.kind.resource().is_decisive {
            self.status.retried((&error).into());
            self.status.error(&text, self.now());
            return self.left_out(&text).await;
        }
        let pause = self.failed(&text, (&error).into(), error.retry_after());
        // Keep the pages read so far, unless the list has expired on the server.
        let next = if error.code() == Some(410) { Listing::default() } else { listing };
        Some((Position::List(next), pause))
    }

    /// Sends a complete list; `None` when the input channel is closed.
    pub(super) async fn send_list(&self, listing: Listing) -> Option<()> {
        let reset = inputs::reset(self.kind, listing.objects, listing.quarantined);
        self.with.inputs.send(reset).await.ok()?;
        // Not earlier: readers of `synced` rely on the list being in the channel.
        self.status.synced();
        self.status.catch_ups().reach(listing.request.unwrap_or_default());
        Some(())
    }
}
