//! NodeMetric (`slo.koordinator.sh/v1alpha1`): what a node and its pods use, as koordlet reports it.

use pellucid_framework::manifest::{Field, FieldError, format_moment};
use pellucid_model::collections::FxHashMap;
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, PodKey};
use serde_json::{Map, Value, json};

use super::args::Aggregation;
use super::estimate::PriorityClass;

/// `reportIntervalSeconds` of a NodeMetric that has none.
const REPORT_INTERVAL: i64 = 60;

/// Amounts by resource, in the model's units.
pub(super) type Usage = Vec<(Name, i64)>;

/// What a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodUsage {
    pub(super) usage: Usage,
    /// Whether the NodeMetric calls the pod prod.
    pub(super) is_prod: bool,
}

/// The usage over a period.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Period {
    seconds: u64,
    /// By percentile.
    usage: Vec<(Name, Usage)>,
}

/// `status.nodeMetric`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeUsage {
    /// What the node uses now.
    pub(super) node: Usage,
    /// What the system uses now, of that.
    pub(super) system: Usage,
    periods: Vec<Period>,
}

impl NodeUsage {
    /// Returns the usage that counts. A period that is not reported is unknown (`None`). Without a period, the longest
    /// that has the percentile counts, or the usage now.
    pub(super) fn of(&self, aggregation: Option<&Aggregation>) -> Option<&Usage> {
        let Some(Aggregation { kind, seconds }) = aggregation else { return Some(&self.node) };
        let with_kind = |period: &'_ Period| period.usage.iter().position(|(name, _)| name == kind);
        let has =
            |period: &&Period| seconds.is_none_or(|s| s == period.seconds) && with_kind(period).is_some();
        let found = self.periods.iter().filter(has).max_by_key(|p| p.seconds);
        match found {
            Some(period) => with_kind(period).map(|at| &period.usage[at].1),
            None if seconds.is_some() => None,
            None => Some(&self.node),
        }
    }
}

/// A NodeMetric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeMetric {
    /// `status.updateTime`, in seconds since 1970.
    pub(super) updated: Option<i64>,
    /// Seconds between two reports.
    pub(super) report_interval: i64,
    /// `status.nodeMetric`; `None` when nothing was reported.
    pub(super) usage: Option<NodeUsage>,
    /// What each pod uses.
    pub(super) pods: FxHashMap<PodKey, PodUsage>,
}

impl NodeMetric {
    /// Decodes a manifest. Fails with the first field that cannot be read.
    pub(super) fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let status = root.get("status")?;
        let interval = root.at(&["spec", "metricCollectPolicy", "reportIntervalSeconds"])?.integer()?;
        let metric = status.get("nodeMetric")?;
        let usage = match metric.is_absent() {
            true => None,
            false => Some(NodeUsage {
                node: usage(&metric.get("nodeUsage")?)?,
                system: usage(&metric.get("systemUsage")?)?,
                periods: metric
                    .get("aggregatedNodeUsages")?
                    .elements()?
                    .iter()
                    .map(period)
                    .collect::<Result<_, _>>()?,
            }),
        };
        Ok(Self {
            updated: status.get("updateTime")?.moment()?,
            report_interval: interval.filter(|s| *s > 0).unwrap_or(REPORT_INTERVAL),
            usage,
            pods: status
                .get("podsMetric")?
                .elements()?
                .iter()
                .filter_map(|of| pod(of).transpose())
                .collect::<Result<_, _>>()?,
        })
    }
}

impl NodeMetric {
    /// Writes the manifest that [`Self::read`] reads alike.
    pub(super) fn manifest(&self) -> Value {
        let mut sorted: Vec<(&PodKey, &PodUsage)> = self.pods.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let pods = sorted.into_iter().map(|(key, pod)| {
            json!({
                "namespace": key.namespace.as_str(),
                "name": &*key.name,
                "podUsage": resources(&pod.usage),
                "priority": if pod.is_prod { "koord-prod" } else { "" },
            })
        });
        let period = |period: &Period| {
            let usage = period.usage.iter().map(|(kind, usage)| (kind.to_string(), resources(usage)));
            json!({"duration": format!("{}s", period.seconds), "usage": usage.collect::<Map<_, _>>()})
        };
        let metric = self.usage.as_ref().map(|usage| {
            json!({
                "nodeUsage": resources(&usage.node),
                "systemUsage": resources(&usage.system),
                "aggregatedNodeUsages": usage.periods.iter().map(period).collect::<Value>(),
            })
        });
        json!({
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": self.report_interval}},
            "status": {
                "updateTime": self.updated.map(format_moment),
                "nodeMetric": metric,
                "podsMetric": pods.collect::<Value>(),
            },
        })
    }
}

fn resources(usage: &Usage) -> Value {
    let named = usage.iter().map(|(name, amount)| (name.to_string(), json!(format_amount(name, *amount))));
    json!({"resources": named.collect::<Map<_, _>>()})
}

fn period(field: &Field<'_>) -> Result<Period, FieldError> {
    let mut by_kind = Vec::new();
    for (kind, of) in field.get("usage")?.entries()? {
        let usage = usage(&of)?;
        if !usage.is_empty() {
            by_kind.push((kind.into(), usage));
        }
    }
    Ok(Period { seconds: field.get("duration")?.duration()?.map_or(0, |d| d.as_secs()), usage: by_kind })
}

/// Reads what a pod uses; `None` when it names no resource, which is not a usage of 0.
fn pod(field: &Field<'_>) -> Result<Option<(PodKey, PodUsage)>, FieldError> {
    let text = |name| Ok::<_, FieldError>(field.get(name)?.text()?.unwrap_or_default());
    let usage = usage(&field.get("podUsage")?)?;
    let is_prod = PriorityClass::parse(text("priority")?) == Some(PriorityClass::Prod);
    let key = PodKey::new(text("namespace")?, text("name")?);
    Ok((!usage.is_empty()).then_some((key, PodUsage { usage, is_prod })))
}

/// Reads a ResourceMap.
fn usage(field: &Field<'_>) -> Result<Usage, FieldError> {
    let mut all = Usage::new();
    for (name, amount) in field.get("resources")?.entries()? {
        all.push((name.into(), amount.quantity(name)?.unwrap_or(0)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metric() -> Value {
        let resources = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
        json!({
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 30}},
            "status": {
                "updateTime": "1970-01-01T00:10:00Z",
                "nodeMetric": {
                    "nodeUsage": resources("2"),
                    "systemUsage": resources("100m"),
                    "aggregatedNodeUsages": [
                        {"duration": "5m0s", "usage": {"p95": resources("3"), "avg": resources("1")}},
                        {"duration": "10m0s", "usage": {"p95": resources("4")}},
                    ],
                },
                "podsMetric": [
                    {"namespace": "a", "name": "b", "podUsage": resources("500m"), "priority": "koord-prod"},
                ],
            },
        })
    }

    #[test]
    fn usage_is_plain_or_of_a_period() {
        let read = NodeMetric::read(&metric()).unwrap();
        assert_eq!((read.updated, read.report_interval), (Some(600), 30));
        assert_eq!(NodeMetric::read(&read.manifest()), Ok(read.clone()));
        assert!(read.pods[&PodKey::new("a", "b")].is_prod);
        let usage = read.usage.unwrap();
        let cpu = |kind: &str, seconds| {
            let of = Aggregation { kind: kind.into(), seconds };
            usage.of(Some(&of)).map(|u| u.iter().find(|(n, _)| n.as_str() == "cpu").unwrap().1)
        };
        assert_eq!(cpu("p95", None), Some(4000));
        assert_eq!(cpu("p95", Some(300)), Some(3000));
        assert_eq!(cpu("avg", None), Some(1000));
        assert_eq!(cpu("p50", None), Some(2000));
        assert_eq!(cpu("p50", Some(300)), None);
        assert_eq!(cpu("p95", Some(60)), None);
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let mut bad = metric();
        bad["status"]["podsMetric"][0]["podUsage"]["resources"]["cpu"] = json!("much");
        let error = NodeMetric::read(&bad).unwrap_err();
        assert_eq!(error.field, "status.podsMetric[0].podUsage.resources.cpu");
        assert_eq!(NodeMetric::read(&json!({})).unwrap().usage, None);
    }
}
