//! Lists: pages of one state hold each item once, filters hold, and lines agree with what is said of one item.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::model::Pod;
use pellucid::model::gang::Controller;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::cluster::config;
use crate::common::made::{core_with, in_gang, node, pod};
use crate::common::reads::{ask, ask_snapshot, code_of, list, number, text, try_ask};
use crate::common::running::{node as node_object, pod as pod_object, start};
use crate::why::stories::story;

/// The lists with their arrays.
const LISTS: [(&str, &str); 7] = [
    ("/apis/v1/explain/pods", "/pods"),
    ("/apis/v1/explain/nodes", "/nodes"),
    ("/apis/v1/explain/gangs", "/gangs"),
    ("/apis/v1/nodes", "/nodes"),
    ("/apis/v1/queue", "/units"),
    ("/apis/v1/quarantine", "/objects"),
    ("/apis/v1/evictions", "/evictions"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..config() })]

    #[test]
    fn pages_of_one_state_are_the_list(story in story(), limit in 1..4usize, descending: bool) {
        let mut core = story.play();
        let snapshot = core.scheduler.publish(core.now);
        let ask = |target: &str| ask_snapshot(&snapshot, &core, target).expect("it answers");
        for (path, array) in LISTS {
            let sort = format!("?sort={}name", if descending { "-" } else { "" });
            let whole = ask(&format!("{path}{sort}&limit=0"));
            let mut pages: Vec<Value> = Vec::new();
            let mut token = String::new();
            loop {
                let page = ask(&format!("{path}{sort}&limit={limit}{token}"));
                prop_assert!(list(&page, array).len() <= limit);
                prop_assert_eq!(&page["count"], &whole["count"]);
                pages.extend_from_slice(list(&page, array));
                let left = list(&whole, array).len() - pages.len();
                prop_assert_eq!(page["meta"]["remainingItemCount"].as_u64(), (left > 0).then_some(left as u64));
                let Some(next) = page["meta"]["continue"].as_str() else { break };
                token = format!("&continue={next}");
            }
            // What a node takes depends on how many pods are asked about, which may be more for fewer nodes.
            prop_assert_eq!(&pages[..], list(&whole, array), "{}", path);
            let kind = whole["meta"]["kind"].as_str();
            prop_assert!(kind.is_some_and(|kind| !kind.is_empty()), "{}", path);
        }
    }

    #[test]
    fn a_line_of_a_node_counts_what_its_explanation_lists(story in story()) {
        let mut core = story.play();
        let snapshot = core.scheduler.publish(core.now);
        let ask = |target: &str| ask_snapshot(&snapshot, &core, target).expect("it answers");
        let lines = ask("/apis/v1/explain/nodes");
        prop_assert_eq!(&lines["pendingConsidered"], &lines["pendingTotal"]);
        for line in list(&lines, "/nodes") {
            // A node without an object is in no list.
            let one = ask(&format!("/apis/v1/explain/nodes/{}", text(line, "/name")));
            prop_assert_eq!(number(line, "/takes") as usize, list(&one, "/accepts").len(), "{} {}", line, one);
            prop_assert_eq!(number(line, "/refuses") as usize, list(&one, "/refuses").len());
            // The explanation has the first plugin that refuses each pod, the line all of them, also on nodes that PreFilter
            // leaves out.
            for refused in list(&one, "/refuses") {
                for reason in list(refused, "/reasons").iter().filter(|reason| reason["code"] != "NodeLeftOut") {
                    let counted = line["refusedFor"][text(reason, "/code")].as_u64().unwrap_or(0);
                    prop_assert!(counted > 0, "{} is not in {}", reason, line);
                }
            }
        }
    }
}

fn owned(name: &str, milli_cpu: i64, owner: &str) -> Pod {
    let controller = Controller { uid: owner.into(), kind: "ReplicaSet".into(), name: owner.into() };
    Pod { controller: Some(controller), ..pod(name, milli_cpu) }
}

#[test]
fn pods_are_found_by_what_they_have() {
    let mut core = core_with(&[node("a", 1000)]);
    for pod in [owned("web-1", 5000, "web"), owned("web-2", 5000, "web"), owned("db-1", 9000, "db")] {
        core.see(&pod);
    }
    core.see(&Pod { priority: 10, ..pod("single", 6000) });
    core.see(&Pod { gates: ["g".into()].into(), ..pod("gated", 100) });
    core.see(&in_gang(pod("crew-1", 100), "crew", 3));
    while core.step().is_some() {}
    let mut found = |query: &str| -> Vec<String> {
        let body = ask(&mut core, &format!("/apis/v1/explain/pods?{query}"));
        list(&body, "/pods").iter().map(|pod| text(pod, "/name").to_owned()).collect()
    };
    assert_eq!(found("owner=ReplicaSet/web"), ["web-1", "web-2"]);
    assert_eq!(found("owner=web,db&sort=-name"), ["web-2", "web-1", "db-1"]);
    assert_eq!(found("reason=SchedulingGated"), ["gated"]);
    assert_eq!(found("gang=crew"), ["crew-1"]);
    assert_eq!(found("minPriority=1"), ["single"]);
    assert_eq!(found("stage=gated"), ["crew-1", "gated"]);
    assert_eq!(found("name=web-&limit=1"), ["web-1"]);
    assert_eq!(found("namespace=elsewhere"), [""; 0]);
    let refused = try_ask(&mut core, "/apis/v1/explain/pods?fields=name,colour");
    assert_eq!(code_of(refused), "InvalidParameter");
    let body = ask(&mut core, "/apis/v1/explain/pods?fields=name,requests.cpu&name=db");
    assert_eq!(list(&body, "/pods"), [serde_json::json!({"name": "db-1", "requests": {"cpu": "9"}})]);
}

#[test]
fn replicas_are_one_row() {
    let mut core = core_with(&[node("a", 1000)]);
    let at = |seconds, pod: Pod| Pod { created: seconds, ..pod };
    core.see(&at(100, owned("web-1", 5000, "web")));
    core.see(&at(50, Pod { priority: 7, ..owned("web-2", 5000, "web") }));
    core.see(&at(70, pod("single", 5000)));
    core.see(&at(80, pod("other", 6000)));
    while core.step().is_some() {}
    let body = ask(&mut core, "/apis/v1/summary/pending?by=owner");
    let rows: BTreeMap<&str, &Value> =
        list(&body, "/rows").iter().map(|row| (text(row, "/owner"), row)).collect();
    let web = rows["ReplicaSet/web"];
    assert_eq!((number(web, "/pods"), text(web, "/oldest")), (2, "1970-01-01T00:00:50.000Z"));
    assert_eq!((number(web, "/minPriority"), number(web, "/maxPriority")), (0, 7));
    assert_eq!((text(web, "/requests/cpu"), text(web, "/example")), ("5", "ns/web-1"));
    assert_eq!((text(web, "/keyReason"), text(web, "/outlook")), ("InsufficientResource", "NeverFits"));
    // Pods without a controller are one row, which has no one request.
    assert_eq!((number(rows[""], "/pods"), rows[""].get("requests")), (2, None));
    assert_eq!(body["by"], serde_json::json!(["owner", "namespace"]));
    let body = ask(&mut core, "/apis/v1/summary/pending?by=owner,shape&owner=web");
    let shapes: BTreeSet<&str> = list(&body, "/rows").iter().map(|row| text(row, "/shape")).collect();
    assert_eq!((number(&body, "/totalPending"), shapes), (2, BTreeSet::from(["cpu=5"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_gives_each_pod_once_while_pods_come_and_go() {
    let running = start(vec![node_object("a", "z", 1)]).await;
    let names: Vec<String> = (10..40).map(|n| format!("large-{n}")).collect();
    running.create(names.iter().map(|name| pod_object(name, 5000)));
    let path = "/apis/v1/explain/pods?limit=7";
    running.wait(path, "all were tried", |body| number(body, "/count") == 30);
    let mut page = running.read(path);
    let mut seen: Vec<String> = Vec::new();
    let mut round = 0;
    loop {
        seen.extend(list(&page, "/pods").iter().map(|pod| text(pod, "/name").to_owned()));
        let Some(token) = page["meta"]["continue"].as_str() else { break };
        // A pod before the place of the walk goes, one before it and one after it come.
        let generation = number(&running.read("/apis/v1/statehash"), "/meta/snapshotGeneration");
        running.create([pod_object(&format!("a-{round}"), 5000), pod_object(&format!("z-{round}"), 5000)]);
        running.kill(&names[round]).await;
        running.read(&format!("/apis/v1/statehash?minGeneration={}", generation + 1));
        page = running.read(&format!("{path}&continue={token}"));
        round += 1;
    }
    assert_eq!((seen, round), (names, 4));
    assert_eq!(running.status_of(&format!("{path}&continue=1-7-0-0")), 410, "nobody keeps the first state");
    assert_eq!(running.status_of(&format!("{path}&continue=second")), 400);
    running.stop().await;
}
