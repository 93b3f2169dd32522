//! The arguments of NodeAffinity: `addedAffinity`, in the format of a pod's `affinity.nodeAffinity`.

use pellucid_framework::plugin::ArgsError;
use pellucid_model::Name;
use pellucid_model::selector::{NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement};
use serde_json::{Value, json};

use super::super::args::{Problems, field, is_qualified_name, join};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Parses the affinity and returns it with the given JSON value. Fails with every problem found, not only the first.
pub(super) fn read(args: &Value) -> Result<(NodeAffinity, Value), Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut added = NodeAffinity::default();
    let mut given = Value::Null;
    if let Some(fields) = problems.object("", args, &["addedAffinity"]) {
        given = field(fields, "addedAffinity").clone();
        if let Some(fields) = problems.object("addedAffinity", &given, &[REQUIRED, PREFERRED]) {
            added.required = read_required(&mut problems, field(fields, REQUIRED));
            added.preferred = read_preferred(&mut problems, field(fields, PREFERRED));
        }
    }
    problems.into_result().map(|()| (added, given))
}

fn read_required(problems: &mut Problems, value: &Value) -> Option<Box<[NodeSelectorTerm]>> {
    let path = join("addedAffinity", REQUIRED);
    let fields = problems.object(&path, value, &["nodeSelectorTerms"])?;
    let path = join(&path, "nodeSelectorTerms");
    let list = problems.list(&path, field(fields, "nodeSelectorTerms"));
    Some(list.iter().enumerate().map(|(i, v)| read_term(problems, &format!("{path}[{i}]"), v)).collect())
}

fn read_preferred(problems: &mut Problems, value: &Value) -> Box<[PreferredTerm]> {
    let path = join("addedAffinity", PREFERRED);
    let mut all = Vec::new();
    for (i, element) in problems.list(&path, value).iter().enumerate() {
        let at = format!("{path}[{i}]");
        let Some(fields) = problems.object(&at, element, &["weight", "preference"]) else { continue };
        let weight = problems.integer(&join(&at, "weight"), field(fields, "weight")).unwrap_or(0);
        if !(1..=100).contains(&weight) {
            problems.add(join(&at, "weight"), "must be 1 to 100", field(fields, "weight"));
        }
        let term = read_term(problems, &join(&at, "preference"), field(fields, "preference"));
        all.push(PreferredTerm { weight: weight.clamp(0, 100) as i32, term });
    }
    all.into()
}

fn read_term(problems: &mut Problems, path: &str, value: &Value) -> NodeSelectorTerm {
    let Some(fields) = problems.object(path, value, &["matchExpressions", "matchFields"]) else {
        return NodeSelectorTerm::default();
    };
    let mut requirements = |name: &str| {
        let path = join(path, name);
        let list = problems.list(&path, field(fields, name)).iter().enumerate();
        list.filter_map(|(i, v)| read_requirement(problems, &format!("{path}[{i}]"), v)).collect()
    };
    let term = NodeSelectorTerm {
        expressions: requirements("matchExpressions"),
        fields: requirements("matchFields"),
    };
    for (i, requirement) in term.fields.iter().enumerate() {
        let is_plain = &*requirement.key == "metadata.name"
            && matches!(requirement.operator, Operator::In | Operator::NotIn)
            && requirement.values.len() == 1;
        if !is_plain {
            let at = format!("{path}.matchFields[{i}]");
            problems.add(at, "must be metadata.name In or NotIn one value", &field(fields, "matchFields")[i]);
        }
    }
    term
}

fn read_requirement(problems: &mut Problems, path: &str, value: &Value) -> Option<Requirement> {
    let fields = problems.object(path, value, &["key", "operator", "values"])?;
    let key = problems.text(&join(path, "key"), field(fields, "key")).unwrap_or("");
    if !is_qualified_name(key) {
        problems.add(join(path, "key"), "must be a label key", field(fields, "key"));
    }
    let values: Box<[Name]> =
        problems.texts(&join(path, "values"), field(fields, "values")).into_iter().map(Name::new).collect();
    let n = values.len();
    let (operator, fits) = match problems.text(&join(path, "operator"), field(fields, "operator")) {
        Some("In") => (Operator::In, n > 0),
        Some("NotIn") => (Operator::NotIn, n > 0),
        Some("Exists") => (Operator::Exists, n == 0),
        Some("DoesNotExist") => (Operator::DoesNotExist, n == 0),
        Some("Gt") => (Operator::Gt, n == 1 && values[0].parse::<i64>().is_ok()),
        Some("Lt") => (Operator::Lt, n == 1 && values[0].parse::<i64>().is_ok()),
        _ => {
            let choice = "must be In, NotIn, Exists, DoesNotExist, Gt or Lt";
            problems.add(join(path, "operator"), choice, field(fields, "operator"));
            return None;
        }
    };
    if !fits {
        let rule =
            "must be some for In and NotIn, none for Exists and DoesNotExist, one integer for Gt and Lt";
        problems.add(join(path, "values"), rule, field(fields, "values"));
    }
    Some(Requirement { key: key.into(), operator, values })
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    let requirement = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["key", "operator"],
        "properties": {
            "key": {"type": "string"},
            "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
            "values": {"type": "array", "items": {"type": "string"}},
        },
    });
    let requirements = json!({"type": "array", "items": requirement});
    let term = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"matchExpressions": requirements.clone(), "matchFields": requirements},
    });
    let preferred = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["weight", "preference"],
        "properties": {"weight": {"type": "integer", "minimum": 1, "maximum": 100}, "preference": term.clone()},
    });
    let required = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"nodeSelectorTerms": {"type": "array", "items": term}},
    });
    let preferred = json!({"type": "array", "items": preferred});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "addedAffinity": {
                "type": "object",
                "additionalProperties": false,
                "properties": {REQUIRED: required, PREFERRED: preferred},
            },
        },
    })
}
