//! Posts a batch over plain HTTP/1.1, with a connection per batch. A pool would keep a connection open for two uses a
//! second.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;

/// Most bytes of an answer that are read. It contains how many spans were rejected and why.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The HTTP client of the exporter. It has no timeout of its own; the caller sets one.
#[derive(Debug)]
pub(super) struct Post;

impl HttpClient for Post {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(send(request))
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().ok_or("the URL has no host")?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Connection errors also reach the request.
    let driver = tokio::spawn(connection);
    head.headers.insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
    head.uri = head.uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| path.clone().into());
    let answer = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
    driver.abort();
    Ok(Response::from_parts(head, body))
}
