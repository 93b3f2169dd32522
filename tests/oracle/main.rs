//! Decisions of kube-scheduler 1.36 on hundreds of cases, with every plugin's score: ours must agree.
//!
//! `PELLUCID_ORACLE_DIR` names a directory with other case files of the same format. The recording's DynamicResources
//! has no counterpart here: its scores, all zero, and its part of messages are ignored.

#[path = "../common/mod.rs"]
mod common;

mod explain;
mod preempt;
mod shadow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::cases::Cases;
use common::driver::{Core, default_profile, settings};
use pellucid::cluster::Input;
use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::scheduler::{PluginTally, Settings};
use pellucid::framework::View;
use pellucid::framework::profile::Profile;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::{NodeIdx, Pod};
use pellucid::recording::Outcome;
use serde_json::Value;

/// Number of cases with scores.
const SCORED: usize = 131;
/// Number of all cases.
const ALL: usize = 300;
/// The part of messages that DynamicResources contributes.
const OF_DYNAMIC_RESOURCES: &str = "no new claims to deallocate, ";

struct Case {
    id: String,
    pod: Pod,
    core: Core,
    profile: Profile,
    result: Value,
}

impl Case {
    fn read(case: &Value) -> Self {
        Self::read_with(case, None)
    }

    /// Reads a case for a scheduler that shadows another one, or decides itself.
    fn read_with(case: &Value, shadow_of: Option<&str>) -> Self {
        let profile = default_profile("default-scheduler");
        let shadow_of = shadow_of.map(Into::into);
        let mut core = Core::new(Settings { shadow_of, ..settings(profile.clone()) });
        for namespace in preempt::namespaces() {
            core.apply(Input::ObjectApplied(Arc::new(namespace)));
        }
        for node in case["nodes"].as_array().expect("nodes") {
            let node = Decoder::default().node(node).expect("a node that can be read");
            core.apply(Input::NodeApplied(Arc::new(node)));
        }
        let bound = case["pods"].as_array().expect("pods");
        for pod in bound {
            core.apply(Input::PodApplied(Arc::new(
                Decoder::default().pod(pod).expect("a pod that can be read"),
            )));
        }
        let target = &case["target"];
        let mut pod = Decoder::default().pod(target).expect("a target that can be read");
        // The API server fills in the default.
        if pod.scheduler_name.is_empty() {
            pod.scheduler_name = profile.scheduler_name.clone();
        }
        // The state keeps only labels that some selector reads; applying the target adds those that it reads.
        core.apply(Input::PodApplied(Arc::new(pod.clone())));
        let known =
            core.scheduler.cluster().find_pod(&pod.key).and_then(|id| core.scheduler.cluster().pod(id));
        pod.spec = known.expect("the target waits").pod.spec.clone();
        Self {
            id: case["id"].as_str().expect("an id").to_owned(),
            pod,
            core,
            profile,
            result: case["result"].clone(),
        }
    }

    /// Returns the names of the feasible nodes, if the result names all of them.
    fn feasible(&self) -> BTreeSet<String> {
        match (self.result.get("scores"), self.result.get("node")) {
            (Some(scores), _) => scores.as_object().expect("scores by node").keys().cloned().collect(),
            (None, Some(node)) => BTreeSet::from([node.as_str().expect("a name").to_owned()]),
            (None, None) => BTreeSet::new(),
        }
    }

    fn node(&self, name: &str) -> NodeIdx {
        self.core.scheduler.cluster().find_node(&name.into()).expect("a node of the case")
    }

    /// Filters the nodes for the target, and passes the results to `ask`.
    fn with_rows<T>(
        &self,
        ask: impl FnOnce(&mut NodeResultCache, &CycleContext<'_>, &mut [PluginTally]) -> T,
    ) -> T {
        let of = CycleContext::new(&self.profile, View::new(self.core.scheduler.cluster()), &self.pod.spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut rows = NodeResultCache::default();
        rows.run_filters(&of, true, &mut tally);
        rows.run_global_filters(&of, &mut tally);
        ask(&mut rows, &of, &mut tally)
    }

    fn check_feasible(&self) {
        let ours: BTreeSet<String> =
            self.with_rows(|rows, of, _| rows.feasible().map(|n| of.view.name(n).to_string()).collect());
        let recorded = self.feasible();
        assert_eq!(ours, recorded, "{}: feasible nodes", self.id);
    }

    /// Compares the scores of the recorded feasible nodes. Returns how many were compared.
    fn check_scores(&self) -> usize {
        let recorded = self.result["scores"].as_object().expect("scores by node");
        let nodes: Vec<NodeIdx> = recorded.keys().map(|name| self.node(name)).collect();
        let ours = self.with_rows(|rows, of, tally| rows.top_of(of, &nodes, usize::MAX, tally));
        let scorers: Vec<&str> = self.profile.score.iter().map(|e| e.plugin.name()).collect();
        let mut compared = 0;
        for scored in ours {
            let name = self.core.scheduler.cluster().node_name(scored.node).to_string();
            let want = recorded[&name].as_object().expect("scores by plugin");
            for (plugin, share) in scorers.iter().zip(&scored.shares) {
                let weighted = share.map(|(_, _, weighted)| weighted);
                let want = want.get(*plugin).and_then(Value::as_i64);
                assert_eq!(weighted, want, "{}: {plugin} on {name}", self.id);
                compared += 1;
            }
            let known = |name: &&String| scorers.contains(&name.as_str()) || *name == "DynamicResources";
            assert!(want.keys().all(|name| known(&name)), "{}: {want:?}", self.id);
            let total = self.result["totals"][&name].as_i64().expect("a total");
            assert_eq!(scored.total, total, "{}: total of {name}", self.id);
        }
        compared
    }

    /// Lets the scheduler decide, and compares its decision.
    fn check_decision(&mut self) {
        let step = self.core.step().unwrap_or_else(|| panic!("{}: the target waits for us", self.id));
        match (step.verdict.outcome, self.result.get("message").and_then(Value::as_str)) {
            (Outcome::Placed(placement), None) => {
                let node = self.core.scheduler.cluster().node_name(placement.node);
                assert_eq!(placement.feasible as usize, self.feasible().len(), "{}", self.id);
                let Some(totals) = self.result.get("totals").and_then(Value::as_object) else {
                    return assert_eq!(&**node, self.result["node"], "{}", self.id);
                };
                let best = totals.values().filter_map(Value::as_i64).max();
                assert_eq!(totals[&**node].as_i64(), best, "{}: {node} is not the best", self.id);
                assert_eq!(placement.score, best, "{}", self.id);
            }
            (Outcome::Refused(refusal), Some(message)) => {
                let want = message.replace(OF_DYNAMIC_RESOURCES, "");
                assert_eq!(&*refusal.message(), want, "{}", self.id);
            }
            (outcome, message) => panic!("{}: {outcome:?} instead of {message:?}", self.id),
        }
    }

    /// Checks the file itself: the recorded winner has the greatest recorded total.
    fn check_winner(&self) {
        let totals: BTreeMap<_, _> = self.result["totals"].as_object().expect("totals").iter().collect();
        let best = totals.values().filter_map(|t| t.as_i64()).max();
        let winner = self.result["node"].as_str().expect("a winner");
        assert_eq!(self.result["totals"][winner].as_i64(), best, "{}", self.id);
    }
}

/// The recorded cases.
const CASES: Cases = Cases { variable: "PELLUCID_ORACLE_DIR", own: "tests/data/oracle" };

/// Returns whether the cases are those of this repository.
fn own_copy() -> bool {
    CASES.are_own()
}

/// Reads a file of cases.
fn lines(name: &str) -> Vec<Value> {
    CASES.lines(name)
}

#[test]
fn decisions_agree_with_kube_scheduler() {
    let cases = lines("schedule.jsonl");
    let (mut scored, mut shares) = (0, 0);
    for case in &cases {
        let mut case = Case::read(case);
        case.check_feasible();
        if case.result.get("scores").is_some() {
            scored += 1;
            case.check_winner();
            shares += case.check_scores();
        }
        case.check_decision();
    }
    println!("{} cases decided alike, {scored} of them with scores ({shares} scores)", cases.len());
    if own_copy() {
        assert!(cases.len() >= ALL, "{} cases", cases.len());
        assert!(scored >= SCORED, "{scored} scored cases");
    }
}
