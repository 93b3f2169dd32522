//! InterPodAffinity: places pods near pods they require and away from pods they must avoid, and enforces the
//! anti-affinity of pods already placed.
//!
//! "Near" means in the same domain: on nodes with the same value of a term's `topologyKey`. The README beside this file
//! states the rules.

use pellucid_api::rest::relations::{InterPodAffinityOfNode, InterPodAffinityState};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::Plugin;
use pellucid_framework::{Registration, points};
use serde_json::Value;

mod args;
mod filter;
mod hints;
mod reads;
mod requirements;
mod score;
mod sums;
mod terms;
#[cfg(test)]
mod tests;
mod whole_cause;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "InterPodAffinity";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Places pods near or away from other pods, as their affinity terms ask";
    let state = "The affinity terms that placed pods have";
    let of_node = "The affinity terms of placed pods that reach one node";
    Registration::new(NAME, summary, args::schema, |args| Ok(InterPodAffinity { args: args::read(args)? }))
        .with_weight(2)
        .with_endpoints([
            Endpoint::of::<InterPodAffinityState>("state", state, reads::read_state).with_rows("terms"),
            Endpoint::of::<InterPodAffinityOfNode>("nodes/:nodeName", of_node, reads::read_node)
                .with_rows("terms"),
        ])
}

struct InterPodAffinity {
    args: args::Args,
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, filter, pre_score, score, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(super::relations::Relations::default()), Box::new(terms::Terms::default())]
    }
}
