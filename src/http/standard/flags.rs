//! Runtime switches under `/debug/flags`.
//!
//! A switch is set with its raw value (`curl -X PUT --data 5 …/debug/flags/v`) and writes its own response. The switch
//! alone decides what a value means, and which scoped forms it takes.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pellucid_api::rest::BodySchema;
use pellucid_api::rest::debug::Recording;
use pellucid_model::Viewer;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::access::redaction::Redactor;
use crate::body;
use crate::connection::pool::Pool;
use crate::connection::response_budget::ResponseBudget;
use crate::error::Failure;
use crate::registration::endpoint::{Answered, Call, Endpoint, answer};
use crate::registration::need::Need;
use crate::registration::operation::{Answer, Content, Operation, Request};
use crate::registration::params::{Param, shortened};
use crate::registration::route::{Method, RequestInfo};
use crate::standard::budgeted;

/// Response of a switch that was set.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// One line of text, after a raw value.
    Text(String),
    /// The settings now in force, after a JSON value.
    Json(Value),
}

/// Why a switch was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The value is invalid. 400.
    Invalid(String),
    /// The value names something that does not exist. 404.
    NotFound(String),
    /// Too many settings are in force already. 429.
    TooMany(String),
}

/// A setting that can be read and changed at run time.
pub trait Switch: Send + Sync {
    /// Returns the last segment of its path, such as `v`.
    fn name(&self) -> &str;
    /// Returns what the switch does, in one sentence.
    fn summary(&self) -> &str;
    /// Returns the current value as text.
    fn get(&self) -> String;
    /// Sets the value and returns a success message. Otherwise returns what is wrong and changes nothing.
    fn set(&self, value: &str) -> Result<String, String>;
    /// Sets the value for a request. Switches that take more than raw values override this.
    fn set_as(&self, value: &str, _by: &RequestInfo) -> Result<Said, Refused> {
        self.set(value).map(Said::Text).map_err(Refused::Invalid)
    }
    /// Returns the entry in the list of switches: at least `name`, `summary` and `value`.
    fn as_json(&self) -> Value {
        json!({"name": self.name(), "summary": self.summary(), "value": self.get()})
    }
}

/// One runtime switch. A switch may add fields of its own.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used; the values are what the switches make")]
struct Flag {
    /// The last segment of its path.
    name: String,
    /// What it does.
    summary: String,
    /// The present value, for all pods.
    value: Value,
    /// What is in force, scoped values among it; of switches that take them.
    recordings: Option<Vec<Recording>>,
    /// When what it asks for begins to come; of switches that record or log.
    when: Option<String>,
    /// What else is to be known, such as that it was turned off for its cost.
    note: Option<String>,
}

/// All runtime switches.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used; the values are what the switches make")]
struct Flags {
    /// Sorted by name.
    flags: Vec<Flag>,
}

const TAG: &str = "debug";

pub(crate) fn operations() -> Vec<Operation> {
    vec![list_operation(), get_operation(), put_operation()]
}

fn list_operation() -> Operation {
    let content = Content::json(BodySchema::of::<Flags>());
    let summary = "All runtime switches with their values";
    budgeted(Operation::standard("/debug/flags", TAG, summary, content))
        .needing(Need::VerbOrPods("get", &["get"]))
}

fn get_operation() -> Operation {
    let mut operation =
        Operation::standard("/debug/flags/:flag", TAG, "The value of a runtime switch", Content::PLAIN);
    operation.params.push(Param::path("flag", "The name of the switch").example("v"));
    operation.add(Answer::refused(404, "There is no such switch", None));
    operation.needing(Need::VerbOrPods("get", &["get"]))
}

fn put_operation() -> Operation {
    let mut operation = get_operation();
    operation.method = Method::Put;
    operation.summary = "Sets a runtime switch".to_owned();
    operation.description =
        "The body is the raw value, or for some switches a JSON object (see docs/diagnostics.md). It takes effect \
         at once and is lost at restart."
            .to_owned();
    operation.request = Some(Request::Text { example: "5" });
    operation.answers[0].contents.push(Content::json(BodySchema::of::<Recording>()));
    operation.add_body_refusals();
    operation.add(Answer::refused(429, "Too many requests wait for their turn", None));
    operation.needing(Need::Verb("update"))
}

pub(crate) struct Flagged {
    /// Sorted by name.
    pub(crate) switches: Vec<Arc<dyn Switch>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) body_limit: usize,
    pub(crate) body_patience: Duration,
    pub(crate) redactor: Arc<dyn Fn(&Viewer) -> Redactor + Send + Sync>,
    pub(crate) response_budget: Arc<ResponseBudget>,
}

pub(crate) fn endpoints(flagged: &Arc<Flagged>) -> Vec<Endpoint> {
    let (list, get, put) = (Arc::clone(flagged), Arc::clone(flagged), Arc::clone(flagged));
    vec![
        Endpoint::new(list_operation(), move |call| list_all(Arc::clone(&list), call)),
        Endpoint::new(get_operation(), move |call| get_one(Arc::clone(&get), call)),
        Endpoint::new(put_operation(), move |call| set_one(Arc::clone(&put), call)),
    ]
}

async fn list_all(flagged: Arc<Flagged>, call: Call) -> Answered {
    let of_job = Arc::clone(&flagged);
    let list = move || {
        let Flagged { switches, redactor, response_budget, .. } = &*of_job;
        let mut all = json!({"flags": switches.iter().map(|switch| switch.as_json()).collect::<Vec<_>>()});
        redactor(&call.info.viewer).value(&mut all);
        response_budget.body(all.to_string().into_bytes())
    };
    Ok(answer("application/json", flagged.pool.run(list).await??))
}

async fn get_one(flagged: Arc<Flagged>, call: Call) -> Answered {
    let switch = flagged.find(&call)?;
    let redactor = Arc::clone(&flagged.redactor);
    let value = flagged.pool.run(move || redactor(&call.info.viewer).text(switch.get())).await?;
    Ok(answer("text/plain; charset=utf-8", value + "\n"))
}

async fn set_one(flagged: Arc<Flagged>, call: Call) -> Answered {
    let switch = flagged.find(&call)?;
    body::check_type(&call.headers, &TEXT)?;
    let text = body::read_text(&call.headers, call.body, flagged.body_limit, flagged.body_patience).await?;
    let value = text.trim().to_owned();
    if value.is_empty() {
        let message = format!("the body is empty; send the value of `{}` as it is", switch.name());
        return Err(Failure::new(StatusCode::BAD_REQUEST, "InvalidValue", message));
    }
    let name = switch.name().to_owned();
    let logged = shortened(&value);
    let info = call.info;
    let outcome = flagged.pool.run(move || switch.set_as(&value, &info)).await?;
    if outcome.is_ok() {
        tracing::info!(flag = name, value = logged, "runtime switch set");
    }
    match outcome {
        Ok(Said::Text(message)) => Ok(answer("text/plain; charset=utf-8", message + "\n")),
        Ok(Said::Json(body)) => Ok(answer("application/json", body.to_string())),
        Err(Refused::Invalid(wrong)) => Err(Failure::new(StatusCode::BAD_REQUEST, "InvalidValue", wrong)),
        Err(Refused::NotFound(what)) => Err(Failure::new(StatusCode::NOT_FOUND, "RecordingNotFound", what)),
        Err(Refused::TooMany(what)) => {
            Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRecordings", what))
        }
    }
}

impl Flagged {
    fn find(&self, call: &Call) -> Result<Arc<dyn Switch>, Failure> {
        let name = call.params.required("flag")?;
        self.switches.iter().find(|switch| switch.name() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.switches.iter().map(|switch| switch.name()).collect();
            let message =
                format!("there is no switch `{}`; there are: {}", shortened(name), known.join(", "));
            Failure::new(StatusCode::NOT_FOUND, "FlagNotFound", message)
        })
    }
}

/// Content types that clients send for a plain value; curl's default for `--data` is that of a form.
const TEXT: [&str; 4] =
    ["text/plain", "application/x-www-form-urlencoded", "application/json", "application/octet-stream"];
