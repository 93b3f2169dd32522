//! Nodes, groups and members in every dialect, and helpers to observe them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

pub(crate) use crate::common::dialects::{KUBE_BATCH, NATIVE, X};
use crate::common::running::{Pods, Running, message, node, node_of, pod};

/// API versions of PodGroups.
pub(crate) const SIGS: &str = "scheduling.sigs.k8s.io/v1alpha1";

/// Koordinator's annotations.
pub(crate) const MODE: &str = "gang.scheduling.koordinator.sh/mode";
pub(crate) const GROUPS: &str = "gang.scheduling.koordinator.sh/groups";
pub(crate) const WAITING_TIME: &str = "gang.scheduling.koordinator.sh/waiting-time";

/// Returns the objects of a file in `tests/data/gangs`.
pub(crate) fn document(name: &str) -> Vec<Value> {
    let file = format!("{}/tests/data/gangs/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Makes nodes `n0`, `n1`, ... with this many CPUs each.
pub(crate) fn nodes(count: usize, cpu: u32) -> Vec<Value> {
    (0..count).map(|n| node(&format!("n{n}"), "z", cpu)).collect()
}

/// Makes a PodGroup.
pub(crate) fn group(version: &str, name: &str, min: u32) -> Value {
    let spec = match version {
        NATIVE => json!({"schedulingPolicy": {"gang": {"minCount": min}}}),
        _ => json!({"minMember": min}),
    };
    json!({
        "apiVersion": version, "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

/// Adds an annotation to an object.
pub(crate) fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = value.into();
    object
}

/// Adds a label to an object.
pub(crate) fn labelled(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["labels"][key] = value.into();
    object
}

/// Moves an object to another namespace.
pub(crate) fn within(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// Makes a pod a member of a PodGroup by the label of scheduler-plugins.
pub(crate) fn of_group(pod: Value, group: &str) -> Value {
    labelled(pod, "scheduling.x-k8s.io/pod-group", group)
}

/// Makes a member of one of Koordinator's light gangs, which have no PodGroup.
pub(crate) fn light(gang: &str, name: &str, min: u32, milli_cpu: u32) -> Value {
    let named = annotated(pod(name, milli_cpu), "gang.scheduling.koordinator.sh/name", gang);
    annotated(named, "gang.scheduling.koordinator.sh/min-available", &min.to_string())
}

/// Does the same in mode NonStrict, with this waiting time.
pub(crate) fn patient(gang: &str, name: &str, min: u32, milli_cpu: u32, wait: &str) -> Value {
    annotated(annotated(light(gang, name, min, milli_cpu), MODE, "NonStrict"), WAITING_TIME, wait)
}

/// Returns the names `<prefix>-0`, `<prefix>-1`, ...
pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n}")).collect()
}

/// Returns whether a pod runs.
pub(crate) fn runs(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running")
}

/// Returns how many pods with a name prefix run, how many are pending with a message, and how many there are.
pub(crate) fn tally(pods: &Pods, prefix: &str) -> (usize, usize, usize) {
    let own = || pods.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, pod)| pod);
    let told = own().filter(|pod| node_of(pod).is_none() && message(pod).is_some()).count();
    (own().filter(|pod| runs(pod)).count(), told, own().count())
}

impl Running {
    /// Waits until this many pods of a prefix run and all others of it have a message why they do not; returns the
    /// names of the pending ones.
    pub(crate) async fn run_and_wait(&mut self, prefix: &str, running: usize, waiting: usize) -> Vec<String> {
        let what = format!("{running} of {prefix} run and {waiting} wait");
        let found = self.pods(&what, |pods| {
            let is_so = tally(pods, prefix) == (running, waiting, running + waiting);
            let of = pods.iter().filter(|(name, pod)| name.starts_with(prefix) && node_of(pod).is_none());
            is_so.then(|| of.map(|(name, _)| name.clone()).collect())
        });
        found.await
    }

    /// Waits until the named pods run.
    pub(crate) async fn all_run(&mut self, names: &[String]) {
        let what = format!("{names:?} run");
        self.pods(&what, |pods| names.iter().all(|n| pods.get(n).is_some_and(runs)).then_some(())).await;
    }

    /// Waits until the named pods have a message with these words, and none of them has a node.
    pub(crate) async fn all_told(&mut self, names: &[String], words: &str) {
        let what = format!("{names:?} are told {words:?}");
        let is_told = |pod: &Pod| node_of(pod).is_none() && message(pod).is_some_and(|m| m.contains(words));
        self.pods(&what, |pods| names.iter().all(|n| pods.get(n).is_some_and(is_told)).then_some(())).await;
    }

    /// Returns the pods of a prefix that have a node, and those that have none.
    pub(crate) async fn placed(&mut self, prefix: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let look = |pods: &Pods| {
            let own = pods.iter().filter(|(name, _)| name.starts_with(prefix));
            let (on, off): (Vec<_>, Vec<_>) = own.partition(|(_, pod)| node_of(pod).is_some());
            let names = |list: Vec<(&String, &Pod)>| list.into_iter().map(|(name, _)| name.clone()).collect();
            Some((names(on), names(off)))
        };
        self.pods("the pods are known", look).await
    }

    /// Waits until the explanation of a pod, named as in [`Pods`], satisfies a condition.
    pub(crate) fn explained(&self, pod: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let pod = if pod.contains('/') { pod.to_owned() } else { format!("default/{pod}") };
        self.wait(&format!("/apis/v1/explain/pods/{pod}"), &format!("{pod}: {what}"), wanted)
    }

    /// Waits until a pod is in a stage: `waiting`, `permitted`, `pre-binding`, `binding`, `bound`.
    pub(crate) fn in_stage(&self, pod: &str, stage: &str) {
        self.explained(pod, stage, |body| body["placement"]["stage"] == stage);
    }

    /// Waits until a pod is refused for a reason; returns the message.
    pub(crate) fn refused_for(&self, pod: &str, code: &str) -> String {
        let is_so = |body: &Value| body["podReasons"][0]["code"] == code;
        let body = self.explained(pod, code, is_so);
        body["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until Koordinator's view of a gang in namespace `default` satisfies a condition.
    pub(crate) fn gang(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/apis/v1/plugins/Coscheduling/gang/default/{name}");
        self.wait(&path, &format!("gang {name}: {what}"), wanted)
    }

    /// Waits until the explanation of a gang in namespace `default` satisfies a condition.
    pub(crate) fn gang_explained(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/apis/v1/explain/gangs/default/{name}");
        self.wait(&path, &format!("gang {name}: {what}"), wanted)
    }

    /// Waits until the status of a PodGroup has these fields.
    pub(crate) async fn group_status(&self, version: &str, name: &str, what: &str, wanted: &Value) -> Value {
        let wanted = wanted.as_object().expect("fields of a status");
        let has = |group: &Value| wanted.iter().all(|(field, value)| group["status"][field] == *value);
        let group = self.object(&format!("{version}/PodGroup"), name, what, has).await;
        group["status"].clone()
    }
}
