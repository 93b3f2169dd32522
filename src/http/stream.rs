//! Feeds: lines after a cursor, sent as they appear.
//!
//! A feed reads a few hundred lines at a time from the current snapshot, only as fast as the peer takes them. A slow
//! reader holds one batch in memory and no snapshot. A reader that falls behind what the source retains gets a gap
//! marker from the source; one that does not read at all is cut off by `patient`. A followed feed waits for the next
//! publication. The number of followed feeds is limited, and all end when the server stops.
//!
//! Lines are NDJSON unless the request accepts `text/event-stream`. An event has its cursor as its id, so a browser
//! that lost the connection resumes where it was.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pellucid_model::{Published, Viewer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::redaction::Redactor;
use crate::connection::pool::Pool;
use crate::error::{Failure, ReadError};
use crate::read::{Reader, respond};
use crate::registration::endpoint::{Answered, Call};
use crate::registration::params::{Kind, Param, Params, shortened};
use crate::registration::route::{Lines, ReadLines};

/// Content type of lines, one JSON document each.
pub(super) const NDJSON: &str = "application/x-ndjson";
/// Content type of server-sent events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

const SINCE: &str = "since";
const LIMIT: &str = "limit";
const FOLLOW: &str = "follow";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Number of lines read at once.
const AT_ONCE: usize = 256;
/// Interval of keep-alive comments on a silent event stream. Proxies drop connections that are silent for long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long a feed is followed for a user whose rights were asked about.
const TRUSTED: Duration = Duration::from_secs(3600);

/// State that all feeds share.
pub(super) struct Streams {
    pub(super) followers: Arc<Semaphore>,
    /// Pool that reads lines. Separate from other reads, which must not wait for many small batches.
    pub(super) pool: Pool,
    /// Ends all feeds.
    pub(super) stop: CancellationToken,
}

/// Returns the parameters that the server adds to every feed.
pub(super) fn own_params() -> [Param; 3] {
    let since = "Begin behind this id: the last one that was read. Without it, or with 0, the feed begins with the oldest there is";
    let limit = "End after so many lines";
    let follow = "Stay, and send what happens from now on; implied by `Accept: text/event-stream`";
    [
        Param::query(SINCE, Kind::Integer, since).example("0"),
        Param::query(LIMIT, Kind::Integer, limit).example("100"),
        Param::query(FOLLOW, Kind::Boolean, follow).example("false"),
    ]
}

struct Feed<S> {
    reader: Arc<Reader<S>>,
    read: ReadLines<S>,
    params: Arc<Params>,
    viewer: Viewer,
    /// When a feed ends whose reader has to be asked about again.
    ends: Option<Instant>,
    cursor: u64,
    left: u64,
    is_events: bool,
    /// Held while the feed is followed.
    follower: Option<OwnedSemaphorePermit>,
    published: watch::Receiver<u64>,
}

/// Responds to a request for a feed. Fails with 429 when too many feeds are followed.
pub(super) async fn answer<S>(reader: Arc<Reader<S>>, read: ReadLines<S>, call: Call) -> Answered
where
    S: Published + Send + Sync + 'static,
{
    reader.wait_for_min_generation(&call.params).await?;
    let is_events = accepts_events(&call.headers);
    let since = match last_event_id(&call.headers)? {
        Some(id) => Some(id),
        None => call.params.integer(SINCE)?,
    };
    let left = call.params.integer(LIMIT)?.unwrap_or(u64::MAX);
    let follow = call.params.boolean(FOLLOW)?.unwrap_or(is_events);
    let follower = match follow {
        true => Some(Arc::clone(&reader.streams.followers).try_acquire_owned().map_err(|_| too_many())?),
        false => None,
    };
    let (published, generation) = (reader.published.clone(), (reader.load)().generation());
    let (params, cursor) = (Arc::new(call.params), since.unwrap_or(0));
    let ends = call.info.user.as_ref().map(|_| Instant::now() + TRUSTED);
    let viewer = call.info.viewer;
    let feed = Feed { reader, read, params, viewer, ends, cursor, left, is_events, follower, published };
    let body = Body::from_stream(stream::unfold(feed, next));
    let mut response = respond(if is_events { EVENT_STREAM } else { NDJSON }, generation, body);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept, last-event-id"));
    Ok(response)
}

/// Returns the next chunk of the body; `None` ends it.
async fn next<S>(mut feed: Feed<S>) -> Option<(Result<Bytes, std::io::Error>, Feed<S>)>
where
    S: Published + Send + Sync + 'static,
{
    loop {
        // Before reading, so that a publication in between is noticed.
        feed.published.mark_unchanged();
        let is_over = feed.ends.is_some_and(|end| Instant::now() >= end);
        if is_over || feed.left == 0 || feed.reader.streams.stop.is_cancelled() {
            return None;
        }
        let Ok(lines) = feed.batch().await else {
            return Some((Err(std::io::Error::other("the feed met a defect in the program")), feed));
        };
        feed.cursor = lines.cursor;
        if !lines.lines.is_empty() {
            feed.left -= (lines.lines.len() as u64).min(feed.left);
            let bytes = render(&lines.lines, feed.is_events);
            return Some((Ok(bytes), feed));
        }
        if feed.follower.is_none() && !lines.is_more {
            return None;
        }
        if !lines.is_more && !feed.wait().await? {
            return Some((Ok(Bytes::from_static(b": still here\n\n")), feed));
        }
    }
}

impl<S: Published + Send + Sync + 'static> Feed<S> {
    async fn batch(&self) -> Result<Lines, Failure> {
        let (reader, read, params) =
            (Arc::clone(&self.reader), Arc::clone(&self.read), Arc::clone(&self.params));
        let (cursor, at_most) = (self.cursor, AT_ONCE.min(usize::try_from(self.left).unwrap_or(AT_ONCE)));
        let viewer = self.viewer.clone();
        let job = move || {
            let snapshot = (reader.load)();
            let lines = read(&snapshot, &params, cursor, at_most);
            redacted(lines, || reader.redactor(&snapshot, &viewer))
        };
        self.reader.streams.pool.run(job).await
    }

    /// Waits for the next publication. Returns `false` when a keep-alive is due, `None` at the end.
    async fn wait(&mut self) -> Option<bool> {
        let sign = async {
            match self.is_events {
                true => tokio::time::sleep(SIGN_OF_LIFE).await,
                // NDJSON has no comments for a keep-alive.
                false => std::future::pending().await,
            }
        };
        let ends = self.ends;
        let end = async {
            match ends {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = end => None,
            changed = self.published.changed() => changed.ok().map(|()| true),
            () = self.reader.streams.stop.cancelled() => None,
            () = sign => Some(false),
        }
    }
}

/// Takes foreign names out of lines. The redactor is made only if there are lines: it may collect the names of all objects,
/// and most publications have nothing for a reader.
fn redacted(lines: Lines, redactor: impl FnOnce() -> Redactor) -> Lines {
    if lines.lines.is_empty() {
        return lines;
    }
    let redactor = redactor();
    Lines { lines: lines.lines.into_iter().map(|(id, line)| (id, redactor.line(line))).collect(), ..lines }
}

fn render(lines: &[(u64, String)], is_events: bool) -> Bytes {
    let mut text = String::new();
    for (id, line) in lines {
        text += &match is_events {
            true => format!("id: {id}\ndata: {line}\n\n"),
            false => format!("{line}\n"),
        };
    }
    text.into()
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let texts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = texts.flat_map(|text| text.split(','));
    kinds.into_iter().any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == EVENT_STREAM))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ReadError> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let text = value.to_str().unwrap_or("(not text)");
    text.parse().map(Some).map_err(|_| {
        let message = format!("header Last-Event-ID has the value `{}`; it must be an id", shortened(text));
        ReadError::BadRequest("InvalidHeader", message)
    })
}

fn too_many() -> Failure {
    let message = "too many feeds are followed; end some, or ask without follow";
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyStreams", message).with(header::RETRY_AFTER, "5")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::access::redaction::{FieldNames, Names};

    struct Secret;

    impl Names for Secret {
        fn without(&self, text: &str) -> Option<String> {
            text.contains("secret").then(|| text.replace("secret", "?"))
        }
    }

    #[test]
    fn names_are_collected_for_lines_alone() {
        let made = AtomicUsize::new(0);
        let fields: FieldNames = Arc::new(LazyLock::new(Box::new(BTreeSet::new)));
        let redactor = || {
            made.fetch_add(1, Ordering::Relaxed);
            Redactor::of(&Viewer::of(["mine"]), &fields, || Arc::new(Secret))
        };
        let nothing = Lines { lines: Vec::new(), cursor: 7, is_more: false };
        let lines = redacted(nothing, redactor);
        assert_eq!((lines.cursor, made.load(Ordering::Relaxed)), (7, 0));
        let some = Lines { lines: vec![(8, r#"{"pod":"secret/a"}"#.into())], cursor: 8, is_more: true };
        let lines = redacted(some, redactor);
        assert_eq!(lines.lines, [(8, r#"{"pod":"?/a"}"#.to_owned())]);
        assert_eq!((lines.cursor, lines.is_more, made.load(Ordering::Relaxed)), (8, true, 1));
    }
}
