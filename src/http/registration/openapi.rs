//! Builds the OpenAPI document from the same registrations that are served.
//!
//! The version is 3.1. The order is that of the sorted operations and of the declared parameters, so equal
//! registrations give equal text. No running server is needed.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::rest::BodySchema;
use pellucid_model::collections::FxHashSet;
use serde_json::Value;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, PathsBuilder};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, RefOr,
    Required, ResponseBuilder,
};

use crate::error::BuildError;
use crate::registration::need::schemes;
use crate::registration::operation::{Answer, Content, Operation, Request};
use crate::registration::params::{Kind, Location, Param};
use crate::registration::route::Method;
use crate::stream;

/// Fails when two different types of the operations have the same schema name.
pub(crate) fn check_schemas(operations: &[Operation]) -> Result<(), BuildError> {
    schemas(operations).map(drop)
}

/// Returns the document. Fails as [`check_schemas`] does.
pub(crate) fn describe(operations: &[Operation], version: &str) -> Result<OpenApi, BuildError> {
    let mut paths = PathsBuilder::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations {
        paths = paths.path(operation.braced(|_, name| name.to_owned()), path_item(operation));
        tags.push(&operation.tag);
    }
    tags.sort_unstable();
    tags.dedup();
    let components = schemas(operations)?
        .into_iter()
        .fold(ComponentsBuilder::new(), |components, (name, schema)| components.schema(name, schema));
    let components = schemes()
        .into_iter()
        .fold(components, |components, (name, scheme)| components.security_scheme(name, scheme));
    let info = InfoBuilder::new().title("Pellucid").version(version).description(Some(
        "A Kubernetes scheduler that explains itself. Everything here is read from published state; \
         no request makes the scheduling thread wait.",
    ));
    Ok(OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components.build()))
        .tags(Some(tags.into_iter().map(|tag| TagBuilder::new().name(tag).build())))
        .build())
}

/// Returns the names of all fields that bodies have by their types. Maps have others.
pub(crate) fn field_names(operations: &[Operation]) -> BTreeSet<String> {
    fn collect(schema: &Value, names: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get("properties") {
                    names.extend(properties.keys().cloned());
                }
                fields.values().for_each(|field| collect(field, names));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    let schemas = schemas(operations).map(|schemas| serde_json::to_value(schemas).unwrap_or_default());
    collect(&schemas.unwrap_or_default(), &mut names);
    names
}

fn path_item(operation: &Operation) -> PathItem {
    let method = match operation.method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
    };
    let mut described = OperationBuilder::new()
        .tag(operation.tag.as_str())
        .summary(Some(operation.summary.as_str()))
        .operation_id(Some(operation_id(operation)));
    if !operation.description.is_empty() {
        described = described.description(Some(operation.description.as_str()));
    }
    for param in &operation.params {
        described = described.parameter(parameter(&operation.documented(param)));
    }
    if let Some(request) = &operation.request {
        described = described.request_body(Some(request_body(request)));
    }
    described = described.securities(Some(operation.need.requirements()));
    for answer in all_answers(operation) {
        described = described.response(answer.status.to_string(), response(&answer));
    }
    PathItem::new(method, described)
}

/// Returns the answers of an operation and those of the gate before it. Where both refuse with one status, the first says
/// more of it.
fn all_answers(operation: &Operation) -> Vec<Answer> {
    let mut all = operation.answers.clone();
    for refusal in operation.need.refusals() {
        if all.iter().all(|known| known.status != refusal.status) {
            all.push(refusal);
        }
    }
    all.sort_by_key(|answer| answer.status);
    all
}

fn request_body(request: &Request) -> RequestBody {
    let (content_type, content) = match request {
        Request::Json(schema) => ("application/json", content_of(schema.schema())),
        Request::Text { example } => {
            ("text/plain", content_of(typed(Type::String)).example(Some((*example).into())))
        }
    };
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    body.content(content_type, content.build()).build()
}

fn content_of(schema: impl Into<RefOr<Schema>>) -> ContentBuilder {
    ContentBuilder::new().schema(Some(schema))
}

fn parameter(param: &Param) -> ParameterBuilder {
    let (kind, example): (Object, fn(&str) -> Value) = match param.kind {
        Kind::String => (typed(Type::String), |text| text.into()),
        Kind::Integer => (integer(0).build(), number),
        Kind::Range(least, most) => (integer(least).maximum(Some(bound(most))).build(), number),
        Kind::Choice(words) => {
            let words = words.iter().map(|word| Value::from(*word));
            (ObjectBuilder::from(typed(Type::String)).enum_values(Some(words)).build(), |text| text.into())
        }
        Kind::Boolean => {
            (typed(Type::Boolean), |text| text.parse::<bool>().map_or_else(|_| text.into(), Value::from))
        }
    };
    let (place, required) = match param.location {
        Location::Path => (ParameterIn::Path, Required::True),
        Location::Query => (ParameterIn::Query, Required::False),
    };
    ParameterBuilder::new()
        .name(param.name.as_str())
        .parameter_in(place)
        .required(required)
        .description(Some(param.description.as_str()))
        .schema(Some(kind))
        .example(param.example.as_deref().map(example))
}

fn response(answer: &Answer) -> ResponseBuilder {
    let response = ResponseBuilder::new().description(answer.description);
    answer.contents.iter().fold(response, |response, content| {
        let (content_type, content) = match content {
            Content::Json { schema, example } => {
                ("application/json", content_of(schema.schema()).example(example.clone()))
            }
            Content::Text { content_type } => (*content_type, content_of(typed(Type::String))),
            Content::Lines { line } => (stream::NDJSON, content_of(line.schema())),
            Content::Bytes { content_type } => {
                let binary = SchemaFormat::KnownFormat(KnownFormat::Binary);
                let bytes = ObjectBuilder::from(typed(Type::String)).format(Some(binary));
                (*content_type, content_of(bytes.build()))
            }
        };
        response.content(content_type, content.build())
    })
}

/// Returns the schemas that the operations need, by name. Those of a body that many operations have are made once.
fn schemas(operations: &[Operation]) -> Result<BTreeMap<String, RefOr<Schema>>, BuildError> {
    let (mut schemas, mut made) = (BTreeMap::new(), FxHashSet::default());
    let bodies = operations.iter().flat_map(bodies).filter(|body| made.insert(body.family()));
    for (name, schema) in bodies.flat_map(|body| body.components()) {
        match schemas.get(&name) {
            Some(known) if *known != schema => return Err(BuildError::SchemaName { name }),
            Some(_) => {}
            None => {
                schemas.insert(name, schema);
            }
        }
    }
    Ok(schemas)
}

/// Iterates over the JSON bodies of an operation, those of answers first.
fn bodies(operation: &Operation) -> impl Iterator<Item = &BodySchema> {
    let contents = operation.answers.iter().flat_map(|answer| &answer.contents);
    let answers = contents.filter_map(|content| match content {
        Content::Json { schema, .. } | Content::Lines { line: schema } => Some(schema),
        Content::Text { .. } | Content::Bytes { .. } => None,
    });
    answers.chain(match &operation.request {
        Some(Request::Json(schema)) => Some(schema),
        _ => None,
    })
}

/// Begins the schema of a whole number that is no smaller than this.
fn integer(least: u64) -> ObjectBuilder {
    ObjectBuilder::from(typed(Type::Integer)).minimum(Some(bound(least)))
}

fn bound(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| text.into(), Value::from)
}

fn typed(kind: Type) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::new(kind)).build()
}

/// Returns an operation id such as `getApisV1NodesNodeName`.
fn operation_id(operation: &Operation) -> String {
    let words = operation.path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut id = operation.method.as_str().to_ascii_lowercase();
    for word in words.filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
    }
    id
}
