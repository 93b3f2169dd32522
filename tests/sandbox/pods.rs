//! Pods: what watchers see of a Binding, the life of a pod, its deletion, and evictions within a budget.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::*;

async fn evict(client: &Client, name: &str) -> Result<Status, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let eviction: k8s_openapi::api::policy::v1::Eviction = of(eviction);
    pods.create_subresource("eviction", name, &PostParams::default(), &eviction).await
}

async fn next_applied(
    stream: &mut (impl Stream<Item = watcher::Result<watcher::Event<Pod>>> + Unpin),
) -> Pod {
    loop {
        match in_time(stream.next()).await.expect("the watch goes on") {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => return pod,
            Ok(_) => {}
            Err(error) => panic!("watch: {error}"),
        }
    }
}

#[tokio::test]
async fn both_kinds_of_watcher_see_a_pod_bound() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("first")).await.expect("created");
    for (name, config) in
        [("a", watcher::Config::default()), ("b", watcher::Config::default().streaming_lists())]
    {
        let mut stream = pin!(watcher(pods.clone(), config));
        while !matches!(in_time(stream.next()).await, Some(Ok(watcher::Event::InitDone))) {}
        let created = pods.create(&PostParams::default(), &pod(name)).await.expect("created");
        assert_eq!(next_applied(&mut stream).await.name_any(), name);
        bind(&client, &created, "n1").await.expect("bound");
        let bound = next_applied(&mut stream).await;
        assert_eq!(bound.spec.expect("a spec").node_name.as_deref(), Some("n1"));
    }
}

/// More events than a chunk takes, by their number and by their size.
#[tokio::test]
async fn a_watch_that_begins_late_shows_each_event_once_and_in_order() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let before = sandbox.revision().to_string();
    let names: Vec<String> = (0..600).map(|number| format!("p{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let mut made = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        // The first are large, so that their chunks are full by size, the others by number.
        made["metadata"]["annotations"] = json!({"text": "x".repeat(if number < 100 { 3_000 } else { 1 })});
        sandbox.create(made).expect("a pod");
    }
    let watch = pods.watch(&WatchParams::default(), &before).await.expect("a watch");
    let shown = watch.take(names.len()).map(|event| match event {
        Ok(WatchEvent::Added(pod)) => pod.name_any(),
        other => panic!("{other:?}"),
    });
    assert_eq!(in_time(shown.collect::<Vec<_>>()).await, names);
}

#[tokio::test]
async fn a_pod_is_bound_once_and_to_the_right_uid() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let created = pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let mut other = created.clone();
    other.metadata.uid = Some("00000000-0000-0000-0000-000000000000".into());
    assert_eq!(code(&bind(&client, &other, "n1").await.expect_err("wrong uid")), 409);
    bind(&client, &created, "n1").await.expect("bound");
    assert_eq!(code(&bind(&client, &created, "n2").await.expect_err("bound before")), 409);
}

#[tokio::test]
async fn a_pod_lives_by_the_manual_clock() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut short = pod("a");
    short.annotations_mut().insert("sandbox.pellucid.dev/run-seconds".into(), "2.5".into());
    let created = pods.create(&PostParams::default(), &short).await.expect("created");
    bind(&client, &created, "n1").await.expect("bound");
    sandbox.clock().advance(Duration::from_millis(99));
    assert_eq!(phase(pods.get("a").await.ok().as_ref()), "Pending");
    sandbox.clock().advance(Duration::from_millis(1));
    until(pods.clone(), "a", "running", |pod| phase(pod) == "Running").await;
    sandbox.clock().advance(Duration::from_millis(2_499));
    assert_eq!(phase(pods.get("a").await.ok().as_ref()), "Running");
    sandbox.clock().advance(Duration::from_millis(1));
    until(pods.clone(), "a", "success", |pod| phase(pod) == "Succeeded").await;
}

#[tokio::test]
async fn a_deleted_pod_leaves_its_node_after_its_grace() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let created = pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    bind(&client, &created, "n1").await.expect("bound");
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    let terminating = pods.get("a").await.expect("still there");
    assert_eq!(terminating.metadata.deletion_grace_period_seconds, Some(30));
    sandbox.clock().advance(Duration::from_secs(2));
    until(pods.clone(), "a", "gone", |pod| pod.is_none()).await;
    pods.create(&PostParams::default(), &pod("b")).await.expect("created");
    pods.delete("b", &DeleteParams::default()).await.expect("deleted");
    assert!(pods.get_opt("b").await.expect("an answer").is_none(), "a pod without a node goes at once");
}

#[tokio::test]
async fn a_budget_lets_one_pod_go_and_refuses_the_next() {
    let (_sandbox, client) = fast().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in ["a", "b"] {
        let created = pods.create(&PostParams::default(), &pod(name)).await.expect("created");
        bind(&client, &created, "n1").await.expect("bound");
        until(pods.clone(), name, "running", |pod| phase(pod) == "Running").await;
    }
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = json!({
        "metadata": {"name": "keep-one"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    });
    budgets.create(&PostParams::default(), &of(budget)).await.expect("created");
    let allowed = |budget: Option<&PodDisruptionBudget>, n| {
        budget
            .and_then(|b| b.status.as_ref())
            .is_some_and(|s| s.disruptions_allowed == Some(n) && s.expected_pods > Some(0))
    };
    until(budgets.clone(), "keep-one", "one disruption allowed", |b| allowed(b, 1)).await;
    evict(&client, "a").await.expect("evicted");
    until(pods.clone(), "a", "gone", |pod| pod.is_none()).await;
    assert_eq!(code(&evict(&client, "b").await.expect_err("the budget is used up")), 429);
    assert_eq!(code(&evict(&client, "none").await.expect_err("no such pod")), 404);
}
