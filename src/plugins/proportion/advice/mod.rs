//! What people are told of pods and their queues: where a pod stands (`standing`), what would help (`proposals`, `moves`),
//! the read about a pod (`reading`), and metrics (`gauges`).

pub(super) mod gauges;
mod moves;
mod proposals;
pub(super) mod reading;
mod standing;

use pellucid_framework::View;
use pellucid_framework::advice::{Advice, Proposal};
use pellucid_model::{Now, Pod, PodSpec};
use serde_json::{Value, json};

use super::Proportion;
use super::queues::Queues;

impl Advice for Proportion {
    fn sentence(&self, view: View<'_>, spec: &PodSpec, _now: Now) -> Option<String> {
        self.keys.member(spec)?;
        view.state::<Queues>()?.sentence(view.cluster().gangs(), spec)
    }

    fn proposals(&self, view: View<'_>, spec: &PodSpec) -> Vec<Proposal> {
        if self.keys.member(spec).is_none() {
            return Vec::new();
        }
        view.state::<Queues>().map(|queues| queues.proposals(view, spec)).unwrap_or_default()
    }

    fn body(&self, view: View<'_>, pod: &Pod, _now: Now) -> Value {
        view.state::<Queues>().map_or(Value::Null, |queues| json!(queues.of_pod(view, pod)))
    }
}
