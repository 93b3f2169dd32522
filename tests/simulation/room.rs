//! What pods take and nodes offer, added up with arithmetic of its own.

use std::collections::BTreeMap;

use pellucid::model::requests::ResourceList;
use pellucid::model::{Name, Node, Pod};

/// Amounts by resource.
pub(crate) type Amounts = BTreeMap<Name, i64>;

fn amounts(list: &ResourceList, pods: i64) -> Amounts {
    let fixed = [
        ("cpu", list.milli_cpu),
        ("memory", list.memory),
        ("ephemeral-storage", list.ephemeral_storage),
        ("pods", pods),
    ];
    let fixed = fixed.into_iter().map(|(name, amount)| (Name::new(name), amount));
    fixed.chain(list.scalars.iter().cloned()).filter(|(_, amount)| *amount != 0).collect()
}

/// What one pod takes.
pub(crate) fn taken_by(pod: &Pod) -> Amounts {
    amounts(&pod.spec.requests.list, 1)
}

/// What a node offers.
pub(crate) fn offered_by(node: &Node) -> Amounts {
    amounts(&node.allocatable, node.allocatable.pods)
}

/// What pods take together.
pub(crate) fn taken<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Amounts {
    let mut sum = Amounts::new();
    for pod in pods {
        for (name, amount) in taken_by(pod) {
            *sum.entry(name).or_default() += amount;
        }
    }
    sum
}

/// Returns a resource, among those in `of`, of which `sum` is more than the node offers.
pub(crate) fn exceeded(node: &Node, sum: &Amounts, of: &Amounts) -> Option<String> {
    let offered = offered_by(node);
    of.keys().find_map(|name| {
        let (have, want) = (offered.get(name).copied().unwrap_or(0), sum.get(name).copied().unwrap_or(0));
        (want > have).then(|| format!("{want} of {have} {name} on {}", node.name))
    })
}

/// Returns a resource of which pods take more than their node offers.
pub(crate) fn overcommitted(node: &Node, pods: &[&Pod]) -> Option<String> {
    let sum = taken(pods.iter().copied());
    exceeded(node, &sum, &sum)
}

/// Whether two of the pods want one host port. All ports here are of one protocol and address.
pub(crate) fn share_port(pods: &[&Pod]) -> bool {
    let mut ports: Vec<u16> = pods.iter().flat_map(|p| p.spec.host_ports.iter().map(|h| h.port)).collect();
    ports.sort_unstable();
    ports.windows(2).any(|two| two[0] == two[1])
}
