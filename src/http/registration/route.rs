//! A read as data: what a crate registers to be served, and the types of its function.
//!
//! Most reads return one JSON body. Some return bytes of a given content type, and some are feeds: lines after a
//! cursor, which the server may keep sending as new snapshots are published.
//!
//! Everything visible about a route (paths, OpenAPI, the list of services, the index page, tables) comes from this one
//! registration. Nothing here depends on the web framework.

use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_model::Viewer;
use pellucid_model::time::Now;
use serde_json::Value;

use crate::authority::User;
use crate::error::ReadError;
use crate::registration::params::{Param, Params};
use crate::registration::table::Table;

/// Facts about a request besides its parameters.
#[derive(Clone, Debug, Default)]
pub struct RequestInfo {
    /// Time at which the request arrived.
    pub now: Now,
    /// The id in the log and in the response.
    pub request_id: String,
    /// The user, if known, with address and user agent of the client.
    pub from: String,
    /// Whose names the client may see.
    pub viewer: Viewer,
    /// Who asks, where the server asks for that.
    pub user: Option<Arc<User>>,
}

/// The HTTP method of a registration. `Get` also answers `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads without a body. Changes nothing.
    Get,
    /// Reads with a body that is too long for a URL. Changes nothing either.
    Post,
    /// Sets a value. Idempotent.
    Put,
}

impl Method {
    /// Returns the method's name in HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// Returns the JSON body of a response.
pub type Read<S> = Arc<dyn Fn(&S, &Params, &RequestInfo) -> Result<Value, ReadError> + Send + Sync>;

/// Builds a table from a JSON body and the parameters of its request.
pub type Rows = Arc<dyn Fn(&Value, &Params) -> Table + Send + Sync>;

/// Returns the generation of the snapshot that a request goes on with, or `None` for a first page.
pub type PageOf = Arc<dyn Fn(&Params) -> Result<Option<u64>, ReadError> + Send + Sync>;

/// Returns the bytes of a response.
pub type ReadBytes<S> = Arc<dyn Fn(&S, &Params, &RequestInfo) -> Result<Vec<u8>, ReadError> + Send + Sync>;

/// A batch of lines of a feed.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Cursor after each line, and the line: a JSON document without line breaks.
    pub lines: Vec<(u64, String)>,
    /// Cursor after all of these lines.
    pub cursor: u64,
    /// Whether the snapshot has more lines after the cursor.
    pub is_more: bool,
}

/// Returns the lines after a cursor, up to a number of lines.
pub type ReadLines<S> = Arc<dyn Fn(&S, &Params, u64, usize) -> Lines + Send + Sync>;

/// Kind of response of a route, and the function that makes it.
pub enum Answers<S> {
    /// A JSON body, or a table of it.
    Json(Read<S>),
    /// Bytes of this content type.
    Bytes(&'static str, ReadBytes<S>),
    /// Lines, as NDJSON or as an event stream.
    Lines(ReadLines<S>),
}

/// A registered read: its function, and everything that the documentation says about it.
pub struct Route<S> {
    /// `Get`, or `Post` when the read takes a JSON body.
    pub(crate) method: Method,
    /// The path template: literal segments and `:parameter` segments.
    pub path: String,
    /// Tag under which the documentation lists the route.
    pub tag: String,
    /// Summary in a few words, without a full stop.
    pub summary: String,
    /// Text of the documentation below the summary.
    pub description: String,
    /// Path and query parameters. The server adds `format` and `minGeneration` itself.
    pub params: Vec<Param>,
    /// Schema of the JSON body of a `Post`; the read gets the body from [`Params::body`].
    pub request: Option<BodySchema>,
    /// Schema of a successful body, or of one line of a feed.
    pub body: BodySchema,
    /// Builds a table from the body, if it has rows.
    pub rows: Option<Rows>,
    /// Code and message of a typical 404, for the documentation.
    pub not_found_example: Option<(&'static str, String)>,
    /// Whether the read is slow: it queues with other slow reads, and fast ones do not wait for it.
    pub is_long: bool,
    /// Whether the read works out a lot that all readers of the snapshot share. Where that takes long, it is read from a
    /// snapshot that may be up to a second old.
    pub is_shared: bool,
    /// Of a list with pages: which snapshot a request goes on with. The body of a page before the last has the token of
    /// the next one in `meta.continue`.
    pub page_of: Option<PageOf>,
    /// Makes the response. It runs outside the threads that serve connections, so it may block.
    pub answers: Answers<S>,
}

impl<S> Route<S> {
    /// Creates a read without parameters or rows. The fields are public; set the others as needed.
    pub fn get(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        body: BodySchema,
        read: impl Fn(&S, &Params, &RequestInfo) -> Result<Value, ReadError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(path.into(), tag, summary, body, Answers::Json(Arc::new(read)))
    }

    fn new(path: String, tag: &str, summary: &str, body: BodySchema, answers: Answers<S>) -> Self {
        Self {
            method: Method::Get,
            path,
            tag: tag.to_owned(),
            summary: summary.to_owned(),
            description: String::new(),
            params: Vec::new(),
            request: None,
            body,
            rows: None,
            not_found_example: None,
            is_long: false,
            is_shared: false,
            page_of: None,
            answers,
        }
    }

    /// Creates a read that returns bytes of a content type.
    pub fn bytes(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        content_type: &'static str,
        read: impl Fn(&S, &Params, &RequestInfo) -> Result<Vec<u8>, ReadError> + Send + Sync + 'static,
    ) -> Self {
        let answers = Answers::Bytes(content_type, Arc::new(read));
        Self::new(path.into(), tag, summary, BodySchema::any(), answers)
    }

    /// Creates a feed of lines of a type. The server adds the parameters `since`, `limit` and `follow` itself.
    pub fn lines(
        path: impl Into<String>,
        tag: &str,
        summary: &str,
        line: BodySchema,
        read: impl Fn(&S, &Params, u64, usize) -> Lines + Send + Sync + 'static,
    ) -> Self {
        Self::new(path.into(), tag, summary, line, Answers::Lines(Arc::new(read)))
    }

    /// Turns the read into a `POST` with a JSON body of this schema.
    #[must_use]
    pub fn asked_with(mut self, request: BodySchema) -> Self {
        self.method = Method::Post;
        self.request = Some(request);
        self
    }

    /// Sets the text below the summary.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.to_owned();
        self
    }

    /// Adds a path or query parameter.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// Sets the function that builds a table.
    #[must_use]
    pub fn rows(mut self, rows: impl Fn(&Value, &Params) -> Table + Send + Sync + 'static) -> Self {
        self.rows = Some(Arc::new(rows));
        self
    }

    /// Marks the read as slow.
    #[must_use]
    pub fn long(mut self) -> Self {
        self.is_long = true;
        self
    }

    /// Sets a typical 404 for the documentation.
    #[must_use]
    pub fn not_found(mut self, code: &'static str, message: &str) -> Self {
        self.not_found_example = Some((code, message.to_owned()));
        self
    }
}
