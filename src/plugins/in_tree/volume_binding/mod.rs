//! VolumeBinding: finds nodes where a pod's claims can be satisfied, and binds the claims before the pod is bound.
//!
//! PreFilter classifies the claims, Filter looks for volumes on each node, Reserve holds what was found, and PreBind
//! orders the writes and waits. README.md describes the whole procedure.

use pellucid_framework::points;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::volumes::{VolumeBindingState, VolumeBindingVolumes};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::Endpoint;
use pellucid_framework::plugin::{
    CycleValue, Filter, Nodes, Plugin, PreBind, PreBound, PreFilter, PreFiltered, Reads, Reservation, Reserve,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::{NodeIdx, Now, Pod, PodSpec};
use serde_json::Value;

mod args;
mod assumed;
mod candidates;
mod endpoints;
mod find;
mod hints;
mod pod_claims;
mod progress;
mod requirements;
mod writes;

pub use assumed::{Assumed, Held, HeldBinding, HeldProvision};
use find::Conflicts;
use pod_claims::PodClaims;
use progress::Progress;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "VolumeBinding";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Places pods where their claims can be had, and has them bound before the pod";
    let held = "What is held for pods whose volumes are being bound, and how far that is";
    let volumes = "The PersistentVolumes, with the claims they are bound to or held for";
    Registration::new(NAME, summary, args::schema, |args| Ok(VolumeBinding { args: args::Args::read(args)? }))
        .with_endpoints([
            Endpoint::of::<VolumeBindingState>("state", held, endpoints::read_state).with_rows("held"),
            Endpoint::of::<VolumeBindingVolumes>("volumes", volumes, endpoints::read_volumes)
                .with_rows("volumes"),
        ])
}

struct VolumeBinding {
    args: args::Args,
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { pre_filter, filter, reserve, pre_bind, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Assumed::default())]
    }
}

fn refused(reason: Reason) -> Cause {
    Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason)
}

impl PreFilter for VolumeBinding {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if spec.volumes.claims.is_empty() {
            return PreFiltered::Skip;
        }
        match pod_claims::classify_claims(view, spec) {
            Ok(claims) => PreFiltered::Ready { value: Arc::new(claims), nodes: None },
            Err(reason) => PreFiltered::Refused(refused(reason)),
        }
    }
}

impl Filter for VolumeBinding {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(claims) = value.downcast_ref::<PodClaims>() else { return };
        let mut known = [None; Conflicts::SETS];
        nodes.refuse_with(|causes, n| {
            let Some(node) = view.cluster().node(n) else { return CauseId::FEASIBLE };
            match find::find(claims, node) {
                Ok(_) => CauseId::FEASIBLE,
                Err(conflicts) => {
                    *known[conflicts.index()].get_or_insert_with(|| causes.id(conflicts.cause()))
                }
            }
        });
    }

    /// Each claim is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        _spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let claims = value.downcast_ref::<PodClaims>()?;
        Some(Box::new(move |node, reasons| {
            let Some(node) = view.cluster().node(node) else { return };
            let conflicts = find::every_conflict(claims, node).into_iter();
            reasons
                .extend(conflicts.map(|(code, claim)| NodeReason::fixed(Reason::about(code, claim.clone()))));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }
}

impl Reserve for VolumeBinding {
    fn may_hold(&self, _view: View<'_>, spec: &PodSpec) -> bool {
        !spec.volumes.claims.is_empty()
    }

    fn reserve(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Result<Option<Reservation>, Cause> {
        if pod.spec.volumes.claims.is_empty() {
            return Ok(None);
        }
        let claims = pod_claims::classify_claims(view, &pod.spec).map_err(refused)?;
        let Some(node) = view.cluster().node(node) else { return Ok(None) };
        let found = find::find(&claims, node).map_err(Conflicts::cause)?;
        let held = found.held(&pod.spec.namespace, &node.name);
        Ok(held.map(|held| Reservation::unmarked(Arc::new(held))))
    }
}

impl PreBind for VolumeBinding {
    fn pre_bind(&self, view: View<'_>, _pod: &Pod, node: NodeIdx, held: Option<&CycleValue>) -> PreBound {
        // Nothing is held because all claims were bound at the decision.
        let Some(held) = held.and_then(|held| held.downcast_ref::<Held>()) else { return PreBound::Ready };
        let node = view.cluster().node(node).map(|node| &**node);
        let (mut writes, mut is_done) = (Vec::new(), true);
        for (_, progress) in progress::of(view, node, held) {
            match progress {
                Progress::Done => {}
                Progress::Wait => is_done = false,
                Progress::Write(write) => {
                    is_done = false;
                    writes.push(write);
                }
                Progress::Failed(why) => {
                    let reason = Reason::about(ReasonCode::VolumeBindingFailed, why.as_str());
                    return PreBound::Failed(Cause::new(NAME, Code::Unschedulable, reason));
                }
            }
        }
        if is_done { PreBound::Ready } else { PreBound::Wait { writes, at_most: self.args.bind_timeout } }
    }
}
