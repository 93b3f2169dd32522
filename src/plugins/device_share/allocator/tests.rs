//! Short ways against the allocator: the choice of a single GPU, what is known of plain requests at a glance, and the sums by
//! which nodes are scored.

use pellucid_model::PodKey;
use pellucid_plugin_helper::testing::{Random, TestCluster, node};
use serde_json::{Value, json};

use super::super::DeviceShare;
use super::super::amounts::{CORE, RATIO, Resource};
use super::super::args::DeviceArgs;
use super::super::node_devices::NodeDevices;
use super::super::row::Sums;
use super::super::tests::{bound, devices, gpu, plugin, rdma, report, spec};
use super::given::any_allocation;
use super::*;

const GI: i64 = 1 << 30;

/// Makes a Device of up to eight GPUs. Some are ill, smaller than others, or without a topology.
fn device(random: &mut Random) -> Value {
    let (lacks_topology, is_odd) = ([1, 2, 30][random.below(3) as usize], random.is(3));
    let card = |random: &mut Random, minor: i64| {
        let mut card = gpu(minor, random.below(5) as i64);
        card["health"] = json!(!random.is(6));
        if random.is(lacks_topology) {
            card["topology"] = Value::Null;
        }
        if is_odd && random.is(3) {
            card["resources"] = [
                json!({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu-memory-ratio": 100}),
                json!({"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100, "huawei.com/npu-core": 8}),
                json!({"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "1001", "koordinator.sh/gpu-memory-ratio": 60}),
            ][random.below(3) as usize]
                .clone();
        }
        card
    };
    let n = random.below(9) as i64;
    let mut all: Vec<Value> = (0..n).map(|minor| card(random, minor)).collect();
    if random.is(3) {
        all.push(rdma(0, 1, 0));
    }
    let mut device = devices(&all);
    if random.is(5) {
        let table =
            json!({"1": [{"minors": [0], "allocationScore": 1}, {"minors": [1], "allocationScore": 2}]});
        device["metadata"]["annotations"] =
            json!({"scheduling.koordinator.sh/gpu-partitions": table.to_string()});
    }
    if random.is(8) {
        device["metadata"]["labels"] = json!({"node.koordinator.sh/gpu-partition-policy": "Honor"});
    }
    device
}

/// Adds pods, some on cards that are not known or not healthy, some with more than there is or with what GPUs do not have. Some end
/// again.
fn add_pods(random: &mut Random, cluster: &mut TestCluster) {
    for n in 0..random.below(9) {
        let (minor, percent) = (random.below(9), random.below(70));
        let memory = if random.is(4) { random.below(20) as i64 * GI } else { percent as i64 * 16 * GI / 100 };
        let mut text = json!({"gpu": [{"minor": minor, "resources": {"koordinator.sh/gpu-core": percent.to_string(),
            "koordinator.sh/gpu-memory-ratio": percent.to_string(), "koordinator.sh/gpu-memory": memory.to_string()}}]});
        if random.is(12) {
            text["gpu"][0]["resources"]["huawei.com/npu-core"] = "1".into();
        }
        bound(cluster, &format!("p{n}"), "a", &text.to_string());
        if random.is(4) {
            let key = PodKey::new("d", &format!("p{}", random.below(n + 1)));
            cluster.cluster.delete_pod(&key, &mut Vec::new());
        }
    }
}

/// Makes a request for a GPU, or for a few, that gives no hints.
fn request(random: &mut Random) -> Request {
    let (core, ratio, memory) =
        ("koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu-memory");
    let (percent, less) = (1 + random.below(100) as i64, 1 + random.below(100) as i64);
    let bytes = 1 + random.below(16 * GI as u64) as i64;
    let count = 2 + random.below(2) as i64;
    let wanted = match random.below(10) {
        0 => vec![("nvidia.com/gpu", 1)],
        1 => vec![("nvidia.com/gpu", count)],
        2 => vec![(ratio, percent)],
        3 => vec![(memory, bytes)],
        4 => vec![(core, less), (memory, bytes)],
        5 => vec![(core, less), (ratio, percent)],
        6 => vec![(ratio, percent), ("huawei.com/npu-core", 4)],
        7 => vec![("koordinator.sh/gpu.shared", count), (core, 20 * count), (ratio, 20 * count)],
        _ => vec![(core, percent), (ratio, percent)],
    };
    Request::of(&spec(&wanted, &[])).expect("valid").expect("it requests devices")
}

#[test]
fn short_ways_decide_as_the_allocator_does() {
    let typical = json!([{"gpus": 1, "percent": 50, "weight": 3}, {"gpus": 1, "percent": 30}, {"gpus": 2, "percent": 100}]);
    let args = json!({"scoringStrategy": {"type": "FragmentationGradient", "typicalPods": typical}});
    let plugin = plugin(args.clone());
    let share = DeviceShare { args: std::sync::Arc::new(DeviceArgs::read(&args).expect("valid")) };
    let resources = |all: &[Resource]| all.iter().map(|resource| (*resource, 1)).collect();
    let scorings = [
        Scoring { strategy: ScoringStrategy::LeastAllocated, weights: resources(&[RATIO, MEMORY]) },
        Scoring { strategy: ScoringStrategy::MostAllocated, weights: resources(&[CORE]) },
        Scoring { strategy: ScoringStrategy::MostAllocated, weights: resources(&[CORE, RATIO]) },
    ];
    let mut random = Random(5);
    let (mut singles, mut glances, mut refused, mut fitting, mut scored) = (0, 0, 0, 0, 0);
    for round in 0..1_500 {
        let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [node("a"), node("b")]);
        report(&mut cluster, "a", &device(&mut random), "1");
        add_pods(&mut random, &mut cluster);
        if random.is(6) {
            report(&mut cluster, "a", &device(&mut random), "2");
        }
        let (view, at) = (cluster.view(), cluster.idx("a"));
        let devices = view.state::<NodeDevices>().expect("a state");
        let row = devices.row(at).expect("a row");
        let known = devices.glance(at).expect("a glance");
        let mut fresh = row.clone();
        fresh.rebuild();
        fresh.note_left();
        assert_eq!(format!("{row:?}"), format!("{fresh:?}"), "round {round}");
        let mut sums = Sums::default();
        for card in row.gpus() {
            sums.total.add(&card.total);
            sums.used.add(&card.total.less(&card.free()));
        }
        assert_eq!(row.gpu_sums(), sums, "round {round}: {row:?}");
        for _ in 0..8 {
            let request = request(&mut random);
            let terms = Terms {
                scoring: &scorings[random.below(3) as usize],
                numa: [None, NumaMask::of(0), NumaMask::of(1)][random.below(3) as usize],
                is_empty: random.is(6),
                prospect: share.prospect(view, (at, row), 0).filter(|_| random.is(3)),
            };
            // Reserve may be asked with a request that is not prepared.
            let request = if random.is(4) { request } else { request.prepared(terms.scoring) };
            let said = format!("round {round}: {request:?} of {row:?}, NUMA {:?}", terms.numa);
            let expected = allocate_any(&Attempt { row, request: &request, terms: &terms });
            assert_eq!(allocate(row, &request, &terms), expected, "{said}");
            assert_eq!(
                fits(row, &request, &terms),
                expected.as_ref().map(drop).map_err(|lack| *lack),
                "{said}"
            );
            let given = give(row, &request, &terms).map(|what| Allocation::clone(&what));
            let chosen = expected.as_ref().map_err(|lack| *lack);
            assert_eq!(given, chosen.map(|chosen| any_allocation(row, &request, chosen)), "{said}");
            for choice in (0..row.gpus().len() as u16).map(Choice::of) {
                let choices = Choices::from_iter([choice]);
                let expected = any_allocation(row, &request, &choices);
                assert_eq!(*allocation(row, &request, &choices), expected, "{said}: {choice:?}");
            }
            singles += usize::from(request.single().is_some_and(|part| single::is_asked(row, part)));
            refused += usize::from(expected.is_err());
            let any = Terms { numa: None, is_empty: false, ..terms };
            for part in &request.parts {
                let attempt = Attempt { row, request: &request, terms: &any };
                let candidates = attempt.candidates(part);
                let enough = candidates.iter().filter(|at| attempt.fits(part, **at)).count();
                let expected = (enough, attempt.count(part).max(1));
                assert_eq!(share.fitting(row, &request, part, false), expected, "{said}");
            }
            if request.plain().is_some_and(|plain| known.fits(plain)) {
                assert_eq!(fits(row, &request, &any), Ok(()), "{said}");
                fitting += 1;
            }
            if let Some(part) = request.gpus_of_any_label() {
                let scoring = terms.scoring;
                let score = request.weighed().and_then(|weighed| known.score(scoring, weighed));
                let expected = scoring.score(&part.each, &sums.total, &sums.used);
                assert!(score.is_none_or(|score| score == expected), "{said}: {score:?}, not {expected}");
                scored += usize::from(score.is_some());
            }
            let Some(glance) = request.plain().and_then(|plain| row.fits_plainly(plain)) else { continue };
            glances += 1;
            let terms = Terms { numa: None, is_empty: false, ..terms };
            let expected = allocate_any(&Attempt { row, request: &request, terms: &terms }).map(drop);
            assert_eq!(glance, expected, "{said}");
            if expected.is_err() {
                let terms = Terms { is_empty: true, ..terms };
                assert!(allocate_any(&Attempt { row, request: &request, terms: &terms }).is_ok(), "{said}");
            }
        }
    }
    assert!(singles > 5_000 && glances > 3_000 && refused > 1_000, "{singles}, {glances}, {refused}");
    assert!(fitting > 1_000 && scored > 5_000, "{fitting}, {scored}");
}
