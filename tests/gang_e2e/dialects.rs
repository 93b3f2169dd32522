//! The same gang declared in five ways ends in the same placement.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::running::{node_of, pod, start, with};
use crate::made::{KUBE_BATCH, NATIVE, X, annotated, group, labelled, light, names, nodes, of_group};

const DIALECTS: [&str; 5] = ["unicore", "coscheduling", "koordinator", "kube-batch", "native"];

/// Makes a member of gang `same`, which has a quorum of five.
fn member(dialect: &str, name: &str) -> Value {
    match dialect {
        "unicore" => {
            let named = labelled(pod(name, 1000), "gang.unicore.mcyou.cn/name", "same");
            labelled(named, "gang.unicore.mcyou.cn/available-count", "5")
        }
        "coscheduling" => of_group(pod(name, 1000), "same"),
        "koordinator" => light("same", name, 5, 1000),
        "kube-batch" => annotated(pod(name, 1000), "scheduling.k8s.io/group-name", "same"),
        _ => with(pod(name, 1000), "schedulingGroup", json!({"podGroupName": "same"})),
    }
}

fn pod_group(dialect: &str) -> Option<Value> {
    let version = match dialect {
        "coscheduling" => X,
        "kube-batch" => KUBE_BATCH,
        "native" => NATIVE,
        _ => return None,
    };
    Some(group(version, "same", 5))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_gang_in_each_dialect_ends_in_the_same_placement() {
    let mut found = BTreeMap::new();
    for dialect in DIALECTS {
        let mut running = start(nodes(3, 2)).await;
        running.create(pod_group(dialect));
        let members = names("m", 5);
        running.create(members[..4].iter().map(|name| member(dialect, name)));
        running.all_told(&members[..4], "default/same: 4 of 5 are there").await;
        running.create([member(dialect, "m-4")]);
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
