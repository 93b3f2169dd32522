//! What is wrong with quotas. A quota with a problem still works as far as it can, and everything else goes on.
//!
//! Here: what cannot be read, and what the tree found. What the admission rules say of an object that slipped past them
//! belongs to `rules`.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::elastic_quota::QuotaProblem;

use super::objects::position;
use super::quota::{Amounts, ElasticQuota, resource_list};
use super::quotas::Quotas;
use super::tree::{CutOff, built_in};

impl Quotas {
    /// Returns the problems of all quotas, by name and namespace.
    pub(super) fn problems(&self) -> Vec<QuotaProblem> {
        self.objects.quotas().flat_map(|object| self.problems_of(&object.quota)).collect()
    }

    /// Returns the problems of one object.
    pub(super) fn problems_of(&self, quota: &ElasticQuota) -> Vec<QuotaProblem> {
        let mut all: Vec<QuotaProblem> = quota
            .problems
            .iter()
            .map(|error| {
                of(quota, &error.field, error.value.clone(), format!("{}; its default holds", error.problem))
            })
            .collect();
        all.extend(self.shadowing(quota));
        all.extend(self.cut_off(quota));
        all.extend(amounts(quota));
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
        Some(of(quota, "metadata.name", quota.name.to_string(), problem))
    }

    fn cut_off(&self, quota: &ElasticQuota) -> Option<QuotaProblem> {
        let why = self.tree.get(position(&self.tree, quota)?).cut_off?;
        let parent = quota.parent.as_ref()?.to_string();
        let what = match why {
            CutOff::UnknownParent => format!("there is no quota {parent} that may be a parent"),
            CutOff::Circle => "the parents of the quota lead back to it".to_owned(),
        };
        let problem = format!("{what}; the quota has its min and gets nothing of what others leave over");
        Some(of(quota, &format!("metadata.labels.{}", keys::PARENT), parent, problem))
    }
}

/// Returns what is wrong with min and max.
fn amounts(quota: &ElasticQuota) -> Vec<QuotaProblem> {
    let mut all = Vec::new();
    for (field, list) in [("spec.min", &quota.min), ("spec.max", &quota.max)] {
        for (name, _) in list.iter().filter(|(_, amount)| **amount < 0) {
            all.push(of(
                quota,
                &format!("{field}.{name}"),
                text(list, name),
                "it is negative, and counts as 0".into(),
            ));
        }
    }
    for (name, min) in &quota.min {
        let field = format!("spec.min.{name}");
        match quota.max.get(name) {
            None => {
                let problem = "max does not have the resource, so the quota does not count it";
                all.push(of(quota, &field, text(&quota.min, name), problem.into()));
            }
            Some(max) if max < min => {
                let problem = format!("it is above max ({}), which limits requests", text(&quota.max, name));
                all.push(of(quota, &field, text(&quota.min, name), problem));
            }
            Some(_) => {}
        }
    }
    all
}

fn text(list: &Amounts, name: &str) -> String {
    resource_list(list)[name].as_str().unwrap_or_default().to_owned()
}

fn of(quota: &ElasticQuota, field: &str, value: String, problem: String) -> QuotaProblem {
    QuotaProblem {
        quota: quota.name.to_string(),
        namespace: quota.namespace.to_string(),
        field: field.to_owned(),
        value,
        problem,
    }
}
