//! InterPodAffinity: places pods near pods they require and away from pods they must avoid, and enforces the
//! anti-affinity of pods already placed.
//!
//! "Near" means in the same domain: on nodes with the same value of a term's `topologyKey`. The README beside this file
//! states the rules.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::relations::{InterPodAffinityOfNode, InterPodAffinityState};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::{ArgsError, Plugin, PluginFactory};
use serde_json::Value;

mod args;
mod filter;
mod hints;
mod reads;
mod score;
mod sums;
mod terms;
#[cfg(test)]
mod tests;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "InterPodAffinity";

/// Creates the plugin; listed in [`crate::registry`].
pub struct Factory;

impl PluginFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Places pods near or away from other pods, as their affinity terms ask"
    }

    fn default_weight(&self) -> i64 {
        2
    }

    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        let args = args::read(args)?;
        Ok(Arc::new(InterPodAffinity { args }))
    }

    fn args_schema(&self) -> Value {
        args::schema()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![
            Endpoint::new(
                "state",
                "The affinity terms that placed pods have",
                BodySchema::of::<InterPodAffinityState>(),
                reads::read_state,
            )
            .with_rows("terms"),
            Endpoint::new(
                "nodes/:nodeName",
                "The affinity terms of placed pods that reach one node",
                BodySchema::of::<InterPodAffinityOfNode>(),
                reads::read_node,
            )
            .with_rows("terms"),
        ]
    }
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
