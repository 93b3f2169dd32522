//! The cluster of two tenants that the tests of [`crate::security::tenants`] ask about: each has something of every kind, with names of
//! its own.

use pellucid::sandbox::definition;
use pellucid_api::definitions::koordinator::{ELASTIC_QUOTAS, RESERVATIONS};
use serde_json::{Value, json};

use crate::common::running::{node, pod, priority_class, with};
use crate::security::authority::{MINE, Secure, start_with};

/// What all names of the other tenant contain.
pub(crate) const MARK: &str = "xq7";
/// The other tenant's namespace.
const THEIRS: &str = "xq7-tenant";

/// All plugins, so that every route has something to say.
const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled:
          - {name: ElasticQuota}
          - {name: LoadAwareScheduling}
          - {name: NodeNUMAResource}
          - {name: DeviceShare}
          - {name: Reservation, weight: 5000}
";

pub(crate) fn within(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = value.into();
    object
}

fn gang(name: &str, member: &str, milli_cpu: u32) -> Value {
    let named = annotated(pod(member, milli_cpu), "gang.scheduling.koordinator.sh/name", name);
    annotated(named, "gang.scheduling.koordinator.sh/min-available", "2")
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "gone"},
    })
}

fn claiming(name: &str, claim: &str) -> Value {
    let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    with(pod(name, 100), "volumes", volume)
}

fn deployment(name: &str) -> Value {
    let pod = pod("x", 300);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": pod["spec"],
        }},
    })
}

/// Returns what one tenant has, with names that begin alike: pods that fit and one that does not, gangs, claims, owners,
/// a budget, and a pod that takes the room of others.
fn tenant(namespace: &str, start: &str) -> Vec<Value> {
    let name = |end: &str| format!("{start}-{end}");
    let group = json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": name("group")}, "spec": {"minMember": 2},
    });
    let mut member = pod(&name("member"), 90_000);
    member["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = name("group").into();
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name("budget")},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name("deploy")}}},
    });
    let mut beside = pod(&name("beside"), 100);
    beside["spec"]["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "kubernetes.io/hostname",
    }]}});
    let all = vec![
        deployment(&name("deploy")),
        budget,
        group,
        member,
        gang(&name("light"), &name("light-0"), 200),
        gang(&name("light"), &name("light-1"), 200),
        gang(&format!("{start} Große Gang, 2"), &name("odd-0"), 80_000),
        claim(&name("claim")),
        claiming(&name("claiming"), &name("claim")),
        claiming(&name("lost"), &name("nothing")),
        pod(&name("small"), 1_000),
        pod(&name("huge"), 77_000),
        beside,
        with(pod(&name("gated"), 100), "schedulingGates", json!([{"name": "wait"}])),
    ];
    all.into_iter().map(|object| within(object, namespace)).collect()
}

/// Returns what one tenant has of Koordinator's and kube-batch's kinds: a quota with a pod in it and one that it has no room
/// for, pods with a part of a card and with CPUs of their own, a reservation with and one without an owner, and a queue.
/// What has no namespace everybody may see, so its name is nobody's.
fn tenant_of_koordinator(namespace: &str, start: &str, number: usize) -> Vec<Value> {
    let name = |end: &str| format!("{start}-{end}");
    let labelled = |mut object: Value, key: &str, value: &str| {
        object["metadata"]["labels"][key] = value.into();
        object
    };
    let in_quota = |end: &str, milli_cpu: u32| {
        labelled(pod(&name(end), milli_cpu), "quota.scheduling.koordinator.sh/name", &name("quota"))
    };
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name("quota"), "labels": {"quota.scheduling.koordinator.sh/is-parent": "false"}},
        "spec": {"min": {"cpu": 1}, "max": {"cpu": 2}},
    });
    let mut half = pod(&name("half"), 100);
    let amounts =
        json!({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50, "cpu": "100m"});
    half["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    let pinned = labelled(pod(&name("pinned"), 1_000), "koordinator.sh/qosClass", "LSR");
    let pinned = labelled(pinned, "koordinator.sh/priority-class", "koord-prod");
    let room = |kind: &str, milli_cpu: u32| {
        let template = json!({"metadata": {"namespace": namespace}, "spec": pod("x", milli_cpu)["spec"]});
        json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": format!("{kind}-{number}")},
            "spec": {
                "ttl": "0s", "allocateOnce": false, "template": template,
                "owners": [{"object": {"namespace": namespace, "name": name("owner")}}],
            },
        })
    };
    let queue = json!({
        "apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "Queue",
        "metadata": {"name": format!("queue-{number}")}, "spec": {"weight": 1, "capability": {"cpu": 1}},
    });
    let group = json!({
        "apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": name("batch")}, "spec": {"minMember": 1, "queue": format!("queue-{number}")},
    });
    let batched = annotated(pod(&name("batch-0"), 3_000), "scheduling.k8s.io/group-name", &name("batch"));
    let within_it = [quota, in_quota("in", 500), in_quota("waits", 2_500), half, pinned, group, batched];
    let all = within_it.into_iter().map(|object| within(object, namespace));
    all.chain([room("room", 500), room("large", 90_000), queue]).collect()
}

/// Returns objects with names that answers have as words of their own, by accident or on purpose.
fn words_of_answers() -> Vec<Value> {
    vec![
        deployment("pellucid"),
        pod("0", 100),
        pod("3", 77_000),
        pod("rows", 77_000),
        gang(" ", "plugin", 77_000),
        gang("nodes are", "le", 77_000),
    ]
}

/// Returns the owner of a tenant's reservation, which comes when its room is there.
fn owner_of_room(namespace: &str, start: &str) -> Value {
    within(pod(&format!("{start}-owner"), 400), namespace)
}

/// Makes a node with cards and a described machine.
fn machine(name: &str) -> Value {
    let made = annotated(node(name, "z", 4), "sandbox.pellucid.dev/devices", "2 GPUs x 80Gi");
    annotated(made, "sandbox.pellucid.dev/machine", "1 socket x 2 NUMA x 2 cores x 1 thread")
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Starts the cluster, has each tenant evict pods of the other, deletes a pod, and records.
pub(crate) async fn two_tenants() -> Secure {
    let mut objects = vec![namespace(MINE), namespace(THEIRS)];
    objects.extend([ELASTIC_QUOTAS, RESERVATIONS].map(definition));
    objects.extend((0..3).map(|n| machine(&format!("n{n}"))));
    objects.push(priority_class("urgent", 1000, "PreemptLowerPriority"));
    objects.extend(tenant(THEIRS, MARK).into_iter().chain(tenant(MINE, "own")));
    objects.extend(words_of_answers().into_iter().map(|object| within(object, THEIRS)));
    objects.extend(tenant_of_koordinator(THEIRS, MARK, 1));
    objects.extend(tenant_of_koordinator(MINE, "own", 2));
    let secure = start_with(objects, Some(CONFIGURATION)).await;
    let root = secure.user("root");
    let rooms = root.clone();
    let available = tokio::task::spawn_blocking(move || {
        for name in ["room-1", "room-2"] {
            let path = format!("/apis/v1/plugins/Reservation/reservations/{name}");
            rooms.wait(&path, "it is there", |body| body["phase"] == "Available");
        }
    });
    available.await.expect("there is room");
    // A quota of one's own whose name comes after those of the other tenant.
    let late = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "zz-quota", "labels": {"quota.scheduling.koordinator.sh/is-parent": "false"}},
        "spec": {"min": {"cpu": 0}, "max": {"cpu": 1}},
    });
    let mut waits = pod("zz-waits", 2_500);
    waits["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] = "zz-quota".into();
    secure.sandbox.create(within(late, MINE)).expect("created");
    let sandbox_objects = [
        within(waits, MINE),
        owner_of_room(THEIRS, MARK),
        owner_of_room(MINE, "own"),
        within(with(pod("xq7-urgent", 3_900), "priorityClassName", json!("urgent")), THEIRS),
        within(with(pod("own-urgent", 3_900), "priorityClassName", json!("urgent")), MINE),
    ];
    let (recorded, robot) = (root.clone(), secure.user("robot"));
    let recording = tokio::task::spawn_blocking(move || {
        assert_eq!(recorded.put("/debug/flags/s", "5").status, 200);
        // An account of the other tenant sets a switch for all pods, and one for some.
        assert_eq!(robot.put("/debug/flags/f", "true").status, 200);
        assert_eq!(
            robot
                .put("/debug/flags/f", &json!({"value": true, "pod": "team-a/own-small"}).to_string())
                .status,
            200
        );
        assert_eq!(recorded.put("/debug/flags/f", "true").status, 200);
        let scoped = json!({"value": 3, "pod": "xq7-tenant/xq7-huge"}).to_string();
        assert_eq!(recorded.put("/debug/flags/s", &scoped).status, 200);
        let scoped = json!({"value": 3, "pod": "team-a/own-owner"}).to_string();
        assert_eq!(recorded.put("/debug/flags/s", &scoped).status, 200);
        // A pod that came before its quota would be one of the default quota.
        recorded.wait("/apis/v1/plugins/ElasticQuota/quotas", "the quota is known", |body| {
            body.to_string().contains("zz-quota")
        });
        recorded.wait("/apis/v1/summary/pending?by=namespace", "pods of both wait", |body| {
            body.to_string().matches("huge").count() >= 2
                || body["rows"].as_array().is_some_and(|rows| rows.len() == 2)
        });
    });
    recording.await.expect("recorded");
    for object in sandbox_objects {
        secure.sandbox.create(object).expect("created");
    }
    let waiting = tokio::task::spawn_blocking(move || {
        for name in ["own-urgent", "own-owner", "zz-waits", "xq7-urgent"] {
            let namespace = if name.starts_with(MARK) { THEIRS } else { MINE };
            root.wait(&format!("/apis/v1/explain/pods/{namespace}/{name}"), "it is decided", |body| {
                !body["verdict"].is_null() || !body["node"].is_null()
            });
        }
        // Lists and summaries may be older than what is told of one pod.
        root.wait("/apis/v1/summary/pending?by=quota", "it is in the summary", |body| {
            body.to_string().contains("zz-quota")
        });
        root.wait("/apis/v1/evictions", "somebody is evicted", |body| {
            body["evictions"].as_array().is_some_and(|all| !all.is_empty())
        });
    });
    waiting.await.expect("decided");
    secure
}
