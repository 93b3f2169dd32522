//! Sends spans to a collector: OTLP over plain HTTP, in batches, each with a time limit.
//!
//! There is no TLS and no retry. The collector is expected on the same machine or in the same cluster; spans that it
//! does not accept are dropped and counted. Only this task waits for it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::Uri;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::post::Post;
use super::{Counts, Fact, Traces, spans};

/// Most spans of one request.
const BATCH: usize = 512;
/// How long a batch may wait to fill up.
const LINGER: Duration = Duration::from_millis(500);
/// How long the collector may take for a batch, and for all remaining ones at shutdown.
const PATIENCE: Duration = Duration::from_secs(5);
/// The standard path of OTLP collectors for traces.
const PATH: &str = "/v1/traces";

/// A running exporter.
#[derive(Debug)]
pub struct Exporter {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts an exporter on the current runtime. Fails when `endpoint` is no plain HTTP address.
    pub fn start(endpoint: &str) -> anyhow::Result<(Traces, Self)> {
        let url = url(endpoint)?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Post)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&url)
            .with_timeout(PATIENCE)
            .build()
            .with_context(|| format!("--otlp-endpoint {endpoint}"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("pellucid").with_attribute(version).build();
        exporter.set_resource(&resource);
        let (traces, facts) = Traces::channel();
        let stop = CancellationToken::new();
        let sender = Sender { exporter, counts: traces.counts().clone(), url, failing: false };
        let task = tokio::spawn(sender.run(facts, stop.clone()));
        Ok((traces, Self { stop, task }))
    }

    /// Sends the remaining spans, within the time limit of one batch, and ends.
    pub async fn stop(self) {
        self.stop.cancel();
        // A panic has been logged already; nothing can be saved.
        let _ = self.task.await;
    }
}

/// Returns the URL to post to. An address without a path gets the standard one.
fn url(endpoint: &str) -> anyhow::Result<String> {
    let uri: Uri = endpoint.parse().with_context(|| format!("--otlp-endpoint {endpoint:?} is no URL"))?;
    ensure!(
        uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !host.is_empty()),
        "--otlp-endpoint {endpoint:?}: it must be like http://127.0.0.1:4318 (plain HTTP: put a collector beside it)"
    );
    let bare = endpoint.trim_end_matches('/');
    Ok(if uri.path() == "/" { format!("{bare}{PATH}") } else { bare.to_owned() })
}

struct Sender {
    exporter: SpanExporter,
    counts: Counts,
    url: String,
    failing: bool,
}

impl Sender {
    async fn run(mut self, mut facts: mpsc::Receiver<Fact>, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let is_open = tokio::select! {
                is_open = fill(&mut facts, &mut batch) => is_open,
                () = stop.cancelled() => false,
            };
            if !is_open {
                break;
            }
            self.send(&mut batch).await;
        }
        // The channel is closed, so the rest is bounded; the timeout bounds the time too.
        facts.close();
        let last = async {
            loop {
                while batch.len() < BATCH
                    && let Ok(fact) = facts.try_recv()
                {
                    batch.push(fact);
                }
                if batch.is_empty() {
                    return;
                }
                self.send(&mut batch).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, last).await;
    }

    async fn send(&mut self, batch: &mut Vec<Fact>) {
        let count = batch.len() as u64;
        let spans = batch.drain(..).map(spans::span).collect();
        let sent = tokio::time::timeout(PATIENCE, self.exporter.export(spans)).await;
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        match error {
            None => {
                self.counts.exported.inc_by(count);
                if std::mem::take(&mut self.failing) {
                    tracing::info!(url = self.url, "traces are taken again");
                }
            }
            Some(error) => {
                self.counts.dropped.inc_by(count);
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(
                        url = self.url,
                        error,
                        "traces are not taken; spans are dropped and counted"
                    );
                }
            }
        }
    }
}

/// Waits for a fact and for those that follow soon. Returns `false` when the channel is closed.
async fn fill(facts: &mut mpsc::Receiver<Fact>, batch: &mut Vec<Fact>) -> bool {
    if facts.recv_many(batch, BATCH).await == 0 {
        return false;
    }
    let more =
        async { while batch.len() < BATCH && facts.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    // A batch that is not full in time is sent as it is.
    let _ = tokio::time::timeout(LINGER, more).await;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_or_a_full_path() {
        let of = |text: &str| url(text).map_err(|error| format!("{error:#}"));
        assert_eq!(of("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(of("http://otel:4318/").unwrap(), "http://otel:4318/v1/traces");
        assert_eq!(of("http://otel/a/b").unwrap(), "http://otel/a/b");
        for text in ["", "otel", "https://otel", "http://", "a b", "grpc://x:4317"] {
            assert!(of(text).unwrap_err().contains("--otlp-endpoint"), "{text}");
        }
    }
}
