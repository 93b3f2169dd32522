//! The tables against the definition, and the plugin on a small cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_framework::plugin::{Plugin, PreScored};
use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;
use pellucid_model::{Node, NodeIdx, PodSpec};
use serde_json::{Value, json};

use super::super::tests::{devices, plugin, report, spec};
use super::super::*;
use super::future::Future;
use super::table::Table;
use super::typical::{Given, Wish};
use super::window::Window;
use pellucid_plugin_helper::testing::{Random, TestCluster, node, pod_with, raw_scores};

fn given(milli_cpu: i64, gpus: u32, percent: u8, weight: i64) -> Given {
    Given { wish: Wish { milli_cpu, gpus, percent, ..Wish::default() }, weight }
}

/// The definition: what of the idle GPUs each typical pod cannot use.
fn by_definition(typical: &[Given], accepts: &[bool], free: i64, left: &[u8]) -> i64 {
    let idle: i64 = left.iter().map(|left| i64::from(*left)).sum();
    let of = |(given, accepts): (&Given, &bool)| {
        let wish = &given.wish;
        let able = left.iter().filter(|left| **left >= wish.percent).count();
        let fits = *accepts && wish.gpus > 0 && wish.milli_cpu <= free && able >= wish.gpus as usize;
        let too_little = left.iter().filter(|left| **left < wish.percent).map(|left| i64::from(*left)).sum();
        given.weight * if fits { too_little } else { idle }
    };
    typical.iter().zip(accepts).map(of).sum()
}

#[test]
fn tables_agree_with_the_definition() {
    let mut random = Random(7);
    for _ in 0..500 {
        let typical: Vec<Given> = (0..random.below(12))
            .map(|_| {
                let gpus = random.below(5) as u32;
                let percent = if gpus == 0 { 0 } else { random.below(100) as u8 + 1 };
                given(random.below(8) as i64 * 1000, gpus, percent, random.below(50) as i64 + 1)
            })
            .collect();
        let accepts: Vec<bool> = typical.iter().map(|_| !random.is(3)).collect();
        let table = Table::new(&typical, 0, |at| accepts[at]);
        let left: Vec<u8> = (0..random.below(9)).map(|_| random.below(101) as u8).collect();
        let free = random.below(9) as i64 * 1000 - 500;
        let expected = by_definition(&typical, &accepts, free, &left);
        let prospect = table.prospect(free, &left);
        assert_eq!(prospect.fragments(), expected, "{typical:?} {left:?} {free}");
        for (at, of_card) in left.iter().enumerate().filter(|(_, left)| **left > 0) {
            let taken = random.below(u64::from(*of_card)) as u8 + 1;
            let mut with = left.clone();
            with[at] -= taken;
            let expected = by_definition(&typical, &accepts, free, &with);
            assert_eq!(prospect.fragments_with(*of_card, taken), expected);
        }
    }
}

#[test]
fn great_weights_are_scaled() {
    let typical = [given(0, 1, 50, 1 << 29), given(0, 1, 100, 1 << 29), given(0, 0, 0, 1)];
    let table = Table::new(&typical, 0, |_| true);
    assert_eq!(table.weights, 499_999 + 499_999 + 1, "they are rounded down, and the least weight is 1");
    assert_eq!(table.prospect(0, &[40]).fragments(), 40 * table.weights);
}

#[test]
fn a_node_is_filled_up_largest_first() {
    let typical = [given(1000, 1, 30, 2), given(3000, 1, 70, 1), given(2000, 2, 100, 1)];
    let wishes: Vec<(&Given, i64)> = typical.iter().map(|given| (given, given.weight)).collect();
    let idle = |pods, cpu, left: &[u8]| Future::new(&wishes, 4, pods).idle_after(cpu, left.iter().copied());
    assert_eq!(idle(4, 10_000, &[100, 100, 100]), 0, "two cards, then 70 and 30 of the third");
    assert_eq!(
        idle(4, 4_000, &[100, 100, 100]),
        40,
        "after two cards, the CPU is enough for two of 30 alone"
    );
    assert_eq!(idle(4, 10_000, &[100]), 0);
    assert_eq!(
        idle(4, 10_000, &[100, 35]),
        35 - 30,
        "the smaller card is taken for 30, so one of 30 has no room"
    );
    assert_eq!(idle(1, 10_000, &[100]), 70, "of one pod half is of 30, a quarter each of the others");
    assert_eq!(idle(4, 999, &[100, 20]), 120);
    assert_eq!(Future::new(&[], 0, 10).idle_after(1, [50].into_iter()), 50);
}

#[test]
fn the_window_forgets_and_orders_equal_wishes_by_first_sight() {
    let wish = |milli_cpu| given(milli_cpu, 1, 50, 1).wish;
    let mut window = Window::new(100);
    let due: Vec<usize> = (1..=400).filter(|n| window.add(wish((n % 2) as i64))).collect();
    assert_eq!(due, [16, 32, 64, 128, 228, 328], "as often as pods double, then once per window");
    let shapes =
        |window: &Window| -> Vec<i64> { window.typical().iter().map(|given| given.wish.milli_cpu).collect() };
    assert_eq!(shapes(&window), [1, 0]);
    for _ in 0..1500 {
        window.add(wish(7));
    }
    assert_eq!(shapes(&window), [7], "the others are less than 5 %");
}

/// Two nodes with cards, and typical pods of half a card with 2 cores.
fn small(typical: &Value) -> (Arc<dyn Plugin>, TestCluster) {
    let plugin =
        plugin(json!({"scoringStrategy": {"type": "FragmentationGradient", "typicalPods": typical}}));
    let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [node("a"), node("b")]);
    let card = |minor: i64| {
        json!({"type": "gpu", "minor": minor, "health": true, "resources": {
            "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100, "koordinator.sh/gpu-memory": "16Gi"}})
    };
    report(&mut cluster, "a", &devices(&[card(0), card(1)]), "1");
    (plugin, cluster)
}

fn share(percent: i64, milli_cpu: i64) -> PodSpec {
    let mut made = spec(&[("koordinator.sh/gpu", percent)], &[]);
    made.requests.list.milli_cpu = milli_cpu;
    made
}

fn minor(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: PodSpec) -> i64 {
    let reserve = plugin.reserve().expect("it reserves");
    let made = reserve.reserve(cluster.view(), &pod_with(spec), cluster.idx("a")).expect("it fits");
    let what =
        made.expect("it has devices").what.downcast::<allocation::Allocation>().expect("an allocation");
    what.given[0].minor
}

#[test]
fn a_node_scores_by_what_typical_pods_lose() {
    let (plugin, mut cluster) = small(&json!([{"gpus": 1, "percent": 50, "cpu": "2"}]));
    let score = |cluster: &TestCluster, spec: &PodSpec| {
        raw_scores(&*plugin, cluster, spec).expect("it scores").first().copied()
    };
    assert_eq!(score(&cluster, &share(50, 0)), Some(50), "halves fit before and after");
    assert_eq!(score(&cluster, &share(60, 0)), Some(40), "40 % of a card are lost: 100 / (1 + exp(0.4))");
    // 4 cores are there: with 3 of them gone, no typical pod fits, and two cards are lost.
    assert_eq!(
        score(
            &cluster,
            &PodSpec {
                requests: pellucid_model::requests::PodRequests {
                    list: ResourceList { milli_cpu: 3000, ..ResourceList::default() },
                    ..Default::default()
                },
                ..PodSpec::default()
            }
        ),
        Some(11),
        "100 / (1 + exp(2))"
    );
    assert_eq!(raw_scores(&*plugin, &cluster, &share(50, 0)).expect("it scores").get(1), Some(&50));
    super::super::tests::bound(
        &mut cluster,
        "p",
        "a",
        r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory-ratio":"60"}}]}"#,
    );
    assert_eq!(score(&cluster, &share(40, 0)), Some(59), "what was lost is used: 100 / (1 + exp(-0.4))");
    assert_eq!(minor(&plugin, &cluster, share(40, 0)), 1);
    assert_eq!(minor(&plugin, &cluster, share(50, 0)), 0);
}

#[test]
fn typical_pods_may_want_labels_of_nodes() {
    let typical = json!([{"gpus": 1, "percent": 50, "nodeLabel": {"key": "model", "values": ["T4", "A10"]}}]);
    let (plugin, mut cluster) = small(&typical);
    let score = |cluster: &TestCluster| raw_scores(&*plugin, cluster, &share(60, 0)).expect("it scores")[0];
    assert_eq!(score(&cluster), 64, "nobody could use the card anyway: 100 / (1 + exp(-0.6))");
    let labels = Labels::new([("model".into(), "A10".into())]);
    cluster.apply(Node { labels, ..node("a") });
    assert_eq!(score(&cluster), 40);
}

#[test]
fn what_is_seen_becomes_typical() {
    let plugin = plugin(json!({"scoringStrategy": {"type": "FragmentationGradient"}}));
    let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [node("a"), node("b")]);
    let card = json!({"type": "gpu", "minor": 0, "health": true, "resources": {
            "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100}});
    report(&mut cluster, "a", &devices(&[card]), "1");
    let score = |cluster: &TestCluster| raw_scores(&*plugin, cluster, &share(60, 0)).expect("it scores")[0];
    assert_eq!(score(&cluster), 50, "nothing is typical yet");
    for _ in 0..16 {
        cluster.place(share(50, 0), "b");
    }
    assert_eq!(score(&cluster), 40);
}

/// What is known at a glance of plain requests is what the allocator decides, for filters, scores and cards alike.
#[test]
fn short_ways_agree_with_the_allocator() {
    let typical = json!([{"gpus": 1, "percent": 50, "cpu": "1", "weight": 3}, {"gpus": 1, "percent": 30, "weight": 2},
        {"gpus": 2, "percent": 100, "cpu": "2"}, {"cpu": "1"}]);
    for lookahead in [0, 20] {
        let args = json!({"scoringStrategy": {"type": "FragmentationGradient", "typicalPods": typical, "lookahead": lookahead}});
        let plugin = plugin(args.clone());
        let share = DeviceShare { args: Arc::new(args::DeviceArgs::read(&args).expect("valid")) };
        let mut random = Random(11 + lookahead);
        for round in 0..60 {
            let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [node("a"), node("b")]);
            let card = |minor: u64, healthy: bool| {
                json!({"type": "gpu", "minor": minor, "health": healthy, "resources": {"koordinator.sh/gpu-core": 100,
                    "koordinator.sh/gpu-memory-ratio": 100, "koordinator.sh/gpu-memory": "16Gi"}})
            };
            let cards: Vec<Value> = (0..=random.below(4)).map(|n| card(n, !random.is(5))).collect();
            report(&mut cluster, "a", &devices(&cards), "1");
            for n in 0..random.below(5) {
                let (minor, percent) = (random.below(cards.len() as u64), random.below(60));
                // Some pods have more memory than their ratio says.
                let memory = percent * (16 << 30) / 100 + random.below(3) * (2 << 30);
                let text = json!({"gpu": [{"minor": minor, "resources": {"koordinator.sh/gpu-core": percent.to_string(),
                    "koordinator.sh/gpu-memory-ratio": percent.to_string(), "koordinator.sh/gpu-memory": memory.to_string()}}]});
                super::super::tests::bound(&mut cluster, &format!("p{n}"), "a", &text.to_string());
            }
            let view = cluster.view();
            let at = cluster.idx("a");
            let row =
                view.state::<node_devices::NodeDevices>().and_then(|devices| devices.row(at)).expect("a row");
            for percent in [1, 20, 33, 50, 80, 100, 200, 300] {
                let wanted = wanted_of(percent, 500);
                let request = request::Request::of(&wanted).expect("valid").expect("it requests devices");
                let plain = request.plain().expect("it is plain");
                let (of_each, count) = (plain.percent, plain.count);
                let prospect = share.prospect(view, (at, row), 500);
                let chosen = share.allocate(row, &request, None, prospect);
                if let Some(fits) = row.fits_plainly(plain) {
                    assert_eq!(
                        fits,
                        chosen.as_ref().map(drop).map_err(|lack| *lack),
                        "round {round}: {percent} of {row:?}"
                    );
                }
                let Ok(chosen) = chosen else { continue };
                let mut with = row.clone();
                for choice in &chosen {
                    let left = &mut with.left[usize::from(choice.card)];
                    *left = left.saturating_sub(of_each);
                }
                let is_exact = count == 1 && row.left_for(plain).is_some();
                let least = prospect.filter(|_| is_exact).and_then(|p| p.least_with(of_each));
                let expected = share.prospect(view, (at, &with), 500).map(|prospect| prospect.fragments());
                assert!(least.is_none() || least == expected, "round {round}: {percent} of {row:?}");
            }
            // Reserve is asked when the pod's CPU is taken already. The cards are those that Score counted on.
            let row = row.clone();
            let wanted = wanted_of(20, 500);
            let request = request::Request::of(&wanted).expect("valid").expect("it requests devices");
            let trial = share.allocate(&row, &request, None, share.prospect(view, (at, &row), 500));
            let mut cpu_alone = PodSpec::default();
            cpu_alone.requests.list.milli_cpu = 500;
            cluster.place(cpu_alone, "a");
            let real = share.allocate(&row, &request, None, share.prospect(cluster.view(), (at, &row), 0));
            assert_eq!(trial, real);
        }
    }
}

/// Nodes with the same cards, CPU and pods are rated once, others each by itself.
#[test]
fn nodes_are_rated_together_as_each_alone() {
    let typical = json!([{"gpus": 1, "percent": 50, "cpu": "1", "weight": 3}, {"gpus": 2, "percent": 100, "cpu": "2"}, {"cpu": "1"}]);
    let names: Vec<String> = (0..24).map(|n| format!("n{n}")).collect();
    for lookahead in [0, 20] {
        let args = json!({"scoringStrategy": {"type": "FragmentationGradient", "typicalPods": typical, "lookahead": lookahead}});
        let plugin = plugin(args);
        let mut random = Random(5 + lookahead);
        let mut cluster =
            TestCluster::with(std::slice::from_ref(&plugin), names.iter().map(|name| node(name)));
        for name in &names {
            let card = |minor: u64| {
                json!({"type": "gpu", "minor": minor, "health": true, "resources": {"koordinator.sh/gpu-core": 100,
                    "koordinator.sh/gpu-memory-ratio": 100, "koordinator.sh/gpu-memory": "16Gi"}})
            };
            let cards: Vec<Value> = (0..=random.below(3)).map(card).collect();
            report(&mut cluster, name, &devices(&cards), "1");
            if random.is(3) {
                let text = r#"{"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "40", "koordinator.sh/gpu-memory-ratio": "40"}}]}"#;
                super::super::tests::bound(&mut cluster, &format!("on-{name}"), name, text);
            }
            if random.is(4) {
                let mut cpu_alone = PodSpec::default();
                cpu_alone.requests.list.milli_cpu = 1000;
                cluster.place(cpu_alone, name);
            }
        }
        let mut ratings = BTreeSet::new();
        let score = plugin.score().expect("it scores");
        let all: Vec<NodeIdx> = names.iter().map(|name| cluster.idx(name)).collect();
        let mut cpu_alone = PodSpec::default();
        cpu_alone.requests.list.milli_cpu = 1000;
        for wanted in [share(20, 500), share(50, 2000), share(100, 0), share(200, 1000), cpu_alone] {
            let prepared = plugin.pre_score().expect("it prepares").pre_score(cluster.view(), &wanted, &all);
            let PreScored::Ready(value) = prepared else { panic!("it scores all pods") };
            let rated = |nodes: &[NodeIdx]| {
                let mut out = vec![-1; nodes.len()];
                score.score(cluster.view(), &wanted, &value, nodes, &mut out);
                out
            };
            let alone: Vec<i64> = all.iter().flat_map(|node| rated(&[*node])).collect();
            assert_eq!(rated(&all), alone);
            ratings.extend(alone);
        }
        assert!(ratings.len() > 5, "{ratings:?}");
    }
}

fn wanted_of(percent: i64, milli_cpu: i64) -> PodSpec {
    share(percent, milli_cpu)
}
