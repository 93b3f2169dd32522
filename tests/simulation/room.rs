//! Sums of what pods request and nodes offer, independent of the scheduler's code.

use std::collections::BTreeMap;

use pellucid::model::requests::ResourceList;
use pellucid::model::{Name, Node, Pod};

/// The resources that every node has.
const FIXED: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// Amounts by resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amounts {
    fixed: [i64; 4],
    scalars: BTreeMap<Name, i64>,
}

impl Amounts {
    fn of(list: &ResourceList, pods: i64) -> Self {
        let fixed = [list.milli_cpu, list.memory, list.ephemeral_storage, pods];
        Self { fixed, scalars: list.scalars.iter().cloned().collect() }
    }

    fn add(&mut self, pod: &Pod) {
        let list = &pod.spec.requests.list;
        let amounts = [list.milli_cpu, list.memory, list.ephemeral_storage, 1];
        for (sum, amount) in self.fixed.iter_mut().zip(amounts) {
            *sum += amount;
        }
        for (name, amount) in &list.scalars {
            *self.scalars.entry(name.clone()).or_default() += amount;
        }
    }

    pub(crate) fn get(&self, name: &Name) -> i64 {
        match FIXED.iter().position(|fixed| *fixed == &**name) {
            Some(at) => self.fixed[at],
            None => self.scalars.get(name).copied().unwrap_or(0),
        }
    }
}

/// Returns the requests of a pod.
pub(crate) fn taken_by(pod: &Pod) -> Amounts {
    taken([pod])
}

/// Returns the requests of pods together.
pub(crate) fn taken<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Amounts {
    let mut sum = Amounts::default();
    pods.into_iter().for_each(|pod| sum.add(pod));
    sum
}

/// Returns a resource that `of` requests and of which `sum` exceeds what the node offers.
pub(crate) fn exceeded(node: &Node, sum: &Amounts, of: &Amounts) -> Option<String> {
    let offered = Amounts::of(&node.allocatable, node.allocatable.pods);
    let fixed =
        FIXED.iter().enumerate().map(|(i, name)| (*name, of.fixed[i], sum.fixed[i], offered.fixed[i]));
    let scalars = of.scalars.iter().map(|(name, of)| (&**name, *of, sum.get(name), offered.get(name)));
    fixed
        .chain(scalars)
        .find(|(_, of, want, have)| *of != 0 && want > have)
        .map(|(name, _, want, have)| format!("{want} of {have} {name} on {}", node.name))
}

/// Returns a resource of which the pods request more than their node offers.
pub(crate) fn overcommitted(node: &Node, pods: &[&Pod]) -> Option<String> {
    let sum = taken(pods.iter().copied());
    exceeded(node, &sum, &sum)
}

/// Returns whether a pod requests a host port of another one. All ports here have one protocol and address.
pub(crate) fn wants_port_of(pod: &Pod, other: &Pod) -> bool {
    let theirs = &other.spec.host_ports;
    pod.uid != other.uid && pod.spec.host_ports.iter().any(|h| theirs.iter().any(|t| t.port == h.port))
}

/// Returns whether two of the pods request the same host port.
pub(crate) fn share_port(pods: &[&Pod]) -> bool {
    pods.iter().any(|a| pods.iter().any(|b| wants_port_of(a, b)))
}
