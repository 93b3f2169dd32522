//! The arguments of PodTopologySpread: the default constraints for pods that have none.

use std::sync::LazyLock;

use pellucid_framework::plugin::ArgsError;
use pellucid_model::Name;
use pellucid_model::relations::{NodeInclusion, SpreadConstraint};
use serde_json::{Map, Value, json};

use super::super::args::{Problems, field, is_qualified_name, join};
use super::super::relations::{HOSTNAME, ZONE};

const CONSTRAINTS: &str = "defaultConstraints";
const TYPE: &str = "defaultingType";
const FIELDS: &[&str] = &[
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "labelSelector",
    "minDomains",
    "matchLabelKeys",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
];

/// The constraints of `defaultingType: System`.
pub(super) static SYSTEM: LazyLock<Defaults> = LazyLock::new(|| {
    let soft = |max_skew, key: &Name| SpreadConstraint { max_skew, ..constraint(key.clone(), false) };
    let constraints = [soft(3, &HOSTNAME), soft(5, &ZONE)];
    Defaults { constraints: constraints.into(), is_system: true, given: json!([]) }
});

/// The constraints for pods without constraints of their own.
#[derive(Clone, Debug)]
pub(super) struct Defaults {
    /// Constraints without selectors; a selector is built for each pod.
    pub(super) constraints: Box<[SpreadConstraint]>,
    /// Whether nodes without a zone are scored too (`defaultingType: System`).
    pub(super) is_system: bool,
    /// `defaultConstraints` as given in the configuration.
    given: Value,
}

impl Defaults {
    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        json!({CONSTRAINTS: self.given, TYPE: if self.is_system { "System" } else { "List" }})
    }
}

fn constraint(topology_key: Name, is_hard: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew: 1,
        topology_key,
        is_hard,
        selector: None,
        min_domains: 1,
        node_affinity_policy: NodeInclusion::Honor,
        node_taints_policy: NodeInclusion::Ignore,
    }
}

/// Parses the arguments. Fails with every problem found, not only the first.
pub(super) fn read(args: &Value) -> Result<Defaults, Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut made = SYSTEM.clone();
    if let Some(fields) = problems.object("", args, &[CONSTRAINTS, TYPE]) {
        let list = problems.list(CONSTRAINTS, field(fields, CONSTRAINTS));
        made.is_system = match problems.text(TYPE, field(fields, TYPE)).unwrap_or("") {
            "" | "System" => true,
            "List" => false,
            _ => {
                problems.add(TYPE, "must be System or List", field(fields, TYPE));
                false
            }
        };
        if made.is_system && !list.is_empty() {
            problems.add(TYPE, "must be List when there are defaultConstraints", field(fields, TYPE));
        }
        if !made.is_system {
            made.given = Value::Array(list.to_vec());
            made.constraints = read_list(&mut problems, list);
        }
    }
    problems.into_result().map(|()| made)
}

fn read_list(problems: &mut Problems, list: &[Value]) -> Box<[SpreadConstraint]> {
    let mut all: Vec<SpreadConstraint> = Vec::new();
    for (i, element) in list.iter().enumerate() {
        let path = format!("{CONSTRAINTS}[{i}]");
        let Some(fields) = problems.object(&path, element, FIELDS) else {
            if element.is_null() {
                problems.add(path, "must be an object", element);
            }
            continue;
        };
        let Some(constraint) = read_constraint(problems, &path, fields) else { continue };
        let repeats = |c: &SpreadConstraint| {
            c.topology_key == constraint.topology_key && c.is_hard == constraint.is_hard
        };
        if all.iter().any(repeats) {
            problems.add(path, "must differ from the others in topologyKey or whenUnsatisfiable", element);
        }
        all.push(constraint);
    }
    all.into()
}

fn read_constraint(
    problems: &mut Problems,
    path: &str,
    fields: &Map<String, Value>,
) -> Option<SpreadConstraint> {
    let at = |name: &str| join(path, name);
    let key = problems.text(&at("topologyKey"), field(fields, "topologyKey")).unwrap_or("");
    if !is_qualified_name(key) {
        problems.add(at("topologyKey"), "must be a label key", field(fields, "topologyKey"));
    }
    let is_hard = match problems.text(&at("whenUnsatisfiable"), field(fields, "whenUnsatisfiable")) {
        Some("DoNotSchedule") => Some(true),
        Some("ScheduleAnyway") => Some(false),
        _ => {
            let choice = "must be DoNotSchedule or ScheduleAnyway";
            problems.add(at("whenUnsatisfiable"), choice, field(fields, "whenUnsatisfiable"));
            None
        }
    };
    let mut made = constraint(key.into(), is_hard.unwrap_or(true));
    let max_skew = problems.integer(&at("maxSkew"), field(fields, "maxSkew")).unwrap_or(0);
    made.max_skew = i32::try_from(max_skew).unwrap_or(0);
    if made.max_skew < 1 {
        problems.add(at("maxSkew"), "must be 1 or more", field(fields, "maxSkew"));
    }
    if let Some(min) = problems.integer(&at("minDomains"), field(fields, "minDomains")) {
        made.min_domains = i32::try_from(min).unwrap_or(i32::MAX);
    }
    if !field(fields, "labelSelector").is_null() {
        let rule = "must be absent: the selector is found for each pod";
        problems.add(at("labelSelector"), rule, field(fields, "labelSelector"));
    }
    // Validated but without effect, because the selector comes from the pod's Services and owner.
    let _ = problems.texts(&at("matchLabelKeys"), field(fields, "matchLabelKeys"));
    for (name, policy) in [
        ("nodeAffinityPolicy", &mut made.node_affinity_policy),
        ("nodeTaintsPolicy", &mut made.node_taints_policy),
    ] {
        match problems.text(&at(name), field(fields, name)) {
            None => {}
            Some("Honor") => *policy = NodeInclusion::Honor,
            Some("Ignore") => *policy = NodeInclusion::Ignore,
            Some(_) => problems.add(at(name), "must be Honor or Ignore", field(fields, name)),
        }
    }
    is_hard.map(|_| made)
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let policy = json!({"enum": ["Honor", "Ignore"]});
    let constraint = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["maxSkew", "topologyKey", "whenUnsatisfiable"],
        "properties": {
            "maxSkew": {"type": "integer", "minimum": 1},
            "topologyKey": {"type": "string"},
            "whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
            "minDomains": {"type": "integer"},
            "matchLabelKeys": {"type": "array", "items": {"type": "string"}},
            "nodeAffinityPolicy": policy.clone(),
            "nodeTaintsPolicy": policy,
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            CONSTRAINTS: {"type": "array", "items": constraint},
            TYPE: {"enum": ["System", "List"]},
        },
    })
}
