//! Preemption inside a quota: pods of lower priority go when one of higher priority does not fit the quota.
//!
//! Victims are pods of the same quota alone. They go only if the pod then fits quota and node, so that nobody is evicted
//! in vain; the search itself is the framework's. `reclaim` is asked where this finds nobody.

use pellucid_cluster::PodRecord;
use pellucid_framework::plugin::{Evaluator, PostFilter};
use pellucid_framework::post_filter::{PostFiltered, Preemptor};
use pellucid_framework::victim_search::{self, VictimRules};
use pellucid_framework::{Cause, VictimGuard, View};
use pellucid_model::NodeIdx;

use super::quotas::Quotas;
use super::tree::DEFAULT;
use super::{ElasticQuotaPlugin, reclaim};

impl PostFilter for ElasticQuotaPlugin {
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered {
        let found = victim_search::post_filter(self, evaluator);
        if !self.args.reclaims || matches!(found, PostFiltered::Nominate(_)) {
            return found;
        }
        reclaim::post_filter(self, evaluator).unwrap_or(found)
    }

    fn condition(&self, view: View<'_>, preemptor: &Preemptor<'_>, _node: NodeIdx) -> Result<(), Cause> {
        self.judge(view, &preemptor.pod.spec).map_or(Ok(()), Err)
    }

    fn evicts_lower_only(&self) -> bool {
        !self.args.reclaims
    }
}

impl VictimRules for ElasticQuotaPlugin {
    fn may_be_victim(&self, view: View<'_>, preemptor: &Preemptor<'_>, victim: &PodRecord) -> bool {
        let Some(quotas) = view.state::<Quotas>() else { return false };
        let quota = quotas.quota_of(&preemptor.pod.spec);
        victim.pod.priority < preemptor.below && quotas.quota_of(&victim.pod.spec) == quota
    }

    fn has_no_victims(&self, view: View<'_>, preemptor: &Preemptor<'_>) -> bool {
        let quota = view.state::<Quotas>().map(|quotas| quotas.quota_of(&preemptor.pod.spec));
        quota.is_none_or(|quota| quota == DEFAULT && self.args.spares_default)
    }
}

impl VictimGuard for ElasticQuotaPlugin {
    /// Pods that are not preemptible stay, whoever looks for victims.
    fn protects(&self, view: View<'_>, pod: &PodRecord) -> bool {
        view.state::<Quotas>().is_some_and(|quotas| quotas.is_fixed(&pod.pod.spec))
    }
}
