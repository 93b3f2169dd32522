//! The scheduler under test, with the default profile.

use std::sync::LazyLock;

use pellucid::framework::profile::Profile;

use crate::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::nature::Nature;

/// Makes the scheduler of a run.
pub(crate) fn core(nature: &Nature) -> Core {
    // Parsed once: the profile is the same for all runs.
    static PROFILE: LazyLock<Profile> = LazyLock::new(|| default_profile(SCHEDULER));
    let mut settings = settings(PROFILE.clone());
    settings.limits = nature.limits;
    Core::new(settings)
}
