//! A snapshot is all that a decision depends on: what is rebuilt of one is the same, and decides the same.

use std::sync::Arc;

use pellucid::cycle::Scheduler;
use pellucid::diagnosis::snapshot::restore::{self, Rewind};
use pellucid::diagnosis::snapshot::{Snapshot, Source};
use pellucid::model::Now;
use pellucid::plugins::registry;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cluster::{SCHEDULER, config, spec};
use crate::driver::default_profile;
use crate::random::{Life, happening};

fn snapshot(scheduler: &mut Scheduler, now: Now, redact: bool) -> Snapshot {
    let configuration = serde_json::Value::Null;
    let root = scheduler.publish(now);
    let made = Snapshot::of(&Source { root: &root, configuration: &configuration, redact });
    let bytes = made.to_json().expect("it is written");
    let again = Snapshot::of(&Source { root: &root, configuration: &configuration, redact });
    assert_eq!(bytes, again.to_json().expect("it is written"), "one root, one document");
    Snapshot::from_json(&bytes).expect("it is read")
}

fn rebuilt(of: &Snapshot, rewind: &Rewind) -> Scheduler {
    let profiles = vec![default_profile(SCHEDULER)];
    restore::restore(of, profiles, Arc::new(registry()), rewind).expect("it is restored")
}

fn state(of: &Snapshot) -> String {
    serde_json::to_string_pretty(&of.state).expect("it is written")
}

/// The decisions on pods that wait and for which nothing has changed since are made again.
fn check_decisions(of: &Snapshot) -> Result<(), TestCaseError> {
    let waits = |key| of.state.pods.iter().any(|p| p.pod.key == key && p.node.is_none());
    // What others were promised since is not in the log of changes.
    let promised = |at| of.state.nominations.iter().any(|n| n.since >= at);
    for verdict in &of.record.verdicts {
        let is_of_binding = verdict
            .codes
            .iter()
            .any(|c| ["BindRefused", "PreBindFailed", "PlacementTakenBack"].contains(&c.as_str()));
        if verdict.stale || is_of_binding || !waits(verdict.pod.clone()) || promised(verdict.at) {
            continue;
        }
        let mut scheduler = rebuilt(of, &Rewind::default());
        let decided = restore::decide(&mut scheduler, of, &verdict.pod).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&decided.decision_hash, &verdict.decision_hash, "{:?} and {:?}", decided, verdict);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..config() })]

    #[test]
    fn what_is_rebuilt_is_the_same_and_decides_the_same(
        specs in vec(spec(), 4),
        all in vec(happening(), 1..60),
    ) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
        }
        let now = life.core.now;
        let whole = snapshot(&mut life.core.scheduler, now, false);
        let again = snapshot(&mut rebuilt(&whole, &Rewind::default()), now, false);
        prop_assert_eq!(state(&whole), state(&again));
        check_decisions(&whole)?;
        let redacted = snapshot(&mut life.core.scheduler, now, true);
        check_decisions(&redacted)?;
    }

    /// Without anything else in between, the placements of a run are found again one by one.
    #[test]
    fn placements_are_made_again(specs in vec(spec(), 4), all in vec(happening(), 1..20)) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
        }
        let mut scheduler = {
            let now = life.core.now;
            let before = snapshot(&mut life.core.scheduler, now, false);
            rebuilt(&before, &Rewind::default())
        };
        let now = life.core.now;
        let first = scheduler.publish(now).cycle;
        while scheduler.step(now, &pellucid::model::time::NoProbe).is_some() {}
        let after = snapshot(&mut scheduler, now, false);
        if !after.state.nominations.is_empty() {
            return Ok(());
        }
        for verdict in after.record.verdicts.iter().filter(|v| v.outcome == "Placed" && v.cycle > first) {
            let rewind = Rewind::before(&after, verdict);
            prop_assert!(!rewind.is_empty());
            let mut scheduler = rebuilt(&after, &rewind);
            let decided = restore::decide(&mut scheduler, &after, &verdict.pod).map_err(TestCaseError::fail)?;
            prop_assert_eq!(&decided.decision_hash, &verdict.decision_hash, "{:?}", verdict);
        }
    }
}

#[test]
fn what_is_no_snapshot_is_said_to_be_none() {
    for (text, says) in [
        ("", "not a snapshot"),
        ("{}", "not a snapshot"),
        (r#"{"kind":"PodList","version":1}"#, "a \"PodList\""),
        (r#"{"kind":"PellucidSnapshot","version":2}"#, "version 2; this program reads version 1"),
        (r#"{"kind":"PellucidSnapshot","version":1}"#, "cannot be read"),
        (r#"{"kind":"PellucidSnapshot","version":1,"#, "not a whole one"),
    ] {
        let error = Snapshot::from_json(text.as_bytes()).expect_err("it is none");
        assert!(error.contains(says), "{error:?} does not say {says:?}");
    }
}
