//! Which changes of a pod spec are allowed, and the error for any other.
//!
//! An API server shows a rejected change as a unified diff of its internal form of the spec. That form has one line per
//! field, in a fixed order and with its own names; [`FIELDS`] is that order.

use serde_json::{Map, Value};

use crate::errors::FieldError;
use crate::fields::{copy, list};

const RULE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// How an absent field looks in the internal form.
#[derive(Clone, Copy)]
enum Zero {
    Null,
    Text,
    False,
}

/// Fields of the spec: internal name, JSON key, and form when absent.
const FIELDS: &[(&str, &str, Zero)] = &[
    ("Volumes", "volumes", Zero::Null),
    ("InitContainers", "initContainers", Zero::Null),
    ("Containers", "containers", Zero::Null),
    ("EphemeralContainers", "ephemeralContainers", Zero::Null),
    ("RestartPolicy", "restartPolicy", Zero::Text),
    ("TerminationGracePeriodSeconds", "terminationGracePeriodSeconds", Zero::Null),
    ("ActiveDeadlineSeconds", "activeDeadlineSeconds", Zero::Null),
    ("DNSPolicy", "dnsPolicy", Zero::Text),
    ("NodeSelector", "nodeSelector", Zero::Null),
    ("ServiceAccountName", "serviceAccountName", Zero::Text),
    ("AutomountServiceAccountToken", "automountServiceAccountToken", Zero::Null),
    ("NodeName", "nodeName", Zero::Text),
    ("SecurityContext", "securityContext", Zero::Null),
    ("ImagePullSecrets", "imagePullSecrets", Zero::Null),
    ("Hostname", "hostname", Zero::Text),
    ("Subdomain", "subdomain", Zero::Text),
    ("SetHostnameAsFQDN", "setHostnameAsFQDN", Zero::Null),
    ("Affinity", "affinity", Zero::Null),
    ("SchedulerName", "schedulerName", Zero::Text),
    ("Tolerations", "tolerations", Zero::Null),
    ("HostAliases", "hostAliases", Zero::Null),
    ("PriorityClassName", "priorityClassName", Zero::Text),
    ("Priority", "priority", Zero::Null),
    ("PreemptionPolicy", "preemptionPolicy", Zero::Null),
    ("DNSConfig", "dnsConfig", Zero::Null),
    ("ReadinessGates", "readinessGates", Zero::Null),
    ("RuntimeClassName", "runtimeClassName", Zero::Null),
    ("Overhead", "overhead", Zero::Null),
    ("EnableServiceLinks", "enableServiceLinks", Zero::Null),
    ("TopologySpreadConstraints", "topologySpreadConstraints", Zero::Null),
    ("OS", "os", Zero::Null),
    ("SchedulingGates", "schedulingGates", Zero::Null),
    ("ResourceClaims", "resourceClaims", Zero::Null),
    ("Resources", "resources", Zero::Null),
    ("HostnameOverride", "hostnameOverride", Zero::Null),
    ("SchedulingGroup", "schedulingGroup", Zero::Null),
];

/// The first fields of the internal security context. Some of them are fields of the spec in the public form.
const SECURITY: &[(&str, &str, Zero)] = &[
    ("HostNetwork", "hostNetwork", Zero::False),
    ("HostPID", "hostPID", Zero::False),
    ("HostIPC", "hostIPC", Zero::False),
    ("ShareProcessNamespace", "shareProcessNamespace", Zero::Null),
    ("HostUsers", "hostUsers", Zero::Null),
];

/// Returns the error for a change that is not allowed, or `None`.
pub(crate) fn check(new: &Value, old: &Value) -> Option<FieldError> {
    if new == old {
        return None;
    }
    gates(new, old).or_else(|| {
        let allowed = with_allowed_changes(new, old);
        let diff = || unified(&lines(&allowed), &lines(new));
        (*new != allowed).then(|| FieldError::forbidden("spec", &format!("{RULE}\n{}", diff())))
    })
}

/// Rejects new scheduling gates; gates may only be removed.
fn gates(new: &Value, old: &Value) -> Option<FieldError> {
    let known = list(&old["schedulingGates"]);
    let added = list(&new["schedulingGates"]).iter().find(|gate| !known.contains(gate))?;
    let why =
        format!("only deletion is allowed, but found new scheduling gate '{}'", added["name"].as_str()?);
    Some(FieldError::forbidden("spec.schedulingGates", &why))
}

/// Returns the old spec with the allowed changes of the new one.
fn with_allowed_changes(new: &Value, old: &Value) -> Value {
    let mut allowed = old.clone();
    let mut take = |key: &str| copy(new, &mut allowed, key);
    take("activeDeadlineSeconds");
    take("schedulingGates");
    if !list(&old["schedulingGates"]).is_empty() {
        take("nodeSelector");
        take("affinity");
    }
    let keeps_all =
        |tolerations: &Vec<Value>| list(&old["tolerations"]).iter().all(|t| tolerations.contains(t));
    if new["tolerations"].as_array().is_some_and(keeps_all) {
        take("tolerations");
    }
    if new["terminationGracePeriodSeconds"] == 1 && old["terminationGracePeriodSeconds"].as_i64() < Some(0) {
        take("terminationGracePeriodSeconds");
    }
    for key in ["containers", "initContainers"] {
        let pairs = allowed.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, new) in pairs.zip(list(&new[key])) {
            if container["name"] == new["name"] {
                copy(new, container, "image");
            }
        }
    }
    allowed
}

/// Returns a spec in the internal form, one field per line.
fn lines(spec: &Value) -> Vec<String> {
    let mut out = vec!["{".to_owned()];
    for (name, key, zero) in FIELDS {
        match spec.get(*key) {
            Some(context) if *name == "SecurityContext" => security(spec, context, &mut out),
            value => field(name, value.cloned().unwrap_or_else(|| absent(*zero)), 1, &mut out),
        }
    }
    out.push("}".to_owned());
    out
}

fn security(spec: &Value, context: &Value, out: &mut Vec<String>) {
    out.push(" \"SecurityContext\": {".to_owned());
    for (name, key, zero) in SECURITY {
        field(name, spec.get(*key).cloned().unwrap_or_else(|| absent(*zero)), 2, out);
    }
    for (key, value) in context.as_object().into_iter().flatten() {
        field(&capital(key), value.clone(), 2, out);
    }
    out.push(" },".to_owned());
}

fn absent(zero: Zero) -> Value {
    match zero {
        Zero::Null => Value::Null,
        Zero::Text => "".into(),
        Zero::False => false.into(),
    }
}

fn capital(key: &str) -> String {
    let mut chars = key.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn field(name: &str, value: Value, depth: usize, out: &mut Vec<String>) {
    let named = Map::from_iter([(name.to_owned(), value)]);
    block(&Value::Object(named), depth, out);
}

/// Appends the content of an object or list, indented by one space per level.
fn block(value: &Value, depth: usize, out: &mut Vec<String>) {
    let indent = " ".repeat(depth);
    let mut entry = |head: String, value: &Value| match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push(format!("{indent}{head}{{"));
            block(value, depth + 1, out);
            out.push(format!("{indent}}},"));
        }
        Value::Array(items) if !items.is_empty() => {
            out.push(format!("{indent}{head}["));
            block(value, depth + 1, out);
            out.push(format!("{indent}],"));
        }
        plain => out.push(format!("{indent}{head}{plain},")),
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let name = if depth == 1 { key.clone() } else { capital(key) };
                entry(format!("\"{name}\": "), value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| entry(String::new(), item)),
        _ => {}
    }
}

/// Returns a unified diff of the first region in which two texts differ, with three lines of context.
fn unified(old: &[String], new: &[String]) -> String {
    const AROUND: usize = 3;
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(AROUND);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let stop = (old_end + AROUND).min(old.len());
    let added = new_end - same;
    let length = stop - start;
    let mut text =
        format!("@@ -{},{} +{},{} @@\n", start + 1, length, start + 1, length - (old_end - same) + added);
    let mut push = |mark: &str, lines: &[String]| {
        for line in lines {
            text.push_str(&format!("{mark}{line}\n"));
        }
    };
    push(" ", &old[start..same]);
    push("-", &old[same..old_end]);
    push("+", &new[same..new_end]);
    push(" ", &old[old_end..stop]);
    text
}
