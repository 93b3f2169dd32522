//! How many members of a gang have places now and on emptied nodes, and what that makes of a member's feasibility.

use pellucid_api::rest::explain::Outlook;
use pellucid_api::rest::gang_explain::GangFeasibility;
use pellucid_api::rest::suggestions::{Feasibility, FeasibilityAlone, FeasibilityVerdict};
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Now, PodId};

use super::{member, outlook};
use crate::meta::of_snapshot;

/// Reports the feasibility of a gang's quorum. Fails when the gang is unknown.
pub(crate) fn of_gang(snapshot: &Snapshot, key: &GangKey, now: Now) -> Result<GangFeasibility, ReadError> {
    let gang = super::find(snapshot, key)?.gang;
    let mut found = GangFeasibility {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        min: gang.definition.min,
        counted: gang.counted(),
        wanted: gang.need(),
        ..GangFeasibility::default()
    };
    if let Some(look) = outlook::of_gang(snapshot, key, now) {
        found.slots_missing = look.slots_missing();
        (found.slots_now, found.slots_empty) = (look.slots_now, look.slots_empty);
        (found.remedy, found.resolver) = (look.remedy, look.resolver);
        found.outlook = Some(look.body);
    }
    Ok(found)
}

/// Makes the feasibility of a pod that of the pod with its gang, if it waits for the gang's quorum. What the pod alone
/// would do, which has this outlook `alone`, moves to `alone`.
pub(crate) fn with_gang(
    snapshot: &Snapshot,
    of: (PodId, &PodRecord),
    alone: Outlook,
    body: &mut Feasibility,
    now: Now,
) {
    let Some((own, _)) = member::outlook(snapshot, of, now) else {
        let own = member::beside_quorum(snapshot, of, alone, now);
        body.verdict = FeasibilityVerdict { code: own.code, message: own.message };
        return;
    };
    body.alone = Some(FeasibilityAlone {
        gang: of.1.pod.member_of().map(ToString::to_string).unwrap_or_default(),
        verdict: std::mem::take(&mut body.verdict),
        now: body.now,
        after_preemption: body.after_preemption,
        empty_cluster: body.empty_cluster,
    });
    let code = &*own.code;
    body.now = code == "FitsNow";
    body.after_preemption = code == "FitsAfterPreemption";
    body.empty_cluster = matches!(code, "FitsNow" | "FitsAfterPreemption" | "NotNow");
    // The largest request of one member says nothing of the others.
    body.largest_now = None;
    body.verdict = FeasibilityVerdict { code: own.code, message: own.message };
}
