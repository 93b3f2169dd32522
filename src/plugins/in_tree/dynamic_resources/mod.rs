//! DynamicResources: refuses pods that use resource claims.
//!
//! This scheduler does not allocate devices to ResourceClaims. A pod that lists some must not be placed as if it listed
//! none, so it is refused with its own reason. The plugin uses kube-scheduler's name so that existing configurations
//! load.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::volumes::{DynamicResourcesState, PodWithResourceClaims};
use pellucid_cluster::{ClusterEvent, EventKinds};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{Hint, Hints, Plugin, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Cause, Code, Reason, Registration, View, points};
use pellucid_model::{Pod, PodSpec};
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{MAX_ROWS, cut, pending};

mod args;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "DynamicResources";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Refuses pods that use resource claims, which this scheduler does not allocate";
    let about = "The waiting pods that are refused because they use resource claims";
    let state = Endpoint::of::<DynamicResourcesState>("state", about, read_state).with_rows("pods");
    Registration::new(NAME, summary, args::schema, |args| Ok(DynamicResources { args: args::read(args)? }))
        .with_endpoints([state])
}

struct DynamicResources {
    args: args::Args,
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.shown()
    }
    points! { pre_filter, hints }
}

impl PreFilter for DynamicResources {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, _view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if spec.resource_claims.is_empty() {
            return PreFiltered::Skip;
        }
        let names: Vec<&str> = spec.resource_claims.iter().map(|name| &**name).collect();
        let reason = Reason::about(ReasonCode::DynamicResourcesUnsupported, names.join(" ").as_str());
        PreFiltered::Refused(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason))
    }
}

impl Hints for DynamicResources {
    fn events(&self) -> EventKinds {
        EventKinds::POD_SELF
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, _event: &ClusterEvent) -> Hint {
        if pod.spec.resource_claims.is_empty() { Hint::Queue } else { Hint::Skip }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let users = pending(cx.view).filter(|record| !record.pod.spec.resource_claims.is_empty());
    let mut pods: Vec<_> = users
        .map(|record| PodWithResourceClaims {
            pod: record.pod.key.to_string(),
            resource_claims: record.pod.spec.resource_claims.iter().map(|n| n.to_string()).collect(),
        })
        .collect();
    pods.sort_by(|a, b| a.pod.cmp(&b.pod));
    let total_pods = pods.len();
    let (pods, truncated) = cut(pods, MAX_ROWS);
    Ok(json!(DynamicResourcesState { pods, total_pods, truncated }))
}
