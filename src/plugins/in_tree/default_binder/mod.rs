//! DefaultBinder: binds pods by creating their `binding` at the API server.
//!
//! The framework emits the bind effect; the plugin only accepts the pod.

use pellucid_api::rest::plugins::{BindingPod, DefaultBinderState};
use pellucid_cluster::Stage;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{Bind, Plugin};
use pellucid_framework::{Registration, points};
use pellucid_model::Pod;
use serde_json::{Value, json};

use pellucid_plugin_helper::listing::{MAX_ROWS, cut};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "DefaultBinder";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let about = "Pods on their way to a node";
    let state = Endpoint::of::<DefaultBinderState>("state", about, read_state).with_rows("pods");
    Registration::without_args(NAME, "Binds pods to their nodes at the API server", || DefaultBinder)
        .with_endpoints([state])
}

struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { bind }
}

impl Bind for DefaultBinder {
    fn binds(&self, _pod: &Pod) -> bool {
        true
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut state = DefaultBinderState::default();
    for (_, record) in cx.view.cluster().pods() {
        match record.stage {
            Stage::Permitted => state.permitted += 1,
            Stage::PreBinding => state.pre_binding += 1,
            Stage::Binding => state.binding += 1,
            Stage::Bound => {
                state.bound += 1;
                continue;
            }
            Stage::Pending | Stage::Reserved | Stage::Waiting => continue,
        }
        state.pods.push(BindingPod {
            pod: record.pod.key.to_string(),
            node_name: record.node.map(|n| cx.view.name(n).to_string()).unwrap_or_default(),
            stage: record.stage.as_str().to_owned(),
        });
    }
    state.pods.sort_by(|a, b| a.pod.cmp(&b.pod));
    (state.pods, state.truncated) = cut(std::mem::take(&mut state.pods), MAX_ROWS);
    Ok(json!(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_every_pod() {
        assert!(DefaultBinder.binds(&Pod::default()));
    }
}
