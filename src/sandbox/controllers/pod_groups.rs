//! Protection of native PodGroups: a deleted one stays while pods use it.

use crate::api::Api;
use crate::kinds::groups;
use crate::kinds::pods::is_finished;

/// Removes the finalizer of the deleted PodGroups of a namespace that no unfinished pod uses. Returns whether none
/// remains.
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
        // It may be gone already.
        api.edit(&kind, &group.key, |group| {
            groups::unprotect(group);
            Ok(())
        });
    }
    is_done
}
