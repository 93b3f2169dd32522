//! Dumps of a scheduler, and schedulers rebuilt from them.

use std::sync::Arc;

use pellucid::cycle::Scheduler;
use pellucid::diagnosis::dump::restore::{self, Rewind};
use pellucid::diagnosis::dump::{Dump, PastVerdict, Source};
use pellucid::framework::profile::Profile;
use pellucid::model::Now;
use pellucid::plugins::registry;
use proptest::prelude::*;

use super::cluster::SCHEDULER;
use super::driver::default_profile;

pub(crate) fn dump(scheduler: &mut Scheduler, now: Now, redact: bool) -> Dump {
    let configuration = serde_json::Value::Null;
    let snapshot = scheduler.publish(now);
    let made = Dump::of(&Source { snapshot: &snapshot, configuration: &configuration, redact });
    let bytes = made.to_json().expect("it is written");
    let again = Dump::of(&Source { snapshot: &snapshot, configuration: &configuration, redact });
    assert_eq!(bytes, again.to_json().expect("it is written"), "one snapshot, one document");
    Dump::from_json(&bytes).expect("it is read")
}

pub(crate) fn rebuilt(of: &Dump, rewind: &Rewind) -> Scheduler {
    rebuilt_as(of, default_profile(SCHEDULER), rewind)
}

/// Rebuilds a scheduler with another profile than the default one.
pub(crate) fn rebuilt_as(of: &Dump, profile: Profile, rewind: &Rewind) -> Scheduler {
    restore::restore(of, vec![profile], Arc::new(registry()), rewind).expect("it is restored")
}

pub(crate) fn state(of: &Dump) -> String {
    serde_json::to_string_pretty(&of.state).expect("it is written")
}

/// Repeats a decision; it must be the same.
pub(crate) fn decides_alike(of: &Dump, verdict: &PastVerdict, rewind: &Rewind) -> Result<(), TestCaseError> {
    decides_alike_on(rebuilt(of, rewind), of, verdict)
}

/// Repeats a decision on a scheduler that was rebuilt; it must be the same.
pub(crate) fn decides_alike_on(
    mut scheduler: Scheduler,
    of: &Dump,
    verdict: &PastVerdict,
) -> Result<(), TestCaseError> {
    let decided = restore::decide(&mut scheduler, of, &verdict.pod).map_err(TestCaseError::fail)?;
    prop_assert_eq!(&decided.decision_hash, &verdict.decision_hash, "{:?} and {:?}", decided, verdict);
    Ok(())
}
