//! Coscheduling: places the pods of a gang together or not at all.
//!
//! Members of a gang are one unit in the queue. What scheduler-plugins and Koordinator do for single pods at PreFilter,
//! Permit and PostFilter, the cycle (`cycle::scheduler::gangs`) does for the gang as a whole in every profile that enables
//! this plugin at Permit. The plugin itself holds the arguments, can sort the queue, and exposes the state of gangs. The
//! README beside this file states the guarantees.

mod args;
mod endpoints;

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::rest::gangs::CoschedulingState;
use pellucid_cluster::{ClusterEvent, EventKinds};
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::gangs::GangRules;
use pellucid_framework::plugin::{Hint, Hints, Permit, Permitted, Plugin, PreEnqueue, QueueSort};
use pellucid_framework::{Cause, GangPolicy, Registration, View};
use pellucid_model::{NodeIdx, Object, Pod};
use serde_json::Value;

use self::args::Args;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "Coscheduling";

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Places the pods of a gang together or not at all";
    let state = Endpoint::of::<CoschedulingState>("state", "All gangs in numbers", endpoints::read_state);
    Registration::new(NAME, summary, args::schema, |args| Ok(Coscheduling { args: Args::read(args)? }))
        .with_endpoints([state])
}

struct Coscheduling {
    args: Args,
}

impl Plugin for Coscheduling {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.to_value()
    }
    points! { pre_enqueue, queue_sort, permit, gangs, hints }
}

impl GangPolicy for Coscheduling {
    fn rules(&self) -> GangRules {
        self.args.rules()
    }
}

impl PreEnqueue for Coscheduling {
    /// Accepts every pod: the queue holds gangs back as units, not pod by pod.
    fn pre_enqueue(&self, _pod: &Pod) -> Result<(), Cause> {
        Ok(())
    }
}

impl QueueSort for Coscheduling {
    /// Ranks by priority like PrioritySort; the queue itself keeps gangs together.
    fn rank(&self, pod: &Pod) -> i64 {
        i64::from(pod.priority)
    }

    fn only_when_named(&self) -> bool {
        true
    }
}

impl Permit for Coscheduling {
    /// Permits every pod: a pod that reaches Permit on its own belongs to no gang that lacks its quorum.
    fn permit(&self, _view: View<'_>, _pod: &Pod, _node: NodeIdx) -> Permitted {
        Permitted::Yes
    }
}

impl Hints for Coscheduling {
    fn events(&self) -> EventKinds {
        EventKinds::POD_GROUP
    }

    fn hint(&self, _view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let group = match event {
            ClusterEvent::ObjectChanged { old, new } => new.as_ref().or(old.as_ref()),
            _ => None,
        };
        match group.map(Arc::as_ref) {
            Some(Object::PodGroup(group)) if pod.gang.as_ref().is_some_and(|m| m.gang == group.key) => {
                Hint::Queue
            }
            _ => Hint::Skip,
        }
    }
}
