//! Explains a quota: how its runtime comes about, round by round, who borrows from whom, and who would be evicted.

use std::collections::BTreeMap;

use pellucid_api::rest::elastic_quota::{
    MinScaling, QuotaClaim, QuotaExplanation, QuotaLimit, QuotaOveruse, QuotaShare,
};
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::Now;
use pellucid_model::quantity::format_amount;
use serde_json::{Value, json};

use super::endpoints::{not_found, state};
use super::overuse::Revocable;
use super::quotas::Quotas;
use super::tree::{Cell, DEFAULT, QuotaIdx, ROOT, Role, SYSTEM, clamp};
use pellucid_plugin_helper::loans::Loans;
use pellucid_plugin_helper::water_filling::Claim;

/// Answers `explain/quotas/:name`.
pub(super) fn read(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let quotas = state(cx)?;
    let name = cx.params.get("name").map_or("", String::as_str);
    let at = quotas.named(name).ok_or_else(|| not_found(name))?;
    Ok(json!(quotas.explain(at, cx.now)))
}

impl Quotas {
    fn explain(&self, at: QuotaIdx, now: Now) -> QuotaExplanation {
        let quota = self.tree.get(at);
        let mut path: Vec<String> =
            self.tree.upwards(at).map(|up| self.tree.get(up).name.to_string()).collect();
        path.reverse();
        let parent = quota.parent.filter(|_| quota.role == Role::Ordinary);
        let shares: Vec<QuotaShare> = parent.map_or_else(Vec::new, |parent| {
            self.tree.shared_resources(parent).map(|r| self.share(at, parent, r)).collect()
        });
        let problems = quota.object.as_ref().map(|object| self.problems_of(&self.known(), object));
        let problems = problems.unwrap_or_default();
        QuotaExplanation {
            name: quota.name.to_string(),
            tree: quota.tree.to_string(),
            path,
            sentences: match quota.role {
                Role::Ordinary => shares.iter().map(|share| sentence(&quota.name, share)).collect(),
                Role::Root => self.sentences_of_root(at),
                Role::BuiltIn => self.sentences_of_built_in(at),
            },
            resources: shares,
            overuse: self.explain_overuse(at, now),
            problems,
        }
    }

    /// Says of a root what it has to share out, by resource.
    fn sentences_of_root(&self, at: QuotaIdx) -> Vec<String> {
        let quota = self.tree.get(at);
        let of = |r: usize| {
            let (cell, resource) = (&quota.cells[r], &self.tree.resources[r]);
            let text = |amount: i64| format_amount(resource, amount);
            let (used, request) = (text(clamp(cell.all.used)), text(clamp(cell.all.request)));
            let mut said = format!(
                "{resource}: {} has {} to share out, its children request {request} and use {used}",
                quota.name,
                text(cell.runtime)
            );
            let built_ins = [SYSTEM, DEFAULT].into_iter().filter(|_| at == ROOT).map(|at| self.tree.get(at));
            for built_in in built_ins.filter(|of| of.cells[r].all.used > 0) {
                let used = text(clamp(built_in.cells[r].all.used));
                said.push_str(&format!("; pods of {} use {used} beside that", built_in.name));
            }
            said
        };
        self.tree.shared_resources(at).map(of).collect()
    }

    /// Says of the system quota or the default quota what it uses, by resource.
    fn sentences_of_built_in(&self, at: QuotaIdx) -> Vec<String> {
        let quota = self.tree.get(at);
        let of = |(r, cell): (usize, &Cell)| {
            let (resource, max) = (&self.tree.resources[r], cell.max?);
            let text = |amount: i64| format_amount(resource, amount);
            let (used, request) = (text(clamp(cell.all.used)), text(clamp(cell.all.request)));
            Some(format!(
                "{resource}: {} uses {used} of its max {}, requests {request}; what it uses is taken off what the others \
                 share",
                quota.name,
                text(max)
            ))
        };
        quota.cells.iter().enumerate().filter_map(of).collect()
    }

    fn share(&self, at: QuotaIdx, parent: QuotaIdx, r: usize) -> QuotaShare {
        let (quota, above, resource) = (self.tree.get(at), self.tree.get(parent), &self.tree.resources[r]);
        let (cell, lends) = (&quota.cells[r], self.tree.lends(quota));
        let text = |amount: i64| format_amount(resource, amount);
        let (claims, rounds) = self.tree.rounds(parent, r);
        let name = |i: usize| self.tree.get(above.children[i]).name.to_string();
        let own = above.children.iter().position(|child| *child == at).unwrap_or(0);
        let loans = self.loans(parent, r);
        let scaling = self.tree.scaling(parent, r, self.args.scales_min);
        let named = |parts: Vec<(Option<usize>, i64)>| -> BTreeMap<String, String> {
            parts.into_iter().map(|(i, amount)| (i.map_or_else(String::new, name), text(amount))).collect()
        };
        let claim = |(i, claim): (usize, &Claim)| QuotaClaim {
            quota: name(i),
            request: text(claim.request),
            guaranteed: text(claim.guaranteed),
            weight: claim.weight,
            lends: claim.lends,
            runtime: text(self.tree.get(above.children[i]).cells[r].runtime),
        };
        QuotaShare {
            resource: resource.to_string(),
            min: text(cell.floor()),
            scaled_min: text(cell.scaled_min),
            scaling: scaling.map(|s| MinScaling { total: text(s.total), mins: text(clamp(s.mins)) }),
            max: cell.max.map(text),
            weight: cell.weight,
            request: text(cell.request(lends)),
            limited_request: text(cell.limited_request(lends)),
            runtime: text(cell.runtime),
            used: text(clamp(cell.all.used)),
            total: text(above.cells[r].runtime),
            borrowed: text(loans.borrowed[own]),
            lent: text(loans.lent[own]),
            borrows_from: named(loans.from(own)),
            lends_to: named(loans.to(own).into_iter().map(|(i, amount)| (Some(i), amount)).collect()),
            limited_by: self.limited_by(at, r),
            siblings: claims.iter().enumerate().map(claim).collect(),
            rounds: rounds.iter().map(|round| round.show(name, text)).collect(),
        }
    }

    /// Returns who lends what to whom among the children of a quota.
    pub(super) fn loans(&self, parent: QuotaIdx, r: usize) -> Loans {
        let children = || self.tree.get(parent).children.iter().map(|child| self.tree.get(*child));
        let guaranteed: Vec<i64> = children().map(|child| self.tree.claim(child, r).guaranteed).collect();
        Loans::of(&guaranteed, &children().map(|child| child.cells[r].runtime).collect::<Vec<_>>())
    }

    /// Returns what keeps a quota from more of a resource, `None` when its request is met.
    fn limited_by(&self, at: QuotaIdx, r: usize) -> Option<QuotaLimit> {
        let (at, reason) = self.limit_of(at, r)?;
        Some(QuotaLimit { quota: self.tree.get(at).name.to_string(), reason: reason.to_owned() })
    }

    /// Returns the quota where a quota's request is cut, itself or one above it, and why: `max`, `weight` or `share`.
    /// `None` when its request is met.
    pub(super) fn limit_of(&self, at: QuotaIdx, r: usize) -> Option<(QuotaIdx, &'static str)> {
        let mut short = None;
        for at in self.tree.upwards(at) {
            let quota = self.tree.get(at);
            let (cell, lends) = (&quota.cells[r], self.tree.lends(quota));
            if quota.role != Role::Ordinary || cell.runtime >= cell.request(lends) {
                break;
            }
            let reason = match cell.runtime >= cell.limited_request(lends) {
                true => "max",
                false if cell.weight == 0 => "weight",
                false => "share",
            };
            short = Some((at, reason));
            if reason != "share" {
                break;
            }
        }
        short
    }

    fn explain_overuse(&self, at: QuotaIdx, now: Now) -> Option<QuotaOveruse> {
        let excess = self.excess(at);
        if excess.is_empty() || self.tree.get(at).role == Role::Root {
            return None;
        }
        let since = self.overuse.since(&self.tree.get(at).name).filter(|_| self.monitors());
        let lasted = since.map(|since| now.monotonic.saturating_sub(since));
        let left = lasted.map(|lasted| self.args.delay_evict.saturating_sub(lasted).as_secs());
        let Revocable { going, held_back } = self.revocable(at);
        Some(QuotaOveruse {
            excess: self.quantities(excess.into_iter().map(|(r, amount)| (r, clamp(amount)))),
            monitored: self.monitors(),
            for_seconds: lasted.map(|lasted| lasted.as_secs()),
            evicts_in_seconds: left,
            would_evict: going.iter().map(|counted| counted.key.to_string()).collect(),
            held_back: held_back
                .into_iter()
                .map(|(counted, budget)| (counted.key.to_string(), budget.to_string()))
                .collect(),
        })
    }
}

fn sentence(name: &str, share: &QuotaShare) -> String {
    let QuotaShare { resource, used, runtime, request, min, .. } = share;
    let mut text =
        format!("{resource}: {name} uses {used} of its runtime {runtime}, requests {request}, min {min}");
    for (from, amount) in &share.borrows_from {
        let whose =
            if from.is_empty() { "what is nobody's min".to_owned() } else { format!("the min of {from}") };
        text.push_str(&format!("; it borrows {amount} of {whose}"));
    }
    for (to, amount) in &share.lends_to {
        text.push_str(&format!("; {to} borrows {amount} of its min"));
    }
    if let Some(limit) = &share.limited_by {
        let why = match limit.reason.as_str() {
            "max" => "its max",
            "weight" => "it has no weight, so it gets nothing beyond its min",
            _ => "its siblings' shares",
        };
        text.push_str(&format!("; {} keeps it from more: {why}", limit.quota));
    }
    text
}
