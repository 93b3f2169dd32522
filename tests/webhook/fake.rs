//! A webhook that answers as a test wants, by HTTPS.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::webhook::fixture::Ca;

/// Answers a path and a review with a status and a body.
type Answer = dyn Fn(&str, &Value) -> (u16, String) + Send + Sync;

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    /// The reviews so far, with their paths.
    pub(crate) seen: Arc<Mutex<Vec<(String, Value)>>>,
}

/// Returns the body of a response to a review.
pub(crate) fn response(review: &Value, mut response: Value) -> (u16, String) {
    response["uid"] = review["request"]["uid"].clone();
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    (200, body.to_string())
}

/// Returns a response that allows, with a JSON patch.
pub(crate) fn patching(review: &Value, patch: &Value) -> (u16, String) {
    let bytes = k8s_openapi::ByteString(patch.to_string().into_bytes());
    response(review, json!({"allowed": true, "patchType": "JSONPatch", "patch": bytes}))
}

impl Fake {
    /// Starts one with a certificate for 127.0.0.1 and for the Service `fake` in the namespace `default`.
    pub(crate) async fn start(
        ca: &Ca,
        answer: impl Fn(&str, &Value) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (certificate, key) = ca.sign("webhook", &["127.0.0.1", "fake.default.svc"]);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = rustls::ServerConfig::builder().with_no_client_auth();
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (answer, all): (Arc<Answer>, _) = (Arc::new(answer), seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer, all) = (acceptor.clone(), answer.clone(), all.clone());
                tokio::spawn(async move {
                    // Clients that do not trust the certificate leave here.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (answer, all) = (answer.clone(), all.clone());
                        async move {
                            let path = request.uri().path_and_query().unwrap().to_string();
                            let body = request.into_body().collect().await?.to_bytes();
                            let review: Value = serde_json::from_slice(&body).unwrap();
                            let (status, body) = answer(&path, &review);
                            all.lock().push((path, review));
                            let response = Response::builder().status(status);
                            let response = response.header("Content-Type", "application/json");
                            Ok::<_, hyper::Error>(response.body(Full::new(Bytes::from(body))).unwrap())
                        }
                    });
                    // Clients leave when they like.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Returns the requests on a path so far.
    pub(crate) fn on(&self, path: &str) -> Vec<Value> {
        let seen = self.seen.lock();
        let of = seen.iter().filter(|(on, _)| on.split('?').next() == Some(path));
        of.map(|(_, review)| review["request"].clone()).collect()
    }
}
