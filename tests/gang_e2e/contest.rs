//! Gangs that cannot run at the same time, and pods behind a gang that cannot run at all.

use serde_json::Value;

use crate::common::running::{Pods, Running, pod, start};
use crate::gang_e2e::made::{annotated, light, names, nodes, tally};

/// How often two gangs compete for the cluster.
const ROUNDS: usize = 100;
/// Number of members of each gang: six of ten CPUs.
const MEMBERS: usize = 6;

/// Makes a member that ends after one second of the sandbox's clock.
fn short_lived(gang: &str, name: &str) -> Value {
    annotated(light(gang, name, MEMBERS as u32, 1000), "sandbox.pellucid.dev/run-seconds", "1")
}

/// Waits until one of two gangs runs and the other has a reason in its conditions; returns the pending one.
async fn contested(running: &mut Running, gangs: [&str; 2]) -> String {
    let settled = |pods: &Pods| {
        let [a, b] = gangs.map(|gang| tally(pods, &format!("{gang}-")));
        let (whole, nothing) = ((MEMBERS, 0, MEMBERS), (0, MEMBERS, MEMBERS));
        match (a, b) {
            _ if (a, b) == (whole, nothing) => Some(gangs[1].to_owned()),
            _ if (a, b) == (nothing, whole) => Some(gangs[0].to_owned()),
            _ => None,
        }
    };
    running.pods(&format!("one of {gangs:?} runs"), settled).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_gangs_of_six_tenths_exactly_one_runs_a_hundred_times_over() {
    let mut running = start(nodes(5, 2)).await;
    for round in 0..ROUNDS {
        let (a, b) = (format!("a{round:02}"), format!("b{round:02}"));
        let pairs = names(&a, MEMBERS).into_iter().zip(names(&b, MEMBERS));
        for (of_a, of_b) in pairs {
            running.create([short_lived(&a, &of_a), short_lived(&b, &of_b)]);
        }
        let waiting = contested(&mut running, [&a, &b]).await;
        let (on, off) = running.placed(&format!("{waiting}-")).await;
        assert_eq!((on.len(), off.len()), (0, MEMBERS), "the one that waits is whole");
        running.pass(1);
        running.all_run(&names(&waiting, MEMBERS)).await;
        running.pass(1);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singles_behind_a_gang_that_cannot_be_placed_run() {
    let mut running = start(nodes(2, 4)).await;
    let gang = names("g", 5);
    running.create(gang.iter().map(|name| light("g", name, 5, 3000)));
    running.all_told(&gang, "").await;
    let singles = names("single", 8);
    running.create(singles.iter().map(|name| pod(name, 1000)));
    running.all_run(&singles).await;
    assert_eq!(running.placed("g-").await.0.len(), 0);
    running.stop().await;
}
