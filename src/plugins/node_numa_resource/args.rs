//! The arguments of NodeNUMAResource (`NodeNUMAResourceArgs`), of Koordinator 0.7 and of today.

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::cpus::accumulator::{AllocateStrategy, BindPolicy};
use pellucid_framework::args::{Problems, field, join};
use pellucid_plugin_helper::scored::{ScoredResource, cpu_and_memory, read_resources, show_resources};

pellucid_model::named! {
    /// Which nodes, or NUMA nodes, score high.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StrategyKind {
        /// Those with the most left.
        LeastAllocated = "LeastAllocated",
        /// Those with the least left.
        MostAllocated = "MostAllocated",
    }
}

/// A scoring strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strategy {
    pub(super) kind: StrategyKind,
    pub(super) resources: Vec<ScoredResource>,
}

impl Default for Strategy {
    fn default() -> Self {
        Self { kind: StrategyKind::LeastAllocated, resources: cpu_and_memory() }
    }
}

/// The arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumaArgs {
    /// The bind policy of pods with CPUs of their own that name none.
    pub(super) default_bind: BindPolicy,
    /// Scores nodes.
    pub(super) scoring: Strategy,
    /// Scores the NUMA nodes of a node.
    pub(super) numa_scoring: Strategy,
}

impl Default for NumaArgs {
    fn default() -> Self {
        Self {
            default_bind: BindPolicy::FullPcpus,
            scoring: Strategy::default(),
            numa_scoring: Strategy::default(),
        }
    }
}

/// 0.7 calls the first one `preferredCPUBindPolicy` and the last one `numaAllocateStrategy`.
const FIELDS: [&str; 5] = [
    "defaultCPUBindPolicy",
    "preferredCPUBindPolicy",
    "scoringStrategy",
    "numaScoringStrategy",
    "numaAllocateStrategy",
];

impl NumaArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self::default();
        if let Some(fields) = problems.object("", args, &FIELDS) {
            for name in ["preferredCPUBindPolicy", "defaultCPUBindPolicy"] {
                match problems.text(name, field(fields, name)) {
                    None | Some("" | "Default") => {}
                    Some("FullPCPUs") => made.default_bind = BindPolicy::FullPcpus,
                    Some("SpreadByPCPUs") => made.default_bind = BindPolicy::SpreadByPcpus,
                    Some(_) => problems.add(name, "must be FullPCPUs or SpreadByPCPUs", field(fields, name)),
                }
            }
            made.scoring = strategy(&mut problems, "scoringStrategy", field(fields, "scoringStrategy"));
            made.numa_scoring =
                strategy(&mut problems, "numaScoringStrategy", field(fields, "numaScoringStrategy"));
            let name = "numaAllocateStrategy";
            if let Some(kind) = kind(&mut problems, name, field(fields, name)) {
                made.numa_scoring.kind = kind;
            }
        }
        problems.into_result().map(|()| made)
    }

    /// Returns which NUMA node is filled first on nodes without a label.
    pub(super) fn allocate_strategy(&self) -> AllocateStrategy {
        match self.numa_scoring.kind {
            StrategyKind::MostAllocated => AllocateStrategy::MostAllocated,
            StrategyKind::LeastAllocated => AllocateStrategy::LeastAllocated,
        }
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(&self) -> Value {
        let strategy =
            |of: &Strategy| json!({"type": of.kind.as_str(), "resources": show_resources(&of.resources)});
        json!({
            "defaultCPUBindPolicy": self.default_bind.as_str(),
            "scoringStrategy": strategy(&self.scoring),
            "numaScoringStrategy": strategy(&self.numa_scoring),
        })
    }
}

fn strategy(problems: &mut Problems, path: &str, value: &Value) -> Strategy {
    let Some(fields) = problems.object(path, value, &["type", "resources"]) else {
        return Strategy::default();
    };
    let given = kind(problems, &join(path, "type"), field(fields, "type"));
    let resources = read_resources(problems, &join(path, "resources"), field(fields, "resources"));
    for (i, resource) in resources.iter().enumerate() {
        if !(1..=100).contains(&resource.weight) {
            let at = format!("{path}.resources[{i}].weight");
            problems.add(at, "must be 1 to 100", &json!(resource.weight));
        }
    }
    Strategy { kind: given.unwrap_or(StrategyKind::LeastAllocated), resources }
}

fn kind(problems: &mut Problems, path: &str, value: &Value) -> Option<StrategyKind> {
    let given = problems.text(path, value).filter(|text| !text.is_empty())?;
    let found = StrategyKind::ALL.into_iter().find(|kind| kind.as_str() == given);
    if found.is_none() {
        problems.add(path, "must be LeastAllocated or MostAllocated", value);
    }
    found
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let resource = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "minimum": 0, "maximum": 100}},
    });
    let kind = json!({"enum": StrategyKind::ALL.map(StrategyKind::as_str)});
    let strategy = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"type": kind, "resources": {"type": "array", "items": resource}},
    });
    let bind = json!({"enum": ["", "Default", "FullPCPUs", "SpreadByPCPUs"]});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "defaultCPUBindPolicy": bind,
            "preferredCPUBindPolicy": bind,
            "scoringStrategy": strategy,
            "numaScoringStrategy": strategy,
            "numaAllocateStrategy": kind,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_shown() {
        let given = json!({
            "defaultCPUBindPolicy": "SpreadByPCPUs",
            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]},
            "numaScoringStrategy": {"type": "MostAllocated", "resources": [{"name": "memory", "weight": 1}]},
        });
        let read = NumaArgs::read(&given).expect("valid arguments");
        assert_eq!(read.show(), given);
        assert_eq!(read.allocate_strategy(), AllocateStrategy::MostAllocated);
        assert_eq!(NumaArgs::read(&read.show()), Ok(read));
        assert_eq!(NumaArgs::read(&Value::Null), Ok(NumaArgs::default()));
        let old = NumaArgs::read(
            &json!({"preferredCPUBindPolicy": "SpreadByPCPUs", "numaAllocateStrategy": "MostAllocated"}),
        );
        let old = old.expect("arguments of 0.7");
        assert_eq!(
            (old.default_bind, old.numa_scoring.kind),
            (BindPolicy::SpreadByPcpus, StrategyKind::MostAllocated)
        );
    }

    #[test]
    fn all_problems_are_found() {
        let bad = json!({
            "defaultCPUBindPolicy": "ConstrainedBurst",
            "scoringStrategy": {"type": "Any", "resources": [{"name": "cpu", "weight": 101}]},
            "numaScoringStrategy": [],
        });
        let problems = NumaArgs::read(&bad).expect_err("problems");
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        let want = [
            "defaultCPUBindPolicy",
            "scoringStrategy.type",
            "scoringStrategy.resources[0].weight",
            "numaScoringStrategy",
        ];
        assert_eq!(fields, want);
    }
}
