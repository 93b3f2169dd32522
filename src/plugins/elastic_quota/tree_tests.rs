//! Tests of trees, accounting and shares on values.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::Name;
use pellucid_model::requests::ResourceList;

use super::accounting::Part;
use super::args::QuotaArgs;
use super::quota::{Amounts, ElasticQuota};
use super::shares::Totals;
use super::tree::{Cell, CutOff, DEFAULT, QuotaIdx, ROOT, Role, SYSTEM, Tree, clamp};
use pellucid_plugin_helper::testing::Random;

fn amounts(pairs: &[(&str, i64)]) -> Amounts {
    pairs.iter().map(|(name, amount)| ((*name).into(), *amount)).collect()
}

fn quota(name: &str, parent: Option<&str>, min: i64, max: i64) -> ElasticQuota {
    ElasticQuota {
        name: name.into(),
        parent: parent.map(Name::new),
        is_parent: true,
        lends: true,
        min: amounts(&[("cpu", min)]),
        max: amounts(&[("cpu", max)]),
        ..ElasticQuota::default()
    }
}

fn tree_of(mut objects: Vec<ElasticQuota>, args: &QuotaArgs) -> Tree {
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let objects: Vec<Arc<ElasticQuota>> = objects.into_iter().map(Arc::new).collect();
    let mut tree = Tree::new(&objects, args);
    tree.add_up();
    tree
}

fn totals(tree: &Tree, cpu: i64, memory: i64) -> Totals {
    let of = |name: &Name| match &**name {
        "cpu" => i128::from(cpu),
        "memory" => i128::from(memory),
        _ => 0,
    };
    Totals { nodes: tree.resources.iter().map(of).collect(), trees: Vec::new() }
}

fn request(cpu: i64, memory: i64) -> ResourceList {
    ResourceList { milli_cpu: cpu, memory, ..ResourceList::default() }
}

fn at(tree: &Tree, name: &str) -> QuotaIdx {
    tree.find(&name.into()).expect("a quota")
}

fn cpu<'a>(tree: &'a Tree, name: &str) -> &'a Cell {
    let r = tree.resources.iter().position(|n| &**n == "cpu").expect("cpu");
    &tree.get(at(tree, name)).cells[r]
}

#[test]
fn the_article_shares_a_hundred_cores_among_four() {
    let args = QuotaArgs::default();
    let weighted = |name, min: i64, weight: i64| ElasticQuota {
        shared_weight: Some(amounts(&[("cpu", weight * 1000)])),
        ..quota(name, None, min * 1000, 100_000)
    };
    let objects =
        vec![weighted("a", 10, 40), weighted("b", 15, 60), weighted("c", 20, 50), weighted("d", 15, 80)];
    let mut tree = tree_of(objects, &args);
    for (name, cores) in [("a", 5), ("b", 20), ("c", 30), ("d", 70)] {
        tree.count(at(&tree, name), &request(cores * 1000, 0), false, Part::Request, 1);
    }
    let totals = totals(&tree, 100_000, 0);
    assert!(tree.refresh(&totals, true));
    let runtimes = ["a", "b", "c", "d"].map(|name| cpu(&tree, name).runtime);
    assert_eq!(runtimes, [5000, 20_000, 30_000, 45_000]);
    // Ten more cores for c: the article's 35 and 40 in whole cores.
    tree.count(at(&tree, "c"), &request(10_000, 0), false, Part::Request, 1);
    tree.refresh(&totals, true);
    assert_eq!((cpu(&tree, "c").runtime, cpu(&tree, "d").runtime), (35_385, 39_615));
}

#[test]
fn the_articles_tree_is_joined_and_a_small_cluster_scales_its_mins() {
    let args = QuotaArgs::default();
    let parent = quota("parentA", None, 100_000, 100_000);
    let child = |name| quota(name, Some("parentA"), 20_000, 40_000);
    let mut tree = tree_of(vec![parent, child("childA1"), child("childA2")], &args);
    tree.count(at(&tree, "childA1"), &request(50_000, 0), false, Part::Request, 1);
    let full = totals(&tree, 100_000, 0);
    tree.refresh(&full, true);
    assert_eq!(cpu(&tree, "childA1").runtime, 40_000, "its max");
    assert_eq!((cpu(&tree, "parentA").all.request, cpu(&tree, "parentA").runtime), (40_000, 40_000));
    let mut small = tree_of(vec![quota("x", None, 60, 100), quota("y", None, 40, 100)], &args);
    let fifty = totals(&small, 50, 0);
    small.refresh(&fifty, true);
    assert_eq!((cpu(&small, "x").scaled_min, cpu(&small, "y").scaled_min), (30, 20));
    small.get_mut(ROOT).is_dirty = true;
    small.refresh(&fifty, false);
    assert_eq!(cpu(&small, "x").scaled_min, 60);
}

#[test]
fn unknown_parents_and_circles_leave_a_quota_its_min() {
    let args = QuotaArgs::default();
    let mut tree = tree_of(
        vec![
            quota("lost", Some("nobody"), 10, 100),
            quota("a", Some("b"), 5, 100),
            quota("b", Some("a"), 5, 100),
            quota("below", Some("a"), 1, 100),
            quota("fine", None, 10, 100),
        ],
        &args,
    );
    let cut_off = |name: &str| tree.get(at(&tree, name)).cut_off;
    assert_eq!(cut_off("lost"), Some(CutOff::UnknownParent));
    assert_eq!((cut_off("a"), cut_off("b")), (Some(CutOff::Circle), Some(CutOff::Circle)));
    assert_eq!((cut_off("below"), cut_off("fine")), (None, None));
    for name in ["lost", "fine", "below"] {
        tree.count(at(&tree, name), &request(100, 0), false, Part::Request, 1);
    }
    let totals = totals(&tree, 100, 0);
    tree.refresh(&totals, true);
    assert_eq!((cpu(&tree, "lost").runtime, cpu(&tree, "fine").runtime), (10, 85));
    assert_eq!((cpu(&tree, "a").runtime, cpu(&tree, "below").runtime), (5, 5));
}

#[test]
fn a_tree_of_its_own_has_its_own_total() {
    let args = QuotaArgs::default();
    let first =
        ElasticQuota { is_tree_root: true, tree: Some("gpu".into()), ..quota("gpu-root", None, 40, 1000) };
    let child = ElasticQuota { tree: Some("gpu".into()), ..quota("gpu-a", Some("gpu-root"), 10, 1000) };
    for (ignores, left) in [(false, 60), (true, 100)] {
        let first = ElasticQuota { ignores_default_tree: ignores, ..first.clone() };
        let mut tree = tree_of(vec![first, child.clone(), quota("plain", None, 0, 1000)], &args);
        for name in ["gpu-a", "plain"] {
            tree.count(at(&tree, name), &request(500, 0), false, Part::Request, 1);
        }
        let own = tree.resources.iter().map(|name| if &**name == "cpu" { 40 } else { 0 }).collect();
        let totals = Totals { trees: vec![(at(&tree, "gpu-root"), own)], ..totals(&tree, 100, 0) };
        tree.refresh(&totals, true);
        assert_eq!((cpu(&tree, "gpu-a").runtime, cpu(&tree, "plain").runtime), (40, left));
        assert_eq!(&*tree.get(at(&tree, "gpu-a")).tree, "gpu");
    }
}

#[test]
fn what_built_in_quotas_use_is_taken_off_the_total() {
    let args = QuotaArgs::default();
    let mut tree = tree_of(vec![quota("a", None, 0, 1000)], &args);
    tree.count(at(&tree, "a"), &request(500, 0), false, Part::Request, 1);
    tree.count(DEFAULT, &request(30, 0), false, Part::Request, 1);
    tree.count(DEFAULT, &request(30, 0), false, Part::Used, 1);
    tree.count(SYSTEM, &request(20, 0), false, Part::Used, 1);
    let totals = totals(&tree, 100, 0);
    tree.refresh(&totals, true);
    assert_eq!(cpu(&tree, "a").runtime, 50);
    for (name, expected) in [("root", ROOT), ("system", SYSTEM), ("default", DEFAULT)] {
        assert_eq!(tree.find(&name.into()), Some(expected));
    }
    assert_eq!(tree.of_pod(Some(&"nobody".into()), &"ns".into()), DEFAULT);
}

#[test]
fn what_runs_is_guaranteed_where_the_arguments_say_so() {
    let args = QuotaArgs { guarantees_usage: true, ..QuotaArgs::default() };
    let mut tree = tree_of(vec![quota("a", None, 0, 100), quota("b", None, 0, 100)], &args);
    for name in ["a", "b"] {
        tree.count(at(&tree, name), &request(100, 0), false, Part::Request, 1);
    }
    tree.count(at(&tree, "a"), &request(70, 0), false, Part::Used, 1);
    let totals = totals(&tree, 100, 0);
    tree.refresh(&totals, true);
    assert_eq!(
        (cpu(&tree, "a").guaranteed(), cpu(&tree, "a").runtime, cpu(&tree, "b").runtime),
        (70, 85, 15)
    );
    tree.count(at(&tree, "a"), &request(70, 0), false, Part::Used, -1);
    tree.refresh(&totals, true);
    assert_eq!((cpu(&tree, "a").runtime, cpu(&tree, "b").runtime), (50, 50));
}

/// Number of quotas in the large trees.
const MANY: u64 = 1000;
/// What 5,000 nodes of 64 cores and 256 Gi have.
const OF_NODES: (i64, i64) = (5000 * 64_000, 5000 << 38);

/// Makes a random tree of this many quotas, up to four deep.
fn random_objects(random: &mut Random, n: u64) -> Vec<ElasticQuota> {
    let top = [20, 100_000, OF_NODES.0 as u64 / 50, i64::MAX as u64 / 8][random.below(4) as usize];
    let mut all: Vec<(ElasticQuota, u64)> = Vec::new();
    for i in 0..n {
        let mut amount = |one_in: u64| if random.is(one_in) { 0 } else { random.below(top) as i64 };
        let (min, max, memory, weight) = (amount(4) / 8, amount(9), amount(4), amount(5));
        let fits: Vec<usize> = (0..all.len()).filter(|p| all[*p].1 < 4).collect();
        let parent =
            (!fits.is_empty() && !random.is(4)).then(|| fits[random.below(fits.len() as u64) as usize]);
        let name = format!("q{i:02}");
        let mut made = quota(&name, parent.map(|p| all[p].0.name.to_string()).as_deref(), min, max);
        if random.is(2) {
            made.max.insert("memory".into(), memory);
        }
        made.lends = !random.is(5);
        made.shared_weight = random.is(2).then(|| amounts(&[("cpu", weight), ("memory", weight / 2)]));
        let depth = parent.map_or(1, |p| all[p].1 + 1);
        all.push((made, depth));
    }
    all.into_iter().map(|(quota, _)| quota).collect()
}

fn by_name(tree: &Tree) -> BTreeMap<Name, (Vec<i64>, Vec<Cell>)> {
    let of = |quota: &super::tree::Quota| {
        (quota.cells.iter().map(|cell| cell.runtime).collect(), quota.cells.to_vec())
    };
    tree.quotas.iter().map(|quota| (quota.name.clone(), of(quota))).collect()
}

/// A counted pod of a random history.
struct Counted(QuotaIdx, ResourceList, bool, Part);

#[test]
fn step_by_step_equals_from_scratch_in_any_order_and_nobody_gets_what_is_not_there() {
    let mut random = Random(42);
    for round in 0..156 {
        let args = QuotaArgs { guarantees_usage: random.is(4), ..QuotaArgs::default() };
        let is_large = round >= 150;
        let n = if is_large { MANY } else { 2 + random.below(60) };
        let objects = random_objects(&mut random, n);
        let mut tree = tree_of(objects.clone(), &args);
        let mut counted: Vec<Counted> = Vec::new();
        let mut total =
            if is_large { OF_NODES } else { (random.below(200_000) as i64, random.below(200_000) as i64) };
        for _ in 0..60 {
            match random.below(5) {
                0 if !counted.is_empty() => {
                    let gone = counted.swap_remove(random.below(counted.len() as u64) as usize);
                    tree.count(gone.0, &gone.1, gone.2, gone.3, -1);
                }
                1 if is_large => total = (random.below(OF_NODES.0 as u64) as i64, OF_NODES.1),
                1 => total = (random.below(400_000) as i64, random.below(400_000) as i64),
                _ => {
                    let quota = SYSTEM + random.below(tree.quotas.len() as u64 - 1) as usize;
                    let part = if random.is(2) { Part::Used } else { Part::Request };
                    let list = request(random.below(50_000) as i64, random.below(50_000) as i64);
                    let pod = Counted(quota, list, random.is(3), part);
                    tree.count(pod.0, &pod.1, pod.2, pod.3, 1);
                    counted.push(pod);
                }
            }
            if random.is(3) {
                let totals = totals(&tree, total.0, total.1);
                tree.refresh(&totals, true);
            }
        }
        let now = totals(&tree, total.0, total.1);
        tree.refresh(&now, true);
        let mut shuffled = objects;
        shuffled.reverse();
        let mut scratch = tree_of(shuffled, &args);
        for pod in &counted {
            scratch.count_own(pod.0, &pod.1, pod.2, pod.3);
        }
        scratch.add_up();
        scratch.refresh(&now, true);
        assert_eq!(by_name(&tree), by_name(&scratch), "round {round}");
        check_sums(&tree, &counted);
        check_shares(&tree);
    }
}

/// What is used is the sum over the pods, in each quota and above.
fn check_sums(tree: &Tree, counted: &[Counted]) {
    for (at, quota) in tree.quotas.iter().enumerate() {
        for (r, name) in tree.resources.iter().enumerate() {
            let is_below = |pod: &&Counted| {
                pod.3 == Part::Used
                    && tree.upwards(pod.0).any(|up| up == at)
                    && tree.get(pod.0).cells[r].max.is_some()
            };
            let used: i128 = counted.iter().filter(is_below).map(|pod| i128::from(pod.1.amount(name))).sum();
            assert_eq!(quota.cells[r].all.used, used, "{} {name}", quota.name);
        }
    }
}

/// Siblings get no more than their parent has, beyond what is guaranteed to them.
fn check_shares(tree: &Tree) {
    for (at, parent) in tree.quotas.iter().enumerate() {
        for r in 0..tree.resources.len() {
            let claims = parent.children.iter().map(|child| tree.claim(tree.get(*child), r));
            let least: i128 = claims
                .map(|claim| {
                    i128::from(if claim.lends {
                        claim.request.min(claim.guaranteed)
                    } else {
                        claim.guaranteed
                    })
                })
                .sum();
            let given: i128 = parent.children.iter().map(|c| i128::from(tree.get(*c).cells[r].runtime)).sum();
            let has = i128::from(parent.cells[r].runtime).max(least);
            assert!(parent.role == Role::BuiltIn || given <= has, "{at} {r}: {given} of {has}");
        }
    }
}

/// A greater min of its own takes nothing from a quota, up to what rounding moves: a unit per round and level.
#[test]
fn nobody_loses_by_a_greater_min_of_his_own() {
    let mut random = Random(17);
    for round in 0..300 {
        let args = QuotaArgs { scales_min: random.is(2), ..QuotaArgs::default() };
        let n = if round % 100 == 99 { MANY } else { 2 + random.below(60) };
        let mut objects = random_objects(&mut random, n);
        let pods: Vec<(u64, ResourceList)> = (0..n)
            .map(|_| (random.below(n), request(random.below(50_000) as i64, random.below(50_000) as i64)))
            .collect();
        let total = totals(&tree_of(objects.clone(), &args), random.below(400_000) as i64, 100_000);
        let of = |objects: &[ElasticQuota], name: &str| {
            let mut tree = tree_of(objects.to_vec(), &args);
            for (quota, list) in &pods {
                tree.count(at(&tree, &objects[*quota as usize].name), list, false, Part::Request, 1);
            }
            tree.refresh(&total, args.scales_min);
            (cpu(&tree, name).runtime, tree.upwards(at(&tree, name)).count())
        };
        let i = random.below(n) as usize;
        let name = objects[i].name.to_string();
        let (before, depth) = of(&objects, &name);
        let min = objects[i].min.entry("cpu".into()).or_default();
        *min = min.saturating_add(1 + random.below(30_000) as i64);
        let (after, _) = of(&objects, &name);
        let rounding = (n as i64) * depth as i64;
        assert!(after >= before.saturating_sub(rounding), "{round}: {name} {before} {after}");
    }
}

#[test]
fn a_change_of_a_leaf_works_out_its_path_alone() {
    let args = QuotaArgs::default();
    let mut objects = Vec::new();
    for p in 0..10 {
        let parent = format!("p{p}");
        objects.push(quota(&parent, None, 100, 10_000));
        objects.extend((0..10).map(|i| quota(&format!("p{p}-{i}"), Some(&parent), 0, 1000)));
    }
    let mut tree = tree_of(objects, &args);
    let totals = totals(&tree, 1_000_000, 0);
    tree.refresh(&totals, true);
    let before = by_name(&tree);
    tree.count(at(&tree, "p3-4"), &request(50, 0), false, Part::Request, 1);
    let dirty = |tree: &Tree| {
        let dirty = tree.quotas.iter().filter(|quota| quota.is_dirty);
        dirty.map(|quota| quota.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(dirty(&tree), ["koordinator-root-quota", "p3"]);
    tree.refresh(&totals, true);
    assert_eq!(dirty(&tree), Vec::<String>::new());
    let after = by_name(&tree);
    let changed: Vec<&str> =
        after.iter().filter(|(name, now)| before[name].0 != now.0).map(|(name, _)| &**name).collect();
    assert_eq!(changed, ["p3", "p3-4"]);
    assert_eq!(clamp(cpu(&tree, "p3").all.request), 50);
}
