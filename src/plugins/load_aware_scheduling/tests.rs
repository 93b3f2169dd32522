//! Refusals with their numbers, wake-ups, and time.

use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::PluginFactory;
use pellucid_model::pod::Qos;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{CustomKindRef, Now};
use serde_json::json;

use super::*;
use pellucid_plugin_helper::testing::{
    TestCluster, filter_all, filter_causes, measures, node, pod_with, pre_filter, raw_scores,
};

fn plugin(args: Value) -> Arc<dyn Plugin> {
    registration().make(&args).expect("valid arguments")
}

/// Returns what the plugin says of each refused node at a second.
fn details(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec, second: u64) -> Vec<String> {
    let filter = plugin.filter().expect("it filters");
    let now = Now { wall: Duration::from_secs(second), ..Now::default() };
    let causes = filter_causes(&**plugin, cluster, spec).into_iter();
    causes
        .filter_map(|(node, why)| filter.detail(cluster.view(), spec, &why, cluster.idx(&node), now))
        .collect()
}

/// A cluster with nodes a and b of 4 cores, at second 1000.
fn cluster(plugin: &Arc<dyn Plugin>) -> TestCluster {
    let mut made = TestCluster::with(std::slice::from_ref(plugin), [node("a"), node("b")]);
    at(&mut made, 1000);
    made
}

/// Lets deadlines up to a second pass. Returns the events.
fn at(cluster: &mut TestCluster, second: u64) -> Vec<ClusterEvent> {
    let time = Duration::from_secs(second);
    let mut events = Vec::new();
    cluster.cluster.expire_plugin_state(Now { monotonic: time, wall: time }, &mut events);
    events
}

/// Reports that a node uses some CPU, with a 95th percentile that is higher by a core.
fn report(cluster: &mut TestCluster, name: &str, milli: i64, second: i64) -> ClusterEvent {
    let usage = |milli: i64| json!({"resources": {"cpu": format!("{milli}m"), "memory": "1Gi"}});
    let manifest = json!({"status": {
        "updateTime": pellucid_framework::manifest::format_moment(second),
        "nodeMetric": {
            "nodeUsage": usage(milli),
            "aggregatedNodeUsages": [{"duration": "5m", "usage": {"p95": usage(milli + 1000)}}],
        },
    }});
    let object = CustomObject {
        kind: CustomKindRef(&NODE_METRIC),
        namespace: Name::default(),
        name: name.into(),
        uid: "u".into(),
        resource_version: format!("{second}-{milli}").as_str().into(),
        value: (NODE_METRIC.decode)(&manifest).expect("a NodeMetric that can be read"),
        pod: None,
    };
    let mut events = Vec::new();
    cluster.cluster.apply_custom(Arc::new(object), &mut events);
    events.pop().expect("an event")
}

fn spec(milli: i64) -> PodSpec {
    let list = ResourceList { milli_cpu: milli, memory: 1 << 20, ..ResourceList::default() };
    PodSpec {
        requests: PodRequests { list, ..PodRequests::default() },
        qos: Qos::Burstable,
        ..PodSpec::default()
    }
}

fn codes(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec) -> Vec<(String, ReasonCode)> {
    let causes = filter_causes(&**plugin, cluster, spec);
    causes.into_iter().map(|(node, cause)| (node, cause.reasons[0].code)).collect()
}

#[test]
fn usage_above_a_threshold_refuses_with_numbers() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 2000, 990);
    // 2000m and 85 % of 724m are 65.4 % of 4 cores, rounded 65, the threshold; with 730m they are 65.5 %.
    assert!(filter_all(&*plugin, &cluster, &spec(724)).is_empty());
    let refused = filter_all(&*plugin, &cluster, &spec(730));
    assert_eq!(refused["a"], "node(s) cpu usage exceed threshold");
    assert_eq!(refused.len(), 1, "b has no NodeMetric");
    assert_eq!(codes(&plugin, &cluster, &spec(730)), [("a".to_owned(), ReasonCode::UsageExceeded)]);
    let measured = measures(&*plugin, &cluster, &spec(730));
    assert_eq!(measured, [("cpu usage".to_owned(), 2621, 2619, "a".to_owned())]);
    assert_eq!(
        details(&plugin, &cluster, &spec(730), 1000),
        ["cpu would be at 66 % of 4 cores, limit 65 %: 2 cores used 10 s ago, plus 0.621 for this pod"]
    );
    let daemon = PodSpec { is_daemon: true, ..spec(730) };
    assert!(filter_all(&*plugin, &cluster, &daemon).is_empty());
}

#[test]
fn a_refusal_names_the_first_resource_and_an_explanation_all() {
    let plugin = plugin(json!({"usageThresholds": {"memory": 1, "example.com/gpu": 1, "cpu": 50}}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 4000, 990);
    let wanting = |milli, memory| {
        let list = ResourceList { milli_cpu: milli, memory, ..ResourceList::default() };
        PodSpec { requests: PodRequests { list, ..PodRequests::default() }, ..spec(0) }
    };
    let both = wanting(100, 1 << 40);
    assert_eq!(filter_all(&*plugin, &cluster, &both)["a"], "node(s) cpu usage exceed threshold");
    let Ok(Some((value, _))) = pre_filter(&*plugin, &cluster, &both) else { panic!("it filters") };
    let filter = plugin.filter().expect("it filters");
    let every = filter.every_reason(cluster.view(), &both, &value).expect("it lists them");
    let mut reasons = Vec::new();
    every(cluster.idx("a"), &mut reasons);
    let texts: Vec<String> = reasons.iter().map(|r| r.reason.message()).collect();
    assert_eq!(texts, ["node(s) cpu usage exceed threshold", "node(s) memory usage exceed threshold"]);
    let measured = measures(&*plugin, &cluster, &both);
    assert_eq!(measured.iter().map(|m| &*m.0).collect::<Vec<_>>(), ["cpu usage", "memory usage"]);
    let said = details(&plugin, &cluster, &both, 1000);
    assert!(said[0].contains("; memory would be at"), "{said:?}");
}

#[test]
fn an_aggregated_usage_has_a_reason_of_its_own() {
    let aggregated = json!({"usageThresholds": {"cpu": 70}, "usageAggregationType": "p95"});
    let plugin = plugin(json!({"aggregated": aggregated}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 2000, 990);
    assert_eq!(codes(&plugin, &cluster, &spec(0)), [("a".to_owned(), ReasonCode::AggregatedUsageExceeded)]);
    let said = details(&plugin, &cluster, &spec(1000), 1000);
    assert!(said[0].contains("limit 70 %: 3 cores used 10 s ago, plus 0.85 for this pod"), "{said:?}");
}

#[test]
fn an_expired_report_refuses_until_the_next_one() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 100, 990);
    assert!(filter_all(&*plugin, &cluster, &spec(100)).is_empty());
    assert!(at(&mut cluster, 1169).is_empty());
    let next = cluster.cluster.next_plugin_deadline(cluster.cluster.now());
    assert_eq!(next, Some(Duration::from_secs(1170)));
    let events = at(&mut cluster, 1170);
    let a = cluster.idx("a");
    assert!(
        matches!(&events[..], [ClusterEvent::PluginStateChanged { nodes }] if **nodes == [a]),
        "{events:?}"
    );
    assert_eq!(codes(&plugin, &cluster, &spec(100)), [("a".to_owned(), ReasonCode::NodeMetricExpired)]);
    let measured = measures(&*plugin, &cluster, &spec(100));
    assert_eq!(measured, [("NodeMetric age".to_owned(), 180, 179, "a".to_owned())]);
    let said = details(&plugin, &cluster, &spec(100), 1180);
    assert_eq!(said, ["its NodeMetric is 190 s old and expires at 180 s"]);
    let other = Cause::new(NAME, Code::Unschedulable, Reason::about(ReasonCode::UsageExceeded, "cpu"));
    let filter = plugin.filter().expect("it filters");
    assert_eq!(filter.detail(cluster.view(), &spec(100), &other, a, Now::default()), None);
    let event = report(&mut cluster, "a", 100, 1160);
    let hints = plugin.hints().expect("it hints");
    assert!(hints.events().any(event.kinds()));
    assert_eq!(hints.hint(cluster.view(), &pod_with(spec(100)), &event), Hint::Queue);
    assert_eq!(hints.hint(cluster.view(), &pod_with(spec(3000)), &event), Hint::Skip);
}

#[test]
fn estimates_of_placed_pods_count_until_they_are_reported_and_are_undone() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 1000, 990);
    assert!(filter_all(&*plugin, &cluster, &spec(1000)).is_empty());
    let pod = cluster.place(spec(1000), "a");
    let exceeded = [("a".to_owned(), ReasonCode::UsageExceeded)];
    assert_eq!(codes(&plugin, &cluster, &spec(1000)), exceeded);
    assert_eq!(
        details(&plugin, &cluster, &spec(1000), 1001),
        [
            "cpu would be at 68 % of 4 cores, limit 65 %: 1 core used 11 s ago, plus 0.85 estimated for 1 pod, plus 0.85 for \
          this pod"
        ]
    );
    let id = cluster.cluster.find_pod(&pod.key).expect("it is placed");
    cluster.cluster.set_now(Now { wall: Duration::from_secs(2000), ..Now::default() });
    cluster.cluster.probe(|cluster| {
        cluster.release(id);
        assert!(plugin.filter().is_some());
    });
    assert_eq!(codes(&plugin, &cluster, &spec(1000)), exceeded);
    let since = cluster.cluster.pod(id).map(|record| record.since);
    assert_eq!(since, Some(Duration::from_secs(1000)), "a trial does not make the pod younger");
    cluster.cluster.delete_pod(&pod.key, &mut Vec::new());
    assert!(filter_all(&*plugin, &cluster, &spec(1000)).is_empty());
}

#[test]
fn a_report_within_the_time_after_initialization_or_else_after_scheduling_does_not_show_a_pod_yet() {
    let args =
        LoadAwareArgs { after_scheduled: Some(120), after_initialized: Some(60), ..LoadAwareArgs::default() };
    let metric = |updated: i64| {
        let pods = json!([{"namespace": "default", "name": "p", "podUsage": {"resources": {"cpu": "100m"}}}]);
        let status =
            json!({"updateTime": pellucid_framework::manifest::format_moment(updated), "podsMetric": pods});
        NodeMetric::read(&json!({"status": status})).expect("a NodeMetric")
    };
    let counts = |scheduled: i64, initialized: Option<i64>, updated: i64| {
        let pod = node_loads::Assigned::testing("p", spec(1000), scheduled, initialized);
        load::contribution(&args, Some(&metric(updated)), &pod).delta[0] > 0
    };
    // The interval before a report is 60 s, so a pod of second 1000 is in that of second 1060.
    assert_eq!([1059, 1060, 1119, 1120].map(|at| counts(1000, None, at)), [true, true, true, false]);
    assert_eq!([1069, 1070].map(|at| counts(1000, Some(1010), at)), [true, false]);
}

#[test]
fn an_expired_report_refuses_nobody_where_no_threshold_applies() {
    let plugin =
        plugin(json!({"usageThresholds": {"cpu": 0, "memory": 0}, "prodUsageThresholds": {"cpu": 50}}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 100, 100);
    let with_class = |class: &str| PodSpec {
        labels: pellucid_model::selector::Labels::new([(estimate::PRIORITY_CLASS.into(), class.into())]),
        ..spec(100)
    };
    assert!(codes(&plugin, &cluster, &with_class("koord-batch")).is_empty());
    let expired = [("a".to_owned(), ReasonCode::NodeMetricExpired)];
    assert_eq!(codes(&plugin, &cluster, &with_class("koord-prod")), expired);
}

#[test]
fn prod_thresholds_that_limit_nothing_leave_prod_pods_to_the_others() {
    let plugin = plugin(json!({"prodUsageThresholds": {"cpu": 0}}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 3800, 990);
    assert_eq!(codes(&plugin, &cluster, &spec(100)), [("a".to_owned(), ReasonCode::UsageExceeded)]);
}

#[test]
fn a_resource_that_a_node_lacks_is_its_least_score() {
    let args = json!({"dominantResourceWeight": 1, "supportedResources": ["example.com/gpu"]});
    let plugin = plugin(args);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 0, 990);
    assert_eq!(raw_scores(&*plugin, &cluster, &spec(1)), Some(vec![0, 0]));
}

#[test]
fn the_pod_of_an_object_uses_nothing() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", 100, 990);
    let stands_for = pellucid_model::pod::StandsFor {
        api_version: "scheduling.koordinator.sh/v1alpha1".into(),
        kind: "Reservation".into(),
        namespace: Name::default(),
        name: "r".into(),
    };
    let stand_in =
        Pod { node_name: Some("a".into()), stands_for: Some(Arc::new(stands_for)), ..pod_with(spec(3000)) };
    cluster.see(stand_in);
    assert!(filter_all(&*plugin, &cluster, &spec(1000)).is_empty());
    cluster.see(Pod {
        key: pellucid_model::PodKey::new("d", "runs"),
        node_name: Some("a".into()),
        ..pod_with(spec(3000))
    });
    assert_eq!(codes(&plugin, &cluster, &spec(1000)), [("a".to_owned(), ReasonCode::UsageExceeded)]);
}
