//! Kinds other than pods: custom resources, events, leases, priority classes, namespaces.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;

use super::*;

#[tokio::test]
async fn custom_resources_are_served_pruned_and_checked() {
    let (sandbox, client) = still().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
    }});
    let definition = json!({"metadata": {"name": "gangs.x.example"}, "spec": {
        "group": "x.example", "scope": "Namespaced", "names": {"plural": "gangs", "kind": "Gang"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}}]
    }});
    definitions.create(&PostParams::default(), &of(definition)).await.expect("created");
    until(definitions.clone(), "gangs.x.example", "established", |d| {
        let conditions = d.and_then(|d| d.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Established"))
    })
    .await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("x.example", "v1", "Gang"));
    let gangs: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let gang = |n: i64| {
        of::<DynamicObject>(json!({
            "apiVersion": "x.example/v1", "kind": "Gang", "metadata": {"name": "g"}, "spec": {"n": n, "extra": 1}
        }))
    };
    assert_eq!(code(&gangs.create(&PostParams::default(), &gang(10)).await.expect_err("too large")), 422);
    let made = gangs.create(&PostParams::default(), &gang(3)).await.expect("created");
    assert_eq!(made.data["spec"], json!({"n": 3}));
    let status = json!({"apiVersion": "x.example/v1", "kind": "Gang", "status": {"phase": "Waiting"}});
    let params = PatchParams::apply("test").force();
    let patched = gangs.patch_status("g", &params, &Patch::Apply(status)).await.expect("applied");
    assert_eq!(
        (&patched.data["status"]["phase"], &patched.data["spec"]["n"]),
        (&json!("Waiting"), &json!(3))
    );
    let found =
        kube::discovery::pinned_group(&client, &kube::core::GroupVersion::gv("x.example", "v1")).await;
    assert!(found.expect("discovered").recommended_kind("Gang").is_some());
    definitions.delete("gangs.x.example", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(sandbox.count("gangs.x.example"), 0);
}

#[tokio::test]
async fn events_of_both_apis_are_one() {
    let (_sandbox, client) = still().await;
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(client.clone());
    let event = json!({
        "metadata": {"name": "e.1"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning",
        "reportingController": "pellucid", "reportingInstance": "p", "action": "Scheduling",
        "reason": "FailedScheduling", "note": "no node", "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}
    });
    new.create(&PostParams::default(), &of(event)).await.expect("created");
    let core: Api<Event> = Api::default_namespaced(client);
    let params = ListParams::default().fields("involvedObject.name=a,involvedObject.kind=Pod");
    let found = core.list(&params).await.expect("a list").items;
    assert_eq!(found.first().and_then(|e| e.message.as_deref()), Some("no node"));
    assert!(
        core.list(&ListParams::default().fields("involvedObject.name=b"))
            .await
            .expect("a list")
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_lease_is_renewed_by_its_holder_alone() {
    let (_sandbox, client) = still().await;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let lease: Lease = of(json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}));
    let first = leases.create(&PostParams::default(), &lease).await.expect("created");
    let mut second = first.clone();
    second.spec.as_mut().expect("a spec").holder_identity = Some("b".into());
    leases.replace("l", &PostParams::default(), &second).await.expect("replaced");
    assert_eq!(code(&leases.replace("l", &PostParams::default(), &first).await.expect_err("stale")), 409);
}

#[tokio::test]
async fn priority_comes_from_the_class() {
    let (_sandbox, client) = still().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
    classes.create(&PostParams::default(), &of(class)).await.expect("created");
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut high = pod("a");
    high.spec.as_mut().expect("a spec").priority_class_name = Some("high".into());
    let spec = pods.create(&PostParams::default(), &high).await.expect("created").spec.expect("a spec");
    assert_eq!((spec.priority, spec.preemption_policy.as_deref()), (Some(1000), Some("Never")));
    high.metadata.name = Some("b".into());
    high.spec.as_mut().expect("a spec").priority_class_name = Some("none".into());
    assert_eq!(code(&pods.create(&PostParams::default(), &high).await.expect_err("no such class")), 403);
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it() {
    let (sandbox, client) = still().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = of(json!({"metadata": {"name": "team"}}));
    namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    let pods: Api<Pod> = Api::namespaced(client, "team");
    let mut held = pod("a");
    held.metadata.finalizers = Some(vec!["example.org/hold".into()]);
    pods.create(&PostParams::default(), &held).await.expect("created");
    namespaces.delete("team", &DeleteParams::default()).await.expect("deleted");
    until(pods.clone(), "a", "on its way", |pod| {
        pod.is_some_and(|p| p.metadata.deletion_timestamp.is_some())
    })
    .await;
    assert_eq!(code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("too late")), 403);
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("a", &PatchParams::default(), &free).await.expect("patched");
    until(namespaces, "team", "gone", |namespace| namespace.is_none()).await;
    assert_eq!(sandbox.count("pods"), 0);
}
