//! What people are told of pods and their queues: where a pod stands (`standing`), what would help (`proposals`, `moves`), and
//! metrics (`gauges`).

pub(super) mod gauges;
mod moves;
mod proposals;
mod standing;

use pellucid_framework::View;
use pellucid_framework::advice::{Advice, Proposal};
use pellucid_model::{Now, PodSpec};

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
}
