//! Describes one method on one path: the common form of routes and of the server's own endpoints.
//!
//! The OpenAPI document, the list of services and the index page are made from operations alone.

use pellucid_api::rest::{BodySchema, ErrorBody, Services};
use serde_json::{Value, json};

use crate::connection::pool;
use crate::error::BuildError;
use crate::registration::need::Need;
use crate::registration::params::{Kind, Location, Param};
use crate::registration::route::{Answers, Method, Route};
use crate::server::READ_PATIENCE;
use crate::stream;

/// The query parameter that chooses the format of a response.
pub(crate) const FORMAT: &str = "format";
/// The query parameter that waits for a generation.
pub(crate) const MIN_GENERATION: &str = "minGeneration";

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) tag: String,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) params: Vec<Param>,
    pub(crate) request: Option<Request>,
    pub(crate) answers: Vec<Answer>,
    /// What a request needs where there is a gate.
    pub(crate) need: Need,
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Json(BodySchema),
    Text { example: &'static str },
}

/// Documented response for one status.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) contents: Vec<Content>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Json {
        schema: BodySchema,
        example: Option<Value>,
    },
    Text {
        content_type: &'static str,
    },
    /// Lines, each with this schema.
    Lines {
        line: BodySchema,
    },
    Bytes {
        content_type: &'static str,
    },
}

impl Operation {
    /// Describes one of the server's own endpoints.
    pub(crate) fn standard(path: &str, tag: &str, summary: &str, content: Content) -> Self {
        Self {
            method: Method::Get,
            path: path.to_owned(),
            tag: tag.to_owned(),
            summary: summary.to_owned(),
            description: String::new(),
            params: Vec::new(),
            request: None,
            need: Need::Verb("get"),
            answers: vec![
                Answer { status: 200, description: "The answer", contents: vec![content] },
                Answer::refused(400, "The request is malformed", None),
                Answer::refused(500, "A defect in the program; the log has the request id", None),
            ],
        }
    }

    /// Sets what a request needs where there is a gate.
    pub(crate) fn needing(self, need: Need) -> Self {
        Self { need, ..self }
    }

    /// Describes a route, with the parameters and refusals that the server adds.
    pub(crate) fn of<S>(route: &Route<S>) -> Self {
        let mut contents = match &route.answers {
            Answers::Json(_) => vec![Content::Json { schema: route.body, example: None }],
            Answers::Bytes(content_type, _) => vec![Content::Bytes { content_type }],
            Answers::Lines(_) => {
                let events = Content::Text { content_type: stream::EVENT_STREAM };
                vec![Content::Lines { line: route.body }, events]
            }
        };
        if route.rows.is_some() {
            contents.push(Content::Text { content_type: "text/markdown" });
            contents.push(Content::Text { content_type: "text/csv" });
        }
        let mut operation = Self {
            method: route.method,
            description: route.description.clone(),
            request: route.request.map(Request::Json),
            params: route.params.clone(),
            need: need(route),
            ..Self::standard(&route.path, &route.tag, &route.summary, Content::json(route.body))
        };
        match &route.answers {
            Answers::Json(_) => operation.params.push(format_param(route.rows.is_some())),
            Answers::Bytes(..) => {}
            Answers::Lines(_) => operation.params.extend(stream::own_params()),
        }
        operation.params.push(min_generation());
        operation.answers[0].contents = contents;
        let has_path_params = route.params.iter().any(|param| param.location == Location::Path);
        if has_path_params || route.not_found_example.is_some() {
            let example = route.not_found_example.clone();
            operation.add(Answer::refused(404, "There is no such object", example));
        }
        if route.request.is_some() {
            operation.add_body_refusals();
        }
        if route.page_of.is_some() {
            operation.add(Answer::refused(410, "The state of the pages before is not kept any more", None));
        }
        operation.add(Answer::refused(422, "The request contradicts itself", None));
        operation.add(Answer::refused(429, "Too many requests wait for their turn", None));
        let overdue = ("DeadlineExceeded", pool::overdue_message(READ_PATIENCE));
        let unavailable = "It cannot be answered now, or not within the 10 s that an answer may take";
        operation.add(Answer::refused(503, unavailable, Some(overdue)));
        operation
    }

    pub(crate) fn add_body_refusals(&mut self) {
        self.add(Answer::refused(
            403,
            "A page of another origin sent it, or the user has no right to this",
            None,
        ));
        self.add(Answer::refused(413, "The body is too long", None));
        self.add(Answer::refused(415, "The body is of a type that is not read here", None));
    }

    pub(crate) fn add(&mut self, answer: Answer) {
        self.answers.push(answer);
        self.answers.sort_by_key(|answer| answer.status);
    }

    /// Returns a parameter as it is documented. Every endpoint accepts all values of `format`, so that it can reject a
    /// table with a clear message when it has no rows; only the supported ones are documented.
    pub(crate) fn documented(&self, param: &Param) -> Param {
        let is_text = |content: &Content| matches!(content, Content::Text { .. });
        let has_tables = self.answers.iter().any(|answer| answer.contents.iter().any(is_text));
        let mut param = param.clone();
        if param.name == FORMAT && !has_tables {
            param.kind = Kind::Choice(&["json"]);
        }
        param
    }

    /// Checks the path template and its declared parameters.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let path_error = |why| BuildError::Path { path: self.path.clone(), why };
        let segments = self.path.strip_prefix('/').ok_or_else(|| path_error("must begin with /"))?;
        let mut in_path = Vec::new();
        for segment in segments.split('/').filter(|_| !segments.is_empty()) {
            let (name, is_param) = segment.strip_prefix(':').map_or((segment, false), |name| (name, true));
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if name.is_empty() || !name.bytes().all(allowed) {
                let why = "segments are letters, digits, `_`, `-`, `.`, or such a name behind a colon";
                return Err(path_error(why));
            }
            if is_param {
                in_path.push(name);
            }
        }
        self.check_params(&in_path)
    }

    fn check_params(&self, in_path: &[&str]) -> Result<(), BuildError> {
        let error = |name: &str, why| {
            Err(BuildError::Parameter { path: self.path.clone(), name: name.to_owned(), why })
        };
        for (index, param) in self.params.iter().enumerate() {
            if self.params[..index].iter().any(|earlier| earlier.name == param.name) {
                return error(&param.name, "is declared twice, or is the server's own");
            }
            if (param.location == Location::Path) != in_path.contains(&param.name.as_str()) {
                return error(&param.name, "is not in the template as declared");
            }
        }
        match in_path.iter().find(|name| !self.params.iter().any(|param| param.name == **name)) {
            Some(name) => error(name, "is not declared"),
            None => Ok(()),
        }
    }

    /// Returns the template with every parameter replaced by its position, which is equal for colliding paths.
    pub(crate) fn positional(&self) -> String {
        self.braced(|index, _| format!("p{index}"))
    }

    /// Returns the template with parameters in braces. `rename` maps the index of a segment and the parameter's name.
    pub(crate) fn braced(&self, rename: impl Fn(usize, &str) -> String) -> String {
        let segments = self.path.split('/').enumerate();
        let segments = segments.map(|(index, segment)| match segment.strip_prefix(':') {
            Some(name) => format!("{{{}}}", rename(index, name)),
            None => segment.to_owned(),
        });
        segments.collect::<Vec<String>>().join("/")
    }
}

impl Answer {
    pub(crate) fn refused(
        status: u16,
        description: &'static str,
        example: Option<(&'static str, String)>,
    ) -> Self {
        let example = example
            .map(|(code, message)| json!({"code": code, "message": message, "requestId": "18a2f0c4-17"}));
        let content = Content::Json { schema: BodySchema::of::<ErrorBody>(), example };
        Self { status, description, contents: vec![content] }
    }
}

impl Content {
    pub(crate) fn json(schema: BodySchema) -> Self {
        Self::Json { schema, example: None }
    }

    pub(crate) const PLAIN: Self = Self::Text { content_type: "text/plain" };
}

/// Returns what a request to a route needs: simulations and dumps are verbs of their own.
fn need<S>(route: &Route<S>) -> Need {
    match (&route.answers, route.method) {
        (Answers::Bytes(..), _) => Need::Verb("dump"),
        (_, Method::Post) => Need::VerbOrPods("create", &["get", "create"]),
        (_, Method::Put) => Need::Verb("update"),
        (_, Method::Get) => Need::VerbOrPods("get", &["get"]),
    }
}

/// Returns the parameter `format`, which every route with a JSON body has.
fn format_param(has_rows: bool) -> Param {
    let forms = if has_rows {
        "`json` (default), `table` (Markdown) or `csv`"
    } else {
        "`json`, the only form of this endpoint"
    };
    Param::query(FORMAT, Kind::Choice(&["json", "table", "csv"]), forms).example("json")
}

/// Returns the parameter `minGeneration`, which every route has.
fn min_generation() -> Param {
    let what = "Wait, a few seconds at most, until a state of at least this generation is published";
    Param::query(MIN_GENERATION, Kind::Integer, what).example("1")
}

/// Returns the path templates of each method.
pub(crate) fn services(operations: &[Operation]) -> Services {
    let mut services = Services::default();
    for operation in operations {
        let paths = services.0.entry(operation.method.as_str().to_owned()).or_default();
        paths.push(operation.path.clone());
    }
    services.0.values_mut().for_each(|paths| paths.sort());
    services
}
