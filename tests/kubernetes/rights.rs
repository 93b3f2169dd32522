//! The RBAC rules in `deploy/` match the calls: none is missing and none is unused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::input::Input;
use pellucid::framework::controllers;
use pellucid::kubernetes::decode::Decoder;
use pellucid::kubernetes::reviews::{Access, Reviewed, Reviews};
use pellucid::kubernetes::rights::{Rule, cluster_rules, controller_rules};
use pellucid::model::ObjectKind;
use pellucid::model::effect::{Effect, EffectReport, ObjectPart, ObjectRef, ObjectWrite, Precondition};
use pellucid::plugins::elastic_quota::ELASTIC_QUOTA;
use pellucid::plugins::reservation::RESERVATION;
use serde_json::{Value, json};

use crate::leading::{election, serve_lease};
use crate::mock::{
    Answer, Mock, bind, bind_done, bind_volume, condition, event, evict, failure, group_status, object,
    select_node,
};

/// API versions that serve PodGroups.
const GROUPS: [&str; 5] = [
    "scheduling.x-k8s.io/v1alpha1",
    "scheduling.sigs.k8s.io/v1alpha1",
    "scheduling.incubator.k8s.io/v1alpha1",
    "scheduling.sigs.dev/v1alpha2",
    "scheduling.k8s.io/v1alpha2",
];

/// Returns a request as RBAC sees it, `<group>/<resource> <verb>`, or `None` for discovery and the version, which
/// everybody may read.
fn right(what: &str) -> Option<String> {
    let (method, path) = what.split_once(' ').expect("method and path");
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    if (parts.len() <= 3 && parts[0] == "apis") || parts == ["version"] {
        return None;
    }
    let (group, rest) = if parts[0] == "api" { ("core", &parts[2..]) } else { (parts[1], &parts[3..]) };
    let rest = if rest[0] == "namespaces" && rest.len() > 1 { &rest[2..] } else { rest };
    let resource = rest.get(2).map_or(rest[0].to_owned(), |sub| format!("{}/{sub}", rest[0]));
    let verb = match (method, rest.len()) {
        ("GET", 1) => "list",
        ("GET", _) => "get",
        ("WATCH", _) => "watch",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => panic!("unexpected request {what}"),
    };
    Some(format!("{group}/{resource} {verb}"))
}

/// Returns the rules of the role of a kind, `ClusterRole` or `Role`, in the same form.
fn granted(kind: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/base/rbac.yaml"));
    let text = text.expect("the roles");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("yaml");
    let role = documents.iter().find(|document| document["kind"] == kind).expect("a role");
    rights_of(&role["rules"])
}

/// Returns rules of a role in the same form.
fn rights_of(rules: &Value) -> BTreeSet<String> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let all = rule[field].as_array().expect("a list").iter();
        all.map(|text| text.as_str().expect("a text").to_owned()).collect()
    };
    let mut all = BTreeSet::new();
    for rule in rules.as_array().expect("rules") {
        for group in texts(rule, "apiGroups") {
            let group = if group.is_empty() { "core".into() } else { group };
            for resource in texts(rule, "resources") {
                all.extend(texts(rule, "verbs").iter().map(|verb| format!("{group}/{resource} {verb}")));
            }
        }
    }
    all
}

/// Returns what the registry of kinds and the writes beside it ask for, in the same form.
fn declared() -> BTreeSet<String> {
    let decoder = Decoder::of(&pellucid::plugins::registry());
    listed(cluster_rules(decoder.kinds()))
}

fn listed(rules: Vec<Rule>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for Rule { group, resources, verbs } in rules {
        let group = if group.is_empty() { "core" } else { group };
        for resource in resources {
            all.extend(verbs.iter().map(|verb| format!("{group}/{resource} {verb}")));
        }
    }
    all
}

#[test]
fn the_registry_of_kinds_asks_for_what_the_cluster_role_grants() {
    assert_eq!(declared(), granted("ClusterRole"));
}

#[tokio::test(start_paused = true)]
async fn the_cluster_role_grants_exactly_the_calls_that_are_made() {
    let mock = Mock::new();
    mock.serve_all();
    let events = "POST /apis/events.k8s.io/v1/namespaces/ns/events";
    mock.on("POST /api/v1/namespaces/ns/pods/p/binding", [Answer::Hang]);
    let lost = || [failure(504, "Timeout", "x"), failure(409, "Conflict", "x")];
    mock.on("PATCH /api/v1/namespaces/ns/pods/v/status", [Answer::Json(200, json!({}))]);
    mock.on("PATCH /api/v1/persistentvolumes/pv", lost());
    mock.on("PATCH /api/v1/namespaces/ns/persistentvolumeclaims/c", lost());
    mock.on(events, [Answer::Json(201, json!({}))]);
    for (n, path) in GROUPS.iter().enumerate() {
        let group = json!({"metadata": {"uid": format!("uid-g{n}"), "resourceVersion": "9"}});
        mock.on(&format!("GET /apis/{path}/namespaces/ns/podgroups/g{n}"), [Answer::Json(200, group)]);
    }
    mock.serve("/apis/slo.koordinator.sh/v1alpha1/nodemetrics", []);
    mock.serve("/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies", []);
    mock.serve("/apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas", []);
    mock.serve("/apis/scheduling.koordinator.sh/v1alpha1/devices", []);
    mock.serve("/apis/quota.koordinator.sh/v1alpha1/elasticquotaprofiles", []);
    let quota = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/ns/elasticquotas/q";
    mock.on(&format!("PATCH {quota}"), lost());
    mock.on(&format!("PATCH {quota}/status"), [Answer::Json(200, json!({}))]);
    mock.serve("/apis/scheduling.koordinator.sh/v1alpha1/reservations", []);
    let reservation = "/apis/scheduling.koordinator.sh/v1alpha1/reservations/r";
    mock.on(&format!("PATCH {reservation}/status"), lost());
    mock.on(&format!("PATCH {reservation}"), lost());
    mock.on(&format!("DELETE {reservation}"), [Answer::Json(200, json!({}))]);
    mock.on("PATCH /api/v1/namespaces/ns/pods/g", lost());
    mock.serve("/apis/scheduling.k8s.io/v1/priorityclasses", []);
    let (io, mut inputs) =
        mock.start_io(|config| config.decoder = Decoder::of(&pellucid::plugins::registry()));
    io.queues.push_all([bind(1, "p"), condition("p", "m"), event("p", "m"), event("p", "m")]);
    bind_done(&mut inputs).await;
    let of_quota = [ObjectPart::Main, ObjectPart::Status].map(|part| patch_quota(5 + part as u64, part));
    io.queues.push_all([evict(2, "v"), bind_volume(3), select_node(4)].into_iter().chain(of_quota));
    io.queues.push_all(writes_of_reservation());
    // The nine reports arrive in any order.
    let mut reports = 0;
    while reports < 9 {
        let input = inputs.recv().await.expect("an input");
        reports += u32::from(matches!(
            input,
            Input::Report(EffectReport::EvictDone { .. } | EffectReport::ObjectDone { .. })
        ));
    }
    tokio::spawn(async move { while inputs.recv().await.is_some() {} });
    let watched = granted("ClusterRole").iter().filter(|right| right.ends_with(" watch")).count();
    mock.wait("WATCH", watched).await;
    let kinds = ObjectKind::POD_GROUPS.into_iter().enumerate();
    io.queues.push_all(kinds.map(|(n, kind)| group_status(kind, &format!("g{n}"), 1, Some("m"))));
    for (n, path) in GROUPS.iter().enumerate() {
        mock.wait(&format!("PATCH /apis/{path}/namespaces/ns/podgroups/g{n}/status"), 1).await;
    }
    mock.wait("PATCH /apis/events", 1).await;
    mock.wait("PATCH /api/v1/namespaces/ns/pods/p/status", 1).await;
    ask_about_users(&mock).await;
    let used: BTreeSet<_> = mock.seen("").iter().filter_map(|seen| right(&seen.what)).collect();
    assert_eq!(used, granted("ClusterRole"));
}

#[tokio::test(start_paused = true)]
async fn the_role_of_the_controllers_grants_exactly_what_they_write() {
    let mock = Mock::new();
    mock.serve_all();
    let lost = || [failure(504, "Timeout", "x"), failure(409, "Conflict", "x")];
    mock.on("PATCH /api/v1/nodes/n", lost());
    mock.on("PATCH /api/v1/nodes/n/status", [Answer::Json(200, json!({}))]);
    let (io, mut inputs) = mock.start_io(|_| {});
    let before: BTreeSet<_> = granted("ClusterRole");
    let write = |part| ObjectWrite::Patch {
        object: ObjectRef { group: "", version: "v1", plural: "nodes", namespace: None, name: "n".into() },
        part,
        precondition: Precondition::uid("u".into()),
        patch: Arc::new(json!({"metadata": {"labels": {"a": "b"}}})),
    };
    io.queues.push_all([object(1, write(ObjectPart::Main)), object(2, write(ObjectPart::Status))]);
    let mut reports = 0;
    while reports < 2 {
        let input = inputs.recv().await.expect("an input");
        reports += u32::from(matches!(input, Input::Report(EffectReport::ObjectDone { .. })));
    }
    let of_nodes = mock.seen("").into_iter().filter(|seen| seen.what.contains("/nodes"));
    let used: BTreeSet<_> = of_nodes.filter_map(|seen| right(&seen.what)).collect();
    let used: BTreeSet<_> = used.difference(&before).cloned().collect();
    let registry = pellucid::plugins::registry();
    assert_eq!(used, listed(controller_rules(&controllers::all(&registry))));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart/files/controller-rules.yaml");
    let text = std::fs::read_to_string(file).expect("the rules");
    assert_eq!(used, rights_of(&serde_saphyr::from_str(&text).expect("YAML")));
}

#[tokio::test(start_paused = true)]
async fn the_role_grants_exactly_the_requests_for_the_lease() {
    let mock = Mock::new();
    mock.serve_all();
    serve_lease(&mock);
    let (io, mut inputs) = mock.start_io(|config| config.election = Some(election()));
    while !matches!(inputs.recv().await.expect("an input"), Input::Leading(true)) {}
    tokio::spawn(async move { while inputs.recv().await.is_some() {} });
    mock.wait("PUT", 1).await;
    io.shutdown(Duration::from_secs(1)).await;
    let of_lease = mock.seen("").into_iter().filter(|seen| seen.what.contains("/leases"));
    let used: BTreeSet<_> = of_lease.filter_map(|seen| right(&seen.what)).collect();
    assert_eq!(used, granted("Role"));
}

/// Orders a patch of an ElasticQuota.
fn patch_quota(id: u64, part: ObjectPart) -> Effect {
    let write = ObjectWrite::Patch {
        object: ObjectRef::custom(&ELASTIC_QUOTA, &"ns".into(), &"q".into()),
        part,
        precondition: Precondition::uid("uid-q".into()),
        patch: Arc::new(json!({"metadata": {"annotations": {"a": "b"}}})),
    };
    object(id, write)
}

/// Orders patches of a Reservation and of its status, its deletion, and the mark of a pod over which it is placed.
fn writes_of_reservation() -> [Effect; 4] {
    let object_ref = || ObjectRef::custom(&RESERVATION, &"".into(), &"r".into());
    let precondition = || Precondition::uid("uid-r".into());
    let patch = ObjectWrite::Patch {
        object: object_ref(),
        part: ObjectPart::Status,
        precondition: precondition(),
        patch: Arc::new(json!({"status": {"phase": "Failed"}})),
    };
    let marks = ObjectWrite::Patch {
        object: object_ref(),
        part: ObjectPart::Main,
        precondition: precondition(),
        patch: Arc::new(json!({"metadata": {"annotations": {"a": "b"}}})),
    };
    let delete = ObjectWrite::Delete { object: object_ref(), precondition: precondition() };
    let guest = ObjectWrite::Patch {
        object: ObjectRef {
            group: "",
            version: "v1",
            plural: "pods",
            namespace: Some("ns".into()),
            name: "g".into(),
        },
        part: ObjectPart::Main,
        precondition: Precondition::uid("uid-g".into()),
        patch: Arc::new(json!({"metadata": {"annotations": {"a": "b"}}})),
    };
    [object(7, patch), object(8, delete), object(9, marks), object(10, guest)]
}

/// Asks who a user is and what the user may.
async fn ask_about_users(mock: &Mock) {
    mock.on(
        "POST /apis/authentication.k8s.io/v1/tokenreviews",
        [Answer::Json(201, json!({"spec": {"token": "t"}}))],
    );
    mock.on(
        "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
        [Answer::Json(201, json!({"spec": {}}))],
    );
    let reviews = Reviews::new(mock.client());
    assert_eq!(reviews.user_of("t".into()).await, Ok(None), "no status is no user");
    let access = Access::Pods { verb: "get".into(), namespace: "ns".into() };
    assert_eq!(reviews.allows(&Reviewed::default(), &access).await, Ok(false), "no status is no right");
}

#[tokio::test(start_paused = true)]
async fn one_config_map_is_read_with_a_role_of_its_own() {
    let mock = Mock::new();
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let map = json!({"metadata": {"name": "extension-apiserver-authentication"}, "data": {"client-ca-file": "PEM"}});
    mock.on(&format!("GET {path}"), [Answer::Json(200, map)]);
    assert_eq!(Reviews::new(mock.client()).client_ca().await, Ok("PEM".into()));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/base/rbac.yaml");
    let text = std::fs::read_to_string(file).expect("roles");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("yaml");
    let of_system = |role: &&Value| role["kind"] == "Role" && role["metadata"]["namespace"] == "kube-system";
    let roles: Vec<&Value> = documents.iter().filter(of_system).collect();
    let [role] = roles[..] else { panic!("{} roles in kube-system", roles.len()) };
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
        "resourceNames": ["extension-apiserver-authentication"],
    }]);
    assert_eq!(role["rules"], rules);
}
