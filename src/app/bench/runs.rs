//! One run of each kind: what is created, what is waited for, what is measured.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pellucid_model::collections::HashMap;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::app::bench::arithmetic::due;
use crate::app::bench::children::Children;
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
    /// From the first creation, or the first Binding of `bindcap` and of a drain by a scheduler of its own, to the last pod
    /// bound.
    pub took: Duration,
    /// Per pod from its creation being sent until the watch shows its node, ascending; empty of the others.
    pub latencies: Vec<Duration>,
}

impl Load {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// Creates the pods while no scheduler runs, then starts one, and waits until all are bound. Measures from the first
    /// Binding to the last, so that what is compared with `bindcap` is Bindings alone.
    pub(super) async fn drain(&self, run: usize, children: &mut Children) -> anyhow::Result<Measured> {
        children.stop_scheduler();
        self.create_all(run, &self.scheduler).await?;
        let mut watch = ObjectWatch::open(self.client.clone(), &self.path()).await?;
        children.start_scheduler()?;
        let bound = self.bound(&mut watch).await?;
        let (first, last) = (bound.values().min().copied(), bound.values().max().copied());
        let took = last.zip(first).map_or(Duration::ZERO, |(last, first)| last - first);
        self.remove(run).await?;
        Ok(Measured { took, latencies: Vec::new() })
    }

    /// Creates the pods as fast as the server takes them.
    async fn create_all(&self, run: usize, scheduler: &str) -> anyhow::Result<()> {
        let create = |number: usize| async move {
            let (name, shape) = (format!("r{run}-{number}"), number % self.shapes);
            client::create(&self.client, &pod(&self.namespace, &name, shape, scheduler)).await
        };
        let all = stream::iter(0..self.pods).map(create).buffer_unordered(AT_A_TIME);
        all.try_collect::<()>().await.context("cannot create a pod")
    }

    /// Waits until all pods are bound. Returns when the watch showed it of each.
    async fn bound(&self, watch: &mut ObjectWatch) -> anyhow::Result<HashMap<String, Instant>> {
        let mut bound: HashMap<String, Instant> = HashMap::default();
        while bound.len() < self.pods {
            let next = timeout(STALL_PATIENCE, watch.next()).await;
            let so_far = || {
                format!("{} of {} pods are bound and nothing happened for a minute", bound.len(), self.pods)
            };
            let (object, _) = next.with_context(so_far)??;
            let node = object["spec"]["nodeName"].as_str();
            if let (Some(name), Some(_)) = (object["metadata"]["name"].as_str(), node) {
                bound.entry(name.to_owned()).or_insert_with(Instant::now);
            }
        }
        Ok(bound)
    }

    /// Creates the pods at `rate` per second, or as fast as the server takes them, and waits until all are bound. A latency
    /// counts from when a creation was due at its rate, so that a creator that falls behind hides nothing.
    pub(super) async fn schedule(&self, run: usize, rate: Option<f64>) -> anyhow::Result<Measured> {
        let mut watch = ObjectWatch::open(self.client.clone(), &self.path()).await?;
        let start = Instant::now();
        let create = |number: usize| async move {
            let mut sent = Instant::now();
            if let Some(rate) = rate {
                sent = start + due(number, rate);
                sleep_until(sent).await;
            }
            let name = format!("r{run}-{number}");
            client::create(&self.client, &pod(&self.namespace, &name, number % self.shapes, &self.scheduler))
                .await?;
            Ok::<_, kube::Error>((name, sent))
        };
        let creating = stream::iter(0..self.pods).map(create).buffer_unordered(AT_A_TIME).try_collect();
        let creating = async { creating.await.context("cannot create a pod") };
        let (created, bound): (HashMap<String, Instant>, _) =
            tokio::try_join!(creating, self.bound(&mut watch))?;
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
        self.create_all(run, NOBODY).await?;
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
