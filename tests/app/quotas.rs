//! Quotas through an API server: what is refused, what is written on the objects, and what `pellucid quotas` prints.

use pellucid::plugins::elastic_quota::NAME;
use serde_json::{Value, json};

use crate::app::command_lists::{fits, follow, run};
use crate::common::running::{node, pod, start_with};

pub(crate) const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: ElasticQuota}]
";
const KIND: &str = "scheduling.sigs.k8s.io/v1alpha1/ElasticQuota";

pub(crate) fn definition() -> Value {
    pellucid::sandbox::definition(pellucid_api::definitions::koordinator::ELASTIC_QUOTAS)
}

pub(crate) fn quota(name: &str, parent: &str, min: u32, max: u32) -> Value {
    let is_parent = parent.is_empty().to_string();
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default", "labels": {
            "quota.scheduling.koordinator.sh/is-parent": is_parent,
            "quota.scheduling.koordinator.sh/parent": parent,
        }},
        "spec": {"min": {"cpu": min}, "max": {"cpu": max}},
    })
}

fn member(name: &str, quota: &str) -> Value {
    let mut made = pod(name, 1000);
    made["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] = quota.into();
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_borrower_is_refused_once_the_lender_wants_its_share_back() {
    let objects = vec![
        definition(),
        node("n1", "a", 10),
        quota("dept", "", 10, 10),
        quota("team-a", "dept", 4, 10),
        quota("team-b", "dept", 4, 10),
    ];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    let address = cluster.instance.address;
    cluster.wait(&format!("/apis/v1/plugins/{NAME}/state"), "the quotas", |body| body["quotas"] == 3);

    // Nobody else asks for anything, so team-a borrows 2 of the 4 that team-b is guaranteed.
    for n in 0..6 {
        cluster.place(member(&format!("a{n}"), "team-a")).await;
    }
    // Now team-b does. Both have a min of 4, and of the 2 that are left each gets 1.
    cluster.create((0..5).map(|n| member(&format!("b{n}"), "team-b")));
    cluster.create([member("late", "team-a")]);
    let said = cluster.told("late", "Insufficient quotas").await;
    let numbers =
        "quotaName: team-a, runtime: cpu:5, used: cpu:6, pod's request: cpu:1, exceedDimensions: [cpu]";
    assert!(said.contains(numbers), "{said}");

    // The numbers stand on the objects.
    let is_written = |object: &Value| {
        let runtime = &object["metadata"]["annotations"]["quota.scheduling.koordinator.sh/runtime"];
        *runtime == r#"{"cpu":"5"}"# && object["status"]["used"] == json!({"cpu": "6"})
    };
    cluster.object(KIND, "team-a", "its runtime and what it uses", is_written).await;

    let listed = fits(address, &["quotas"]);
    for said in ["dept", "  team-a", "  team-b", "over by 1"] {
        assert!(listed.contains(said), "{said} is not in\n{listed}");
    }
    let explained = follow(address, &listed);
    for said in ["koordinator-root-quota > dept > team-a", "Round 1", "monitorAllQuotas is off"] {
        assert!(explained.contains(said), "{said} is not in\n{explained}");
    }
    let unknown = run(address, 100, &["quotas", "nobody"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("nobody"), "{}", unknown.stderr);
    cluster.stop().await;
}

/// The article's quotas, but for the min of b: what if it were 50?
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_can_be_changed_in_a_simulation() {
    let objects = vec![definition(), node("n1", "a", 100), quota("a", "", 50, 100), quota("b", "", 20, 100)];
    let mut cluster = start_with(objects, Some(CONFIGURATION), None).await;
    cluster.wait(&format!("/apis/v1/plugins/{NAME}/state"), "the quotas", |body| body["quotas"] == 2);
    let of = |name: &str, quota: &str, cpu: u32| {
        let mut made = member(name, quota);
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu.to_string().into();
        made
    };
    for n in 0..6 {
        cluster.place(of(&format!("a{n}"), "a", 10)).await;
    }
    for n in 0..3 {
        cluster.place(of(&format!("b{n}"), "b", 10)).await;
    }
    // Each requests 100 then. Beyond the mins 30 are left, of which each gets 15.
    for (pod, quota, cpu, numbers) in [
        ("a-large", "a", 40, "runtime: cpu:70, used: cpu:60, pod's request: cpu:40"),
        ("b-large", "b", 70, "runtime: cpu:35, used: cpu:30, pod's request: cpu:70"),
        ("a6", "a", 10, "runtime: cpu:65, used: cpu:60, pod's request: cpu:10"),
        ("b3", "b", 10, "runtime: cpu:35, used: cpu:30, pod's request: cpu:10"),
    ] {
        cluster.create([of(pod, quota, cpu)]);
        cluster.told(pod, numbers).await;
    }
    let explained = cluster.read("/apis/v1/explain/pods/default/b3");
    let said = "quota b: cpu used 30 + 10 > runtime 35 of max 100; a borrows 15 of nobody's min; freed when pods of b with \
                5 cpu end, or others request less";
    assert_eq!(explained["notes"][0]["text"], said);

    let simulate = |edits: Value| {
        let body = json!({"include": ["default/b3", "default/a6"], "edits": edits});
        let reply = cluster.post("/apis/v1/simulate", &body);
        (reply.status, reply.json())
    };
    let names = |list: &Value| -> Vec<String> {
        let of = |one: &Value| one["pod"].as_str().unwrap_or_default().to_owned();
        list.as_array().expect("a list").iter().map(of).collect()
    };
    let (_, as_it_is) = simulate(json!([]));
    assert_eq!(names(&as_it_is["refused"]), ["default/a6", "default/b3"]);
    let (_, with_fifty) = simulate(json!([{"applyObject": quota("b", "", 50, 100)}]));
    assert_eq!(names(&with_fifty["placements"]), ["default/b3"], "{with_fifty}");
    let summary = with_fifty["refused"][0]["summary"].as_str().expect("a text");
    assert!(
        summary.starts_with("Not placed: quota a: cpu used 60 + 10 > runtime 50 of max 100"),
        "{summary}"
    );
    let (_, without) = simulate(json!([{"deleteObject": {"kind": "ElasticQuota", "name": "b"}}]));
    assert_eq!(names(&without["placements"]).len(), 1, "there is room for one, and no quota b: {without}");
    let moved = json!({"pod": "default/b3", "key": "quota.scheduling.koordinator.sh/name", "value": "a"});
    let (_, moved) = simulate(json!([{"labelPod": moved}]));
    assert_eq!(names(&moved["placements"]), Vec::<String>::new(), "a has no room either: {moved}");

    let mut bad = quota("b", "", 50, 100);
    bad["spec"]["min"]["cpu"] = "much".into();
    let (status, refused) = simulate(json!([{"applyObject": bad}]));
    let message = refused["message"].as_str().expect("a text").to_owned();
    assert!(status == 400 && message.contains("edits[0].applyObject.spec.min.cpu: "), "{message}");
    let (_, refused) = simulate(json!([{"labelPod": {"pod": "default/b3", "key": "a b", "value": "a"}}]));
    let message = refused["message"].as_str().expect("a text").to_owned();
    assert!(message.contains("edits[0].labelPod.key: "), "{message}");
    let listed = fits(cluster.instance.address, &["explain", "pods", "--quota", "b", "--all"]);
    assert!(listed.contains("b3") && !listed.contains("a6"), "{listed}");
    cluster.stop().await;
}

/// Built-in quotas have no objects here; a simulation may give them some, under today's names and under those of 0.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_quotas_can_be_given_objects_in_a_simulation() {
    let configuration = format!(
        "{CONFIGURATION}    pluginConfig:\n      - name: ElasticQuota\n        args: {{defaultQuotaGroupMax: {{cpu: 4}}}}\n"
    );
    let objects = vec![definition(), node("n1", "a", 10), quota("team", "", 2, 6)];
    let cluster = start_with(objects, Some(&configuration), None).await;
    cluster.wait(&format!("/apis/v1/plugins/{NAME}/state"), "the quotas", |body| body["quotas"] == 1);
    // Four cores of the default quota, which is what it may use, four of the system quota, and three of a team.
    let mut pods: Vec<Value> = (0..4).map(|n| pod(&format!("plain{n}"), 1000)).collect();
    pods.extend((0..4).map(|n| member(&format!("system{n}"), "koordinator-system-quota")));
    pods.extend((0..2).map(|n| member(&format!("team{n}"), "team")));
    let refused = |edits: Value| -> Vec<(String, String)> {
        let reply = cluster.post("/apis/v1/simulate", &json!({"pods": pods, "edits": edits}));
        let body = reply.json();
        assert_eq!(reply.status, 200, "{edits}: {body}");
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let of = |one: &Value| (text(one, "pod"), text(one, "summary"));
        body["refused"].as_array().expect("a list").iter().map(of).collect()
    };
    let built_in = |name: &str, namespace: &str, cpu: u32| {
        let mut made = quota(name, "", 0, cpu);
        made["metadata"]["namespace"] = namespace.into();
        json!([{"applyObject": made}])
    };
    assert_eq!(refused(json!([])), []);
    for (names, limited) in [
        (["koordinator-default-quota", "default"], "plain"),
        (["koordinator-system-quota", "system"], "system"),
    ] {
        for name in names {
            let found = refused(built_in(name, "koordinator-system", 3));
            let said = format!("Not placed: quota {}: cpu used 3 + 1 > max 3", names[0]);
            let is_it =
                |(pod, summary): &(String, String)| pod.contains(limited) && summary.starts_with(&said);
            assert!(found.len() == 1 && is_it(&found[0]), "{name}: {found:?}");
        }
        // Elsewhere a name of 0.7 is that of an ordinary quota, which nobody is in.
        assert_eq!(refused(built_in(names[1], "elsewhere", 3)), [], "{}", names[1]);
    }
    // The root has what the nodes have, whatever its object says.
    for name in ["koordinator-root-quota", "root"] {
        assert_eq!(refused(built_in(name, "koordinator-system", 1)), [], "{name}");
    }
    // There is no object that could go.
    let gone = json!([{"deleteObject": {"kind": "ElasticQuota", "namespace": "koordinator-system",
        "name": "koordinator-default-quota"}}]);
    let reply = cluster.post("/apis/v1/simulate", &json!({"pods": pods, "edits": gone}));
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        reply.status == 400 && message.contains("koordinator-default-quota"),
        "{} {message}",
        reply.status
    );
    cluster.stop().await;
}
