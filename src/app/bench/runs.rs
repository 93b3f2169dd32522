//! One run of each kind: what is created, what is waited for, what is measured.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pellucid_model::collections::HashMap;
use pellucid_model::gang::Dialect;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::bench::arithmetic::due;
use crate::bench::children::Children;
use crate::bench::gangs;
use crate::bench::objects::{AT_A_TIME, delete_all, pod};
use crate::bench::watched::WatchedPod;
use crate::client;
use crate::object_watch::ObjectWatch;

/// How long nothing may happen before a run is given up.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Selects bound pods: the bench shares the machine with what it measures, so it reads no more than it needs.
const IS_BOUND: &str = "spec.nodeName%21%3D";
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
    pub gangs: usize,
    pub gang_size: usize,
}

/// Outcome of a run.
pub(super) struct Measured {
    /// Pods that were bound.
    pub pods: usize,
    /// From the first creation, or the first Binding of `bindcap` and of a drain by a scheduler of its own, to the last pod
    /// bound, as a watch shows them.
    pub took: Duration,
    /// Ascending; per pod from its creation being sent until the watch shows its node, or per gang from the last creation of
    /// a member being sent until the watch shows the nodes of all; empty of the others.
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
        let mut watch = self.watch().await?;
        children.start_scheduler()?;
        let bound = self.bound(&mut watch, self.pods).await?;
        self.remove(self.names(run)).await?;
        Ok(Measured { pods: self.pods, took: first_to_last(&bound), latencies: Vec::new() })
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

    /// Watches the pods from when they are bound.
    async fn watch(&self) -> anyhow::Result<ObjectWatch<WatchedPod>> {
        ObjectWatch::open(self.client.clone(), &self.path(), IS_BOUND).await
    }

    /// Waits until so many pods are bound. Returns when the watch showed it of each.
    async fn bound(
        &self,
        watch: &mut ObjectWatch<WatchedPod>,
        pods: usize,
    ) -> anyhow::Result<HashMap<String, Instant>> {
        let mut bound: HashMap<String, Instant> = HashMap::default();
        while bound.len() < pods {
            let next = timeout(STALL_PATIENCE, watch.next()).await;
            let so_far =
                || format!("{} of {pods} pods are bound and nothing happened for a minute", bound.len());
            let (pod, _) = next.with_context(so_far)??;
            if pod.is_bound() {
                bound.entry(pod.name()).or_insert_with(Instant::now);
            }
        }
        Ok(bound)
    }

    /// Creates the pods at `rate` per second, or as fast as the server takes them, and waits until all are bound. A latency
    /// counts from when a creation was due at its rate, so that a creator that falls behind hides nothing.
    pub(super) async fn schedule(&self, run: usize, rate: Option<f64>) -> anyhow::Result<Measured> {
        // Made before the first is due: the bench shares the machine with what it measures.
        let made = self.names(run).into_iter().enumerate().map(|(number, name)| {
            let pod = pod(&self.namespace, &name, number % self.shapes, &self.scheduler);
            Ok((number, name, client::creation(&pod)?))
        });
        let made = made.collect::<Result<Vec<_>, kube::Error>>().context("cannot make a pod")?;
        let mut watch = self.watch().await?;
        let start = Instant::now();
        let create = |(number, name, request)| async move {
            let mut sent = Instant::now();
            if let Some(rate) = rate {
                sent = start + due(number, rate);
                sleep_until(sent).await;
            }
            self.client.request_text(request).await?;
            Ok::<_, kube::Error>((name, sent))
        };
        let creating = stream::iter(made).map(create).buffer_unordered(AT_A_TIME).try_collect();
        let creating = async { creating.await.context("cannot create a pod") };
        let (created, bound): (HashMap<String, Instant>, _) =
            tokio::try_join!(creating, self.bound(&mut watch, self.pods))?;
        let last = bound.values().max().copied().unwrap_or(start);
        let first = created.values().min().copied().unwrap_or(start);
        let since = |(name, at): (&String, &Instant)| Some(bound.get(name)?.duration_since(*at));
        let mut latencies: Vec<Duration> = created.iter().filter_map(since).collect();
        latencies.sort_unstable();
        self.remove(self.names(run)).await?;
        Ok(Measured { pods: self.pods, took: last - first, latencies })
    }

    /// Creates pods for no scheduler and binds them, round robin over the nodes: what the API server takes. Measures as a
    /// drain does, from the first Binding that a watch shows to the last.
    pub(super) async fn bind(&self, run: usize) -> anyhow::Result<Measured> {
        self.create_all(run, NOBODY).await?;
        let mut watch = self.watch().await?;
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
        let binding = async { all.try_collect::<()>().await.context("cannot bind a pod") };
        let ((), bound) = tokio::try_join!(binding, self.bound(&mut watch, self.pods))?;
        self.remove(self.names(run)).await?;
        Ok(Measured { pods: self.pods, took: first_to_last(&bound), latencies: Vec::new() })
    }

    /// Creates the gangs one after the other, as fast as the server takes them, while the scheduler runs, and waits until all
    /// members are bound. The rate includes their creation, but not that of the PodGroups, which come first.
    pub(super) async fn schedule_gangs(&self, run: usize, dialect: Dialect) -> anyhow::Result<Measured> {
        let (namespace, size) = (&self.namespace, self.gang_size);
        let gang = |number: usize| format!("r{run}-{number}");
        let groups = (0..self.gangs).filter_map(|n| gangs::pod_group(dialect, namespace, &gang(n), size));
        let creating =
            stream::iter(groups).map(|group| async move { client::create(&self.client, &group).await });
        let created = creating.buffer_unordered(AT_A_TIME).try_collect::<()>().await;
        created.context("cannot create a PodGroup")?;
        let mut watch = self.watch().await?;
        let create = |number: usize| async move {
            let (gang, shape) = (gang(number / size), number / size % self.shapes);
            let name = format!("{gang}-{}", number % size);
            let made = gangs::member(dialect, pod(namespace, &name, shape, &self.scheduler), &gang, size);
            let sent = Instant::now();
            client::create(&self.client, &made).await?;
            Ok::<_, kube::Error>((name, gang, sent))
        };
        let pods = self.gangs * size;
        let creating = stream::iter(0..pods).map(create).buffer_unordered(AT_A_TIME).try_collect();
        let creating = async { creating.await.context("cannot create a member of a gang") };
        let (members, bound): (Vec<(String, String, Instant)>, _) =
            tokio::try_join!(creating, self.bound(&mut watch, pods))?;
        let measured = of_gangs(&members, &bound);
        self.remove(members.into_iter().map(|(name, ..)| name).collect()).await?;
        gangs::delete_pod_groups(&self.client, namespace).await?;
        Ok(measured)
    }

    /// Returns the names of the pods of a run that are in no gang.
    fn names(&self, run: usize) -> Vec<String> {
        (0..self.pods).map(|number| format!("r{run}-{number}")).collect()
    }

    /// Deletes pods and waits until the namespace has none.
    async fn remove(&self, names: Vec<String>) -> anyhow::Result<()> {
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

fn first_to_last(bound: &HashMap<String, Instant>) -> Duration {
    let (first, last) = (bound.values().min(), bound.values().max());
    last.zip(first).map_or(Duration::ZERO, |(last, first)| *last - *first)
}

/// Returns what a run of gangs measured, of its members (name, gang, when its creation was sent) and of when each was bound.
fn of_gangs(members: &[(String, String, Instant)], bound: &HashMap<String, Instant>) -> Measured {
    let mut gangs: HashMap<&str, (Instant, Instant)> = HashMap::default();
    for (name, gang, sent) in members {
        let at = bound.get(name).copied().unwrap_or(*sent);
        let (created, complete) = gangs.entry(gang).or_insert((*sent, at));
        (*created, *complete) = ((*created).max(*sent), (*complete).max(at));
    }
    let mut latencies: Vec<Duration> =
        gangs.values().map(|(created, complete)| complete.duration_since(*created)).collect();
    latencies.sort_unstable();
    let (first, last) = (members.iter().map(|(.., sent)| sent).min(), bound.values().max());
    let took = last.zip(first).map_or(Duration::ZERO, |(last, first)| last.duration_since(*first));
    Measured { pods: members.len(), took, latencies }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_takes_from_its_last_creation_to_its_last_binding() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let created = [("a-0", "a", 0), ("a-1", "a", 10), ("b-0", "b", 20), ("b-1", "b", 15)];
        let members: Vec<_> = created.map(|(name, gang, sent)| (name.into(), gang.into(), at(sent))).into();
        let bound = [("a-0", 40), ("a-1", 13), ("b-0", 25), ("b-1", 24)];
        let bound = bound.into_iter().map(|(name, when)| (name.into(), at(when))).collect();
        let Measured { pods, took, latencies } = of_gangs(&members, &bound);
        assert_eq!(latencies, [5, 30].map(Duration::from_millis));
        assert_eq!((pods, took), (4, Duration::from_millis(40)));
    }
}
