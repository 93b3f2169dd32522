//! Soak test: random hostile objects, faults and readers for a given time, while invariants are checked.
//!
//! `cargo bench --bench soak -- --minutes 60 --seed 1`. The sandbox with its faults runs in this process; the scheduler
//! runs as a child process, `pellucid run`, so that its memory is measured separately. Prints one line per minute and a
//! verdict per requirement, and exits with 1 when one is not met. The test is not part of CI: `tests/chaos/mod.rs` is the
//! short test of the same faults. docs/operations.md lists the requirements and the latest output.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that measures time and prints"
)]

#[path = "soak/fitting.rs"]
mod fitting;
#[path = "soak/gangs.rs"]
mod gangs;
#[path = "soak/health.rs"]
mod health;
#[path = "soak/hostile.rs"]
mod hostile;
#[path = "soak/nodes.rs"]
mod nodes;
#[path = "soak/options.rs"]
mod options;
#[path = "soak/outages.rs"]
mod outages;
#[path = "soak/plain.rs"]
mod plain;
#[path = "soak/pods.rs"]
mod pods;
#[path = "soak/population.rs"]
mod population;
#[path = "soak/readers.rs"]
mod readers;
#[path = "soak/report.rs"]
mod report;
#[path = "../tests/common/rng.rs"]
mod rng;
#[path = "soak/rude.rs"]
mod rude;
#[path = "soak/scheduler.rs"]
mod scheduler;
#[path = "soak/state.rs"]
mod state;
#[path = "soak/wire.rs"]
mod wire;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use options::Options;
use pellucid::sandbox::{Config, Handle, Kubelet, Sandbox};
use scheduler::Scheduler;
use state::Soak;

/// Maximum time for the scheduler to become ready, and for pending pods to settle at the end.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            println!("{wrong}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("the test did not run: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the whole test. Returns whether every requirement was met.
fn run(options: Options) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sandbox = runtime.block_on(start_sandbox(&options))?;
    let scheduler = Scheduler::start(&sandbox.url(), &options)?;
    println!("pellucid run --config … (pid {}), REST on {}", scheduler.pid(), scheduler.address);
    let soak = Soak::new(options, sandbox, scheduler.address, scheduler.pid());
    health::wait_until_ready(&soak, PATIENCE)?;
    soak.begin();
    thread::scope(|scope| {
        scope.spawn(|| plain::keep_creating(&soak));
        scope.spawn(|| fitting::keep_creating(&soak));
        scope.spawn(|| hostile::keep_creating(&soak));
        scope.spawn(|| outages::keep_failing(&soak));
        scope.spawn(|| outages::keep_stumbling(&soak));
        scope.spawn(|| health::keep_asking(&soak));
        readers::start(scope, &soak);
        rude::start(scope, &soak);
        report::every_minute(&soak);
        soak.stop_load();
        plain::settle(&soak, PATIENCE);
        soak.stop();
    });
    let log = scheduler.end();
    Ok(report::verdict(&soak, log))
}

async fn start_sandbox(options: &Options) -> anyhow::Result<Handle> {
    let kubelet = Kubelet { start_delay: Duration::from_millis(100), stop_delay: Duration::from_secs(1) };
    let config = Config {
        kubelet: Some(kubelet),
        seed: options.seed,
        objects: nodes::at_the_start(),
        ..Config::default()
    };
    Ok(Sandbox::start(config).await?)
}
