//! The HTTP layer: turns a request into an operation, and its result into a response.
//!
//! One handler serves all paths; `router.rs` parses them. Injected faults take effect here. The operations are in
//! `api.rs`, `delete.rs`, `pods.rs`, `read.rs` and `watch.rs`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Part, Written};
use crate::clock::later;
use crate::errors::{ApiError, ApiResult};
use crate::faults::{Caller, Fault, Faults, Moment};
use crate::kinds::pods;
use crate::kinds::registry::Kind;
use crate::kinds::scale;
use crate::options::{self, DeleteOptions, Options, Requester, View};
use crate::requests::body;
use crate::requests::connection::{Connections, Cut};
use crate::requests::discovery;
use crate::requests::openapi;
use crate::requests::patch::{self, PatchKind};
use crate::requests::read::Selection;
use crate::requests::render::{Renderer, to_bytes};
use crate::requests::router::{Route, Target, route};
use crate::store::Key;
use crate::users::{self, User};
use crate::watch::Watch;
use crate::write_log::WriteLog;

/// Most bytes of a request body.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// State shared by all requests.
pub(crate) struct Server {
    /// The objects and the operations on them.
    pub api: Api,
    /// Users that reviews know.
    pub users: Vec<User>,
    pub faults: Faults,
    pub writes: WriteLog,
    pub address: SocketAddr,
    /// Cancelled to end the watches and the server.
    pub shutdown: CancellationToken,
    /// Closes connections and the listener.
    pub connections: Connections,
}

/// A parsed request.
struct Call {
    method: Method,
    path: String,
    user_agent: String,
    options: Options,
    accept: String,
    view: View,
    content_type: String,
    body: Bytes,
    cut: Cut,
}

/// Serves any request, and injects the fault that it meets.
pub(crate) async fn handle(
    State(server): State<Arc<Server>>,
    ConnectInfo(cut): ConnectInfo<Cut>,
    request: Request,
) -> Response {
    let path = request.uri().path_and_query().map_or("", |p| p.as_str()).to_owned();
    let method = request.method().clone();
    let user_agent = header(request.headers(), USER_AGENT);
    let caller = Caller { method: method.as_str(), path: &path, user_agent: &user_agent };
    let (fault, until) = server.faults.take(caller, Moment::Request).unzip();
    let write = server.writes.arrived(caller, server.api.clock.now());
    match &fault {
        Some(Fault::Drop) => cut.close(),
        Some(Fault::Reset) => cut.reset(),
        Some(Fault::BlackHole) => {
            server.shutdown.cancelled().await;
            cut.close();
        }
        Some(Fault::Status(code)) => return refusal(&ApiError::injected(*code, None)),
        Some(Fault::RetryAfter(code, seconds)) => {
            return refusal(&ApiError::injected(*code, Some(*seconds)));
        }
        Some(Fault::Delay(time)) => {
            tokio::select! {
                () = server.api.clock.wait_until(later(server.api.clock.now(), *time)) => {}
                () = server.shutdown.cancelled() => {}
            }
        }
        Some(Fault::Hang) => {
            tokio::select! {
                () = server.faults.wait(until.flatten()) => {}
                () = server.shutdown.cancelled() => {}
            }
        }
        _ => {}
    }
    if matches!(fault, Some(Fault::Drop | Fault::Reset | Fault::BlackHole)) {
        return plain(StatusCode::OK, "");
    }
    let requester = users::requester(&server.users, &header(request.headers(), AUTHORIZATION));
    let response = match read(request, (path, user_agent), cut.clone(), requester.clone()).await {
        Ok(call) => {
            let body = call.body.clone();
            let mut response = answer(&server, call).await.unwrap_or_else(|error| refusal(&error));
            requester.take_warnings().iter().for_each(|warning| warn(&mut response, warning));
            server.writes.carried_out(write, body, response.status(), server.api.clock.now());
            response
        }
        Err(error) => refusal(&error),
    };
    match fault {
        Some(Fault::DropAfterCommit) => {
            cut.close();
            response
        }
        Some(Fault::StatusAfterCommit(code)) => refusal(&ApiError::injected(code, None)),
        _ => response,
    }
}

/// Carries out a call. Writes run where they may wait for webhooks.
async fn answer(server: &Arc<Server>, call: Call) -> ApiResult<Response> {
    if call.method == Method::GET || call.method == Method::HEAD {
        return server.answer(call);
    }
    let carried_out = Arc::clone(server);
    server.api.run(move || carried_out.answer(call)).await
}

async fn read(
    request: Request,
    (path, user_agent): (String, String),
    cut: Cut,
    requester: Requester,
) -> ApiResult<Call> {
    let (parts, body) = request.into_parts();
    let text = |name: http::HeaderName| header(&parts.headers, name);
    let (accept, content_type) = (text(ACCEPT), text(CONTENT_TYPE));
    let mut options = Options::parse(parts.uri.query().unwrap_or_default())?;
    options.requester = Some(requester);
    let body = axum::body::to_bytes(body, BODY_LIMIT).await.map_err(|_| ApiError::too_large(BODY_LIMIT))?;
    let content_type = content_type.split(';').next().unwrap_or_default().trim().to_owned();
    let view = options::view(&accept);
    Ok(Call { method: parts.method, path, user_agent, options, accept, view, content_type, body, cut })
}

fn header(headers: &HeaderMap, name: http::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

impl Server {
    fn answer(self: &Arc<Self>, call: Call) -> ApiResult<Response> {
        let kinds = self.api.kinds.load();
        let bare = call.path.split('?').next().unwrap_or_default();
        if call.method == Method::POST
            && let Some(reviewed) = users::review(&self.users, bare, &call.body)
        {
            return reviewed.map(|review| json(StatusCode::CREATED, to_bytes(&review)));
        }
        let aggregated = aggregated_version(&call.accept);
        let found = match route(&kinds, bare) {
            Route::Objects(target) => return self.objects(target, call),
            Route::Health => return Ok(plain(StatusCode::OK, "ok")),
            Route::OpenApi if call.accept.contains("proto") => {
                return Ok(respond(StatusCode::OK, openapi::PROTOBUF, openapi::protobuf()));
            }
            Route::OpenApi => return Ok(json(StatusCode::OK, openapi::json())),
            Route::UnknownResource => return Err(ApiError::no_resource()),
            Route::CoreVersions | Route::Groups if aggregated.is_some() => {
                let version = aggregated.unwrap_or_default();
                let content =
                    format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
                let body = to_bytes(&discovery::aggregated(&kinds, bare.trim_matches('/') == "api", version));
                return Ok(respond(StatusCode::OK, &content, body));
            }
            Route::Version => Some(discovery::version()),
            Route::CoreVersions => Some(discovery::core_versions(&self.address.to_string())),
            Route::Groups => Some(discovery::groups(&kinds)),
            Route::Group(group) => discovery::one_group(&kinds, &group),
            Route::Resources(group, version) => discovery::resources(&kinds, &group, &version),
            Route::Unknown => None,
        };
        if call.method != Method::GET && call.method != Method::HEAD {
            return Err(ApiError::method_not_allowed());
        }
        Ok(match found {
            Some(body) => json(StatusCode::OK, to_bytes(&body)),
            None => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        })
    }

    fn objects(self: &Arc<Self>, target: Target, call: Call) -> ApiResult<Response> {
        match (target.key.1.is_empty(), target.subresource.as_str()) {
            (true, _) => self.collection(target, call),
            (false, "") => self.object(target, call),
            (false, _) => self.subresource(target, call),
        }
    }

    fn collection(self: &Arc<Self>, target: Target, call: Call) -> ApiResult<Response> {
        let Target { kind, key: (namespace, _), .. } = target;
        let allows = |verb: &str| kind.verbs.contains(&verb);
        match call.method {
            Method::GET if call.options.watch => {
                let selection = Selection::new(&kind, &namespace, &call.options)?;
                let watch = Watch::open(
                    self,
                    kind,
                    selection,
                    &call.options,
                    call.view,
                    (call.path, call.user_agent, call.cut),
                )?;
                let body = Body::from_stream(watch.into_stream());
                Ok(with_type(StatusCode::OK, "application/json", body))
            }
            Method::GET => {
                let selection = Selection::new(&kind, &namespace, &call.options)?;
                let list = self.api.list(&kind, &selection, &call.options)?;
                Ok(json(StatusCode::OK, self.renderer(&kind, &call).list(&list.items, list.metadata)))
            }
            Method::POST if allows("create") => {
                if kind.namespaced && namespace.is_empty() {
                    return Err(ApiError::bad_request("an empty namespace may not be set during creation"));
                }
                let object = body::object(&kind, &call.content_type, &call.body)?;
                let written = self.api.create(&kind, &namespace, object, &call.options)?;
                Ok(self.written(&kind, &call, &written))
            }
            Method::DELETE if allows("deletecollection") => {
                let selection = Selection::new(&kind, &namespace, &call.options)?;
                let mut how = DeleteOptions::new(&call.options, &body::options(&call.body)?);
                how.of_collection = true;
                let list = self.api.list(&kind, &selection, &call.options)?;
                for object in &list.items {
                    match self.api.delete(&kind, &object.key, &how) {
                        Err(error) if error.code != 404 => return Err(error),
                        _ => {}
                    }
                }
                let renderer = Renderer::new(&kind, View::Full, "", self.api.clock.now());
                Ok(json(StatusCode::OK, renderer.list(&list.items, list.metadata)))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn object(&self, target: Target, call: Call) -> ApiResult<Response> {
        let Target { kind, key, .. } = target;
        match call.method {
            Method::GET | Method::HEAD => self.show(&kind, &key, &call),
            Method::PUT | Method::PATCH => self.change(&kind, &key, Part::Main, &call),
            Method::DELETE => {
                let how = DeleteOptions::new(&call.options, &body::options(&call.body)?);
                let deleted = self.api.delete(&kind, &key, &how)?;
                if deleted.is_gone && !pods::is_pod(&kind) {
                    return Ok(json(StatusCode::OK, to_bytes(&Api::deleted_status(&kind, &deleted.object))));
                }
                Ok(json(StatusCode::OK, self.renderer(&kind, &call).object(&deleted.object)))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn subresource(&self, target: Target, mut call: Call) -> ApiResult<Response> {
        let Target { kind, key, subresource } = target;
        call.options.subresource.clone_from(&subresource);
        match (subresource.as_str(), &call.method) {
            ("binding", &Method::POST) => {
                let binding = body::any(&call.content_type, &call.body, "Binding")?;
                self.api.bind(&kind, &key, &binding, &call.options)?;
                Ok(json(StatusCode::CREATED, to_bytes(&Api::success(201))))
            }
            ("eviction", &Method::POST) => {
                let eviction = body::any(&call.content_type, &call.body, "Eviction")?;
                self.api.evict(&kind, &key, &eviction, &call.options)?;
                Ok(json(StatusCode::CREATED, to_bytes(&Api::success(201))))
            }
            ("status", &Method::GET) => self.show(&kind, &key, &call),
            ("status", &(Method::PUT | Method::PATCH)) => self.change(&kind, &key, Part::Status, &call),
            ("finalize", &Method::PUT) => self.change(&kind, &key, Part::Main, &call),
            ("scale", &Method::GET) => {
                let object = self.api.get(&kind, &key)?;
                Ok(json(StatusCode::OK, to_bytes(&scale::show(&object.value()))))
            }
            ("scale", &(Method::PUT | Method::PATCH)) => {
                let written = self.scale(&kind, &key, &call)?;
                Ok(json(StatusCode::OK, to_bytes(&scale::show(&written.object.value()))))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn renderer<'a>(&self, kind: &'a Kind, call: &'a Call) -> Renderer<'a> {
        Renderer::new(kind, call.view, &call.options.include_object, self.api.clock.now())
    }

    fn show(&self, kind: &Kind, key: &Key, call: &Call) -> ApiResult<Response> {
        let object = self.api.get(kind, key)?;
        Ok(json(StatusCode::OK, self.renderer(kind, call).object(&object)))
    }

    /// Carries out a PUT or PATCH.
    fn change(&self, kind: &Kind, key: &Key, part: Part, call: &Call) -> ApiResult<Response> {
        let written = if call.method == Method::PUT {
            let object = body::object(kind, &call.content_type, &call.body)?;
            self.api.update(kind, key, part, &call.options, |_| Ok(object.clone()))?
        } else {
            let (how, patch) = patch_of(kind.is_custom(), call)?;
            self.api.patch(kind, key, part, (how, &patch), &call.options)?
        };
        Ok(self.written(kind, call, &written))
    }

    fn scale(&self, kind: &Kind, key: &Key, call: &Call) -> ApiResult<Written> {
        let (how, change) = match call.method == Method::PUT {
            true => (None, body::any(&call.content_type, &call.body, "Scale")?),
            false => patch_of(false, call).map(|(how, patch)| (Some(how), patch))?,
        };
        // Webhooks are asked about the Scale, not about the object that it changes.
        let options = Options { requester: None, ..call.options.clone() };
        self.api.update(kind, key, Part::Main, &options, |object| {
            let old = scale::show(object);
            let scaled = match how {
                None => change.clone(),
                Some(how) => patch::apply(how, &old, &change, false)?,
            };
            let scaled = self.api.admit_body(kind, key, &call.options, scaled, Some(&old))?;
            Ok(scale::apply(object, &scaled))
        })
    }

    fn written(&self, kind: &Kind, call: &Call, written: &Written) -> Response {
        let code = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
        let mut response = json(code, self.renderer(kind, call).object(&written.object));
        written.warnings.iter().for_each(|warning| warn(&mut response, warning));
        response
    }
}

/// Adds a warning to a response.
fn warn(response: &mut Response, warning: &str) {
    let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().append(WARNING, value);
    }
}

/// Returns the form and the body of a patch. Refuses forms that the kind does not accept.
fn patch_of(is_custom: bool, call: &Call) -> ApiResult<(PatchKind, Value)> {
    let how = PatchKind::parse(&call.content_type);
    match how {
        Some(PatchKind::Strategic) | None if is_custom => Err(ApiError::media_type_not_accepted(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        None => Err(ApiError::unsupported_media_type()),
        Some(how) => Ok((how, body::patch(how, &call.body)?)),
    }
}

/// Returns the version of aggregated discovery that a client accepts, or `None` if it wants the plain form.
fn aggregated_version(accept: &str) -> Option<&'static str> {
    let is = |media: &&str| media.contains("as=APIGroupDiscoveryList");
    let media = accept.split(',').find(is)?;
    if media.contains("v=v2beta1") { Some("v2beta1") } else { Some("v2") }
}

fn with_type(status: StatusCode, content_type: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

fn respond(status: StatusCode, content_type: &str, body: Bytes) -> Response {
    with_type(status, content_type, Body::from(body))
}

fn json(status: StatusCode, body: Bytes) -> Response {
    respond(status, "application/json", body)
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    respond(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn refusal(error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, to_bytes(&error.status()));
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
