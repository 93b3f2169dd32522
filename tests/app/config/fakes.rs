//! Plugins without behavior at the extension points of their namesakes.

use std::sync::Arc;

use pellucid::framework::endpoint::Endpoint;
use pellucid::framework::plugin::{ArgsError, Nodes, Permitted, Reservation};
use pellucid::framework::{
    Bind, CycleValue, Filter, Plugin, PluginFactory, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored,
    QueueSort, Reads, Reserve, Score, View,
};
use pellucid::framework::{Cause, Permit};
use pellucid::model::{NodeIdx, Pod, PodSpec};
use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) name: &'static str,
    pub(crate) points: &'static [&'static str],
    pub(crate) weight: i64,
    pub(crate) args: Value,
}

impl Fake {
    fn at(&self, point: &str) -> Option<&Self> {
        self.points.contains(&point).then_some(self)
    }
}

impl PreEnqueue for Fake {
    fn pre_enqueue(&self, _: &Pod) -> Result<(), Cause> {
        Ok(())
    }
}
impl QueueSort for Fake {
    fn rank(&self, _: &Pod) -> i64 {
        0
    }
}
impl PreFilter for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn pre_filter(&self, _: View<'_>, _: &PodSpec) -> PreFiltered {
        PreFiltered::Skip
    }
}
impl Filter for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn filter(&self, _: View<'_>, _: &PodSpec, _: &CycleValue, _: &mut Nodes<'_>) {}
}
impl PreScore for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn pre_score(&self, _: View<'_>, _: &PodSpec, _: &[NodeIdx]) -> PreScored {
        PreScored::Skip
    }
}
impl Score for Fake {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn score(&self, _: View<'_>, _: &PodSpec, _: &CycleValue, _: &[NodeIdx], _: &mut [i64]) {}
}
impl Reserve for Fake {
    fn reserve(&self, _: View<'_>, _: &Pod, _: NodeIdx) -> Result<Option<Reservation>, Cause> {
        Ok(None)
    }
}
impl Permit for Fake {
    fn permit(&self, _: View<'_>, _: &Pod, _: NodeIdx) -> Permitted {
        Permitted::Yes
    }
}
impl Bind for Fake {
    fn binds(&self, _: &Pod) -> bool {
        true
    }
}

impl Plugin for Fake {
    fn name(&self) -> &'static str {
        self.name
    }
    fn args(&self) -> Value {
        self.args.clone()
    }
    fn pre_enqueue(&self) -> Option<&dyn PreEnqueue> {
        Some(self.at("preEnqueue")?)
    }
    fn queue_sort(&self) -> Option<&dyn QueueSort> {
        Some(self.at("queueSort")?)
    }
    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self.at("preFilter")?)
    }
    fn filter(&self) -> Option<&dyn Filter> {
        Some(self.at("filter")?)
    }
    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self.at("preScore")?)
    }
    fn score(&self) -> Option<&dyn Score> {
        Some(self.at("score")?)
    }
    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self.at("reserve")?)
    }
    fn permit(&self) -> Option<&dyn Permit> {
        Some(self.at("permit")?)
    }
    fn bind(&self) -> Option<&dyn Bind> {
        Some(self.at("bind")?)
    }
}

impl PluginFactory for Fake {
    fn name(&self) -> &'static str {
        self.name
    }
    fn summary(&self) -> &'static str {
        "Does nothing"
    }
    fn default_weight(&self) -> i64 {
        self.weight
    }
    /// Only `NodeResourcesFit` takes arguments: `strategy`, and a list `resources` of objects with a weight.
    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        let mut made = self.clone();
        let mut errors = Vec::new();
        let error = |field: String, problem: &str, value: &Value| ArgsError {
            field,
            problem: problem.to_owned(),
            value: value.to_string(),
        };
        for (field, value) in args.as_object().into_iter().flatten() {
            match (self.name, field.as_str()) {
                ("NodeResourcesFit", "strategy") if value == "MostAllocated" || value == "LeastAllocated" => {
                    made.args["strategy"] = value.clone();
                }
                ("NodeResourcesFit", "strategy") => {
                    errors.push(error("strategy".to_owned(), "is not a strategy", value));
                }
                ("NodeResourcesFit", "resources") => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        if item["weight"].as_i64() < Some(1) {
                            let field = format!("resources[{i}].weight");
                            errors.push(error(field, "must be 1 or more", &item["weight"]));
                        }
                    }
                }
                _ => errors.push(error(field.clone(), "there is no such argument", value)),
            }
        }
        if errors.is_empty() { Ok(Arc::new(made)) } else { Err(errors) }
    }
    fn args_schema(&self) -> Value {
        json!({})
    }
    fn endpoints(&self) -> Vec<Endpoint> {
        Vec::new()
    }
}

pub(crate) fn registry() -> Vec<Box<dyn PluginFactory>> {
    let fake = |name, points, weight| -> Box<dyn PluginFactory> {
        let args =
            if name == "NodeResourcesFit" { json!({ "strategy": "LeastAllocated" }) } else { json!({}) };
        Box::new(Fake { name, points, weight, args })
    };
    vec![
        fake("SchedulingGates", &["preEnqueue"], 0),
        fake("PrioritySort", &["queueSort"], 0),
        fake("NodeName", &["filter"], 0),
        fake("TaintToleration", &["filter", "preScore", "score"], 3),
        fake("NodePorts", &["preFilter", "filter"], 0),
        fake("NodeResourcesFit", &["preFilter", "filter", "preScore", "score"], 1),
        fake("ImageLocality", &["score"], 1),
        fake("DefaultBinder", &["bind"], 0),
    ]
}
