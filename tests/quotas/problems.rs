//! Bad objects: a clear problem on that quota, and everything else goes on.

use super::*;

fn problems(core: &Core) -> Vec<(String, String, String)> {
    let state = read(core, "state", "");
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let problems = state["problems"].as_array().expect("a list");
    problems.iter().map(|p| (text(&p["quota"]), text(&p["field"]), text(&p["problem"]))).collect()
}

fn with_parent(name: &str, parent: &str) -> Value {
    let mut made = manifest(name, 1, 10);
    made["metadata"]["labels"] = json!({
        "quota.scheduling.koordinator.sh/parent": parent,
        "quota.scheduling.koordinator.sh/is-parent": "true",
    });
    made
}

#[test]
fn each_bad_object_is_named_and_the_others_work() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("fine", 1, 4));
    see(&mut core, &with_parent("lost", "nobody"));
    see(&mut core, &with_parent("x", "y"));
    see(&mut core, &with_parent("y", "x"));
    see(&mut core, &manifest("upside-down", 9, 3));
    see(&mut core, &manifest("negative", -1, 3));
    let mut unknown = manifest("unknown", 1, 3);
    unknown["spec"]["min"]["example.com/dragons"] = json!(1);
    see(&mut core, &unknown);
    let mut second = manifest("fine", 1, 400);
    second["metadata"]["namespace"] = json!("elsewhere");
    second["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    see(&mut core, &second);
    let pods: Vec<Pod> = (0..6).map(|i| of("fine", &format!("p{i}"), 1000)).collect();
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 4, "the older quota of that name counts");
    let found = problems(&core);
    let has = |quota: &str, field: &str, words: &str| {
        let is = |p: &(String, String, String)| p.0 == quota && p.1.ends_with(field) && p.2.contains(words);
        assert!(found.iter().any(is), "{quota} {field}: {found:#?}");
    };
    has("lost", "/parent", "there is no quota of this name; the quota has its min and gets nothing");
    has("x", "/parent", "the parents of y lead back to the quota, by y; the quota has its min");
    has("y", "/parent", "the parents of x lead back to the quota, by x");
    has("upside-down", "spec.min.cpu", "above max, 3, which limits requests");
    has("negative", "spec.min.cpu", "counts as 0");
    has("unknown", "spec.min.example.com/dragons", "max does not have the resource");
    has("fine", "metadata.name", "namespace koordinator-system is older");
    assert_eq!(found.len(), 7, "{found:#?}");
}

#[test]
fn a_quota_that_is_deleted_leaves_its_pods_to_the_default_quota() {
    let mut core = core_with(json!({}), 100_000);
    see(&mut core, &manifest("team-a", 1, 1));
    let pods = ["x", "y"].map(|name| of("team-a", name, 1000));
    pods.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(placed(&core, &pods), 1);
    forget(&mut core, "team-a");
    core.run_after(2 * SECOND);
    assert_eq!((placed(&core, &pods), used(&core, "default").as_str()), (2, "2"));
    assert_eq!(read(&core, "state", "")["unknownQuotas"], json!({"team-a": 2}));
    see(&mut core, &manifest("team-a", 1, 1));
    core.wait(Duration::ZERO);
    assert_eq!((used(&core, "team-a").as_str(), used(&core, "default").as_str()), ("2", "0"));
}
