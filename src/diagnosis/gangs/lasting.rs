//! What would help the member that stands for a gang's failure on emptied nodes.
//!
//! As of a single pod, it is what the nodes nearest to taking the member fail. They are asked where the other members have
//! their places, since those may be what keeps it off.

use pellucid_cycle::what_if::edit::Edit;
use pellucid_recording::gang_verdict::GangRefusal;

use super::outlook::{Lasting, Look};
use crate::remedies::remedies;
use crate::requirements::ask_on;
use crate::requirements::nearest::nearest_of;

/// Returns what would help that member, and who can do that. No end of a pod does. Returns `None` if the member has a place
/// beside those of the others, as it has when another one is placed without one.
pub(super) fn of_member_refused(look: &Look<'_>, lasting: &Lasting) -> Option<(String, String)> {
    let (pod, _) = lasting.refusal.root_cause.as_ref()?;
    let mut simulation = look.emptied(&lasting.kept, lasting.releases_waiting);
    for edit in with_places(look, &lasting.refusal) {
        simulation.edit(&edit).ok()?;
    }
    let simulation = look.plan(simulation, true);
    let cluster = simulation.scheduler().cluster();
    let id = cluster.find_pod(pod)?;
    cluster.pod(id).filter(|record| record.node.is_none())?;
    let asked = ask_on(look.snapshot, cluster.fork(), id)?;
    let reasons = match &asked.masks.pod {
        Some(cause) => cause.reasons.to_vec(),
        None => nearest_of(&asked, false, look.now)?.group.cause.reasons.to_vec(),
    };
    let (remedies, resolver) = remedies(reasons.iter().map(|reason| (reason.code, true)))?;
    Some((remedies.join(" "), resolver.as_str().into()))
}

/// Returns the edits with which the members have places that had some in the plan: of each gang that lacks places, the
/// quorum that it could have.
fn with_places(look: &Look<'_>, refusal: &GangRefusal) -> Vec<Edit> {
    let gangs = look.snapshot.cluster.gangs();
    let lacking = refusal.shares.iter().filter(|share| share.placeable < share.wanted);
    let quorum = |gang: &_| gangs.get(gang).map_or(0, |gang| gang.counted());
    let lowered = lacking.map(|of| (of, quorum(&of.gang) + of.placeable)).filter(|(_, min)| *min > 0);
    lowered.map(|(of, min)| Edit::SetQuorum { gang: of.gang.clone(), min }).collect()
}
