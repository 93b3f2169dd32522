//! Placement rules of a pod: affinity and topology spread constraints.
//!
//! They are checked as by an API server, and the label keys of a new pod are merged into selectors. The server sets no
//! other defaults here: absent policies of a constraint stay absent.

use serde_json::{Value, json};

use crate::errors::FieldError;
use crate::fields::{list, text};
use crate::kinds::validate::among;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EMPTY: &str = "can not be empty";

/// Checks the affinity and the spread constraints of a pod spec or template; `path` is the path of the spec.
pub(crate) fn check(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let affinity = &spec["affinity"];
    node_affinity(&affinity["nodeAffinity"], &format!("{path}.affinity.nodeAffinity"), &mut errors);
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(&affinity[kind], &format!("{path}.affinity.{kind}"), &mut errors);
    }
    let constraints = list(&spec["topologySpreadConstraints"]);
    for (index, constraint) in constraints.iter().enumerate() {
        let here = format!("{path}.topologySpreadConstraints[{index}]");
        spread(constraint, &here, &mut errors);
        let pair =
            |constraint: &Value| ["topologyKey", "whenUnsatisfiable"].map(|key| constraint[key].clone());
        if constraints.iter().take(index).any(|other| pair(other) == pair(constraint)) {
            let field = format!("{here}.{{topologyKey, whenUnsatisfiable}}");
            let [key, when] = &pair(constraint);
            errors.push(FieldError::duplicate(field, &format!("{{{}, {}}}", text(key), text(when)).into()));
        }
    }
    errors
}

fn spread(constraint: &Value, here: &str, errors: &mut Vec<FieldError>) {
    let not_positive = "must be greater than zero";
    let skew = constraint["maxSkew"].as_i64().unwrap_or_default();
    if skew <= 0 {
        errors.push(FieldError::invalid(format!("{here}.maxSkew"), &skew.into(), not_positive));
    }
    topology_key(constraint, here, errors);
    let when = constraint["whenUnsatisfiable"].as_str().unwrap_or_default();
    let known = ["DoNotSchedule", "ScheduleAnyway"];
    if !known.contains(&when) {
        errors.push(FieldError::unsupported(format!("{here}.whenUnsatisfiable"), &when.into(), &known));
    }
    if let Some(least) = constraint["minDomains"].as_i64() {
        let field = format!("{here}.minDomains");
        if least <= 0 {
            errors.push(FieldError::invalid(&*field, &least.into(), not_positive));
        }
        if when != known[0] {
            let why = format!("can only use minDomains if whenUnsatisfiable={}, not {when}", known[0]);
            errors.push(FieldError::invalid(field, &least.into(), &why));
        }
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if !constraint[policy].is_null() {
            errors.extend(among(&constraint[policy], format!("{here}.{policy}"), &["Honor", "Ignore"]));
        }
    }
    selector(&constraint["labelSelector"], &format!("{here}.labelSelector"), errors);
    label_keys(constraint, here, errors);
}

fn topology_key(term: &Value, here: &str, errors: &mut Vec<FieldError>) {
    if term["topologyKey"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(format!("{here}.topologyKey"), EMPTY));
    }
}

fn pod_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, term) in list(&affinity[REQUIRED]).iter().enumerate() {
        pod_term(term, &format!("{path}.{REQUIRED}[{index}]"), errors);
    }
    for (index, weighted) in list(&affinity[PREFERRED]).iter().enumerate() {
        let here = format!("{path}.{PREFERRED}[{index}]");
        weight(weighted, &here, errors);
        pod_term(&weighted["podAffinityTerm"], &format!("{here}.podAffinityTerm"), errors);
    }
}

fn pod_term(term: &Value, here: &str, errors: &mut Vec<FieldError>) {
    for key in ["labelSelector", "namespaceSelector"] {
        selector(&term[key], &format!("{here}.{key}"), errors);
    }
    topology_key(term, here, errors);
    label_keys(term, here, errors);
}

fn weight(weighted: &Value, here: &str, errors: &mut Vec<FieldError>) {
    let weight = weighted["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        let why = "must be in the range 1-100";
        errors.push(FieldError::invalid(format!("{here}.weight"), &weight.into(), why));
    }
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys` of a term or constraint after the merge.
fn label_keys(term: &Value, here: &str, errors: &mut Vec<FieldError>) {
    let (keys, others) = (list(&term["matchLabelKeys"]), list(&term["mismatchLabelKeys"]));
    for (name, keys) in [("matchLabelKeys", keys), ("mismatchLabelKeys", others)] {
        if keys.is_empty() {
            continue;
        }
        if term["labelSelector"].is_null() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(format!("{here}.{name}"), why));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            let labels = &term["labelSelector"]["matchLabels"];
            let named = list(&term["labelSelector"]["matchExpressions"]).iter().filter(|e| e["key"] == *key);
            // One such expression is the merged one.
            if key.as_str().is_some_and(|key| !labels[key].is_null()) || named.count() > 1 {
                let why = format!("exists in both {name} and labelSelector");
                errors.push(FieldError::invalid(format!("{here}.{name}[{index}]"), key, &why));
            }
        }
    }
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| others.contains(key)) {
        let why = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(format!("{here}.matchLabelKeys[{index}]"), key, why));
    }
}

/// Checks the expressions of a label selector.
fn selector(selector: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, expression) in list(&selector["matchExpressions"]).iter().enumerate() {
        let here = format!("{path}.matchExpressions[{index}]");
        let operator = text(&expression["operator"]);
        errors.extend(values(expression, &here));
        if !matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist") {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(format!("{here}.operator"), &operator.into(), why));
        }
    }
}

/// Checks that an expression of a label or node selector has values if its operator needs them, and else none.
fn values(expression: &Value, here: &str) -> Option<FieldError> {
    let (operator, has_values) = (text(&expression["operator"]), !list(&expression["values"]).is_empty());
    let field = format!("{here}.values");
    match operator {
        "In" | "NotIn" if !has_values => {
            Some(FieldError::required(field, "must be specified when `operator` is 'In' or 'NotIn'"))
        }
        "Exists" | "DoesNotExist" if has_values => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(FieldError::forbidden(field, why))
        }
        _ => None,
    }
}

fn node_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let required = &affinity[REQUIRED];
    if required.is_object() {
        let here = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        let terms = list(&required["nodeSelectorTerms"]);
        if terms.is_empty() {
            errors.push(FieldError::required(&*here, "must have at least one node selector term"));
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(term, &format!("{here}[{index}]"), errors);
        }
    }
    for (index, weighted) in list(&affinity[PREFERRED]).iter().enumerate() {
        let here = format!("{path}.{PREFERRED}[{index}]");
        weight(weighted, &here, errors);
        node_term(&weighted["preference"], &format!("{here}.preference"), errors);
    }
}

fn node_term(term: &Value, here: &str, errors: &mut Vec<FieldError>) {
    for (index, expression) in list(&term["matchExpressions"]).iter().enumerate() {
        let here = format!("{here}.matchExpressions[{index}]");
        // Unlike on a real server, an unknown operator passes: a scheduler must cope with objects of newer servers, and
        // this is how demo and tests create one.
        errors.extend(values(expression, &here));
        if matches!(text(&expression["operator"]), "Gt" | "Lt") && list(&expression["values"]).len() != 1 {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(format!("{here}.values"), why));
        }
    }
    for (index, field) in list(&term["matchFields"]).iter().enumerate() {
        if field["key"] != "metadata.name" {
            let why = "not a valid field selector key";
            errors.push(FieldError::invalid(format!("{here}.matchFields[{index}].key"), &field["key"], why));
        }
    }
}

/// Merges the label keys of a new pod's terms and constraints into their selectors, with the pod's own labels.
pub(crate) fn merge_label_keys(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    if let Some(constraints) = spec.get_mut("topologySpreadConstraints") {
        each(constraints, "", &labels);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (terms, inner) in [(REQUIRED, ""), (PREFERRED, "/podAffinityTerm")] {
            if let Some(terms) = spec.pointer_mut(&format!("/affinity/{kind}/{terms}")) {
                each(terms, inner, &labels);
            }
        }
    }
}

fn each(terms: &mut Value, inner: &str, labels: &Value) {
    for term in terms.as_array_mut().into_iter().flatten() {
        if let Some(term) = term.pointer_mut(inner) {
            merge(term, labels);
        }
    }
}

fn merge(term: &mut Value, labels: &Value) {
    if !term["labelSelector"].is_object() {
        return;
    }
    let mut expressions = list(&term["labelSelector"]["matchExpressions"]).to_vec();
    let before = expressions.len();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in list(&term[keys]) {
            let Some(value) = key.as_str().and_then(|key| labels[key].as_str()) else { continue };
            let expression = json!({"key": key, "operator": operator, "values": [value]});
            // A pod that was read from a server already has its merged keys.
            if !expressions.contains(&expression) {
                expressions.push(expression);
            }
        }
    }
    if expressions.len() > before {
        term["labelSelector"]["matchExpressions"] = expressions.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(spec: Value, expected: &[&str]) {
        let errors = check(&spec, "spec");
        let texts: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn constraints_that_make_no_sense_are_refused() {
        let good = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2});
        refused(json!({"topologySpreadConstraints": [good]}), &[]);
        let with = |key: &str, value: Value| {
            let mut constraint = good.clone();
            constraint[key] = value;
            json!({"topologySpreadConstraints": [constraint]})
        };
        let here = "spec.topologySpreadConstraints[0]";
        let zero = "Invalid value: 0: must be greater than zero";
        refused(with("maxSkew", 0.into()), &[&format!("{here}.maxSkew: {zero}")]);
        refused(with("minDomains", 0.into()), &[&format!("{here}.minDomains: {zero}")]);
        refused(
            with("topologyKey", "".into()),
            &[&format!("{here}.topologyKey: Required value: can not be empty")],
        );
        let when = format!(
            "{here}.whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""
        );
        let least = "Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not";
        refused(
            with("whenUnsatisfiable", "Never".into()),
            &[&when, &format!("{here}.minDomains: {least} Never")],
        );
        refused(
            with("whenUnsatisfiable", "ScheduleAnyway".into()),
            &[&format!("{here}.minDomains: {least} ScheduleAnyway")],
        );
        let pair = "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}";
        refused(
            json!({"topologySpreadConstraints": [good, good]}),
            &[&format!("{pair}: Duplicate value: \"{{zone, DoNotSchedule}}\"")],
        );
    }

    #[test]
    fn affinity_that_makes_no_sense_is_refused() {
        let here = "spec.affinity.podAntiAffinity";
        refused(
            json!({"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": {}}]}}}),
            &[&format!("{here}.{REQUIRED}[0].topologyKey: Required value: can not be empty")],
        );
        refused(
            json!({"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]}}}),
            &[&format!("{here}.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100")],
        );
        refused(
            json!({"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "z", "matchLabelKeys": ["a"]}]}}}),
            &[&format!(
                "{here}.{REQUIRED}[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"
            )],
        );
        refused(
            json!({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "Gt", "values": []}]}
            ]}}}}),
            &[&format!(
                "spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: Required \
                 value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            )],
        );
    }

    #[test]
    fn label_keys_are_merged_into_the_selectors_once() {
        let mut pod = json!({"metadata": {"labels": {"app": "a", "hash": "1"}}, "spec": {
            "topologySpreadConstraints": [{
                "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash", "none"]
            }],
            "affinity": {"podAntiAffinity": {
                REQUIRED: [{"labelSelector": {}, "mismatchLabelKeys": ["hash"]}, {"matchLabelKeys": ["hash"]}],
                PREFERRED: [{"podAffinityTerm": {"labelSelector": {}, "matchLabelKeys": ["app"]}}],
            }},
        }});
        merge_label_keys(&mut pod);
        let spec = &pod["spec"];
        let merged = |key: &str, operator: &str, value: &str| json!([{"key": key, "operator": operator, "values": [value]}]);
        let anti = &spec["affinity"]["podAntiAffinity"];
        let expressions = |term: &Value| term["labelSelector"]["matchExpressions"].clone();
        assert_eq!(expressions(&spec["topologySpreadConstraints"][0]), merged("hash", "In", "1"));
        assert_eq!(expressions(&anti[REQUIRED][0]), merged("hash", "NotIn", "1"));
        assert_eq!(anti[REQUIRED][1], json!({"matchLabelKeys": ["hash"]}), "no selector matches nothing");
        assert_eq!(expressions(&anti[PREFERRED][0]["podAffinityTerm"]), merged("app", "In", "a"));
        let once = pod.clone();
        merge_label_keys(&mut pod);
        assert_eq!(pod, once);
    }
}
