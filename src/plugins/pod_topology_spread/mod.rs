//! PodTopologySpread: spreads pods that belong together evenly over domains, such as zones or nodes.
//!
//! Hard constraints refuse nodes in domains that would exceed the emptiest one by more than `maxSkew`; soft constraints
//! prefer nodes in emptier domains. The README beside this file has the formulas.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::relations::{PodTopologySpreadState, SpreadOfPod};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::{ArgsError, Plugin, PluginFactory};
use serde_json::Value;

use super::relations::Relations;

mod args;
mod constraints;
mod domains;
mod filter;
mod hints;
mod reads;
mod score;
#[cfg(test)]
mod tests;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "PodTopologySpread";

/// Creates the plugin; listed in [`crate::registry`].
pub struct Factory;

impl PluginFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Spreads pods that belong together over zones, nodes or other domains"
    }

    fn default_weight(&self) -> i64 {
        2
    }

    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        let defaults = args::read(args)?;
        Ok(Arc::new(PodTopologySpread { defaults }))
    }

    fn args_schema(&self) -> Value {
        args::schema()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![
            Endpoint::new(
                "state",
                "The spread constraints that pods have, and how their pods are spread",
                BodySchema::of::<PodTopologySpreadState>(),
                reads::read_state,
            )
            .with_rows("constraints"),
            Endpoint::new(
                "pods/:namespace/:name",
                "The spread constraints of one pod, and the skew it would make in each domain",
                BodySchema::of::<SpreadOfPod>(),
                reads::read_pod,
            )
            .with_rows("domains"),
        ]
    }
}

struct PodTopologySpread {
    /// Constraints for pods without constraints of their own.
    defaults: args::Defaults,
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.defaults.show()
    }
    points! { pre_filter, filter, pre_score, score, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Relations::default())]
    }
}
