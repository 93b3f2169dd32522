//! Tests the formula against values computed by hand, and the pods that are not scored.

use pellucid_framework::PluginFactory;
use pellucid_model::requests::{PodRequests, ResourceList};

use super::*;
use crate::testing::{cluster_of, node, raw_scores};

fn requesting(milli_cpu: i64, memory: i64, gpus: i64) -> PodSpec {
    let scalars: Box<[_]> = if gpus > 0 { Box::new([("a.b/gpu".into(), gpus)]) } else { Box::default() };
    let list = ResourceList { milli_cpu, memory, scalars, ..Default::default() };
    PodSpec { requests: PodRequests { list, ..Default::default() }, ..Default::default() }
}

fn made(args: Value) -> Arc<dyn Plugin> {
    registration().make(&args).expect("the arguments are valid")
}

#[test]
fn balances() {
    assert_eq!(balance(&[]), 100);
    assert_eq!(balance(&[0.7]), 100);
    assert_eq!(balance(&[0.0, 1.0]), 50);
    assert_eq!(balance(&[0.5, 0.25]), 87);
    // Mean 0.5, deviation sqrt((0.25 + 0 + 0.25) / 3) = 0.408.
    assert_eq!(balance(&[0.0, 0.5, 1.0]), 59);
    assert_eq!((combine(100, 100), combine(100, 50), combine(50, 100)), (75, 100, 50));
    assert_eq!(fraction(3, 2), 1.0);
}

#[test]
fn a_pod_that_evens_out_the_node_scores_higher() {
    let mut cluster = cluster_of([node("empty"), node("cpu-heavy")]);
    cluster.place(requesting(2000, 0, 0), "cpu-heavy");
    let plugin = made(Value::Null);
    let memory = requesting(0, 4 << 30, 0);
    // Empty: balance 100 -> 75. CPU-heavy: 75 -> 100.
    assert_eq!(raw_scores(&*plugin, &cluster, &memory), Some(vec![62, 87]));
    assert_eq!(raw_scores(&*plugin, &cluster, &PodSpec::default()), None);
}

#[test]
fn a_resource_that_the_pod_or_the_node_lacks_does_not_count() {
    let mut with_gpus = node("gpus");
    with_gpus.allocatable.scalars = Box::new([("a.b/gpu".into(), 4)]);
    let cluster = cluster_of([node("plain"), with_gpus]);
    let plugin = made(json!({"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "a.b/gpu"}]}));
    // Plain: cpu 1/2 and memory 0: 75. With GPUs: 1/2, 0, 1: deviation 0.408.
    assert_eq!(raw_scores(&*plugin, &cluster, &requesting(2000, 0, 4)), Some(vec![62, 54]));
    assert_eq!(raw_scores(&*plugin, &cluster, &requesting(2000, 0, 0)), Some(vec![62, 62]));
}

#[test]
fn arguments_are_checked_together() {
    let args = json!({"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}, {"name": ""}]});
    let Err(problems) = registration().make(&args) else { panic!("they are wrong") };
    let fields: Vec<_> = problems.iter().map(|p| p.field.as_str()).collect();
    assert_eq!(fields, ["resources[2].name", "resources[0].weight", "resources[1].name"]);
}
