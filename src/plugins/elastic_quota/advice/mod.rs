//! What people are told of pods and their quotas: where a pod stands (`standing`), what frees what it lacks (`freeing`), what
//! would help (`proposals`), and metrics (`gauges`).

mod freeing;
pub(super) mod gauges;
mod proposals;
mod raises;
mod standing;

use pellucid_framework::View;
use pellucid_framework::advice::{Advice, PodGroups, Proposal};
use pellucid_model::{Name, Now, Pod, PodSpec};
use serde_json::{Value, json};

use super::ElasticQuotaPlugin;
use super::quotas::Quotas;

impl Advice for ElasticQuotaPlugin {
    fn sentence(&self, view: View<'_>, spec: &PodSpec, now: Now) -> Option<String> {
        view.state::<Quotas>()?.sentence(&self.args, spec, now)
    }

    fn proposals(&self, view: View<'_>, spec: &PodSpec) -> Vec<Proposal> {
        view.state::<Quotas>().map(|quotas| quotas.proposals(&self.args, spec)).unwrap_or_default()
    }

    fn body(&self, view: View<'_>, pod: &Pod, now: Now) -> Value {
        view.state::<Quotas>().map_or(Value::Null, |quotas| json!(quotas.of_pod(&self.args, pod, now)))
    }
}

impl PodGroups for ElasticQuotaPlugin {
    fn group(&self, view: View<'_>, spec: &PodSpec) -> Option<Name> {
        let quotas = view.state::<Quotas>()?;
        Some(quotas.tree.get(quotas.quota_of(spec)).name.clone())
    }
}
