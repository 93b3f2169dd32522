//! Trees of quotas: the article's objects, and a tree that has nodes of its own.

use pellucid::model::selector::Labels;
use pellucid::plugins::elastic_quota::ELASTIC_QUOTA_PROFILE;

use super::*;
use crate::common::reads::ask;

#[test]
fn the_objects_of_the_article_make_a_tree() {
    let mut core = core_with(json!({}), 100_000);
    let key = |name: &str| format!("quota.scheduling.koordinator.sh/{name}");
    let parent = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {
            "name": "parentA", "namespace": "default", "uid": "1",
            "labels": {key("is-parent"): "true", key("allow-lent-resource"): "true"},
        },
        "spec": {"max": {"cpu": 100, "memory": "200Gi"}, "min": {"cpu": 100, "memory": "200Gi"}},
    });
    let child = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {
            "name": "childA1", "namespace": "default", "uid": "2",
            "labels": {key("is-parent"): "false", key("parent"): "parentA", key("allow-lent-resource"): "true"},
        },
        "spec": {"max": {"cpu": 40, "memory": "100Gi"}, "min": {"cpu": 20, "memory": "40Gi"}},
    });
    // In either order.
    see(&mut core, &child);
    see(&mut core, &parent);
    let pods: Vec<Pod> = (0..60).map(|i| of("childA1", &format!("p{i:02}"), 1000)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 40, "the child's max");
    let (above, below) = (read(&core, "quotas/:name", "parentA"), read(&core, "quotas/:name", "childA1"));
    assert_eq!((&above["used"]["cpu"], &below["used"]["cpu"]), (&json!("40"), &json!("40")));
    assert_eq!((&below["parentName"], &below["request"]["cpu"]), (&json!("parentA"), &json!("60")));
    assert_eq!(above["request"]["cpu"], "40", "a child asks for its max at most");
    assert_eq!(read(&core, "state", "")["problems"], json!([]));
}

#[test]
fn a_tree_with_a_profile_has_the_nodes_of_its_selector() {
    let mut core = core_with(json!({}), 10_000);
    let mut own = node("gpu", 8000);
    own.allocatable.pods = 100;
    own.labels = Labels::new([("pool".into(), "gpu".into())]);
    core.see_node(&own);
    let profile = json!({
        "metadata": {"name": "gpu", "namespace": "koordinator-system", "uid": "p", "resourceVersion": "1"},
        "spec": {"quotaName": "gpu-root", "resourceRatio": "0.5", "nodeSelector": {"matchLabels": {"pool": "gpu"}}},
    });
    let object = Decoder::of(&registry()).custom(CustomKindRef(&ELASTIC_QUOTA_PROFILE), &profile);
    core.apply(Input::CustomApplied(Arc::new(object.expect("a profile that can be read"))));
    let mut first = manifest("gpu-root", 4, 1000);
    first["metadata"]["labels"] = json!({
        "quota.scheduling.koordinator.sh/is-root": "true", "quota.scheduling.koordinator.sh/tree-id": "gpu",
        "quota.scheduling.koordinator.sh/is-parent": "true",
    });
    see(&mut core, &first);
    let mut leaf = manifest("gpu-a", 0, 1000);
    leaf["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/parent": "gpu-root"});
    see(&mut core, &leaf);
    see(&mut core, &manifest("plain", 0, 1000));
    let pods: Vec<Pod> = (0..20)
        .flat_map(|i| [of("gpu-a", &format!("g{i:02}"), 1000), of("plain", &format!("p{i:02}"), 1000)])
        .collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    // Half of the eight cores, and the eighteen of all nodes without these four.
    assert_eq!((used(&core, "gpu-a").as_str(), used(&core, "plain").as_str()), ("4", "14"));
    assert_eq!(read(&core, "quotas/:name", "gpu-a")["tree"], "gpu");
    let of_tree = ask(&mut core, "/apis/v1/plugins/ElasticQuota/quotas?tree=gpu");
    let names = of_tree.as_object().expect("quotas by name").keys().filter(|name| *name != "meta");
    assert_eq!(names.collect::<Vec<_>>(), ["gpu-a", "gpu-root"]);
    // A node that no longer has the label takes its part away.
    core.wait(2 * SECOND);
    core.see_node(&node("gpu", 8000));
    core.wait(Duration::ZERO);
    assert_eq!(read(&core, "quotas/:name", "gpu-a")["runtime"]["cpu"], "0");
}
