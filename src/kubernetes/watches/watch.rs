//! Lists and watches one kind: decodes objects off the scheduling thread and sends them to it as [`Input`]. `inputs`
//! starts one watch per kind.
//!
//! A watch lists its kind, then watches from the version of the list. When a watch ends or breaks, it resumes from the
//! last version it received. When the server no longer has the changes since then (410), the watch lists again. A list
//! replaces everything (`Reset`), because deletes may have been missed (`initial_list`). client-go's reflector works the same way.
//! kube's `watcher` is not used: it holds a whole page of a list at a time, backs off up to 30 s, does not back off
//! from watches that end at once, and waits for a response head without a limit.
//!
//! The channel is bounded and nothing is dropped: when the scheduling thread falls behind, the watch stops reading. An
//! object that cannot be decoded is sent as quarantined, and the watch continues. A kind that the server does not
//! serve has no objects, unless it is required. Discovery is repeated every half minute, so a CustomResourceDefinition
//! may be created and deleted at any time.

use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use kube::core::params::WatchParams;
use kube::core::{Request, Status};
use pellucid_cluster::input::{Input, Quarantined};
use pellucid_model::Now;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Clock;
use crate::connection::limits::{JitteredBackoff, WatchLimits, chance};
use crate::connection::server_probe::ServerRecovery;
use crate::decode::{Decoder, Event};
use crate::kinds::{Kind, path};
use crate::watches::catch_up::Pursuit;
use crate::watches::initial_list::Streaming;
use crate::watches::inputs;
use crate::watches::list::{Listing, PageSize, newest_version};
use crate::watches::reader::{Lines, ReadError, Reader};
use crate::watches::served::Served;
use crate::watches::status::{RetryCause, WatchStatus};

/// Minimum pause before a list is repeated after unreadable data, and before discovery is repeated after a 404.
const NONSENSE: Duration = Duration::from_secs(1);

/// Why a kind that the API server does not have is left out.
const NOT_SERVED: &str = "the API server does not serve it";

/// Dependencies that all watches share.
#[derive(Clone)]
pub(crate) struct Watching {
    pub(crate) reader: Reader,
    pub(crate) decoder: Decoder,
    pub(crate) served: Arc<Served>,
    pub(crate) inputs: Sender<Input>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
}

/// Watches a kind until `stop` is cancelled or the input channel is closed.
pub(crate) async fn watch(kind: Kind, with: Watching, status: Arc<WatchStatus>) {
    let stop = with.stop.clone();
    let limits = with.reader.limits.clone();
    let watcher = Watcher {
        resource: kind.api_resource(),
        backoff: JitteredBackoff::new(limits.first_backoff, limits.longest_backoff),
        listed: None,
        page_size: PageSize(limits.first_page),
        streaming: if limits.streaming_lists { Streaming::Wanted } else { Streaming::Unsupported },
        limits,
        kind,
        with,
        status,
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = watcher.run() => {}
    }
}

/// State of a watch.
pub(super) enum Position {
    /// The version and path that serve the kind must be determined.
    Locate,
    /// The pages of a list are being read.
    List(Listing),
    /// All changes up to `version` were received.
    Watch {
        version: String,
        /// Whether the connection was lost or the server failed since: one with other versions may answer next. It stays so
        /// until a watch has been opened after a look at the server's newest version.
        is_doubtful: bool,
    },
}

/// The next position and the pause before it; `None` when the input channel is closed.
pub(super) type Next = Option<(Position, Duration)>;

/// State of an open watch.
struct Open {
    lines: Lines,
    recovery: ServerRecovery,
    /// When the watch starts to count as working.
    steady_at: Instant,
    is_steady: bool,
    version: String,
    pursuit: Pursuit,
}

/// Why an open watch ended.
enum End {
    /// The server closed the connection in the regular way.
    Ended,
    /// The server sent an error.
    Error(Box<Status>),
    /// The connection broke, fell silent or delivered unreadable data.
    Broke(ReadError),
    /// The kind must be listed to know that nothing is missing.
    Behind,
}

/// State machine that watches one kind. [`Watcher::run`] holds its position.
pub(super) struct Watcher {
    pub(super) kind: Kind,
    pub(super) with: Watching,
    pub(super) status: Arc<WatchStatus>,
    pub(super) limits: Arc<WatchLimits>,
    pub(super) resource: ApiResource,
    backoff: JitteredBackoff,
    /// When the last list was completed.
    pub(super) listed: Option<Instant>,
    pub(super) page_size: PageSize,
    pub(super) streaming: Streaming,
}

impl Watcher {
    /// Moves from position to position until the input channel is closed.
    async fn run(mut self) {
        let mut position = Position::Locate;
        loop {
            let next = match position {
                Position::Locate => self.locate().await,
                Position::List(listing) if listing.is_new() && self.streaming == Streaming::Wanted => {
                    self.stream().await
                }
                Position::List(listing) => self.list(listing).await,
                Position::Watch { version, is_doubtful } => self.follow(version, is_doubtful).await,
            };
            let Some((next, pause)) = next else { return };
            position = next;
            if !pause.is_zero() {
                self.with.reader.server.pause(pause).await;
            }
        }
    }

    /// Finds out where the kind is served.
    async fn locate(&mut self) -> Next {
        let located = match self.kind.resource().is_discovered {
            true => self.with.served.locate(&self.with.reader, self.kind).await,
            false => Ok(Some(self.kind.api_resource())),
        };
        match located {
            Ok(Some(resource)) => {
                self.resource = resource;
                Some((Position::List(Listing::default()), Duration::ZERO))
            }
            Ok(None) => self.left_out(NOT_SERVED).await,
            Err(error) => {
                let text = format!("discovery failed: {error}");
                Some((Position::Locate, self.failed(&text, (&error).into(), error.retry_after())))
            }
        }
    }

    /// Opens a watch and forwards its events until it ends.
    async fn follow(&mut self, version: String, is_doubtful: bool) -> Next {
        let path = path(&self.resource);
        let opened = async {
            if is_doubtful && is_before(&newest_version(&self.with.reader, &path).await?, &version) {
                return Ok(None);
            }
            let request = Request::new(&path).watch(&self.watch_params(), &version);
            let request = request.map_err(|e| ReadError::Unreadable(e.to_string()))?;
            self.with.reader.open(request, self.limits.answer).await.map(Some)
        };
        let body = match opened.await {
            Ok(Some(body)) => body,
            Ok(None) => {
                let text = "the server began to count its versions anew, listing again";
                self.broke(text, RetryCause::Expired, true);
                return Some((Position::List(Listing::default()), Duration::ZERO));
            }
            Err(error) => return self.not_opened(error, version, is_doubtful).await,
        };
        self.go_on(Lines::new(body, self.limits.object_bytes), version).await
    }

    /// Forwards the events of an open watch, which has brought all changes up to `version`, until it ends.
    pub(super) async fn go_on(&mut self, lines: Lines, version: String) -> Next {
        self.status.opened(self.now());
        let mut open = Open {
            lines,
            recovery: self.with.reader.server.subscribe(),
            steady_at: Instant::now() + self.limits.steady,
            is_steady: false,
            version,
            pursuit: Pursuit::new(&self.status),
        };
        let end = self.forward(&mut open, &path(&self.resource)).await?;
        self.mark_steady(&mut open);
        Some(self.ended(end, open.is_steady, open.version))
    }

    pub(super) fn watch_params(&self) -> WatchParams {
        let seconds = self.limits.watch.mul_f64(0.8 + 0.2 * chance()).as_secs();
        let timeout = u32::try_from(seconds.max(1)).ok();
        WatchParams { timeout, bookmarks: true, ..WatchParams::default() }
    }

    async fn not_opened(&mut self, error: ReadError, version: String, was_doubtful: bool) -> Next {
        if error.code() == Some(404) && !self.kind.resource().is_required {
            return self.not_found("watch not started", &error).await;
        }
        let text = format!("watch not started: {error}{}", self.missing_right(&error, "watch"));
        let pause = self.failed(&text, (&error).into(), error.retry_after());
        if error.code() == Some(410) {
            return Some((Position::List(Listing::default()), self.before_new_list(pause)));
        }
        // Whatever answers in the meantime, such as a load balancer with 503, says nothing about the position.
        let is_doubtful = was_doubtful || error.code().is_none_or(|code| code >= 500);
        Some((Position::Watch { version, is_doubtful }, pause))
    }

    /// Forwards the events of an open watch. Returns how it ended, or `None` when the input channel is closed.
    async fn forward(&self, open: &mut Open, path: &str) -> Option<End> {
        loop {
            let line = match self.next_line(open, path).await {
                Ok(line) => line,
                Err(end) => return Some(end),
            };
            let event = match self.event(&line) {
                Ok(Event::Error(status)) => return Some(End::Error(status)),
                Ok(event) => event,
                Err(error) => return Some(End::Broke(error)),
            };
            if let Some(input) = self.translate(event, &mut open.version) {
                self.with.inputs.send(input).await.ok()?;
            }
            open.pursuit.passed(&open.version);
        }
    }

    /// Reads one line of a watch.
    pub(super) fn event(&self, line: &[u8]) -> Result<Event, ReadError> {
        match self.with.decoder.with(|| Event::read(line, |item| self.kind.read(item))) {
            Ok(Event::Applied(item) | Event::Deleted(item)) if item.name.is_empty() => {
                // A quarantine record without a name identifies no object, so the change would be lost.
                Err(ReadError::Unreadable("an event about an object without a readable name".into()))
            }
            Ok(event) => Ok(event),
            // Some servers send a bare `Status` instead of an ERROR event.
            Err(error) => match serde_json::from_slice::<Status>(line) {
                Ok(status) if status.code > 0 => Ok(Event::Error(Box::new(status))),
                _ => Err(ReadError::Unreadable(error.to_string())),
            },
        }
    }

    /// Returns the next line, or how the watch ended: also when it stays silent beyond its limit, is still silent
    /// shortly after the server came back, or does not show that it has caught up.
    async fn next_line(&self, open: &mut Open, path: &str) -> Result<bytes::Bytes, End> {
        self.mark_steady(open);
        let begun = Instant::now();
        let mut until = begun + self.limits.silence;
        loop {
            if open.pursuit.is_due() && open.pursuit.go_on(&self.with.reader, path, &open.version).await {
                return Err(End::Behind);
            }
            if let Some(line) = open.lines.arrived() {
                return Ok(line);
            }
            tokio::select! {
                biased;
                line = open.lines.next() => return line.map_err(End::Broke)?.ok_or(End::Ended),
                () = sleep_until(open.steady_at), if !open.is_steady => self.mark_steady(open),
                () = open.recovery.next() => until = until.min(Instant::now() + open.recovery.silence()),
                () = open.pursuit.due() => {}
                () = sleep_until(until) => return Err(End::Broke(ReadError::Silent(begun.elapsed()))),
            }
        }
    }

    /// Marks the watch as working once it has been open long enough.
    fn mark_steady(&self, open: &mut Open) {
        if !open.is_steady && Instant::now() >= open.steady_at {
            open.is_steady = true;
            self.status.recovered(self.kind.as_str(), self.now());
        }
    }

    /// Turns a watch event into an input. Bookmarks only advance the version.
    fn translate(&self, event: Event, version: &mut String) -> Option<Input> {
        let mut advance = |to: &str| {
            if !to.is_empty() {
                to.clone_into(version);
            }
        };
        let now = self.now();
        self.status.event(matches!(event, Event::Bookmark { .. }), now);
        match event {
            Event::Applied(item) => {
                advance(&item.resource_version);
                Some(match item.object {
                    Ok(object) => inputs::applied(object),
                    Err(quarantined) => {
                        self.status.quarantined();
                        log(&quarantined);
                        Input::Quarantined(quarantined)
                    }
                })
            }
            Event::Deleted(item) => {
                advance(&item.resource_version);
                Some(inputs::deleted(self.kind, &item))
            }
            Event::Bookmark { version, .. } => {
                advance(&version);
                None
            }
            Event::Error(_) => None,
        }
    }

    /// Returns the next position after an open watch ended, and the pause before it.
    fn ended(&mut self, end: End, was_steady: bool, version: String) -> (Position, Duration) {
        match end {
            End::Ended if was_steady => {
                self.backoff.reset();
                self.status.retried(RetryCause::Ended);
                (Position::Watch { version, is_doubtful: false }, Duration::ZERO)
            }
            End::Ended => {
                let text = "the server ended the watch at once";
                let pause = self.broke(text, RetryCause::EndedAtOnce, false);
                (Position::Watch { version, is_doubtful: false }, pause)
            }
            End::Error(status) => {
                let (code, reason, message) = (status.code, &status.reason, &status.message);
                let text = format!("watch ended by the server: {code} {reason}: {message}");
                let is_expired = code == 410;
                let cause = if is_expired { RetryCause::Expired } else { RetryCause::Status };
                let pause = self.broke(&text, cause, was_steady);
                match is_expired {
                    true => (Position::List(Listing::default()), self.before_new_list(pause)),
                    false => (Position::Watch { version, is_doubtful: false }, pause),
                }
            }
            End::Behind => {
                self.status.retried(RetryCause::Behind);
                (Position::List(Listing::default()), Duration::ZERO)
            }
            End::Broke(error) => {
                let cause = RetryCause::from(&error);
                let pause = self.broke(&format!("watch broke: {error}"), cause, was_steady);
                if cause == RetryCause::Unreadable {
                    // A resumed watch would skip this change. A new list contains it, or quarantines the object.
                    return (Position::List(Listing::default()), pause.max(NONSENSE));
                }
                (Position::Watch { version, is_doubtful: true }, pause)
            }
        }
    }

    /// Records that an open watch ended, and returns how long to wait. A watch that worked is reopened after a short
    /// random pause, so that watches that broke together do not reopen together. It counts as failing only if it
    /// cannot be reopened.
    fn broke(&mut self, text: &str, cause: RetryCause, was_steady: bool) -> Duration {
        if !was_steady {
            return self.failed(text, cause, None);
        }
        self.backoff.reset();
        self.status.retried(cause);
        self.status.error(text, self.now());
        tracing::info!(kind = self.kind.as_str(), error = text, "opening the watch anew");
        self.limits.reopen.mul_f64(chance())
    }

    /// Returns how long to wait before listing again after a 410. Such a server is healthy, so earlier failures do not
    /// delay the list. If the 410 follows soon after a list, the back-off applies.
    fn before_new_list(&self, pause: Duration) -> Duration {
        match self.listed {
            Some(at) if at.elapsed() < self.limits.longest_backoff => pause,
            _ => pause.min(self.limits.reopen.mul_f64(chance())),
        }
    }

    /// Records a failure, and returns how long to wait.
    pub(super) fn failed(&mut self, text: &str, cause: RetryCause, wish: Option<Duration>) -> Duration {
        self.status.retried(cause);
        self.status.failed(self.kind.as_str(), text, self.now(), self.limits.log);
        self.backoff.after_failure(wish)
    }

    /// Returns the next position after a 404.
    pub(super) async fn not_found(&mut self, what: &str, error: &ReadError) -> Next {
        if !self.kind.resource().is_discovered {
            return self.left_out(NOT_SERVED).await;
        }
        // Another version may be served now.
        let pause = self.failed(&format!("{what}: {error}"), RetryCause::Status, None);
        Some((Position::Locate, pause.max(NONSENSE)))
    }

    /// Continues without the kind, which cannot be listed for the reason `why`. The first time, sends an empty list.
    pub(super) async fn left_out(&mut self, why: &str) -> Next {
        let kind = self.kind.as_str();
        self.backoff.reset();
        if self.status.unserved(kind, self.now()) {
            tracing::warn!(kind, why, "going on as if there were no objects of this kind");
            self.send_list(Listing::default()).await?;
        }
        let catch_ups = self.status.catch_ups();
        catch_ups.reach(catch_ups.asked());
        Some((Position::Locate, self.limits.unserved))
    }

    /// Names the missing RBAC permission when a request was forbidden; empty for other errors.
    pub(super) fn missing_right(&self, error: &ReadError, verb: &str) -> String {
        if error.code() != Some(403) {
            return String::new();
        }
        let (group, plural) = (&self.resource.group, &self.resource.plural);
        format!("; the missing right: {verb} {plural} in API group {group:?}")
    }

    pub(super) fn now(&self) -> Now {
        (self.with.clock)()
    }
}

/// Returns whether a version is certainly older than another. Only numeric versions can be compared.
fn is_before(version: &str, other: &str) -> bool {
    matches!((version.parse::<u64>(), other.parse::<u64>()), (Ok(version), Ok(other)) if version < other)
}

pub(super) fn log(q: &Quarantined) {
    tracing::warn!(
        kind = q.kind, namespace = %q.namespace, name = %q.name, field = %q.field, value = %q.value,
        problem = %q.problem, "object cannot be read, quarantined"
    );
}
