//! Columns and cells of `kubectl get` for the built-in kinds.

use jiff::Timestamp;
use serde_json::Value;

use crate::fields::{self, list};
use crate::kinds::pods;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

type Str = &'static str;

/// A column, with the rule for its cells.
pub(crate) struct Column {
    pub name: Str,
    /// The type: `string`, `integer`, `date`, …
    pub kind: Str,
    /// 0 if the column is always shown, 1 if only with `-o wide`.
    pub priority: i64,
    pub about: Str,
    cell: Cell,
}

/// What stands in the cell of an object. Fields are JSON pointers.
enum Cell {
    /// The value of a field.
    Value(Str),
    /// The text of a field, or the second text if it is missing or empty.
    Text(Str, Str),
    /// The number in a field, 0 if it is missing.
    Number(Str),
    /// The number of items in a field.
    Count(Str),
    /// Whether a field is true.
    Flag(Str),
    /// The result of a function.
    Own(fn(&Value, Timestamp) -> Value),
}

impl Column {
    const fn new(name: Str, kind: Str, about: Str, cell: Cell) -> Self {
        Self { name, kind, priority: 0, about, cell }
    }

    /// Makes it a column that is only shown with `-o wide`.
    pub(crate) const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    pub(crate) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let at = |field: &str| object.pointer(field).unwrap_or(&Value::Null);
        match self.cell {
            Cell::Value(field) => at(field).clone(),
            Cell::Text(field, absent) => text_of(at(field), absent),
            Cell::Number(field) => number_of(at(field)).into(),
            Cell::Count(field) => list(at(field)).len().into(),
            Cell::Flag(field) => (at(field) == true).into(),
            Cell::Own(cell) => cell(object, now),
        }
    }
}

/// Returns a column with the value of a field.
pub(crate) const fn value(name: Str, kind: Str, field: Str, about: Str) -> Column {
    Column::new(name, kind, about, Cell::Value(field))
}

/// Returns a column with the text of a field.
pub(crate) const fn text(name: Str, field: Str, about: Str) -> Column {
    text_or(name, field, "", about)
}

/// Returns a column with the text of a field, or with `absent` if it is missing or empty.
pub(crate) const fn text_or(name: Str, field: Str, absent: Str, about: Str) -> Column {
    Column::new(name, "string", about, Cell::Text(field, absent))
}

/// Returns a column with the number in a field.
const fn number(name: Str, field: Str, about: Str) -> Column {
    Column::new(name, "integer", about, Cell::Number(field))
}

/// Returns a column with the number of items in a field.
pub(crate) const fn count(name: Str, field: Str, about: Str) -> Column {
    Column::new(name, "integer", about, Cell::Count(field))
}

/// Returns a column that says whether a field is true.
pub(crate) const fn flag(name: Str, field: Str, about: Str) -> Column {
    Column::new(name, "boolean", about, Cell::Flag(field))
}

/// Returns a column with what a function returns.
pub(crate) const fn own(name: Str, about: Str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column::new(name, "string", about, Cell::Own(cell))
}

/// The column that every kind starts with.
pub(crate) const NAME: Column = value("Name", "string", "/metadata/name", "Name of the object.");
/// The column with the time since creation.
pub(crate) const AGE: Column =
    own("Age", "Time since creation.", |o, now| since(o, &["/metadata/creationTimestamp"], now));
const CONTAINERS: Column =
    own("Containers", "Names of the containers.", |o, _| of_containers(o, "name")).wide();
const IMAGES: Column = own("Images", "Images of the containers.", |o, _| of_containers(o, "image")).wide();
const SELECTOR: Column = own("Selector", "Labels of the pods.", |o, _| selector(o).into()).wide();
const READY: Column = own("Ready", "Ready pods, of those wanted.", |o, _| {
    let (ready, wanted) = (&o["status"]["readyReplicas"], &o["spec"]["replicas"]);
    format!("{}/{}", number_of(ready), number_of(wanted)).into()
});

/// The columns of a kind without columns of its own.
pub(crate) const PLAIN: &[Column] = &[NAME, AGE];

pub(crate) const PODS: &[Column] = &[
    NAME,
    own("Ready", "Containers that are ready, of all.", |o, _| {
        let ready = list(&o["status"]["containerStatuses"]).iter().filter(|c| c["ready"] == true);
        format!("{}/{}", ready.count(), list(&o["spec"]["containers"]).len()).into()
    }),
    own("Status", "What the containers are doing.", |o, _| pod_status(o).into()),
    own("Restarts", "How often containers were restarted.", |o, _| {
        let counts = list(&o["status"]["containerStatuses"]).iter().map(|c| number_of(&c["restartCount"]));
        counts.sum::<i64>().to_string().into()
    }),
    AGE,
    text_or("IP", "/status/podIP", NONE, "Address of the pod.").wide(),
    text_or("Node", "/spec/nodeName", NONE, "Node that the pod is assigned to.").wide(),
    text_or(
        "Nominated Node",
        "/status/nominatedNodeName",
        NONE,
        "Node on which room is being made for the pod.",
    )
    .wide(),
    own("Readiness Gates", "Extra conditions that are met, of all.", |o, _| {
        let gates = list(&o["spec"]["readinessGates"]);
        let met = gates.iter().filter(|gate| pods::has_condition(o, fields::text(&gate["conditionType"])));
        if gates.is_empty() { NONE.into() } else { format!("{}/{}", met.count(), gates.len()).into() }
    })
    .wide(),
];

pub(crate) const NODES: &[Column] = &[
    NAME,
    own("Status", "Whether the node is ready and schedulable.", |o, _| node_status(o).into()),
    own("Roles", "Roles from the node's labels.", |o, _| {
        let labels = o["metadata"]["labels"].as_object().into_iter().flatten();
        let roles = labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
        or_none(roles.collect::<Vec<_>>().join(","))
    }),
    AGE,
    text("Version", "/status/nodeInfo/kubeletVersion", "Version of the kubelet."),
    own("Internal-IP", "Address inside the cluster.", |o, _| address(o, "InternalIP")).wide(),
    own("External-IP", "Address outside the cluster.", |o, _| address(o, "ExternalIP")).wide(),
    text_or("OS-Image", "/status/nodeInfo/osImage", UNKNOWN, "Operating system.").wide(),
    text_or("Kernel-Version", "/status/nodeInfo/kernelVersion", UNKNOWN, "Version of the kernel.").wide(),
    text_or(
        "Container-Runtime",
        "/status/nodeInfo/containerRuntimeVersion",
        UNKNOWN,
        "Runtime and its version.",
    )
    .wide(),
];

pub(crate) const NAMESPACES: &[Column] =
    &[NAME, text("Status", "/status/phase", "Phase of the namespace."), AGE];

pub(crate) const EVENTS: &[Column] = &[
    own("Last Seen", "Time since it happened last.", |o, now| {
        since(o, &["/series/lastObservedTime", "/lastTimestamp", "/eventTime"], now)
    }),
    text("Type", "/type", "Normal or Warning."),
    text("Reason", "/reason", "Why it was reported."),
    own("Object", "What it is about.", |o, _| {
        let about = &o["involvedObject"];
        format!("{}/{}", fields::text(&about["kind"]).to_lowercase(), fields::text(&about["name"])).into()
    }),
    text("Subobject", "/involvedObject/fieldPath", "The part of the object.").wide(),
    own("Source", "Who reported it.", |o, _| {
        text_of(&o["source"]["component"], fields::text(&o["reportingComponent"]))
    })
    .wide(),
    text("Message", "/message", "What happened."),
    own("First Seen", "Time since it happened first.", |o, now| {
        since(o, &["/firstTimestamp", "/eventTime"], now)
    })
    .wide(),
    own("Count", "How often it happened.", |o, _| {
        o["series"]["count"].as_i64().or(o["count"].as_i64()).unwrap_or(1).to_string().into()
    })
    .wide(),
    value("Name", "string", "/metadata/name", "Name of the event.").wide(),
];

pub(crate) const DEPLOYMENTS: &[Column] = &[
    NAME,
    READY,
    number("Up-to-date", "/status/updatedReplicas", "Pods of the newest template."),
    number("Available", "/status/availableReplicas", "Pods that can serve."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const REPLICA_SETS: &[Column] = &[
    NAME,
    number("Desired", "/spec/replicas", "Pods wanted."),
    number("Current", "/status/replicas", "Pods there are."),
    number("Ready", "/status/readyReplicas", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const STATEFUL_SETS: &[Column] = &[NAME, READY, AGE, CONTAINERS, IMAGES];

pub(crate) const SERVICES: &[Column] = &[
    NAME,
    text("Type", "/spec/type", "Where it can be reached from."),
    text_or("Cluster-IP", "/spec/clusterIP", NONE, "Address inside the cluster."),
    text_or("External-IP", "/spec/externalName", NONE, "Address outside the cluster."),
    own("Port(s)", "Ports and protocols.", |o, _| {
        let ports = list(&o["spec"]["ports"]).iter();
        let shown =
            |p: &Value| format!("{}/{}", number_of(&p["port"]), p["protocol"].as_str().unwrap_or("TCP"));
        or_none(ports.map(shown).collect::<Vec<_>>().join(","))
    }),
    AGE,
    own("Selector", "Labels of the pods.", |o, _| or_none(pairs(&o["spec"]["selector"]))).wide(),
];

pub(crate) const JOBS: &[Column] = &[
    NAME,
    own("Status", "How far the job is.", |o, _| job_status(o).into()),
    own("Completions", "Pods that succeeded, of those wanted.", |o, _| {
        let wanted = o["spec"]["completions"].as_i64().unwrap_or(1);
        format!("{}/{wanted}", number_of(&o["status"]["succeeded"])).into()
    }),
    own("Duration", "Time from start to end.", |o, now| {
        let end = o["status"]["completionTime"].as_str().and_then(|time| time.parse().ok()).unwrap_or(now);
        o["status"]["startTime"].as_str().map_or_else(String::new, |start| age(start, end)).into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const BUDGETS: &[Column] = &[
    NAME,
    own("Min Available", "Pods that must stay.", |o, _| bound(&o["spec"]["minAvailable"])),
    own("Max Unavailable", "Pods that may be missing.", |o, _| bound(&o["spec"]["maxUnavailable"])),
    number("Allowed Disruptions", "/status/disruptionsAllowed", "Pods that may go now."),
    AGE,
];

pub(crate) const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    number("Value", "/value", "The priority."),
    flag("Global-Default", "/globalDefault", "Whether pods without a class get it."),
    AGE,
    text("PreemptionPolicy", "/preemptionPolicy", "Whether its pods preempt."),
];

pub(crate) const LEASES: &[Column] = &[NAME, text("Holder", "/spec/holderIdentity", "Who holds it."), AGE];

pub(crate) const DEFINITIONS: &[Column] =
    &[NAME, value("Created At", "date", "/metadata/creationTimestamp", "Time of creation.")];

/// Returns a text, or `absent` if it is missing or empty.
fn text_of(value: &Value, absent: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent).into()
}

fn or_none(text: String) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

fn number_of(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Returns the cell with the time since the first of some fields that has a time.
fn since(object: &Value, fields: &[&str], now: Timestamp) -> Value {
    let found = fields.iter().find_map(|field| object.pointer(field).and_then(Value::as_str));
    found.map_or_else(|| UNKNOWN.to_owned(), |time| age(time, now)).into()
}

/// Formats the time since `time` as kubectl does: `5s`, `3m20s`, `7h`, `12d`.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return UNKNOWN.into() };
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

fn pod_status(pod: &Value) -> &str {
    let is_gated = list(&pod["status"]["conditions"])
        .iter()
        .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
    let phase = pod["status"]["phase"].as_str().unwrap_or("Unknown");
    match fields::text(&pod["status"]["reason"]) {
        _ if pod["metadata"]["deletionTimestamp"].is_string() => "Terminating",
        reason if !reason.is_empty() => reason,
        _ if is_gated => "SchedulingGated",
        _ if phase == "Succeeded" => "Completed",
        _ if phase == "Pending" && pod["spec"]["nodeName"].is_string() => "ContainerCreating",
        _ => phase,
    }
}

fn node_status(node: &Value) -> String {
    let ready = match fields::condition(node, "Ready") {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordon = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordon}")
}

fn address(node: &Value, kind: &str) -> Value {
    let found = list(&node["status"]["addresses"]).iter().find(|address| address["type"] == kind);
    found.map_or_else(|| NONE.into(), |address| address["address"].clone())
}

fn job_status(job: &Value) -> &'static str {
    if pods::has_condition(job, "Complete") {
        "Complete"
    } else if pods::has_condition(job, "Failed") {
        "Failed"
    } else if job["spec"]["suspend"] == true {
        "Suspended"
    } else {
        "Running"
    }
}

/// Returns the cell with a bound of a disruption budget: a number, a percentage, or none.
fn bound(bound: &Value) -> Value {
    match bound {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

/// Returns the cell with a field of the containers of a workload.
fn of_containers(workload: &Value, key: &str) -> Value {
    let containers = list(&workload["spec"]["template"]["spec"]["containers"]).iter();
    containers.filter_map(|c| c[key].as_str()).collect::<Vec<_>>().join(",").into()
}

/// Formats the selector of a workload.
pub(crate) fn selector(workload: &Value) -> String {
    let selector = &workload["spec"]["selector"];
    // The selector of a ReplicationController is the map of labels itself.
    pairs(selector.get("matchLabels").unwrap_or(selector))
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
