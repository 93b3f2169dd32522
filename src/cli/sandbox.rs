//! `pellucid sandbox`: runs the embedded API server until Ctrl-C.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use pellucid_client::manifests;
use pellucid_sandbox::{Clock, Config, Kubelet, Sandbox, StartError, User};
use serde_json::Value;

/// Runs an in-memory Kubernetes API server for a machine without a cluster.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  pellucid sandbox --nodes nodes.yaml")]
pub(super) struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8001")]
    pub listen: SocketAddr,
    /// Listen on the address although other machines reach it. There is no authentication: whoever connects can change
    /// and delete everything.
    #[arg(long)]
    pub beyond_loopback: bool,
    /// YAML or JSON file with nodes (or any objects) to begin with: a List, or several documents. May be repeated.
    #[arg(long = "nodes", value_name = "FILE")]
    pub nodes: Vec<PathBuf>,
    /// YAML or JSON file with a list of users that TokenReview and SubjectAccessReview know, to try servers with users:
    /// name, token, groups, rights (verbs with paths or with the namespace of pods). The sandbox itself heeds no rights.
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Let the nodes have no kubelet: bound pods stay Pending, and a deleted one goes only without grace.
    #[arg(long, conflicts_with_all = ["start_delay", "stop_delay", "node_metrics"])]
    pub no_kubelet: bool,
    /// Seconds from binding until a pod runs.
    #[arg(long, default_value = "0.5", value_name = "SECONDS", value_parser = seconds)]
    pub start_delay: Duration,
    /// Longest time in seconds that a deleted pod takes to end.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub stop_delay: Duration,
    /// Report what each node uses as a NodeMetric (slo.koordinator.sh), every so many seconds. A pod uses what its
    /// annotation sandbox.pellucid.dev/usage says, such as cpu=1500m,memory=2Gi, else 60 % of its requests.
    #[arg(
        long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub node_metrics: Option<u64>,
    /// Report the CPUs and NUMA nodes of each node whose annotation sandbox.pellucid.dev/machine describes its machine,
    /// such as "2 sockets x 2 NUMA x 16 cores x 2 threads", as a NodeResourceTopology (topology.node.k8s.io). Nodes of
    /// --nodes with the annotation turn it on.
    #[arg(long)]
    pub node_topologies: bool,
    /// Report the devices of each node whose annotation sandbox.pellucid.dev/devices describes them, such as
    /// "8 GPUs x 80Gi, 2 per switch, 4 per NUMA, 4 RDMA", as a Device (scheduling.koordinator.sh), and publish their amounts
    /// on the node. With a value, nodes of --nodes that offer nvidia.com/gpu have these. Nodes of --nodes with the annotation
    /// turn it on.
    #[arg(long, value_name = "DEVICES", num_args = 0..=1, default_missing_value = "")]
    pub gpus: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// Starts the server and waits for Ctrl-C.
#[expect(clippy::print_stdout, reason = "a command talks to people on its standard output")]
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut objects = Vec::new();
    for file in &args.nodes {
        objects.extend(read(file)?);
    }
    let kubelet = Kubelet { start_delay: args.start_delay, stop_delay: args.stop_delay };
    let clock = Clock::real();
    // Another run must not give the same uids to other objects.
    let seed = clock.now().as_nanosecond() as u64;
    let config = Config {
        listen: args.listen,
        beyond_loopback: args.beyond_loopback,
        clock,
        seed,
        kubelet: (!args.no_kubelet).then_some(kubelet),
        node_metrics: args.node_metrics.map(Duration::from_secs),
        node_topologies: args.node_topologies,
        devices: args.gpus.is_some(),
        gpus: args.gpus.filter(|form| !form.is_empty()),
        users: args.users.as_deref().map(users).transpose()?.unwrap_or_default(),
        objects,
        ..Config::default()
    };
    let handle = Sandbox::start(config).await.map_err(explained)?;
    // Revisions start above those of an earlier run, so that its clients have to list again.
    handle.compact(u64::try_from(handle.clock().now().as_millisecond()).unwrap_or(0));
    println!("sandbox API server on {}, {} nodes", handle.url(), handle.count("nodes"));
    println!("try: kubectl --server={} get nodes", handle.url());
    tokio::signal::ctrl_c().await.context("waiting for Ctrl-C")?;
    println!("stopping");
    handle.stop().await;
    Ok(())
}

/// Adds the context of the failed start, and what to do about a rejected address or a port in use.
fn explained(error: StartError) -> anyhow::Error {
    let taken = is_taken(&error);
    let is_remote = matches!(error, StartError::NotLoopback { .. });
    let error = anyhow::Error::new(error).context("the sandbox did not start");
    if is_remote {
        return anyhow::anyhow!(
            "{error:#}\n--beyond-loopback allows it, on a network where that does no harm"
        );
    }
    if taken { other_port(&error, "--listen") } else { error }
}

/// Returns whether the sandbox's port is in use.
pub(super) fn is_taken(error: &StartError) -> bool {
    matches!(error, StartError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
}

/// Adds a line to the error of a port in use, with the flag that changes the port.
pub(super) fn other_port(error: &anyhow::Error, flag: &str) -> anyhow::Error {
    anyhow::anyhow!("{error:#}\n{flag} 127.0.0.1:0 takes any free port and prints it")
}

fn users(file: &Path) -> anyhow::Result<Vec<User>> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {name}"))?;
    serde_saphyr::from_str(&text).with_context(|| format!("{name} is no list of users"))
}

fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    manifests::documents(&text, &file.display().to_string())
}
