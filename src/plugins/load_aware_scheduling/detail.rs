//! What explanations say of one refused node: the numbers behind the refusal, for people.

use pellucid_api::reason::ReasonCode;
use pellucid_framework::plugin::Measure;
use pellucid_framework::{Cause, View};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx, Now, PodSpec};

use super::estimate::Estimate;
use super::load::{Basis, Judged, Load, contribution, percent};
use super::node_loads::{NodeLoads, OnNode};
use super::{LoadAwareScheduling, Refusal};

/// A node with its load, and the age of its NodeMetric in seconds.
struct Known<'a> {
    on: &'a OnNode,
    load: &'a Load,
    age: Option<i64>,
}

impl LoadAwareScheduling {
    /// Returns the age in seconds of the newest of some expired NodeMetrics, and the greatest age that is not expired.
    pub(super) fn age(&self, view: View<'_>, nodes: &[NodeIdx]) -> Option<Measure> {
        let loads = view.state::<NodeLoads>()?;
        let updated = |node: &NodeIdx| Some((loads.on(*node)?.metric.as_deref()?.updated?, *node));
        // The newest; of equal ones the first by name.
        let newest = nodes.iter().filter_map(updated);
        let newest = newest.min_by(|a, b| b.0.cmp(&a.0).then_with(|| view.name(a.1).cmp(view.name(b.1))));
        newest.map(|(updated, best_node)| Measure {
            resource: "NodeMetric age".into(),
            requested: age(updated, view.cluster().now()),
            available: self.args.expiration - 1,
            best_node,
        })
    }

    /// Returns why a node refuses a pod for a cause, if it does.
    pub(super) fn words(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        (node, now): (NodeIdx, Now),
    ) -> Option<String> {
        let loads = view.state::<NodeLoads>()?;
        let (load, on) = (loads.load(loads.position(&self.args)?, node)?, loads.on(node)?);
        let updated = on.metric.as_deref()?.updated;
        let known = Known { on, load, age: updated.map(|at| age(at, now)) };
        let pod = Estimate::of(&self.args, spec);
        let is_about = |code| cause.reasons.iter().any(|reason| reason.code == code);
        match self.refusal(load, &pod)? {
            Refusal::Expired if is_about(ReasonCode::NodeMetricExpired) => Some(self.expired(known.age)),
            Refusal::Expired => None,
            Refusal::Exceeded(set, basis) => {
                let judged = load.judged.as_deref()?;
                if !is_about(basis.code()) {
                    return None;
                }
                let resources = self.args.resources.iter().enumerate();
                let exceeded = resources.filter(|(i, _)| set & (1 << (i % 64)) != 0);
                let texts: Vec<String> =
                    exceeded.map(|(i, _)| self.exceeded(&known, (judged, basis), i, &pod)).collect();
                (!texts.is_empty()).then(|| texts.join("; "))
            }
        }
    }

    fn expired(&self, age: Option<i64>) -> String {
        let most = self.args.expiration;
        match age {
            Some(age) => format!("its NodeMetric is {age} s old and expires at {most} s"),
            None => "its NodeMetric has no updateTime".to_owned(),
        }
    }

    /// Returns how the usage of a resource, given by its position, comes about.
    fn exceeded(
        &self,
        known: &Known<'_>,
        (judged, basis): (&Judged, Basis),
        at: usize,
        pod: &Estimate,
    ) -> String {
        let name = &self.args.resources[at];
        let thresholds = &judged.thresholds;
        let percents = match (basis, &thresholds.aggregated) {
            (Basis::Prod, _) => &thresholds.prod,
            (_, Some(aggregated)) => &aggregated.percents,
            (_, None) => &thresholds.plain,
        };
        let limit = percents.get(name).copied().unwrap_or(0);
        let (parts, all) = (known.load.parts(judged, basis), judged.allocatable[at]);
        let (reported, estimated) = (parts.reported.map_or(0, |usage| usage[at]), parts.estimated[at]);
        let used = reported.saturating_add(estimated).saturating_add(pod.amounts[at]);
        let of_whom = if basis == Basis::Prod { " by prod pods" } else { "" };
        let reported = match (parts.reported, known.age) {
            (None, _) => "no usage reported for the period".to_owned(),
            (Some(usage), Some(age)) => {
                format!("{} used{of_whom} {age} s ago", amount(name, usage[at], true))
            }
            (Some(usage), None) => format!("{} used{of_whom}", amount(name, usage[at], true)),
        };
        let pods = self.estimated_pods(known, (parts.reported.is_some(), basis), at);
        let estimated = match pods {
            0 => String::new(),
            1 => format!(", plus {} estimated for 1 pod", amount(name, estimated, false)),
            n => format!(", plus {} estimated for {n} pods", amount(name, estimated, false)),
        };
        let own = amount(name, pod.amounts[at], false);
        // Rounded as the filter rounds, so that what is refused reads as above the limit.
        let percent = percent(used, all.max(1));
        let all = amount(name, all, true);
        let sum = format!("{reported}{estimated}, plus {own} for this pod");
        format!("{name} would be at {percent} % of {all}, limit {limit} %: {sum}")
    }

    /// Returns how many pods of the node have an estimate that counts.
    fn estimated_pods(&self, known: &Known<'_>, (is_reported, basis): (bool, Basis), at: usize) -> usize {
        let metric = known.on.metric.as_deref();
        let counted = known.on.assigned.iter().filter(|pod| {
            let by = contribution(&self.args, metric, pod);
            let amounts = match basis {
                Basis::Prod => &by.prod_delta,
                _ if is_reported => &by.delta,
                _ => &by.estimated,
            };
            amounts[at] != 0
        });
        counted.count()
    }
}

/// Returns how old a NodeMetric is, in seconds.
fn age(updated: i64, now: Now) -> i64 {
    i64::try_from(now.wall.as_secs()).unwrap_or(i64::MAX).saturating_sub(updated).max(0)
}

/// Formats an amount for people: CPU in cores with up to three decimals, the rest as a quantity.
fn amount(resource: &Name, amount: i64, is_named: bool) -> String {
    if resource.as_str() != "cpu" {
        return format_amount(resource, amount);
    }
    let (sign, amount) = (if amount < 0 { "-" } else { "" }, amount.unsigned_abs());
    let decimals = format!("{:03}", amount % 1000);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    let unit = match (is_named, amount) {
        (false, _) => "",
        (true, 1000) => " core",
        (true, _) => " cores",
    };
    format!("{sign}{}{point}{decimals}{unit}", amount / 1000)
}
