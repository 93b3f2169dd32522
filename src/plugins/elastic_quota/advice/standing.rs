//! Where a pod stands with its quota: one sentence with the numbers, and the way from the root with the amounts of each
//! quota.
//!
//! Not here: what would help (`proposals`), and how a quota's runtime comes about (`explain`).

use pellucid_api::rest::elastic_quota::{LevelAmounts, PodQuota, QuotaConsumer, QuotaLevel};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, Now, Pod, PodSpec};
use pellucid_plugin_helper::listing::{MAX_EXAMPLES as MOST_CONSUMERS, largest};

use super::super::admission::{INSUFFICIENT, INSUFFICIENT_FIXED, Lack};
use super::super::args::QuotaArgs;
use super::super::quotas::Quotas;
use super::super::tree::{QuotaIdx, Role, clamp};

/// Number of quotas that a sentence names for what they borrow, or for what they use beyond their runtime.
const MOST_NAMED: usize = 3;

/// A resource in which a pod is too much.
pub(super) struct Blocked {
    pub(super) r: usize,
    pub(super) used: i64,
    pub(super) requested: i64,
    pub(super) limit: i64,
}

impl Blocked {
    /// Returns by how much the pod is too much.
    pub(super) fn shortfall(&self) -> i64 {
        self.used.saturating_add(self.requested).saturating_sub(self.limit)
    }
}

impl Quotas {
    /// Returns the resources in which a pod is too much for the quota that refuses it.
    pub(super) fn blocked(&self, args: &QuotaArgs, spec: &PodSpec, lack: Lack) -> Vec<Blocked> {
        let own = self.quota_of(spec);
        let of = |(r, requested): (usize, i64)| {
            let cell = &self.tree.get(lack.quota).cells[r];
            let (used, limit) = match lack.is_fixed {
                true => (cell.all.fixed_used, cell.min?),
                false => (cell.all.used, self.limit(args, lack.quota, r)),
            };
            let blocked = Blocked { r, used: clamp(used), requested, limit };
            (cell.max.is_some() && blocked.shortfall() > 0).then_some(blocked)
        };
        self.asked(own, spec).filter_map(of).collect()
    }

    /// Returns how a pod stands with its quota, in one sentence; `None` when there is nothing to say.
    pub(super) fn sentence(&self, args: &QuotaArgs, spec: &PodSpec, now: Now) -> Option<String> {
        match self.lack(args, spec) {
            Some(_) => Some(self.refusing(args, spec)),
            None => self.lending(args, spec, now),
        }
    }

    pub(super) fn text(&self, r: usize, amount: i64) -> String {
        format_amount(&self.tree.resources[r], amount)
    }

    /// Says by which numbers quotas refuse a pod, who has what it lacks, and how it becomes free.
    fn refusing(&self, args: &QuotaArgs, spec: &PodSpec) -> String {
        let mut said = Vec::new();
        let mut before = self.quota_of(spec);
        let lacks = self.lacks_with_amounts(args, spec);
        for (lack, blocked) in &lacks {
            let numbers: Vec<String> = blocked.iter().map(|of| self.numbers(args, *lack, of)).collect();
            let (numbers, name) = (numbers.join(", "), &self.tree.get(lack.quota).name);
            match (lack.quota == before, said.last_mut()) {
                // A pod that is not preemptible may be too much for max and min.
                (true, Some(last)) => *last = format!("{last}, {numbers}"),
                (true, None) => said.push(format!("quota {name}: {numbers}")),
                (false, _) => {
                    said.push(format!("quota {name} above {}: {numbers}", self.tree.get(before).name))
                }
            }
            before = lack.quota;
        }
        let n_blocked: usize = lacks.iter().map(|(_, blocked)| blocked.len()).sum();
        for (lack, blocked) in &lacks {
            for of in blocked.iter().filter(|of| self.is_shared(args, *lack, of)) {
                let resource = &self.tree.resources[of.r];
                let resource = if n_blocked > 1 { format!("{resource}: ") } else { String::new() };
                said.extend(self.held_by(lack.quota, of.r).map(|text| format!("{resource}{text}")));
            }
        }
        said.push(self.freed(args, spec, &lacks));
        said.join("; ")
    }

    /// Returns all that a pod lacks, with the resources in which it is too much.
    pub(super) fn lacks_with_amounts(&self, args: &QuotaArgs, spec: &PodSpec) -> Vec<(Lack, Vec<Blocked>)> {
        let lacks = self.lacks(args, spec).into_iter();
        lacks.map(|lack| (lack, self.blocked(args, spec, lack))).collect()
    }

    /// Returns whether what a pod lacks is its quota's share among others, not its max.
    pub(super) fn is_shared(&self, args: &QuotaArgs, lack: Lack, of: &Blocked) -> bool {
        let quota = self.tree.get(lack.quota);
        !lack.is_fixed
            && args.limits_runtime
            && quota.role == Role::Ordinary
            && quota.cells[of.r].max.is_some_and(|max| of.limit < max)
    }

    fn numbers(&self, args: &QuotaArgs, lack: Lack, of: &Blocked) -> String {
        let (quota, resource) = (self.tree.get(lack.quota), &self.tree.resources[of.r]);
        let text = |amount| self.text(of.r, amount);
        let (used, requested, limit) = (text(of.used), text(of.requested), text(of.limit));
        if lack.is_fixed {
            return format!(
                "{resource} used by pods that are not preemptible {used} + {requested} > min {limit}"
            );
        }
        let max = quota.cells[of.r].max.unwrap_or(of.limit);
        let most = match self.is_shared(args, lack, of) {
            true => format!("runtime {limit} of max {}", text(max)),
            false => format!("max {limit}"),
        };
        format!("{resource} used {used} + {requested} > {most}")
    }

    /// Says who has what a quota requests beyond its runtime.
    fn held_by(&self, at: QuotaIdx, r: usize) -> Option<String> {
        let (limit, reason) = self.limit_of(at, r)?;
        let quota = self.tree.get(limit);
        let text = |amount| self.text(r, amount);
        let above = if limit == at { String::new() } else { format!("{}, above it, ", quota.name) };
        match reason {
            "max" if limit == at => None,
            "max" => Some(format!("{above}has its max {}", text(quota.cells[r].runtime))),
            "weight" => {
                let it = if limit == at { "it " } else { "" };
                Some(format!("{above}{it}has no weight, so it gets nothing beyond its min"))
            }
            _ if limit == at => Some(self.shared_with(limit, r)),
            _ => Some(format!(
                "{}, above it, gets {}: {}",
                quota.name,
                text(quota.cells[r].runtime),
                self.shared_with(limit, r)
            )),
        }
    }

    /// Says which siblings of a quota have more than their mins, and whose it is.
    fn shared_with(&self, at: QuotaIdx, r: usize) -> String {
        let quota = self.tree.get(at);
        let parent = quota.parent.unwrap_or(at);
        let above = self.tree.get(parent);
        let loans = self.loans(parent, r);
        let name = |i: usize| &self.tree.get(above.children[i]).name;
        let others = (0..above.children.len()).filter(|i| above.children[*i] != at && loans.borrowed[*i] > 0);
        let named = others.map(|i| (loans.borrowed[i], (name(i), i)));
        let (borrowers, more) = largest(named, MOST_NAMED);
        if borrowers.is_empty() {
            let others = above.children.iter().filter(|child| **child != at);
            let others: i128 = others.map(|child| i128::from(self.tree.get(*child).cells[r].runtime)).sum();
            let (has, total) = (self.text(r, clamp(others)), self.text(r, above.cells[r].runtime));
            return format!(
                "the other children of {} have {has} of its {total}, within their mins",
                above.name
            );
        }
        let of = |(amount, (name_of, i)): &(i64, (&Name, usize))| {
            let from = loans.from(*i).into_iter().map(|(lender, amount)| match lender {
                Some(lender) if above.children[lender] == at => {
                    format!("{} of its min", self.text(r, amount))
                }
                Some(lender) => format!("{} of the min of {}", self.text(r, amount), name(lender)),
                None => format!("{} of nobody's min", self.text(r, amount)),
            });
            let from: Vec<String> = from.collect();
            let whose = match from.as_slice() {
                [one] => format!(" of {}", one.split_once(" of ").map_or("", |(_, whose)| whose)),
                several => format!(" ({})", several.join(", ")),
            };
            format!("{name_of} borrows {}{whose}", self.text(r, *amount))
        };
        let named: Vec<String> = borrowers.iter().map(of).collect();
        let more = if more > 0 { format!(", {more} others borrow too") } else { String::new() };
        format!("{}{more}", named.join(", "))
    }

    /// Says who uses more than its runtime, for a pod that is within its quota's min.
    fn lending(&self, args: &QuotaArgs, spec: &PodSpec, now: Now) -> Option<String> {
        let (own, over) = (self.quota_of(spec), self.lenders_of(spec));
        let (r, requested) = self.asked(own, spec).next()?;
        let quota = self.tree.get(own);
        let cell = &quota.cells[r];
        let beyond = |at: &QuotaIdx| {
            let amounts = self.asked(own, spec).filter_map(|(r, _)| {
                let amount = clamp(self.reclaimable(*at, r));
                (amount > 0).then(|| format!("{} {}", self.text(r, amount), self.tree.resources[r]))
            });
            let amounts: Vec<String> = amounts.collect();
            format!(
                "{} uses {} beyond its runtime and its min",
                self.tree.get(*at).name,
                amounts.join(" and ")
            )
        };
        let named: Vec<String> = over.iter().take(MOST_NAMED).map(beyond).collect();
        if named.is_empty() {
            return None;
        }
        let taken_back = match (args.reclaims, self.monitors()) {
            (true, _) => "enableReclaim lets the pod take that back".to_owned(),
            (false, true) => self.revoking(over[0], now),
            (false, false) => {
                "enableReclaim and monitorAllQuotas are off, so nobody takes that back".to_owned()
            }
        };
        let (used, requested) = (self.text(r, clamp(cell.all.used)), self.text(r, requested));
        Some(format!(
            "quota {}: {} used {used} + {requested} is within its min {}; {}; {taken_back}",
            quota.name,
            self.tree.resources[r],
            self.text(r, cell.floor()),
            named.join(", ")
        ))
    }

    fn revoking(&self, at: QuotaIdx, now: Now) -> String {
        let name = &self.tree.get(at).name;
        let lasted = self.overuse.since(name).map(|since| now.monotonic.saturating_sub(since));
        match lasted.map(|lasted| self.args.delay_evict.saturating_sub(lasted).as_secs()) {
            Some(left) => format!("pods of {name} are evicted for that in {left} s"),
            None => {
                format!("pods of {name} are evicted for that after {} s", self.args.delay_evict.as_secs())
            }
        }
    }

    /// Returns the body of the read about a pod.
    pub(super) fn of_pod(&self, args: &QuotaArgs, pod: &Pod, now: Now) -> PodQuota {
        let spec = &pod.spec;
        let (own, lack) = (self.quota_of(spec), self.lack(args, spec));
        let blocked = lack.map(|lack| self.blocked(args, spec, lack)).unwrap_or_default();
        let asked: Vec<(usize, i64)> = self.asked(own, spec).collect();
        let key = blocked.first().map(|of| of.r).or_else(|| asked.first().map(|(r, _)| *r));
        let code = lack.map(|lack| if lack.is_fixed { INSUFFICIENT_FIXED.code } else { INSUFFICIENT.code });
        let mut path: Vec<QuotaLevel> = self
            .tree
            .upwards(own)
            .map(|at| {
                let lack = lack.filter(|lack| lack.quota == at);
                let amounts = |(r, requested): (usize, i64)| self.amounts(args, at, (r, requested), lack);
                let resources: Vec<LevelAmounts> = asked.iter().copied().map(amounts).collect();
                let first = key.and_then(|key| asked.iter().position(|(r, _)| *r == key));
                QuotaLevel {
                    quota: self.tree.get(at).name.to_string(),
                    checked: at == own || args.checks_parents && self.tree.get(at).role == Role::Ordinary,
                    blocking: lack.is_some(),
                    amounts: first.and_then(|at| resources.get(at)).cloned().unwrap_or_default(),
                    resources,
                    consumers: lack.zip(key).map(|(lack, r)| self.consumers(lack, r)).unwrap_or_default(),
                }
            })
            .collect();
        path.reverse();
        PodQuota {
            namespace: pod.key.namespace.to_string(),
            name: pod.key.name.to_string(),
            quota: self.tree.get(own).name.to_string(),
            code: code.map(str::to_owned),
            text: self.sentence(args, spec, now),
            path,
        }
    }

    fn amounts(
        &self,
        args: &QuotaArgs,
        at: QuotaIdx,
        (r, requested): (usize, i64),
        lack: Option<Lack>,
    ) -> LevelAmounts {
        let quota = self.tree.get(at);
        let cell = &quota.cells[r];
        let is_fixed = lack.is_some_and(|lack| lack.is_fixed);
        let (used, limit) = match quota.role {
            Role::Root => (cell.all.used, Some(cell.runtime)),
            _ if is_fixed => (cell.all.fixed_used, cell.min),
            _ => (cell.all.used, cell.max.map(|_| self.limit(args, at, r))),
        };
        let used = clamp(used);
        let borrowed = quota.parent.filter(|_| quota.role == Role::Ordinary).map(|parent| {
            let place = self.tree.get(parent).children.iter().position(|child| *child == at);
            place.map_or(0, |i| self.loans(parent, r).borrowed[i])
        });
        let over = |limit: i64| used.saturating_add(requested).saturating_sub(limit).max(0);
        LevelAmounts {
            resource: self.tree.resources[r].to_string(),
            min: cell.min,
            max: cell.max,
            used,
            runtime: if quota.role == Role::BuiltIn { cell.max.unwrap_or(0) } else { cell.runtime },
            request: cell.request(self.tree.lends(quota)),
            borrowed: borrowed.unwrap_or(0),
            requested,
            limit,
            headroom: limit.map(|limit| limit.saturating_sub(used)),
            shortfall: limit.filter(|_| quota.role != Role::Root).map_or(0, over),
        }
    }

    /// Returns the pods that use most of what a pod lacks.
    fn consumers(&self, lack: Lack, r: usize) -> Vec<QuotaConsumer> {
        let below = self.below(lack.quota);
        let used = self.pods.iter().flatten().filter_map(|counted| {
            let charge = counted.used().filter(|charge| below.contains(&charge.quota))?;
            let amount = clamp(self.uses(charge, r));
            (amount > 0 && (charge.is_fixed || !lack.is_fixed)).then_some((amount, &counted.key))
        });
        let (most, _) = largest(used, MOST_CONSUMERS);
        most.into_iter().map(|(used, pod)| QuotaConsumer { pod: pod.to_string(), used }).collect()
    }
}
