//! What pods typically request, and the arguments that say where that is known from.

use std::sync::Arc;

use pellucid_framework::args::{Problems, field, is_qualified_name};
use pellucid_model::selector::{NodeAffinity, NodeSelectorTerm, Operator, Requirement};
use pellucid_model::{Name, PodSpec, quantity};
use serde_json::{Value, json};

use super::super::device::DeviceType;
use super::super::request::Request;

/// Number of pods over which typical ones are counted, unless the arguments say otherwise.
const WINDOW: u32 = 10_000;
/// Greatest number of typical pods that arguments list.
const MOST: usize = 1000;
/// The least and the greatest window, and the least and the greatest lookahead.
const LIMITS: ((u32, u32), (u32, u32)) = ((100, 1_000_000), (0, 10_000));
/// Greatest weight of a typical pod.
const MOST_WEIGHT: i64 = 1_000_000_000;

/// What a pod requests, as far as fragmentation goes by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct Wish {
    /// CPU in thousandths of a core.
    pub(super) milli_cpu: i64,
    /// Number of GPUs; 0 for none.
    pub(super) gpus: u32,
    /// Percent of each GPU, 1 to 100.
    pub(super) percent: u8,
    /// The nodes that the pod accepts.
    pub(super) nodes: NodeAffinity,
}

/// A wish, and how many pods have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Given {
    pub(super) wish: Wish,
    pub(super) weight: i64,
}

/// Where typical pods are known from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct GradientArgs {
    /// Typical pods of the configuration; empty when they are counted.
    pub(super) given: Arc<[Given]>,
    /// Number of pods over which they are counted.
    pub(super) window: u32,
    /// Number of typical pods with which a node is filled up to rate it; 0 for FGD's rating.
    pub(super) lookahead: u32,
}

impl GradientArgs {
    /// Returns whether both are equal. Asked at every decision, so pointers are compared first.
    #[inline]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.given, &other.given)
            && self.window == other.window
            && self.lookahead == other.lookahead
            || self == other
    }
}

impl Default for GradientArgs {
    fn default() -> Self {
        Self { given: Arc::default(), window: WINDOW, lookahead: 0 }
    }
}

impl Wish {
    /// Reads what a pod requests. `None` for pods that say nothing about others: those of DaemonSets, invalid requests,
    /// and GPU memory in bytes, whose part of a card depends on the card.
    pub(super) fn of(spec: &PodSpec) -> Option<Self> {
        if spec.is_daemon {
            return None;
        }
        let request = Request::of(spec).ok()?;
        let part = request.as_ref().and_then(|r| r.parts.iter().find(|part| part.kind == DeviceType::Gpu));
        let (gpus, percent) = match part {
            Some(part) => (u32::try_from(part.count).ok()?, part.percent()?),
            None => (0, 0),
        };
        let nodes = NodeAffinity { preferred: Box::default(), ..spec.affinity.clone() };
        Some(Self { milli_cpu: spec.requests.list.milli_cpu, gpus, percent, nodes })
    }
}

impl GradientArgs {
    /// Names of the fields of `scoringStrategy`.
    pub(in super::super) const FIELDS: [&str; 3] = ["typicalPods", "typicalPodsWindow", "lookahead"];

    /// Reads the fields of `scoringStrategy`.
    pub(in super::super) fn read(problems: &mut Problems, strategy: &serde_json::Map<String, Value>) -> Self {
        let path = |name: &str| format!("scoringStrategy.{name}");
        let [pods, window, lookahead] = Self::FIELDS;
        let mut made = Self::default();
        for (name, (least, most), to) in
            [(window, LIMITS.0, &mut made.window), (lookahead, LIMITS.1, &mut made.lookahead)]
        {
            let value = field(strategy, name);
            let Some(number) = problems.integer(&path(name), value) else { continue };
            match u32::try_from(number).ok().filter(|n| (least..=most).contains(n)) {
                Some(number) => *to = number,
                None => problems.add(path(name), format!("must be {least} to {most}"), value),
            }
        }
        let value = field(strategy, pods);
        let list = problems.list(&path(pods), value);
        if list.len() > MOST {
            problems.add(path(pods), format!("must not be more than {MOST}"), &json!(list.len()));
            return made;
        }
        let given = list.iter().enumerate();
        let given = given.filter_map(|(i, value)| read_one(problems, &format!("{}[{i}]", path(pods)), value));
        made.given = given.collect();
        made
    }

    /// Returns the fields as they stand in a configuration.
    pub(in super::super) fn show(&self) -> [(&'static str, Value); 3] {
        let [pods, window, lookahead] = Self::FIELDS;
        let given: Vec<Value> = self.given.iter().map(Given::show).collect();
        [(pods, json!(given)), (window, json!(self.window)), (lookahead, json!(self.lookahead))]
    }

    /// Returns the JSON schema of the fields.
    pub(in super::super) fn schema() -> [(&'static str, Value); 3] {
        let [pods, window, lookahead] = Self::FIELDS;
        let number =
            |(least, most): (u32, u32)| json!({"type": "integer", "minimum": least, "maximum": most});
        let label = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["key", "values"],
            "properties": {
                "key": {"type": "string"},
                "values": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            },
        });
        let pod = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "weight": {"type": "integer", "minimum": 1, "maximum": MOST_WEIGHT},
                "cpu": {"type": "string"},
                "gpus": {"type": "integer", "minimum": 0, "maximum": 1024},
                "percent": {"type": "integer", "minimum": 1, "maximum": 100},
                "nodeLabel": label,
            },
        });
        [
            (pods, json!({"type": "array", "items": pod, "maxItems": MOST})),
            (window, number(LIMITS.0)),
            (lookahead, number(LIMITS.1)),
        ]
    }
}

fn read_one(problems: &mut Problems, at: &str, value: &Value) -> Option<Given> {
    let fields = problems.object(at, value, &["weight", "cpu", "gpus", "percent", "nodeLabel"])?;
    let mut number = |name: &str, (least, most): (i64, i64), absent: i64| {
        let (path, value) = (format!("{at}.{name}"), field(fields, name));
        let number = problems.integer(&path, value).unwrap_or(absent);
        if !(least..=most).contains(&number) {
            problems.add(path, format!("must be {least} to {most}"), value);
        }
        number.clamp(least, most)
    };
    let weight = number("weight", (1, MOST_WEIGHT), 1);
    let gpus = number("gpus", (0, 1024), 0);
    let percent = number("percent", (1, 100), 100);
    let cpu = problems.text(&format!("{at}.cpu"), field(fields, "cpu")).unwrap_or("0");
    let milli_cpu = quantity::milli(cpu).unwrap_or(-1);
    if milli_cpu < 0 {
        problems.add(format!("{at}.cpu"), "must be a quantity that is not negative", field(fields, "cpu"));
    }
    let nodes = read_label(problems, &format!("{at}.nodeLabel"), field(fields, "nodeLabel"));
    let wish = Wish {
        milli_cpu: milli_cpu.max(0),
        gpus: gpus as u32,
        percent: if gpus > 0 { percent as u8 } else { 0 },
        nodes,
    };
    Some(Given { wish, weight })
}

fn read_label(problems: &mut Problems, at: &str, value: &Value) -> NodeAffinity {
    let Some(fields) = problems.object(at, value, &["key", "values"]) else { return NodeAffinity::default() };
    let key = problems.text(&format!("{at}.key"), field(fields, "key")).unwrap_or("");
    if !is_qualified_name(key) {
        problems.add(format!("{at}.key"), "must be a label key", field(fields, "key"));
    }
    let values: Box<[Name]> =
        problems.texts(&format!("{at}.values"), field(fields, "values")).into_iter().map(Name::new).collect();
    if values.is_empty() {
        problems.add(format!("{at}.values"), "must have at least one value", field(fields, "values"));
    }
    let requirement = Requirement { key: key.into(), operator: Operator::In, values };
    let term = NodeSelectorTerm { expressions: Box::new([requirement]), fields: Box::default() };
    NodeAffinity { required: Some(Box::new([term])), ..NodeAffinity::default() }
}

impl Given {
    fn show(&self) -> Value {
        let Wish { milli_cpu, gpus, percent, nodes } = &self.wish;
        let mut made = json!({"weight": self.weight, "cpu": quantity::format_milli(*milli_cpu)});
        if *gpus > 0 {
            made["gpus"] = json!(gpus);
            made["percent"] = json!(percent);
        }
        let terms = nodes.required.iter().flatten();
        for requirement in terms.flat_map(|term| &term.expressions) {
            let values: Vec<&str> = requirement.values.iter().map(Name::as_str).collect();
            made["nodeLabel"] = json!({"key": requirement.key.as_str(), "values": values});
        }
        made
    }
}
