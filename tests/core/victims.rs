//! A search for victims by rules that are not DefaultPreemption's: a plugin evicts labelled pods of any priority, and
//! only where fewer than a number of pods are placed afterwards.

use std::sync::Arc;

use pellucid::cluster::derived::Placed;
use pellucid::cluster::preemptions::Plan;
use pellucid::cluster::{DerivedState, PodRecord};
use pellucid::config;
use pellucid::cycle::scheduler::Settings;
use pellucid::framework::post_filter::Preemptor;
use pellucid::framework::victim_search::{self, VictimRules};
use pellucid::framework::{
    Cause, Code, Evaluator, Plugin, PostFilter, PostFiltered, Reason, Registration, View,
};
use pellucid::model::gang::{GangMode, GangTerms};
use pellucid::model::object::Budget;
use pellucid::model::selector::LabelSelector;
use pellucid::model::{GangKey, Name, NodeIdx, Object, Pod};
use pellucid::plugins::registry;
use pellucid::recording::Outcome;
use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};

use crate::common::cluster::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::common::made::{SECOND, in_gang, labelled, mark, node, on, ranked};

const NAME: &str = "FewPods";
const TOO_MANY: &str = "node(s) left too many pods";

static TOO_MANY_PODS: PluginReason = PluginReason {
    code: "TooManyPodsLeft",
    plugin: NAME,
    message: TOO_MANY,
    resolver: Resolver::SchedulerAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "Too many pods are placed even with the victims gone.",
    remedy: "Allow more pods.",
    never: None,
    example: Example { subject: "", message: TOO_MANY, situation: "Three pods are placed, and two may be." },
};

/// Number of placed pods.
#[derive(Clone, Default)]
struct Total(usize);

impl DerivedState for Total {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }
    fn pod_added(&mut self, _: &Placed<'_>) {
        self.0 += 1;
    }
    fn pod_removed(&mut self, _: &Placed<'_>) {
        self.0 -= 1;
    }
}

/// Evicts pods with the label `app: spare`, until at most `most` pods are placed with the preemptor.
struct FewPods {
    most: usize,
}

impl Plugin for FewPods {
    fn name(&self) -> &'static str {
        NAME
    }
    fn post_filter(&self) -> Option<&dyn PostFilter> {
        Some(self)
    }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Total::default())]
    }
}

impl PostFilter for FewPods {
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered {
        victim_search::post_filter(self, evaluator)
    }
    fn condition(&self, view: View<'_>, _: &Preemptor<'_>, _: NodeIdx) -> Result<(), Cause> {
        let total = view.state::<Total>().map_or(0, |total| total.0);
        let too_many = Reason::of(ReasonCode::Plugin(&TOO_MANY_PODS));
        if total < self.most { Ok(()) } else { Err(Cause::new(NAME, Code::Unschedulable, too_many)) }
    }
}

impl VictimRules for FewPods {
    fn may_be_victim(&self, _: View<'_>, _: &Preemptor<'_>, victim: &PodRecord) -> bool {
        LabelSelector::of_pairs(&[("app".into(), "spare".into())]).matches(&victim.pod.labels)
    }
}

/// Makes a core with these nodes in which the plugin is alone at PostFilter, or comes after DefaultPreemption.
fn core_of(most: usize, is_alone: bool, nodes: &[(&str, i64)]) -> Core {
    let mut registry = registry();
    let few_pods = Registration::without_args(NAME, "Evicts spare pods", move || FewPods { most });
    registry.push(Box::new(few_pods.with_reasons([&TOO_MANY_PODS])));
    let mut profile = config::default(&registry).expect("the defaults are valid").profiles.remove(0);
    profile.scheduler_name = SCHEDULER.into();
    profile.post_filter.retain(|enabled| !is_alone || enabled.plugin.name() == NAME);
    assert_eq!(profile.post_filter.len(), if is_alone { 1 } else { 2 });
    let settings = Settings { registry: Arc::new(registry), ..settings(profile) };
    let mut core = Core::new(settings);
    nodes.iter().for_each(|(name, milli_cpu)| core.see_node(&node(name, *milli_cpu)));
    core
}

fn spare(name: &str, milli_cpu: i64, priority: i32) -> Pod {
    labelled(ranked(name, milli_cpu, priority), "app", "spare")
}

fn plan_of(core: &Core, pod: &Pod) -> Arc<Plan> {
    let id = core.id(pod).expect("it waits");
    core.scheduler.verdict(id).expect("it was tried").plan.clone().expect("victims were searched for")
}

fn note(core: &Core, pod: &Pod) -> String {
    let id = core.id(pod).expect("it waits");
    match &core.scheduler.verdict(id).expect("it was tried").outcome {
        Outcome::Refused(refusal) => refusal.post_filter.as_deref().unwrap_or_default().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// Returns why nodes are no candidates: the plugin, the message and how many.
fn rejected(plan: &Plan) -> Vec<(&'static str, String, usize)> {
    plan.rejected.iter().map(|r| (r.cause.plugin, r.cause.message(), r.count)).collect()
}

#[test]
fn the_rules_say_who_may_be_a_victim_whatever_its_priority() {
    let mut core = core_of(100, true, &[("a", 1000)]);
    core.see(&on(&ranked("kept", 400, 0), "a"));
    core.see(&on(&spare("spare", 400, 10), "a"));
    let pod = ranked("pod", 500, 5);
    core.see(&pod);
    assert_eq!(core.plan().victims(), ["spare"]);
    assert_eq!(core.nominated(&pod).as_deref(), Some("a"));
    assert_eq!(plan_of(&core, &pod).plugin, NAME);
    core.delete(&spare("spare", 400, 10));
    core.run();
    assert_eq!(core.node_of(&pod).as_deref(), Some("a"));
}

#[test]
fn nodes_without_such_pods_are_rejected_by_the_plugin_that_searched() {
    let mut core = core_of(100, true, &[("a", 1000), ("b", 100)]);
    core.see(&on(&ranked("kept", 800, 0), "a"));
    let pod = ranked("pod", 500, 5);
    core.see(&pod);
    assert!(core.plan().evictions.is_empty());
    let none = "No preemption victims found for incoming pod".to_owned();
    let unhelpful = "Preemption is not helpful for scheduling".to_owned();
    assert_eq!(rejected(&plan_of(&core, &pod)), [(NAME, unhelpful, 1), (NAME, none, 1)]);
}

#[test]
fn victims_go_until_the_condition_holds_too() {
    let mut core = core_of(3, true, &[("a", 1000)]);
    for (name, priority) in [("x", 1), ("y", 2), ("z", 3)] {
        core.see(&on(&spare(name, 300, priority), "a"));
    }
    core.see(&on(&ranked("kept", 50, 0), "a"));
    let pod = ranked("pod", 200, 5);
    core.see(&pod);
    // The filters pass without one of them, but only three pods may be placed.
    assert_eq!(core.plan().victims(), ["x", "y"], "the more important is reprieved");
    core.delete(&spare("x", 300, 1));
    core.delete(&spare("y", 300, 2));
    core.run();
    assert_eq!(core.node_of(&pod).as_deref(), Some("a"));
}

#[test]
fn budgets_are_honoured_under_any_rules() {
    let mut core = core_of(2, true, &[("a", 1000)]);
    core.see_object(Object::PodDisruptionBudget(Budget {
        namespace: "ns".into(),
        name: "spare".into(),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), "spare".into())])),
        allowed: 1,
        ..Budget::default()
    }));
    core.see(&on(&spare("first", 500, 3), "a"));
    core.see(&on(&spare("last", 500, 1), "a"));
    let pod = ranked("pod", 500, 0);
    core.see(&pod);
    // The budget allows the eviction of the more important; the other would be one too many.
    assert_eq!(core.plan().victims(), ["first"]);
    assert_eq!(plan_of(&core, &pod).candidates[0].cost.budget_violations, 0);
}

#[test]
fn nobody_goes_when_the_condition_fails_even_so() {
    let mut core = core_of(2, true, &[("a", 1000), ("b", 1000)]);
    core.see(&on(&spare("spare", 800, 0), "a"));
    for name in ["kept", "kept-too"] {
        core.see(&on(&ranked(name, 400, 0), "b"));
    }
    let pod = ranked("pod", 500, 5);
    core.see(&pod);
    assert!(core.plan().evictions.is_empty());
    let mut why = rejected(&plan_of(&core, &pod));
    why.sort();
    let none = "No preemption victims found for incoming pod";
    assert_eq!(why, [(NAME, none.to_owned(), 1), (NAME, TOO_MANY.to_owned(), 1)]);
    assert_eq!(note(&core, &pod), format!("0/2 nodes are available: 1 {none}, 1 {TOO_MANY}."));
}

#[test]
fn a_pod_awaits_its_victims_even_if_the_rules_would_spare_them_by_now() {
    let mut core = core_of(100, false, &[("a", 1000), ("b", 1000)]);
    core.see(&on(&spare("spare", 800, 10), "a"));
    core.see(&on(&ranked("other", 800, 10), "b"));
    let pod = ranked("pod", 500, 5);
    core.see(&pod);
    assert_eq!(core.plan().victims(), ["spare"]);
    // The victim loses its label while it terminates, and a pod that both plugins may evict comes to the other node.
    core.see(&Pod { deleting: true, is_preempted: true, ..on(&ranked("spare", 800, 10), "a") });
    core.delete(&ranked("other", 800, 10));
    core.see(&on(&spare("low", 800, 0), "b"));
    core.wait(20 * SECOND);
    core.run_after(300 * SECOND);
    assert!(core.ordered().evictions.is_empty());
    assert_eq!(note(&core, &pod), ReasonCode::PreemptionUnderWay.message(""));
    assert_eq!(core.nominated(&pod).as_deref(), Some("a"));
}

#[test]
fn each_of_two_plugins_searches_for_itself() {
    let mut core = core_of(100, false, &[("a", 1000), ("b", 1000)]);
    core.see(&on(&spare("spare", 800, 10), "a"));
    core.see(&on(&ranked("low", 800, 0), "b"));
    let (first, second) = (ranked("first", 600, 5), ranked("second", 600, 5));
    core.see(&first);
    assert_eq!(core.plan().victims(), ["low"]);
    assert_eq!(plan_of(&core, &first).plugin, "DefaultPreemption");
    core.see(&second);
    assert_eq!(core.plan().victims(), ["spare"], "DefaultPreemption finds nobody");
    assert_eq!(plan_of(&core, &second).plugin, NAME);
}

#[test]
fn a_placement_that_is_taken_back_names_the_plugin() {
    let mut core = core_of(100, true, &[("a", 1000), ("b", 1000)]);
    let (mode, wait) = (Some(GangMode::NonStrict), Some(600 * SECOND));
    let terms = GangTerms { min: Some(3), mode, wait, ..GangTerms::default() };
    let member = |i: usize| {
        let mark = mark(GangKey::new("ns", "waiting"), terms.clone());
        Pod { gang: Some(mark.into()), ..spare(&format!("waiting-{i}"), 800, 10) }
    };
    let waiting: Vec<Pod> = (0..3).map(member).collect();
    waiting.iter().for_each(|pod| core.see(pod));
    core.run();
    assert_eq!(waiting.iter().filter(|pod| core.node_of(pod).is_some()).count(), 2, "two wait at Permit");
    let pod = ranked("pod", 500, 5);
    core.see(&pod);
    assert!(core.plan().evictions.is_empty(), "nothing is deleted");
    assert!(core.node_of(&pod).is_some());
    let refused_by = |pod: &Pod| match &core.scheduler.verdict(core.id(pod)?)?.outcome {
        Outcome::Refused(refusal) => Some(refusal.pod_cause.as_ref()?.plugin),
        _ => None,
    };
    assert!(waiting.iter().filter_map(refused_by).any(|plugin| plugin == NAME));
}

#[test]
fn a_gang_evicts_pods_of_higher_priority_and_each_plugin_remembers_for_itself() {
    let mut core = core_of(100, false, &[("a", 1000), ("b", 1000)]);
    for name in ["a", "b"] {
        core.see(&on(&spare(&format!("spare-{name}"), 800, 10), name));
        // DefaultPreemption tries these, and remembers that they do not help.
        core.see(&on(&ranked(&format!("low-{name}"), 10, -1), name));
    }
    let gang: Vec<Pod> = (0..2).map(|i| in_gang(ranked(&format!("g-{i}"), 800, 0), "g", 2)).collect();
    gang.iter().for_each(|pod| core.see(pod));
    assert_eq!(core.plan().victims(), ["spare-a", "spare-b"]);
    let mut nominated: Vec<_> = gang.iter().filter_map(|pod| core.nominated(pod)).collect();
    nominated.sort();
    assert_eq!(nominated, ["a", "b"]);
    for name in ["a", "b"] {
        core.delete(&spare(&format!("spare-{name}"), 800, 10));
    }
    core.run();
    assert!(gang.iter().all(|pod| core.node_of(pod).is_some()));
}

#[test]
fn a_gang_spares_no_victim_that_the_condition_needs() {
    let mut core = core_of(3, true, &[("a", 2000)]);
    for name in ["v1", "v2", "v3", "v4"] {
        core.see(&on(&spare(name, 500, 0), "a"));
    }
    // Both members fit beside three of the pods, but the first may be placed only beside two.
    let gang: Vec<Pod> = (0..2).map(|i| in_gang(ranked(&format!("g-{i}"), 250, 5), "g", 2)).collect();
    gang.iter().for_each(|pod| core.see(pod));
    assert_eq!(core.plan().victims(), ["v1", "v2"]);
}

#[test]
fn rules_that_change_nothing_decide_as_default_preemption() {
    let searched = |mut core: Core| {
        for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
            core.see_node(&node(name, 1000));
            core.see(&on(&spare(&format!("low-{i}"), 500, i as i32), name));
            core.see(&on(&spare(&format!("more-{i}"), 400, 1), name));
        }
        let pod = ranked("pod", 600, 5);
        core.see(&pod);
        let victims: Vec<String> = core.plan().victims().into_iter().map(str::to_owned).collect();
        let plan = plan_of(&core, &pod);
        let tried: Vec<(Name, usize)> =
            plan.candidates.iter().map(|c| (c.name.clone(), c.victims.len())).collect();
        (victims, tried, plan.decided_by)
    };
    let usual = searched(Core::new(settings(default_profile(SCHEDULER))));
    assert_eq!(searched(core_of(100, true, &[])), usual);
}
