//! Tests refusals and their reasons, the scoring strategies, arguments, measures, and wake-ups.

use pellucid_framework::{Code, PluginFactory};
use pellucid_model::requests::{PodRequests, ResourceList};
use serde_json::json;

use super::*;
use crate::testing::{TestCluster, cluster_of, filter_all, filter_causes, node, pod_with, raw_scores};

const GIB: i64 = 1 << 30;

fn list(milli_cpu: i64, gib: i64, gpus: i64) -> ResourceList {
    let scalars: Box<[_]> = if gpus > 0 { Box::new([("a.b/gpu".into(), gpus)]) } else { Box::default() };
    ResourceList { milli_cpu, memory: gib * GIB, scalars, ..Default::default() }
}

fn requesting(milli_cpu: i64, gib: i64, gpus: i64) -> PodSpec {
    let requests = PodRequests {
        list: list(milli_cpu, gib, gpus),
        non_zero_milli_cpu: milli_cpu,
        non_zero_memory: gib * GIB,
        by_containers: None,
    };
    PodSpec { requests, ..Default::default() }
}

fn sized(name: &str, milli_cpu: i64, gib: i64, gpus: i64, pods: i64) -> Node {
    Node { allocatable: ResourceList { pods, ..list(milli_cpu, gib, gpus) }, ..node(name) }
}

fn made(args: Value) -> Arc<dyn Plugin> {
    registration().make(&args).expect("the arguments are valid")
}

fn default_fit() -> Arc<dyn Plugin> {
    made(Value::Null)
}

#[test]
fn all_lacking_resources_are_named() {
    let mut cluster = cluster_of([
        sized("fits", 4000, 8, 2, 10),
        sized("busy", 4000, 8, 2, 10),
        sized("full", 4000, 8, 2, 1),
        sized("small", 1000, 1, 0, 10),
    ]);
    cluster.place(requesting(3000, 7, 0), "busy");
    cluster.place(PodSpec::default(), "full");
    let causes = filter_causes(&*default_fit(), &cluster, &requesting(2000, 2, 1));
    let seen: Vec<_> = causes.iter().map(|(n, c)| (n.as_str(), c.message(), c.code)).collect();
    assert_eq!(
        seen,
        [
            ("busy", "Insufficient cpu, Insufficient memory".to_owned(), Code::Unschedulable),
            ("full", "Too many pods".to_owned(), Code::Unschedulable),
            (
                "small",
                "Insufficient cpu, Insufficient memory, Insufficient a.b/gpu".to_owned(),
                Code::UnschedulableAndUnresolvable
            ),
        ]
    );
}

#[test]
fn what_is_not_requested_is_not_lacking() {
    let mut cluster = cluster_of([sized("over", 1000, 1, 0, 10)]);
    cluster.place(requesting(2000, 2, 1), "over");
    let fit = default_fit();
    assert!(filter_all(&*fit, &cluster, &PodSpec::default()).is_empty());
    assert_eq!(filter_all(&*fit, &cluster, &requesting(0, 1, 0))["over"], "Insufficient memory");
    assert_eq!(filter_all(&*fit, &cluster, &requesting(0, 0, 1))["over"], "Insufficient a.b/gpu");
}

#[test]
fn ignored_extended_resources_do_not_filter() {
    let cluster = cluster_of([sized("n", 4000, 8, 0, 10)]);
    let spec = requesting(100, 1, 1);
    for args in [json!({"ignoredResources": ["a.b/gpu"]}), json!({"ignoredResourceGroups": ["a.b"]})] {
        assert!(filter_all(&*made(args), &cluster, &spec).is_empty());
    }
    for args in [json!({"ignoredResources": ["a.b/npu", "cpu"]}), json!({"ignoredResourceGroups": ["b"]})] {
        assert_eq!(filter_all(&*made(args), &cluster, &spec)["n"], "Insufficient a.b/gpu");
    }
}

#[test]
fn a_pod_with_requests_as_a_whole_is_scored_by_its_containers() {
    let cluster = cluster_of([sized("n", 4000, 8, 4, 10)]);
    let mut spec = requesting(3000, 6, 4);
    let score = |spec: &PodSpec, resources: Value| {
        let strategy = json!({"type": "MostAllocated", "resources": resources});
        raw_scores(&*made(json!({"scoringStrategy": strategy})), &cluster, spec).expect("never skipped")
    };
    let gpu = json!([{"name": "cpu"}, {"name": "a.b/gpu"}]);
    assert_eq!(score(&spec, json!([])), [75]);
    spec.requests.by_containers = Some(Box::new(list(1000, 2, 2)));
    assert_eq!(score(&spec, json!([])), [25]);
    assert_eq!(score(&spec, gpu.clone()), [37], "25 of CPU, 50 of the cards");
    spec.requests.by_containers = Some(Box::new(list(1000, 2, 0)));
    assert_eq!(score(&spec, gpu), [25], "no container requests a card");
    assert!(filter_all(&*default_fit(), &cluster, &requesting(5000, 0, 0)).contains_key("n"));
}

#[test]
fn strategies() {
    let mut cluster = cluster_of([sized("a", 4000, 8, 4, 10), sized("b", 2000, 4, 0, 10)]);
    cluster.place(requesting(1000, 1, 1), "a");
    let spec = requesting(1000, 1, 1);
    let with = |kind: &str, resources: Value, ratio: Value| {
        let mut strategy = json!({"type": kind, "resources": resources});
        if !ratio.is_null() {
            strategy["requestedToCapacityRatio"] = ratio;
        }
        raw_scores(&*made(json!({"scoringStrategy": strategy})), &cluster, &spec).expect("never skipped")
    };
    let gpu = json!([{"name": "cpu", "weight": 2}, {"name": "a.b/gpu", "weight": 1}]);
    // a: cpu 2000/4000, memory 2/8, gpu 2/4; b: cpu 1000/2000, memory 1/4, no gpu.
    assert_eq!(with("LeastAllocated", json!([]), Value::Null), [62, 62]);
    assert_eq!(with("MostAllocated", json!([]), Value::Null), [37, 37]);
    assert_eq!(with("MostAllocated", json!([{"name": "memory"}]), Value::Null), [25, 25]);
    assert_eq!(with("LeastAllocated", gpu.clone(), Value::Null), [50, 50]);
    let shape = json!({"shape": [{"utilization": 25, "score": 0}, {"utilization": 100, "score": 10}]});
    // At 50 % the curve is at 33; at 25 % it is at 0, which does not count.
    assert_eq!(with("RequestedToCapacityRatio", json!([]), shape.clone()), [33, 33]);
    assert_eq!(with("RequestedToCapacityRatio", gpu, shape), [33, 33]);
}

#[test]
fn more_than_there_is_scores_as_full() {
    let mut cluster = cluster_of([sized("n", 1000, 8, 0, 10)]);
    cluster.place(requesting(2000, 0, 0), "n");
    let cpu = json!([{"name": "cpu"}]);
    let score = |kind: &str| {
        let args = json!({"scoringStrategy": {"type": kind, "resources": cpu}});
        raw_scores(&*made(args), &cluster, &requesting(1, 0, 0))
    };
    assert_eq!((score("LeastAllocated"), score("MostAllocated")), (Some(vec![0]), Some(vec![100])));
}

#[test]
fn amounts_beyond_all_bounds_are_scored_without_overflow() {
    let mut below = sized("below", 0, 8, 0, 10);
    below.allocatable.milli_cpu = i64::MIN;
    let mut cluster = cluster_of([sized("n", 1000, 8, 0, 10), below]);
    for node in ["n", "below"] {
        cluster.place(requesting(2000, 0, 0), node);
    }
    // All of the CPU is taken, and nothing of the memory.
    for kind in ["LeastAllocated", "MostAllocated"] {
        let plugin = made(json!({"scoringStrategy": {"type": kind}}));
        let scores = raw_scores(&*plugin, &cluster, &requesting(i64::MAX, 0, 0));
        assert_eq!(scores, Some(vec![50, 50]), "{kind}");
    }
}

#[test]
fn arguments_are_checked_together() {
    let args = json!({
        "ignoredResources": ["-"],
        "ignoredResourceGroups": ["a/b"],
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 101}, {"weight": -1}],
            "requestedToCapacityRatio": {"shape": [
                {"utilization": 50, "score": 11},
                {"utilization": 50, "score": 1},
                {"utilization": 101},
            ]},
        },
    });
    let Err(problems) = registration().make(&args) else { panic!("they are wrong") };
    let fields: Vec<_> = problems.iter().map(|p| p.field.replace("scoringStrategy.", "")).collect();
    assert_eq!(
        fields,
        [
            "ignoredResources[0]",
            "ignoredResourceGroups[0]",
            "resources[1].name",
            "resources[0].weight",
            "resources[1].weight",
            "requestedToCapacityRatio.shape[0].score",
            "requestedToCapacityRatio.shape[1].utilization",
            "requestedToCapacityRatio.shape[2].utilization",
        ]
    );
    for wrong in [
        json!({"type": "Random"}),
        json!({"type": "RequestedToCapacityRatio"}),
        json!({"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": []}}),
        json!({"type": "MostAllocated", "requestedToCapacityRatio": {"shape": [{"utilization": 0}]}}),
    ] {
        let given = json!({"scoringStrategy": wrong});
        let Err(problems) = registration().make(&given) else { panic!("{wrong}") };
        assert_eq!(problems.len(), 1, "{wrong}");
    }
}

#[test]
fn arguments_in_force_are_shown_and_can_be_read_again() {
    let shape = json!({"shape": [{"utilization": 0, "score": 1}]});
    for args in [
        Value::Null,
        json!({"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": shape}}),
    ] {
        let shown = made(args).args();
        assert_eq!(made(shown.clone()).args(), shown);
    }
    assert_eq!(default_fit().args()["scoringStrategy"]["type"], "LeastAllocated");
}

#[test]
fn a_refusal_can_be_measured() {
    let mut cluster = cluster_of([sized("a", 4000, 8, 0, 10), sized("b", 4000, 8, 0, 10)]);
    cluster.place(requesting(3000, 0, 0), "a");
    cluster.place(requesting(2500, 0, 0), "b");
    let fit = default_fit();
    let spec = requesting(2000, 0, 1);
    let cause = filter_causes(&*fit, &cluster, &spec).remove("a").expect("it is refused");
    let measures = fit.filter().expect("it filters").measure(
        cluster.view(),
        &spec,
        &cause,
        &[cluster.idx("a"), cluster.idx("b")],
    );
    let seen: Vec<_> = measures.iter().map(|m| (m.resource.as_str(), m.requested, m.available)).collect();
    assert_eq!(seen, [("cpu", 2000, 1500), ("a.b/gpu", 1, 0)]);
    assert_eq!(measures[0].best_node, cluster.idx("b"));
}

#[test]
fn wake_ups() {
    let mut cluster = cluster_of([sized("n", 1000, 8, 0, 10)]);
    let fit = default_fit();
    let pod = pod_with(requesting(2000, 1, 0));
    let hint = |cluster: &TestCluster, pod: &Pod, event: &ClusterEvent| {
        fit.hints().expect("it has hints").hint(cluster.view(), pod, event)
    };
    let added = ClusterEvent::NodeAdded(cluster.idx("n"));
    assert_eq!(hint(&cluster, &pod, &added), Hint::Skip, "too small");
    let grown = cluster.apply(sized("n", 3000, 8, 0, 10));
    assert_eq!(hint(&cluster, &pod, &grown[0]), Hint::Queue);
    assert_eq!(hint(&cluster, &pod, &added), Hint::Queue);
    let memory_alone = cluster.apply(sized("n", 3000, 9, 0, 10));
    assert_eq!(hint(&cluster, &pod_with(requesting(1, 0, 0)), &memory_alone[0]), Hint::Skip);
    assert_eq!(hint(&cluster, &pod, &memory_alone[0]), Hint::Queue);
    let more_pods = cluster.apply(sized("n", 3000, 9, 0, 11));
    assert_eq!(hint(&cluster, &pod_with(requesting(1, 0, 0)), &more_pods[0]), Hint::Queue);

    let other = cluster.place(requesting(500, 1, 0), "n");
    let mut events = Vec::new();
    let shrunk = Pod { spec: Arc::new(requesting(400, 1, 0)), ..(*other).clone() };
    cluster.cluster.apply_pod(Arc::new(shrunk), &mut events);
    let Some(event) = events.iter().find(|e| matches!(e, ClusterEvent::PodShrunk { .. })) else { panic!() };
    assert_eq!(hint(&cluster, &pod, event), Hint::Queue);
    assert_eq!(hint(&cluster, &pod_with(requesting(2700, 1, 0)), event), Hint::Skip, "still too little");
    let gone = ClusterEvent::PodReleased { pod: other, node: cluster.idx("n") };
    assert_eq!(hint(&cluster, &pod, &gone), Hint::Queue);
    assert_eq!(hint(&cluster, &pod_with(requesting(2700, 1, 0)), &gone), Hint::Skip, "2600 are free");
    let (pod_of_old, nobody) = (pod_with(requesting(1, 0, 0)), pod_with(requesting(3001, 0, 0)));
    let ended =
        |node: &str| ClusterEvent::NominationEnded { pod: Arc::new(pod_of_old.clone()), node: node.into() };
    assert_eq!(hint(&cluster, &pod, &ended("n")), Hint::Queue);
    assert_eq!(hint(&cluster, &nobody, &ended("n")), Hint::Skip);
    assert_eq!(hint(&cluster, &pod, &ended("gone")), Hint::Skip);

    let updated =
        |old: &Pod| ClusterEvent::PendingUpdated { id: pellucid_model::PodId(0), old: Arc::new(old.clone()) };
    assert_eq!(hint(&cluster, &pod_with(requesting(1900, 1, 0)), &updated(&pod)), Hint::Queue);
    assert_eq!(hint(&cluster, &pod, &updated(&pod)), Hint::Skip);
}
