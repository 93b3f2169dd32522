//! The five pods of article 001 and their rounds, as the gang endpoint shows them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::running::{Hand, Running, node, start_with};
use crate::gang_e2e::made::{light, names, nodes};

/// Waits until a gang is in a round with this validity and number of children, all last tried in the same round.
fn in_round(running: &Running, cycle: u64, is_valid: bool, children: usize, last: u64) -> Value {
    let rounds: BTreeMap<String, u64> =
        names("default/g", children).into_iter().map(|name| (name, last)).collect();
    let what = format!("round {cycle}, valid: {is_valid}, {children} children tried in {last}");
    running.gang("g", &what, |body| {
        body["scheduleCycle"] == cycle
            && body["scheduleCycleValid"] == is_valid
            && body["childrenScheduleRoundMap"] == json!(rounds)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn article_001_five_pods_and_their_rounds() {
    let running = start_with(nodes(1, 3), None, Some(Hand::default())).await;
    let members = names("g", 5);
    let member = |name: &String| light("g", name, 5, 1000);
    running.create(members[..4].iter().map(member));
    let body = in_round(&running, 1, true, 4, 0);
    assert_eq!((&body["attempts"], &body["state"]), (&json!(0), &json!("Gated")), "{body:#}");
    // Three have room and the fourth has none: the round is over for all.
    running.create(members[4..].iter().map(member));
    let body = in_round(&running, 1, false, 5, 1);
    assert_eq!((&body["attempts"], &body["counts"]["pending"]), (&json!(1), &json!(5)), "{body:#}");
    assert_eq!(body["waitingForBindChildren"], json!({}), "a strict gang keeps nothing: {body:#}");
    // All were tried, so the next attempt is the next round. It lacks room for one.
    running.create([node("more", "z", 1)]);
    running.let_pass(1).await;
    let body = in_round(&running, 2, false, 5, 2);
    assert_eq!(body["attempts"], 2, "{body:#}");
    // The next retry has room for all: no member fails, and the round stays valid.
    running.create([node("enough", "z", 1)]);
    running.let_pass(2).await;
    in_round(&running, 3, true, 5, 3);
    let body = running.gang("g", "runs", |body| body["state"] == "Running");
    assert_eq!((&body["attempts"], &body["counts"]["bound"]), (&json!(3), &json!(5)), "{body:#}");
    assert_eq!((&body["scheduleCycle"], &body["scheduleCycleValid"]), (&json!(3), &json!(true)), "{body:#}");
    running.stop().await;
}
