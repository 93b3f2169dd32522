//! ElasticQuota: pods of a quota use no more than the quota's fair share of the cluster.
//!
//! See README.md for the rules. `quota` and `profile` read the objects, `objects` keeps them, `tree` joins the quotas,
//! `accounting` counts pods in them, `shares` distributes what there is (by `water_filling`), and `quotas` is the state
//! that holds all of it. `admission` judges a pod, `advice` tells people of it, `preemption` finds victims inside a
//! quota. `rules` says what may be written, for the webhook and of objects that are stored.

use std::sync::Arc;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_framework::advice::Grouping;
use pellucid_framework::plugin::{DeclaredKeys, Hint, Hints, Plugin, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Cause, Registration, View, points};
use pellucid_model::custom::CustomKind;
use pellucid_model::{Pod, PodSpec};
use serde_json::Value;

mod accounting;
mod admission;
mod advice;
mod args;
mod endpoints;
mod explain;
mod objects;
mod overuse;
mod preemption;
mod problems;
pub mod profile;
pub mod quota;
mod quotas;
mod reclaim;
pub mod rules;
mod shares;
mod tree;
#[cfg(test)]
mod tree_tests;
mod writes;

pub use profile::ElasticQuotaProfile;
pub use quota::ElasticQuota;

use args::QuotaArgs;
use quotas::Quotas;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "ElasticQuota";

/// What the plugin reads of pods.
const KEYS: DeclaredKeys =
    DeclaredKeys { pod_wide_labels: &[keys::NAME, keys::PREEMPTIBLE], ..DeclaredKeys::NONE };

/// ElasticQuotas.
pub static ELASTIC_QUOTA: CustomKind = CustomKind {
    group: "scheduling.sigs.k8s.io",
    version: "v1alpha1",
    kind: "ElasticQuota",
    plural: "elasticquotas",
    qualified: "ElasticQuota.scheduling.sigs.k8s.io",
    is_namespaced: true,
    is_required: false,
    is_decisive: true,
    verbs: &["get", "patch", "status/patch"],
    pod: None,
    decode: |manifest| Ok(Arc::new(ElasticQuota::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, ElasticQuota::manifest),
};

/// ElasticQuotaProfiles.
pub static ELASTIC_QUOTA_PROFILE: CustomKind = CustomKind {
    group: "quota.koordinator.sh",
    version: "v1alpha1",
    kind: "ElasticQuotaProfile",
    plural: "elasticquotaprofiles",
    qualified: "ElasticQuotaProfile.quota.koordinator.sh",
    is_namespaced: true,
    is_required: false,
    is_decisive: true,
    verbs: &[],
    pod: None,
    decode: |manifest| Ok(Arc::new(ElasticQuotaProfile::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, ElasticQuotaProfile::manifest),
};

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Keeps the pods of a quota within its fair share of the cluster";
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(ElasticQuotaPlugin { args: Arc::new(QuotaArgs::read(args)?) })
    })
    .off_by_default()
    .with_keys(KEYS)
    .with_kinds([&ELASTIC_QUOTA, &ELASTIC_QUOTA_PROFILE])
    .with_reasons([&admission::INSUFFICIENT, &admission::INSUFFICIENT_FIXED])
    .with_endpoints(endpoints::all())
    .with_pod_read(endpoints::POD_READ)
    .with_gauges(&advice::gauges::ALL)
    .with_groups(Grouping {
        name: "quota",
        filter: "Only pods of this ElasticQuota, by name; several with commas",
    })
}

/// The plugin, as a profile uses it.
struct ElasticQuotaPlugin {
    args: Arc<QuotaArgs>,
}

impl Plugin for ElasticQuotaPlugin {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, post_filter, hints, victim_guard, advice, pod_groups }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Quotas::new(self.args.clone()))]
    }
}

impl ElasticQuotaPlugin {
    /// Returns why one more pod with this spec does not fit its quota, `None` when it does.
    fn judge(&self, view: View<'_>, spec: &PodSpec) -> Option<Cause> {
        let quotas = view.state::<Quotas>()?;
        let lack = quotas.lack(&self.args, spec)?;
        Some(quotas.refusal(&self.args, spec, lack, quotas))
    }
}

impl PreFilter for ElasticQuotaPlugin {
    /// Pods on any node use the quota.
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        self.judge(view, spec).map_or(PreFiltered::Skip, PreFiltered::Refused)
    }

    fn counts_nominees(&self) -> bool {
        true
    }

    fn beside_nominees(&self, view: View<'_>, spec: &PodSpec, nominees: &[&Pod]) -> Option<Cause> {
        view.state::<Quotas>()?.refusal_beside(&self.args, spec, nominees)
    }
}

impl Hints for ElasticQuotaPlugin {
    /// Changed objects and nodes show in the state once it is settled.
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE
            .with(EventKinds::POD_SCALE_DOWN)
            .with(EventKinds::POD_LABEL)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        match event {
            ClusterEvent::PendingUpdated { old, .. } if old.spec != pod.spec => Hint::Queue,
            ClusterEvent::PendingUpdated { .. } => Hint::Skip,
            _ if view.state::<Quotas>().is_none_or(|q| q.lack(&self.args, &pod.spec).is_none()) => {
                Hint::Queue
            }
            _ => Hint::Skip,
        }
    }
}
