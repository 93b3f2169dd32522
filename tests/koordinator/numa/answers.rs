//! What the endpoints say at the end of a case, and how answers and annotations are made comparable.

use std::collections::BTreeSet;

use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::model::quantity;
use pellucid::plugins::node_numa_resource::NAME;
use pellucid::plugins::registry;
use serde_json::{Value, json};

use super::DEVICE_SHARE;
use super::case::Case;
use super::compare::Compared;

impl Case {
    pub(super) fn compare_answers(&self, result: &Value, out: &mut Compared) {
        for (node, theirs) in result.as_object().expect("answers by node") {
            let at = format!("{} {}", self.id, node.rsplit('-').next().unwrap_or(""));
            self.compare_answer(&at, NAME, ("nodes/:nodeName", "nodeName", node), &theirs["numa"], out);
            if !theirs["devices"].is_null() {
                let path = ("nodeDeviceSummaries/:name", "name", node.as_str());
                self.compare_answer(&at, DEVICE_SHARE, path, &theirs["devices"], out);
            }
        }
    }

    fn compare_answer(
        &self,
        at: &str,
        plugin: &str,
        (path, parameter, node): (&str, &str, &str),
        theirs: &Value,
        out: &mut Compared,
    ) {
        let registry = registry();
        let factory = registry.iter().find(|f| f.name() == plugin).expect("it is registered");
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == path).expect("it is registered");
        let params = PathParams::from([(parameter.to_owned(), node.to_owned())]);
        let view = View::new(self.core.scheduler.cluster());
        let cx = ReadContext { view, params: &params, now: self.core.now, list: &List::default() };
        let ours = (endpoint.read)(&cx).expect("an answer");
        out.answers += 1;
        if theirs["status"] == json!(500) {
            // Theirs says only that the topology is invalid; ours shows the node without one.
            out.check(at, "answer", &ours["cpuTopology"].is_null(), &true);
            return;
        }
        for (field, theirs) in theirs.as_object().into_iter().flatten() {
            let made = |value: &Value| Some(holders(plain(value))).filter(|value| !is_empty(value));
            out.check(at, field, &made(&ours[field]), &made(theirs));
        }
    }
}

/// Makes answers comparable: amounts by value, lists and objects without what is empty, no uids.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "uid");
            let kept = kept.map(|(name, value)| (name.clone(), amount(name, value)));
            // Theirs goes on to name devices' resources that were used once.
            let is_nothing = |name: &str, value: &Value| name.contains('/') && *value == json!(0);
            Value::Object(kept.filter(|(name, value)| !is_empty(value) && !is_nothing(name, value)).collect())
        }
        Value::Array(all) => all.iter().filter(|value| !is_nothing(value)).map(plain).collect(),
        Value::String(text) if text.parse::<f64>().is_ok() => json!(text.parse::<f64>().unwrap_or(0.0)),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

/// Leaves pods out that hold nothing: theirs lists those whose status is empty.
fn holders(value: Value) -> Value {
    let Value::Array(mut all) = value else { return value };
    let holds = |pod: &Value| !pod["cpuset"].is_null() || !pod["numaNodeResources"].is_null();
    all.retain(|entry| entry["namespace"].is_null() || holds(entry));
    Value::Array(all)
}

/// Returns whether a NUMA node is listed with amounts of 0 alone: theirs keeps those of pods that have gone.
fn is_nothing(value: &Value) -> bool {
    let amounts = value["resources"].as_object();
    amounts.is_some_and(|amounts| amounts.values().all(|amount| amount == "0"))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    }
}

fn amount(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("cpu", Value::String(text)) => json!(quantity::milli(text).expect("a quantity")),
        (_, Value::String(text)) if name == "memory" || name.contains('/') => {
            json!(quantity::units(text).expect("a quantity"))
        }
        _ => plain(value),
    }
}

/// Reads annotation `resource-status`.
pub(super) fn status(value: &Value) -> Value {
    plain(value)
}

/// Reads annotation `device-allocated`.
pub(super) fn devices(value: &Value) -> Value {
    plain(value)
}

/// Takes a message apart into reasons. What follows `preemption:` is arbitrary, and theirs names hints where ours has them
/// in explanations.
pub(super) fn reasons(message: &str) -> BTreeSet<String> {
    let message = message.split(" preemption:").next().unwrap_or("");
    let message = message.split_once("available: ").map_or(message, |(_, rest)| rest);
    let one = |reason: &str| match reason.split_once(" Unaligned NUMA Hint cause") {
        Some((n, _)) => format!("{n} node(s) NUMA Topology affinity error"),
        None => reason.trim_end_matches('.').to_owned(),
    };
    message.trim_end_matches('.').split(", ").map(one).collect()
}
