//! Objects of every shape: none breaks the server or its controllers.

use super::*;

/// Replaces every value in turn by values of other types, and sends each result to the sandbox.
#[tokio::test]
async fn no_shape_of_object_breaks_the_server() {
    let (sandbox, client) = still().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"}, "spec": {"group": "x.example", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}]}});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A"}]}]}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let meta = json!({"name": "x", "labels": {"a": "b"}, "annotations": {"k": "v"}, "finalizers": ["f/x"]});
    let cases = [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
        ("/api/v1/namespaces/default/pods", json!({"metadata": meta, "spec": template["spec"]})),
        (
            "/api/v1/namespaces/other/pods",
            json!({"metadata": meta, "spec": {"containers": template["spec"]["containers"], "hostNetwork": true,
                "volumes": [{"name": "v"}], "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z",
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, "matchLabelKeys": ["a"]}],
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "z", "labelSelector": selector, "mismatchLabelKeys": ["a"]}]}}}}),
        ),
        (
            "/api/v1/nodes",
            json!({"metadata": meta, "spec": {"taints": []}, "status": {"capacity": {"cpu": "1"}}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": meta, "spec": {"replicas": 0, "selector": selector, "template": template}}),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": meta, "spec": {"suspend": true, "parallelism": 1, "template": template}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": meta, "spec": {"minAvailable": 1, "selector": selector}}),
        ),
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            json!({"metadata": meta, "regarding": {"namespace": "default"}, "series": {"count": 1}}),
        ),
        (
            "/api/v1/persistentvolumes",
            json!({"metadata": meta, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "x", "hostPath": {"path": "/d"}, "claimRef": {"namespace": "default", "name": "x"}}}),
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"metadata": meta, "spec": {"resources": {"requests": {"storage": "1Gi"}}, "selector": selector,
                "accessModes": ["ReadWriteOnce"], "storageClassName": "x"}}),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"metadata": meta, "provisioner": "p", "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}]}),
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"metadata": meta, "spec": {"drivers": [
                {"name": "p", "nodeID": "n", "topologyKeys": ["k"], "allocatable": {"count": 1}}]}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            json!({"metadata": meta, "spec": {"replicas": 1, "selector": selector, "template": template,
                "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}}),
        ),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            json!({"metadata": meta, "spec": {"replicas": 1, "selector": {"a": "b"}, "template": template}}),
        ),
        (
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
            json!({"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 1,
                "schedulingConstraints": {"topology": [{"key": "z"}]}, "resourceClaims": [
                    {"name": "c", "resourceClaimName": "c"}],
                "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}}}),
        ),
        (
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads",
            json!({"metadata": meta, "spec": {"controllerRef": {"kind": "Job", "name": "j"}, "podGroupTemplates": [
                {"name": "t", "schedulingPolicy": {"basic": {}}}]}}),
        ),
        (
            "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups",
            json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 2, "minResources": {"cpu": "1", "memory": 5}}}),
        ),
        (
            "/apis/scheduling.sigs.dev/v1alpha2/queues",
            json!({"apiVersion": "scheduling.sigs.dev/v1alpha2", "kind": "Queue", "metadata": meta, "spec": {"weight": 2, "capability": {"cpu": "1"}}}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": meta, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        ),
        (
            "/apis/x.example/v1/namespaces/default/things",
            json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": meta, "spec": {}}),
        ),
    ];
    let send = async |method: &str, path: &str, content: &str, body: &Value| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        let request =
            request.body(kube::client::Body::from(body.to_string().into_bytes())).expect("a request");
        let answer = client.send(request).await;
        answer.unwrap_or_else(|error| panic!("{method} {path} {body}: {error}")).status().as_u16()
    };
    for (path, object) in &cases {
        for odd in
            [json!(null), json!([]), json!({}), json!("x"), json!(-1), json!([null]), json!({"x": [1]})]
        {
            for pointer in pointers(object) {
                let mut broken = object.clone();
                *broken.pointer_mut(&pointer).expect("a pointer of the object") = odd.clone();
                send("POST", path, "application/json", &broken).await;
                let patch = json!([{"op": "add", "path": pointer, "value": odd}]);
                send("PATCH", &format!("{path}/x"), "application/json-patch+json", &patch).await;
                send("PATCH", &format!("{path}/x"), "application/merge-patch+json", &broken).await;
                send("PATCH", &format!("{path}/x/status"), "application/strategic-merge-patch+json", &broken)
                    .await;
            }
        }
        for accept in ["application/json;as=Table;v=v1;g=meta.k8s.io", "application/json"] {
            let request = http::Request::get(*path).header("accept", accept);
            let request = request.body(kube::client::Body::empty()).expect("a request");
            assert_eq!(client.send(request).await.expect("an answer").status().as_u16(), 200);
        }
    }
    controllers_go_on(&sandbox, client).await;
}

/// Checks that the controllers still work after they met odd objects.
async fn controllers_go_on(sandbox: &Handle, client: Client) {
    let spec = |size: &str| {
        json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "alive",
        "resources": {"requests": {"storage": size}}, "capacity": {"storage": size}, "hostPath": {"path": "/"}})
    };
    for kind in ["PersistentVolume", "PersistentVolumeClaim"] {
        let object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "alive"}, "spec": spec("1Gi")});
        sandbox.create(object).expect("created");
    }
    let claims: Api<k8s_openapi::api::core::v1::PersistentVolumeClaim> =
        Api::default_namespaced(client.clone());
    until(claims, "alive", "bound", |claim| {
        claim.and_then(|c| c.status.as_ref()?.phase.as_deref()) == Some("Bound")
    })
    .await;
    let template = json!({"metadata": {"labels": {"alive": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "alive"},
        "spec": {"selector": {"matchLabels": {"alive": "1"}}, "template": template}});
    sandbox.create(set).expect("created");
    let pods: Api<Pod> = Api::default_namespaced(client);
    until(pods, "alive-0", "created", |pod| pod.is_some()).await;
}

/// Returns the JSON pointers of all values in an object, itself included.
fn pointers(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let below = inner.into_iter().flat_map(|(key, value)| {
        pointers(value).into_iter().map(move |pointer| format!("/{key}{pointer}")).collect::<Vec<_>>()
    });
    std::iter::once(String::new()).chain(below).collect()
}
