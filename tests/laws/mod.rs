//! Laws that hold for every plugin and for the state that plugins read.
//!
//! A plugin may evaluate all nodes at once, but its result for one node must not depend on the others. What it
//! derives from nodes and pods must equal a derivation from scratch, a fork must equal its original, and an undone
//! overlay must leave no trace. `changes` has what the API server reports and what wakes pods, `lives` the laws of
//! plugins that own objects, holds and time.

mod cards;
mod census;
mod changes;
mod happening;
#[allow(dead_code, unreachable_pub, reason = "the tests need the plugin, not its binary")]
#[path = "../../examples/licence_seats.rs"]
mod licence_seats;
mod lives;
mod machines;

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::state::Overlay;
use pellucid::cluster::{Cluster, Stage};
use pellucid::framework::plugin::{Plugin, PreFiltered, PreScored, Reads};
use pellucid::framework::{Cause, CauseId, Causes, CycleValue, NodeReason, Nodes, View};
use pellucid::model::pages::PAGE;
use pellucid::model::{NodeIdx, PodId, PodSpec};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::{World, any_node, config, placed_stage, spec, world};
use crate::common::seen::seen as all_of;

fn plugins() -> Vec<Arc<dyn Plugin>> {
    let made = |args: Value| move |f: &dyn pellucid::framework::PluginFactory| f.make(&args).expect("valid");
    let defaults = made(Value::Null);
    let mut all: Vec<_> = lives::registry().iter().map(|f| defaults(&**f)).collect();
    // The other scoring strategies, and an affinity that the profile adds.
    let resources = json!([{"name": "cpu", "weight": 3}, {"name": "example.com/gpu"}, {"name": "memory"}]);
    let shape = json!([{"utilization": 0, "score": 2}, {"utilization": 70, "score": 10}]);
    let ratio = json!({"shape": shape});
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
    for (name, args) in [
        (
            "NodeResourcesFit",
            json!({"scoringStrategy": {"type": "MostAllocated", "resources": resources},
                "ignoredResourceGroups": ["example.com"]}),
        ),
        (
            "NodeResourcesFit",
            json!({"scoringStrategy": {"type": "RequestedToCapacityRatio", "resources": resources,
                "requestedToCapacityRatio": ratio}}),
        ),
        (
            "NodeResourcesBalancedAllocation",
            json!({"resources": [{"name": "cpu"}, {"name": "example.com/gpu"}, {"name": "memory"}]}),
        ),
        (
            "NodeAffinity",
            json!({"addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": term}],
            }}),
        ),
        (
            "PodTopologySpread",
            json!({"defaultingType": "List", "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2},
                {"maxSkew": 2, "topologyKey": "disk", "whenUnsatisfiable": "ScheduleAnyway"},
            ]}),
        ),
        (
            "InterPodAffinity",
            json!({"hardPodAffinityWeight": 50, "ignorePreferredTermsOfExistingPods": true}),
        ),
    ] {
        let factory = pellucid::plugins::registry().into_iter().find(|f| f.name() == name);
        all.push(made(args)(&*factory.expect("the plugin is registered")));
    }
    all
}

/// Returns a plugin's filter result for each of the given nodes, `None` for a node it accepts.
fn filter(plugin: &dyn Plugin, view: View<'_>, spec: &PodSpec, nodes: &[NodeIdx]) -> Vec<Option<Cause>> {
    let Some(filter) = plugin.filter() else { return vec![None; nodes.len()] };
    let value: CycleValue = match plugin.pre_filter().map(|p| p.pre_filter(view, spec)) {
        None => Arc::new(()),
        Some(PreFiltered::Ready { value, .. }) => value,
        Some(PreFiltered::Skip) => return vec![None; nodes.len()],
        Some(PreFiltered::Refused(cause)) => return vec![Some(cause); nodes.len()],
    };
    let mut causes = Causes::default();
    let mut mask = vec![CauseId::FEASIBLE; view.cluster().n_slots()];
    let mut left = nodes.to_vec();
    filter.filter(view, spec, &value, &mut Nodes::new(&mut left, &mut causes, &mut mask));
    assert!(nodes.iter().all(|n| left.contains(n) == mask[n.index()].is_feasible()));
    nodes.iter().map(|n| causes.get(mask[n.index()]).cloned()).collect()
}

/// Returns every reason that a plugin has against each node; `None` when its causes name them all, or when PreFilter
/// decides.
fn whole_causes(plugin: &dyn Plugin, view: View<'_>, spec: &PodSpec) -> Option<Vec<Vec<NodeReason>>> {
    let filter = plugin.filter()?;
    let value: CycleValue = match plugin.pre_filter().map(|p| p.pre_filter(view, spec)) {
        None => Arc::new(()),
        Some(PreFiltered::Ready { value, .. }) => value,
        Some(PreFiltered::Skip | PreFiltered::Refused(_)) => return None,
    };
    let every = filter.every_reason(view, spec, &value)?;
    let of = |node: &NodeIdx| {
        let mut reasons = Vec::new();
        every(*node, &mut reasons);
        reasons
    };
    Some(view.nodes().iter().map(of).collect())
}

/// Returns what a plugin prepares for scoring these feasible nodes, or `None` when it skips the pod.
fn pre_score(
    plugin: &dyn Plugin,
    view: View<'_>,
    spec: &PodSpec,
    feasible: &[NodeIdx],
) -> Option<CycleValue> {
    plugin.score()?;
    match plugin.pre_score().map(|p| p.pre_score(view, spec, feasible)) {
        None => Some(Arc::new(())),
        Some(PreScored::Ready(value)) => Some(value),
        Some(PreScored::Skip) => None,
    }
}

/// Returns a plugin's raw score for each of the given nodes.
fn score(
    plugin: &dyn Plugin,
    view: View<'_>,
    spec: &PodSpec,
    value: &CycleValue,
    nodes: &[NodeIdx],
) -> Vec<i64> {
    let mut out = vec![i64::MIN; nodes.len()];
    plugin.score().expect("it scores").score(view, spec, value, nodes, &mut out);
    out
}

/// Returns a plugin's scores of feasible nodes, raw and normalized, or `None` when it skips the pod.
fn scores(
    plugin: &dyn Plugin,
    view: View<'_>,
    spec: &PodSpec,
    feasible: &[NodeIdx],
) -> Option<[Vec<i64>; 2]> {
    let value = pre_score(plugin, view, spec, feasible)?;
    let raw = score(plugin, view, spec, &value, feasible);
    let mut normalised = raw.clone();
    plugin.score()?.normalize_all(view, &value, feasible, &mut normalised);
    Some([raw, normalised])
}

#[test]
fn plugins_that_say_which_pods_concern_them_are_asked_at_every_attempt() {
    let all = plugins();
    let some: Vec<_> = all.iter().filter(|plugin| plugin.concern().is_some()).collect();
    assert!(!some.is_empty());
    for plugin in some {
        let filters = [plugin.pre_filter().map(|p| p.reads()), plugin.filter().map(|p| p.reads())];
        let scores = [plugin.pre_score().map(|p| p.reads()), plugin.score().map(|p| p.reads())];
        let reads: Vec<Reads> = filters.into_iter().chain(scores).flatten().collect();
        assert!(reads.iter().all(|reads| *reads == Reads::Everything), "{}: {reads:?}", plugin.name());
    }
}

/// Returns everything visible of a cluster and every plugin's results for some pods, by name: slots and column
/// numbers do not matter.
fn seen(cluster: &Cluster, specs: &[PodSpec]) -> BTreeMap<String, Value> {
    let (mut all, view) = (all_of(cluster), View::new(cluster));
    let nodes = cluster.by_name().to_vec();
    for (i, spec) in specs.iter().enumerate() {
        for (j, plugin) in plugins().iter().enumerate() {
            let causes = filter(&**plugin, view, spec, &nodes);
            let causes: Vec<_> = causes.iter().map(|c| c.as_ref().map(Cause::message)).collect();
            let answer = json!([causes, scores(&**plugin, view, spec, &nodes)]);
            all.insert(format!("asked {i} {j} {}", plugin.name()), answer);
        }
    }
    all
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_set_is_the_union_of_its_members(world in world(12, 12), spec in spec(), half in vec(any::<bool>(), 12)) {
        let cluster = world.cluster();
        let view = View::new(&cluster);
        let all = view.nodes().to_vec();
        let some: Vec<_> = all.iter().zip(half).filter(|(_, taken)| *taken).map(|(n, _)| *n).collect();
        for plugin in plugins() {
            for set in [&all, &some] {
                let together = filter(&*plugin, view, &spec, set);
                let alone: Vec<_> = set.iter().flat_map(|n| filter(&*plugin, view, &spec, &[*n])).collect();
                prop_assert_eq!(together, alone, "filter of {}", plugin.name());
                // PreScore depends on the feasible nodes; each of them may then be scored alone.
                let Some(value) = pre_score(&*plugin, view, &spec, &all) else { continue };
                let together = score(&*plugin, view, &spec, &value, set);
                let alone: Vec<i64> =
                    set.iter().flat_map(|n| score(&*plugin, view, &spec, &value, &[*n])).collect();
                prop_assert_eq!(together, alone, "score of {}", plugin.name());
            }
        }
    }

    #[test]
    fn the_whole_cause_has_the_filters_reasons_and_is_empty_where_the_filter_accepts(
        world in world(8, 12), spec in spec(),
    ) {
        let cluster = world.cluster();
        let view = View::new(&cluster);
        for plugin in plugins() {
            let causes = filter(&*plugin, view, &spec, view.nodes());
            let Some(whole) = whole_causes(&*plugin, view, &spec) else { continue };
            for (cause, reasons) in causes.iter().zip(&whole) {
                prop_assert_eq!(cause.is_none(), reasons.is_empty(), "{}: {:?}", plugin.name(), reasons);
                for own in cause.iter().flat_map(|cause| &cause.reasons) {
                    let is_it = |r: &NodeReason| {
                        r.reason.code == own.code && (own.subject.is_none() || own.subject == r.reason.subject)
                    };
                    prop_assert!(reasons.iter().any(is_it), "{}: {own:?} of {reasons:?}", plugin.name());
                }
            }
            let nodes = view.nodes().iter().zip(&causes);
            let refused: Vec<NodeIdx> = nodes.filter(|(_, c)| c.is_some()).map(|(n, _)| *n).collect();
            let point = plugin.filter().expect("it filters");
            let described = point.requirements(view, &spec, &refused);
            prop_assert_eq!(refused.is_empty(), described.is_empty(), "{}", plugin.name());
            for of in described {
                prop_assert!(of.nodes < of.total_nodes && !of.text.is_empty(), "{}: {of:?}", plugin.name());
                prop_assert!(of.found.len() <= 10 && of.pods.len() <= 9, "{}: {of:?}", plugin.name());
            }
            for (node, cause) in view.nodes().iter().zip(&causes) {
                let Some(cause) = cause else { continue };
                let detail = point.detail(view, &spec, cause, *node, pellucid::model::Now::default());
                prop_assert!(detail.is_none_or(|text| !text.is_empty()), "{}", plugin.name());
            }
        }
    }

    #[test]
    fn a_fixed_reason_stays_when_all_pods_have_left_that_can(world in world(8, 12), spec in spec()) {
        let full = world.cluster();
        let mut empty = world.cluster();
        for pod in world.placed.iter().filter(|pod| pod.can_leave()) {
            empty.delete_pod(&pod.key, &mut Vec::new());
        }
        for plugin in plugins() {
            let Some(before) = whole_causes(&*plugin, View::new(&full), &spec) else { continue };
            let fixed = before.iter().zip(View::new(&full).nodes()).flat_map(|(reasons, node)| {
                reasons.iter().filter(|reason| reason.is_fixed).map(move |reason| (node, reason))
            });
            for (node, reason) in fixed {
                let view = View::new(&empty);
                let at = empty.find_node(View::new(&full).name(*node)).expect("it stays");
                let cause = &filter(&*plugin, view, &spec, &[at])[0];
                prop_assert!(cause.is_some(), "{} accepts a node with {reason:?}", plugin.name());
                let Some(after) = whole_causes(&*plugin, view, &spec) else { continue };
                let of = view.nodes().iter().position(|n| *n == at).expect("it is there");
                prop_assert!(after[of].contains(reason), "{}: {reason:?} of {:?}", plugin.name(), after[of]);
            }
        }
    }

    #[test]
    fn normalised_scores_are_0_to_100(world in world(12, 12), spec in spec()) {
        let cluster = world.cluster();
        let view = View::new(&cluster);
        for plugin in plugins() {
            let Some([raw, normalised]) = scores(&*plugin, view, &spec, view.nodes()) else { continue };
            let within = normalised.iter().all(|score| (0..=100).contains(score));
            prop_assert!(within, "{}: {raw:?} became {normalised:?}", plugin.name());
        }
    }

    /// Nodes that the plugin refuses are not scored.
    #[test]
    fn functions_of_columns_give_the_scores(world in world(12, 12), spec in spec()) {
        let cluster = world.cluster();
        let view = View::new(&cluster);
        for plugin in plugins() {
            let causes = filter(&*plugin, view, &spec, view.nodes());
            let feasible = view.nodes().iter().zip(causes).filter(|(_, cause)| cause.is_none());
            let feasible: Vec<NodeIdx> = feasible.map(|(node, _)| *node).collect();
            let Some(value) = pre_score(&*plugin, view, &spec, &feasible) else { continue };
            let Some(of) = plugin.score().and_then(|score| score.by_columns(&value)) else { continue };
            let by_columns = feasible.iter().map(|n| of.score(view.columns().page(*n), n.index() % PAGE));
            let by_columns: Vec<i64> = by_columns.collect();
            prop_assert_eq!(by_columns, score(&*plugin, view, &spec, &value, &feasible), "{}", plugin.name());
        }
    }

    #[test]
    fn nodes_beyond_those_that_prefilter_names_are_refused(world in world(12, 0), spec in spec()) {
        let cluster = world.cluster();
        let view = View::new(&cluster);
        for plugin in plugins() {
            let pre = plugin.pre_filter().map(|p| p.pre_filter(view, &spec));
            let causes = filter(&*plugin, view, &spec, view.nodes());
            if let Some(PreFiltered::Ready { nodes: Some(named), .. }) = pre {
                prop_assert!(named.is_sorted());
                for (node, cause) in view.nodes().iter().zip(causes) {
                    prop_assert!(named.contains(node) || cause.is_some(), "{}", plugin.name());
                }
            }
        }
    }

    #[test]
    fn a_fork_equals_the_live_state_and_keeps_what_it_saw(
        world in world(8, 8), later in any_node(1), specs in vec(spec(), 1),
    ) {
        let mut live = world.cluster();
        let fork = live.fork();
        let before = seen(&live, &specs);
        prop_assert_eq!(&seen(&fork, &specs), &before);
        live.apply_node(Arc::new(later), &mut Vec::new());
        for pod in &world.placed {
            live.delete_pod(&pod.key, &mut Vec::new());
        }
        prop_assert_eq!(&seen(&fork, &specs), &before);
    }
}

/// A step within overlays; indices are taken modulo the number of elements.
#[derive(Clone, Debug)]
enum Step {
    Place(usize, usize, Stage),
    Release(usize),
    Stage(usize, Stage),
    Begin,
    Commit,
    Rollback,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..64usize, 0..64usize, placed_stage()).prop_map(|(p, n, s)| Step::Place(p, n, s)),
        3 => (0..64usize).prop_map(Step::Release),
        2 => (0..64usize, placed_stage()).prop_map(|(p, s)| Step::Stage(p, s)),
        2 => Just(Step::Begin),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
    ]
}

fn take(cluster: &mut Cluster, step: &Step) {
    let pods: Vec<PodId> = cluster.pods().map(|(id, _)| id).collect();
    let (Step::Place(i, ..) | Step::Release(i) | Step::Stage(i, _)) = step else { return };
    let Some(id) = pods.get(i % pods.len().max(1)).copied() else { return };
    let is_placed = cluster.pod(id).is_some_and(|r| r.stage.is_placed());
    match step {
        Step::Place(_, n, stage) if !is_placed => {
            let node = cluster.present()[n % cluster.present().len()];
            cluster.place(id, node, *stage);
        }
        Step::Release(_) if is_placed => {
            cluster.release(id);
        }
        Step::Stage(_, stage) if is_placed => cluster.set_stage(id, *stage),
        _ => {}
    }
}

fn check_undo(world: &World, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut cluster = world.cluster();
    let mut open: Vec<(Overlay, BTreeMap<String, Value>)> = Vec::new();
    let before = seen(&cluster, &[]);
    open.push((cluster.begin(), before));
    for step in steps {
        match step {
            Step::Begin => {
                let before = seen(&cluster, &[]);
                open.push((cluster.begin(), before));
            }
            // The outermost overlay is undone at the end.
            Step::Commit if open.len() > 1 => {
                if let Some((overlay, _)) = open.pop() {
                    cluster.commit(overlay);
                }
            }
            Step::Rollback if open.len() > 1 => {
                if let Some((overlay, before)) = open.pop() {
                    cluster.rollback(overlay);
                    prop_assert_eq!(seen(&cluster, &[]), before);
                }
            }
            step => take(&mut cluster, step),
        }
    }
    while let Some((overlay, before)) = open.pop() {
        cluster.rollback(overlay);
        prop_assert_eq!(seen(&cluster, &[]), before);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_undone_leaves_nothing_behind(world in world(4, 5), steps in vec(step(), 1..25)) {
        check_undo(&world, &steps)?;
    }
}
