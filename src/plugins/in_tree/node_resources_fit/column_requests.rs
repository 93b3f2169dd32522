//! A pod's requests by column, and those that exceed what is free on a node.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ResourceIdx;
use pellucid_cluster::columns::{CPU, MEMORY, ResourceColumn};
use pellucid_framework::{Cause, Code, Reason, View};
use pellucid_model::pages::PAGE;
use pellucid_model::{Name, Node, NodeIdx, PodSpec};
use smallvec::SmallVec;

use super::NAME;

/// Marks a resource without a column: no node offers it, or the cluster has too many resources to keep a column for it.
pub(super) const UNKNOWN: ResourceIdx = ResourceIdx(u16::MAX);

/// Less than is free anywhere.
const UNREQUESTED: i64 = i64::MIN;

/// A pod's requests, resolved to columns.
#[derive(Debug)]
pub(super) struct ColumnRequests {
    columns: SmallVec<[(ResourceIdx, i64); 4]>,
    /// The same of CPU and memory, which hardly a pod does not request, and of the others.
    cpu: i64,
    memory: i64,
    others: SmallVec<[(ResourceIdx, i64); 2]>,
    names: Vec<Name>,
    /// Message texts for resources that nodes offer but that have no column, by index into `names`.
    left_out: SmallVec<[(usize, Name); 0]>,
}

impl ColumnRequests {
    /// Resolves the requests of a spec, without ignored resources.
    pub(super) fn of(view: View<'_>, spec: &PodSpec, ignores: impl Fn(&str) -> bool) -> Self {
        let mut requests = Self {
            columns: SmallVec::new(),
            cpu: UNREQUESTED,
            memory: UNREQUESTED,
            others: SmallVec::new(),
            names: Vec::new(),
            left_out: SmallVec::new(),
        };
        for (name, amount) in spec.requests.list.named().filter(|(name, _)| !ignores(name)) {
            if view.columns().is_left_out(&name) {
                let (offered, kept) = view.columns().numbers();
                let said = format!("{name} ({offered} are offered, {kept} are kept)");
                requests.left_out.push((requests.names.len(), Name::new(&said)));
            }
            let resource = view.columns().find(&name).unwrap_or(UNKNOWN);
            requests.columns.push((resource, amount));
            match resource {
                CPU => requests.cpu = amount,
                MEMORY => requests.memory = amount,
                _ => requests.others.push((resource, amount)),
            }
            requests.names.push(name);
        }
        requests
    }

    /// Returns whether a resource had no column. It may have one by the next call.
    pub(super) fn has_unknown(&self) -> bool {
        self.columns.iter().any(|(resource, _)| *resource == UNKNOWN)
    }

    /// Returns whether the i-th resource has no column although the node offers it.
    pub(super) fn is_left_out(&self, view: View<'_>, i: usize, node: NodeIdx) -> bool {
        let offers = |node: &Node| node.allocatable.scalar(&self.names[i]) != 0;
        self.left_out.iter().any(|(at, _)| *at == i)
            && view.cluster().node(node).is_some_and(|node| offers(node))
    }

    /// Returns the index of the first node that does not take one more pod, or has not what is requested.
    pub(super) fn first_unfit(&self, view: View<'_>, nodes: &[NodeIdx]) -> Option<usize> {
        let (all, others) = (view.columns(), &self.others[..]);
        nodes.iter().position(|node| {
            let (page, at) = (all.page(*node), node.index() % PAGE);
            let [cpu, memory, _, pods] = page.fixed();
            // Exact, because amounts in columns have a bound.
            let free = |column: &ResourceColumn| column.allocatable[at].wrapping_sub(column.requested[at]);
            let is_short = (free(pods) <= 0) | (self.cpu > free(cpu)) | (self.memory > free(memory));
            is_short || others.iter().any(|(resource, wanted)| *wanted > free(page.resource(*resource)))
        })
    }

    /// Iterates over columns and requested amounts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ResourceIdx, i64)> {
        self.columns.iter().copied()
    }

    /// Iterates over columns, names and requested amounts.
    pub(super) fn named(&self) -> impl Iterator<Item = (ResourceIdx, &Name, i64)> {
        self.columns.iter().zip(&self.names).map(|((resource, amount), name)| (*resource, name, *amount))
    }

    /// Returns the reason for the i-th resource, which a node does not offer to the extent requested.
    pub(super) fn reason(&self, i: usize, is_left_out: bool) -> Reason {
        let said = self.left_out.iter().find(|(at, _)| *at == i).filter(|_| is_left_out);
        match said {
            Some((_, said)) => Reason::about(ReasonCode::ResourceLeftOut, said.clone()),
            None => Reason::about(ReasonCode::InsufficientResource, self.names[i].clone()),
        }
    }

    /// Returns the cause for a set of insufficient resources.
    pub(super) fn cause(&self, insufficient: InsufficientResources) -> Cause {
        let mut reasons = SmallVec::new();
        if insufficient.mask & PODS_BIT != 0 {
            reasons.push(Reason::of(ReasonCode::TooManyPods));
        }
        for (i, name) in self.names.iter().enumerate() {
            if insufficient.left_out & bit(i) != 0
                && let Some((_, said)) = self.left_out.iter().find(|(at, _)| *at == i)
            {
                reasons.push(Reason::about(ReasonCode::ResourceLeftOut, said.clone()));
            } else if insufficient.mask & bit(i) != 0 {
                reasons.push(Reason::about(ReasonCode::InsufficientResource, name.clone()));
            }
        }
        let code =
            if insufficient.unresolvable { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
        Cause { plugin: NAME, code, reasons }
    }
}

const PODS_BIT: u64 = 1;

/// Returns the bit of the i-th resource. Resources beyond the 63rd share the last bit: the node is still refused, and
/// the message names all of them.
fn bit(i: usize) -> u64 {
    1 << (i + 1).min(63)
}

/// The set of requests that a node cannot satisfy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InsufficientResources {
    mask: u64,
    /// The subset of resources that the node offers but that have no column.
    left_out: u64,
    unresolvable: bool,
}

impl InsufficientResources {
    /// Records that the node accepts no more pods.
    pub(super) fn add_pods(&mut self) {
        self.mask |= PODS_BIT;
    }

    /// Records that the node offers the i-th resource, which has no column.
    pub(super) fn add_left_out(&mut self, i: usize) {
        self.left_out |= bit(i);
    }

    /// Records that the node lacks the i-th resource; `even_empty` if it would lack it without any pods.
    pub(super) fn add_resource(&mut self, i: usize, even_empty: bool) {
        self.mask |= bit(i);
        self.unresolvable |= even_empty;
    }
}
