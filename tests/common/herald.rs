//! A plugin that writes at every point: a pod waits at Permit for a while, has a notice before it is bound, and the notice
//! says so afterwards. A summary counts the placed pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::DerivedState;
use pellucid::cluster::derived::{HookContext, Placed, Touched};
use pellucid::framework::plugin::{Permit, Permitted, Plugin, PostBind, PreBind, PreBound};
use pellucid::framework::profile::{Enabled, Profile};
use pellucid::framework::{CycleValue, View, points};
use pellucid::model::custom::{CustomKind, CustomValue};
use pellucid::model::effect::{ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome};
use pellucid::model::manifest::FieldError;
use pellucid::model::{CustomKindRef, CustomObject, Name, NodeIdx, Now, Pod, PodId};
use serde_json::{Value, json};

/// The kind of notices and of the summary.
pub(crate) static NOTICE: CustomKind = CustomKind {
    group: "example.com",
    version: "v1",
    kind: "Notice",
    plural: "notices",
    qualified: "Notice.example.com",
    is_namespaced: true,
    is_required: false,
    is_decisive: true,
    verbs: &["create", "get", "patch"],
    pod: None,
    decode: node_of,
    encode: manifest_of,
};

fn node_of(manifest: &Value) -> Result<CustomValue, FieldError> {
    Ok(Arc::new(manifest["spec"]["node"].as_str().unwrap_or_default().to_owned()))
}

fn manifest_of(node: &CustomValue) -> Value {
    json!({"spec": {"node": node.downcast_ref::<String>()}})
}

/// How long a refused summary rests.
const REST: Duration = Duration::from_secs(1);

/// The plugin.
pub(crate) struct Herald {
    /// Whether a pod has a notice.
    pub(crate) fits: fn(&Pod) -> bool,
    /// How long a pod waits at Permit.
    pub(crate) pause: Duration,
    /// How long it may wait there.
    pub(crate) patience: Duration,
}

/// Enables a plugin at the points where a pod waits and is bound.
pub(crate) fn enable(profile: &mut Profile, plugin: Arc<dyn Plugin>) {
    let enabled = Enabled { plugin: plugin.clone(), weight: 0, index: profile.plugins.len() };
    if plugin.permit().is_some() {
        profile.permit.push(enabled.clone());
    }
    if plugin.pre_bind().is_some() {
        profile.pre_bind.push(enabled.clone());
    }
    if plugin.post_bind().is_some() {
        profile.post_bind.push(enabled);
    }
    profile.plugins.push(plugin);
}

/// Returns the reference to a notice.
pub(crate) fn notice(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::custom(&NOTICE, &namespace.into(), &name.into())
}

/// Returns a manifest as a watch delivers it.
pub(crate) fn seen(manifest: &Value) -> Arc<CustomObject> {
    let text = |field: &str| manifest["metadata"][field].as_str().unwrap_or_default();
    Arc::new(CustomObject {
        kind: CustomKindRef(&NOTICE),
        namespace: text("namespace").into(),
        name: text("name").into(),
        uid: text("uid").into(),
        resource_version: text("resourceVersion").into(),
        value: (NOTICE.decode)(manifest).expect("it is readable"),
        pod: None,
    })
}

fn create(object: ObjectRef, spec: &Value) -> ObjectWrite {
    let namespace = object.namespace.as_ref().map(Name::as_str);
    let body = json!({"apiVersion": "example.com/v1", "kind": "Notice",
        "metadata": {"namespace": namespace, "name": object.name.as_str()}, "spec": spec});
    ObjectWrite::Create { object, body: Arc::new(body) }
}

fn patch(object: ObjectRef, precondition: Precondition, spec: &Value) -> ObjectWrite {
    let patch = Arc::new(json!({ "spec": spec }));
    ObjectWrite::Patch { object, part: ObjectPart::Main, precondition, patch }
}

impl Plugin for Herald {
    fn name(&self) -> &'static str {
        "Herald"
    }
    points! { permit, pre_bind, post_bind }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(HeraldState { pause: self.pause, ..HeraldState::default() })]
    }
}

impl Permit for Herald {
    fn permit(&self, view: View<'_>, pod: &Pod, _: NodeIdx) -> Permitted {
        let cluster = view.cluster();
        let since = cluster.find_pod(&pod.key).and_then(|id| cluster.pod(id)).map(|record| record.since);
        // The clocks of a test begin together, so wall time is monotonic time.
        match since.filter(|since| (self.fits)(pod) && cluster.now().wall < *since + self.pause) {
            Some(_) => Permitted::Wait { at_most: self.patience },
            None => Permitted::Yes,
        }
    }
}

impl PreBind for Herald {
    fn pre_bind(&self, view: View<'_>, pod: &Pod, node: NodeIdx, _: Option<&CycleValue>) -> PreBound {
        if !(self.fits)(pod) {
            return PreBound::Ready;
        }
        let object = notice(&pod.key.namespace, &pod.uid);
        let key = (pod.key.namespace.clone(), object.name.clone());
        let spec = json!({"node": view.name(node).as_str()});
        let write = match view.cluster().custom_objects().get(CustomKindRef(&NOTICE), &key) {
            Some(known) if known.get::<String>().is_some_and(|at| **at == **view.name(node)) => {
                return PreBound::Ready;
            }
            Some(known) => {
                patch(object, Precondition::resource_version(known.resource_version.clone()), &spec)
            }
            None => create(object, &spec),
        };
        PreBound::Wait { writes: vec![write], at_most: Duration::from_secs(20) }
    }
}

impl PostBind for Herald {
    fn post_bind(&self, _: View<'_>, pod: &Pod, _: NodeIdx, _: Option<&CycleValue>) -> Vec<ObjectWrite> {
        if !(self.fits)(pod) {
            return Vec::new();
        }
        let object = notice(&pod.key.namespace, &pod.uid);
        vec![patch(object, Precondition::default(), &json!({"bound": true}))]
    }
}

/// The placed pods, and what the summary says of them.
#[derive(Clone, Default)]
struct HeraldState {
    pause: Duration,
    placed: BTreeSet<(Duration, PodId)>,
    /// The deadlines up to here have passed.
    passed: Duration,
    /// The count that was ordered and is not settled.
    ordered: Option<usize>,
    /// The count that the server has, if known.
    written: Option<usize>,
    is_there: bool,
    not_before: Duration,
}

impl DerivedState for HeraldState {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }
    fn pod_added(&mut self, placed: &Placed<'_>) {
        self.placed.insert((placed.since, placed.id));
    }
    fn pod_removed(&mut self, placed: &Placed<'_>) {
        self.placed.remove(&(placed.since, placed.id));
    }
    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, _: Now) -> Option<Duration> {
        let ends = self.placed.iter().map(|(since, _)| *since + self.pause).find(|at| *at > self.passed);
        let rests = Some(self.not_before).filter(|at| *at > self.passed);
        ends.into_iter().chain(rests).min()
    }
    fn expire(&mut self, now: Now) -> Touched {
        self.passed = now.monotonic;
        Touched::Nothing
    }
    fn due_writes(&mut self, cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        let count = self.placed.len();
        if self.ordered.is_some() || self.written == Some(count) || cx.now.monotonic < self.not_before {
            return Vec::new();
        }
        self.ordered = Some(count);
        let (object, spec) = (notice("ns", "summary"), json!({"pods": count}));
        vec![if self.is_there {
            patch(object, Precondition::default(), &spec)
        } else {
            create(object, &spec)
        }]
    }
    fn write_settled(&mut self, cx: &HookContext<'_>, _: &ObjectWrite, outcome: &WriteOutcome) -> Touched {
        let count = self.ordered.take();
        match outcome {
            WriteOutcome::Written => (self.is_there, self.written) = (true, count),
            WriteOutcome::AlreadyExists => self.is_there = true,
            // It may have been carried out.
            WriteOutcome::Refused { .. } => {
                (self.written, self.not_before) = (None, cx.now.monotonic + REST);
            }
        }
        Touched::Nothing
    }
    fn plugin(&self) -> &'static str {
        "Herald"
    }
}
