//! A pod that is not pending: every read says the same of it, in the same words.

use pellucid::cluster::Input;
use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::framework::endpoint::ReadError;
use pellucid::model::Pod;
use pellucid::model::pod::PodPhase;
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, on, pod, unreadable};
use crate::common::reads::{ask, code_of, text, try_ask};

/// The reads about one pod that say in `notPending` why it is not pending, or fail with it.
const READS: [&str; 6] = ["", "/suggestions", "/nearest", "/feasibility", "/preemption", "/wakeups"];

fn explain(core: &mut Core, name: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{name}"))
}

/// Returns code and message of what a read says of a pod that is not pending.
fn said(answer: Result<Value, ReadError>) -> (String, String) {
    match answer {
        Ok(body) => {
            (text(&body, "/notPending/code").to_owned(), text(&body, "/notPending/message").to_owned())
        }
        Err(ReadError::NotFound { code, message }) => (code.to_owned(), message),
        Err(other) => panic!("{other:?}"),
    }
}

/// Checks that every read says the same of a pod, and returns code and message.
fn same_words(core: &mut Core, name: &str) -> (String, String) {
    let all: Vec<_> = READS.iter().map(|end| format!("/apis/v1/explain/pods/ns/{name}{end}")).collect();
    let (code, message) = said(try_ask(core, &all[0]));
    for target in &all[1..] {
        assert_eq!(said(try_ask(core, target)), (code.clone(), message.clone()), "{target}");
    }
    assert_eq!(said(try_ask(core, &format!("{}/evictions", all[0]))).1, message);
    let (_, of_history) = said(try_ask(core, &format!("/apis/v1/history/pods/ns/{name}")));
    assert!(of_history.ends_with(&message), "{of_history}");
    let Err(ReadError::NotFound { code: "NotInQueue", message: of_queue }) =
        try_ask(core, &format!("/apis/v1/queue?position=ns/{name}"))
    else {
        panic!("{name} is in the queue");
    };
    assert!(of_queue.ends_with(&message), "{of_queue}");
    let key = pod(name, 0).key;
    let question = Question { pods: vec![key], ..Question::default() };
    let snapshot = core.scheduler.publish(core.now);
    let included = simulate(&snapshot, &question, core.now).map(|body| json!(body));
    assert_eq!(said(included), (code.clone(), format!("include: {message}")));
    (code, message)
}

fn check(core: &mut Core, name: &str, code: &str, words: &str) {
    assert_eq!(same_words(core, name), (code.to_owned(), words.to_owned()));
}

#[test]
fn a_placed_pod_says_where_when_why_and_what_woke_it() {
    let mut core = core_with(&[node("a", 1000)]);
    let (old, p) = (pod("old", 900), pod("p", 800));
    core.see(&on(&old, "a"));
    core.attempt(&p);
    assert_eq!(explain(&mut core, "p").get("notPending"), None, "it is pending");
    core.wait(3 * SECOND);
    core.delete(&old);
    core.run();
    let began = "Being placed on a at 1970-01-01T00:00:03.000Z: the only feasible node. \
                 Pod/Delete of ns/old at 1970-01-01T00:00:03.000Z had woken it.";
    check(&mut core, "p", "PodPlaced", began);
    core.see(&on(&p, "a"));
    core.wait(90_000 * SECOND);
    check(&mut core, "p", "PodPlaced", &began.replace("Being placed", "Placed"));
    let body = explain(&mut core, "p");
    assert_eq!(
        (text(&body, "/verdict"), text(&body, "/summary")),
        ("placed", text(&body, "/notPending/message"))
    );
    assert_eq!(text(&body, "/notPending/wokenBy/object"), "ns/old");
    assert_eq!(text(&body, "/notPending/history"), "/apis/v1/history/pods/ns/p");
}

#[test]
fn a_pod_that_others_placed_says_so() {
    let mut core = core_with(&[node("a", 4000)]);
    core.see(&on(&pod("mine", 100), "a"));
    core.see(&Pod { scheduler_name: "other".into(), scheduled_at: Some(60), ..on(&pod("theirs", 100), "a") });
    let mine =
        "On a; this process did not place it there: it was bound before the process began, or by others.";
    assert_eq!(
        said(try_ask(&mut core, "/apis/v1/explain/pods/ns/mine")),
        ("PodPlacedByOthers".into(), mine.into())
    );
    let theirs = "On a since 1970-01-01T00:01:00.000Z; it is of scheduler other, and this scheduler did not place it there.";
    check(&mut core, "theirs", "PodPlacedByOthers", theirs);
    let body = explain(&mut core, "theirs");
    assert_eq!((text(&body, "/verdict"), text(&body, "/summary")), ("foreign", theirs));
}

#[test]
fn an_ended_pod_says_how_and_when_and_points_to_its_history() {
    let mut core = core_with(&[node("a", 4000)]);
    let (fine, broken) = (pod("fine", 100), pod("broken", 100));
    for p in [&fine, &broken] {
        core.place(p);
        core.see(&on(p, "a"));
    }
    core.wait(5 * SECOND);
    core.see(&Pod { phase: PodPhase::Succeeded, ..on(&fine, "a") });
    let words = "pod ns/fine has ended: it succeeded on a at 1970-01-01T00:00:05.000Z; /apis/v1/history/pods/ns/fine \
                 has its history";
    check(&mut core, "fine", "PodEnded", words);
    let body = explain(&mut core, "fine");
    assert_eq!((text(&body, "/verdict"), text(&body, "/summary")), ("ended", words));
    assert_eq!(text(&body, "/notPending/phase"), "Succeeded");

    // A list says how a pod ended that the watch missed.
    core.wait(SECOND);
    let listed = [Pod { phase: PodPhase::Failed, ..on(&broken, "a") }].map(Into::into).into();
    core.apply(Input::PodsReset { pods: listed, quarantined: Vec::new() });
    let words = "pod ns/broken has ended: it failed on a at 1970-01-01T00:00:06.000Z; /apis/v1/history/pods/ns/broken \
                 has its history";
    check(&mut core, "broken", "PodEnded", words);
    // The other one is in the list no more, and how it ended is still recorded.
    assert_eq!(same_words(&mut core, "fine").0, "PodEnded");
    // A pod that had ended before anything was seen of it.
    core.see(&Pod { phase: PodPhase::Failed, ..on(&pod("early", 100), "b") });
    check(
        &mut core,
        "early",
        "PodEnded",
        "pod ns/early has ended: it failed on b; nothing is recorded of it",
    );
    core.delete(&pod("early", 100));
    assert_eq!(same_words(&mut core, "early").0, "PodNotFound");
}

#[test]
fn a_deleted_pod_points_to_its_history_and_an_unknown_one_is_unknown() {
    let mut core = core_with(&[node("a", 1000)]);
    let (big, ran) = (pod("big", 9000), pod("ran", 100));
    core.attempt(&big);
    core.place(&ran);
    core.see(&on(&ran, "a"));
    core.wait(SECOND);
    core.see(&Pod { deleting: true, ..big.clone() });
    let words = "pod ns/big is being deleted since 1970-01-01T00:00:01.000Z; it is on no node and is not placed any more; \
                 /apis/v1/history/pods/ns/big has its history";
    check(&mut core, "big", "PodDeleting", words);
    assert_eq!(explain(&mut core, "big")["verdict"], "deleting");
    core.wait(SECOND);
    core.delete(&big);
    core.delete(&ran);
    let words =
        "pod ns/big was deleted at 1970-01-01T00:00:02.000Z; /apis/v1/history/pods/ns/big has its history";
    check(&mut core, "big", "PodDeleted", words);
    let words = "pod ns/ran was deleted at 1970-01-01T00:00:02.000Z, from a; /apis/v1/history/pods/ns/ran has its history";
    check(&mut core, "ran", "PodDeleted", words);
    let words = "pod ns/nobody is not known: it does not exist, or has left and nothing is recorded of it";
    check(&mut core, "nobody", "PodNotFound", words);
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/history/pods/ns/nobody")), "HistoryNotFound");
}

#[test]
fn a_pod_of_another_scheduler_says_whose_it_is() {
    let mut core = core_with(&[node("a", 1000)]);
    let typo = Pod { scheduler_name: "pelucid".into(), ..pod("typo", 100) };
    let theirs = Pod { scheduler_name: "default-scheduler".into(), ..pod("theirs", 100) };
    core.see(&typo);
    core.see(&theirs);
    let words = "pod ns/theirs waits for scheduler default-scheduler, not for this one, which places pods of pellucid only.";
    check(&mut core, "theirs", "NotOurPod", words);
    let words = "pod ns/typo waits for scheduler pelucid, not for this one, which places pods of pellucid only. Did you \
                 mean pellucid?";
    check(&mut core, "typo", "NotOurPod", words);
    let body = explain(&mut core, "typo");
    assert_eq!((text(&body, "/verdict"), text(&body, "/profile")), ("foreign", "pelucid"));
    assert_eq!(text(&body, "/notPending/didYouMean"), "pellucid");
    // What is said follows the pod: bound by its scheduler, or gone.
    core.see(&on(&theirs, "a"));
    assert_eq!(same_words(&mut core, "theirs").0, "PodPlacedByOthers");
    core.apply(Input::PodsReset { pods: Vec::new(), quarantined: Vec::new() });
    assert_eq!(same_words(&mut core, "typo").0, "PodNotFound");
}

#[test]
fn a_pod_that_cannot_be_read_says_so() {
    let mut core = core_with(&[node("a", 1000)]);
    core.apply(Input::Quarantined(unreadable(&pod("odd", 100))));
    let (code, message) = same_words(&mut core, "odd");
    assert_eq!(code, "PodUnreadable");
    assert!(message.starts_with("The scheduler cannot read this pod, so it is not placed: "), "{message}");
    assert_eq!(explain(&mut core, "odd")["summary"], json!(message));
}
