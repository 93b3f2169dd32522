use pellucid_api::keys::elastic_quota as keys;
use serde_json::{Value, json};

use super::defaulting::{Defaults, defaults};
use super::pods::{PodLabels, judge};
use super::*;

fn read(value: &Value) -> ElasticQuota {
    ElasticQuota::read(value).expect("a quota")
}

fn made(name: &str, labels: Value, annotations: Value, spec: Value) -> Value {
    let prefixed = |map: Value| -> Value {
        let map = map.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .map(|(key, value)| (format!("quota.scheduling.koordinator.sh/{key}"), value))
            .collect()
    };
    json!({
        "metadata": {
            "name": name, "namespace": "kube-system",
            "labels": prefixed(labels), "annotations": prefixed(annotations)
        },
        "spec": spec
    })
}

/// org (parent; min 20, max 40) has a (min 8) and b (min 6); solo is a leaf of the root with a pod.
fn existing() -> Vec<ElasticQuota> {
    let child = |name: &str, min: i64| {
        made(
            name,
            json!({"parent": "org"}),
            json!({"namespaces": format!("[\"ns-{name}\"]")}),
            json!({"min": {"cpu": min}, "max": {"cpu": 30}}),
        )
    };
    let org =
        made("org", json!({"is-parent": "true"}), json!({}), json!({"min": {"cpu": 20}, "max": {"cpu": 40}}));
    let solo = made("solo", json!({}), json!({}), json!({"min": {"cpu": 1}, "max": {"cpu": 2}}));
    [org, child("a", 8), child("b", 6), solo].iter().map(read).collect()
}

fn pods(quota: &str) -> Vec<String> {
    if quota == "solo" { vec!["x/p1".into(), "x/p2".into(), "x/p3".into()] } else { Vec::new() }
}

fn sentences(problems: &[QuotaProblem]) -> Vec<String> {
    problems.iter().map(sentence).map(|text| text.replace("quota.scheduling.koordinator.sh/", "Q/")).collect()
}

/// Asserts what is said when `a` is created (`b` and the others exist).
#[track_caller]
fn creating(labels: Value, annotations: Value, spec: Value, expected: &[&str]) {
    let all: Vec<_> = existing().into_iter().filter(|quota| &*quota.name != "a").collect();
    let known = Known::new(&all, &pods, Gates::default());
    let new = read(&made("a", labels, annotations, spec));
    assert_eq!(sentences(&create(&known, &new)), expected);
}

#[test]
fn what_fits_is_created() {
    let spec = json!({"min": {"cpu": 14}, "max": {"cpu": 50}});
    creating(json!({"parent": "org"}), json!({"namespaces": "[\"ns-a\"]"}), spec, &[]);
    creating(json!({}), json!({}), json!({"max": {"cpu": 5}}), &[]);
    creating(json!({"parent": "koordinator-root-quota"}), json!({}), json!({}), &[]);
}

#[test]
fn amounts_are_refused_with_both_numbers() {
    let org = || json!({"parent": "org"});
    creating(
        org(),
        json!({}),
        json!({"min": {"cpu": 12}, "max": {"cpu": 10}}),
        &["quota a: spec.min.cpu \"12\": it is above max, 10, which limits requests"],
    );
    creating(
        json!({}),
        json!({"shared-weight": "{\"cpu\": -3}"}),
        json!({"min": {"cpu": -1}, "max": {"cpu": -1, "memory": 1}}),
        &[
            "quota a: spec.max.cpu \"-1\": it is below 0, which counts as 0",
            "quota a: spec.min.cpu \"-1\": it is below 0, which counts as 0",
            "quota a: metadata.annotations.Q/shared-weight.cpu \"-3\": it is below 0, which counts as 0",
        ],
    );
    creating(
        json!({}),
        json!({}),
        json!({"min": {"memory": 1}, "max": {"cpu": 1}}),
        &["quota a: spec.min.memory \"1\": max does not have the resource, so it does not count"],
    );
    creating(
        org(),
        json!({}),
        json!({"min": {"cpu": 15}, "max": {"cpu": 30}}),
        &[
            "quota a: spec.min.cpu \"15\": the mins of the children of org add up to 21, more than its min, 20",
        ],
    );
    creating(
        json!({"parent": "org", "allow-force-update": "true"}),
        json!({}),
        json!({"min": {"cpu": 15}, "max": {"cpu": 30}}),
        &[],
    );
    creating(
        org(),
        json!({}),
        json!({"min": {"cpu": 1, "memory": 2}, "max": {"cpu": 30, "memory": 3}}),
        &[
            "quota a: spec.max.memory \"3\": its parent org has no max for the resource",
            "quota a: spec.min.memory \"2\": its parent org has no min for the resource",
        ],
    );
    creating(
        org(),
        json!({}),
        json!({}),
        &["quota a: spec.max.cpu \"0\": its parent org has a max for the resource, 40"],
    );
}

#[test]
fn a_place_must_exist_and_fit() {
    let spec = || json!({"max": {"cpu": 1}});
    creating(
        json!({"parent": "nobody"}),
        json!({}),
        spec(),
        &["quota a: metadata.labels.Q/parent \"nobody\": there is no quota of this name"],
    );
    creating(
        json!({"parent": "solo"}),
        json!({}),
        spec(),
        &[
            "quota a: metadata.labels.Q/parent \"solo\": its label Q/is-parent is not \"true\", so it may not have children",
        ],
    );
    creating(
        json!({"parent": "a"}),
        json!({}),
        spec(),
        &["quota a: metadata.labels.Q/parent \"a\": the quota is its own parent"],
    );
    creating(
        json!({"parent": "org", "tree-id": "t"}),
        json!({}),
        spec(),
        &["quota a: metadata.labels.Q/tree-id \"t\": its parent org is of tree \"\""],
    );
    creating(
        json!({"is-root": "true"}),
        json!({}),
        spec(),
        &["quota a: metadata.labels.Q/tree-id \"\": the label Q/is-root is \"true\", and the tree has no id"],
    );
    creating(
        json!({}),
        json!({"namespaces": "[\"ns-b\"]"}),
        spec(),
        &["quota a: metadata.annotations.Q/namespaces \"ns-b\": the namespace is bound to quota b already"],
    );
    creating(
        json!({"is-parent": "yes"}),
        json!({}),
        spec(),
        &["quota a: metadata.labels.Q/is-parent \"\\\"yes\\\"\": must be \"true\" or \"false\""],
    );
    let all = existing();
    let mut other = all[3].clone();
    other.namespace = "elsewhere".into();
    let said = sentences(&create(&Known::new(&all, &pods, Gates::default()), &other));
    let expected = "quota solo: metadata.name \"solo\": names of quotas count across namespaces, and namespace kube-system \
        has one of this name";
    assert_eq!(said, [expected]);
}

#[track_caller]
fn changing(name: &str, change: impl Fn(&mut ElasticQuota), expected: &[&str]) {
    let all = existing();
    let old = all.iter().find(|quota| &*quota.name == name).expect("it exists").clone();
    let mut new = old.clone();
    change(&mut new);
    assert_eq!(sentences(&update(&Known::new(&all, &pods, Gates::default()), &old, &new)), expected);
}

#[test]
fn changes_are_judged_with_children_pods_and_the_tree() {
    let children = "quota org: metadata.labels.Q/is-parent \"false\": it has 2 children: a, b";
    changing("org", |quota| quota.is_parent = false, &[children]);
    let pods = "quota solo: metadata.labels.Q/is-parent \"true\": it has pods: x/p1, x/p2, ...";
    changing("solo", |quota| quota.is_parent = true, &[pods]);
    let sum = "quota org: spec.min.cpu \"10\": the mins of its children add up to 14";
    changing("org", |quota| quota.min = Amounts::from([("cpu".into(), 10_000)]), &[sum]);
    let sum_of_a =
        "quota org: spec.min.cpu \"20\": the mins of the children of a add up to 20, more than its min, 8";
    let circle = "quota org: metadata.labels.Q/parent \"a\": the parents of a lead back to the quota, by a";
    changing("org", |quota| quota.parent = Some("a".into()), &[circle, sum_of_a]);
    changing(
        "org",
        |quota| quota.tree = Some("t".into()),
        &["quota org: metadata.labels.Q/tree-id \"t\": its child a is of tree \"\""],
    );
    let used = "quota solo: spec.max.cpu \"2\": it is below what is used, 3";
    changing(
        "solo",
        |quota| {
            quota.max_strict_check_resource_keys = vec!["cpu".into()];
            quota.written.used.insert("cpu".into(), 3000);
        },
        &[used],
    );
    let memory = |quota: &mut ElasticQuota| quota.max.extend([("memory".into(), 4)]);
    changing(
        "org",
        memory,
        &[
            "quota org: spec.max.memory \"4\": its child a has no max for the resource",
            "quota org: spec.max.memory \"4\": its child b has no max for the resource",
        ],
    );
}

#[test]
fn guarantees_are_followed_upward() {
    let mut all = existing();
    // b runs more than its min, and the parent can give no more than 40.
    all[2].written.annotations.insert(keys::GUARANTEED, "{\"cpu\": 35}".into());
    let old = all[1].clone();
    let mut new = old.clone();
    let known = Known::new(&all, &pods, Gates::default());
    new.min.insert("cpu".into(), 5000);
    assert_eq!(sentences(&update(&known, &old, &new)), [""; 0]);
    new.min.insert("cpu".into(), 6000);
    let expected =
        "quota a: spec.min.cpu \"6\": the children of org would be guaranteed 41, more than its max, 40";
    assert_eq!(sentences(&update(&known, &old, &new)), [expected]);
}

#[test]
fn trees_do_not_change_and_what_the_scheduler_writes_is_free() {
    let all = existing();
    let known = Known::new(&all, &pods, Gates::default());
    let mut old = all[3].clone();
    old.tree = Some("t".into());
    let new = ElasticQuota { tree: Some("u".into()), ..old.clone() };
    let expected =
        "quota solo: metadata.labels.Q/tree-id \"u\": the tree of a quota cannot change, and was \"t\"";
    assert_eq!(sentences(&update(&known, &old, &new)), [expected]);
    // It breaks rules, but only what the scheduler writes changes.
    let broken = read(&made("x", json!({"parent": "nobody"}), json!({}), json!({"min": {"cpu": 2}})));
    let mut written = broken.clone();
    written.written.used.insert("cpu".into(), 1);
    assert_eq!(update(&known, &broken, &written), []);
    assert_eq!(standing(&known, &broken).len(), 2);
}

#[test]
fn quotas_with_children_or_pods_and_built_in_ones_stay() {
    let all = existing();
    let known = Known::new(&all, &pods, Gates::default());
    let said = |quota: &ElasticQuota| sentences(&delete(&known, quota));
    assert_eq!(said(&all[0]), ["quota org: metadata.name \"org\": it has 2 children: a, b"]);
    assert_eq!(said(&all[3]), ["quota solo: metadata.name \"solo\": it has pods: x/p1, x/p2, ..."]);
    assert_eq!(said(&all[1]), [""; 0]);
    let default = read(&made(keys::DEFAULT_QUOTA[0], json!({}), json!({}), json!({})));
    assert!(said(&default)[0].ends_with("built-in quotas cannot be deleted"));
    let changed = ElasticQuota { is_parent: true, ..default.clone() };
    assert!(sentences(&update(&known, &default, &changed))[0].ends_with("built-in quotas cannot be changed"));
}

#[test]
fn parent_tree_and_weight_are_filled_in() {
    let mut all = existing();
    all[0].tree = Some("t".into());
    let known = Known::new(&all, &pods, Gates::default());
    let of = |labels: Value, annotations: Value, max: Value| {
        defaults(&known, &read(&made("n", labels, annotations, json!({"max": max}))))
    };
    let weight = |text: &str| [(keys::SHARED_WEIGHT, text.to_owned())].into();
    let root = [(keys::PARENT, "koordinator-root-quota".to_owned())].into();
    assert_eq!(
        of(json!({}), json!({}), json!({"cpu": "1500m"})),
        Defaults { labels: root, annotations: weight("{\"cpu\":\"1500m\"}") }
    );
    let rekeyed = of(
        json!({"parent": "org"}),
        json!({"shared-weight": "{\"cpu\": 7, \"gpu\": 1}"}),
        json!({"cpu": 9, "memory": 5}),
    );
    let labels = [(keys::TREE_ID, "t".to_owned())].into();
    assert_eq!(rekeyed, Defaults { labels, annotations: weight("{\"cpu\":\"7\",\"memory\":\"5\"}") });
    let settled = of(
        json!({"parent": "org", "tree-id": "t"}),
        json!({"shared-weight": "{\"cpu\": 7}"}),
        json!({"cpu": 9}),
    );
    assert_eq!(settled, Defaults::default());
    assert!(of(json!({}), json!({"shared-weight": "no JSON"}), json!({"cpu": 9})).annotations.is_empty());
}

#[test]
fn pods_name_leaves_and_stay_preemptible_or_not() {
    let all = existing();
    let labels = |quota, preemptible| PodLabels { quota, preemptible };
    let said = |gates, old, new| judge(&Known::new(&all, &pods, gates), "x/p", old, new);
    let strict = Gates::default();
    assert_eq!(said(strict, None, labels("a", "")), [""; 0]);
    assert_eq!(said(strict, None, labels("unknown", "")), [""; 0]);
    assert!(said(strict, None, labels("org", ""))[0].contains("quota org has the label"));
    let open = Gates { support_parent_quota_submit_pod: true, ..strict };
    assert_eq!(said(open, None, labels("org", "")), [""; 0]);
    assert_eq!(said(strict, Some(labels("org", "")), labels("org", "")), [""; 0]);
    let changed = said(strict, Some(labels("a", "false")), labels("a", "true"));
    assert!(changed[0].ends_with("\"true\": it cannot change, and was \"false\""), "{changed:?}");
}

#[test]
fn of_stored_quotas_each_contradiction_is_said_once() {
    let mut all = existing();
    all[1].min = Amounts::from([("cpu".into(), 18_000)]);
    all[2].max.insert("memory".into(), 1);
    let known = Known::new(&all, &pods, Gates::default());
    let said: Vec<String> = all.iter().flat_map(|quota| sentences(&standing(&known, quota))).collect();
    let sum = "quota org: spec.min.cpu \"20\": the mins of its children add up to 24";
    let resource = "quota b: spec.max.memory \"1\": its parent org has no max for the resource";
    assert_eq!(said, [sum, resource]);
}
