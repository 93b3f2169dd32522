//! Responds to registered reads: waits for the generation, takes one snapshot, reads, renders.
//!
//! A pool thread loads the snapshot, reads it and drops it. A request never holds a snapshot while it waits for its
//! turn, so a queue of slow reads does not keep old snapshots alive.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, header};
use pellucid_model::{Published, Viewer};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::access::redaction::{FieldNames, Redact, Redactor};
use crate::body::{self, BodyBudget};
use crate::connection::pool::Pool;
use crate::connection::response_budget::ResponseBudget;
use crate::error::{Failure, ReadError};
use crate::recent::{Next, Recent};
use crate::registration::endpoint::{Answered, Call, Endpoint, answer};
use crate::registration::operation::{FORMAT, MIN_GENERATION, Operation};
use crate::registration::params::Params;
use crate::registration::route::{Answers, Method, Read, ReadBytes, RequestInfo, Route};
use crate::registration::table::Format;
use crate::stream::{self, Streams};
use crate::walks::{self, Walks};

/// Returns the current snapshot.
pub type Load<S> = Arc<dyn Fn() -> Arc<S> + Send + Sync>;

/// Response header with the generation of the snapshot that was read.
const GENERATION: HeaderName = HeaderName::from_static("x-snapshot-generation");

/// Where the body of a list that goes on has the token of its next page.
const NEXT_PAGE: &str = "/meta/continue";

pub(super) struct Reader<S> {
    pub(super) load: Load<S>,
    pub(super) redact: Redact<S>,
    pub(super) field_names: FieldNames,
    /// Changes after each publication; the value is ignored.
    pub(super) published: watch::Receiver<u64>,
    pub(super) pool: Pool,
    /// Pool of long reads.
    pub(super) long: Pool,
    /// Pool of long reads with a body, whose cost the client decides.
    pub(super) questions: Pool,
    pub(super) waiters: Semaphore,
    pub(super) patience: Duration,
    pub(super) body_limit: usize,
    pub(super) body_patience: Duration,
    /// Room for the bodies that are read or answered.
    pub(super) bodies: BodyBudget,
    pub(super) streams: Streams,
    pub(super) response_budget: ResponseBudget,
    pub(super) walks: Arc<Walks<S>>,
    pub(super) recent: Recent<S>,
}

pub(super) fn endpoint<S>(route: Route<S>, reader: &Arc<Reader<S>>) -> Endpoint
where
    S: Published + Send + Sync + 'static,
{
    let (route, reader) = (Arc::new(route), Arc::clone(reader));
    Endpoint::new(Operation::of(&route), move |call| {
        let (route, reader) = (Arc::clone(&route), Arc::clone(&reader));
        async move {
            match &route.answers {
                Answers::Json(read) => reader.answer(&route, read.clone(), call).await,
                Answers::Bytes(content_type, read) => reader.hand_out(content_type, read.clone(), call).await,
                Answers::Lines(read) => stream::answer(reader, read.clone(), call).await,
            }
        }
    })
}

impl<S: Published + Send + Sync + 'static> Reader<S> {
    async fn answer(self: Arc<Self>, route: &Arc<Route<S>>, read: Read<S>, call: Call) -> Answered {
        let format = Format::choose(call.params.text(FORMAT), &call.headers, route.rows.is_some())?;
        self.wait_for_min_generation(&call.params).await?;
        let question = match route.method {
            Method::Post => {
                let (headers, limit, patience) = (&call.headers, self.body_limit, self.body_patience);
                body::check_type(headers, &["application/json"])?;
                Some(body::read_within(headers, call.body, limit, patience, &self.bodies).await?)
            }
            Method::Get | Method::Put => None,
        };
        let pool = match &question {
            Some(_) if route.is_long => &self.questions,
            _ => self.pool_of(route),
        };
        let (reader, route) = (Arc::clone(&self), Arc::clone(route));
        let job = move || {
            // The room is held until the answer is there, and in it the text.
            let (params, _room) = match question {
                Some((text, room)) => (call.params.with_body(text)?, Some(room)),
                None => (call.params, None),
            };
            let (snapshot, read) = reader.read(&route, &read, &params, &call.info)?;
            let redactor = reader.redactor(&snapshot, &call.info.viewer);
            let mut value = read.map_err(|error| redactor.error(error))?;
            redactor.value(&mut value);
            if route.page_of.is_some() && value.pointer(NEXT_PAGE).is_some() {
                reader.walks.hold(Arc::clone(&snapshot));
            }
            let body = render(&value, &params, format, &route)?;
            Ok::<_, Failure>((snapshot.generation(), reader.response_budget.body(body)?))
        };
        let (generation, body) = pool.run(job).await??;
        let mut response = respond(format.content_type(), generation, body);
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        Ok(response)
    }

    /// Returns what takes foreign names out of answers of a snapshot.
    pub(super) fn redactor(&self, snapshot: &S, viewer: &Viewer) -> Redactor {
        Redactor::of(viewer, &self.field_names, || (self.redact)(snapshot, viewer))
    }

    /// Returns the pool of a read without a body.
    fn pool_of(&self, route: &Route<S>) -> &Pool {
        if route.is_long { &self.long } else { &self.pool }
    }

    /// Returns the snapshot that a request is about, and what is read of it.
    fn read(
        self: &Arc<Self>,
        route: &Arc<Route<S>>,
        read: &Read<S>,
        params: &Params,
        info: &RequestInfo,
    ) -> Result<(Arc<S>, Result<Value, ReadError>), Failure> {
        let snapshot = self.snapshot(route, params)?;
        let goes_on = || route.page_of.as_ref().is_some_and(|page_of| matches!(page_of(params), Ok(Some(_))));
        if !route.is_shared || goes_on() {
            let value = read(&snapshot, params, info);
            return Ok((snapshot, value));
        }
        let kept = self.recent.choose(params.integer(MIN_GENERATION)?);
        // What an older snapshot does not know, the newest one may.
        if let Some(kept) = kept
            && let Ok(value) = read(&kept, params, info)
        {
            return Ok((kept, Ok(value)));
        }
        let since = Instant::now();
        let value = read(&snapshot, params, info);
        if self.recent.keep(&snapshot, since) {
            let (route, read) = (Arc::clone(route), read.clone());
            tokio::spawn(Arc::clone(self).tend(route, read, params.clone(), info.clone()));
        }
        Ok((snapshot, value))
    }

    /// Has the newest snapshot worked out now and then by this read, as long as somebody asks for what is shared.
    async fn tend(self: Arc<Self>, route: Arc<Route<S>>, read: Read<S>, params: Params, info: RequestInfo) {
        while let Some(next) = self.recent.next() {
            let (Next::Renew(at) | Next::LetGo(at)) = next;
            tokio::time::sleep_until(at).await;
            if let Next::LetGo(_) = next {
                self.recent.let_go();
                continue;
            }
            let (reader, read, params, info) =
                (Arc::clone(&self), read.clone(), params.clone(), info.clone());
            let job = move || {
                let (snapshot, since) = ((reader.load)(), Instant::now());
                if !reader.recent.is_still(&snapshot) {
                    let _ = read(&snapshot, &params, &info);
                    reader.recent.keep(&snapshot, since);
                }
            };
            if self.pool_of(&route).run(job).await.is_err() {
                self.recent.give_up();
            }
        }
    }

    /// Returns the snapshot to read: of a list that goes on, the one that its first page was of. Fails with 410 when that
    /// is not held any more.
    fn snapshot(&self, route: &Route<S>, params: &Params) -> Result<Arc<S>, ReadError> {
        let current = (self.load)();
        let Some(wanted) = route.page_of.as_ref().map_or(Ok(None), |page_of| page_of(params))? else {
            return Ok(current);
        };
        let held = self.walks.find(wanted).or_else(|| (current.generation() == wanted).then_some(current));
        held.ok_or_else(|| {
            let idle = walks::IDLE.as_secs();
            let message = format!(
                "the state that this list began with is not kept any more: it is for {idle} s after the last page; \
                 begin again without `continue`"
            );
            ReadError::Gone("ContinueExpired", message)
        })
    }

    /// Responds with bytes. They run as long reads, because there may be many bytes.
    async fn hand_out(
        self: Arc<Self>,
        content_type: &'static str,
        read: ReadBytes<S>,
        call: Call,
    ) -> Answered {
        self.wait_for_min_generation(&call.params).await?;
        let reader = Arc::clone(&self);
        let job = move || {
            let snapshot = (reader.load)();
            let bytes = read(&snapshot, &call.params, &call.info)?;
            Ok::<_, Failure>((snapshot.generation(), reader.response_budget.body(bytes)?))
        };
        let (generation, bytes) = self.long.run(job).await??;
        Ok(respond(content_type, generation, bytes))
    }

    /// Waits for the generation that the request asks for, if any.
    pub(super) async fn wait_for_min_generation(&self, params: &Params) -> Result<(), Failure> {
        match params.integer(MIN_GENERATION)? {
            Some(wanted) => self.wait(wanted).await,
            None => Ok(()),
        }
    }

    /// Waits until a snapshot of at least this generation is published. Fails with 429 when too many requests wait,
    /// and with 503 after the time limit.
    async fn wait(&self, wanted: u64) -> Result<(), Failure> {
        let unavailable = |code, message: String| Failure::from(ReadError::Unavailable(code, message));
        let mut published = self.published.clone();
        published.mark_unchanged();
        if (self.load)().generation() >= wanted {
            return Ok(());
        }
        let Ok(_waiter) = self.waiters.try_acquire() else {
            let message = "too many requests wait for a newer state".to_owned();
            return Err(ReadError::TooMany("TooManyRequests", message).into());
        };
        let reached = async {
            while (self.load)().generation() < wanted {
                published.changed().await?;
            }
            Ok::<(), watch::error::RecvError>(())
        };
        match tokio::time::timeout(self.patience, reached).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(unavailable("ShuttingDown", "no newer state will be published".to_owned())),
            Err(_) => {
                let at = (self.load)().generation();
                let waited = self.patience.as_secs_f64();
                let message = format!("generation {wanted} was not reached in {waited} s; it is at {at}");
                Err(unavailable("GenerationNotReached", message))
            }
        }
    }
}

fn render<S>(value: &Value, params: &Params, format: Format, route: &Route<S>) -> Result<Vec<u8>, Failure> {
    let broken = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, path = route.path, "a body could not be written");
        let message = "the body could not be written; the log has more under the request id";
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    };
    match (format, &route.rows) {
        (Format::Table, Some(rows)) => Ok(rows(value, params).to_markdown().into_bytes()),
        (Format::Csv, Some(rows)) => rows(value, params).to_csv().map_err(|error| broken(&error)),
        // `Format::choose` rejects tables for bodies without rows.
        (Format::Json | Format::Table | Format::Csv, _) => {
            serde_json::to_vec(value).map_err(|error| broken(&error))
        }
    }
}

pub(super) fn respond(content_type: &'static str, generation: u64, body: impl Into<Body>) -> Response {
    let mut response = answer(content_type, body);
    response.headers_mut().insert(GENERATION, HeaderValue::from(generation));
    response
}
