//! The scheduler under test: the default profile, and a plugin that binds no pod before its claims have volumes, used
//! only while no plugin of the default profile does this.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pellucid::framework::plugin::{Plugin, PreBind, PreBound, Reserve};
use pellucid::framework::profile::{Enabled, Profile};
use pellucid::framework::{Cause, Code, CycleValue, Reason, View};
use pellucid::model::effect::VolumeWrite;
use pellucid::model::{NodeIdx, Pod};
use pellucid_api::reason::ReasonCode;

use crate::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
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
    if profile.pre_bind.is_empty() {
        let plugin: Arc<dyn Plugin> = Arc::new(Porter);
        let enabled = Enabled { plugin: plugin.clone(), weight: 0, index: profile.plugins.len() };
        profile.plugins.push(plugin);
        profile.reserve.push(enabled.clone());
        profile.pre_bind.push(enabled);
    }
    profile
}

struct Porter;

impl Plugin for Porter {
    fn name(&self) -> &'static str {
        "Porter"
    }
    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self)
    }
    fn pre_bind(&self) -> Option<&dyn PreBind> {
        Some(self)
    }
}

impl Reserve for Porter {
    fn reserve(&self, _: View<'_>, pod: &Pod, _: NodeIdx) -> Result<Option<CycleValue>, Cause> {
        let n_claims = pod.spec.volumes.claims.len();
        Ok((n_claims > 0).then(|| Arc::new(n_claims) as CycleValue))
    }
}

impl PreBind for Porter {
    fn pre_bind(&self, view: View<'_>, pod: &Pod, node: NodeIdx, held: Option<&CycleValue>) -> PreBound {
        assert_eq!(held.is_some(), !pod.spec.volumes.claims.is_empty(), "what Reserve holds is handed over");
        let (mut writes, mut waits) = (Vec::new(), false);
        for wanted in &pod.spec.volumes.claims {
            let Some(claim) = view.cluster().objects().claim(&pod.key.namespace, &wanted.claim) else {
                let reason = Reason::about(ReasonCode::PreBindFailed, "a claim is not there");
                return PreBound::Failed(Cause::new("Porter", Code::Unschedulable, reason));
            };
            if !claim.volume.is_empty() {
                continue;
            }
            waits = true;
            if claim.selected_node.as_ref() != Some(view.name(node)) {
                writes.push(VolumeWrite::SelectNode {
                    namespace: claim.namespace.clone(),
                    claim: claim.name.clone(),
                    resource_version: claim.resource_version.clone(),
                    node: view.name(node).clone(),
                });
            }
        }
        if waits { PreBound::Wait { writes, at_most: Duration::from_secs(20) } } else { PreBound::Ready }
    }
}
