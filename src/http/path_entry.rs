//! A path with all its methods: which endpoint a request is for, whether it may pass, and its response.
//!
//! It alone decides about 405 and `Allow`, and asks the gate where there is one.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::request::Parts;
use http::{StatusCode, header};

use crate::access::audit::Asker;
use crate::access::gate::Gate;
use crate::access::share::Place;
use crate::error::Failure;
use crate::registration::endpoint::{Call, Endpoint, Template};
use crate::registration::need::Need;
use crate::registration::operation::Operation;
use crate::registration::params::Params;
use crate::registration::route::{Method, RequestInfo};

/// The endpoints of one path template.
pub(crate) struct PathEntry {
    template: Arc<str>,
    endpoints: Vec<Endpoint>,
    allow: String,
    gate: Option<Arc<Gate>>,
}

impl PathEntry {
    pub(crate) fn new(template: &str, endpoints: Vec<Endpoint>, gate: Option<Arc<Gate>>) -> Self {
        let mut allowed: Vec<&str> = Vec::new();
        for endpoint in &endpoints {
            match endpoint.operation.method {
                Method::Get => allowed.extend(["GET", "HEAD"]),
                Method::Post => allowed.push("POST"),
                Method::Put => allowed.push("PUT"),
            }
        }
        allowed.sort_unstable();
        Self { template: Arc::from(template), endpoints, allow: allowed.join(", "), gate }
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        // The middleware inserts it. Without it (a router used on its own), the id is empty.
        let mut info = parts.extensions.get::<RequestInfo>().cloned().unwrap_or_default();
        let mut place = None;
        let answered = async {
            let endpoint = self.endpoint(&parts.method)?;
            let (params, taken) = self.admit(&endpoint.operation, &parts, &mut info).await?;
            place = taken;
            (endpoint.handler)(Call { params, headers: parts.headers.clone(), body, info: info.clone() })
                .await
        };
        let answered = answered.await;
        let mut response = answered.unwrap_or_else(|failure| failure.respond(&info.request_id));
        if let Some(place) = place {
            response = place.until_sent(response);
        }
        response.extensions_mut().insert(Template(Arc::clone(&self.template)));
        response
    }

    /// Reads the parameters of a request and, where there is a gate, asks it. Nothing is said about parameters to nobody.
    async fn admit(
        &self,
        operation: &Operation,
        parts: &Parts,
        info: &mut RequestInfo,
    ) -> Result<(Params, Option<Place>), Failure> {
        let read = || {
            let query = parts.uri.query().unwrap_or_default();
            Params::read(&operation.path, parts.uri.path(), query, &operation.params)
        };
        let Some(gate) = self.gate.as_ref().filter(|_| operation.need != Need::Nothing) else {
            return Ok((read()?, None));
        };
        let (user, place) = gate.identify(&parts.headers, &parts.extensions).await?;
        if let Some(asker) = parts.extensions.get::<Asker>() {
            asker.is(&user);
        }
        info.from = format!("{} {}", user.name, info.from);
        info.user = Some(Arc::clone(&user));
        let params = read()?;
        info.viewer = gate.authorize(&user, operation, parts.uri.path(), &params, &parts.headers).await?;
        Ok((params, Some(place)))
    }

    fn endpoint(&self, method: &http::Method) -> Result<&Endpoint, Failure> {
        let wanted = match *method {
            http::Method::GET | http::Method::HEAD => Some(Method::Get),
            http::Method::POST => Some(Method::Post),
            http::Method::PUT => Some(Method::Put),
            _ => None,
        };
        let found = self.endpoints.iter().find(|endpoint| Some(endpoint.operation.method) == wanted);
        found.ok_or_else(|| {
            let message = format!("{method} is not possible here; possible: {}", self.allow);
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
                .with(header::ALLOW, self.allow.clone())
        })
    }
}
