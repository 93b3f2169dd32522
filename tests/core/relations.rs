//! Topology spread and pod affinity against their definition: the results equal those from examining every pod on
//! every node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid::cluster::{Cluster, Stage};
use pellucid::framework::plugin::{Plugin, PreFiltered, PreScored};
use pellucid::framework::{CauseId, Causes, Nodes, View};
use pellucid::model::relations::{NodeInclusion, PodAffinityTerm, PodTerms, SpreadConstraint};
use pellucid::model::taint::{TaintEffect, tolerated};
use pellucid::model::{Name, Node, NodeIdx, Pod, PodSpec};
use proptest::prelude::*;
use serde_json::Value;

use crate::common::cluster::{config, spec, world};

const MISSING: &str = "node(s) didn't match pod topology spread constraints (missing required label)";
const SKEWED: &str = "node(s) didn't match pod topology spread constraints";
const NOT_NEAR: &str = "node(s) didn't match pod affinity rules";
const NOT_FAR: &str = "node(s) didn't match pod anti-affinity rules";
const NOT_WANTED: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// A number per topology key and value.
type Pairs = BTreeMap<(Name, Name), i64>;

/// The reference implementation: examines every node and every pod.
struct Naive<'a> {
    cluster: &'a Cluster,
    spec: &'a PodSpec,
    nodes: Vec<(NodeIdx, &'a Node, Vec<&'a Pod>)>,
}

impl<'a> Naive<'a> {
    fn new(cluster: &'a Cluster, spec: &'a PodSpec) -> Self {
        let pods = |n: NodeIdx| {
            let on = cluster.slot(n).pods.iter();
            on.map(|id| &*cluster.pod(*id).expect("it is there").pod).collect()
        };
        let nodes = cluster.present().iter().map(|n| (*n, &**cluster.node(*n).expect("present"), pods(*n)));
        Self { cluster, spec, nodes: nodes.collect() }
    }

    // === spread ===

    fn counts(&self, c: &SpreadConstraint, pod: &Pod) -> bool {
        // A selector without requirements counts nobody.
        let selected = c.selector.as_ref().is_some_and(|s| !s.is_empty() && s.matches(&pod.spec.labels));
        selected && pod.key.namespace == self.spec.namespace && !pod.deleting
    }

    fn policies_pass(&self, c: &SpreadConstraint, node: &Node) -> bool {
        let hard = |effect| effect != TaintEffect::PreferNoSchedule;
        (c.node_affinity_policy == NodeInclusion::Ignore
            || self.spec.affinity.accepts(&node.name, &node.labels))
            && (c.node_taints_policy == NodeInclusion::Ignore
                || node.taints.iter().all(|t| !hard(t.effect) || tolerated(&self.spec.tolerations, t)))
    }

    fn constraints(&self, is_hard: bool) -> Vec<&'a SpreadConstraint> {
        self.spec.spread.iter().filter(|c| c.is_hard == is_hard).collect()
    }

    fn spread_cause(&self, node: &Node) -> Option<&'static str> {
        let all = self.constraints(true);
        let has_all = |n: &Node| all.iter().all(|c| n.labels.get(&c.topology_key).is_some());
        for c in &all {
            let Some(here) = node.labels.get(&c.topology_key) else { return Some(MISSING) };
            let mut domains: BTreeMap<&Name, i64> = BTreeMap::new();
            for (_, n, pods) in self.nodes.iter().filter(|(_, n, _)| has_all(n) && self.policies_pass(c, n)) {
                let value = n.labels.get(&c.topology_key).expect("it has all");
                *domains.entry(value).or_default() +=
                    pods.iter().filter(|p| self.counts(c, p)).count() as i64;
            }
            let is_short = domains.len() < c.min_domains as usize;
            let least = if is_short { 0 } else { domains.values().copied().min().unwrap_or(0) };
            let itself = i64::from(c.selector.as_ref().is_some_and(|s| s.matches(&self.spec.labels)));
            if domains.get(here).copied().unwrap_or(0) + itself - least > i64::from(c.max_skew) {
                return Some(SKEWED);
            }
        }
        None
    }

    /// Scores by the pod's own soft constraints, with all nodes feasible.
    fn spread_scores(&self) -> Vec<i64> {
        let all = self.constraints(false);
        let has_all = |n: &Node| all.iter().all(|c| n.labels.get(&c.topology_key).is_some());
        let score = |(_, node, pods): &(NodeIdx, &Node, Vec<&Pod>)| {
            if !has_all(node) {
                return 0;
            }
            let mut sum = 0.0;
            for c in &all {
                let counted = |pods: &[&Pod]| pods.iter().filter(|p| self.counts(c, p)).count();
                let with_keys = || self.nodes.iter().filter(|(_, n, _)| has_all(n));
                let value = |n: &Node| n.labels.get(&c.topology_key).cloned();
                let (pods, domains) = if &*c.topology_key == "kubernetes.io/hostname" {
                    (counted(pods), with_keys().count())
                } else {
                    let there = with_keys().filter(|(_, n, _)| value(n) == value(node));
                    let there = there.filter(|(_, n, _)| self.policies_pass(c, n));
                    let values: BTreeSet<_> = with_keys().map(|(_, n, _)| value(n)).collect();
                    (there.map(|(_, _, pods)| counted(pods)).sum(), values.len())
                };
                sum += pods as f64 * ((domains + 2) as f64).ln() + f64::from(c.max_skew - 1);
            }
            sum.round() as i64
        };
        self.nodes.iter().map(score).collect()
    }

    // === affinity ===

    fn is_about(&self, term: &PodAffinityTerm, home: &Name, namespace: &Name, spec: &PodSpec) -> bool {
        let labels = self.cluster.objects().namespace_labels(namespace);
        let reaches = match (&*term.namespaces, &term.namespace_selector) {
            ([], None) => home == namespace,
            (names, selector) => {
                names.contains(namespace) || selector.as_ref().is_some_and(|s| s.matches(&labels))
            }
        };
        reaches && term.selector.as_ref().is_some_and(|s| s.matches(&spec.labels))
    }

    /// Sums, over all pods, the weights of the terms that `terms` returns for them, per topology value.
    fn pairs<'t>(&self, mut terms: impl FnMut(&Pod) -> Vec<(&'t PodAffinityTerm, i64)>) -> Pairs {
        let mut pairs = Pairs::new();
        for (_, node, pods) in &self.nodes {
            for (term, weight) in pods.iter().flat_map(|pod| terms(pod)) {
                if let Some(value) = node.labels.get(&term.topology_key) {
                    *pairs.entry((term.topology_key.clone(), value.clone())).or_default() += weight;
                }
            }
        }
        pairs
    }

    fn mine(&self, term: &PodAffinityTerm, pod: &Pod) -> bool {
        self.is_about(term, &self.spec.namespace, &pod.key.namespace, &pod.spec)
    }

    fn theirs(&self, term: &PodAffinityTerm, pod: &Pod) -> bool {
        self.is_about(term, &pod.key.namespace, &self.spec.namespace, self.spec)
    }

    fn affinity_cause(&self, node: &Node) -> Option<&'static str> {
        let (near, far) = (&*self.spec.pod_affinity.required, &*self.spec.pod_anti_affinity.required);
        let of_all = self.pairs(|pod| {
            let all = near.iter().all(|t| self.mine(t, pod));
            near.iter().filter(|_| all).map(|t| (t, 1)).collect()
        });
        let of_any = self.pairs(|pod| far.iter().filter(|t| self.mine(t, pod)).map(|t| (t, 1)).collect());
        let mut existing = BTreeSet::new();
        for (_, n, pods) in &self.nodes {
            for pod in pods {
                let against = pod.spec.pod_anti_affinity.required.iter().filter(|t| self.theirs(t, pod));
                existing.extend(
                    against.filter_map(|t| {
                        Some((t.topology_key.clone(), n.labels.get(&t.topology_key)?.clone()))
                    }),
                );
            }
        }
        let count = |pairs: &Pairs, key: &Name| {
            node.labels.get(key).map(|v| pairs.get(&(key.clone(), v.clone())).copied().unwrap_or(0))
        };
        let is_me =
            |t: &PodAffinityTerm| self.is_about(t, &self.spec.namespace, &self.spec.namespace, self.spec);
        let has_keys = near.iter().all(|t| node.labels.get(&t.topology_key).is_some());
        let is_near = near.iter().all(|t| count(&of_all, &t.topology_key).is_some_and(|n| n > 0));
        let is_first = of_all.is_empty() && near.iter().all(is_me);
        if !has_keys || !(is_near || is_first) {
            return Some(NOT_NEAR);
        }
        if far.iter().any(|t| count(&of_any, &t.topology_key).is_some_and(|n| n > 0)) {
            return Some(NOT_FAR);
        }
        node.labels.iter().any(|pair| existing.contains(pair)).then_some(NOT_WANTED)
    }

    fn affinity_scores(&self) -> Option<Vec<i64>> {
        let own = [(&self.spec.pod_affinity, 1), (&self.spec.pod_anti_affinity, -1)];
        let weighted = |terms: &'a PodTerms, sign: i64| {
            terms.preferred.iter().map(move |w| (&w.term, sign * i64::from(w.weight)))
        };
        let mut pairs = self.pairs(|pod| {
            let all = own.iter().flat_map(|(terms, sign)| weighted(terms, *sign));
            all.filter(|(t, _)| self.mine(t, pod)).collect()
        });
        for (_, node, pods) in &self.nodes {
            for pod in pods {
                let hard = pod.spec.pod_affinity.required.iter().map(|t| (t, 1));
                let soft =
                    weighted(&pod.spec.pod_affinity, 1).chain(weighted(&pod.spec.pod_anti_affinity, -1));
                for (term, weight) in hard.chain(soft).filter(|(t, _)| self.theirs(t, pod)) {
                    if let Some(value) = node.labels.get(&term.topology_key) {
                        *pairs.entry((term.topology_key.clone(), value.clone())).or_default() += weight;
                    }
                }
            }
        }
        let score = |node: &Node| node.labels.iter().filter_map(|pair| pairs.get(pair)).sum();
        (!pairs.is_empty()).then(|| self.nodes.iter().map(|(_, node, _)| score(node)).collect())
    }
}

fn plugin(name: &str) -> Arc<dyn Plugin> {
    let factory = pellucid::plugins::registry().into_iter().find(|f| f.name() == name);
    factory.expect("it is registered").make(&Value::Null).expect("defaults are valid")
}

/// Returns the plugin's message for each node, or `None` for a node it accepts.
fn causes(plugin: &dyn Plugin, view: View<'_>, spec: &PodSpec) -> Vec<Option<String>> {
    let value = match plugin.pre_filter().expect("it prepares").pre_filter(view, spec) {
        PreFiltered::Ready { value, .. } => value,
        _ => return vec![None; view.nodes().len()],
    };
    let (mut table, mut left) = (Causes::default(), view.nodes().to_vec());
    let mut mask = vec![CauseId::FEASIBLE; view.cluster().n_slots()];
    let filter = plugin.filter().expect("it filters");
    filter.filter(view, spec, &value, &mut Nodes::new(&mut left, &mut table, &mut mask));
    view.nodes().iter().map(|n| table.get(mask[n.index()]).map(|c| c.message())).collect()
}

/// Returns the raw score for each node, with all nodes feasible.
fn scores(plugin: &dyn Plugin, view: View<'_>, spec: &PodSpec) -> Option<Vec<i64>> {
    let prepared = plugin.pre_score().expect("it prepares").pre_score(view, spec, view.nodes());
    let PreScored::Ready(value) = prepared else { return None };
    let mut out = vec![0; view.nodes().len()];
    plugin.score().expect("it scores").score(view, spec, &value, view.nodes(), &mut out);
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..config() })]

    #[test]
    fn counters_answer_as_looking_at_every_pod_does(world in world(8, 12), spec in spec()) {
        let mut cluster = world.cluster();
        // Some pods are moved before the plugin is called.
        for pod in world.placed.iter().step_by(3) {
            if let Some(id) = cluster.find_pod(&pod.key) {
                let node = cluster.release(id);
                if let Some(node) = node.filter(|n| cluster.node(*n).is_some()) {
                    cluster.place(id, node, Stage::Reserved);
                }
            }
        }
        let (view, naive) = (View::new(&cluster), Naive::new(&cluster, &spec));
        let texts = |all: Vec<Option<&str>>| all.into_iter().map(|c| c.map(str::to_owned)).collect::<Vec<_>>();
        let nodes = || naive.nodes.iter().map(|(_, node, _)| *node);
        let (spread, affinity) = (plugin("PodTopologySpread"), plugin("InterPodAffinity"));
        prop_assert_eq!(causes(&*spread, view, &spec), texts(nodes().map(|n| naive.spread_cause(n)).collect()));
        prop_assert_eq!(causes(&*affinity, view, &spec), texts(nodes().map(|n| naive.affinity_cause(n)).collect()));
        prop_assert_eq!(scores(&*affinity, view, &spec), naive.affinity_scores());
        if spec.spread.iter().any(|c| !c.is_hard) {
            prop_assert_eq!(scores(&*spread, view, &spec), Some(naive.spread_scores()));
        }
    }
}
