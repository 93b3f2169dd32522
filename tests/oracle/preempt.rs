//! Preemptions of kube-scheduler 1.36: our node and victims must be among the observed outcomes, or equal one of them
//! by every documented criterion.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::cluster::preemptions::Plan;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::effect::Effect;
use pellucid::model::object::{Budget, Namespace};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{Name, Object, Pod};
use pellucid::recording::Outcome;
use serde_json::{Value, json};

use crate::common::driver::{Core, default_profile, settings};
use crate::{lines, own_copy};

/// Number of cases in `preempt.jsonl`.
const ALL: usize = 100;

/// Sets the priority of a pod from its priority class.
fn with_priority(pod: &Value) -> Value {
    let (value, policy) = match pod["spec"]["priorityClassName"].as_str() {
        None => (0, "PreemptLowerPriority"),
        Some("n100") => (100, "Never"),
        Some(class) => (class[1..].parse().expect("p and a number"), "PreemptLowerPriority"),
    };
    let mut pod = pod.clone();
    pod["spec"]["priority"] = json!(value);
    pod["spec"]["preemptionPolicy"] = json!(policy);
    pod
}

fn pod(value: &Value) -> Arc<Pod> {
    let mut pod = Decoder::default().pod(&with_priority(value)).expect("a pod that can be read");
    // The API server fills in these fields.
    pod.scheduler_name = "default-scheduler".into();
    pod.uid = pod.key.to_string().into();
    Arc::new(pod)
}

fn name(value: &Value) -> Name {
    value.as_str().expect("a text").into()
}

fn budget(value: &Value) -> Object {
    Object::PodDisruptionBudget(Budget {
        namespace: name(&value["namespace"]),
        name: name(&value["name"]),
        selector: Some(LabelSelector::of_pairs(&[("app".into(), name(&value["app"]))])),
        allowed: value["allowed"].as_i64().expect("a number") as i32,
        ..Budget::default()
    })
}

/// Returns the namespaces of the cases.
pub(crate) fn namespaces() -> [Object; 2] {
    let namespace = |name: &str, labels: &[(&str, &str)]| {
        let own = [("kubernetes.io/metadata.name", name)];
        let labels = labels.iter().chain(&own).map(|(k, v)| ((*k).into(), (*v).into()));
        Object::Namespace(Namespace { name: name.into(), labels: Labels::new(labels) })
    };
    [namespace("default", &[]), namespace("other", &[("team", "x")])]
}

/// Makes the cluster of a case, with the target pending.
fn core(case: &Value) -> Core {
    let mut core = Core::new(settings(default_profile("default-scheduler")));
    for namespace in namespaces() {
        core.apply(Input::ObjectApplied(Arc::new(namespace)));
    }
    for node in case["nodes"].as_array().expect("nodes") {
        core.apply(Input::NodeApplied(Arc::new(
            Decoder::default().node(node).expect("a node that can be read"),
        )));
    }
    for bound in case["pods"].as_array().expect("pods") {
        core.apply(Input::PodApplied(pod(bound)));
    }
    for value in case["budgets"].as_array().into_iter().flatten() {
        core.apply(Input::ObjectApplied(Arc::new(budget(value))));
    }
    core.apply(Input::PodApplied(pod(&case["target"])));
    core
}

/// Our outcome: the node, the victims and the plan, or the message.
struct Came {
    node: Option<String>,
    victims: BTreeSet<String>,
    message: String,
    plan: Option<Arc<Plan>>,
}

fn run(case: &Value) -> Came {
    let mut core = core(case);
    let step = core.step().expect("the target waits for us");
    let mut came = Came { node: None, victims: BTreeSet::new(), message: String::new(), plan: None };
    match &step.verdict.outcome {
        Outcome::Placed(_) => came.node = core.scheduler.chosen(&step.verdict).map(|node| node.to_string()),
        Outcome::Refused(refusal) => came.message = refusal.message().to_string(),
        Outcome::Gated(_) => panic!("no case has gates"),
    }
    came.plan = step.verdict.plan.clone();
    let effects = core.scheduler.take_effects();
    let victims =
        effects.into_iter().filter_map(|e| if let Effect::Evict(e) = e { Some(e.victim) } else { None });
    for victim in victims {
        came.victims.insert(victim.key.name.to_string());
        core.apply(Input::PodDeleted(victim.key));
    }
    if !came.victims.is_empty() {
        let step = core.step().expect("with its victims gone the target is tried at once");
        let Some(node) = core.scheduler.chosen(&step.verdict) else { panic!("{:?}", step.verdict) };
        came.node = Some(node.to_string());
        assert!(core.scheduler.cluster().nominator().is_empty());
    }
    came
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the cost of an outcome by the criteria that do not depend on an arbitrary order, computed from the case
/// itself: budget violations, highest priority of a victim, sum of priorities, number of victims. (No pod of the
/// cases has a start time, so the fifth criterion is always equal.)
fn cost(case: &Value, victims: &BTreeSet<String>) -> (i64, i64, i64, usize) {
    let pods = case["pods"].as_array().expect("pods").iter();
    let victims: Vec<Value> = pods
        .filter(|p| p["metadata"]["name"].as_str().is_some_and(|name| victims.contains(name)))
        .map(with_priority)
        .collect();
    let priority = |pod: &Value| pod["spec"]["priority"].as_i64().expect("a number");
    let beyond = |budget: &Value| {
        let meta = |pod: &Value| pod["metadata"].clone();
        let protected = victims
            .iter()
            .map(meta)
            .filter(|m| m["namespace"] == budget["namespace"] && m["labels"]["app"] == budget["app"]);
        (protected.count() as i64 - budget["allowed"].as_i64().expect("a number")).max(0)
    };
    (
        case["budgets"].as_array().into_iter().flatten().map(beyond).sum(),
        victims.iter().map(priority).max().unwrap_or(i64::MIN),
        victims.iter().map(|v| priority(v) + (1 << 31)).sum(),
        victims.len(),
    )
}

/// Returns whether our choice equals an observed one by every criterion. If the nodes differ, our search must also
/// have found the observed node.
fn is_equal_by_criteria(case: &Value, came: &Came, observed: &Value) -> bool {
    let (Some(plan), Some(node)) = (&came.plan, &came.node) else { return false };
    let is_known = observed["node"] == **node || plan.candidates.iter().any(|c| observed["node"] == *c.name);
    is_known && cost(case, &came.victims) == cost(case, &names(&observed["victims"]))
}

/// Compares one case. Returns whether our outcome itself was observed.
fn check(case: &Value) -> bool {
    let (id, result, came) = (&case["id"], &case["result"], run(case));
    let observed = result["observed"].as_array().expect("outcomes");
    let is_same = |o: &&Value| match o["message"].as_str() {
        Some(message) => {
            came.node.is_none() && came.message == message.replace("no new claims to deallocate, ", "")
        }
        None => came.node.as_deref() == o["node"].as_str() && came.victims == names(&o["victims"]),
    };
    if observed.iter().any(|o| is_same(&o)) {
        return true;
    }
    assert!(
        observed.iter().any(|o| is_equal_by_criteria(case, &came, o)),
        "{id}: {:?} on {:?} ({}) is none of {observed:#?}\n{:#?}",
        came.victims,
        came.node,
        came.message,
        came.plan
    );
    false
}

#[test]
fn victims_agree_with_kube_scheduler() {
    let cases = lines("preempt.jsonl");
    let observed = cases.iter().filter(|case| check(case)).count();
    println!("{} cases: {observed} observed outcomes, the others equal by every criterion", cases.len());
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
    }
}
