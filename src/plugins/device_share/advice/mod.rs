//! What people are told of pods and devices: where a pod stands (`standing`), which pods could move (`moves`), what it could
//! ask for instead (`requests`), what of a node's devices no pending pod can use (`idle`), and metrics (`gauges`).
//!
//! Proposals are guesses by devices alone; the core plans each before anybody is told.

pub(super) mod gauges;
mod idle;
mod moves;
mod requests;
mod standing;
#[cfg(test)]
mod tests;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::device_share::PodDevices;
use pellucid_framework::View;
use pellucid_framework::advice::{Advice, IdlePart, PodRead, Proposal};
use pellucid_model::{NodeIdx, Now, Pod, PodSpec};
use serde_json::{Value, json};

use super::DeviceShare;
use super::node_devices::NodeDevices;
use super::request::Request;

/// The read about a pod.
pub(super) const POD_READ: PodRead = PodRead {
    path: "devices",
    summary: "How many nodes have the devices that a pod requests, which is the best, and what each lacks",
    body: BodySchema::of::<PodDevices>(),
    rows: "/nodes",
};

impl Advice for DeviceShare {
    fn sentence(&self, view: View<'_>, spec: &PodSpec, _now: Now) -> Option<String> {
        self.standing_sentence(view, spec)
    }

    fn body(&self, view: View<'_>, pod: &Pod, _now: Now) -> Value {
        json!(self.of_pod(view, pod))
    }

    fn proposals_on(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<Proposal> {
        let (Ok(Some(request)), Some(devices)) = (Request::of(spec), view.state::<NodeDevices>()) else {
            return Vec::new();
        };
        let mut all = self.moves(view, &request, refused);
        all.extend(self.other_requests(devices, spec, refused));
        all.extend(self.looser_hints(devices, spec, refused));
        all
    }

    fn idle_parts(&self, view: View<'_>, node: NodeIdx, pending: &[&PodSpec]) -> Vec<IdlePart> {
        self.idle_devices(view, node, pending)
    }
}
