//! Compares decisions and scores with what is recorded, and says which rules are behind a difference.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::cycle::NodeResultCache;
use pellucid::cycle::attempt::node_result_cache::CycleContext;
use pellucid::cycle::scheduler::PluginTally;
use pellucid::framework::View;
use pellucid::framework::plugin::PreScored;
use pellucid::model::{NodeIdx, PodSpec};
use pellucid::plugins::node_numa_resource::NAME;
use pellucid::recording::{Outcome, Refusal};
use serde_json::Value;

use super::answers::{devices, reasons, status};
use super::case::{Case, agreed};
use super::model::{Decision, Rule};
use super::node::held;
use super::{DEVICE_SHARE, DEVICES, STATUS, text};
use crate::own_copy;

/// What was compared, and where ours differs.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) placed: usize,
    pub(super) refused: usize,
    pub(super) scores: usize,
    pub(super) answers: usize,
    pub(super) differences: Vec<(String, String)>,
    /// How often a rule in which ours differs on purpose was behind a difference.
    pub(super) rules: BTreeMap<Rule, usize>,
}

impl Compared {
    pub(super) fn check<T: PartialEq + std::fmt::Debug>(
        &mut self,
        at: &str,
        what: &str,
        ours: &T,
        theirs: &T,
    ) {
        if ours != theirs {
            self.differ(at, what, format!("{ours:?}, recorded {theirs:?}"));
        }
    }

    fn differ(&mut self, at: &str, what: &str, difference: String) {
        self.differences.push((format!("{at} {what}"), difference));
    }
}

/// What the model says of a node: by Koordinator's rules, and by ours.
pub(super) struct Expected {
    pub(super) theirs: Decision,
    pub(super) ours: Decision,
    /// The devices that the pod gets by Koordinator's rules.
    pub(super) devices: Value,
    /// The NUMA nodes that Filter finds by Koordinator's rules.
    pub(super) at_filter: Option<u64>,
    pub(super) scores: [i64; 2],
    /// The rules that alone change what becomes of the pod, or its score.
    pub(super) rules: Vec<Rule>,
}

/// The node of a pod, and what its Binding writes.
pub(super) type Placed = (String, Vec<(String, String)>);
/// What is expected of all nodes.
pub(super) type Model = BTreeMap<String, Expected>;

impl Expected {
    fn differs(&self) -> bool {
        self.theirs != self.ours
    }

    /// Returns whether a pod gets this of the node by Koordinator's rules.
    fn is_theirs(&self, result: &Value) -> bool {
        let (cpus, zones) = held(&result["resource-status"]);
        matches!(&self.theirs, Decision::Takes { cpus: known, zones: own, .. } if *known == cpus && *own == zones)
            && devices(&self.devices) == devices(&result["device-allocated"])
    }

    /// Returns whether a pod gets this of the node by our rules.
    fn is_ours(&self, made: &Value) -> bool {
        let (cpus, zones) = held(made);
        matches!(&self.ours, Decision::Takes { cpus: known, zones: own, .. } if *known == cpus && *own == zones)
    }
}

/// Returns the reasons of a refusal, one by one.
fn parts(decision: &Decision) -> BTreeSet<String> {
    match decision {
        Decision::Refused { reason, .. } => reason.split(", ").map(str::to_owned).collect(),
        Decision::Takes { .. } => BTreeSet::new(),
    }
}

/// Returns the reasons of a message without the numbers of nodes, which those of a pod as a whole do not have.
fn texts(message: &str) -> BTreeSet<String> {
    let text = |part: String| match part.split_once(' ') {
        Some((n, text)) if n.parse::<usize>().is_ok() => text.to_owned(),
        _ => part,
    };
    reasons(message).into_iter().map(text).collect()
}

impl Case {
    pub(super) fn compare_decision(
        &mut self,
        name: &str,
        (result, model): (&Value, &Model),
        at: &str,
        out: &mut Compared,
    ) {
        let steps = self.core.run();
        let refusal = steps.first().and_then(|step| match &step.verdict.outcome {
            Outcome::Refused(refusal) => Some(refusal.message().to_string()),
            _ => None,
        });
        let orders = self.core.orders();
        let order = orders.iter().find(|order| &*order.pod.key.name == name);
        let (ours, theirs) = (order.map(|order| order.node.to_string()), result["node"].as_str());
        let marks = order.and_then(|order| order.marks.as_ref()).map(|marks| &marks.annotations);
        let mark = |key: &str| {
            let read = marks.and_then(|marks| marks.get(key));
            read.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
        };
        let said = [refusal.as_deref().unwrap_or_default(), text(&result["message"])];
        if ours.is_some() && ours.as_deref() == theirs {
            out.placed += 1;
        } else if ours.is_none() && theirs.is_none() {
            out.refused += 1;
        }
        let made = (status(&mark(STATUS)), devices(&mark(DEVICES)));
        let recorded = (status(&result["resource-status"]), devices(&result["device-allocated"]));
        let is_same = ours.as_deref() == theirs
            && made == recorded
            && (theirs.is_some() || reasons(said[0]) == reasons(said[1]));
        let theirs = theirs.map(|node| (node, &model[node]));
        if let Some((node, of)) = theirs.filter(|(_, of)| own_copy() && !of.is_theirs(result)) {
            out.differ(at, "model", format!("{:?} on {node}, recorded {recorded:?}", of.theirs));
        }
        if is_same {
            return;
        }
        let ours_of = ours.as_deref().map(|node| &model[node]);
        let is_given = ours_of.is_none_or(|of| of.is_ours(&mark(STATUS)));
        let is_recorded = theirs.is_none_or(|(_, of)| of.is_theirs(result));
        let behind = (is_given && is_recorded)
            .then(|| behind(model, (ours.as_deref(), theirs.map(|(node, _)| node)), said))
            .flatten();
        match behind {
            Some(rules) => rules.iter().for_each(|rule| *out.rules.entry(*rule).or_default() += 1),
            None => {
                let difference = format!(
                    "{ours:?} {made:?} {}, recorded {theirs:?} {recorded:?} {}",
                    said[0],
                    said[1],
                    theirs = theirs.map(|of| of.0)
                );
                out.differ(at, "decision", difference);
            }
        }
    }

    /// Compares a decision with what our rules give. Returns the node with the annotations of the Binding.
    pub(super) fn compare_with_model(
        &mut self,
        name: &str,
        model: &Model,
        out: &mut Compared,
    ) -> Option<Placed> {
        let steps = self.core.run();
        let orders = self.core.orders();
        if let Some(order) = orders.iter().find(|order| &*order.pod.key.name == name) {
            out.placed += 1;
            let marks = order.marks.as_ref().map(|marks| marks.annotations.clone()).unwrap_or_default();
            let made = marks.get(STATUS).map(|text| serde_json::from_str(text).expect("JSON"));
            let (node, made) = (order.node.to_string(), made.unwrap_or(Value::Null));
            if !model[&node].is_ours(&made) {
                out.differ(
                    name,
                    "decision",
                    format!("{made} on {node}, by the model {:?}", model[&node].ours),
                );
            }
            let marks = marks.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
            return Some((node, marks));
        }
        out.refused += 1;
        let refusal = steps.first().and_then(|step| match &step.verdict.outcome {
            Outcome::Refused(refusal) => Some(refusal),
            _ => None,
        });
        let is_own = |refusal: &Refusal| refusal.groups.iter().all(|group| group.cause.plugin == NAME);
        // Of several nodes, and of other plugins, it cannot be told what was said of which.
        if let Some(refusal) = refusal.filter(|refusal| model.len() == 1 && is_own(refusal)) {
            let said = refusal.message().to_string();
            let expected: BTreeSet<String> = model.values().flat_map(|of| parts(&of.ours)).collect();
            if !texts(&said).is_subset(&expected) {
                out.differ(name, "decision", format!("{said}, by the model {expected:?}"));
            }
        }
        None
    }

    /// Compares the scores of the feasible nodes by plugin. The feasible nodes are those that have one.
    pub(super) fn compare_scores(
        &self,
        name: &str,
        (result, model): (&Value, &Model),
        at: &str,
        out: &mut Compared,
    ) {
        let Some(recorded) = result["scores"].as_object() else { return };
        let spec = self.spec(name).spec.clone();
        let view = View::new(self.core.scheduler.cluster());
        let ctx = CycleContext::new(&self.profile, view, &spec);
        let mut tally = vec![PluginTally::default(); self.profile.plugins.len()];
        let mut results = NodeResultCache::default();
        results.run_filters(&ctx, true, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        let feasible: Vec<NodeIdx> = results.feasible().collect();
        let ours: BTreeSet<String> = feasible.iter().map(|n| view.name(*n).to_string()).collect();
        let theirs: BTreeSet<String> = recorded.keys().cloned().collect();
        for node in ours.symmetric_difference(&theirs) {
            let of = &model[node];
            let is_explained = match (&of.theirs, &of.ours) {
                (Decision::Refused { at_reserve: false, .. }, Decision::Takes { .. }) => ours.contains(node),
                (Decision::Takes { .. }, Decision::Refused { .. }) => theirs.contains(node),
                (Decision::Refused { at_reserve, .. }, Decision::Refused { .. }) => {
                    *at_reserve && theirs.contains(node)
                }
                _ => false,
            };
            match is_explained {
                true => of.rules.iter().for_each(|rule| *out.rules.entry(*rule).or_default() += 1),
                false => out.check(at, "feasible", &ours, &theirs),
            }
        }
        let aligned = self.device_scores(&spec, model, recorded.keys());
        for scored in results.top_of(&ctx, &feasible, usize::MAX, &mut tally) {
            let node = view.name(scored.node).to_string();
            let Some(of_node) = recorded.get(&node) else { continue };
            let is_known =
                |name: &&String| self.profile.score.iter().any(|e| e.plugin.name() == name.as_str());
            let names = of_node.as_object().into_iter().flatten().map(|(name, _)| name);
            out.check(
                at,
                "scoring plugins",
                &names.filter(|name| !is_known(name)).collect::<Vec<_>>(),
                &vec![],
            );
            for (plugin, share) in self.profile.score.iter().zip(&scored.shares) {
                let plugin = plugin.plugin.name();
                let weighted = share.map_or(0, |(_, _, weighted)| weighted);
                let theirs = of_node[plugin].as_i64().unwrap_or(0);
                let is_explained = match plugin {
                    NAME => model[&node].scores == [theirs, weighted],
                    DEVICE_SHARE => {
                        aligned.get(&node) == Some(&theirs) && model.values().any(Expected::differs)
                    }
                    _ => false,
                };
                if !is_explained {
                    out.check(at, &format!("score {plugin} {node}"), &weighted, &theirs);
                }
                out.scores += 1;
            }
        }
    }

    /// Returns DeviceShare's scores of nodes for the NUMA nodes that Koordinator's rules agree on.
    fn device_scores<'a>(
        &self,
        spec: &PodSpec,
        model: &Model,
        nodes: impl Iterator<Item = &'a String>,
    ) -> BTreeMap<String, i64> {
        let view = View::new(self.core.scheduler.cluster());
        let plugin = self.profile.score.iter().find(|e| e.plugin.name() == DEVICE_SHARE).expect("it scores");
        let score = plugin.plugin.score().expect("it scores");
        let before = plugin.plugin.pre_score().map(|p| p.pre_score(view, spec, view.nodes()));
        let Some(PreScored::Ready(value)) = before else { return BTreeMap::new() };
        let nodes: Vec<&String> = nodes.collect();
        let aligned = |node: &&String| {
            let at = view.cluster().find_node(&node.as_str().into()).expect("it is known");
            (at, model[*node].at_filter.map(agreed))
        };
        let aligned: Vec<_> = nodes.iter().map(aligned).collect();
        let mut raw = vec![0; nodes.len()];
        score.score_aligned(view, spec, &value, &aligned, &mut raw);
        let most = raw.iter().copied().max().unwrap_or(0);
        nodes
            .into_iter()
            .cloned()
            .zip(raw.into_iter().map(|raw| score.normalize().apply(raw, most)))
            .collect()
    }
}

/// Returns the rules behind a difference, `None` when rules do not explain it: which nodes ours and theirs chose, and what
/// was said.
fn behind(model: &Model, (ours, theirs): (Option<&str>, Option<&str>), said: [&str; 2]) -> Option<Vec<Rule>> {
    let differing: Vec<&Expected> =
        model.values().filter(|of| of.differs() || of.scores[0] != of.scores[1]).collect();
    let rules = |all: &[&Expected]| Some(all.iter().flat_map(|of| of.rules.clone()).collect());
    let recorded = texts(said[1]);
    let at_reserve = |of: &&&Expected| {
        matches!(&of.theirs, Decision::Refused { at_reserve: true, .. }) && parts(&of.theirs) == recorded
    };
    match (ours, theirs) {
        (Some(node), Some(other)) if node == other => {
            let of = &model[node];
            of.differs().then(|| of.rules.clone())
        }
        // Theirs kept the pod pending for a node, or refused ours.
        (Some(node), None) => {
            let of = &model[node];
            let is_refused =
                matches!(of.theirs, Decision::Refused { .. }) && parts(&of.theirs).is_subset(&recorded);
            let tried = differing.iter().find(at_reserve);
            if is_refused { Some(of.rules.clone()) } else { tried.map(|of| of.rules.clone()) }
        }
        (None, Some(node)) => {
            let of = &model[node];
            matches!(of.ours, Decision::Refused { .. }).then(|| of.rules.clone())
        }
        (Some(_), Some(_)) => (!differing.is_empty()).then(|| rules(&differing)).flatten(),
        (None, None) => {
            if let Some(of) = differing.iter().find(at_reserve) {
                return Some(of.rules.clone());
            }
            let mine = texts(said[0]);
            let all = |of: fn(&Expected) -> &Decision| -> BTreeSet<String> {
                differing.iter().flat_map(|known| parts(of(known))).collect()
            };
            let is_explained = recorded.difference(&mine).all(|text| all(|of| &of.theirs).contains(text))
                && mine.difference(&recorded).all(|text| all(|of| &of.ours).contains(text));
            (is_explained && !differing.is_empty()).then(|| rules(&differing)).flatten()
        }
    }
}
