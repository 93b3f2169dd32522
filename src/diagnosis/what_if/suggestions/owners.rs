//! The command that changes a pod, or pods that are changed alike, where they are made.
//!
//! A pod of a Deployment, a StatefulSet and so on is changed in its controller's template, a pod without a controller
//! itself. What the API server does not let be changed is deleted and created again: a pod's spec, a Job's template.
//! There is no command where what is kept of a pod does not say the exact change.

use pellucid_api::rest::explain::OwnerOf;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_model::pod::RequestField;
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, Pod};
use serde_json::{Value, json};

/// What a command changes.
struct Place<'a> {
    /// Pods that are made from one controller, or have none.
    pods: &'a [&'a Pod],
    /// Kind, as kubectl takes it, and name; of several pods without a controller the name is the variable of a loop.
    object: String,
    /// Path of the pod's spec.
    spec: &'static str,
    how: How,
    among: Among,
}

/// How a change stands among the other parts of its fix.
#[derive(Clone, Copy)]
pub(super) struct Among {
    /// Whether some part makes the pods anew, so that what a pod of a Job is given by itself would be lost.
    pub(super) is_remade: bool,
    /// Whether no later part changes the pods.
    pub(super) is_last: bool,
}

/// Largest number of pods that a command names.
pub(super) const MOST_NAMED: usize = 100;

/// How an object takes a change of the pod's spec.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// It makes its pods anew by itself.
    RollsOut,
    /// It makes pods of the new template once the old ones are deleted.
    OnDelete,
    /// It must be deleted and created.
    Job,
    Pod,
}

/// Returns the command that changes pods of one controller, or without any, as an edit does. There is none for edits that
/// are not of pods, for kinds of controllers that kubectl does not know, for pods that stand for objects, and where the
/// exact change is not known.
pub(super) fn command(owner: Option<&OwnerOf>, pods: &[&Pod], edit: &Edit, among: Among) -> Option<String> {
    let place = place(owner, pods, among)?;
    let names_pods = match place.how {
        How::Pod | How::OnDelete => true,
        How::Job => edit.is_patch() && place.is_patched_itself(),
        How::RollsOut => false,
    };
    if names_pods && pods.len() > MOST_NAMED {
        return None;
    }
    match edit {
        Edit::SetRequest { resource, amount, instead_of, .. } => {
            set_request(&place, (resource, *amount), instead_of.as_ref())
        }
        Edit::AddToleration { taint, .. } => {
            let toleration = json!([{
                "key": &*taint.key, "operator": "Equal", "value": &*taint.value, "effect": taint.effect.as_str(),
            }]);
            match place.is_patched_itself() {
                true => place.tolerating(&toleration),
                false => Some(place.filtered(&format!("{}.tolerations += {toleration}", place.spec))),
            }
        }
        Edit::LabelPod { key, value, .. } => Some(place.patched("label", key, value)),
        Edit::AnnotatePod { key, value, .. } => Some(place.patched("annotate", key, value)),
        Edit::DropNodeAffinity(_) => {
            let mut gone = json!({});
            if pods.iter().any(|pod| !pod.spec.affinity.selector.is_empty()) {
                gone["nodeSelector"] = Value::Null;
            }
            if pods.iter().any(|pod| pod.spec.affinity.required.is_some()) {
                gone["affinity"] = json!({"nodeAffinity": {REQUIRED: null}});
            }
            place.removed(&gone)
        }
        Edit::RelaxPodAffinity(_) => Some(place.preferring("podAffinity")),
        Edit::RelaxPodAntiAffinity(_) => Some(place.preferring("podAntiAffinity")),
        Edit::DropHostPorts(_) => {
            let spec = place.spec;
            Some(place.filtered(&format!(
                "del({spec}.hostNetwork, {spec}.containers[].ports[]?.hostPort, \
                 {spec}.initContainers[]?.ports[]?.hostPort)"
            )))
        }
        Edit::RelaxSpread(_) => {
            let hard = "select(.whenUnsatisfiable == \"DoNotSchedule\")";
            let soft = "(.whenUnsatisfiable = \"ScheduleAnyway\" | del(.minDomains))";
            let of = format!("{}.topologySpreadConstraints[]?", place.spec);
            Some(place.filtered(&format!("({of} | {hard}) |= {soft}")))
        }
        _ => None,
    }
}

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn place<'a>(owner: Option<&OwnerOf>, pods: &'a [&'a Pod], among: Among) -> Option<Place<'a>> {
    // The API server has no such pod, and how it is made of its object is the plugin's matter.
    if pods.is_empty() || pods.iter().any(|pod| pod.stands_for.is_some()) {
        return None;
    }
    let template = ".spec.template.spec";
    let Some(owner) = owner else {
        return Some(Place { pods, object: each(pods), spec: ".spec", how: How::Pod, among });
    };
    let how = match &*owner.kind {
        "Deployment" | "DaemonSet" => How::RollsOut,
        // A StatefulSet waits for its pod to be ready before it makes it anew.
        "StatefulSet" | "ReplicaSet" | "ReplicationController" => How::OnDelete,
        "Job" => How::Job,
        _ => return None,
    };
    let object = format!("{} {}", owner.kind.to_lowercase(), owner.name);
    Some(Place { pods, object, spec: template, how, among })
}

/// Returns a pod as kubectl takes it: its name, or the variable of the loop over several.
fn each(pods: &[&Pod]) -> String {
    match pods {
        [one] => format!("pod {}", one.key.name),
        _ => "pod $p".to_owned(),
    }
}

impl Place<'_> {
    fn kubectl(&self) -> String {
        format!("kubectl -n {}", self.pods[0].key.namespace)
    }

    /// Returns whether a pod is given what it may get by itself: tolerations, labels, annotations. Pods of a Job are not
    /// worth a new Job.
    fn is_patched_itself(&self) -> bool {
        self.how == How::Pod || (self.how == How::Job && !self.among.is_remade)
    }

    fn names(&self) -> String {
        self.pods.iter().map(|pod| &*pod.key.name).collect::<Vec<&str>>().join(" ")
    }

    /// Appends what makes the controller make the pods anew, or repeats a command for each of the pods themselves.
    fn finished(&self, command: String) -> String {
        match self.how {
            // Once, since the next pods may have other names.
            How::OnDelete if self.among.is_last => {
                format!("{command} && {} delete pod {}", self.kubectl(), self.names())
            }
            How::Pod => self.for_each(command),
            How::OnDelete | How::RollsOut | How::Job => command,
        }
    }

    fn for_each(&self, command: String) -> String {
        match self.pods {
            [_] => command,
            _ => format!("for p in {}; do {command}; done", self.names()),
        }
    }

    /// Returns the command that sets a label or an annotation of the pods, by kubectl's verb for it.
    fn patched(&self, verb: &str, key: &str, value: &str) -> String {
        let kubectl = self.kubectl();
        if self.is_patched_itself() {
            let value = if value.contains(['"', ' ']) { format!("'{value}'") } else { value.to_owned() };
            let each = each(self.pods);
            return self.for_each(format!("{kubectl} {verb} {each} {key}={value} --overwrite"));
        }
        let field = if verb == "label" { "labels" } else { "annotations" };
        if self.how == How::Job {
            return self.filtered(&format!(".spec.template.metadata.{field}[\"{key}\"] = {}", json!(value)));
        }
        let patch = json!({"spec": {"template": {"metadata": {field: {key: value}}}}});
        self.finished(format!("{kubectl} patch {} --type=merge -p '{patch}'", self.object))
    }

    /// Returns the command that adds a toleration to the pods themselves, if one patch fits all.
    fn tolerating(&self, toleration: &Value) -> Option<String> {
        let is_first = self.pods[0].spec.tolerations.is_empty();
        if self.pods.iter().any(|pod| pod.spec.tolerations.is_empty() != is_first) {
            return None;
        }
        let (path, value) = match is_first {
            true => ("/spec/tolerations", toleration),
            false => ("/spec/tolerations/-", &toleration[0]),
        };
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        let (kubectl, each) = (self.kubectl(), each(self.pods));
        Some(self.for_each(format!("{kubectl} patch {each} --type=json -p '{patch}'")))
    }

    /// Returns the command that changes the object by a jq filter.
    fn filtered(&self, filter: &str) -> String {
        // What the API server added to a Job belongs to that Job.
        let own = "del(.spec.selector, .spec.template.metadata.labels[\"controller-uid\"], \
                   .spec.template.metadata.labels[\"batch.kubernetes.io/controller-uid\"])";
        let (filter, force) = match self.how {
            How::Job => (format!("{filter} | {own}"), " --force"),
            How::Pod => (filter.to_owned(), " --force"),
            _ => (filter.to_owned(), ""),
        };
        let (kubectl, object) = (self.kubectl(), &self.object);
        self.finished(format!(
            "{kubectl} get {object} -o json | jq '{filter}' | {kubectl} replace{force} -f -"
        ))
    }

    /// Returns the command that makes what pods require of other pods a preference.
    fn preferring(&self, field: &str) -> String {
        let term = "{weight: 100, podAffinityTerm: .}";
        self.filtered(&format!(
            "({}.affinity.{field} | select(.{REQUIRED})) |= \
             (.{PREFERRED} += (.{REQUIRED} | map({term})) | del(.{REQUIRED}))",
            self.spec
        ))
    }

    /// Returns the command that removes fields of the pod's spec, given as nulls.
    fn removed(&self, nulls: &Value) -> Option<String> {
        let (kubectl, object) = (self.kubectl(), &self.object);
        Some(match self.how {
            How::RollsOut | How::OnDelete => {
                let patch = json!({"spec": {"template": {"spec": nulls}}});
                self.finished(format!("{kubectl} patch {object} --type=merge -p '{patch}'"))
            }
            How::Job | How::Pod => {
                let mut paths = Vec::new();
                collect(nulls, self.spec, &mut paths);
                self.filtered(&format!("del({})", paths.join(", ")))
            }
        })
    }
}

/// Collects the paths of nulls.
fn collect(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| collect(field, &format!("{path}.{name}"), paths));
        }
        _ => paths.push(path.to_owned()),
    }
}

/// Returns the field that decides how much of a resource a pod with several containers requests when it is to request this
/// amount.
pub(super) fn request_field<'p>(pod: &'p Pod, resource: &Name, amount: i64) -> Option<&'p RequestField> {
    pod.request_fields.iter().find(|field| field.resource == *resource && field.rest <= amount)
}

/// Returns the path below the pod's spec of the resources that decide what pods request, and the amount there with which
/// the pods request what they are to, if both are the same for all of them.
fn resources_of(pods: &[&Pod], (resource, amount): (&Name, i64)) -> Option<(String, i64)> {
    if pods.iter().all(|pod| pod.requests_of_one) {
        return Some((".containers[0].resources".into(), amount));
    }
    let fields = pods.iter().map(|pod| request_field(pod, resource, amount));
    let fields = fields.collect::<Option<Vec<_>>>()?;
    let place = |field: &RequestField| {
        let path = match (&field.init_container, &field.container) {
            (Some((at, _)), _) => format!(".initContainers[{at}].resources"),
            (None, Some((at, _))) => format!(".containers[{at}].resources"),
            (None, None) => ".resources".to_owned(),
        };
        (path, amount - field.beside)
    };
    let first = place(fields.first()?);
    fields.iter().all(|field| place(field) == first).then_some(first)
}

/// Returns the command that sets a request, if one field decides what the pod requests.
fn set_request(
    place: &Place<'_>,
    (resource, amount): (&Name, i64),
    instead_of: Option<&Name>,
) -> Option<String> {
    let (path, amount) = resources_of(place.pods, (resource, amount))?;
    let is_of_one = place.pods.iter().all(|pod| pod.requests_of_one);
    if instead_of.is_some() && !is_of_one {
        return None;
    }
    let amount = format_amount(resource, amount);
    // Of other resources no more may be used than is requested, so the limit goes along.
    let has_own_limit = matches!(&**resource, "cpu" | "memory" | "ephemeral-storage");
    if is_of_one && matches!(place.how, How::RollsOut | How::OnDelete) {
        let gone = instead_of.map(|other| format!(",{other}=0")).unwrap_or_default();
        let set = format!("{resource}={amount}{gone}");
        let limits = if has_own_limit { String::new() } else { format!(" --limits={set}") };
        let (kubectl, object) = (place.kubectl(), &place.object);
        return Some(place.finished(format!("{kubectl} set resources {object} --requests={set}{limits}")));
    }
    let resources = format!("{}{path}", place.spec);
    let set = |of: &str| format!("{resources}.{of}[\"{resource}\"] = \"{amount}\"");
    let limits = if has_own_limit { String::new() } else { format!(" | {}", set("limits")) };
    let of = |other: &Name, list: &str| format!("{resources}.{list}[\"{other}\"]");
    let gone = |other: &Name| format!("del({}, {}) | ", of(other, "requests"), of(other, "limits"));
    let gone = instead_of.map(gone).unwrap_or_default();
    Some(place.filtered(&format!("{gone}{}{limits}", set("requests"))))
}
