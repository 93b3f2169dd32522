//! A read as data: what a room registers to be served, and what its read is given.
//!
//! Most answer with one JSON body. Some hand out bytes of a type of their own, and some are feeds: lines behind a
//! cursor, which the server may go on sending as new states are published.
//!
//! Everything about a route that people or programs can see (paths, OpenAPI, the list of services, the
//! index page, tables) is made from this one registration. Nothing here touches the web framework.

use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_model::time::Now;
use serde_json::Value;

use crate::error::ReadError;
use crate::registration::params::{Param, Params};
use crate::registration::table::Table;

/// What a read is told about the request beside its parameters.
#[derive(Clone, Debug, Default)]
pub struct RequestInfo {
    /// When the request came in.
    pub now: Now,
    /// The id that the log and the response carry.
    pub request_id: String,
    /// Who asks: address and user agent, as far as they are known.
    pub from: String,
}

/// The HTTP method of a registration. A `GET` also answers `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads; changes nothing.
    Get,
    /// Reads with a question too long for a URL; changes nothing either.
    Post,
    /// Sets a value; doing it twice is doing it once.
    Put,
}

impl Method {
    /// Returns the name as it stands in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// The function that makes a body.
pub type Read<S> = Arc<dyn Fn(&S, &Params, &RequestInfo) -> Result<Value, ReadError> + Send + Sync>;

/// The function that makes a table of a body.
pub type Rows = Arc<dyn Fn(&Value) -> Table + Send + Sync>;

/// The function that makes bytes.
pub type ReadBytes<S> = Arc<dyn Fn(&S, &Params, &RequestInfo) -> Result<Vec<u8>, ReadError> + Send + Sync>;

/// Lines of a feed.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Each a JSON document without a line break, with the cursor of a reader who has read it.
    pub lines: Vec<(u64, String)>,
    /// The cursor behind all of them.
    pub cursor: u64,
    /// Whether this state has more.
    pub is_more: bool,
}

/// The function that returns the lines behind a cursor, no more than so many.
pub type ReadLines<S> = Arc<dyn Fn(&S, &Params, u64, usize) -> Lines + Send + Sync>;

/// How a route answers.
pub enum Answers<S> {
    /// With a JSON body, or a table of it.
    Json(Read<S>),
    /// With bytes of this content type.
    Bytes(&'static str, ReadBytes<S>),
    /// With lines, as NDJSON or as an event stream.
    Lines(ReadLines<S>),
}

impl<S> Clone for Answers<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Json(read) => Self::Json(Arc::clone(read)),
            Self::Bytes(content_type, read) => Self::Bytes(content_type, Arc::clone(read)),
            Self::Lines(read) => Self::Lines(Arc::clone(read)),
        }
    }
}

/// One registered read.
pub struct Route<S> {
    /// `Get`, or `Post` when the question is a JSON body.
    pub(crate) method: Method,
    /// The path template: literal segments and `:parameter` segments.
    pub path: String,
    /// The heading under which the documentation lists it.
    pub tag: String,
    /// What it answers, in a few words without a full stop.
    pub summary: String,
    /// The rest of what a reader should know.
    pub description: String,
    /// Path and query parameters. `format` and `minGeneration` are the server's own and not listed.
    pub params: Vec<Param>,
    /// The shape of the JSON body of a `Post`; the read gets it from [`Params::body`].
    pub request: Option<BodySchema>,
    /// The shape of a successful body, or of a line of a feed.
    pub body: BodySchema,
    /// How to make a table of it, if it has rows.
    pub rows: Option<Rows>,
    /// Code and message of a typical 404, for the documentation.
    pub not_found_example: Option<(&'static str, String)>,
    /// It computes for long: it waits for the others of its kind, and the short ones do not wait for it.
    pub is_long: bool,
    /// Makes the answer. It runs outside the threads that serve connections, and may take its time.
    pub answers: Answers<S>,
}

impl<S> Route<S> {
    /// Registers a read without parameters or rows; the fields are public, fill in the rest.
    pub fn get(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        body: BodySchema,
        read: impl Fn(&S, &Params, &RequestInfo) -> Result<Value, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            method: Method::Get,
            path: path.into(),
            tag: tag.to_owned(),
            summary: summary.to_owned(),
            description: String::new(),
            params: Vec::new(),
            request: None,
            body,
            rows: None,
            not_found_example: None,
            is_long: false,
            answers: Answers::Json(Arc::new(read)),
        }
    }

    /// Registers a read that answers with bytes of a content type.
    pub fn bytes(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        content_type: &'static str,
        read: impl Fn(&S, &Params, &RequestInfo) -> Result<Vec<u8>, ReadError> + Send + Sync + 'static,
    ) -> Self {
        let unused = |_: &S, _: &Params, _: &RequestInfo| Ok(Value::Null);
        let route = Self::get(path, tag, summary, BodySchema::any(), unused);
        Self { answers: Answers::Bytes(content_type, Arc::new(read)), ..route }
    }

    /// Registers a feed of lines of a type. Its parameters `since`, `limit` and `follow` are the server's own.
    pub fn lines(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        line: BodySchema,
        read: impl Fn(&S, &Params, u64, usize) -> Lines + Send + Sync + 'static,
    ) -> Self {
        let unused = |_: &S, _: &Params, _: &RequestInfo| Ok(Value::Null);
        let route = Self::get(path, tag, summary, line, unused);
        Self { answers: Answers::Lines(Arc::new(read)), ..route }
    }

    /// Turns it into a `POST` whose question is a JSON body of this shape.
    #[must_use]
    pub fn asked_with(mut self, request: BodySchema) -> Self {
        self.method = Method::Post;
        self.request = Some(request);
        self
    }

    /// Adds the text below the summary.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.to_owned();
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// Adds the way to make a table.
    #[must_use]
    pub fn rows(mut self, rows: impl Fn(&Value) -> Table + Send + Sync + 'static) -> Self {
        self.rows = Some(Arc::new(rows));
        self
    }

    /// Says that it computes for long.
    #[must_use]
    pub fn long(mut self) -> Self {
        self.is_long = true;
        self
    }

    /// Adds a typical 404 for the documentation.
    #[must_use]
    pub fn not_found(mut self, code: &'static str, message: &str) -> Self {
        self.not_found_example = Some((code, message.to_owned()));
        self
    }
}

impl<S> Clone for Route<S> {
    fn clone(&self) -> Self {
        Self {
            method: self.method,
            path: self.path.clone(),
            tag: self.tag.clone(),
            summary: self.summary.clone(),
            description: self.description.clone(),
            params: self.params.clone(),
            request: self.request,
            body: self.body,
            rows: self.rows.clone(),
            not_found_example: self.not_found_example.clone(),
            is_long: self.is_long,
            answers: self.answers.clone(),
        }
    }
}
