//! Two tenants on one cluster: whoever sees one namespace finds no name of the other in any answer, and the counts are
//! those of everybody.
//!
//! All names of the other tenant contain [`MARK`], which nothing else does, so a leak is found wherever it is. The routes are
//! those that the server lists; a new one is walked without a change here.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::sandbox::definition;
use pellucid_api::definitions::koordinator::{ELASTIC_QUOTAS, RESERVATIONS};
use serde_json::{Value, json};

use crate::authority::{MINE, Secure, asking, start_with};
use crate::caller::Caller;
use crate::common::client::Reply;
use crate::common::running::{node, pod, priority_class, with};

/// What all names of the other tenant contain.
const MARK: &str = "xq7";
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

fn within(mut object: Value, namespace: &str) -> Value {
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
async fn two_tenants() -> Secure {
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
    let sandbox_objects = [
        owner_of_room(THEIRS, MARK),
        owner_of_room(MINE, "own"),
        within(with(pod("xq7-urgent", 3_900), "priorityClassName", json!("urgent")), THEIRS),
        within(with(pod("own-urgent", 3_900), "priorityClassName", json!("urgent")), MINE),
    ];
    let recorded = root.clone();
    let recording = tokio::task::spawn_blocking(move || {
        assert_eq!(recorded.put("/debug/flags/s", "5").status, 200);
        assert_eq!(recorded.put("/debug/flags/f", "true").status, 200);
        let scoped = json!({"value": 3, "pod": "xq7-tenant/xq7-huge"}).to_string();
        assert_eq!(recorded.put("/debug/flags/s", &scoped).status, 200);
        let scoped = json!({"value": 3, "pod": "team-a/own-owner"}).to_string();
        assert_eq!(recorded.put("/debug/flags/s", &scoped).status, 200);
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
        for name in ["own-urgent", "own-owner", "xq7-urgent"] {
            let namespace = if name.starts_with("own") { MINE } else { THEIRS };
            root.wait(&format!("/apis/v1/explain/pods/{namespace}/{name}"), "it is decided", |body| {
                !body["verdict"].is_null() || !body["node"].is_null()
            });
        }
        root.wait("/apis/v1/evictions", "somebody is evicted", |body| {
            body["evictions"].as_array().is_some_and(|all| !all.is_empty())
        });
    });
    waiting.await.expect("decided");
    secure
}

/// Returns the pages of a path template: each parameter with each value that there is.
fn pages(template: &str, values: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let Some(at) = template.find(':') else { return vec![template.to_owned()] };
    let rest = &template[at + 1..];
    let end = rest.find('/').unwrap_or(rest.len());
    let fallback = vec!["x".to_owned()];
    let values_of = values.get(&rest[..end]).unwrap_or(&fallback);
    let each = values_of.iter().map(|value| format!("{}{value}{}", &template[..at], &rest[end..]));
    each.flat_map(|page| pages(&page, values)).collect()
}

fn whole(reply: &Reply) -> String {
    let headers: Vec<String> = reply.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}\n{}", headers.join("\n"), String::from_utf8_lossy(&reply.body))
}

/// Routes that a tenant gets nothing from: what is of the whole cluster, and what there is in shadow mode alone.
const WITHHELD: [&str; 3] = ["/apis/v1/shadow", "/apis/v1/snapshot", "/configz"];

/// Query strings under which every route is walked as well.
const QUERIES: [&str; 4] = ["", "?format=table", "?format=csv", "?limit=2"];

/// Further pages, each with what it must not say.
fn further() -> Vec<String> {
    let summaries = ["namespace", "owner", "gang", "shape", "code,namespace", "ownerOrShape"]
        .map(|by| format!("/apis/v1/summary/pending?by={by}"));
    let more = [
        "/apis/v1/explain/pods/team-a/own-huge?mode=exhaustive",
        "/apis/v1/explain/pods/team-a/own-huge?versus=n1",
        "/apis/v1/explain/pods/team-a/own-urgent?versus=n1",
        "/apis/v1/queue?position=team-a/own-huge",
        "/apis/v1/explain/pods?sort=-priority,name",
        "/apis/v1/explain/pods?name=xq7",
        "/apis/v1/explain/pods?owner=xq7-deploy",
        "/apis/v1/gangs?name=xq7",
        "/apis/v1/events?limit=10000",
        "/apis/v1/events?since=1",
        "/apis/v1/explain/pods/team-a/xq7-huge",
        "/apis/v1/explain/nodes/n0?limit=1000",
    ];
    summaries.into_iter().chain(more.map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_names_what_belongs_to_another_tenant() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let own = root.get(&format!("/apis/v1/explain/pods?namespace={MINE}&limit=0")).json();
        let mut names: BTreeSet<String> =
            own["pods"].as_array().unwrap().iter().map(|pod| text(pod, "name")).collect();
        names.extend(
            [
                "own-small",
                "own-urgent",
                "own-light",
                "own-group",
                "own-light-0",
                "own Große Gang, 2",
                "own-half",
                "own-pinned",
                "own-owner",
                "own-quota",
                "room-1",
                "room-2",
                "large-1",
                "queue-1",
                "queue-2",
                "n0",
                "n1",
                "n2",
            ]
            .map(str::to_owned),
        );
        let escaped = |name: String| name.replace(' ', "%20").replace('ß', "%C3%9F").replace(',', "%2C");
        let values = BTreeMap::from([
            ("namespace", vec![MINE.to_owned()]),
            ("name", names.into_iter().map(escaped).collect()),
            ("nodeName", vec!["n0".into(), "n1".into(), "n2".into()]),
            ("kind", vec!["Reservation".into()]),
            ("flag", vec!["s".into(), "f".into(), "v".into()]),
            ("file", vec!["app.js".into(), "swagger-ui.css".into()]),
        ]);
        let services = root.get("/apis/v1/__services__").json();
        let templates = services["GET"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
        let templates: Vec<&str> = templates.collect();
        let mut walked = Vec::new();
        for template in &templates {
            let all = pages(template, &values).into_iter();
            // Of one object there are no pages, and rarely rows.
            let queries = if template.ends_with(":name") { &QUERIES[..2] } else { &QUERIES[..] };
            let each = |page: String| queries.iter().map(move |query| (*template, format!("{page}{query}")));
            walked.extend(all.flat_map(each));
        }
        walked.extend(further().into_iter().map(|page| ("", page)));
        let (mut told, mut seen, mut leaks) = (0, 0, Vec::new());
        let mut answered = BTreeSet::new();
        for (template, page) in &walked {
            let reply = patient(&ann, page);
            told += usize::from(reply.status == 200);
            if reply.status == 200 {
                answered.insert(*template);
            }
            // The tenant's own question has the mark in it.
            let answer = whole(&reply);
            if answer.contains(MARK) && !(page.contains(MARK) && reply.status != 200) {
                let at = answer.find(MARK).unwrap_or(0);
                let around =
                    answer.char_indices().filter(|(i, _)| i + 150 > at && *i < at + 60).map(|(_, c)| c);
                leaks.push(format!("{page}: …{}…", around.collect::<String>()));
            }
            if page.contains('?') && !page.ends_with("=csv") {
                continue;
            }
            seen += usize::from(whole(&patient(&root, page)).contains(MARK));
        }
        assert!(leaks.is_empty(), "{} of {} leak:\n{}", leaks.len(), walked.len(), leaks.join("\n"));
        let is_silent = |template: &&str| !answered.contains(*template) && !WITHHELD.contains(template);
        let silent: Vec<&str> = templates.into_iter().filter(is_silent).collect();
        assert!(silent.is_empty(), "the tenant gets nothing but errors from {silent:?}");
        assert!(told > 300, "only {told} of {} were answered", walked.len());
        assert!(seen > 30, "the other one sees names in {seen} answers only");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_words_of_answers_take_nothing_out_of_those_of_others() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let path = format!("/apis/v1/explain/pods/{MINE}/own-huge");
        let of = |who: &Caller| {
            let body = who.get(&path).json();
            ["profile", "message"].map(|field| body[field].clone())
        };
        let seen = of(&root);
        assert_eq!(seen[0], "pellucid");
        assert!(seen[1].as_str().is_some_and(|text| text.contains("0/3 nodes are")), "{seen:?}");
        assert_eq!(of(&ann), seen);
        let summary = ann.get("/apis/v1/summary/pending?by=code").json();
        assert!(summary["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{summary}");
        let samples = |who: &Caller, part: &str| {
            let reply = patient(who, "/metrics");
            reply
                .text()
                .lines()
                .filter(|line| line.contains(part))
                .map(|line| line.split(' ').next().unwrap().to_owned())
                .collect()
        };
        for part in ["profile=\"pellucid\"", "le=\""] {
            let (all, seen): (BTreeSet<String>, BTreeSet<String>) =
                (samples(&root, part), samples(&ann, part));
            assert!(!seen.is_empty() && seen.is_superset(&all), "{part}: {:?}", all.difference(&seen));
        }
    })
    .await;
}

fn text(body: &Value, field: &str) -> String {
    body[field].as_str().unwrap_or_default().to_owned()
}

/// Asks again while the caller is told to come back.
fn patient(caller: &Caller, page: &str) -> Reply {
    loop {
        let reply = caller.get(page);
        if reply.status != 429 {
            return reply;
        }
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulations_name_no_other_tenant_and_counts_are_right() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let urgent = within(with(pod("own-new", 3_900), "priority", json!(1000)), MINE);
        for question in [
            json!({"pods": [urgent], "evict": true, "scores": 10}),
            json!({"include": ["team-a/own-huge"], "evict": true}),
            json!({"includeGangs": ["team-a/own-group"], "edits": [{"removeNode": "n0"}]}),
        ] {
            let reply = ann.post("/apis/v1/simulate", &question);
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert!(!whole(&reply).contains(MARK), "{}", reply.text());
        }
        for foreign in ["xq7-tenant/xq7-huge", "xq7-tenant/nobody"] {
            let reply = ann.post("/apis/v1/simulate", &json!({"include": [foreign]}));
            assert_eq!(reply.status, 403, "it is not told whether {foreign} exists: {}", reply.text());
        }
        let counts = |body: &Value| {
            body["nodeGroups"].as_array().unwrap().iter().map(|g| g["count"].clone()).collect()
        };
        for name in ["own-huge", "own-beside", "own-claiming"] {
            let path = format!("/apis/v1/explain/pods/{MINE}/{name}");
            let of = |who: &Caller| -> Vec<Value> { counts(&who.get(&path).json()) };
            assert_eq!(of(&root), of(&ann), "{name}");
        }
        let total = |who: &Caller| {
            let rows = who.get("/apis/v1/summary/pending?by=namespace").json();
            rows["rows"].as_array().unwrap().iter().map(|row| row["pods"].as_u64().unwrap()).sum::<u64>()
        };
        assert!(total(&root) > 0 && total(&root) == total(&ann), "everybody's pods are counted");
    })
    .await;
}
