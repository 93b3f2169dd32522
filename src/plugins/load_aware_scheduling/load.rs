//! The load of one node under one set of arguments: sums over its pods, and what the filter and the score compare.
//!
//! Formulas of Koordinator's load-aware scheduling, see README.md. Pure functions of a NodeMetric, pods and a time.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_model::Name;
use smallvec::SmallVec;

use super::args::{LoadAwareArgs, Percents, Thresholds, node_thresholds};
use super::estimate::{Amounts, Estimate, MOST};
use super::node_loads::{Assigned, OnNode};
use super::node_metric::{NodeMetric, Usage};
use pellucid_plugin_helper::scored::amount;

/// Usage that no pod may reach; the limit where there is no threshold.
pub(super) const NO_LIMIT: i64 = i64::MAX;

/// What the usage of a [`Side`] is made of, per resource.
pub(super) struct Parts<'a> {
    /// What is reported; `None` when the period that counts is not.
    pub(super) reported: Option<&'a Amounts>,
    /// What estimates add; where nothing is reported, the estimates of all pods.
    pub(super) estimated: &'a Amounts,
}

/// Sums over the pods of a node, in the order of [`LoadAwareArgs::resources`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Reported usage of prod pods, with the system's where the arguments say so.
    pub(super) prod_usage: Amounts,
    /// What estimates add to the reported usage.
    pub(super) node_delta: Amounts,
    /// What estimates add to `prod_usage`.
    pub(super) prod_delta: Amounts,
    /// Estimates of all pods.
    pub(super) node_estimated: Amounts,
    /// Number of pods in `node_delta`.
    pub(super) delta_pods: u32,
    /// Number of pods in `prod_delta`.
    pub(super) prod_delta_pods: u32,
}

/// What a pod adds to the sums of its node.
#[derive(Clone, Debug)]
pub(super) struct Contribution {
    pub(super) estimated: Amounts,
    pub(super) delta: Amounts,
    pub(super) prod_delta: Amounts,
    prod_usage: Option<Amounts>,
}

/// Which usage a threshold is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    Plain,
    Aggregated,
    Prod,
}

impl Basis {
    /// Returns the code of a refusal for too much of it.
    pub(super) fn code(self) -> ReasonCode {
        match self {
            Self::Aggregated => ReasonCode::AggregatedUsageExceeded,
            Self::Plain | Self::Prod => ReasonCode::UsageExceeded,
        }
    }
}

/// What the filter and the score need of a NodeMetric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) allocatable: Amounts,
    /// The usage that thresholds are compared with; `None` when it is not reported.
    usage: Option<Amounts>,
    /// The usage that scores; `None` when it is not reported.
    score_usage: Option<Amounts>,
    /// The least usage that is too much, per resource.
    limits: Amounts,
    /// The same for prod pods, on the usage of prod pods; `None` without thresholds for them.
    prod_limits: Option<Amounts>,
    pub(super) basis: Basis,
    pub(super) thresholds: Thresholds,
}

/// The load of a node under one set of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) sums: Sums,
    /// `None` when nothing is reported.
    pub(super) judged: Option<Arc<Judged>>,
    /// Whether thresholds on the usage of prod pods apply to the node, which then count for them alone.
    has_prod_thresholds: bool,
    /// Whether other thresholds apply to the node.
    has_thresholds: bool,
    /// Whether there is a NodeMetric, and it is expired.
    pub(super) is_expired: bool,
    /// When the NodeMetric expires, in milliseconds since 1970.
    pub(super) expires: Option<i64>,
}

/// Usage per resource as the sum of what is reported and what estimates add.
#[derive(Clone, Copy)]
pub(super) struct Used<'a> {
    reported: Option<&'a Amounts>,
    estimated: &'a Amounts,
}

impl Used<'_> {
    /// Returns the usage of a resource by its position.
    #[inline]
    pub(super) fn at(&self, i: usize) -> i64 {
        self.reported.map_or(0, |reported| reported[i]).saturating_add(self.estimated[i])
    }

    /// Returns the usage of all resources.
    pub(super) fn all(&self) -> Amounts {
        (0..self.estimated.len()).map(|i| self.at(i)).collect()
    }
}

/// The usage and the limits that apply to a pod.
pub(super) struct Side<'a> {
    /// Usage per resource without the pod.
    pub(super) used: Used<'a>,
    /// The least usage per resource that is too much.
    pub(super) limits: &'a Amounts,
    pub(super) basis: Basis,
}

impl Load {
    pub(super) fn empty(n: usize) -> Self {
        let zero = || -> Amounts { SmallVec::from_elem(0, n) };
        let sums = Sums {
            prod_usage: zero(),
            node_delta: zero(),
            prod_delta: zero(),
            node_estimated: zero(),
            delta_pods: 0,
            prod_delta_pods: 0,
        };
        Self {
            sums,
            judged: None,
            has_prod_thresholds: false,
            has_thresholds: false,
            is_expired: false,
            expires: None,
        }
    }

    /// Returns whether some threshold applies to a pod on the node.
    pub(super) fn has_thresholds_for(&self, is_prod: bool) -> bool {
        self.has_thresholds || is_prod && self.has_prod_thresholds
    }

    /// Returns what the filter compares for a pod.
    pub(super) fn side<'a>(&'a self, judged: &'a Judged, is_prod: bool) -> Side<'a> {
        match &judged.prod_limits {
            Some(limits) if is_prod => Side { used: self.prod_used(), limits, basis: Basis::Prod },
            _ => Side {
                used: self.node_used(judged.usage.as_ref()),
                limits: &judged.limits,
                basis: judged.basis,
            },
        }
    }

    /// Returns what the usage of a side is made of.
    pub(super) fn parts<'a>(&'a self, judged: &'a Judged, basis: Basis) -> Parts<'a> {
        let sums = &self.sums;
        match (basis, judged.usage.as_ref()) {
            (Basis::Prod, _) => Parts { reported: Some(&sums.prod_usage), estimated: &sums.prod_delta },
            (_, None) => Parts { reported: None, estimated: &sums.node_estimated },
            (_, reported) => Parts { reported, estimated: &sums.node_delta },
        }
    }

    /// Returns the usage that the score compares for a pod.
    pub(super) fn score_used<'a>(&'a self, judged: &'a Judged, by_prod: bool) -> Used<'a> {
        if by_prod { self.prod_used() } else { self.node_used(judged.score_usage.as_ref()) }
    }

    fn prod_used(&self) -> Used<'_> {
        Used { reported: Some(&self.sums.prod_usage), estimated: &self.sums.prod_delta }
    }

    /// Returns the reported usage with what estimates add; where none is reported, the estimates of all pods.
    fn node_used<'a>(&'a self, reported: Option<&'a Amounts>) -> Used<'a> {
        let estimated = if reported.is_some() { &self.sums.node_delta } else { &self.sums.node_estimated };
        Used { reported, estimated }
    }

    pub(super) fn count(&mut self, by: &Contribution, sign: i64) {
        let sums = &mut self.sums;
        add(&mut sums.node_estimated, &by.estimated, sign);
        add(&mut sums.node_delta, &by.delta, sign);
        add(&mut sums.prod_delta, &by.prod_delta, sign);
        if let Some(usage) = &by.prod_usage {
            add(&mut sums.prod_usage, usage, sign);
        }
        let step = |count: &mut u32, amounts: &Amounts| {
            if amounts.iter().any(|a| *a != 0) {
                *count = count.saturating_add_signed(sign as i32);
            }
        };
        step(&mut sums.delta_pods, &by.delta);
        step(&mut sums.prod_delta_pods, &by.prod_delta);
    }
}

/// Adds without a check: what was added is taken away again in any order, and amounts are at most [`MOST`].
fn add(to: &mut Amounts, amounts: &Amounts, sign: i64) {
    for (to, amount) in to.iter_mut().zip(amounts) {
        *to = to.wrapping_add(sign * amount);
    }
}

/// Picks the arguments' resources out of a reported usage.
fn pick(args: &LoadAwareArgs, usage: &Usage) -> Amounts {
    let of = |name: &Name| usage.iter().find(|(known, _)| known == name).map_or(0, |(_, amount)| *amount);
    let of = |name: &Name| of(name).clamp(-MOST, MOST);
    args.resources.iter().map(of).collect()
}

/// Returns what a pod adds to the sums of its node.
pub(super) fn contribution(
    args: &LoadAwareArgs,
    metric: Option<&NodeMetric>,
    pod: &Assigned,
) -> Contribution {
    let estimate = Estimate::of(args, &pod.spec);
    let reported = metric.and_then(|m| m.pods.get(&pod.key));
    let updated = metric.and_then(|m| Some((m.updated? * 1000, m.report_interval.saturating_mul(1000))));
    // The usage that a report averages does not show a pod yet that came within the interval before it.
    let is_new = updated.is_none_or(|(at, interval)| pod.since > at.saturating_sub(interval));
    // A report does not show either what the pod will use once it has started.
    let is_starting = updated.zip(pod.estimated_until(&estimate)).is_some_and(|((at, _), until)| until > at);
    let counts = is_new || reported.is_none() || is_starting;
    let zero = || -> Amounts { SmallVec::from_elem(0, args.resources.len()) };
    let usage = reported.map(|r| pick(args, &r.usage));
    let beyond = || -> Amounts {
        let used = usage.clone().unwrap_or_else(zero);
        estimate.amounts.iter().zip(used).map(|(e, u)| (e - u).max(0)).collect()
    };
    let is_reported_prod = estimate.is_prod && reported.is_some_and(|r| r.is_prod);
    Contribution {
        delta: if counts { beyond() } else { zero() },
        prod_delta: match (estimate.is_prod, is_reported_prod) {
            (true, true) if counts => beyond(),
            // A prod pod that the NodeMetric does not call prod counts with its whole estimate.
            (true, false) => estimate.amounts.clone(),
            _ => zero(),
        },
        prod_usage: usage.filter(|_| is_reported_prod),
        estimated: estimate.amounts,
    }
}

/// Computes the load of a node.
pub(super) fn load(args: &LoadAwareArgs, on: &OnNode, now: i64) -> Load {
    let metric = on.metric.as_deref();
    let mut made = Load::empty(args.resources.len());
    if let Some(usage) = metric.and_then(|m| m.usage.as_ref()).filter(|_| args.prod_includes_system) {
        made.sums.prod_usage = pick(args, &usage.system);
    }
    for pod in &on.assigned {
        made.count(&contribution(args, metric, pod), 1);
    }
    let Some(metric) = metric else { return made };
    let expires = metric.updated.map(|at| at.saturating_add(args.expiration).saturating_mul(1000));
    made.is_expired = expires.is_none_or(|at| at <= now);
    made.expires = expires.filter(|_| !made.is_expired);
    let own = on.thresholds.as_ref().and_then(|text| node_thresholds(text, &args.thresholds));
    let thresholds = own.unwrap_or_else(|| args.thresholds.clone());
    made.has_prod_thresholds = limits_any(args, &thresholds.prod);
    made.has_thresholds = limits_any(args, thresholds.of_all());
    made.judged = judged(args, on, metric, thresholds).map(Arc::new);
    made
}

/// Returns whether a threshold is set for a resource of the arguments; 0 is none.
fn limits_any(args: &LoadAwareArgs, percents: &Percents) -> bool {
    args.resources.iter().any(|name| percents.get(name).is_some_and(|percent| *percent != 0))
}

fn judged(args: &LoadAwareArgs, on: &OnNode, metric: &NodeMetric, thresholds: Thresholds) -> Option<Judged> {
    let (usage, allocatable) = (metric.usage.as_ref()?, on.allocatable.as_ref()?);
    let allocatable: Amounts = args.resources.iter().map(|name| amount(allocatable, name)).collect();
    let limits = |percents: &Percents| -> Amounts {
        let percent = |name| percents.get(name).copied().unwrap_or(0);
        args.resources.iter().zip(&allocatable).map(|(name, all)| limit(percent(name), *all)).collect()
    };
    let aggregated = thresholds.aggregated.as_ref();
    let usage_of = |aggregation| usage.of(aggregation).map(|usage| pick(args, usage));
    Some(Judged {
        usage: usage_of(aggregated.map(|a| &a.of)),
        score_usage: usage_of(args.score_aggregation.as_ref()),
        limits: limits(thresholds.of_all()),
        prod_limits: limits_any(args, &thresholds.prod).then(|| limits(&thresholds.prod)),
        basis: if aggregated.is_some() { Basis::Aggregated } else { Basis::Plain },
        allocatable,
        thresholds,
    })
}

/// Returns usage in percent, rounded half up as thresholds compare it. `all` must be above 0.
pub(super) fn percent(used: i64, all: i64) -> i64 {
    ((i128::from(used) * 200 + i128::from(all)) / (i128::from(all) * 2)) as i64
}

/// Returns the least usage that is above a threshold, where usage is rounded half up to whole percents of `all`.
fn limit(percent: i64, all: i64) -> i64 {
    if percent <= 0 || all <= 0 {
        return NO_LIMIT;
    }
    let doubled = i128::from(2 * percent + 1) * i128::from(all);
    i64::try_from((doubled + 199) / 200).unwrap_or(NO_LIMIT)
}
