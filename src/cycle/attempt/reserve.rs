//! Runs Reserve, for placements that are carried out and for those of trials alike.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{Cluster, Hold, Stage};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, Code, NumaAffinity, Reason, View};
use pellucid_model::effect::BindingMarks;
use pellucid_model::{NodeIdx, Pod, PodId};

use crate::attempt::overrides;

/// Runs Reserve of a profile for a placed pod, and attaches the plugins' holds to the pod. `affinity` is that of the pod
/// on the node before it was placed. Fails with the cause of the first plugin that refuses; what others hold by then
/// stays until the pod is released.
pub(crate) fn reserve(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, pod): (PodId, &Pod),
    node: NodeIdx,
    affinity: Option<NumaAffinity>,
) -> Result<(), Cause> {
    for enabled in &profile.reserve {
        let Some(plugin) = enabled.plugin.reserve() else { continue };
        let held = cluster.pod(id).map_or(&[][..], |record| &record.holds);
        if held.iter().any(|hold| hold.plugin == enabled.plugin.name()) {
            // Read back while a state is rebuilt.
            continue;
        }
        let chosen = match affinity {
            Some(affinity) => plugin.reserve_aligned(View::new(cluster), pod, node, affinity)?,
            None => plugin.reserve(View::new(cluster), pod, node)?,
        };
        let Some(chosen) = chosen else { continue };
        let plugin = enabled.plugin.name();
        let hold = Hold { plugin, what: chosen.what, marks: chosen.marks };
        if let Err((other, key)) = agrees(cluster, id, &hold) {
            let reason = Reason::about(ReasonCode::PluginsDisagree, &*format!("{other} {plugin}: {key}"));
            return Err(Cause::new(plugin, Code::Unschedulable, reason));
        }
        cluster.reserve(id, hold);
    }
    Ok(())
}

/// Places a nominated pod in a trial, with what its node would give it. If a plugin has nothing left for it, the pod
/// stands there without.
pub fn place_nominee(cluster: &mut Cluster, profile: &Profile, id: PodId, node: NodeIdx) {
    let Some(pod) = cluster.pod(id).map(|record| record.pod.clone()) else { return };
    let aligned = overrides::affinity(cluster, profile, &pod, node);
    cluster.place(id, node, Stage::Reserved);
    drop(aligned.and_then(|affinity| reserve(cluster, profile, (id, &pod), node, affinity)));
}

/// Checks that a hold marks the pod with nothing that another hold marks differently. Fails with the other plugin and
/// the key.
fn agrees(cluster: &Cluster, id: PodId, hold: &Hold) -> Result<(), (&'static str, Arc<str>)> {
    let Some(new) = &hold.marks else { return Ok(()) };
    for other in cluster.pod(id).map_or(&[][..], |record| &record.holds) {
        let Some(marks) = &other.marks else { continue };
        BindingMarks::clone(marks).add(new).map_err(|key| (other.plugin, key))?;
    }
    Ok(())
}

/// Returns all that the Binding of a pod adds to it.
pub fn marks_of(holds: &[Hold]) -> Option<Arc<BindingMarks>> {
    let mut marks = holds.iter().filter_map(|hold| hold.marks.as_ref());
    let first = marks.next()?.clone();
    Some(marks.fold(first, |mut all, marks| {
        // Reserve has refused holds that disagree.
        drop(Arc::make_mut(&mut all).add(marks));
        all
    }))
}
