//! Decides whether an attempt failed for the same reasons as the one before.
//!
//! It did when the same plugins refused with the same codes about the same resources, labels or gates; node counts and
//! amounts may differ. The text of a gang's reason contains numbers, so of these reasons only the codes are compared.

use pellucid_api::reason::ReasonCode;
use pellucid_framework::Cause;
use smallvec::SmallVec;

use super::entry::FlightEvent;
use crate::gang_verdict::PLUGIN as GANGS;
use crate::{GangOutcome, Refusal};

/// Returns whether two successive events share one entry.
pub(super) fn is_same(before: &FlightEvent, now: &FlightEvent) -> bool {
    match (before, now) {
        (FlightEvent::Gated(a), FlightEvent::Gated(b))
        | (FlightEvent::Refused(a), FlightEvent::Refused(b)) => {
            std::sync::Arc::ptr_eq(a, b) || reasons(a) == reasons(b)
        }
        (FlightEvent::Gang(a), FlightEvent::Gang(b)) => match (&a.outcome, &b.outcome) {
            (GangOutcome::Refused(a), GangOutcome::Refused(b)) => a.code == b.code,
            (GangOutcome::Waiting { refusal: a, .. }, GangOutcome::Waiting { refusal: b, .. }) => {
                a.code == b.code
            }
            _ => false,
        },
        _ => false,
    }
}

type ReasonKey<'a> = (&'static str, ReasonCode, &'a str);

fn reasons(refusal: &Refusal) -> SmallVec<[ReasonKey<'_>; 8]> {
    fn of(cause: &Cause) -> impl Iterator<Item = ReasonKey<'_>> {
        let is_gang = cause.plugin == GANGS;
        cause.reasons.iter().map(move |reason| {
            let subject = reason.subject.as_deref().filter(|_| !is_gang).unwrap_or("");
            (cause.plugin, reason.code, subject)
        })
    }
    let causes = refusal.pod_cause.iter().chain(refusal.groups.iter().map(|g| &g.cause));
    let mut all: SmallVec<[ReasonKey<'_>; 8]> = causes.flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}
