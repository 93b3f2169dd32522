//! NodeNUMAResource: which node a pod gets, with which CPUs and amounts on NUMA nodes, what refusals say, scores, and the
//! endpoint's answers.
//!
//! After each step the recorded outcome is put in place, so that a difference stays where it is. DeviceShare is enabled
//! beside it: cards and CPUs come from the same NUMA nodes. The scores of all plugins are compared.
//!
//! Where ours differs on purpose ([`Rule`]), a difference is accepted if the model (`numa_model`) with Koordinator's rules gives
//! exactly what is recorded, and with ours exactly what ours does.

mod answers;
mod case;
mod compare;
mod made;
mod merge;
mod model;
mod node;
mod resampled;

use pellucid::framework::profile::Profile;
use pellucid::plugins::node_numa_resource::NAME;
use serde_json::{Value, json};

use crate::{lines, own_copy, profile_of};
use case::Case;
use compare::Compared;
use model::Rule;

/// Number of cases of this repository.
const ALL: usize = 95;
const DEVICE_SHARE: &str = "DeviceShare";
const STATUS: &str = "scheduling.koordinator.sh/resource-status";
const DEVICES: &str = "scheduling.koordinator.sh/device-allocated";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

pub(crate) fn profile(args: &Value) -> Profile {
    profile_of(&[json!({"name": NAME}), json!({"name": DEVICE_SHARE})], NAME, args)
}

#[test]
fn node_numa_resource_agrees_with_koordinator() {
    let cases = lines("numa.jsonl");
    let mut out = Compared::default();
    cases.iter().for_each(|recorded| Case::play(recorded, &mut out));
    println!(
        "{} cases: {} placements, {} refusals, {} scores, {} answers; rules behind differences: {:?}",
        cases.len(),
        out.placed,
        out.refused,
        out.scores,
        out.answers,
        out.rules
    );
    let unknown: Vec<String> = out.differences.iter().map(|(at, said)| format!("{at}: {said}")).collect();
    assert!(unknown.is_empty(), "{} differences:\n{}", unknown.len(), unknown.join("\n"));
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
        let met: Vec<Rule> = Rule::ALL.into_iter().filter(|rule| out.rules.contains_key(rule)).collect();
        let recorded = Rule::ALL.into_iter().filter(|rule| *rule != Rule::Amplified);
        assert_eq!(met, recorded.collect::<Vec<_>>(), "every rule is behind a difference");
        assert!(out.placed >= 360 && out.refused >= 213, "{} {}", out.placed, out.refused);
        assert!(out.scores >= 80 && out.answers >= 120, "{} {}", out.scores, out.answers);
    }
}
