//! The arguments of DeviceShare.

use std::time::Duration;

use pellucid_framework::plugin::ArgsError;
use pellucid_model::duration;
use serde_json::{Value, json};

use super::allocator::{Scoring, ScoringStrategy as Strategy};
use super::amounts::{FPGA, MEMORY, RATIO, RDMA, Resource};
use super::gradient::GradientArgs;
use pellucid_framework::args::{Problems, field};

/// The arguments of DeviceShare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceArgs {
    pub(super) scoring: Scoring,
    /// Given when nodes and GPUs are rated by fragmentation; `scoring` is for other devices then.
    pub(super) gradient: Option<GradientArgs>,
    /// Whether devices take no part when a node's NUMA policy is kept.
    pub(super) ignores_numa: bool,
    /// Length of the windows in which larger pods are taken from the queue first.
    pub(super) queue_window: Duration,
}

/// The longest window, which is the one unless the arguments say otherwise.
const QUEUE_WINDOW: Duration = Duration::from_secs(1);
const WINDOW: &str = "queueWindow";
const NO_ALIGNMENT: &str = "disableDeviceNUMATopologyAlignment";

impl DeviceArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let weights = [RATIO, MEMORY, RDMA, FPGA].map(|resource| (resource, 1)).to_vec();
        let mut made = Self {
            scoring: Scoring { strategy: Strategy::LeastAllocated, weights },
            gradient: None,
            ignores_numa: false,
            queue_window: QUEUE_WINDOW,
        };
        if let Some(fields) = problems.object("", args, &["scoringStrategy", NO_ALIGNMENT, WINDOW]) {
            made.read_strategy(&mut problems, field(fields, "scoringStrategy"));
            match field(fields, NO_ALIGNMENT) {
                Value::Null => {}
                Value::Bool(on) => made.ignores_numa = *on,
                other => problems.add(NO_ALIGNMENT, "must be true or false", other),
            }
            let value = field(fields, WINDOW);
            if let Some(text) = problems.text(WINDOW, value) {
                match duration::parse(text).filter(|window| *window <= QUEUE_WINDOW) {
                    Some(window) => made.queue_window = window,
                    None => problems.add(WINDOW, "must be a duration from 0s to 1s", value),
                }
            }
        }
        problems.into_result().map(|()| made)
    }

    fn read_strategy(&mut self, problems: &mut Problems, value: &Value) {
        const PATH: &str = "scoringStrategy";
        let [pods, window, lookahead] = GradientArgs::FIELDS;
        let known = ["type", "resources", pods, window, lookahead];
        let Some(fields) = problems.object(PATH, value, &known) else { return };
        let gradient = GradientArgs::read(problems, fields);
        let kind = field(fields, "type");
        match problems.text("scoringStrategy.type", kind).unwrap_or("") {
            "" | "LeastAllocated" => {}
            "MostAllocated" => self.scoring.strategy = Strategy::MostAllocated,
            "FragmentationGradient" => {
                self.scoring.strategy = Strategy::MostAllocated;
                self.gradient = Some(gradient);
            }
            _ => {
                let choice = "must be LeastAllocated, MostAllocated or FragmentationGradient";
                problems.add("scoringStrategy.type", choice, kind);
            }
        }
        for name in GradientArgs::FIELDS.into_iter().filter(|_| self.gradient.is_none()) {
            if !field(fields, name).is_null() {
                problems.add(
                    format!("{PATH}.{name}"),
                    "needs type FragmentationGradient",
                    field(fields, name),
                );
            }
        }
        let mut weights = Vec::new();
        for (i, element) in
            problems.list("scoringStrategy.resources", field(fields, "resources")).iter().enumerate()
        {
            let at = format!("scoringStrategy.resources[{i}]");
            let Some(fields) = problems.object(&at, element, &["name", "weight"]) else { continue };
            let name = field(fields, "name");
            let resource = problems.text(&format!("{at}.name"), name).and_then(Resource::find);
            let weight = field(fields, "weight");
            let number = problems.integer(&format!("{at}.weight"), weight).filter(|n| *n != 0).unwrap_or(1);
            if !(1..=100).contains(&number) {
                problems.add(format!("{at}.weight"), "must be 1 to 100", weight);
            }
            match resource {
                Some(resource) => weights.push((resource, number)),
                None => problems.add(format!("{at}.name"), "must be a resource of devices", name),
            }
        }
        if !weights.is_empty() {
            self.scoring.weights = weights;
        }
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        let resources = self.scoring.weights.iter();
        let resources =
            resources.map(|(resource, weight)| json!({"name": resource.name(), "weight": weight}));
        let kind = match (&self.gradient, self.scoring.strategy) {
            (Some(_), _) => "FragmentationGradient",
            (None, Strategy::LeastAllocated) => "LeastAllocated",
            (None, Strategy::MostAllocated) => "MostAllocated",
        };
        let mut strategy = json!({"type": kind, "resources": resources.collect::<Vec<_>>()});
        for (name, value) in self.gradient.iter().flat_map(GradientArgs::show) {
            strategy[name] = value;
        }
        let window = duration::show(self.queue_window);
        json!({"scoringStrategy": strategy, NO_ALIGNMENT: self.ignores_numa, WINDOW: window})
    }
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let names: Vec<&str> = Resource::all().map(Resource::name).collect();
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "scoringStrategy": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "type": {"enum": ["LeastAllocated", "MostAllocated", "FragmentationGradient"]},
                    "resources": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["name"],
                            "properties": {
                                "name": {"enum": names},
                                "weight": {"type": "integer", "minimum": 1, "maximum": 100},
                            },
                        },
                    },
                },
            },
            NO_ALIGNMENT: {"type": "boolean"},
            WINDOW: {"type": "string"},
        },
    });
    for (name, of_field) in GradientArgs::schema() {
        schema["properties"]["scoringStrategy"]["properties"][name] = of_field;
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_shown_alike() {
        let default = DeviceArgs::read(&Value::Null).expect("valid");
        assert_eq!(DeviceArgs::read(&default.show()), Ok(default));
        let given = json!({
            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "koordinator.sh/rdma", "weight": 3}]},
            NO_ALIGNMENT: true,
            WINDOW: "500ms",
        });
        let read = DeviceArgs::read(&given).expect("valid");
        assert_eq!(read.show(), given);
    }

    #[test]
    fn every_problem_is_named() {
        let resources = json!([{"name": "cpu"}, {"name": "koordinator.sh/fpga", "weight": 101}]);
        let strategy = json!({"type": "Best", "resources": resources, "lookahead": 5});
        let given = json!({"scoringStrategy": strategy, NO_ALIGNMENT: 1, WINDOW: "2s"});
        let problems = DeviceArgs::read(&given).expect_err("invalid");
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "scoringStrategy.type",
                "scoringStrategy.lookahead",
                "scoringStrategy.resources[0].name",
                "scoringStrategy.resources[1].weight",
                NO_ALIGNMENT,
                WINDOW
            ]
        );
    }

    #[test]
    fn typical_pods_are_read_and_shown_alike() {
        let pods = json!([
            {"weight": 3, "cpu": "2500m", "gpus": 1, "percent": 50},
            {"weight": 1, "cpu": "4", "gpus": 2, "percent": 100, "nodeLabel": {"key": "model", "values": ["A10", "T4"]}},
            {"weight": 7, "cpu": "8"},
        ]);
        let resources = json!([{"name": "koordinator.sh/rdma", "weight": 1}]);
        let given = json!({
            "scoringStrategy": {"type": "FragmentationGradient", "resources": resources, "typicalPods": pods,
                "typicalPodsWindow": 500, "lookahead": 100},
            NO_ALIGNMENT: false,
            WINDOW: "0s",
        });
        assert_eq!(DeviceArgs::read(&given).expect("valid").show(), given);
        let wrong = json!([{"weight": 0, "cpu": "x", "gpus": -1, "percent": 101, "nodeLabel": {"values": []}, "odd": 1}, 5]);
        let strategy = json!({"type": "FragmentationGradient", "typicalPods": wrong, "typicalPodsWindow": 1,
            "lookahead": 10_001});
        let problems = DeviceArgs::read(&json!({"scoringStrategy": strategy})).expect_err("invalid");
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        let of_first = ["odd", "weight", "gpus", "percent", "cpu", "nodeLabel.key", "nodeLabel.values"];
        let mut expected: Vec<String> =
            ["typicalPodsWindow", "lookahead"].map(|name| format!("scoringStrategy.{name}")).to_vec();
        expected.extend(of_first.map(|name| format!("scoringStrategy.typicalPods[0].{name}")));
        expected.push("scoringStrategy.typicalPods[1]".to_owned());
        assert_eq!(fields, expected);
    }
}
