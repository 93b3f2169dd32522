//! The arguments of NodeResourcesFit.

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::super::args::{Problems, field, is_qualified_name, join};
use super::strategy::{MAX_SHAPE_SCORE, ShapePoint, Strategy};
use pellucid_plugin_helper::scored::{
    ScoredResource, cpu_and_memory, is_extended, read_resources, show_resources,
};

/// The arguments of NodeResourcesFit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FitArgs {
    ignored_resources: Vec<String>,
    ignored_groups: Vec<String>,
    /// The scoring strategy.
    pub(super) strategy: Strategy,
    /// The scored resources, with weights of 1 to 100.
    pub(super) resources: Vec<ScoredResource>,
}

impl FitArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self {
            ignored_resources: Vec::new(),
            ignored_groups: Vec::new(),
            strategy: Strategy::LeastAllocated,
            resources: cpu_and_memory(),
        };
        let known = ["ignoredResources", "ignoredResourceGroups", "scoringStrategy"];
        if let Some(fields) = problems.object("", args, &known) {
            made.ignored_resources = names(&mut problems, "ignoredResources", field(fields, known[0]), false);
            made.ignored_groups =
                names(&mut problems, "ignoredResourceGroups", field(fields, known[1]), true);
            made.read_strategy(&mut problems, field(fields, known[2]));
        }
        problems.into_result().map(|()| made)
    }

    fn read_strategy(&mut self, problems: &mut Problems, value: &Value) {
        const PATH: &str = "scoringStrategy";
        const RATIO: &str = "requestedToCapacityRatio";
        let Some(fields) = problems.object(PATH, value, &["type", "resources", RATIO]) else { return };
        self.resources = read_resources(problems, "scoringStrategy.resources", field(fields, "resources"));
        for (i, resource) in self.resources.iter().enumerate() {
            if !(1..=100).contains(&resource.weight) {
                let path = format!("scoringStrategy.resources[{i}].weight");
                problems.add(path, "must be 1 to 100", &json!(resource.weight));
            }
        }
        let ratio = field(fields, RATIO);
        let ratio_path = join(PATH, RATIO);
        let kind = problems.text("scoringStrategy.type", field(fields, "type")).unwrap_or("LeastAllocated");
        self.strategy = match kind {
            "LeastAllocated" | "" => Strategy::LeastAllocated,
            "MostAllocated" => Strategy::MostAllocated,
            "RequestedToCapacityRatio" => {
                if ratio.is_null() {
                    problems.add(ratio_path, "must be given for type RequestedToCapacityRatio", ratio);
                    return;
                }
                self.strategy = Strategy::RequestedToCapacityRatio(read_shape(problems, &ratio_path, ratio));
                return;
            }
            _ => {
                let choice = "must be LeastAllocated, MostAllocated or RequestedToCapacityRatio";
                return problems.add("scoringStrategy.type", choice, field(fields, "type"));
            }
        };
        if !ratio.is_null() {
            problems.add(ratio_path, "must not be given unless type is RequestedToCapacityRatio", ratio);
        }
    }

    /// Returns whether the filter ignores a resource. Only extended resources can be ignored.
    pub(super) fn ignores(&self, name: &str) -> bool {
        if self.ignored_resources.is_empty() && self.ignored_groups.is_empty() || !is_extended(name) {
            return false;
        }
        let group = name.split('/').next().unwrap_or("");
        self.ignored_resources.iter().any(|r| r == name) || self.ignored_groups.iter().any(|g| g == group)
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        let mut strategy = json!({
            "type": self.strategy.as_str(),
            "resources": show_resources(&self.resources),
        });
        if let Strategy::RequestedToCapacityRatio(shape) = &self.strategy {
            let points = shape.iter().map(|p| json!({"utilization": p.utilization, "score": p.score}));
            strategy["requestedToCapacityRatio"] = json!({"shape": points.collect::<Value>()});
        }
        json!({
            "ignoredResources": self.ignored_resources,
            "ignoredResourceGroups": self.ignored_groups,
            "scoringStrategy": strategy,
        })
    }
}

fn names(problems: &mut Problems, path: &str, value: &Value, are_groups: bool) -> Vec<String> {
    let all = problems.texts(path, value);
    for (i, name) in all.iter().enumerate() {
        let at = format!("{path}[{i}]");
        if are_groups && name.contains('/') {
            problems.add(at, "must be the part of resource names before the '/'", &json!(name));
        } else if !is_qualified_name(name) {
            problems.add(at, "must be the name of a resource", &json!(name));
        }
    }
    all.into_iter().map(String::from).collect()
}

fn read_shape(problems: &mut Problems, path: &str, ratio: &Value) -> Vec<ShapePoint> {
    let Some(fields) = problems.object(path, ratio, &["shape"]) else { return Vec::new() };
    let path = join(path, "shape");
    let mut shape: Vec<ShapePoint> = Vec::new();
    let points = problems.list(&path, field(fields, "shape"));
    for (i, point) in points.iter().enumerate() {
        let at = format!("{path}[{i}]");
        let Some(fields) = problems.object(&at, point, &["utilization", "score"]) else {
            if point.is_null() {
                problems.add(at, "must be an object", point);
            }
            continue;
        };
        let mut number = |name: &str, max: i64| {
            let at = join(&at, name);
            let value = problems.integer(&at, field(fields, name)).unwrap_or(0);
            if !(0..=max).contains(&value) {
                problems.add(at, format!("must be 0 to {max}"), &json!(value));
            }
            value
        };
        let made =
            ShapePoint { utilization: number("utilization", 100), score: number("score", MAX_SHAPE_SCORE) };
        if shape.last().is_some_and(|last| last.utilization >= made.utilization) {
            problems.add(join(&at, "utilization"), "must be above the one before", &json!(made.utilization));
        }
        shape.push(made);
    }
    if points.is_empty() {
        problems.add(path, "must have at least one point", field(fields, "shape"));
    }
    shape
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let resource = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "weight": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
        },
    });
    let point = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "utilization": {"type": "integer", "minimum": 0, "maximum": 100},
            "score": {"type": "integer", "minimum": 0, "maximum": MAX_SHAPE_SCORE},
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "ignoredResources": {"type": "array", "items": {"type": "string"}},
            "ignoredResourceGroups": {"type": "array", "items": {"type": "string"}},
            "scoringStrategy": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "type": {"enum": ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]},
                    "resources": {"type": "array", "items": resource},
                    "requestedToCapacityRatio": {
                        "type": "object",
                        "additionalProperties": false,
                        "properties": {"shape": {"type": "array", "minItems": 1, "items": point}},
                    },
                },
            },
        },
    })
}
