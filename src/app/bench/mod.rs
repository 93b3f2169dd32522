//! `pellucid bench`: an ordinary client of an API server that measures any scheduler. Without a cluster it starts a
//! sandbox and a scheduler as processes of their own.
//!
//! What the bench creates is marked, and removed at the end, after an error and after Ctrl-C.

mod arithmetic;
mod children;
mod gangs;
mod objects;
mod report;
mod runs;
mod watched;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use pellucid_kubernetes::{Connection, stop_requested};
use pellucid_model::gang::Dialect;

use crate::bench::arithmetic::quantile;
use crate::bench::children::Children;
use crate::bench::report::{Kind, Run};
use crate::bench::runs::{Load, Measured};

pub use crate::bench::report::Report;

/// How long to wait for the API server.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Arrivals come at this share of the measured rate of bare Bindings, unless a rate is given.
const ARRIVAL_SHARE: f64 = 0.5;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// All below, arrivals at half the rate of bindcap, gangs if the scheduler is pellucid
    All,
    /// Bindings of a bare client, round robin over the nodes: what the API server takes
    Bindcap,
    /// All pods at once: pods per second until the last is bound
    Drain,
    /// Pods at a rate: time from creation to the Binding
    Arrivals,
    /// Gangs at once, in each dialect: time from the creation of the last member until all are bound
    Gangs,
}

/// Options of `pellucid bench`.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// What is measured.
    pub mode: Mode,
    /// Kubeconfig of the cluster; a sandbox and a scheduler are started without one.
    pub kubeconfig: Option<PathBuf>,
    /// Name of the measured scheduler.
    pub scheduler_name: String,
    /// Namespace that the bench creates.
    pub namespace: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of pods of each run.
    pub pods: usize,
    /// Number of different requests among the pods.
    pub shapes: usize,
    /// Arrivals per second.
    pub rate: Option<f64>,
    /// Runs that count.
    pub runs: usize,
    /// Runs before them that do not count.
    pub warmup: usize,
    /// Bindings in flight of bindcap.
    pub concurrency: usize,
    /// Dialects of gangs; if empty all, in mode `All` those that the API server has the kinds for.
    pub dialects: Vec<Dialect>,
    /// Gangs of each run.
    pub gangs: usize,
    /// Members of each gang.
    pub gang_size: usize,
    /// Remove what an earlier bench left behind.
    pub clean: bool,
}

/// Measures and cleans up. Fails before it changes anything when an earlier bench left something behind.
pub async fn bench(options: BenchOptions) -> anyhow::Result<Report> {
    let mut children = match &options.kubeconfig {
        Some(_) => None,
        None => Some(Children::start().await?),
    };
    let kubeconfig = options.kubeconfig.as_deref().or(children.as_ref().map(|c| c.kubeconfig.as_path()));
    let client = Connection::open(kubeconfig, CONNECT_PATIENCE).await?.write;
    let kinds = kinds(&options, &client).await?;
    let left = objects::leftovers(&client, &options.namespace).await?;
    if !left.is_empty() {
        let some = left.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(
            options.clean,
            "an earlier bench left {} objects ({some}): --clean removes them",
            left.len()
        );
        objects::clean(&client, &options.namespace).await?;
    }
    let measuring = async {
        objects::set_up(&client, &options.namespace, options.nodes).await?;
        measure(&options, &kinds, &client, children.as_mut()).await
    };
    let measured = tokio::select! {
        measured = measuring => measured,
        stopped = stop_requested() => stopped.map_err(Into::into).and_then(|()| Err(anyhow::anyhow!("interrupted"))),
    };
    let cleaned =
        objects::clean(&client, &options.namespace).await.context("something of the bench is left behind");
    let report = measured?;
    cleaned?;
    Ok(report)
}

async fn measure(
    options: &BenchOptions,
    kinds: &[Kind],
    client: &kube::Client,
    mut children: Option<&mut Children>,
) -> anyhow::Result<Report> {
    let load = Load {
        client: client.clone(),
        namespace: options.namespace.clone(),
        nodes: options.nodes,
        pods: options.pods,
        shapes: options.shapes,
        scheduler: options.scheduler_name.clone(),
        concurrency: options.concurrency,
        gangs: options.gangs,
        gang_size: options.gang_size,
    };
    let mut report = Report::new(options);
    let mut number = 0;
    // The kinds take turns, so that a machine whose speed drifts favours none.
    for round in 0..options.warmup + options.runs {
        let mut cap = None;
        for &kind in kinds {
            let rate = match kind {
                Kind::Arrivals => options.rate.or(cap.map(|cap: f64| cap * ARRIVAL_SHARE)),
                Kind::Bindcap | Kind::Drain | Kind::Gangs(_) => None,
            };
            if let (Kind::Bindcap, Some(children)) = (kind, &mut children) {
                // That of the runs before may still be writing their Events.
                children.stop_scheduler();
            }
            // A drain starts it when its pods are there. Beside bare Bindings it watches, as that of a cluster does.
            if let (Kind::Bindcap | Kind::Arrivals | Kind::Gangs(_), Some(children)) = (kind, &mut children) {
                children.start_scheduler()?;
            }
            let measured = match (kind, &mut children) {
                (Kind::Bindcap, _) => load.bind(number).await?,
                (Kind::Drain, Some(children)) => load.drain(number, children).await?,
                (Kind::Drain, None) => load.schedule(number, None).await?,
                (Kind::Arrivals, _) => load.schedule(number, rate).await?,
                (Kind::Gangs(dialect), _) => load.schedule_gangs(number, dialect).await?,
            };
            number += 1;
            let run = run(kind, rate, &measured);
            if kind == Kind::Bindcap {
                cap = Some(run.pods_per_second);
            }
            if round >= options.warmup {
                report.runs.push(run);
            }
        }
    }
    report.scheduler = children.and_then(|children| children.usage());
    Ok(report)
}

/// Returns what is measured in each round. Fails when the API server does not have the kinds for it.
async fn kinds(options: &BenchOptions, client: &kube::Client) -> anyhow::Result<Vec<Kind>> {
    let mut kinds = match options.mode {
        Mode::All => vec![Kind::Bindcap, Kind::Drain, Kind::Arrivals],
        Mode::Bindcap => vec![Kind::Bindcap],
        Mode::Drain => vec![Kind::Drain],
        Mode::Arrivals => vec![Kind::Arrivals],
        Mode::Gangs => Vec::new(),
    };
    let is_ours = options.scheduler_name == "pellucid";
    if options.mode == Mode::Gangs || options.mode == Mode::All && is_ours {
        let is_chosen = !options.dialects.is_empty();
        let asked = if is_chosen { &options.dialects[..] } else { &Dialect::ALL };
        let or_fewer = options.mode == Mode::All && !is_chosen;
        let served = gangs::served(client, &options.namespace, asked, or_fewer).await?;
        kinds.extend(served.into_iter().map(Kind::Gangs));
    }
    Ok(kinds)
}

fn run(kind: Kind, rate: Option<f64>, measured: &Measured) -> Run {
    let millis = |share| quantile(&measured.latencies, share).as_secs_f64() * 1e3;
    Run {
        kind,
        rate,
        pods_per_second: measured.pods as f64 / measured.took.as_secs_f64().max(1e-9),
        p50_ms: millis(0.5),
        p99_ms: millis(0.99),
        max_ms: millis(1.0),
    }
}
