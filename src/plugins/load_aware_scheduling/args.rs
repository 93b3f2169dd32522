//! The arguments of LoadAwareScheduling (`LoadAwareSchedulingArgs`), of Koordinator 0.7 and of today.

use std::collections::BTreeMap;

use pellucid_framework::plugin::ArgsError;
use pellucid_model::{Name, duration};
use serde_json::{Map, Value, json};

use pellucid_framework::args::{Problems, field, is_qualified_name, join};

/// Percent per resource.
pub(super) type Percents = BTreeMap<Name, i64>;

/// Percentiles that a NodeMetric may report.
const AGGREGATIONS: [&str; 5] = ["avg", "p50", "p90", "p95", "p99"];

/// Which aggregated usage of a NodeMetric counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Aggregation {
    /// `avg`, `p50`, `p90`, `p95` or `p99`.
    pub(super) kind: Name,
    /// Length of the aggregated period in seconds; `None` means the longest that has the percentile.
    pub(super) seconds: Option<u64>,
}

/// Thresholds on an aggregated usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AggregatedThresholds {
    pub(super) percents: Percents,
    pub(super) of: Aggregation,
}

/// The usage thresholds of a profile, or those that a node's annotation sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// For all pods (`usageThresholds`).
    pub(super) plain: Percents,
    /// For prod pods, on the usage of prod pods (`prodUsageThresholds`).
    pub(super) prod: Percents,
    /// On an aggregated usage; replaces `plain`.
    pub(super) aggregated: Option<AggregatedThresholds>,
}

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadAwareArgs {
    /// Whether a node with an expired NodeMetric is refused.
    pub(super) filter_expired: bool,
    /// Whether a node with an expired NodeMetric is feasible although `filter_expired` is set.
    pub(super) schedule_when_expired: bool,
    /// Age in seconds from which a NodeMetric is expired.
    pub(super) expiration: i64,
    /// Weight of each scored resource.
    pub(super) weights: BTreeMap<Name, i64>,
    /// Weight of the resource with the least score; 0 when there is none.
    pub(super) dominant_weight: i64,
    pub(super) thresholds: Thresholds,
    /// Whether the usage of prod pods includes the system's.
    pub(super) prod_includes_system: bool,
    /// Whether prod pods are scored by the usage of prod pods.
    pub(super) score_by_prod: bool,
    /// The usage that scores; `None` is the plain one.
    pub(super) score_aggregation: Option<Aggregation>,
    /// Percent of a request or limit that a pod is estimated to use.
    pub(super) factors: Percents,
    /// Seconds after scheduling during which a pod's estimate counts, whatever is reported.
    pub(super) after_scheduled: Option<i64>,
    /// Seconds after initialization during which a pod's estimate counts, whatever is reported.
    pub(super) after_initialized: Option<i64>,
    /// Whether annotations of pods may replace factors and seconds.
    pub(super) allow_custom: bool,
    /// Resources that are estimated: CPU, memory, and all others that these arguments name.
    pub(super) resources: Vec<Name>,
    /// `supportedResources` as given.
    pub(super) supported: Vec<Name>,
}

impl Thresholds {
    /// Returns the thresholds for pods that have none of their own class.
    pub(super) fn of_all(&self) -> &Percents {
        self.aggregated.as_ref().map_or(&self.plain, |aggregated| &aggregated.percents)
    }
}

impl Default for LoadAwareArgs {
    fn default() -> Self {
        let both = |cpu, memory| BTreeMap::from([("cpu".into(), cpu), ("memory".into(), memory)]);
        Self {
            filter_expired: true,
            schedule_when_expired: false,
            expiration: 180,
            weights: both(1, 1),
            dominant_weight: 0,
            thresholds: Thresholds { plain: both(65, 95), ..Thresholds::default() },
            prod_includes_system: false,
            score_by_prod: false,
            score_aggregation: None,
            factors: both(85, 70),
            after_scheduled: None,
            after_initialized: None,
            allow_custom: false,
            resources: vec!["cpu".into(), "memory".into()],
            supported: Vec::new(),
        }
    }
}

const FIELDS: [&str; 16] = [
    "filterExpiredNodeMetrics",
    "enableScheduleWhenNodeMetricsExpired",
    "nodeMetricExpirationSeconds",
    "resourceWeights",
    DOMINANT_WEIGHT,
    "usageThresholds",
    "prodUsageThresholds",
    "prodUsageIncludeSys",
    "scoreAccordingProdUsage",
    "estimator",
    "estimatedScalingFactors",
    "estimatedSecondsAfterPodScheduled",
    "estimatedSecondsAfterInitialized",
    "allowCustomizeEstimation",
    "aggregated",
    "supportedResources",
];
const DOMINANT_WEIGHT: &str = "dominantResourceWeight";
const AGGREGATED_FIELDS: [&str; 5] = [
    "usageThresholds",
    "usageAggregationType",
    "usageAggregatedDuration",
    "scoreAggregationType",
    "scoreAggregatedDuration",
];

impl LoadAwareArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self::default();
        if let Some(fields) = problems.object("", args, &FIELDS) {
            made.read_switches(&mut problems, fields);
            made.read_numbers(&mut problems, fields);
            made.read_aggregated(&mut problems, field(fields, "aggregated"));
        }
        made.collect_resources();
        problems.into_result().map(|()| made)
    }

    fn read_switches(&mut self, problems: &mut Problems, fields: &Map<String, Value>) {
        for (name, switch) in [
            ("filterExpiredNodeMetrics", &mut self.filter_expired),
            ("enableScheduleWhenNodeMetricsExpired", &mut self.schedule_when_expired),
            ("prodUsageIncludeSys", &mut self.prod_includes_system),
            ("scoreAccordingProdUsage", &mut self.score_by_prod),
            ("allowCustomizeEstimation", &mut self.allow_custom),
        ] {
            match field(fields, name) {
                Value::Null => {}
                Value::Bool(on) => *switch = *on,
                other => problems.add(name, "must be true or false", other),
            }
        }
        match problems.text("estimator", field(fields, "estimator")) {
            None | Some("" | "defaultEstimator") => {}
            Some(_) => problems.add("estimator", "must be defaultEstimator", field(fields, "estimator")),
        }
    }

    fn read_numbers(&mut self, problems: &mut Problems, fields: &Map<String, Value>) {
        let mut seconds = |name: &str, least: i64| {
            let given = problems.integer(name, field(fields, name))?;
            if given < least {
                problems.add(name, format!("must be {least} or more"), field(fields, name));
            }
            Some(given)
        };
        self.expiration = seconds("nodeMetricExpirationSeconds", 1).unwrap_or(self.expiration);
        self.after_scheduled = seconds("estimatedSecondsAfterPodScheduled", 0);
        self.after_initialized = seconds("estimatedSecondsAfterInitialized", 0);
        self.dominant_weight = match problems.integer(DOMINANT_WEIGHT, field(fields, DOMINANT_WEIGHT)) {
            Some(weight) if !(0..=100).contains(&weight) => {
                problems.add(DOMINANT_WEIGHT, "must be 0 to 100", field(fields, DOMINANT_WEIGHT));
                0
            }
            weight => weight.unwrap_or(0),
        };
        if let Some(given) = numbers(problems, "usageThresholds", fields, 0..=100) {
            self.thresholds.plain = given;
        }
        if let Some(given) = numbers(problems, "prodUsageThresholds", fields, 0..=100) {
            self.thresholds.prod = given;
        }
        match numbers(problems, "resourceWeights", fields, 1..=100) {
            Some(given) => self.weights = given,
            // With a weight for the dominant resource alone, no other counts.
            None if self.dominant_weight > 0 => self.weights.clear(),
            None => {}
        }
        self.factors
            .extend(numbers(problems, "estimatedScalingFactors", fields, 1..=100).unwrap_or_default());
        let names = problems.texts("supportedResources", field(fields, "supportedResources"));
        for (i, name) in names.iter().enumerate() {
            if !is_qualified_name(name) {
                let at = format!("supportedResources[{i}]");
                problems.add(at, "must be the name of a resource", &json!(name));
            }
        }
        self.supported = names.into_iter().map(Name::new).collect();
    }

    fn read_aggregated(&mut self, problems: &mut Problems, value: &Value) {
        const PATH: &str = "aggregated";
        let Some(fields) = problems.object(PATH, value, &AGGREGATED_FIELDS) else { return };
        let mut aggregation = |kind: &str, seconds: &str| {
            let given = problems.text(&join(PATH, kind), field(fields, kind)).unwrap_or("");
            if !given.is_empty() && !AGGREGATIONS.contains(&given) {
                let choice = "must be avg, p50, p90, p95 or p99";
                problems.add(join(PATH, kind), choice, field(fields, kind));
            }
            let text = problems.text(&join(PATH, seconds), field(fields, seconds));
            let period = text.map(duration::parse);
            if period == Some(None) {
                problems.add(join(PATH, seconds), "must be a duration such as 5m", field(fields, seconds));
            }
            let period = period.flatten().map(|p| p.as_secs()).filter(|p| *p > 0);
            (!given.is_empty()).then(|| Aggregation { kind: given.into(), seconds: period })
        };
        let usage = aggregation("usageAggregationType", "usageAggregatedDuration");
        self.score_aggregation = aggregation("scoreAggregationType", "scoreAggregatedDuration");
        let percents = nested(problems, PATH, "usageThresholds", fields, 0..=100).unwrap_or_default();
        self.thresholds.aggregated =
            usage.filter(|_| !percents.is_empty()).map(|of| AggregatedThresholds { percents, of });
    }

    fn collect_resources(&mut self) {
        let aggregated = self.thresholds.aggregated.iter().flat_map(|a| a.percents.keys());
        let named =
            self.weights.keys().chain(self.thresholds.plain.keys()).chain(self.thresholds.prod.keys());
        let named = named.chain(aggregated).chain(self.factors.keys()).chain(&self.supported);
        let mut others: Vec<Name> = named.filter(|n| !self.resources.contains(n)).cloned().collect();
        others.sort();
        others.dedup();
        self.resources.extend(others);
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        let percents =
            |of: &Percents| of.iter().map(|(n, p)| (n.to_string(), json!(p))).collect::<Map<_, _>>();
        let period = |of: &Aggregation| of.seconds.map(|s| format!("{s}s"));
        let mut shown = json!({
            "filterExpiredNodeMetrics": self.filter_expired,
            "enableScheduleWhenNodeMetricsExpired": self.schedule_when_expired,
            "nodeMetricExpirationSeconds": self.expiration,
            "resourceWeights": percents(&self.weights),
            "dominantResourceWeight": self.dominant_weight,
            "usageThresholds": percents(&self.thresholds.plain),
            "prodUsageThresholds": percents(&self.thresholds.prod),
            "prodUsageIncludeSys": self.prod_includes_system,
            "scoreAccordingProdUsage": self.score_by_prod,
            "estimatedScalingFactors": percents(&self.factors),
            "estimatedSecondsAfterPodScheduled": self.after_scheduled,
            "estimatedSecondsAfterInitialized": self.after_initialized,
            "allowCustomizeEstimation": self.allow_custom,
            "supportedResources": self.supported.iter().map(Name::as_str).collect::<Vec<_>>(),
        });
        let (usage, score) = (&self.thresholds.aggregated, &self.score_aggregation);
        if usage.is_some() || score.is_some() {
            shown["aggregated"] = json!({
                "usageThresholds": usage.as_ref().map(|u| percents(&u.percents)),
                "usageAggregationType": usage.as_ref().map(|u| u.of.kind.as_str()),
                "usageAggregatedDuration": usage.as_ref().and_then(|u| period(&u.of)),
                "scoreAggregationType": score.as_ref().map(|s| s.kind.as_str()),
                "scoreAggregatedDuration": score.as_ref().and_then(period),
            });
        }
        shown
    }
}

/// Reads `{resource: number}` at the top level; `None` when absent or empty.
fn numbers(
    problems: &mut Problems,
    name: &str,
    fields: &Map<String, Value>,
    range: std::ops::RangeInclusive<i64>,
) -> Option<Percents> {
    nested(problems, "", name, fields, range)
}

/// Reads `{resource: number}` below a path; `None` when absent or empty.
fn nested(
    problems: &mut Problems,
    path: &str,
    name: &str,
    fields: &Map<String, Value>,
    range: std::ops::RangeInclusive<i64>,
) -> Option<Percents> {
    let path = join(path, name);
    let given = match field(fields, name) {
        Value::Null => return None,
        Value::Object(given) => given,
        other => {
            problems.add(path, "must be an object", other);
            return None;
        }
    };
    let mut all = Percents::new();
    for (resource, value) in given {
        let at = format!("{path}[{resource}]");
        if !is_qualified_name(resource) {
            problems.add(&at, "must be the name of a resource", &json!(resource));
        }
        match value.as_i64().filter(|n| range.contains(n)) {
            Some(number) => drop(all.insert(resource.as_str().into(), number)),
            None => problems.add(at, format!("must be {} to {}", range.start(), range.end()), value),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Reads annotation `usage-thresholds` of a node. Each part that it names replaces that part of the arguments. `None`
/// when it is no JSON object of the right form; it then counts as absent.
pub(super) fn node_thresholds(text: &str, defaults: &Thresholds) -> Option<Thresholds> {
    let given: Value = serde_json::from_str(text).ok()?;
    let mut made = defaults.clone();
    if let Some(plain) = percents_of(&given["usageThresholds"])? {
        made.plain = plain;
    }
    if let Some(prod) = percents_of(&given["prodUsageThresholds"])? {
        made.prod = prod;
    }
    let aggregated = &given["aggregatedUsage"];
    let kind = match &aggregated["usageAggregationType"] {
        Value::Null => None,
        kind => Some(kind.as_str()?).filter(|kind| !kind.is_empty()),
    };
    let period = match &aggregated["usageAggregatedDuration"] {
        Value::Null => None,
        period => Some(duration::parse(period.as_str()?)?),
    };
    if let (Some(percents), Some(kind)) = (percents_of(&aggregated["usageThresholds"])?, kind) {
        let seconds = period.map(|p| p.as_secs()).filter(|p| *p > 0);
        let of = Aggregation { kind: kind.into(), seconds };
        made.aggregated = Some(AggregatedThresholds { percents, of });
    }
    Some(made)
}

/// Returns the percents of an annotation's part: `Some(None)` when it is absent or empty, `None` when unreadable.
fn percents_of(value: &Value) -> Option<Option<Percents>> {
    if value.is_null() {
        return Some(None);
    }
    let all: Option<Percents> =
        value.as_object()?.iter().map(|(n, p)| Some((n.as_str().into(), p.as_i64()?))).collect();
    all.map(|all| (!all.is_empty()).then_some(all))
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let percents = |least: i64| json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": least, "maximum": 100}});
    let (switch, seconds) = (json!({"type": "boolean"}), json!({"type": "integer", "minimum": 0}));
    let (kind, period) = (json!({"enum": AGGREGATIONS}), json!({"type": "string"}));
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "filterExpiredNodeMetrics": switch,
            "enableScheduleWhenNodeMetricsExpired": switch,
            "nodeMetricExpirationSeconds": {"type": "integer", "minimum": 1},
            "resourceWeights": percents(1),
            "dominantResourceWeight": {"type": "integer", "minimum": 0, "maximum": 100},
            "usageThresholds": percents(0),
            "prodUsageThresholds": percents(0),
            "prodUsageIncludeSys": switch,
            "scoreAccordingProdUsage": switch,
            "estimator": {"enum": ["", "defaultEstimator"]},
            "estimatedScalingFactors": percents(1),
            "estimatedSecondsAfterPodScheduled": seconds,
            "estimatedSecondsAfterInitialized": seconds,
            "allowCustomizeEstimation": switch,
            "supportedResources": {"type": "array", "items": {"type": "string"}},
            "aggregated": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "usageThresholds": percents(0),
                    "usageAggregationType": kind,
                    "usageAggregatedDuration": period,
                    "scoreAggregationType": kind,
                    "scoreAggregatedDuration": period,
                },
            },
        },
    })
}
