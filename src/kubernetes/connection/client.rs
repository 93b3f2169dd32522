//! Connects to a cluster, and classifies the errors of requests.
//!
//! There are two clients, so that reads and writes do not wait for each other. Neither retries by itself: a write must
//! know its outcome (`api_writer`), a watch has its own back-off (`watch`), and both count and log errors.

use std::error::Error as StdError;
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kube::{Client, Config};

use crate::connection::bearer_token::{BearerToken, TokenError};
use crate::connection::kubeconfig::{Loaded, load, redacted};
use crate::connection::transport::{self, Pools};

/// Why no connection to a cluster was made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig {source_name}: {cause}")]
    Kubeconfig {
        /// Path of the kubeconfig, or the variable that names it.
        source_name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// There is no kubeconfig, and the in-cluster credentials cannot be used.
    #[error(
        "no cluster to talk to: no kubeconfig given, KUBECONFIG is not set, {default_path} does not exist, \
         and in-cluster credentials cannot be used: {cause}"
    )]
    Nowhere {
        /// Path of the default kubeconfig.
        default_path: String,
        /// What is wrong with the in-cluster credentials.
        cause: String,
    },
    /// The configuration does not make a valid client.
    #[error("cannot make a client for {url}: {cause}")]
    Client {
        /// URL of the API server.
        url: String,
        /// Error of the client builder.
        cause: String,
    },
    /// The server does not answer, is no API server, or rejects the credentials.
    #[error("the API server at {url} (from {source_name}) cannot be used: {cause}")]
    Unreachable {
        /// URL of the API server.
        url: String,
        /// Source of the configuration.
        source_name: String,
        /// Error of the version request.
        cause: String,
    },
}

/// The read and write clients of one API server.
#[derive(Clone)]
pub struct Connection {
    /// For lists and watches.
    pub read: Client,
    /// For writes, and for the reads that resolve them.
    pub write: Client,
    /// Connection pools of both clients.
    pub pools: Pools,
    /// URL of the API server, without credentials.
    pub url: String,
    /// Version of the API server; empty if it was not asked or refused to say.
    pub version: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("url", &self.url).field("version", &self.version).finish()
    }
}

impl Connection {
    /// Connects with the given kubeconfig, else with that of `KUBECONFIG` or the default kubeconfig, else with
    /// in-cluster credentials. Asks the server for its version, so that a wrong address or expired credentials fail
    /// here, within `patience`, and not later.
    pub fn open(kubeconfig: Option<&Path>, patience: Duration) -> BoxFuture<'_, Result<Self, ConnectError>> {
        Box::pin(async move {
            let Loaded { config, source_name } = load(kubeconfig).await?;
            Self::with_config(config, &source_name, patience).await
        })
    }

    /// Connects with a configuration; otherwise as [`Connection::open`]. `source_name` names its source in errors.
    pub fn with_config(
        config: Config,
        source_name: &str,
        patience: Duration,
    ) -> BoxFuture<'_, Result<Self, ConnectError>> {
        Box::pin(Self::with_config_inner(config, source_name, patience))
    }

    async fn with_config_inner(
        mut config: Config,
        source_name: &str,
        patience: Duration,
    ) -> Result<Self, ConnectError> {
        let url = redacted(&config.cluster_url.to_string());
        let token = BearerToken::of(&mut config.auth_info).await.map_err(|e| ConnectError::Kubeconfig {
            source_name: source_name.into(),
            cause: e.to_string(),
        })?;
        let client = || {
            let failed = |e: kube::Error| ConnectError::Client { url: url.clone(), cause: chain(&e) };
            transport::client(&config, token.clone()).map_err(failed)
        };
        let ((read, of_read), (write, of_write)) = (client()?, client()?);
        let pools = of_read.join(of_write);
        let unreachable =
            |cause| ConnectError::Unreachable { url: url.clone(), source_name: source_name.into(), cause };
        let version = match tokio::time::timeout(patience, write.apiserver_version()).await {
            Ok(Ok(info)) => info.git_version,
            // The server is reachable and knows the user, who may not read the version.
            Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => String::new(),
            Ok(Err(error)) => return Err(unreachable(chain(&error))),
            Err(_) => return Err(unreachable(format!("no answer within {patience:?}"))),
        };
        tracing::info!(server = %url, version = %version, from = source_name, "connected");
        Ok(Self { read, write, pools, url, version })
    }

    /// Wraps existing clients, without contacting the server.
    pub fn of_clients(read: Client, write: Client) -> Self {
        Self { read, write, pools: Pools::default(), url: String::new(), version: String::new() }
    }
}

/// Formats an error with its causes, each once: wrappers often repeat what they wrap.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        // Its `Display` repeats everything as a debug dump.
        return format!("{} {}: {}", status.code, status.reason, status.message);
    }
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Says how to handle the error of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The request had no effect. Try again later.
    Retry,
    /// The object is not in the expected state. Read it.
    Refresh,
    /// The server rejected the request, and would again.
    Refused,
    /// This process built an invalid request.
    Bug,
    /// The request may or may not have taken effect. Read the object.
    Unknown,
}

/// Classifies an HTTP status that is not a success.
pub fn classify_status(code: u16) -> ErrorClass {
    match code {
        // Of 401 the next try has a new token, where tokens expire (`bearer_token`).
        401 | 429 => ErrorClass::Retry,
        404 | 409 | 410 => ErrorClass::Refresh,
        408 | 500.. => ErrorClass::Unknown,
        _ => ErrorClass::Refused,
    }
}

/// Classifies an error of a kube client.
pub fn classify(error: &kube::Error) -> ErrorClass {
    match error {
        kube::Error::Api(status) => classify_status(status.code),
        // No credentials, because a plugin failed: nothing was sent.
        kube::Error::Auth(_) => ErrorClass::Retry,
        kube::Error::Service(error) if error.is::<TokenError>() => ErrorClass::Retry,
        kube::Error::HyperError(_)
        | kube::Error::Service(_)
        | kube::Error::ReadEvents(_)
        | kube::Error::SerdeError(_)
        | kube::Error::FromUtf8(_)
        | kube::Error::LinesCodecMaxLineLengthExceeded => ErrorClass::Unknown,
        _ => ErrorClass::Bug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_classes() {
        for (codes, want) in [
            (&[401, 429][..], ErrorClass::Retry),
            (&[404, 409, 410], ErrorClass::Refresh),
            (&[400, 403, 413, 422], ErrorClass::Refused),
            (&[408, 500, 503, 504], ErrorClass::Unknown),
        ] {
            for code in codes {
                assert_eq!(classify_status(*code), want, "{code}");
            }
        }
    }

    #[test]
    fn a_chain_says_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: {0}")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("inner"));
        assert_eq!(chain(&error), "outer: inner");
    }
}
