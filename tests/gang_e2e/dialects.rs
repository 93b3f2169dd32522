//! The same gang declared in five ways ends in the same placement.

use std::collections::BTreeMap;

use crate::common::dialects::{DIALECTS, member, pod_group};
use crate::common::running::{node_of, pod, start};
use crate::gang_e2e::made::{names, nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_gang_in_each_dialect_ends_in_the_same_placement() {
    let mut found = BTreeMap::new();
    for dialect in DIALECTS {
        let mut running = start(nodes(3, 2)).await;
        running.create(pod_group(dialect, "same", 5));
        let made = |name: &str| member(dialect, pod(name, 1000), "same", 5);
        let members = names("m", 5);
        running.create(members[..4].iter().map(|name| made(name)));
        running.all_told(&members[..4], "default/same: 4 of 5 are there").await;
        running.create([made("m-4")]);
        running.all_run(&members).await;
        let placed = |pods: &crate::common::running::Pods| {
            Some(pods.iter().map(|(n, p)| (n.clone(), node_of(p).map(str::to_owned))).collect::<Vec<_>>())
        };
        found.insert(dialect, running.pods("placed", placed).await);
        running.stop().await;
    }
    for dialect in DIALECTS {
        assert_eq!(found[dialect], found["unicore"], "{dialect}");
    }
}
