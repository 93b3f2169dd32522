//! Topology hints: two plugins with hints about NUMA nodes, through the cycle; and what hints lead to, against a merge
//! that walks through all combinations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pellucid::cluster::{ClusterEvent, EventKinds};
use pellucid::cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid::framework::merge::merge;
use pellucid::framework::profile::Profile;
use pellucid::framework::topology::{NumaMask, NumaPolicy, NumaTopology, ResourceHints, TopologyHint};
use pellucid::framework::{
    Cause, CycleValue, Hint, Hints, NumaAffinity, Plugin, Registration, Reservation, Reserve, TopologyHints,
    View, points,
};
use pellucid::model::selector::Labels;
use pellucid::model::{Node, NodeIdx, Pod, PodSpec};
use pellucid::plugins::registry;
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid_api::reason::ReasonCode;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::cluster::{SCHEDULER, config};
use crate::common::driver::{Core, settings};
use crate::common::made::{SECOND, in_gang, node, pod};

const CPUS: &str = "Cpus";
const GPUS: &str = "Gpus";

/// What a pod requests of which `Cpus` has nothing to say, in thousandths of a core.
const QUIET: i64 = 77;

/// Prefers the NUMA nodes that the node's label with the plugin's name gives in binary. `Cpus` also knows the policy,
/// from label `policy`; every node has two NUMA nodes.
#[derive(Clone)]
struct Provider {
    name: &'static str,
    /// How often hints for node `b` were asked for.
    asked: Arc<AtomicUsize>,
}

fn label(view: View<'_>, node: NodeIdx, key: &str) -> Option<String> {
    view.labels(node)?.get(&key.into()).map(|value| value.to_string())
}

impl TopologyHints for Provider {
    fn prepare(&self, _view: View<'_>, spec: &PodSpec) -> Option<CycleValue> {
        let is_quiet = spec.requests.list.milli_cpu == QUIET;
        assert!(!is_quiet || self.knows_topologies(), "{} is asked although no hints are merged", self.name);
        (!is_quiet).then(|| Arc::new(()) as CycleValue)
    }

    fn knows_topologies(&self) -> bool {
        self.name == CPUS
    }

    fn topology(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        _value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Option<NumaTopology>, Cause> {
        let policy = label(view, node, "policy").and_then(|text| NumaPolicy::read(&text));
        let of = |policy| NumaTopology { policy, nodes: NumaMask::first(2), ..NumaTopology::default() };
        Ok(policy.filter(|_| self.name == CPUS).map(of))
    }

    fn hints(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        _value: &CycleValue,
        node: NodeIdx,
    ) -> Result<Vec<ResourceHints>, Cause> {
        if &**view.name(node) == "b" {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        let mask = label(view, node, self.name).and_then(|text| u64::from_str_radix(&text, 2).ok());
        let hint = |mask| TopologyHint { mask: Some(NumaMask(mask)), preferred: true, score: 1 };
        let hints = mask.map(|mask| vec![hint(mask)]);
        Ok(vec![ResourceHints { resource: self.name.into(), hints }])
    }
}

/// Holds the affinity, or a text where there is none.
impl Reserve for Provider {
    fn reserve(&self, _view: View<'_>, _pod: &Pod, _node: NodeIdx) -> Result<Option<Reservation>, Cause> {
        Ok(Some(Reservation::unmarked(Arc::new("no affinity"))))
    }

    fn reserve_aligned(
        &self,
        _view: View<'_>,
        _pod: &Pod,
        _node: NodeIdx,
        affinity: NumaAffinity,
    ) -> Result<Option<Reservation>, Cause> {
        Ok(Some(Reservation::unmarked(Arc::new(affinity))))
    }
}

/// Only the provider that is not named as the cause listens to events.
impl Hints for Provider {
    fn events(&self) -> EventKinds {
        if self.name == GPUS { EventKinds::NODE_LABEL } else { EventKinds::NONE }
    }

    fn hint(&self, _view: View<'_>, _pod: &Pod, _event: &ClusterEvent) -> Hint {
        Hint::Queue
    }
}

impl Plugin for Provider {
    fn name(&self) -> &'static str {
        self.name
    }
    points! { topology_hints, reserve, hints }
}

/// Returns a profile with both providers, and the counter of the first.
fn profile() -> (Profile, Arc<AtomicUsize>) {
    let provider = |name| Provider { name, asked: Arc::default() };
    let (cpus, gpus) = (provider(CPUS), provider(GPUS));
    let asked = cpus.asked.clone();
    let mut registry = registry();
    for plugin in [cpus, gpus] {
        let (name, summary) = (plugin.name, "Gives hints about NUMA nodes");
        registry.push(Box::new(Registration::without_args(name, summary, move || plugin.clone())));
    }
    let mut profile =
        pellucid::config::default(&registry).expect("the defaults are valid").profiles.remove(0);
    profile.scheduler_name = SCHEDULER.into();
    (profile, asked)
}

/// Makes a node with two NUMA nodes: its policy, and on which of them CPUs and GPUs are free.
fn numa_node(name: &str, policy: &str, cpus: &str, gpus: &str) -> Node {
    let labels = [("policy", policy), (CPUS, cpus), (GPUS, gpus)];
    Node { labels: Labels::new(labels.map(|(key, value)| (key.into(), value.into()))), ..node(name, 1000) }
}

fn core_of(nodes: &[Node]) -> Core {
    let mut core = Core::new(settings(profile().0));
    nodes.iter().for_each(|node| core.see_node(node));
    core
}

/// Returns mask and preference of the affinities that the plugins hold for a pod, in the order of their Reserve.
fn held(core: &Core, pod: &Pod) -> Vec<Option<(u64, bool)>> {
    let record = core.id(pod).and_then(|id| core.scheduler.cluster().pod(id)).expect("it is known");
    let own = record.holds.iter().filter(|hold| [CPUS, GPUS].contains(&hold.plugin));
    let affinity = own.map(|hold| hold.what.downcast_ref::<NumaAffinity>());
    affinity.map(|affinity| affinity.map(|found| (found.mask.0, found.preferred))).collect()
}

#[test]
fn disjoint_hints_refuse_a_node_under_a_strict_policy() {
    for policy in ["single-numa-node", "restricted"] {
        let mut core = core_of(&[numa_node("a", policy, "01", "10")]);
        let p = pod("p", 100);
        core.attempt(&p);
        assert_eq!(core.queued(&p), Some(QueueStage::Unschedulable), "{policy}");
        let id = core.id(&p).expect("it is known");
        let verdict = core.scheduler.verdict(id).expect("it has a verdict");
        let Outcome::Refused(refusal) = &verdict.outcome else { panic!("{verdict:?}") };
        let [group] = &refusal.groups[..] else { panic!("{refusal:?}") };
        assert_eq!(
            (group.cause.plugin, group.cause.reasons[0].code),
            (CPUS, ReasonCode::NumaTopologyMismatch)
        );
        let message = "0/1 nodes are available: 1 node(s) NUMA Topology affinity error.";
        assert!(refusal.message().starts_with(message), "{}", refusal.message());
    }
}

#[test]
fn disjoint_hints_pass_best_effort_and_the_whole_node_is_taken() {
    let mut core = core_of(&[numa_node("a", "best-effort", "01", "10")]);
    let p = pod("p", 100);
    core.place(&p);
    assert_eq!(held(&core, &p), [Some((0b11, false)); 2]);
}

#[test]
fn every_reserve_gets_the_affinity_that_was_agreed() {
    let mut core = core_of(&[numa_node("a", "Restricted", "10", "10")]);
    let p = pod("p", 100);
    core.place(&p);
    assert_eq!(held(&core, &p), [Some((0b10, true)); 2]);
}

#[test]
fn without_a_policy_nothing_is_aligned() {
    let mut core = core_of(&[numa_node("a", "none", "01", "10")]);
    let p = pod("p", 100);
    core.place(&p);
    assert_eq!(held(&core, &p), [None; 2]);
}

#[test]
fn a_provider_that_knows_no_topology_is_asked_only_beside_one_that_does() {
    let mut core = core_of(&[numa_node("a", "restricted", "01", "10")]);
    let p = pod("p", QUIET);
    core.place(&p);
    assert_eq!(held(&core, &p), [None; 2]);
}

#[test]
fn members_of_a_gang_are_aligned() {
    let nodes = [numa_node("a", "restricted", "10", "10"), numa_node("b", "restricted", "01", "10")];
    let mut core = core_of(&nodes);
    let members = ["p", "q"].map(|name| in_gang(pod(name, 100), "g", 2));
    members.iter().for_each(|member| core.see(member));
    core.run();
    for member in &members {
        assert_eq!(core.node_of(member).as_deref(), Some("a"));
        assert_eq!(held(&core, member), [Some((0b10, true)); 2]);
    }
}

#[test]
fn hints_are_kept_until_the_node_changes() {
    let (profile, asked) = profile();
    let mut core = Core::new(settings(profile));
    let asked = || asked.load(Ordering::Relaxed);
    core.see_node(&numa_node("a", "restricted", "01", "01"));
    core.see_node(&numa_node("b", "restricted", "01", "10"));
    let [p, q, r] = ["p", "q", "r"].map(|name| pod(name, 100));
    core.place(&p);
    assert_eq!((core.node_of(&p).as_deref(), asked()), (Some("a"), 1));
    core.place(&q);
    assert_eq!((core.node_of(&q).as_deref(), asked()), (Some("a"), 1), "b has not changed");
    core.see_node(&numa_node("b", "restricted", "10", "10"));
    core.place(&r);
    assert_eq!(core.node_of(&r).as_deref(), Some("b"), "b is empty");
    assert_eq!(asked(), 3, "once for the rows and once for Reserve");
    assert_eq!(held(&core, &r), [Some((0b10, true)); 2]);
}

#[test]
fn any_provider_wakes_a_pod_whose_hints_disagreed() {
    let mut core = core_of(&[numa_node("a", "single-numa-node", "01", "10")]);
    let p = pod("p", 100);
    core.attempt(&p);
    assert_eq!(core.node_of(&p), None);
    core.see_node(&numa_node("a", "single-numa-node", "01", "01"));
    core.run_after(20 * SECOND);
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
}

#[test]
fn a_search_over_all_filters_knows_of_the_hints() {
    let mut core = core_of(&[numa_node("a", "restricted", "01", "10")]);
    let p = pod("p", 100);
    core.attempt(&p);
    let (profile, id) = (profile().0, core.id(&p).expect("it is known"));
    let mut copy = core.scheduler.cluster().fork();
    let nodes = copy.present().to_vec();
    let masks = masks_of_pod_on(&mut copy, &profile, (id, &p.spec), &nodes);
    let [only] = &masks.requirements[..] else { panic!("{masks:?}") };
    assert_eq!((only.plugin, only.reason.code), (CPUS, ReasonCode::NumaTopologyMismatch));
    assert_eq!((masks.of(nodes[0]), masks.fixed_of(nodes[0])), (1, 0));
}

/// One hint of a combination: mask, preference and score.
type Choice = (Option<u64>, bool, i64);
/// What a combination comes to: its NUMA nodes, its score, and whether none of its hints names others.
type Found = (u64, i64, bool);

/// Returns the hints of a resource as they are combined: narrow ones first, and then as one counts through sets.
fn choices(topology: &NumaTopology, of: &ResourceHints) -> Vec<Choice> {
    let Some(hints) = &of.hints else { return vec![(None, true, 0)] };
    let choice = |h: &TopologyHint| (h.mask.map(|mask| mask.0), h.preferred, h.score.max(0));
    let is_single = |(mask, preferred, _): &Choice| *preferred && mask.is_none_or(|m| m.count_ones() == 1);
    let strict = topology.policy == NumaPolicy::SingleNumaNode;
    let mut made: Vec<Choice> =
        hints.iter().map(choice).filter(|choice| !strict || is_single(choice)).collect();
    let numbers = |mask: u64| NumaMask(mask).numbers().collect::<Vec<_>>();
    made.sort_by_key(|(mask, _, _)| mask.map(|mask| (mask.count_ones(), numbers(mask))));
    made
}

/// Takes a combination for the best so far as Koordinator does: a narrower one, else one that is a lower number, else one
/// with a greater score.
fn take(best: &mut Option<Found>, found: Found) {
    let is_taken = best.is_none_or(|(mask, score, _)| {
        let of = |mask: u64| (mask.count_ones(), mask);
        of(found.0) < of(mask) || found.0.count_ones() == mask.count_ones() && found.1 > score
    });
    if is_taken {
        *best = Some(found);
    }
}

/// Tries all combinations of `chosen` with one choice of each further resource, those of the first one outermost. Keeps the
/// best that is preferred, and the best of all whose hints name the same NUMA nodes.
fn walk(
    topology: &NumaTopology,
    lists: &[Vec<Choice>],
    chosen: &mut Vec<Choice>,
    best: &mut [Option<Found>; 2],
) {
    if let Some((first, rest)) = lists.split_first() {
        for choice in first {
            chosen.push(*choice);
            walk(topology, rest, chosen, best);
            chosen.pop();
        }
        return;
    }
    let named: Vec<u64> = chosen.iter().filter_map(|c| c.0).collect();
    let mask = named.iter().fold(topology.nodes.0, |mask, other| mask & other);
    if mask == 0 || named.iter().any(|other| *other != named[0]) {
        return;
    }
    let is_whole = named.iter().all(|other| *other == mask);
    let score = chosen.iter().filter(|c| c.0 == Some(mask)).map(|c| c.2).sum();
    let apart = if mask.count_ones() == 1 { topology.never_alone } else { topology.only_alone };
    if chosen.iter().all(|c| c.1) && mask & apart.0 == 0 {
        take(&mut best[0], (mask, score, is_whole));
    }
    take(&mut best[1], (mask, score, is_whole));
}

fn walked(topology: &NumaTopology, resources: &[ResourceHints]) -> Option<(u64, bool, i64)> {
    let lists: Vec<Vec<Choice>> = resources.iter().map(|of| choices(topology, of)).collect();
    let mut best = [None; 2];
    walk(topology, &lists, &mut Vec::new(), &mut best);
    let is_lax = topology.policy == NumaPolicy::BestEffort;
    let whole = |(mask, score, is_whole): Found, is_preferred: bool| {
        if is_whole || !is_lax { (mask, is_preferred, score) } else { (topology.nodes.0, false, 0) }
    };
    match best {
        [Some(preferred), _] => Some(whole(preferred, true)),
        [None, _] if !is_lax => None,
        [None, other] => Some(other.map_or((topology.nodes.0, false, 0), |found| whole(found, false))),
    }
}

fn any_hints() -> impl Strategy<Value = ResourceHints> {
    let hint = |mask, preferred, score| TopologyHint { mask, preferred, score };
    let named = (0..32u64, any::<bool>(), -1..4i64);
    let named = vec(named.prop_map(move |(mask, of, score)| hint(Some(NumaMask(mask)), of, score)), 0..6);
    let hints = prop_oneof![
        8 => named.prop_map(Some),
        1 => any::<bool>().prop_map(move |preferred| Some(vec![hint(None, preferred, 0)])),
        1 => Just(None),
    ];
    hints.prop_map(|hints| ResourceHints { resource: "cpu".into(), hints })
}

fn any_topology() -> impl Strategy<Value = NumaTopology> {
    let policies = [NumaPolicy::BestEffort, NumaPolicy::Restricted, NumaPolicy::SingleNumaNode];
    let masks = (1..16u64, 0..16u64, 0..16u64);
    let parts = (prop::sample::select(policies.to_vec()), masks, any::<bool>());
    parts.prop_map(|(policy, (nodes, only_alone, never_alone), is_free)| {
        let free = if is_free { 0 } else { u64::MAX };
        let [nodes, only_alone, never_alone] = [nodes, only_alone & free, never_alone & free].map(NumaMask);
        NumaTopology { policy, nodes, only_alone, never_alone }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..config() })]

    #[test]
    fn merging_finds_the_best_of_all_combinations(
        topology in any_topology(),
        resources in vec(any_hints(), 0..4),
    ) {
        let found = merge(&topology, &resources).map(|a| (a.mask.0, a.preferred, a.score));
        prop_assert_eq!(found, walked(&topology, &resources));
    }
}
