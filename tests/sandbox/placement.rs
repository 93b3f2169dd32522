//! How the server handles the affinity, the constraints and the priority of a new pod.

use super::*;

fn placed(name: &str, placement: &Value) -> Pod {
    let mut object = serde_json::to_value(pod(name)).expect("JSON");
    json_patch::merge(&mut object["spec"], placement);
    of(object)
}

#[tokio::test]
async fn label_keys_become_part_of_the_selectors() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let object = placed(
        "a",
        &json!({
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {}, "matchLabelKeys": ["app"]}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["app"]}]}}
        }),
    );
    let made = pods.create(&PostParams::default(), &object).await;
    let spec = serde_json::to_value(made.expect("created").spec).expect("JSON");
    let constraint = &spec["topologySpreadConstraints"][0];
    let expressions = |term: &Value| term["labelSelector"]["matchExpressions"].clone();
    assert_eq!(expressions(constraint), json!([{"key": "app", "operator": "In", "values": ["a"]}]));
    assert!(constraint["nodeTaintsPolicy"].is_null(), "the server fills in no policy");
    let term = &spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(expressions(term), json!([{"key": "app", "operator": "NotIn", "values": ["a"]}]));
}

#[tokio::test]
async fn senseless_constraints_and_terms_are_refused() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    for constraint in [
        json!({"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}),
        json!({"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}),
        json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Never"}),
        json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}),
        json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}),
    ] {
        let pod = placed("a", &json!({"topologySpreadConstraints": [constraint]}));
        let refused = pods.create(&PostParams::default(), &pod).await.expect_err("refused");
        assert_eq!(code(&refused), 422, "{constraint}");
    }
    let term = json!([{"topologyKey": "", "labelSelector": {}}]);
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
    let pod = placed("a", &json!({"affinity": affinity}));
    assert_eq!(code(&pods.create(&PostParams::default(), &pod).await.expect_err("refused")), 422);
}

#[tokio::test]
async fn priority_is_that_of_the_class_and_there_is_one_default() {
    let (_sandbox, client) = still().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = |name: &str, is_default: bool| -> PriorityClass {
        of(json!({"metadata": {"name": name}, "value": 7, "globalDefault": is_default}))
    };
    classes.create(&PostParams::default(), &class("usual", true)).await.expect("created");
    let second = classes.create(&PostParams::default(), &class("second", true)).await;
    assert_eq!(code(&second.expect_err("there is one")), 403);
    let pods: Api<Pod> = Api::default_namespaced(client);
    let spec = pods.create(&PostParams::default(), &pod("a")).await.expect("created").spec.expect("a spec");
    assert_eq!((spec.priority, spec.priority_class_name.as_deref()), (Some(7), Some("usual")));
    let wishful = placed("b", &json!({"priority": 8}));
    assert_eq!(code(&pods.create(&PostParams::default(), &wishful).await.expect_err("not its class's")), 403);
}
