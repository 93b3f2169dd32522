//! PodTopologySpread: spreads pods that belong together evenly over domains, such as zones or nodes.
//!
//! Hard constraints refuse nodes in domains that would exceed the emptiest one by more than `maxSkew`; soft constraints
//! prefer nodes in emptier domains. The README beside this file has the formulas.

use pellucid_api::rest::relations::{PodTopologySpreadState, SpreadOfPod};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::Plugin;
use pellucid_framework::{Registration, points};
use serde_json::Value;

use super::relations::Relations;

mod args;
mod constraints;
mod domains;
mod filter;
mod hints;
mod reads;
mod requirements;
mod score;
#[cfg(test)]
mod tests;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "PodTopologySpread";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Spreads pods that belong together over zones, nodes or other domains";
    let all = "The spread constraints that pods have, and how their pods are spread";
    let of_pod = "The spread constraints of one pod, and the skew it would make in each domain";
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(PodTopologySpread { defaults: args::read(args)? })
    })
    .with_weight(2)
    .with_endpoints([
        Endpoint::of::<PodTopologySpreadState>("state", all, reads::read_state).with_rows("constraints"),
        Endpoint::of::<SpreadOfPod>("pods/:namespace/:name", of_pod, reads::read_pod).with_rows("domains"),
    ])
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
