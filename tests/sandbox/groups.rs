//! Gang kinds: custom PodGroups and Queues, the native PodGroup and Workload, and sandboxes without them.

use k8s_openapi::api::scheduling::v1alpha2 as native;
use pellucid::sandbox::Gangs;
use pellucid_api::crd::{self, kube_batch_incubator, kube_batch_sigs, pod_group, pod_group_sigs};

use super::*;

const MERGE: fn(Value) -> Patch<Value> = Patch::Merge;

fn params() -> PatchParams {
    PatchParams::default()
}

/// Makes an object of a custom kind.
fn custom(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Sends a request that must fail with this code and these words; returns the message.
async fn refused(client: &Client, method: &str, path: &str, body: &Value, code: u16, words: &str) -> String {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", kind);
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    match client.request::<Value>(request).await.expect_err("a refusal") {
        kube::Error::Api(status) => {
            let message = status.message.clone();
            assert!(status.code == code && message.contains(words), "{body}: {} {message}", status.code);
            message
        }
        other => panic!("not an answer of the API: {other}"),
    }
}

#[tokio::test]
async fn custom_pod_groups_are_served_from_the_start() {
    let (_sandbox, client) = still().await;
    let groups: Api<pod_group::PodGroup> = Api::default_namespaced(client.clone());
    let given = json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"},
        "spec": {"minMember": 3, "minResources": {"cpu": 4, "memory": "8Gi"}, "scheduleTimeoutSeconds": 10},
        "status": {"phase": "Running"}});
    let made = groups.create(&PostParams::default(), &of(given)).await.expect("created");
    assert_eq!((made.spec.min_member, made.spec.schedule_timeout_seconds), (Some(3), Some(10)));
    assert_eq!(made.spec.min_resources.as_ref().expect("amounts")["cpu"].to_string(), "4");
    assert_eq!((made.status, made.metadata.generation), (None, Some(1)), "a status is written apart");

    let mut seen = pin!(groups.watch(&WatchParams::default(), "0").await.expect("a watch"));
    assert!(
        matches!(in_time(seen.next()).await, Some(Ok(WatchEvent::Added(group))) if group.name_any() == "g")
    );
    let status = json!({"spec": {"minMember": 9}, "status": {"phase": "Scheduling", "scheduled": 2, "running": 1,
        "occupiedBy": "default/job", "scheduleStartTime": "2026-01-01T00:00:00Z"}});
    groups.patch_status("g", &params(), &MERGE(status)).await.expect("patched");
    let Some(Ok(WatchEvent::Modified(group))) = in_time(seen.next()).await else {
        panic!("no change is seen")
    };
    assert_eq!(
        (group.spec.min_member, group.metadata.generation),
        (Some(3), Some(1)),
        "the status alone changed"
    );
    let status = group.status.expect("a status");
    assert_eq!(
        (status.phase.as_deref(), status.scheduled, status.failed),
        (Some("Scheduling"), Some(2), None)
    );

    let spec = json!({"spec": {"minMember": 4}, "status": {"phase": "Failed"}});
    let group = groups.patch("g", &params(), &MERGE(spec)).await.expect("patched");
    assert_eq!((group.spec.min_member, group.metadata.generation), (Some(4), Some(2)));
    assert_eq!(
        group.status.expect("a status").phase.as_deref(),
        Some("Scheduling"),
        "the spec alone changed"
    );
    groups.delete("g", &DeleteParams::default()).await.expect("deleted");
    assert!(groups.get_opt("g").await.expect("an answer").is_none());
}

#[tokio::test]
async fn groups_and_queues_of_kube_batch_are_served_in_both_versions() {
    let (_sandbox, client) = still().await;
    for version in ["scheduling.incubator.k8s.io/v1alpha1", "scheduling.sigs.dev/v1alpha2"] {
        let group = custom(version, "PodGroup", "g", json!({"minMember": 2, "queue": "q"}));
        let queue = custom(version, "Queue", "q", json!({"weight": 2, "capability": {"cpu": "10"}}));
        for (path, object) in [("namespaces/default/podgroups", group), ("queues", queue)] {
            let request = http::Request::post(format!("/apis/{version}/{path}"));
            let request = request.header("Content-Type", "application/json");
            let request = request.body(object.to_string().into_bytes()).expect("a request");
            client.request::<Value>(request).await.expect("created");
        }
    }
    let condition =
        json!([{"type": "Unschedulable", "status": "True", "transitionID": "1", "reason": "NotEnoughTasks"}]);
    let status = json!({"status": {"phase": "Unknown", "running": 1, "conditions": condition}});
    let old: Api<kube_batch_incubator::PodGroup> = Api::default_namespaced(client.clone());
    let group = old.patch_status("g", &params(), &MERGE(status.clone())).await.expect("patched");
    assert_eq!(group.status.expect("a status").conditions.expect("conditions")[0].kind, "Unschedulable");
    let new: Api<kube_batch_sigs::PodGroup> = Api::default_namespaced(client.clone());
    let group = new.patch_status("g", &params(), &MERGE(status)).await.expect("patched");
    assert_eq!((group.spec.queue.as_deref(), group.spec.min_member), (Some("q"), Some(2)));
    let queues: Api<kube_batch_sigs::Queue> = Api::all(client.clone());
    let queue = queues
        .patch_status("q", &params(), &MERGE(json!({"status": {"pending": 1}})))
        .await
        .expect("patched");
    assert_eq!((queue.spec.weight, queue.status.expect("a status").pending), (Some(2), Some(1)));
}

#[tokio::test]
async fn what_a_definition_forbids_is_refused_with_the_field() {
    let (_sandbox, client) = still().await;
    let (x, sigs) = ("scheduling.x-k8s.io/v1alpha1", "scheduling.sigs.k8s.io/v1alpha1");
    let path = |version: &str| format!("/apis/{version}/namespaces/default/podgroups");
    let cases = [
        (x, json!({"minMember": 0}), "spec.minMember in body should be greater than or equal to 1"),
        (sigs, json!({"minMember": -1}), "spec.minMember in body should be greater than or equal to 0"),
        (x, json!({"minMember": "3"}), "spec.minMember in body must be of type integer: \"string\""),
        (x, json!({"minResources": {"cpu": "much"}}), "spec.minResources.cpu in body should match '^("),
        (
            x,
            json!({"minResources": {"cpu": true}}),
            "spec.minResources.cpu in body must be of type integer,string",
        ),
    ];
    for (version, spec, wanted) in cases {
        refused(&client, "POST", &path(version), &custom(version, "PodGroup", "g", spec), 422, wanted).await;
    }
    let mut object = custom(x, "PodGroup", "g", json!({"minMembers": 3}));
    let strict = format!("{}?fieldValidation=Strict", path(x));
    refused(&client, "POST", &strict, &object, 400, "unknown field \"spec.minMembers\"").await;
    object.as_object_mut().expect("an object").remove("spec");
    let wanted = "PodGroup.scheduling.x-k8s.io \"g\" is invalid: spec: Required value";
    assert_eq!(refused(&client, "POST", &path(x), &object, 422, wanted).await, wanted);

    let groups: Api<pod_group_sigs::PodGroup> = Api::default_namespaced(client.clone());
    let zero = of(custom(sigs, "PodGroup", "zero", json!({"minMember": 0})));
    groups.create(&PostParams::default(), &zero).await.expect("Koordinator allows 0");
    let status = json!({"status": {"running": "many"}});
    let wanted = "status.running in body must be of type integer";
    refused(&client, "PATCH", &format!("{}/zero/status", path(sigs)), &status, 422, wanted).await;
}

#[tokio::test]
async fn a_definition_can_be_installed_again() {
    let (_sandbox, client) = still().await;
    let groups: Api<pod_group::PodGroup> = Api::default_namespaced(client.clone());
    let group = of(custom("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", json!({"minMember": 3})));
    groups.create(&PostParams::default(), &group).await.expect("created");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let served = || async {
        let list = client.list_api_groups().await.expect("groups");
        list.groups.into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    let before = served().await;
    for definition in crd::definitions() {
        let name = definition.name_any();
        let again = definitions.create(&PostParams::default(), &definition).await;
        assert_eq!(code(&again.expect_err("it is there")), 409);
        let how = PatchParams::apply("kubectl").force();
        definitions.patch(&name, &how, &Patch::Apply(&definition)).await.expect("applied");
        let note = json!({"metadata": {"annotations": {"note": "changed"}}});
        definitions.patch(&name, &params(), &MERGE(note)).await.expect("changed");
    }
    assert_eq!(served().await, before, "the order of groups stays");
    assert_eq!(groups.get("g").await.expect("still there").spec.min_member, Some(3));

    let name = "podgroups.scheduling.x-k8s.io";
    definitions.delete(name, &DeleteParams::default()).await.expect("deleted");
    assert_eq!(code(&groups.list(&ListParams::default()).await.expect_err("not served")), 404);
    let first = crd::definitions().remove(0);
    definitions.create(&PostParams::default(), &first).await.expect("created");
    assert!(groups.list(&ListParams::default()).await.expect("served").items.is_empty());

    let mut own = serde_json::to_value(&first).expect("JSON");
    own["spec"]["names"]["shortNames"] = json!(["gang"]);
    let (_sandbox, client) = start(Config { objects: vec![own], ..Config::default() }).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let names = definitions.get(name).await.expect("there").spec.names.short_names;
    assert_eq!(names, Some(vec!["gang".to_owned()]), "a definition among the objects counts");
}

#[tokio::test]
async fn a_definition_in_a_protected_group_needs_an_approval() {
    let (_sandbox, client) = still().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut definition = serde_json::to_value(&crd::definitions()[1]).expect("JSON");
    definition["spec"]["group"] = "other.k8s.io".into();
    definition["metadata"] = json!({"name": "podgroups.other.k8s.io"});
    let field = "metadata.annotations[api-approved.kubernetes.io]: Required value";
    refused(&client, "POST", path, &definition, 422, field).await;
}

const NATIVE: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups";

fn native_group(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})
}

fn gang(min_count: i64) -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": min_count}}})
}

#[tokio::test]
async fn a_native_pod_group_has_one_policy_that_stays() {
    let (_sandbox, client) = still().await;
    let policy = "spec.schedulingPolicy";
    let both = json!({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}});
    let mut cases = vec![
        (json!({}), format!("{policy}: Invalid value: \"\": must specify one of: `basic`, `gang`")),
        (
            both,
            format!(
                "{policy}: Invalid value: \"{{basic, gang}}\": must specify exactly one of: `basic`, `gang`"
            ),
        ),
        (gang(0), format!("{policy}.gang.minCount: Required value")),
        (gang(-1), format!("{policy}.gang.minCount: Invalid value: -1: must be greater than or equal to 1")),
    ];
    let mut with = |key: &str, value: Value, wanted: &str| {
        let mut spec = gang(2);
        spec[key] = value;
        cases.push((spec, wanted.to_owned()));
    };
    with("disruptionMode", json!("Some"), "spec.disruptionMode: Unsupported value: \"Some\"");
    with("priority", json!(2_000_000_000), "spec.priority: Invalid value: 2000000000");
    with("podGroupTemplateRef", json!({}), "spec.podGroupTemplateRef: Invalid value");
    let keys = json!({"topology": [{"key": "a"}, {"key": ""}]});
    with(
        "schedulingConstraints",
        keys,
        "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 items",
    );
    with(
        "resourceClaims",
        json!([{"name": "c"}]),
        "spec.resourceClaims[0]: Invalid value: \"\": must specify one of",
    );
    for (spec, wanted) in cases {
        refused(&client, "POST", NATIVE, &native_group("g", spec), 422, &wanted).await;
    }

    let groups: Api<native::PodGroup> = Api::default_namespaced(client.clone());
    let made = groups.create(&PostParams::default(), &of(native_group("g", gang(2)))).await.expect("created");
    assert_eq!(made.spec.disruption_mode.as_deref(), Some("Pod"));
    let change = json!({"spec": gang(3)});
    let wanted = "spec.schedulingPolicy: Invalid value";
    let message = refused(&client, "PATCH", &format!("{NATIVE}/g"), &change, 422, wanted).await;
    assert!(message.ends_with("field is immutable"), "{message}");

    let condition = json!([{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = json!({"spec": gang(5), "status": {"conditions": condition}});
    let group = groups.patch_status("g", &params(), &MERGE(status)).await.expect("patched");
    assert_eq!(group.spec.scheduling_policy.gang.expect("a gang").min_count, 2);
    assert_eq!(group.status.expect("a status").conditions.expect("conditions")[0].reason, "Scheduled");
}

#[tokio::test]
async fn a_native_pod_group_gets_its_priority_and_needs_its_workload() {
    let (_sandbox, client) = still().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    classes.create(&PostParams::default(), &of(class)).await.expect("created");
    let with = |key: &str, value: Value| {
        let mut spec = gang(2);
        spec[key] = value;
        native_group("g", spec)
    };
    let (group, wanted) =
        (with("priorityClassName", json!("none")), "no PriorityClass with name none was found");
    refused(&client, "POST", NATIVE, &group, 403, wanted).await;
    let reference = json!({"workload": {"workloadName": "w", "podGroupTemplateName": "t"}});
    let group = with("podGroupTemplateRef", reference.clone());
    refused(&client, "POST", NATIVE, &group, 403, "workload \"w\" not found").await;

    let workloads = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads";
    let template = |name: &str| json!({"name": name, "schedulingPolicy": {"gang": {"minCount": 2}}});
    let workload =
        |templates: Value| json!({"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}});
    let many: Vec<Value> = (0..9).map(|n| template(&format!("t{n}"))).collect();
    for (templates, wanted) in [
        (json!([]), "spec.podGroupTemplates: Required value"),
        (json!(many), "spec.podGroupTemplates: Too many: 9: must have at most 8 items"),
        (
            json!([template("t"), template("t")]),
            "spec.podGroupTemplates[1]: Duplicate value: {\"name\":\"t\"}",
        ),
        (json!([template("T")]), "spec.podGroupTemplates[0].name: Invalid value: \"T\""),
        (json!([{"name": "t"}]), "spec.podGroupTemplates[0].schedulingPolicy: Invalid value: \"\""),
    ] {
        refused(&client, "POST", workloads, &workload(templates), 422, wanted).await;
    }
    let served: Api<native::Workload> = Api::default_namespaced(client.clone());
    served.create(&PostParams::default(), &of(workload(json!([template("t")])))).await.expect("created");
    let change = json!({"spec": {"podGroupTemplates": [template("u")]}});
    let wanted = "spec.podGroupTemplates: Invalid value";
    refused(&client, "PATCH", &format!("{workloads}/w"), &change, 422, wanted).await;

    let groups: Api<native::PodGroup> = Api::default_namespaced(client.clone());
    let mut group = with("podGroupTemplateRef", reference);
    group["spec"]["priorityClassName"] = "high".into();
    let group = of(group);
    let made = groups.create(&PostParams::default(), &group).await.expect("created");
    assert_eq!(made.spec.priority, Some(1000));
    let same =
        groups.replace("g", &PostParams::default(), &group).await.expect("replaced by what it was made of");
    assert_eq!(same.spec.priority, Some(1000));
}

fn member(name: &str, group: &str) -> Pod {
    let mut pod = pod(name);
    let spec = pod.spec.as_mut().expect("a spec");
    spec.scheduling_group = Some(of(json!({"podGroupName": group})));
    pod
}

#[tokio::test]
async fn a_native_pod_group_stays_while_pods_use_it() {
    let (_sandbox, client) = fast().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let groups: Api<native::PodGroup> = Api::default_namespaced(client.clone());
    groups.create(&PostParams::default(), &of(native_group("g", gang(1)))).await.expect("created");
    pods.create(&PostParams::default(), &member("a", "g")).await.expect("created");
    pods.create(&PostParams::default(), &member("b", "other")).await.expect("a group may come later");
    let change = json!({"spec": {"schedulingGroup": {"podGroupName": "other"}}});
    let moved = pods.patch("a", &params(), &MERGE(change)).await;
    assert_eq!(code(&moved.expect_err("it stays in its group")), 422);

    groups.delete("g", &DeleteParams::default()).await.expect("deleted");
    let leaving = groups.get("g").await.expect("still there");
    assert!(leaving.metadata.deletion_timestamp.is_some());
    let finalizers = leaving.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers, ["scheduling.k8s.io/podgroup-protection"]);
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    until(groups.clone(), "g", "gone", |group| group.is_none()).await;

    groups.create(&PostParams::default(), &of(native_group("g", gang(1)))).await.expect("created again");
    groups.delete("g", &DeleteParams::default()).await.expect("deleted");
    until(groups, "g", "gone at once", |group| group.is_none()).await;

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = of(json!({"metadata": {"name": "team"}}));
    namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    let groups: Api<native::PodGroup> = Api::namespaced(client.clone(), "team");
    groups.create(&PostParams::default(), &of(native_group("g", gang(1)))).await.expect("created");
    let pods: Api<Pod> = Api::namespaced(client, "team");
    pods.create(&PostParams::default(), &member("a", "g")).await.expect("created");
    namespaces.delete("team", &DeleteParams::default()).await.expect("deleted");
    until(namespaces, "team", "gone with its groups", |namespace| namespace.is_none()).await;
}

#[tokio::test]
async fn a_sandbox_can_be_without_the_kinds_of_gangs() {
    let gangs = Gangs { native: false, custom: false };
    let (_sandbox, client) = start(Config { gangs, ..Config::default() }).await;
    let groups = client.list_api_groups().await.expect("groups").groups;
    let scheduling: Vec<_> = groups.iter().filter(|group| group.name.starts_with("scheduling.")).collect();
    assert_eq!(scheduling.len(), 1, "{scheduling:?}");
    assert_eq!(scheduling[0].versions.len(), 1, "priority classes alone are left: {scheduling:?}");
    let custom: Api<pod_group::PodGroup> = Api::default_namespaced(client.clone());
    assert_eq!(code(&custom.list(&ListParams::default()).await.expect_err("not served")), 404);
    let native: Api<native::PodGroup> = Api::default_namespaced(client.clone());
    assert_eq!(code(&native.list(&ListParams::default()).await.expect_err("not served")), 404);
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let made = pods.create(&PostParams::default(), &member("a", "g")).await.expect("created");
    assert!(made.spec.expect("a spec").scheduling_group.is_none(), "such a server drops the field");

    let definition = crd::definitions().remove(0);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.expect("installed later");
    assert!(custom.list(&ListParams::default()).await.expect("served now").items.is_empty());
}
