//! PodGroups that are going away: kept while pods use them, then let go.

use serde_json::Value;

use crate::api::{Api, Part};
use crate::groups;
use crate::kinds::pods::is_finished;
use crate::requests::options::Options;

/// Lets go of the PodGroups of a namespace that are deleted and that no pod uses. Returns whether none is left over.
pub(super) fn release(api: &Api, namespace: &str) -> bool {
    let Some(kind) = api.kind_of(groups::POD_GROUPS) else { return true };
    let groups = api.store.list(groups::POD_GROUPS, namespace).items;
    let mut is_done = true;
    for group in groups.iter().filter(|group| group.is_deleting) {
        let pods = api.store.list("pods", namespace).items;
        let living = pods.iter().filter(|pod| !is_finished(pod));
        if living.into_iter().any(|pod| groups::is_user(&pod.value(), &group.key.1)) {
            is_done = false;
            continue;
        }
        let let_go = |old: &Value| {
            let mut new = old.clone();
            groups::unprotect(&mut new);
            Ok(new)
        };
        // One that is gone already needs no release.
        let _ = api.update(&kind, &group.key, Part::Main, &Options::internal(), let_go);
    }
    is_done
}
