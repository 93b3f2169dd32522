//! `pellucid replay --format philly`: gangs that arrive, run and end, through the HTTP API of a sandbox.
//!
//! The command is an ordinary API client. One task creates the workers of each job when it is due, one deletes the
//! workers of finished jobs, and the main one passes every event of the pod watch to [`GangCheck`]. It sees of the
//! scheduler only what the API server shows.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pellucid_config::DEFAULT_SCHEDULER_NAME;
use pellucid_replay::{
    Fairness, GangCheck, GangJob, GangReport, LeafQuota, Pace, QuotaFile, Seen, SyntheticNodes, span,
    to_worker_json,
};
use pellucid_sandbox::Kubelet;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::playback::environment::ReplayEnvironment;
use crate::playback::progress;
use pellucid_app::client;
use pellucid_app::object_watch::ObjectWatch;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NAMESPACE: &str = "default";
/// How long a strict gang may be partially bound.
const PARTIAL_LIMIT: Duration = Duration::from_secs(2);
/// How long nothing may happen, beyond the longest run time of a worker, before the replay gives up.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Workers of one job that are created concurrently.
const CREATES_AT_A_TIME: usize = 8;

/// Options of `pellucid replay` for traces of gangs.
#[derive(Clone, Debug)]
pub struct GangReplayOptions {
    /// The nodes of the cluster.
    pub nodes: SyntheticNodes,
    /// How many seconds of the trace pass per second.
    pub pace: Pace,
    /// Seed that orders nodes of equal score.
    pub seed: u64,
    /// The quotas of the jobs, if there are any.
    pub quotas: Option<QuotaFile>,
}

/// Replays jobs, which must be in order of submission. The first is due at once.
pub async fn replay_gangs(jobs: Vec<GangJob>, options: GangReplayOptions) -> anyhow::Result<GangReport> {
    // At 10,000 trace seconds per second, a kubelet delay of 100 ms would hold a GPU for 17 minutes.
    let kubelet = Kubelet { start_delay: Duration::ZERO, stop_delay: Duration::ZERO };
    let quotas = options.quotas.unwrap_or_default();
    let users = match quotas.objects.is_empty() {
        true => BTreeMap::new(),
        false => quotas.assign(&jobs).map_err(anyhow::Error::msg)?,
    };
    let (nodes, seed) = (options.nodes.to_json(), options.seed);
    let environment = ReplayEnvironment::start(&nodes, seed, kubelet, None, &quotas.objects).await?;
    let of = |at: usize| quotas.leaves[at].name.clone();
    let quota_of = users.into_iter().map(|(user, at)| (user, of(at))).collect();
    let report = play(&environment, jobs, quota_of, quotas.leaves, options.pace).await;
    environment.stop().await;
    report
}

async fn play(
    environment: &ReplayEnvironment,
    jobs: Vec<GangJob>,
    quota_of: BTreeMap<String, String>,
    leaves: Vec<LeafQuota>,
    pace: Pace,
) -> anyhow::Result<GangReport> {
    let nodes = client::list(&environment.client, "/api/v1/nodes").await?;
    let workers = jobs.iter().map(|job| job.workers).sum();
    let longest = jobs.iter().map(|job| job.runs_for).max().unwrap_or_default();
    let begin = jobs.first().map(|job| job.submitted_at).unwrap_or_default();
    let last_due = jobs.last().map(|job| pace.wall(job.submitted_at - begin)).unwrap_or_default();
    let bar = progress(jobs.len(), "{bar:40} {pos}/{len} jobs  {elapsed}");

    let mut check = GangCheck::new(&nodes, &jobs, PARTIAL_LIMIT);
    let mut fairness = (!leaves.is_empty()).then(|| Fairness::new(leaves));
    let mut watch = ObjectWatch::open(environment.client.clone(), PODS, "").await?;
    let (finished, names) = mpsc::channel(workers);
    let started = Instant::now();
    let deleting = tokio::spawn(delete_all(environment.client.clone(), names));
    let submitting = tokio::spawn(submit_all(environment.client.clone(), jobs, quota_of, pace, started));
    let (mut deleter, mut submitter) = (AbortOnDropHandle::new(deleting), AbortOnDropHandle::new(submitting));

    let patience = pace.wall(longest).saturating_add(STALL_PATIENCE);
    let mut lag = None;
    let mut stalls_at = started;
    while !check.is_settled() {
        tokio::select! {
            event = watch.next() => {
                let ((object, is_deleted), at) = (event?, started.elapsed());
                if let Some(fairness) = &mut fairness {
                    fairness.observe(&object, is_deleted, at);
                }
                match check.observe(&object, is_deleted, at) {
                    Seen::Nothing => continue,
                    Seen::Progress => {}
                    Seen::Finished(workers) => hand_over(&finished, workers).await?,
                }
                bar.set_position(check.settled() as u64);
            }
            done = &mut submitter, if lag.is_none() => lag = Some(done??),
            failed = &mut deleter => failed??,
            () = sleep_until(stalls_at), if lag.is_some() => break,
        }
        stalls_at = Instant::now() + patience;
    }
    let ended_at = started.elapsed();
    bar.finish_and_clear();
    let mut notes = Vec::new();
    if !check.is_settled() {
        notes.push(format!("Given up: for {} no worker was created, bound or ended.", span(patience)));
    }
    drop(finished);
    deleter.await??;
    let lag = match lag {
        Some(lag) => lag,
        None => submitter.await??,
    };
    let fairness = fairness.map(|fairness| fairness.finish(ended_at));
    Ok(GangReport { outcome: check.finish(ended_at), pace, last_due, lag, notes, fairness })
}

/// Hands the pods of a finished job to the deleter. The channel has room for all workers of the trace.
async fn hand_over(finished: &Sender<String>, workers: Vec<String>) -> anyhow::Result<()> {
    for worker in workers {
        finished.send(worker).await.context("nobody deletes finished pods any more")?;
    }
    Ok(())
}

async fn delete_all(client: kube::Client, mut names: Receiver<String>) -> anyhow::Result<()> {
    while let Some(name) = names.recv().await {
        let deleted = client::delete(&client, &format!("{PODS}/{name}")).await;
        deleted.with_context(|| format!("cannot delete the finished pod {name}"))?;
    }
    Ok(())
}

/// Creates the workers of each job when it is due. Returns the largest delay of a job's last worker.
async fn submit_all(
    client: kube::Client,
    jobs: Vec<GangJob>,
    quota_of: BTreeMap<String, String>,
    pace: Pace,
    started: Instant,
) -> anyhow::Result<Duration> {
    let begin = jobs.first().map(|job| job.submitted_at).unwrap_or_default();
    let mut lag = Duration::ZERO;
    for job in &jobs {
        let due = started + pace.wall(job.submitted_at - begin);
        sleep_until(due).await;
        let runs_for = pace.wall(job.runs_for);
        let quota = quota_of.get(&job.model).map(String::as_str);
        let place = (NAMESPACE, DEFAULT_SCHEDULER_NAME);
        let worker = |index| to_worker_json(job, index, runs_for, quota, place);
        let created = stream::iter((0..job.workers).map(worker)).map(|worker| create(&client, worker));
        created.buffer_unordered(CREATES_AT_A_TIME).try_collect::<()>().await?;
        lag = lag.max(due.elapsed());
    }
    Ok(lag)
}

async fn create(client: &kube::Client, worker: Value) -> anyhow::Result<()> {
    let created = client::create(client, &worker).await;
    created.with_context(|| format!("cannot create worker {}", worker["metadata"]["name"]))
}
