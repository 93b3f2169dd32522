//! Admission: whether a pod fits its quota, and the refusal if it does not.
//!
//! A pod is judged by the resources that it requests alone: a quota that is over its runtime in memory still takes a pod
//! that asks for none. The words are Koordinator's.

use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, Pod, PodSpec};

use super::NAME;
use super::accounting::Part;
use super::args::QuotaArgs;
use super::quotas::Quotas;
use super::tree::{Cell, QuotaIdx, Role, clamp};

/// Refuses a pod for which its quota has too little.
pub(super) static INSUFFICIENT: PluginReason = PluginReason {
    code: "InsufficientQuota",
    plugin: NAME,
    message: "Insufficient quotas, {}",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "What the pods of the quota use, with what pods nominated to a node will use and the pod's request, is more \
              than the quota may use now: its runtime, which is its min and its share of what others leave over, or its max.",
    remedy: "Wait until pods of the quota end or other quotas request less, raise its max where that is the limit, or its \
             min where its parent has enough for the mins of all children, or move the pod to another quota.",
    never: Some(
        "Raise the max that is the limit, or the quota's min where its parent has enough for the mins of \
         all children, request less, or move the pod to another quota.",
    ),
    example: Example {
        subject: "quotaName: team-a, runtime: cpu:40, used: cpu:38, pod's request: cpu:4, exceedDimensions: [cpu]",
        message: "Insufficient quotas, quotaName: team-a, runtime: cpu:40, used: cpu:38, pod's request: cpu:4, \
                  exceedDimensions: [cpu]",
        situation: "Pods of team-a use 38 cores of the 40 that it may use now, and a pod asks for 4.",
    },
};

/// Refuses a pod that is not preemptible, and for which its quota's min has too little.
pub(super) static INSUFFICIENT_FIXED: PluginReason = PluginReason {
    code: "InsufficientNonPreemptibleQuota",
    plugin: NAME,
    message: "Insufficient non-preemptible quotas, {}",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "Pods with label quota.scheduling.koordinator.sh/preemptible=false may use the quota's min and nothing that \
              is borrowed, and with the pod's request they would use more.",
    remedy: "Wait until such pods of the quota end, raise its min, or make the pod preemptible.",
    never: Some("Raise the quota's min, request less, or make the pod preemptible."),
    example: Example {
        subject: "quotaName: team-a, min: cpu:10, nonPreemptibleUsed: cpu:8, pod's request: cpu:4, exceedDimensions: [cpu]",
        message: "Insufficient non-preemptible quotas, quotaName: team-a, min: cpu:10, nonPreemptibleUsed: cpu:8, pod's \
                  request: cpu:4, exceedDimensions: [cpu]",
        situation: "Pods of team-a that are not preemptible use 8 cores of its min of 10, and another asks for 4.",
    },
};

/// What a pod lacks in one quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    /// The quota, the pod's own or one above it.
    pub(super) quota: QuotaIdx,
    /// Whether it lacks min as a pod that is not preemptible.
    pub(super) is_fixed: bool,
}

impl Quotas {
    /// Returns what is too little for one more pod with this spec, `None` when it fits.
    pub(super) fn lack(&self, args: &QuotaArgs, spec: &PodSpec) -> Option<Lack> {
        self.lack_in(args, self.quota_of(spec), spec)
    }

    /// Returns what is too little for one more pod with this spec if it belonged to the quota `at`.
    pub(super) fn lack_in(&self, args: &QuotaArgs, at: QuotaIdx, spec: &PodSpec) -> Option<Lack> {
        let of = |quota, is_fixed| Some(Lack { quota, is_fixed });
        if self.exceeded(args, at, at, spec).next().is_some() {
            return of(at, false);
        }
        if self.is_fixed(spec) && self.exceeded_fixed(at, spec).next().is_some() {
            return of(at, true);
        }
        if !args.checks_parents {
            return None;
        }
        let mut above = self.tree.upwards(at).skip(1).filter(|up| self.tree.get(*up).role == Role::Ordinary);
        above.find(|up| self.exceeded(args, at, *up, spec).next().is_some()).and_then(|up| of(up, false))
    }

    /// Returns all that is too little for one more pod with this spec, what it is refused for first.
    pub(super) fn lacks(&self, args: &QuotaArgs, spec: &PodSpec) -> Vec<Lack> {
        let own = self.quota_of(spec);
        let above = self.tree.upwards(own).skip(1).filter(|_| args.checks_parents);
        let above = above.filter(|up| self.tree.get(*up).role == Role::Ordinary);
        let of = |(quota, is_fixed): (QuotaIdx, bool)| Lack { quota, is_fixed };
        let all = [(own, false), (own, true)].into_iter().chain(above.map(|up| (up, false))).map(of);
        let is_lacking = |lack: &Lack| match lack.is_fixed {
            true => self.is_fixed(spec) && self.exceeded_fixed(own, spec).next().is_some(),
            false => self.exceeded(args, own, lack.quota, spec).next().is_some(),
        };
        all.filter(is_lacking).collect()
    }

    /// Returns what a quota may use of a resource.
    pub(super) fn limit(&self, args: &QuotaArgs, at: QuotaIdx, r: usize) -> i64 {
        let quota = self.tree.get(at);
        let cell = &quota.cells[r];
        match args.limits_runtime && quota.role == Role::Ordinary {
            true => cell.runtime,
            false => cell.max.unwrap_or(i64::MAX),
        }
    }

    /// Returns the resources that a pod requests, with amounts, as far as its quota counts them.
    pub(super) fn asked<'a>(
        &'a self,
        own: QuotaIdx,
        spec: &'a PodSpec,
    ) -> impl Iterator<Item = (usize, i64)> + 'a {
        let cells = &self.tree.get(own).cells;
        let amounts = self.tree.resources.iter().enumerate().filter(|(r, _)| cells[*r].max.is_some());
        amounts.map(|(r, name)| (r, spec.requests.list.amount(name))).filter(|(_, amount)| *amount > 0)
    }

    /// Returns the resources in which a pod of the quota `own` is too much for the quota `at`.
    fn exceeded<'a>(
        &'a self,
        args: &'a QuotaArgs,
        own: QuotaIdx,
        at: QuotaIdx,
        spec: &'a PodSpec,
    ) -> impl Iterator<Item = usize> + 'a {
        let asked = self.asked(own, spec);
        asked.filter(move |(r, amount)| self.is_over(args, at, *r, *amount)).map(|(r, _)| r)
    }

    /// Returns whether a quota would use more of a resource than it may, with this amount more.
    fn is_over(&self, args: &QuotaArgs, at: QuotaIdx, r: usize, amount: i64) -> bool {
        let cell = &self.tree.get(at).cells[r];
        let limit = i128::from(self.limit(args, at, r));
        cell.max.is_some() && cell.all.used + i128::from(amount) > limit
    }

    /// Returns the resources in which a pod that is not preemptible is too much for its quota's min.
    fn exceeded_fixed<'a>(&'a self, at: QuotaIdx, spec: &'a PodSpec) -> impl Iterator<Item = usize> + 'a {
        self.asked(at, spec).filter(move |(r, amount)| self.is_over_fixed(at, *r, *amount)).map(|(r, _)| r)
    }

    /// Returns whether pods that are not preemptible would use more than a quota's min, with this amount more. Without a
    /// min for a resource there is no bound, as in Koordinator.
    fn is_over_fixed(&self, at: QuotaIdx, r: usize, amount: i64) -> bool {
        let cell = &self.tree.get(at).cells[r];
        cell.min.is_some_and(|min| cell.all.fixed_used + i128::from(amount) > i128::from(min))
    }

    /// Returns the refusal of a pod that fits its quota, but not beside pods which are nominated to a node and use the
    /// quota as soon as they are placed there.
    pub(super) fn refusal_beside(
        &self,
        args: &QuotaArgs,
        spec: &PodSpec,
        nominees: &[&Pod],
    ) -> Option<Cause> {
        let own = self.quota_of(spec);
        let charges = nominees.iter().map(|pod| self.charge(&pod.spec));
        let mut charges = charges.filter(|of| of.quota == own || args.checks_parents).peekable();
        charges.peek()?;
        let mut with = self.clone();
        for charge in charges {
            with.tree.count(charge.quota, charge.list(), charge.is_fixed, Part::Used, 1);
        }
        let lack = with.lack(args, spec)?;
        Some(with.refusal(args, spec, lack, self))
    }

    /// Returns the refusal of a pod. `now` has what is used; what is used beyond it in `self` is for nominated pods.
    pub(super) fn refusal(&self, args: &QuotaArgs, spec: &PodSpec, lack: Lack, now: &Self) -> Cause {
        let own = self.quota_of(spec);
        let request = self.list(self.asked(own, spec));
        let cells = &self.tree.get(lack.quota).cells;
        let placed = &now.tree.get(lack.quota).cells;
        let of = |cell: &Cell| if lack.is_fixed { cell.all.fixed_used } else { cell.all.used };
        let all = 0..self.tree.resources.len();
        // Whatever is too much is named, also what the pod does not ask for.
        let with_request = all.clone().map(|r| (r, spec.requests.list.amount(&self.tree.resources[r])));
        let amounts = |of: &dyn Fn(usize) -> i128| {
            self.list(all.clone().map(|r| (r, clamp(of(r)))).filter(|(_, n)| *n != 0))
        };
        let mut used = amounts(&|r| of(&placed[r]));
        let nominated = |r: usize| of(&cells[r]) - of(&placed[r]);
        if all.clone().any(|r| nominated(r) != 0) {
            used.push_str(&format!(", nominated: {}", amounts(&nominated)));
        }
        let (reason, text) = if lack.is_fixed {
            let min = self.list(all.filter_map(|r| Some((r, cells[r].min?))));
            let over = with_request.filter(|(r, amount)| self.is_over_fixed(own, *r, *amount));
            let exceeded = self.names(over.map(|(r, _)| r));
            let name = &self.tree.get(own).name;
            let numbers = format!("min: {min}, nonPreemptibleUsed: {used}");
            (
                &INSUFFICIENT_FIXED,
                format!(
                    "quotaName: {name}, {numbers}, pod's request: {request}, exceedDimensions: [{exceeded}]"
                ),
            )
        } else {
            let limited = self.limited(args, lack.quota);
            let limit = self.list(limited.map(|r| (r, self.limit(args, lack.quota, r))));
            // Of a quota above only what the pod asks for is looked at.
            let is_named = |r: usize| lack.quota == own || self.asked(own, spec).any(|(asked, _)| asked == r);
            let over = with_request.filter(|(r, amount)| self.is_over(args, lack.quota, *r, *amount));
            let over = over.filter(|(r, _)| is_named(*r));
            let exceeded = self.names(over.map(|(r, _)| r));
            let name = self.path(own, lack.quota);
            let numbers = format!("runtime: {limit}, used: {used}");
            (
                &INSUFFICIENT,
                format!("{name}, {numbers}, pod's request: {request}, exceedDimensions: [{exceeded}]"),
            )
        };
        Cause::new(NAME, Code::Unschedulable, Reason::about(ReasonCode::Plugin(reason), text.as_str()))
    }

    /// Returns the resources for which a quota has a limit: those that are shared out among it and its siblings, or, where
    /// its max is the limit, its own.
    fn limited(&self, args: &QuotaArgs, at: QuotaIdx) -> Box<dyn Iterator<Item = usize> + '_> {
        let quota = self.tree.get(at);
        match quota.parent.filter(|_| args.limits_runtime && quota.role == Role::Ordinary) {
            Some(parent) => Box::new(self.tree.shared_resources(parent)),
            None => Box::new((0..self.tree.resources.len()).filter(|r| quota.cells[*r].max.is_some())),
        }
    }

    /// Names the quota that lacks something; one above the pod's own with the way down to that.
    fn path(&self, own: QuotaIdx, at: QuotaIdx) -> String {
        if at == own {
            return format!("quotaName: {}", self.tree.get(at).name);
        }
        let mut names: Vec<&str> = Vec::new();
        for up in self.tree.upwards(own) {
            names.push(&self.tree.get(up).name);
            if up == at {
                break;
            }
        }
        names.reverse();
        format!("quotaNameTopo: [{}]", names.join(" "))
    }

    /// Writes amounts in the way of a message: `cpu:4,memory:8Gi`.
    fn list(&self, amounts: impl Iterator<Item = (usize, i64)>) -> String {
        let of = |(r, amount): (usize, i64)| {
            let name: &Name = &self.tree.resources[r];
            format!("{name}:{}", format_amount(name, amount))
        };
        let all: Vec<String> = amounts.map(of).collect();
        if all.is_empty() { "<empty>".to_owned() } else { all.join(",") }
    }

    fn names(&self, resources: impl Iterator<Item = usize>) -> String {
        let all: Vec<&str> = resources.map(|r| self.tree.resources[r].as_str()).collect();
        all.join(" ")
    }
}
