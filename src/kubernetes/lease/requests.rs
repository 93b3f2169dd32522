//! The requests for the Lease object: read it, create it, replace one version of it. Each is sent once, with a time limit.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use kube::client::Body;
use serde_json::Value;

use crate::connection::client::ErrorClass;
use crate::lease::record::Record;
use crate::writes::api_writer::{WriteError, exchange};

/// Where the Lease is.
#[derive(Clone, Debug)]
pub struct LeaseName {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
}

/// Reads and writes one Lease.
pub(crate) struct LeaseRequests {
    client: kube::Client,
    at: LeaseName,
    /// The object as it was last read or written, whose other fields an update keeps.
    known: Value,
}

impl LeaseRequests {
    pub(crate) fn new(client: kube::Client, at: LeaseName) -> Self {
        Self { client, at, known: Value::Null }
    }

    /// Reads the Lease; `None` when there is none.
    pub(crate) async fn read(&mut self, limit: Duration) -> Result<Option<(Record, String)>, WriteError> {
        match self.send(Method::GET, Some(&self.at.name), Vec::new(), limit).await {
            Ok(body) => self.learn(&body).map(Some),
            Err(error) if error.is_not_found() => {
                self.known = Value::Null;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a record over a version of the Lease, or creates the Lease. Returns what the server made of it.
    pub(crate) async fn write(
        &mut self,
        record: &Record,
        version: Option<&str>,
        limit: Duration,
    ) -> Result<(Record, String), WriteError> {
        let known = if version.is_some() { self.known.clone() } else { Value::Null };
        let body = record.write(known, (&self.at.namespace, &self.at.name), version);
        let (method, name) = match version {
            Some(_) => (Method::PUT, Some(self.at.name.as_str())),
            None => (Method::POST, None),
        };
        let answer = self.send(method, name, body.to_string().into_bytes(), limit).await?;
        self.learn(&answer)
    }

    fn learn(&mut self, body: &Bytes) -> Result<(Record, String), WriteError> {
        let unreadable = |cause: String| WriteError::Transport { cause, class: ErrorClass::Unknown };
        let lease: Value = serde_json::from_slice(body).map_err(|e| unreadable(e.to_string()))?;
        let version = lease["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let version = version.ok_or_else(|| unreadable("the Lease has no resourceVersion".into()))?;
        let record = Record::read(&lease);
        self.known = lease;
        Ok((record, version))
    }

    async fn send(
        &self,
        method: Method,
        name: Option<&str>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Bytes, WriteError> {
        let LeaseName { namespace, .. } = &self.at;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let path = name.map_or(path.clone(), |name| format!("{path}/{name}"));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|e| WriteError::Transport { cause: e.to_string(), class: ErrorClass::Bug })?;
        let answer = tokio::time::timeout(limit, exchange(&self.client, request));
        answer.await.unwrap_or(Err(WriteError::TimedOut(limit)))
    }
}
