//! Pods of all recorded cases on the nodes of each, against the model with our rules. What is recorded shows that the model with
//! Koordinator's rules gives what Koordinator does; this shows that ours differs from it by these rules alone.

use serde_json::{Value, json};

use super::case::{Case, array};
use super::compare::Compared;
use super::text;
use crate::common::rng::Rng;
use crate::{lines, own_copy};

/// Pods that arrive in a case.
const PODS: usize = 24;

#[test]
fn pods_of_other_cases_get_what_the_model_gives() {
    if !own_copy() {
        return;
    }
    let cases = lines("numa.jsonl");
    let steps = cases.iter().flat_map(|case| array(&case["steps"]));
    let pods: Vec<&Value> = steps.filter(|step| step["op"] == "pod").map(|step| &step["pod"]).collect();
    let own = |case: &Value| {
        let steps = array(&case["steps"]).iter().filter(|step| step["op"] == "pod");
        steps.map(|step| step["pod"].clone()).collect::<Vec<_>>()
    };
    let (mut out, mut rng) = (Compared::default(), Rng::new(20));
    for recorded in &cases {
        let mut case = Case::new(recorded);
        let (own, mut there) = (own(recorded), Vec::new());
        for n in 0..PODS {
            // Pods of the case itself request what its nodes have.
            let mut pod = match rng.below(2) {
                0 if !own.is_empty() => own[rng.below(own.len())].clone(),
                _ => pods[rng.below(pods.len())].clone(),
            };
            let name = format!("{}-r{n}", text(&recorded["id"]));
            pod["metadata"]["name"] = json!(name);
            if case.try_out(&pod, &mut out) {
                there.push(name);
            }
            if !there.is_empty() && rng.below(2) == 0 {
                case.delete(&there.swap_remove(rng.below(there.len())));
            }
        }
    }
    println!("{} placed, {} refused", out.placed, out.refused);
    let unknown: Vec<String> = out.differences.iter().map(|(at, said)| format!("{at}: {said}")).collect();
    assert!(unknown.is_empty(), "{} differences:\n{}", unknown.len(), unknown.join("\n"));
    assert!(out.placed > cases.len() * 5, "{}", out.placed);
}
