//! Defaults that an API server sets when a client omits a field, per kind.
//!
//! Pure functions on JSON. Priority, which depends on other objects, is resolved in `pods.rs`.

use serde_json::{Value, json};

use crate::fields::add;

/// Sets a field if it is absent or null.
pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        let slot = fields.entry(key).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value.into();
        }
    }
}

/// Sets the fields that are absent or null, also in objects inside.
pub(crate) fn fill(object: &mut Value, defaults: Value) {
    let (Value::Object(fields), Value::Object(defaults)) = (object, defaults) else { return };
    for (key, default) in defaults {
        let slot = fields.entry(key).or_insert(Value::Null);
        if slot.is_null() {
            *slot = default;
        } else {
            fill(slot, default);
        }
    }
}

fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets the defaults of a Namespace: the label with its name, and its finalizer.
pub(crate) fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let spec = json!({"finalizers": ["kubernetes"]});
    fill(object, json!({"metadata": {"labels": {}}, "spec": spec, "status": {"phase": "Active"}}));
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

/// Sets the defaults of a Node: allocatable is the capacity, and empty fields that the API always shows. The not-ready
/// taint `NoSchedule` is left to node controllers.
pub(crate) fn node(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {}}));
    let status = &mut object["status"];
    let capacity = status["capacity"].clone();
    if capacity.is_object() {
        set(status, "allocatable", capacity);
    } else if let Some(fields) = status.as_object_mut() {
        fields.remove("capacity");
    }
    set(status, "daemonEndpoints", json!({"kubeletEndpoint": {"Port": 0}}));
    let info = json!({
        "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "", "kubeletVersion": "",
        "containerRuntimeVersion": "", "kubeProxyVersion": "", "operatingSystem": "", "architecture": ""
    });
    fill(status, json!({"nodeInfo": info}));
    conditions(status, &["lastHeartbeatTime", "lastTransitionTime"]);
}

/// Adds the time fields of conditions as null, because the API always shows them.
fn conditions(status: &mut Value, times: &[&str]) {
    for condition in items(status, "conditions") {
        times.iter().for_each(|time| add(condition, time, Value::Null));
    }
}

/// Sets the defaults of a Pod: its spec, the default tolerations, and the initial status.
pub(crate) fn pod(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {}}));
    pod_spec(&mut object["spec"]);
    let spec = &mut object["spec"];
    tolerate_node_trouble(spec);
    set(spec, "enableServiceLinks", true);
    if let Some(gates) = spec.get("schedulingGates")
        && gates.as_array().is_none_or(Vec::is_empty)
    {
        spec.as_object_mut().map(|fields| fields.remove("schedulingGates"));
    }
    let class = quality_of_service(spec);
    let status = &mut object["status"];
    // An empty nomination means none.
    if status["nominatedNodeName"] == "" {
        status.as_object_mut().map(|fields| fields.remove("nominatedNodeName"));
    }
    set(status, "phase", "Pending");
    set(status, "qosClass", class);
    conditions(status, &["lastProbeTime", "lastTransitionTime"]);
}

/// Sets the defaults of a pod spec, which may be that of a template.
pub(crate) fn pod_spec(spec: &mut Value) {
    for key in ["containers", "initContainers"] {
        items(spec, key).for_each(container);
    }
    if spec["hostNetwork"] == true {
        for key in ["containers", "initContainers"] {
            items(spec, key).for_each(host_ports);
        }
    }
    items(spec, "volumes").for_each(volume);
    set(spec, "restartPolicy", "Always");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "securityContext", json!({}));
    set(spec, "schedulerName", "default-scheduler");
    if let Some(name) = spec.get("serviceAccountName").filter(|n| n.is_string()).cloned() {
        set(spec, "serviceAccount", name);
    }
}

fn container(container: &mut Value) {
    set(container, "resources", json!({}));
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    set(container, "imagePullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    items(container, "ports").for_each(|port| set(port, "protocol", "TCP"));
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            set(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            fill(probe, json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1}));
            set(probe, "failureThreshold", 3);
        }
    }
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    if !limits.is_empty() {
        set(&mut container["resources"], "requests", json!({}));
        for (resource, amount) in limits {
            set(&mut container["resources"]["requests"], &resource, amount);
        }
    }
}

/// Sets the host ports of a container in the node's network, which are its container ports.
fn host_ports(container: &mut Value) {
    for port in items(container, "ports") {
        let number = port["containerPort"].clone();
        if number.is_number() && port["hostPort"].as_i64().unwrap_or_default() == 0 {
            port["hostPort"] = number;
        }
    }
}

fn volume(volume: &mut Value) {
    let names_no_source = volume.as_object().is_some_and(|fields| fields.keys().all(|key| key == "name"));
    if names_no_source {
        set(volume, "emptyDir", json!({}));
    }
    if let Some(template) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
        fill(template, json!({"spec": {"volumeMode": "Filesystem"}}));
    }
    for source in ["configMap", "secret", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            set(source, "defaultMode", 420);
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        set(path, "type", "");
    }
}

fn tolerate_node_trouble(spec: &mut Value) {
    set(spec, "tolerations", json!([]));
    let Some(tolerations) = spec["tolerations"].as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|t| {
            let key_fits = t["key"] == key || t.get("key").is_none_or(Value::is_null);
            let effect_fits = t["effect"] == "NoExecute" || t.get("effect").is_none_or(Value::is_null);
            key_fits && effect_fits
        });
        if !is_tolerated {
            let toleration =
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(toleration);
        }
    }
}

/// Returns the QoS class of a pod from its requests and limits of cpu and memory.
fn quality_of_service(spec: &Value) -> &'static str {
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|key| spec[key].as_array()).flatten();
    let (mut any, mut all_equal) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let request = container.pointer(&format!("/resources/requests/{resource}"));
            let limit = container.pointer(&format!("/resources/limits/{resource}"));
            any |= request.is_some() || limit.is_some();
            all_equal &= limit.is_some() && request == limit;
        }
    }
    match (any, all_equal) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn template(spec: &mut Value) {
    fill(spec, json!({"template": {"metadata": {}, "spec": {}}}));
    pod_spec(&mut spec["template"]["spec"]);
}

/// Sets the defaults of a Deployment: one replica, rolling update.
pub(crate) fn deployment(object: &mut Value) {
    fill(object, json!({"spec": {"replicas": 1}, "status": {}}));
    let spec = &mut object["spec"];
    template(spec);
    let strategy = json!({"type": "RollingUpdate"});
    fill(spec, json!({"strategy": strategy, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}));
    if spec["strategy"]["type"] == "RollingUpdate" {
        fill(&mut spec["strategy"], json!({"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}));
    }
}

/// Sets the defaults of a ReplicaSet: one replica.
pub(crate) fn replica_set(object: &mut Value) {
    fill(object, json!({"spec": {"replicas": 1}, "status": {"replicas": 0}}));
    template(&mut object["spec"]);
}

/// Sets the defaults of a ReplicationController: one replica; its selector and labels default to the template's labels.
pub(crate) fn replication_controller(object: &mut Value) {
    replica_set(object);
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        set(&mut object["spec"], "selector", labels.clone());
        set(&mut object["metadata"], "labels", labels);
    }
}

/// Sets the defaults of a StatefulSet: one replica, ordered pods, retained claims.
pub(crate) fn stateful_set(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {"replicas": 0, "availableReplicas": 0}}));
    let spec = &mut object["spec"];
    template(spec);
    let defaults = json!({
        "replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate"},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}
    });
    fill(spec, defaults);
    if spec["updateStrategy"]["type"] == "RollingUpdate" {
        fill(&mut spec["updateStrategy"], json!({"rollingUpdate": {"partition": 0}}));
    }
    for claim in items(spec, "volumeClaimTemplates") {
        fill(claim, json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1"}));
        crate::kinds::storage::claim_defaults(claim);
    }
}

/// Sets the defaults of a Service: a cluster IP that is derived from the uid.
pub(crate) fn service(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {"loadBalancer": {}}}));
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let hash = uid.bytes().fold(7_u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(u16::from(byte)));
    let spec = &mut object["spec"];
    fill(spec, json!({"type": "ClusterIP", "sessionAffinity": "None"}));
    for port in items(spec, "ports") {
        set(port, "protocol", "TCP");
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    set(spec, "clusterIP", format!("10.96.{}.{}", hash >> 8, (hash & 0xff).max(1)));
    let address = spec["clusterIP"].clone();
    set(spec, "clusterIPs", json!([address]));
    fill(
        spec,
        json!({"internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}),
    );
}

/// Sets the defaults of a Job: one completion, and a selector with its uid.
pub(crate) fn job(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {}}));
    let (name, uid) = (object["metadata"]["name"].clone(), object["metadata"]["uid"].clone());
    let spec = &mut object["spec"];
    let is_open_ended = spec.get("completions").is_none() && spec.get("parallelism").is_some();
    if !is_open_ended {
        set(spec, "completions", 1);
    }
    fill(
        spec,
        json!({"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false}),
    );
    set(spec, "podReplacementPolicy", "TerminatingOrFailed");
    if spec["manualSelector"].is_null() {
        spec.as_object_mut().map(|fields| fields.remove("manualSelector"));
    }
    template(spec);
    if uid.is_string() && spec.get("selector").is_none_or(Value::is_null) {
        spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
        set(&mut spec["template"]["metadata"], "labels", json!({}));
        let labels = &mut spec["template"]["metadata"]["labels"];
        for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
            labels[format!("batch.kubernetes.io/{key}")] = value.clone();
            labels[key] = value.clone();
        }
    }
}

/// Sets the defaults of a PodDisruptionBudget: zero counters in the status.
pub(crate) fn budget(object: &mut Value) {
    let counts =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    fill(object, json!({"spec": {}, "status": counts}));
}

/// Sets the defaults of a PriorityClass: it preempts, with value 0.
pub(crate) fn priority_class(object: &mut Value) {
    fill(object, json!({"preemptionPolicy": "PreemptLowerPriority", "value": 0}));
}

/// Sets the defaults of a Lease: an empty spec.
pub(crate) fn lease(object: &mut Value) {
    set(object, "spec", json!({}));
}

/// Adds the empty fields that the API always shows to an Event in its stored form (core/v1).
pub(crate) fn event(object: &mut Value) {
    for key in ["involvedObject", "source"] {
        add(object, key, json!({}));
    }
    for key in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        add(object, key, Value::Null);
    }
    for key in ["reportingComponent", "reportingInstance"] {
        add(object, key, "".into());
    }
}
