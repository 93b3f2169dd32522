//! Columns and cells of `kubectl get` for the built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::pods;

/// The columns of a kind, and the function that computes its cells.
pub(crate) struct Printer {
    /// Columns: name, type, priority, description.
    pub columns: &'static [(&'static str, &'static str, i64, &'static str)],
    /// Returns the cells of an object.
    pub cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// The column that every kind starts with.
pub(crate) const NAME: (&str, &str, i64, &str) = ("Name", "string", 0, "Name of the object.");
/// The column with the time since creation.
pub(crate) const AGE: (&str, &str, i64, &str) = ("Age", "string", 0, "Time since creation.");

/// The columns of a kind without columns of its own.
pub(crate) const PLAIN: Printer =
    Printer { columns: &[NAME, AGE], cells: |object, now| vec![name(object), created(object, now)] };

pub(crate) const PODS: Printer = Printer {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Containers that are ready, of all."),
        ("Status", "string", 0, "What the containers are doing."),
        ("Restarts", "string", 0, "How often containers were restarted."),
        AGE,
        ("IP", "string", 1, "Address of the pod."),
        ("Node", "string", 1, "Node that the pod is assigned to."),
        ("Nominated Node", "string", 1, "Node on which room is being made for the pod."),
        ("Readiness Gates", "string", 1, "Extra conditions that are met, of all."),
    ],
    cells: pod,
};

pub(crate) const NODES: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0, "Whether the node is ready and schedulable."),
        ("Roles", "string", 0, "Roles from the node's labels."),
        AGE,
        ("Version", "string", 0, "Version of the kubelet."),
        ("Internal-IP", "string", 1, "Address inside the cluster."),
        ("External-IP", "string", 1, "Address outside the cluster."),
        ("OS-Image", "string", 1, "Operating system."),
        ("Kernel-Version", "string", 1, "Version of the kernel."),
        ("Container-Runtime", "string", 1, "Runtime and its version."),
    ],
    cells: node,
};

pub(crate) const NAMESPACES: Printer = Printer {
    columns: &[NAME, ("Status", "string", 0, "Phase of the namespace."), AGE],
    cells: |o, now| vec![name(o), text(&o["status"]["phase"], ""), created(o, now)],
};

pub(crate) const EVENTS: Printer = Printer {
    columns: &[
        ("Last Seen", "string", 0, "Time since it happened last."),
        ("Type", "string", 0, "Normal or Warning."),
        ("Reason", "string", 0, "Why it was reported."),
        ("Object", "string", 0, "What it is about."),
        ("Subobject", "string", 1, "The part of the object."),
        ("Source", "string", 1, "Who reported it."),
        ("Message", "string", 0, "What happened."),
        ("First Seen", "string", 1, "Time since it happened first."),
        ("Count", "string", 1, "How often it happened."),
        ("Name", "string", 1, "Name of the event."),
    ],
    cells: event,
};

pub(crate) const DEPLOYMENTS: Printer = Printer {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Ready pods, of those wanted."),
        ("Up-to-date", "integer", 0, "Pods of the newest template."),
        ("Available", "integer", 0, "Pods that can serve."),
        AGE,
        ("Containers", "string", 1, "Names of the containers."),
        ("Images", "string", 1, "Images of the containers."),
        ("Selector", "string", 1, "Labels of the pods."),
    ],
    cells: |o, now| {
        let ready = format!("{}/{}", number(&o["status"]["readyReplicas"]), number(&o["spec"]["replicas"]));
        let status = |key: &str| json!(number(&o["status"][key]));
        let mut cells = vec![
            name(o),
            ready.into(),
            status("updatedReplicas"),
            status("availableReplicas"),
            created(o, now),
        ];
        cells.extend(template(o));
        cells
    },
};

pub(crate) const REPLICA_SETS: Printer = Printer {
    columns: &[
        NAME,
        ("Desired", "integer", 0, "Pods wanted."),
        ("Current", "integer", 0, "Pods there are."),
        ("Ready", "integer", 0, "Pods that are ready."),
        AGE,
        ("Containers", "string", 1, "Names of the containers."),
        ("Images", "string", 1, "Images of the containers."),
        ("Selector", "string", 1, "Labels of the pods."),
    ],
    cells: |o, now| {
        let counts = [&o["spec"]["replicas"], &o["status"]["replicas"], &o["status"]["readyReplicas"]];
        let mut cells = vec![name(o)];
        cells.extend(counts.map(|count| json!(number(count))));
        cells.push(created(o, now));
        cells.extend(template(o));
        cells
    },
};

pub(crate) const STATEFUL_SETS: Printer = Printer {
    columns: &[
        NAME,
        ("Ready", "string", 0, "Ready pods, of those wanted."),
        AGE,
        ("Containers", "string", 1, "Names of the containers."),
        ("Images", "string", 1, "Images of the containers."),
    ],
    cells: |o, now| {
        let ready = format!("{}/{}", number(&o["status"]["readyReplicas"]), number(&o["spec"]["replicas"]));
        let mut cells = vec![name(o), ready.into(), created(o, now)];
        cells.extend(template(o).into_iter().take(2));
        cells
    },
};

pub(crate) const SERVICES: Printer = Printer {
    columns: &[
        NAME,
        ("Type", "string", 0, "Where it can be reached from."),
        ("Cluster-IP", "string", 0, "Address inside the cluster."),
        ("External-IP", "string", 0, "Address outside the cluster."),
        ("Port(s)", "string", 0, "Ports and protocols."),
        AGE,
        ("Selector", "string", 1, "Labels of the pods."),
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let ports = spec["ports"].as_array().into_iter().flatten();
        let ports: Vec<String> = ports
            .map(|p| format!("{}/{}", number(&p["port"]), p["protocol"].as_str().unwrap_or("TCP")))
            .collect();
        let or_none = |text: String| Value::from(if text.is_empty() { "<none>".to_owned() } else { text });
        vec![
            name(o),
            text(&spec["type"], ""),
            text(&spec["clusterIP"], "<none>"),
            text(&spec["externalName"], "<none>"),
            or_none(ports.join(",")),
            created(o, now),
            or_none(pairs(&spec["selector"])),
        ]
    },
};

pub(crate) const JOBS: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0, "How far the job is."),
        ("Completions", "string", 0, "Pods that succeeded, of those wanted."),
        ("Duration", "string", 0, "Time from start to end."),
        AGE,
        ("Containers", "string", 1, "Names of the containers."),
        ("Images", "string", 1, "Images of the containers."),
        ("Selector", "string", 1, "Labels of the pods."),
    ],
    cells: job,
};

pub(crate) const BUDGETS: Printer = Printer {
    columns: &[
        NAME,
        ("Min Available", "string", 0, "Pods that must stay."),
        ("Max Unavailable", "string", 0, "Pods that may be missing."),
        ("Allowed Disruptions", "integer", 0, "Pods that may go now."),
        AGE,
    ],
    cells: |o, now| {
        let bound = |key: &str| match &o["spec"][key] {
            Value::Null => "N/A".into(),
            Value::String(text) => json!(text),
            other => other.to_string().into(),
        };
        let allowed = json!(number(&o["status"]["disruptionsAllowed"]));
        vec![name(o), bound("minAvailable"), bound("maxUnavailable"), allowed, created(o, now)]
    },
};

pub(crate) const PRIORITY_CLASSES: Printer = Printer {
    columns: &[
        NAME,
        ("Value", "integer", 0, "The priority."),
        ("Global-Default", "boolean", 0, "Whether pods without a class get it."),
        AGE,
        ("PreemptionPolicy", "string", 0, "Whether its pods preempt."),
    ],
    cells: |o, now| {
        let is_default = o["globalDefault"] == true;
        vec![
            name(o),
            json!(number(&o["value"])),
            is_default.into(),
            created(o, now),
            text(&o["preemptionPolicy"], ""),
        ]
    },
};

pub(crate) const LEASES: Printer = Printer {
    columns: &[NAME, ("Holder", "string", 0, "Who holds it."), AGE],
    cells: |o, now| vec![name(o), text(&o["spec"]["holderIdentity"], ""), created(o, now)],
};

pub(crate) const DEFINITIONS: Printer = Printer {
    columns: &[NAME, ("Created At", "date", 0, "Time of creation.")],
    cells: |o, _| vec![name(o), o["metadata"]["creationTimestamp"].clone()],
};

pub(crate) fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// Returns a string, or `absent` if it is missing or empty.
pub(crate) fn text(value: &Value, absent: &str) -> Value {
    value.as_str().filter(|t| !t.is_empty()).unwrap_or(absent).into()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Returns the cell with the age of an object.
pub(crate) fn created(object: &Value, now: Timestamp) -> Value {
    object["metadata"]["creationTimestamp"]
        .as_str()
        .map_or_else(|| "<unknown>".into(), |time| age(time, now).into())
}

/// Formats the time since `time` as kubectl does: `5s`, `3m20s`, `7h`, `12d`.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return "<unknown>".into() };
    span(now.duration_since(time).as_secs().max(0))
}

fn span(seconds: i64) -> String {
    let two = |big: i64, unit: &str, small: i64, rest: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{rest}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10800 => format!("{minutes}m"),
        10800..28800 => two(hours, "h", minutes % 60, "m"),
        28800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    }
}

fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let total = object["spec"]["containers"].as_array().map_or(0, Vec::len);
    let states = object["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = states.iter().filter(|c| c["ready"] == true).count();
    let restarts: i64 = states.iter().map(|c| number(&c["restartCount"])).sum();
    let is_gated = object["status"]["conditions"].as_array().is_some_and(|list| {
        list.iter().any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated")
    });
    let phase = object["status"]["phase"].as_str().unwrap_or("Unknown");
    let status =
        match (object["metadata"]["deletionTimestamp"].is_string(), object["status"]["reason"].as_str()) {
            (true, _) => "Terminating",
            (_, Some(reason)) if !reason.is_empty() => reason,
            _ if is_gated => "SchedulingGated",
            _ if phase == "Succeeded" => "Completed",
            _ if phase == "Pending" && object["spec"]["nodeName"].is_string() => "ContainerCreating",
            _ => phase,
        };
    let none = "<none>";
    let gates = object["spec"]["readinessGates"].as_array().map_or(&[][..], Vec::as_slice);
    let met =
        gates.iter().filter(|g| pods::has_condition(object, g["conditionType"].as_str().unwrap_or_default()));
    let gates = if gates.is_empty() { none.into() } else { format!("{}/{}", met.count(), gates.len()) };
    vec![
        name(object),
        format!("{ready}/{total}").into(),
        status.into(),
        restarts.to_string().into(),
        created(object, now),
        text(&object["status"]["podIP"], none),
        text(&object["spec"]["nodeName"], none),
        text(&object["status"]["nominatedNodeName"], none),
        gates.into(),
    ]
}

fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|c| c["type"] == "Ready").map(|c| c["status"] == "True");
    let mut status = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(k, _)| k.strip_prefix("node-role.kubernetes.io/")).collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let info = &object["status"]["nodeInfo"];
    let address = |kind: &str| {
        let mut all = object["status"]["addresses"].as_array().into_iter().flatten();
        all.find(|a| a["type"] == kind).map_or_else(|| "<none>".into(), |a| a["address"].clone())
    };
    vec![
        name(object),
        status.into(),
        roles.into(),
        created(object, now),
        text(&info["kubeletVersion"], ""),
        address("InternalIP"),
        address("ExternalIP"),
        text(&info["osImage"], "<unknown>"),
        text(&info["kernelVersion"], "<unknown>"),
        text(&info["containerRuntimeVersion"], "<unknown>"),
    ]
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let time = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| object.pointer(key).and_then(Value::as_str));
        found.map_or_else(|| "<unknown>".to_owned(), |time| age(time, now))
    };
    let about = &object["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let source =
        text(&object["source"]["component"], object["reportingComponent"].as_str().unwrap_or_default());
    let count = object["series"]["count"].as_i64().or(object["count"].as_i64()).unwrap_or(1);
    vec![
        time(&["/series/lastObservedTime", "/lastTimestamp", "/eventTime"]).into(),
        text(&object["type"], ""),
        text(&object["reason"], ""),
        format!("{kind}/{}", about["name"].as_str().unwrap_or_default()).into(),
        text(&about["fieldPath"], ""),
        source,
        text(&object["message"], ""),
        time(&["/firstTimestamp", "/eventTime"]).into(),
        count.to_string().into(),
        name(object),
    ]
}

fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let state = if pods::has_condition(object, "Complete") {
        "Complete"
    } else if pods::has_condition(object, "Failed") {
        "Failed"
    } else if spec["suspend"] == true {
        "Suspended"
    } else {
        "Running"
    };
    let done = format!("{}/{}", number(&status["succeeded"]), spec["completions"].as_i64().unwrap_or(1));
    let end = status["completionTime"].as_str().and_then(|t| t.parse().ok()).unwrap_or(now);
    let duration = status["startTime"].as_str().map_or_else(String::new, |start| age(start, end));
    let mut cells = vec![name(object), state.into(), done.into(), duration.into(), created(object, now)];
    cells.extend(template(object));
    cells
}

/// Returns the cells with the containers, images and selector of a workload.
fn template(object: &Value) -> Vec<Value> {
    let containers =
        object["spec"]["template"]["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let join = |key: &str| {
        let all: Vec<&str> = containers.iter().filter_map(|c| c[key].as_str()).collect();
        Value::from(all.join(","))
    };
    let selector = &object["spec"]["selector"];
    // The selector of a ReplicationController is the map of labels itself.
    let labels = selector.get("matchLabels").unwrap_or(selector);
    vec![join("name"), join("image"), pairs(labels).into()]
}

/// Formats labels as a selector.
fn pairs(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let pairs = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let cases =
            [(5, "5s"), (119, "119s"), (200, "3m20s"), (3_600, "60m"), (14_460, "4h1m"), (90_000, "25h")];
        let days = [(200_000, "2d7h"), (900_000, "10d"), (70_000_000, "2y80d")];
        for (seconds, text) in cases.into_iter().chain(days) {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }
}
