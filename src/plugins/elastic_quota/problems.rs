//! What is wrong with quotas. A quota with a problem still works as far as it can, and everything else goes on.
//!
//! Here: what cannot be read, which quota of two with one name does not count, and what follows for the tree. What
//! contradicts what is judged by `rules`, as the webhook judges it before an object is stored.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::elastic_quota::QuotaProblem;

use super::objects::position;
use super::quota::ElasticQuota;
use super::quotas::Quotas;
use super::rules::{self, Gates, Known};
use super::tree::built_in;

/// No rule about stored quotas asks for pods.
fn no_pods(_: &str) -> Vec<String> {
    Vec::new()
}

/// The widest rules: what the webhook allows by a gate is no problem, as the scheduler does not know the gates.
const GATES: Gates = Gates { enable_update_resource_key: true, support_parent_quota_submit_pod: true };

impl Quotas {
    /// Returns the problems of all quotas, by name and namespace.
    pub(super) fn problems(&self) -> Vec<QuotaProblem> {
        let known = self.known();
        self.objects.quotas().flat_map(|object| self.problems_of(&known, &object.quota)).collect()
    }

    /// Returns what the rules know of all quotas.
    pub(super) fn known(&self) -> Known<'_> {
        Known::new(self.objects.quotas().map(|object| &*object.quota), &no_pods, GATES)
    }

    /// Returns the problems of one object.
    pub(super) fn problems_of(&self, known: &Known<'_>, quota: &ElasticQuota) -> Vec<QuotaProblem> {
        let mut all = rules::unreadable(quota);
        all.iter_mut().for_each(|problem| problem.problem.push_str("; its default holds"));
        if let Some(shadowed) = self.shadowing(quota) {
            all.push(shadowed);
            return all;
        }
        let at = position(&self.tree, quota);
        let is_cut_off = at.is_some_and(|at| self.tree.get(at).cut_off.is_some());
        let field = rules::label(keys::PARENT);
        for mut problem in rules::standing(known, quota) {
            if is_cut_off && problem.field == field {
                problem
                    .problem
                    .push_str("; the quota has its min and gets nothing of what others leave over");
            }
            all.push(problem);
        }
        all
    }

    /// Two quotas of one name: the older one counts.
    fn shadowing(&self, quota: &ElasticQuota) -> Option<QuotaProblem> {
        if position(&self.tree, quota).is_some() {
            return None;
        }
        let is_known = built_in(quota, &self.args).is_none();
        let winner = self.tree.find(&quota.name).and_then(|at| self.tree.get(at).object.as_ref());
        let winner = winner.filter(|winner| is_known && winner.namespace != quota.namespace)?;
        let problem = format!(
            "names of quotas count across namespaces, and the one in namespace {} is older; this one does not count",
            winner.namespace
        );
        Some(rules::problem_of(quota, "metadata.name", quota.name.to_string(), problem))
    }
}
