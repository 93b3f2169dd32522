//! Rules of pods: which quota a pod may name, and that its label `preemptible` stays.

use pellucid_api::keys::elastic_quota as keys;

use super::Known;

/// The labels of a pod that rules read. Absent and empty are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodLabels<'a> {
    /// The quota that the pod names.
    pub quota: &'a str,
    /// The label `preemptible`.
    pub preemptible: &'a str,
}

/// Judges a pod that is created, or changed from `old`. Returns a sentence per problem. A label that does not change is not
/// judged again, so that a pod which slipped past the rules can still be changed and deleted.
pub fn judge(known: &Known<'_>, pod: &str, old: Option<PodLabels<'_>>, new: PodLabels<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let is_new = old.is_none_or(|old| old.quota != new.quota);
    let named = known.find(new.quota).filter(|quota| quota.is_parent && is_new);
    if let Some(quota) = named.filter(|_| !known.gates.support_parent_quota_submit_pod) {
        all.push(format!(
            "pod {pod}: label {} {:?}: quota {} has the label {} \"true\", so it takes no pods; name one of its children",
            keys::NAME, new.quota, quota.name, keys::IS_PARENT
        ));
    }
    if let Some(old) = old.filter(|old| old.preemptible != new.preemptible) {
        all.push(format!(
            "pod {pod}: label {} {:?}: it cannot change, and was {:?}",
            keys::PREEMPTIBLE,
            new.preemptible,
            old.preemptible
        ));
    }
    all
}
