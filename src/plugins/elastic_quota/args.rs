//! The arguments of ElasticQuota (`ElasticQuotaArgs`), with Koordinator's names and defaults.

use std::time::Duration;

use pellucid_framework::manifest::Field;
use pellucid_framework::plugin::ArgsError;
use pellucid_model::{Name, duration};
use serde_json::{Map, Value, json};

use super::quota::{Amounts, amounts, resource_list};
use pellucid_framework::args::{Problems, field};

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuotaArgs {
    /// How long a quota must be over its runtime without a break before pods of it are evicted.
    pub(super) delay_evict: Duration,
    /// Time between two looks for quotas over their runtime.
    pub(super) revoke_interval: Duration,
    /// Max of the default quota.
    pub(super) default_max: Amounts,
    /// Max of the system quota.
    pub(super) system_max: Amounts,
    /// Namespace in which objects of the built-in quotas stand.
    pub(super) namespace: Name,
    /// Whether pods of quotas over their runtime are evicted.
    pub(super) monitors_all: bool,
    /// Whether a pod must fit all ancestors of its quota too.
    pub(super) checks_parents: bool,
    /// Whether a quota's limit is its runtime; otherwise it is max.
    pub(super) limits_runtime: bool,
    /// Whether mins that add up to more than there is are scaled down.
    pub(super) scales_min: bool,
    /// Whether pods of the default quota evict none of each other.
    pub(super) spares_default: bool,
    /// Whether what runs is guaranteed like min (Koordinator's feature gate ElasticQuotaGuaranteeUsage).
    pub(super) guarantees_usage: bool,
    /// Whether a quota below its min takes back at scheduling time what others borrowed. Not one of Koordinator's.
    pub(super) reclaims: bool,
}

/// Amount of CPU and memory in the max of built-in quotas: a fifth of the greatest 64-bit number.
const UNLIMITED: i64 = i64::MAX / 5;

impl Default for QuotaArgs {
    fn default() -> Self {
        // In thousandths the CPU is beyond 64 bits.
        let unlimited = Amounts::from([("cpu".into(), i64::MAX), ("memory".into(), UNLIMITED)]);
        Self {
            delay_evict: Duration::from_secs(120),
            revoke_interval: Duration::from_secs(1),
            default_max: unlimited.clone(),
            system_max: unlimited,
            namespace: "koordinator-system".into(),
            monitors_all: false,
            checks_parents: false,
            limits_runtime: true,
            scales_min: true,
            spares_default: true,
            guarantees_usage: false,
            reclaims: false,
        }
    }
}

const SWITCHES: [&str; 7] = [
    "monitorAllQuotas",
    "enableCheckParentQuota",
    "enableRuntimeQuota",
    "enableMinQuotaScale",
    "disableDefaultQuotaPreemption",
    "enableGuaranteeUsage",
    "enableReclaim",
];
const FIELDS: [&str; 15] = [
    "delayEvictTime",
    "revokePodInterval",
    "defaultQuotaGroupMax",
    "systemQuotaGroupMax",
    "quotaGroupNamespace",
    SWITCHES[0],
    SWITCHES[1],
    SWITCHES[2],
    SWITCHES[3],
    SWITCHES[4],
    SWITCHES[5],
    SWITCHES[6],
    "enableQueueHint",
    "quotaSnapshotUpdateInterval",
    "hookPlugins",
];

impl QuotaArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self::default();
        if let Some(fields) = problems.object("", args, &FIELDS) {
            made.read_switches(&mut problems, fields);
            made.read_values(&mut problems, fields);
        }
        problems.into_result().map(|()| made)
    }

    fn switches(&mut self) -> [&mut bool; 7] {
        [
            &mut self.monitors_all,
            &mut self.checks_parents,
            &mut self.limits_runtime,
            &mut self.scales_min,
            &mut self.spares_default,
            &mut self.guarantees_usage,
            &mut self.reclaims,
        ]
    }

    fn read_switches(&mut self, problems: &mut Problems, fields: &Map<String, Value>) {
        for (name, switch) in SWITCHES.into_iter().zip(self.switches()) {
            match field(fields, name) {
                Value::Null => {}
                Value::Bool(on) => *switch = *on,
                other => problems.add(name, "must be true or false", other),
            }
        }
        // Pods are woken when their quota frees, and decisions read the newest state, whatever these say.
        if !matches!(field(fields, "enableQueueHint"), Value::Null | Value::Bool(_)) {
            problems.add("enableQueueHint", "must be true or false", field(fields, "enableQueueHint"));
        }
        if !problems.list("hookPlugins", field(fields, "hookPlugins")).is_empty() {
            let problem = "hooks are code of another scheduler, and cannot be called";
            problems.add("hookPlugins", problem, field(fields, "hookPlugins"));
        }
    }

    fn read_values(&mut self, problems: &mut Problems, fields: &Map<String, Value>) {
        let mut snapshot = Duration::ZERO;
        for (name, time) in [
            ("delayEvictTime", &mut self.delay_evict),
            ("revokePodInterval", &mut self.revoke_interval),
            ("quotaSnapshotUpdateInterval", &mut snapshot),
        ] {
            let value = field(fields, name);
            let Some(text) = problems.text(name, value) else { continue };
            match duration::parse(text).filter(|t| *t > Duration::ZERO || name == "delayEvictTime") {
                Some(read) => *time = read,
                None => problems.add(name, "must be a duration above 0, such as 120s", value),
            }
        }
        for (name, max) in
            [("defaultQuotaGroupMax", &mut self.default_max), ("systemQuotaGroupMax", &mut self.system_max)]
        {
            let value = field(fields, name);
            match amounts(&Field::root(value)) {
                Ok(_) if value.is_null() => {}
                Ok(read) if read.values().all(|amount| *amount >= 0) => *max = read,
                Ok(_) => problems.add(name, "must not be negative", value),
                Err(e) if e.field.is_empty() => problems.add(name, e.problem, value),
                Err(e) => problems.add(name, format!("{}: {}", e.field, e.problem), value),
            }
        }
        match problems.text("quotaGroupNamespace", field(fields, "quotaGroupNamespace")) {
            None => {}
            Some("") => problems.add("quotaGroupNamespace", "must not be empty", &json!("")),
            Some(name) => self.namespace = name.into(),
        }
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        let mut own = self.clone();
        let mut shown = json!({
            "delayEvictTime": duration::show(self.delay_evict),
            "revokePodInterval": duration::show(self.revoke_interval),
            "defaultQuotaGroupMax": resource_list(&self.default_max),
            "systemQuotaGroupMax": resource_list(&self.system_max),
            "quotaGroupNamespace": self.namespace.as_str(),
        });
        for (name, switch) in SWITCHES.into_iter().zip(own.switches()) {
            shown[name] = json!(*switch);
        }
        shown
    }
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let list = json!({"type": "object", "additionalProperties": {"type": ["string", "integer"]}});
    let mut properties = Map::new();
    for name in SWITCHES.into_iter().chain(["enableQueueHint"]) {
        properties.insert(name.to_owned(), json!({"type": "boolean"}));
    }
    for name in ["delayEvictTime", "revokePodInterval", "quotaSnapshotUpdateInterval"] {
        properties.insert(name.to_owned(), json!({"type": "string"}));
    }
    for name in ["defaultQuotaGroupMax", "systemQuotaGroupMax"] {
        properties.insert(name.to_owned(), list.clone());
    }
    properties.insert("quotaGroupNamespace".to_owned(), json!({"type": "string"}));
    properties.insert("hookPlugins".to_owned(), json!({"type": "array", "maxItems": 0}));
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_alike() {
        let given = json!({
            "delayEvictTime": "0s", "monitorAllQuotas": true, "enableQueueHint": true, "hookPlugins": [],
            "defaultQuotaGroupMax": {"cpu": "4", "memory": "8Gi"}, "quotaGroupNamespace": "quotas",
        });
        let read = QuotaArgs::read(&given).unwrap();
        assert!(read.monitors_all && read.delay_evict.is_zero());
        assert_eq!(read.default_max[&Name::new("cpu")], 4000);
        assert_eq!(QuotaArgs::read(&read.show()), Ok(read));
        let defaults = QuotaArgs::default();
        assert_eq!(QuotaArgs::read(&defaults.show()), Ok(defaults));
    }

    #[test]
    fn all_problems_are_named() {
        let bad = json!({
            "delayEvictTime": "soon", "revokePodInterval": "0s", "monitorAllQuotas": 1,
            "systemQuotaGroupMax": {"cpu": "-1"}, "hookPlugins": [{"key": "x"}], "extra": 1,
        });
        let fields: Vec<String> = QuotaArgs::read(&bad).unwrap_err().into_iter().map(|e| e.field).collect();
        assert_eq!(
            fields,
            [
                "extra",
                "monitorAllQuotas",
                "hookPlugins",
                "delayEvictTime",
                "revokePodInterval",
                "systemQuotaGroupMax"
            ]
        );
    }
}
