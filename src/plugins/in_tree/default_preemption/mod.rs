//! DefaultPreemption: when no node fits, finds pods of lower priority whose eviction would make a node fit.
//!
//! The plugin has the arguments and says who may be a victim; `framework::victim_search` searches. The cycle
//! (`cycle::scheduler::preempt`) evicts victims, waits and nominates; outcomes are recorded in `cluster::preemptions`.

use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds, PodRecord};
use pellucid_framework::plugin::{ArgsError, Evaluator, Hint, Hints, Plugin, PostFilter};
use pellucid_framework::post_filter::{PostFiltered, Preemptor};
use pellucid_framework::victim_search::{self, VictimRules};
use pellucid_framework::{Registration, View, points};
use pellucid_model::Pod;
use serde_json::{Value, json};

mod priorities;
mod views;

#[cfg(test)]
mod tests;

pub use priorities::Priorities;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "DefaultPreemption";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Finds pods of lower priority to evict when no node fits";
    Registration::new(NAME, summary, args_schema, |args| Ok(DefaultPreemption { args: Args::read(args)? }))
        .with_endpoints(views::endpoints())
}

fn args_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "minCandidateNodesPercentage": {"type": "integer", "minimum": 0, "maximum": 100, "default": 10},
            "minCandidateNodesAbsolute": {"type": "integer", "minimum": 0, "default": 100},
        },
    })
}

/// Arguments (`DefaultPreemptionArgs`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    percentage: usize,
    absolute: usize,
}

impl Args {
    fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = super::args::Problems::default();
        let fields = ["minCandidateNodesPercentage", "minCandidateNodesAbsolute"];
        let object = problems.object("", args, &fields);
        let mut number = |field: &str, default: i64, most: i64| {
            let value = object.and_then(|o| o.get(field)).filter(|v| !v.is_null());
            let read = value.map_or(Some(default), Value::as_i64).filter(|n| (0..=most).contains(n));
            if read.is_none() {
                let wanted = format!("must be an integer from 0 to {most}");
                problems.add(field, &wanted, value.unwrap_or(&Value::Null));
            }
            read.unwrap_or(default) as usize
        };
        let percentage = number(fields[0], 10, 100);
        let absolute = number(fields[1], 100, i64::from(i32::MAX));
        if percentage == 0 && absolute == 0 {
            problems.add(fields[0], "may not be 0 together with minCandidateNodesAbsolute", &json!(0));
        }
        problems.into_result()?;
        Ok(Self { percentage, absolute })
    }

    /// Returns how many candidates are enough, given the number of potential nodes.
    fn wanted(self, potential: usize) -> usize {
        (potential * self.percentage / 100).max(self.absolute).min(potential)
    }
}

struct DefaultPreemption {
    args: Args,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        json!({
            "minCandidateNodesPercentage": self.args.percentage,
            "minCandidateNodesAbsolute": self.args.absolute,
        })
    }
    points! { post_filter, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Priorities::default())]
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered {
        victim_search::post_filter(self, evaluator)
    }

    fn evicts_lower_only(&self) -> bool {
        true
    }
}

impl VictimRules for DefaultPreemption {
    fn may_be_victim(&self, _view: View<'_>, preemptor: &Preemptor<'_>, victim: &PodRecord) -> bool {
        victim.pod.priority < preemptor.below
    }

    fn has_no_victims(&self, view: View<'_>, preemptor: &Preemptor<'_>) -> bool {
        priorities::lowest(view).is_none_or(|lowest| lowest >= preemptor.below)
    }

    fn wanted(&self, potential: usize) -> usize {
        self.args.wanted(potential)
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl Hints for DefaultPreemption {
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE
    }

    /// Always skips: the plugins that refused nodes judge the deletion of a pod.
    fn hint(&self, _view: View<'_>, _pod: &Pod, _event: &ClusterEvent) -> Hint {
        Hint::Skip
    }
}
