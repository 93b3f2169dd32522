//! The endpoints of every Kubernetes component, and those that list the others:
//!
//! `/version`, `/configz`, `/metrics`, `/openapi.json`, `/docs`, `/apis/v1/__services__` and `/`.

pub(crate) mod docs;
pub(crate) mod flags;
pub(crate) mod health;
pub(crate) mod page;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use pellucid_api::rest::{BodySchema, Services};
use pellucid_model::Viewer;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use crate::access::redaction::Redactor;
use crate::connection::pool::Pool;
use crate::connection::response_budget::ResponseBudget;
use crate::error::{BuildError, SERVICES};
use crate::registration::endpoint::{Endpoint, answer};
use crate::registration::need::Need;
use crate::registration::openapi::describe;
use crate::registration::operation::{Answer, Content, Operation};
use crate::registration::params::Location;
use crate::registration::route::Route;

/// Content type of the text that prometheus-client writes.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What was built, in the shape of Kubernetes' own version endpoint.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Major version.
    pub major: String,
    /// Minor version.
    pub minor: String,
    /// The full version with a leading `v`.
    pub git_version: String,
    /// The commit it was built from. Empty in a build for development, and in one without git, unless
    /// `PELLUCID_GIT_COMMIT` named it.
    pub git_commit: String,
    /// `clean`, `dirty`, or empty when unknown.
    pub git_tree_state: String,
    /// When it was built, RFC 3339, or empty.
    pub build_date: String,
    /// Empty: this is not a Go program. Clients of Kubernetes expect the field.
    pub go_version: String,
    /// The compiler and its version.
    pub compiler: String,
    /// Operating system and architecture, such as `linux/amd64`.
    pub platform: String,
}

/// Renders a metrics page on request.
#[derive(Clone)]
pub struct Renderer {
    /// Content type of the text.
    pub content_type: &'static str,
    /// Renders the text. Called once per request.
    pub render: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Renderer {
    /// Creates a renderer of OpenMetrics text.
    pub fn openmetrics(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { content_type: OPENMETRICS, render: Arc::new(render) }
    }
}

/// Returns the configuration in force, as JSON.
pub type Configz = Arc<dyn Fn() -> Value + Send + Sync>;

/// A body that is made when it is read for the first time.
pub(crate) type Document = Arc<LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>>;

pub(crate) const INDEX: &str = "/";
const DOCUMENT: &str = "/openapi.json";

fn services() -> Operation {
    let content = Content::json(BodySchema::of::<Services>());
    Operation::standard(SERVICES, "about", "Every route by method", content).needing(Need::User)
}

fn document() -> Operation {
    let content = Content::json(BodySchema::any());
    pooled(Operation::standard(DOCUMENT, "about", "This API as OpenAPI 3.1", content)).needing(Need::User)
}

fn version() -> Operation {
    let content = Content::json(BodySchema::of::<Version>());
    Operation::standard("/version", "about", "What was built", content).needing(Need::User)
}

fn configz() -> Operation {
    let content = Content::json(BodySchema::any());
    budgeted(Operation::standard("/configz", "about", "The configuration in force", content))
}

fn metrics() -> Operation {
    let content = Content::Text { content_type: "application/openmetrics-text" };
    budgeted(Operation::standard("/metrics", "metrics", "Metrics of the scheduler", content))
        .needing(Need::VerbOrPods("get", &["get"]))
}

fn resource_metrics() -> Operation {
    let content = Content::Text { content_type: "application/openmetrics-text" };
    let summary = "Requests and limits of pods as the scheduler sees them";
    budgeted(Operation::standard("/metrics/resources", "metrics", summary, content))
        .needing(Need::VerbOrPods("get", &["get"]))
}

fn pooled(mut operation: Operation) -> Operation {
    operation.add(Answer::refused(429, "Too many requests wait for their turn", None));
    operation
}

/// Documents an operation whose answers share a bound.
fn budgeted(operation: Operation) -> Operation {
    let mut operation = pooled(operation);
    operation.add(Answer::refused(503, UNREAD, None));
    operation
}

/// Why answers that share a bound are refused; what the gate says with the same status is part of it.
const UNREAD: &str = "Answers that were not read yet take all the room, or the API server does not say who asks or what they may";

pub(crate) struct Standard<'a> {
    pub(crate) operations: &'a [Operation],
    pub(crate) document: Document,
    pub(crate) services: Bytes,
    pub(crate) version: Version,
    pub(crate) configz: Configz,
    pub(crate) metrics: Renderer,
    pub(crate) resource_metrics: Renderer,
    pub(crate) pool: Arc<Pool>,
    pub(crate) redactor: Arc<dyn Fn(&Viewer) -> Redactor + Send + Sync>,
    pub(crate) response_budget: Arc<ResponseBudget>,
}

impl Standard<'_> {
    pub(crate) fn endpoints(self) -> Vec<Endpoint> {
        const JSON: &str = "application/json";
        let rendered = |operation, renderer| {
            let (pool, redactor) = (Arc::clone(&self.pool), Arc::clone(&self.redactor));
            rendered(operation, renderer, pool, redactor, Arc::clone(&self.response_budget))
        };
        let list = index_page(self.operations, &self.version.git_version);
        let version_body = serde_json::to_vec(&self.version).unwrap_or_default();
        let render = Arc::new(move || (self.configz)().to_string());
        let config = Renderer { content_type: JSON, render };
        let mut all = page::endpoints(list);
        all.extend([
            Endpoint::fixed(services(), JSON, self.services),
            made_once(document(), JSON, self.document, Arc::clone(&self.pool)),
            Endpoint::fixed(version(), JSON, version_body.into()),
            rendered(configz(), config),
            rendered(metrics(), self.metrics),
            rendered(resource_metrics(), self.resource_metrics),
            docs::page(),
            docs::file(),
        ]);
        all
    }
}

fn made_once(operation: Operation, content_type: &'static str, body: Document, pool: Arc<Pool>) -> Endpoint {
    Endpoint::new(operation, move |_| {
        let (pool, body) = (Arc::clone(&pool), Arc::clone(&body));
        async move { Ok(answer(content_type, pool.run(move || Bytes::clone(&body)).await?)) }
    })
}

fn rendered(
    operation: Operation,
    renderer: Renderer,
    pool: Arc<Pool>,
    redactor: Arc<dyn Fn(&Viewer) -> Redactor + Send + Sync>,
    response_budget: Arc<ResponseBudget>,
) -> Endpoint {
    Endpoint::new(operation, move |call| {
        let (pool, render) = (Arc::clone(&pool), Arc::clone(&renderer.render));
        let (content_type, redactor) = (renderer.content_type, Arc::clone(&redactor));
        let response_budget = Arc::clone(&response_budget);
        async move {
            let body =
                move || response_budget.body(redactor(&call.info.viewer).metrics(render()).into_bytes());
            Ok(answer(content_type, pool.run(body).await??))
        }
    })
}

/// Renders the index: all endpoints without path parameters, except plugins', and where to find the rest.
fn index_page(operations: &[Operation], version: &str) -> String {
    let is_main = |operation: &&Operation| {
        let fixed = operation.params.iter().all(|param| param.location == Location::Query);
        fixed && operation.path != INDEX && !operation.path.starts_with("/apis/v1/plugins/")
    };
    let main: Vec<&Operation> = operations.iter().filter(is_main).collect();
    let width = main.iter().map(|operation| operation.path.len()).max().unwrap_or(0);
    let mut page =
        format!("Pellucid {version}: a Kubernetes scheduler whose every decision can be read.\n\n");
    for operation in &main {
        page += &format!("{} {:width$}  {}\n", operation.method.as_str(), operation.path, operation.summary);
    }
    let rest = operations.len() - main.len();
    page += &format!("\nand {rest} more, listed by GET {SERVICES} and described under /docs.\n");
    page
}

/// Returns every operation of a server with these routes, sorted by path and method.
pub(crate) fn all_operations<S>(routes: &[Route<S>]) -> Vec<Operation> {
    let mut all: Vec<Operation> = routes.iter().map(Operation::of).collect();
    all.extend(page::operations());
    all.extend([services(), document(), version(), configz(), metrics(), resource_metrics()]);
    all.extend([docs::page_operation(), docs::file_operation()]);
    all.extend(health::operations());
    all.extend(flags::operations());
    all.sort_by(|left, right| (&left.path, left.method).cmp(&(&right.path, right.method)));
    all
}

/// Returns the OpenAPI document of a server with these routes.
///
/// Fails when two different types have the same schema name.
pub fn openapi<S>(routes: &[Route<S>], version: &str) -> Result<OpenApi, BuildError> {
    describe(&all_operations(routes), version)
}
