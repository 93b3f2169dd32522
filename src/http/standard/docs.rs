//! Serves Swagger UI from the binary: its pages load nothing from elsewhere.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, header};
use utoipa_swagger_ui::Config;

use crate::error::Failure;
use crate::error::unknown_path;
use crate::registration::endpoint::Endpoint;
use crate::registration::need::Need;
use crate::registration::operation::{Answer, Content, Operation};
use crate::registration::params::Param;

const HTML: Content = Content::Text { content_type: "text/html" };

pub(crate) fn page_operation() -> Operation {
    Operation::standard("/docs", "about", "This API as a page to read and try", HTML).needing(Need::User)
}

pub(crate) fn file_operation() -> Operation {
    let mut operation = Operation::standard("/docs/:file", "about", "Parts of the page at /docs", HTML);
    operation.params.push(Param::path("file", "The name of the part").example("index.html"));
    operation.add(Answer::refused(404, "There is no such part", None));
    operation.needing(Need::User)
}

pub(crate) fn page() -> Endpoint {
    let config = config();
    Endpoint::new(page_operation(), move |_| {
        // The page refers to its files relative to a directory, which `/docs` is not.
        let page = part("index.html", &config).map(|(content_type, bytes)| {
            let page = String::from_utf8_lossy(&bytes).replacen("<head>", "<head><base href=\"/docs/\">", 1);
            respond(&content_type, Bytes::from(page))
        });
        async move { page }
    })
}

pub(crate) fn file() -> Endpoint {
    let config = config();
    Endpoint::new(file_operation(), move |call| {
        let name = call.params.text("file").unwrap_or_default();
        let file = part(name, &config).map(|(content_type, bytes)| respond(&content_type, bytes));
        async move { file }
    })
}

fn config() -> Arc<Config<'static>> {
    // The default validator is a server on the internet.
    Arc::new(Config::new(["/openapi.json"]).validator_url("none").try_it_out_enabled(true))
}

fn part(name: &str, config: &Arc<Config<'static>>) -> Result<(String, Bytes), Failure> {
    match utoipa_swagger_ui::serve(name, Arc::clone(config)) {
        Ok(Some(file)) => {
            let bytes = match file.bytes {
                Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                Cow::Owned(bytes) => Bytes::from(bytes),
            };
            Ok((file.content_type, bytes))
        }
        Ok(None) => Err(unknown_path(&format!("/docs/{name}"))),
        Err(error) => Err(Failure::panic(&error.to_string())),
    }
}

fn respond(content_type: &str, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let content_type = HeaderValue::from_str(content_type);
    let fallback = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type.unwrap_or(fallback));
    response
}
