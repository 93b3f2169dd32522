//! An endpoint: an operation and the function that answers it. `path_entry` chooses the one that a request is for.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};

use crate::error::Failure;
use crate::registration::operation::Operation;
use crate::registration::params::Params;
use crate::registration::route::RequestInfo;

/// A request with checked parameters.
pub(crate) struct Call {
    pub(crate) params: Params,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) info: RequestInfo,
}

pub(crate) type Answered = Result<Response, Failure>;

pub(crate) type Handler = Arc<dyn Fn(Call) -> BoxFuture<'static, Answered> + Send + Sync>;

pub(crate) struct Endpoint {
    pub(crate) operation: Operation,
    pub(crate) handler: Handler,
}

/// The path template, attached to a response for [`super::middleware::Observation`].
#[derive(Clone)]
pub(crate) struct Template(pub(crate) Arc<str>);

impl Endpoint {
    pub(crate) fn new<F>(operation: Operation, handler: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answered> + Send + 'static,
    {
        Self { operation, handler: Arc::new(move |call| Box::pin(handler(call))) }
    }

    /// Creates an endpoint that always returns the same bytes.
    pub(crate) fn fixed(operation: Operation, content_type: &'static str, body: Bytes) -> Self {
        Self::new(operation, move |_| {
            let response = answer(content_type, body.clone());
            async move { Ok(response) }
        })
    }
}

/// Creates a response with status 200.
pub(crate) fn answer(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
