//! Proportion: kube-batch's Queues. Each queue gets a part of the cluster by weight, and no more than its capability.
//!
//! See README.md for the rules. `queues` is the state, `shares` says what each queue deserves (by `water_filling`),
//! `admission` judges a pod, `advice` tells people of it, and `explain` of a queue. Which pods form a gang, and that a PodGroup waits for its Queue to exist, is known to the
//! cluster and not decided here. A cluster without Queues is scheduled as if the plugin were not there.

use std::sync::Arc;

use pellucid_api::keys::kube_batch;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_framework::advice::{Grouping, PodGroups};
use pellucid_framework::plugin::{DeclaredKeys, Hint, Hints, Plugin, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Registration, View, points};
use pellucid_model::{Name, Pod, PodSpec};

mod admission;
mod advice;
mod amounts;
mod endpoints;
mod explain;
mod queues;
mod shares;

use admission::Lack;
use queues::{Keys, Queues};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "Proportion";

/// What the plugin reads of pods.
const KEYS: DeclaredKeys =
    DeclaredKeys { pod_wide_annotations: &[kube_batch::GROUP_NAME], ..DeclaredKeys::NONE };

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Keeps kube-batch's Queues within their parts of the cluster and their capabilities";
    Registration::without_args(NAME, summary, Proportion::default)
        .with_keys(KEYS)
        .with_reasons([&admission::OVERUSED, &admission::CAPABILITY])
        .with_endpoints(endpoints::all())
        .with_pod_read(advice::reading::POD_READ)
        .with_gauges(&advice::gauges::ALL)
        .with_groups(Grouping {
            name: "queue",
            filter: "Only pods of this Queue of kube-batch, by name; several with commas",
        })
}

#[derive(Default)]
struct Proportion {
    keys: Arc<Keys>,
}

impl Plugin for Proportion {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, hints, advice, pod_groups }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Queues::default())]
    }
}

impl Proportion {
    fn judge(&self, view: View<'_>, spec: &PodSpec) -> Option<Lack> {
        // Most pods concern no queue, and find that out without looking for the state.
        self.keys.member(spec)?;
        view.state::<Queues>()?.lack(view.cluster().gangs(), spec)
    }
}

impl PodGroups for Proportion {
    fn group(&self, view: View<'_>, spec: &PodSpec) -> Option<Name> {
        self.keys.member(spec)?;
        view.state::<Queues>().filter(|queues| queues.is_active())?.queue_of(spec).cloned()
    }
}

impl PreFilter for Proportion {
    /// Pods on any node count in their queue.
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        self.judge(view, spec).map_or(PreFiltered::Skip, |lack| PreFiltered::Refused(lack.cause()))
    }
}

impl Hints for Proportion {
    /// Changed Queues, PodGroups, nodes and requests show in the state once it is settled.
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE
            .with(EventKinds::POD_SCALE_DOWN)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::POD_GROUP)
            .with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        match event {
            ClusterEvent::PendingUpdated { old, .. } if old.spec != pod.spec => Hint::Queue,
            ClusterEvent::PendingUpdated { .. } => Hint::Skip,
            _ if self.judge(view, &pod.spec).is_none() => Hint::Queue,
            _ => Hint::Skip,
        }
    }
}
