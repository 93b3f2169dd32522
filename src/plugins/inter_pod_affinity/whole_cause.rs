//! Every term that refuses a node, with the placed pods behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::whole_cause::staying_pods;
use pellucid_framework::{EveryReason, NodeReason, Reason, View};
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::{NodeIdx, Pod, PodSpec, cancellation};

use super::super::relations::{Column, NO_VALUE, NodeCounts, Relations, ValueId, selector_text};
use super::filter::Prepared;
use super::sums::for_each_about;
use super::terms::{Terms, Use, is_about, resolved};

/// A term and the placed pods behind it: those that it selects, or those that have it.
pub(super) struct TermPods<'a> {
    pub(super) code: ReasonCode,
    pub(super) text: String,
    pub(super) column: Arc<Column>,
    /// The number of these pods per node.
    pub(super) on: BTreeMap<NodeIdx, u32>,
    /// Per value id, whether one of these pods is in the domain.
    is_taken: Vec<bool>,
    /// Whether a pod is one of these.
    pub(super) is_meant: Box<dyn Fn(&Pod) -> bool + 'a>,
}

impl<'a> TermPods<'a> {
    fn new(
        (code, text): (ReasonCode, String),
        column: Arc<Column>,
        is_meant: impl Fn(&Pod) -> bool + 'a,
    ) -> Self {
        let is_taken = vec![false; column.len()];
        Self { code, text, column, on: BTreeMap::new(), is_taken, is_meant: Box::new(is_meant) }
    }

    /// Makes the entry of a term of a pod with this spec.
    pub(super) fn of_own(
        view: View<'a>,
        relations: &Relations,
        spec: &'a PodSpec,
        (code, term): (ReasonCode, &'a PodAffinityTerm),
    ) -> Self {
        let column = relations.topology.column(&term.topology_key);
        let is_meant =
            move |pod: &Pod| is_about(view, term, &spec.namespace, (&pod.spec.namespace, &pod.spec.labels));
        let mut of = Self::new((code, term_text(term, spec)), column, is_meant);
        for_each_about(view, relations, term, &spec.namespace, |class| of.add(&class.counts));
        of
    }

    fn add(&mut self, counts: &NodeCounts) {
        counts.for_each(|node, pods| {
            *self.on.entry(node).or_default() += pods;
            let value = self.column.of(node);
            if value != NO_VALUE {
                self.is_taken[value as usize] = true;
            }
        });
    }

    /// Returns the domain of a node when one of the pods is in it.
    pub(super) fn taken(&self, node: NodeIdx) -> Option<ValueId> {
        let value = self.column.of(node);
        (value != NO_VALUE && self.is_taken[value as usize]).then_some(value)
    }

    /// Returns the number of domains with one of the pods.
    pub(super) fn domains(&self) -> usize {
        self.is_taken.iter().filter(|taken| **taken).count()
    }
}

/// Returns a term as text: what it selects, by which label, and in which namespaces unless in the pod's own.
pub(super) fn term_text(term: &PodAffinityTerm, spec: &PodSpec) -> String {
    let mut text = format!("{} by {}", selector_text(term.selector.as_ref()), term.topology_key);
    if !term.namespaces.is_empty() && *term.namespaces != [spec.namespace.clone()] {
        let names: Vec<&str> = term.namespaces.iter().map(|name| name.as_str()).collect();
        text += &format!(" in {}", names.join(","));
    }
    if let Some(selector) = &term.namespace_selector {
        text += &format!(" in namespaces with {}", selector_text(Some(selector)));
    }
    text
}

/// Returns the entries of the pod's own required anti-affinity terms, then those of the terms of placed pods that refuse
/// it, sorted by text.
pub(super) fn refusing<'a>(view: View<'a>, spec: &'a PodSpec) -> Vec<TermPods<'a>> {
    let (Some(relations), Some(terms)) = (view.state::<Relations>(), view.state::<Terms>()) else {
        return Vec::new();
    };
    let own = spec.pod_anti_affinity.required.iter();
    let code = ReasonCode::PodAntiAffinityConflict;
    let mut all: Vec<TermPods<'a>> =
        own.map(|term| TermPods::of_own(view, relations, spec, (code, term))).collect();
    let mut existing: Vec<TermPods<'a>> = Vec::new();
    terms.about(view, spec, Use::Refusing, |group| {
        cancellation::check();
        let term = &group.term.term;
        let has_it = move |pod: &Pod| {
            let required = &pod.spec.pod_anti_affinity.required;
            required.iter().any(|own| resolved(own, &pod.spec.namespace) == *term)
        };
        let column = relations.topology.column(&term.topology_key);
        let of = (ReasonCode::ExistingAntiAffinityConflict, term_text(term, spec));
        let mut of = TermPods::new(of, column, has_it);
        of.add(&group.counts);
        existing.push(of);
    });
    existing.sort_by(|a, b| a.text.cmp(&b.text));
    all.extend(existing);
    all
}

/// Returns what lists every term that refuses a node. A term of anti-affinity is fixed where a pod that stays is behind
/// it. Affinity is fixed unless the pod would be the first of its kind once the others have left.
pub(super) fn every_reason<'a>(
    view: View<'a>,
    spec: &'a PodSpec,
    prepared: &'a Prepared,
) -> Option<EveryReason<'a>> {
    let staying = staying_pods(view);
    let all: Vec<(TermPods<'a>, Vec<ValueId>)> = refusing(view, spec)
        .into_iter()
        .map(|of| {
            let staying = staying.iter().filter(|(_, record)| (of.is_meant)(&record.pod));
            let kept = staying.map(|(node, _)| of.column.of(*node)).collect();
            (of, kept)
        })
        .collect();
    let near = &spec.pod_affinity.required;
    let matches = |of: &PodSpec| {
        near.iter().all(|term| is_about(view, term, &spec.namespace, (&of.namespace, &of.labels)))
    };
    let may_be_first = matches(spec) && !staying.iter().any(|(_, record)| matches(&record.pod.spec));
    let subject: Vec<String> = near.iter().map(|term| term_text(term, spec)).collect();
    let mismatch = Reason::about(ReasonCode::PodAffinityMismatch, &*subject.join(" and "));
    Some(Box::new(move |node, reasons| {
        let is_near = prepared.is_near(node);
        if is_near != Some(true) {
            let is_fixed = is_near.is_none() || !may_be_first;
            reasons.push(NodeReason { reason: mismatch.clone(), is_fixed });
        }
        for (of, kept) in &all {
            if let Some(domain) = of.taken(node) {
                let reason = Reason::about(of.code, &*of.text);
                reasons.push(NodeReason { reason, is_fixed: kept.contains(&domain) });
            }
        }
    }))
}
