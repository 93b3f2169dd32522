//! One run of each kind: what is created, what is waited for, what is measured.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::app::bench::arithmetic::due;
use crate::app::bench::objects::{AT_A_TIME, delete_all, pod};
use crate::app::client;
use crate::app::replay::watch::ObjectWatch;

/// How long nothing may happen before a run is given up.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Scheduler of pods that the bench binds itself.
const NOBODY: &str = "pellucid-bench-nobody";

/// What all runs of a bench have in common.
pub(super) struct Load {
    pub client: kube::Client,
    pub namespace: String,
    pub nodes: usize,
    pub pods: usize,
    pub shapes: usize,
    pub scheduler: String,
    pub concurrency: usize,
}

/// Outcome of a run.
pub(super) struct Measured {
    /// From the first creation, or the first Binding of `bindcap`, to the last pod bound.
    pub took: Duration,
    /// Per pod from its creation being sent until the watch shows its node, ascending; empty of `bindcap`.
    pub latencies: Vec<Duration>,
}

impl Load {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// Creates the pods at `rate` per second, or as fast as the server takes them, and waits until all are bound.
    pub(super) async fn schedule(&self, run: usize, rate: Option<f64>) -> anyhow::Result<Measured> {
        let mut watch = ObjectWatch::open(self.client.clone(), &self.path()).await?;
        let start = Instant::now();
        let create = |number: usize| async move {
            if let Some(rate) = rate {
                sleep_until(start + due(number, rate)).await;
            }
            let name = format!("r{run}-{number}");
            let sent = Instant::now();
            client::create(&self.client, &pod(&self.namespace, &name, number % self.shapes, &self.scheduler))
                .await?;
            Ok::<_, kube::Error>((name, sent))
        };
        let creating = stream::iter(0..self.pods).map(create).buffer_unordered(AT_A_TIME).try_collect();
        let binding = async {
            let mut bound: HashMap<String, Instant> = HashMap::new();
            while bound.len() < self.pods {
                let next = timeout(STALL_PATIENCE, watch.next()).await;
                let (object, _) = next.with_context(|| {
                    format!(
                        "{} of {} pods are bound and nothing happened for a minute",
                        bound.len(),
                        self.pods
                    )
                })??;
                if let (Some(name), Some(_)) =
                    (object["metadata"]["name"].as_str(), object["spec"]["nodeName"].as_str())
                {
                    bound.entry(name.to_owned()).or_insert_with(Instant::now);
                }
            }
            anyhow::Ok(bound)
        };
        let creating = async { creating.await.context("cannot create a pod") };
        let (created, bound): (HashMap<String, Instant>, _) = tokio::try_join!(creating, binding)?;
        let last = bound.values().max().copied().unwrap_or(start);
        let first = created.values().min().copied().unwrap_or(start);
        let since = |(name, at): (&String, &Instant)| Some(bound.get(name)?.duration_since(*at));
        let mut latencies: Vec<Duration> = created.iter().filter_map(since).collect();
        latencies.sort_unstable();
        self.remove(run).await?;
        Ok(Measured { took: last - first, latencies })
    }

    /// Creates pods for no scheduler and binds them, round robin over the nodes: what the API server takes.
    pub(super) async fn bind(&self, run: usize) -> anyhow::Result<Measured> {
        let create = |number: usize| async move {
            client::create(&self.client, &pod(&self.namespace, &format!("r{run}-{number}"), 0, NOBODY)).await
        };
        let all = stream::iter(0..self.pods).map(create).buffer_unordered(AT_A_TIME);
        all.try_collect::<()>().await.context("cannot create a pod")?;
        let start = Instant::now();
        let bind = |number: usize| async move {
            let (name, node) =
                (format!("r{run}-{number}"), format!("pellucid-bench-{}", number % self.nodes));
            let body = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": self.namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let request = http::Request::post(format!("{}/{name}/binding", self.path()));
            let request =
                request.header("Content-Type", "application/json").body(body.to_string().into_bytes());
            self.client.request_text(request.map_err(kube::Error::HttpError)?).await.map(|_| ())
        };
        let all = stream::iter(0..self.pods).map(bind).buffer_unordered(self.concurrency);
        all.try_collect::<()>().await.context("cannot bind a pod")?;
        let took = start.elapsed();
        self.remove(run).await?;
        Ok(Measured { took, latencies: Vec::new() })
    }

    /// Deletes the pods of a run and waits until they are gone.
    async fn remove(&self, run: usize) -> anyhow::Result<()> {
        let names = (0..self.pods).map(|number| format!("r{run}-{number}")).collect();
        delete_all(&self.client, &self.path(), names).await?;
        let until = Instant::now() + STALL_PATIENCE;
        while !client::list(&self.client, &self.path()).await?.is_empty() {
            anyhow::ensure!(
                Instant::now() < until,
                "deleted pods of the bench are still there after a minute"
            );
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(())
    }
}
