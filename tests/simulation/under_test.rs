//! The scheduler under test: the default profile, and a plugin that writes objects.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pellucid::framework::profile::Profile;
use pellucid::model::Pod;

use crate::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::common::herald::{Herald, enable};
use crate::nature::Nature;

/// Makes the scheduler of a run.
pub(crate) fn core(nature: &Nature) -> Core {
    // Parsed once: the profile is the same for all runs.
    static PROFILE: LazyLock<Profile> = LazyLock::new(profile);
    let mut settings = settings(PROFILE.clone());
    settings.limits = nature.limits;
    Core::new(settings)
}

fn profile() -> Profile {
    let mut profile = default_profile(SCHEDULER);
    let (pause, patience) = (Duration::from_millis(300), Duration::from_secs(5));
    enable(&mut profile, Arc::new(Herald { fits: |pod: &Pod| has_notice(&pod.uid), pause, patience }));
    profile
}

/// Returns whether the pod with this uid waits at Permit and has a notice before it is bound.
pub(crate) fn has_notice(uid: &str) -> bool {
    uid.ends_with(['0', '4', '8'])
}
