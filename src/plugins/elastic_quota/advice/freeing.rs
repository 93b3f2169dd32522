//! What has to end, or to be requested less, before a quota takes a pod that it refuses.
//!
//! Each way is tried on a copy of the tree: without what the quota's pods use, without all that others request, without both.
//! Where the request alone is too much, no pod's end helps, and that is what is said.

use pellucid_model::PodSpec;

use super::super::accounting::Part;
use super::super::admission::Lack;
use super::super::args::QuotaArgs;
use super::super::quotas::Quotas;
use super::super::tree::{QuotaIdx, Sums};
use super::standing::Blocked;

/// What a pod lacks, with the resources in which it is too much.
type Lacks = [(Lack, Vec<Blocked>)];

impl Quotas {
    /// Says what frees the room that a refused pod lacks.
    pub(super) fn freed(&self, args: &QuotaArgs, spec: &PodSpec, lacks: &Lacks) -> String {
        let alone = self.alone(spec);
        let too_much = alone.lacks_with_amounts(args, spec);
        if !too_much.is_empty() {
            return alone.too_much(args, &too_much);
        }
        let own = |at: QuotaIdx| lacks.iter().any(|(lack, _)| self.below(lack.quota).contains(&at));
        let without_own = self.changed(|at, sums| {
            if own(at) {
                sums.request -= sums.used;
                sums.fixed_request -= sums.fixed_used;
                (sums.used, sums.fixed_used) = (0, 0);
            }
        });
        let without_others = self.changed(|at, sums| {
            if !own(at) {
                *sums = Sums::default();
            }
        });
        let has_enough = lacks.iter().flat_map(|(_, blocked)| blocked).all(|of| of.shortfall() <= of.used);
        let by_own = has_enough && without_own.lack(args, spec).is_none();
        let ends = || {
            let ends: Vec<String> = lacks.iter().map(|lacking| self.ending(args, lacking)).collect();
            ends.join(" and ")
        };
        let less = "others request less";
        match (by_own, without_others.lack(args, spec).is_none()) {
            (true, true) => format!("freed when {}, or {less}", ends()),
            (true, false) => format!("freed when {}", ends()),
            (false, true) => format!("freed when {less}"),
            (false, false) => {
                let names: Vec<&str> =
                    lacks.iter().map(|(lack, _)| self.tree.get(lack.quota).name.as_str()).collect();
                format!("freed when pods of {} end and {less}", names.join(" and "))
            }
        }
    }

    /// Says which pods of a quota have to end.
    fn ending(&self, args: &QuotaArgs, (lack, blocked): &(Lack, Vec<Blocked>)) -> String {
        let kind = if lack.is_fixed { " that are not preemptible" } else { "" };
        let amount =
            |of: &Blocked| format!("{} {}", self.text(of.r, of.shortfall()), self.tree.resources[of.r]);
        let amounts: Vec<String> = blocked.iter().map(amount).collect();
        // Where usage is guaranteed, the runtime falls with what is used.
        let falls = self.tree.guarantees_usage && blocked.iter().any(|of| self.is_shared(args, *lack, of));
        let with = if falls { String::new() } else { format!(" with {}", amounts.join(" and ")) };
        format!("pods of {}{kind}{with} end", self.tree.get(lack.quota).name)
    }

    /// Says of a tree without other pods what the request is more than.
    fn too_much(&self, args: &QuotaArgs, lacks: &Lacks) -> String {
        let than = |(lack, of): (&Lack, &Blocked)| {
            let (name, limit) = (&self.tree.get(lack.quota).name, self.text(of.r, of.limit));
            let resource = &self.tree.resources[of.r];
            if lack.is_fixed {
                return format!("min {limit} {resource} of {name} for pods that are not preemptible");
            }
            let cut = self.limit_of(lack.quota, of.r).filter(|_| self.is_shared(args, *lack, of));
            match cut {
                None => format!("max {limit} {resource} of {name}"),
                Some((at, "max")) => {
                    let quota = self.tree.get(at);
                    {
                        let max = self.text(of.r, quota.cells[of.r].runtime);
                        format!("max {max} {resource} of {}", quota.name)
                    }
                }
                Some((at, "weight")) => {
                    format!(
                        "the {limit} {resource} that {name} gets, as {} has no weight",
                        self.tree.get(at).name
                    )
                }
                Some(_) => format!("the {limit} {resource} that {name} gets at most"),
            }
        };
        let all = lacks.iter().flat_map(|(lack, blocked)| blocked.iter().map(move |of| (lack, of)));
        let mut all: Vec<String> = all.map(than).collect();
        all.dedup();
        format!("no pod's end is enough, as the request alone is more than {}", all.join(" and "))
    }

    /// Returns the quotas with nothing but the request of one pod.
    fn alone(&self, spec: &PodSpec) -> Self {
        let mut quotas = self.changed(|_, sums| *sums = Sums::default());
        let (own, is_fixed) = (quotas.quota_of(spec), quotas.is_fixed(spec));
        quotas.tree.count(own, &spec.requests.list, is_fixed, Part::Request, 1);
        quotas.resettled();
        quotas
    }

    /// Returns the quotas with other sums of the pods of each.
    fn changed(&self, change: impl Fn(QuotaIdx, &mut Sums)) -> Self {
        let mut quotas = self.clone();
        for at in 0..quotas.tree.quotas.len() {
            quotas.tree.get_mut(at).cells.iter_mut().for_each(|cell| change(at, &mut cell.own));
        }
        quotas.resettled();
        quotas
    }
}
