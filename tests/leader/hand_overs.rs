//! Many hand-overs under load: by SIGTERM within a second, after a crash within the lease duration and a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::common::running::node;
use crate::leader::load::Load;
use crate::leader::log_checks::check;
use crate::leader::replicas::{LEASE, Replica, sandbox};

/// Every so many hand-overs the leader is killed instead of stopped.
const KILLED: usize = 5;
const SECOND: Duration = Duration::from_secs(1);

fn hand_overs() -> usize {
    std::env::var("PELLUCID_HAND_OVERS").ok().map_or(20, |n| n.parse().expect("a number"))
}

/// Prints the middle and the greatest of some times, and returns the middle.
fn show(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let (middle, most) = (times[times.len() / 2], times.last().copied().unwrap_or_default());
    println!("{} hand-overs {what}: p50 {middle:?}, max {most:?}", times.len());
    middle
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hand_overs_bind_nothing_twice_and_nobody_writes_without_the_lease() {
    let nodes = (0..8).map(|n| node(&format!("n{n}"), "z", 64)).collect();
    let sandbox = Arc::new(sandbox(nodes).await);
    let mut leader = Replica::start(&sandbox).await;
    leader.until_it_leads().await;
    let mut standby = Replica::start(&sandbox).await;
    let load = Load::start(&sandbox);
    let (mut stopped, mut killed, mut lost) = (Vec::new(), Vec::new(), 0);
    while stopped.len() + killed.len() < hand_overs() {
        standby.until_it_is_warm().await;
        // The leader has work: it has bound something since it leads.
        leader.until("it binds", |snapshot| snapshot.counters.bound > 0 || !snapshot.is_leading).await;
        let begun = Instant::now();
        if !leader.leads() {
            // On a machine that is too busy it may not renew in time. Then it ends as it should.
            lost += 1;
            leader.kill();
            standby.takes_over().await;
        } else if (stopped.len() + killed.len()) % KILLED == KILLED - 1 {
            leader.kill();
            if standby.takes_over().await {
                killed.push(begun.elapsed());
            }
        } else {
            let stopping = tokio::spawn(leader.stop());
            if standby.takes_over().await {
                stopped.push(begun.elapsed());
            }
            stopping.await.expect("stopped");
        }
        leader = std::mem::replace(&mut standby, Replica::start(&sandbox).await);
    }
    let created = load.settle(&sandbox).await;
    leader.stop().await;
    standby.stop().await;
    let writes = check(&sandbox);
    println!("{created} pods, {writes:?}, {lost} leaders could not renew in time");
    assert!(writes.bound == created && writes.hand_overs >= hand_overs(), "{writes:?}");
    // A busy machine delays single ones, so the middle is judged and the greatest is printed.
    let (by_stop, by_kill) = (show("by SIGTERM", stopped), show("by crash", killed));
    assert!(by_stop < SECOND, "{by_stop:?} after SIGTERM");
    assert!(by_kill < LEASE + SECOND, "{by_kill:?} after a crash");
}
