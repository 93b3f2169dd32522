//! REST bodies that several endpoints share: reasons, victims, preemptions, nominations.

use pellucid_api::rest::explain::ReasonBody;
use pellucid_api::rest::preemption::{NominationBody, PreemptionBody, VictimBody};
use pellucid_cluster::preemptions::{GangPart, Preemption, Victim, VictimState};
use pellucid_cluster::{Nomination, PodRecord};
use pellucid_model::Now;
use pellucid_model::cause::Reason;

/// Returns the body of a reason, with its entry in the registry.
pub fn reason(reason: &Reason) -> ReasonBody {
    let entry = reason.code.entry();
    ReasonBody {
        code: reason.code.as_str().into(),
        subject: reason.subject.as_ref().map(ToString::to_string),
        message: reason.message(),
        remedy: entry.remedy.into(),
        resolver: entry.resolver.as_str().into(),
    }
}

fn seconds(since: Now, now: Now) -> f64 {
    now.monotonic.saturating_sub(since.monotonic).as_secs_f64()
}

/// Returns the body of a victim.
pub fn victim(victim: &Victim, now: Now) -> VictimBody {
    VictimBody {
        namespace: victim.key.namespace.to_string(),
        name: victim.key.name.to_string(),
        object: victim.stands_for.as_ref().map(|of| of.to_string()),
        uid: victim.uid.to_string(),
        priority: victim.priority,
        violates_budget: victim.violates_budget,
        state: victim.state.as_str().into(),
        message: match &victim.state {
            VictimState::Refused(message) => Some(message.to_string()),
            _ => None,
        },
        since_seconds: seconds(victim.since, now),
        counted: victim.is_counted,
    }
}

/// Returns the body of a preemption.
pub fn preemption(preemption: &Preemption, now: Now) -> PreemptionBody {
    PreemptionBody {
        namespace: preemption.preemptor.namespace.to_string(),
        name: preemption.preemptor.name.to_string(),
        uid: preemption.uid.to_string(),
        priority: preemption.priority,
        node: preemption.node.to_string(),
        cycle: preemption.cycle,
        since_seconds: seconds(preemption.decided, now),
        victims: preemption.victims.iter().map(|v| victim(v, now)).collect(),
        waiting_for: preemption.waiting_for(),
        gangs: preemption.gang.as_ref().map(gangs).unwrap_or_default(),
        end: preemption.end.map(|(end, _)| end.as_str().into()),
    }
}

/// Returns the keys of the gangs that preempt as one.
pub fn gangs(part: &GangPart) -> Vec<String> {
    part.group.iter().map(ToString::to_string).collect()
}

/// Returns the body of a pod's nomination.
pub fn nomination(record: &PodRecord, nomination: &Nomination, now: Now) -> NominationBody {
    NominationBody {
        node: nomination.node.to_string(),
        namespace: record.pod.key.namespace.to_string(),
        name: record.pod.key.name.to_string(),
        priority: record.pod.priority,
        by: nomination.by.as_str().into(),
        since_seconds: seconds(nomination.since, now),
    }
}
