//! Validates names in a question of `POST /apis/v1/simulate` as an API server would.
//!
//! A name that no object can have would otherwise be planned and give an answer about an impossible cluster. Every
//! error names the field and its value.

use pellucid_http::ReadError;
use pellucid_model::Name;
use pellucid_model::naming::{is_label, is_label_value, is_qualified_name, is_subdomain};
use serde_json::Value;

/// Most characters of a client's text that an error quotes.
const SHOWN: usize = 100;

/// Returns the error for a field of the body.
pub(crate) fn invalid(field: &str, problem: &str) -> ReadError {
    ReadError::BadRequest("InvalidBody", format!("{field}: {problem}"))
}

/// Quotes a client's text, cut to [`SHOWN`] characters.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

fn must(is: bool, text: &str, field: &str, what: &str) -> Result<(), ReadError> {
    if is { Ok(()) } else { Err(invalid(field, &format!("{} is not {what}", shown(text)))) }
}

/// Checks the name of a node, a pod or a PodGroup.
pub(crate) fn object_name(text: &str, field: &str) -> Result<(), ReadError> {
    let what = "a DNS subdomain: at most 253 lower case letters, digits, '-' and '.', such as node-1.example";
    must(is_subdomain(text), text, field, what)
}

pub(crate) fn namespace(text: &str, field: &str) -> Result<(), ReadError> {
    let what = "a namespace: a DNS label of at most 63 lower case letters, digits and '-'";
    must(is_label(text), text, field, what)
}

/// Checks and returns the key of a label or a taint.
pub(crate) fn label_key(text: &str, field: &str) -> Result<Name, ReadError> {
    must(is_qualified_name(text), text, field, "a qualified name, such as example.com/pool")?;
    Ok(Name::new(text))
}

/// Checks and returns the value of a label or a taint.
pub(crate) fn label_value(text: &str, field: &str) -> Result<Name, ReadError> {
    let what = "the value of a label: at most 63 letters, digits, '-', '_' and '.'";
    must(is_label_value(text), text, field, what)?;
    Ok(Name::new(text))
}

/// Checks the name of a resource that a pod requests. `pods` is not allowed: a pod takes its slot without a request.
pub(crate) fn resource(text: &str, field: &str) -> Result<(), ReadError> {
    must(is_qualified_name(text), text, field, "a qualified name, such as cpu or example.com/gpu")?;
    let is_known = matches!(text, "cpu" | "memory" | "ephemeral-storage") || text.starts_with("hugepages-");
    let what =
        "what a pod can request: cpu, memory, ephemeral-storage, hugepages-<size>, or a name with a domain";
    must(is_known || text.contains('/'), text, field, what)
}

/// Checks the resource names in the requests and limits of a pod, its containers and its overhead.
pub(crate) fn container_resources(spec: &Value, field: &str) -> Result<(), ReadError> {
    amounts(&spec["overhead"], &format!("{field}.overhead"), resource)?;
    requests(&spec["resources"], &format!("{field}.resources"))?;
    for list in ["containers", "initContainers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            requests(&container["resources"], &format!("{field}.{list}[{at}].resources"))?;
        }
    }
    Ok(())
}

fn requests(resources: &Value, field: &str) -> Result<(), ReadError> {
    ["requests", "limits"]
        .iter()
        .try_for_each(|of| amounts(&resources[of], &format!("{field}.{of}"), resource))
}

/// Checks the resource names of a node's capacity and allocatable.
pub(crate) fn node_resources(status: &Value, field: &str) -> Result<(), ReadError> {
    let named = |text: &str, field: &str| {
        must(is_qualified_name(text), text, field, "a qualified name, such as cpu or example.com/gpu")
    };
    ["allocatable", "capacity"]
        .iter()
        .try_for_each(|of| amounts(&status[of], &format!("{field}.{of}"), named))
}

fn amounts(
    amounts: &Value,
    field: &str,
    check: impl Fn(&str, &str) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    amounts.as_object().into_iter().flatten().try_for_each(|(name, _)| check(name, field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(answer: Result<(), ReadError>) -> String {
        match answer {
            Err(ReadError::BadRequest("InvalidBody", message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_requested_is_what_a_container_can_request() {
        let spec = |name: &str| json!({"containers": [{}, {"resources": {"requests": {name: "1"}}}]});
        for name in ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"] {
            container_resources(&spec(name), "pods[0].spec").expect(name);
        }
        for name in ["pods", "gpu", "☃", "", "a b/c"] {
            let message = said(container_resources(&spec(name), "pods[0].spec"));
            let field = "pods[0].spec.containers[1].resources.requests: ";
            assert!(message.starts_with(&format!("{field}{name:?} is not ")), "{message}");
        }
        let message = said(container_resources(&json!({"overhead": {"pods": "1"}}), "s"));
        assert!(message.starts_with("s.overhead: \"pods\" "), "{message}");
        // `pods` is valid on a node.
        node_resources(&json!({"allocatable": {"pods": "10"}}), "n").expect("fine");
        let message = said(node_resources(&json!({"capacity": {"☃": "1"}}), "n.status"));
        assert!(message.starts_with("n.status.capacity: \"☃\" is not a qualified name"), "{message}");
    }

    #[test]
    fn what_somebody_sent_is_cut() {
        let message = said(object_name(&"x".repeat(5000), "f"));
        assert!(message.len() < 300 && message.contains('…'), "{message}");
    }
}
