//! Writes of plugins: a pod that waits at Permit, is written about before its Binding and after it, and what a plugin's
//! state writes by itself.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::{Input, Stage};
use pellucid::framework::plugin::{Plugin, PreBind, PreBound};
use pellucid::framework::{CycleValue, View, points};
use pellucid::model::effect::{
    BindOutcome, ObjectOrder, ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome,
};
use pellucid::model::{NodeIdx, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid_api::reason::ReasonCode;
use serde_json::json;

use crate::common::cluster::SCHEDULER;
use crate::common::driver::{Core, default_profile, settings};
use crate::common::herald::{Herald, enable, seen};
use crate::common::made::{SECOND, in_gang, node, on, pod};
use crate::common::reads::{ask, list, text};

/// Makes a core with these plugins beside the default ones, and node `a`.
fn core(plugins: Vec<Arc<dyn Plugin>>) -> Core {
    let mut profile = default_profile(SCHEDULER);
    plugins.into_iter().for_each(|plugin| enable(&mut profile, plugin));
    let mut core = Core::new(settings(profile));
    core.see_node(&node("a", 1000));
    core
}

/// Makes a core whose pods wait at Permit for this long, and at most for ten seconds.
fn heralding(pause: Duration, fits: fn(&Pod) -> bool) -> Core {
    core(vec![Arc::new(Herald { fits, pause, patience: 10 * SECOND })])
}

/// Shows the notice of a pod, as the server has it.
fn announce(core: &mut Core, pod: &Pod) {
    let metadata = json!({"namespace": "ns", "name": &*pod.uid, "resourceVersion": "1"});
    let notice = json!({"metadata": metadata, "spec": {"node": "a"}});
    core.apply(Input::CustomApplied(seen(&notice)));
}

fn shown(orders: &[ObjectOrder]) -> Vec<String> {
    orders.iter().map(|order| format!("{}: {}", order.plugin, order.write)).collect()
}

/// Returns plugin, code and message of the last refusal of a pod.
fn refusal(core: &Core, pod: &Pod) -> (&'static str, ReasonCode, String) {
    let id = core.id(pod).expect("it is there");
    let Some(Outcome::Refused(refusal)) = core.scheduler.verdict(id).map(|v| v.outcome) else {
        panic!("it is refused")
    };
    let cause = refusal.pod_cause.as_ref().expect("the pod as a whole");
    (cause.plugin, cause.reasons[0].code, refusal.message().to_string())
}

#[test]
fn a_pod_waits_at_permit_and_is_written_about_before_its_binding_and_once_after_it() {
    let mut core = heralding(SECOND, |_| true);
    let p = pod("p", 100);
    core.attempt(&p);
    assert_eq!((core.node_of(&p).as_deref(), core.stage(&p)), (Some("a"), Some(Stage::Waiting)));
    assert_eq!(core.scheduler.next_deadline(), Some(SECOND), "the plugin's own");
    core.see_node(&node("b", 1000));
    assert_eq!((core.stage(&p), shown(&core.ordered().writes).len()), (Some(Stage::Waiting), 0));

    core.wait(SECOND);
    assert_eq!(core.stage(&p), Some(Stage::PreBinding));
    let writes = core.ordered().writes;
    assert_eq!(shown(&writes), ["Herald: create notices ns/uid-p"]);
    assert_eq!(writes[0].pod.as_ref().map(|pod| &*pod.uid), Some("uid-p"));
    core.settle(&writes[0], WriteOutcome::Written);
    let ordered = core.ordered();
    assert!(ordered.writes.is_empty() && ordered.bindings.is_empty(), "the notice was not seen yet");
    announce(&mut core, &p);
    let binding = core.ordered().bindings.remove(0);

    core.report(&binding, BindOutcome::Bound);
    let writes = core.ordered().writes;
    assert_eq!(shown(&writes), [r#"Herald: patch notices ns/uid-p {"spec":{"bound":true}}"#]);
    core.see(&on(&p, "a"));
    assert!(core.ordered().writes.is_empty(), "the watch says it again");
    core.settle(&writes[0], WriteOutcome::Refused { status: 404, message: "gone".into() });
    assert_eq!((core.scheduler.n_in_flight(), core.scheduler.n_unsettled()), (0, 0));
}

#[test]
fn a_binding_that_the_watch_confirms_first_runs_post_bind() {
    let mut core = heralding(Duration::ZERO, |_| true);
    let p = pod("p", 100);
    announce(&mut core, &p);
    let binding = core.place(&p);
    core.see(&on(&p, "a"));
    assert_eq!(core.ordered().writes.len(), 1);
    core.report(&binding, BindOutcome::Bound);
    assert_eq!(core.ordered().writes.len(), 0);
}

#[test]
fn people_read_for_whom_a_pod_waits_at_permit_and_until_when() {
    let mut core = heralding(SECOND, |_| true);
    core.attempt(&pod("p", 100));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    let want = "It holds the place and waits at Permit for Herald, until 1970-01-01T00:00:10.000Z.";
    assert!(text(&body, "/summary").ends_with(want), "{body:#}");
    let pending = ask(&mut core, "/apis/v1/summary/pending?by=code,plugin");
    let row = &list(&pending, "/rows")[0];
    assert_eq!((text(row, "/code"), text(row, "/plugin")), ("WaitingAtPermit", "Herald"));
    core.wait(SECOND);
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    assert!(!text(&body, "/summary").contains("Permit"), "{body:#}");
}

#[test]
fn a_pod_that_waits_too_long_at_permit_loses_its_place_and_is_tried_again() {
    let mut core = heralding(60 * SECOND, |_| true);
    let p = pod("p", 100);
    core.attempt(&p);
    assert_eq!(core.scheduler.next_deadline(), Some(10 * SECOND));
    core.ordered();
    core.wait(10 * SECOND);
    assert_eq!((core.node_of(&p), core.queued(&p)), (None, Some(QueueStage::ErrorBackoff)));
    let message = "waited too long at Permit for Herald".to_owned();
    assert_eq!(refusal(&core, &p), ("Herald", ReasonCode::PermitTimedOut, message));
    assert_eq!(core.told().0, ["Unschedulable"]);
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (0, 0));
    core.run_after(20 * SECOND);
    assert_eq!(core.stage(&p), Some(Stage::Waiting));
}

#[test]
fn a_quorum_waits_for_the_member_that_waits_at_permit() {
    let mut core = heralding(SECOND, |pod| &*pod.key.name == "m1");
    let members = ["m1", "m2"].map(|name| in_gang(pod(name, 100), "g", 2));
    members.iter().for_each(|member| core.see(member));
    core.run();
    assert!(members.iter().all(|member| core.stage(member) == Some(Stage::PreBinding)));
    announce(&mut core, &members[0]);
    assert!(core.ordered().bindings.is_empty());
    core.wait(SECOND);
    assert_eq!(core.ordered().bindings.len(), 2);
}

#[test]
fn a_pod_that_goes_while_it_waits_at_permit_leaves_nothing_behind() {
    let mut core = heralding(SECOND, |_| true);
    let p = pod("p", 100);
    core.attempt(&p);
    core.delete(&p);
    core.wait(SECOND);
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (0, 0));
    assert!(core.scheduler.publish(core.now).permit_waits.is_empty());
}

/// Writes one annotation of the node before a pod is bound.
struct Marker {
    name: &'static str,
    key: &'static str,
    value: &'static str,
    at_most: Duration,
}

impl Plugin for Marker {
    fn name(&self) -> &'static str {
        self.name
    }
    points! { pre_bind }
}

impl PreBind for Marker {
    fn pre_bind(&self, view: View<'_>, _: &Pod, node: NodeIdx, _: Option<&CycleValue>) -> PreBound {
        let name = view.name(node).clone();
        let write = ObjectWrite::Patch {
            object: ObjectRef { group: "", version: "v1", plural: "nodes", namespace: None, name },
            part: ObjectPart::Main,
            precondition: Precondition::default(),
            patch: Arc::new(json!({"metadata": {"annotations": {self.key: self.value}}})),
        };
        PreBound::Wait { writes: vec![write], at_most: self.at_most }
    }
}

/// Makes a core with two plugins that each set an annotation of the node.
fn marking(keys: [&'static str; 2]) -> Core {
    let [first, second] = keys;
    core(vec![
        Arc::new(Marker { name: "First", key: first, value: "1", at_most: 30 * SECOND }),
        Arc::new(Marker { name: "Second", key: second, value: "2", at_most: 5 * SECOND }),
    ])
}

#[test]
fn patches_of_two_plugins_are_one_request_and_the_shorter_wait_counts() {
    let mut core = marking(["a", "b"]);
    let p = pod("p", 100);
    core.attempt(&p);
    let writes = core.ordered().writes;
    assert_eq!(shown(&writes), [r#"First: patch nodes a {"metadata":{"annotations":{"a":"1","b":"2"}}}"#]);
    core.settle(&writes[0], WriteOutcome::Written);
    assert!(core.ordered().writes.is_empty(), "each write is ordered once");
    assert_eq!(core.scheduler.next_deadline(), Some(5 * SECOND));
    core.wait(5 * SECOND);
    let message = "running PreBind failed: it took too long".to_owned();
    assert_eq!(refusal(&core, &p), ("Second", ReasonCode::PreBindFailed, message));
}

#[test]
fn two_plugins_that_set_one_field_differently_are_both_named() {
    let mut core = marking(["example.com/mark", "example.com/mark"]);
    let p = pod("p", 100);
    core.attempt(&p);
    assert_eq!((core.node_of(&p), core.ordered().writes.len()), (None, 0));
    let (_, code, message) = refusal(&core, &p);
    assert_eq!(code, ReasonCode::PreBindFailed);
    let both = "First and Second set metadata.annotations[example.com/mark] of nodes a differently";
    assert_eq!(message, format!("running PreBind failed: {both}"));
}

#[test]
fn a_plugins_state_writes_what_is_due_and_hears_what_came_of_it() {
    let mut core = heralding(SECOND, |_| false);
    core.see(&on(&pod("p", 100), "a"));
    let due = |core: &mut Core| {
        core.scheduler.order_due_writes(core.now);
        core.ordered().writes
    };
    let create = due(&mut core);
    assert_eq!((shown(&create), &create[0].pod), (vec!["Herald: create notices ns/summary".into()], &None));
    assert!(due(&mut core).is_empty(), "it is ordered once");
    core.settle(&create[0], WriteOutcome::AlreadyExists);
    let patch = due(&mut core);
    assert_eq!(shown(&patch), [r#"Herald: patch notices ns/summary {"spec":{"pods":1}}"#]);
    core.settle(&patch[0], WriteOutcome::Refused { status: 500, message: "etcd is away".into() });
    assert!(due(&mut core).is_empty(), "it rests");
    core.wait(SECOND);
    let again = due(&mut core);
    assert_eq!(shown(&again), shown(&patch));
    core.settle(&again[0], WriteOutcome::Written);
    assert!(due(&mut core).is_empty());
    core.see(&on(&pod("q", 100), "a"));
    assert_eq!(due(&mut core).len(), 1);
}

#[test]
fn in_shadow_mode_a_plugins_state_writes_nothing() {
    let mut profile = default_profile(SCHEDULER);
    let herald = Herald { fits: |_| true, pause: SECOND, patience: SECOND };
    enable(&mut profile, Arc::new(herald));
    let mut settings = settings(profile);
    settings.shadow_of = Some("another".into());
    let mut core = Core::new(settings);
    core.scheduler.order_due_writes(core.now);
    assert!(core.ordered().writes.is_empty());
}
