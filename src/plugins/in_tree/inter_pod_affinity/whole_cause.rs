//! Every term that refuses a node, with the placed pods behind it.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::whole_cause::staying_on;
use pellucid_framework::{EveryReason, NodeReason, Reason, View};
use pellucid_model::collections::FxHashMap;
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
    /// Nodes with some of these pods, and how many; a node may occur several times.
    pub(super) on: Vec<(NodeIdx, u32)>,
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
        Self { code, text, column, on: Vec::new(), is_taken, is_meant: Box::new(is_meant) }
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
            self.on.push((node, pods));
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

    /// Returns the nodes of a domain that have some of these pods, ascending, each once.
    pub(super) fn nodes_in(&self, domain: ValueId) -> Vec<NodeIdx> {
        let nodes = self.on.iter().map(|(node, _)| *node);
        let mut nodes: Vec<NodeIdx> = nodes.filter(|node| self.column.of(*node) == domain).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns whether one of these pods in a domain stays.
    fn has_staying(&self, view: View<'_>, domain: ValueId) -> bool {
        let mut nodes = self.nodes_in(domain).into_iter();
        nodes.any(|node| staying_on(view, node).any(|record| (self.is_meant)(&record.pod)))
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
    let all: Vec<Refusing<'a>> = refusing(view, spec).into_iter().map(Refusing::new).collect();
    let near = &spec.pod_affinity.required;
    let subject: Vec<String> = near.iter().map(|term| term_text(term, spec)).collect();
    let mismatch = Rc::new(Reason::about(ReasonCode::PodAffinityMismatch, &*subject.join(" and ")));
    let may_be_first = OnceCell::new();
    Some(Box::new(move |node, reasons| {
        let is_near = prepared.is_near(node);
        if is_near != Some(true) {
            let may_be_first = || *may_be_first.get_or_init(|| is_first_alone(view, spec));
            let is_fixed = is_near.is_none() || !may_be_first();
            reasons.push(NodeReason { reason: mismatch.clone(), is_fixed });
        }
        reasons.extend(all.iter().filter_map(|term| term.on(view, node)));
    }))
}

/// A term of anti-affinity, and what is known of its domains so far.
struct Refusing<'a> {
    of: TermPods<'a>,
    reason: Rc<Reason>,
    /// Whether a pod that stays is in a domain.
    staying: RefCell<FxHashMap<ValueId, bool>>,
}

impl<'a> Refusing<'a> {
    fn new(of: TermPods<'a>) -> Self {
        let reason = Rc::new(Reason::about(of.code, &*of.text));
        Self { of, reason, staying: RefCell::default() }
    }

    /// Returns the reason if the term refuses a node.
    fn on(&self, view: View<'_>, node: NodeIdx) -> Option<NodeReason> {
        let domain = self.of.taken(node)?;
        let mut known = self.staying.borrow_mut();
        let is_fixed = *known.entry(domain).or_insert_with(|| self.of.has_staying(view, domain));
        Some(NodeReason { reason: self.reason.clone(), is_fixed })
    }
}

/// Returns whether the pod matches its own required affinity and no pod that stays does, so that it would be the first
/// of its kind.
fn is_first_alone(view: View<'_>, spec: &PodSpec) -> bool {
    let near = &spec.pod_affinity.required;
    let matches = |of: &PodSpec| {
        near.iter().all(|term| is_about(view, term, &spec.namespace, (&of.namespace, &of.labels)))
    };
    let (Some(relations), Some(first)) = (view.state::<Relations>(), near.first()) else { return true };
    if !matches(spec) {
        return false;
    }
    let candidates = TermPods::of_own(view, relations, spec, (ReasonCode::PodAffinityMismatch, first));
    let mut nodes = candidates.on.iter().map(|(node, _)| *node);
    !nodes.any(|node| staying_on(view, node).any(|record| matches(&record.pod.spec)))
}
