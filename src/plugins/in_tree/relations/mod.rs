//! Derived state for relations among pods: placed pods per label class and node, and the topology domains of nodes.
//!
//! PodTopologySpread and InterPodAffinity share this state. The factory of PodTopologySpread creates it; that plugin is
//! always registered, even when no profile enables it.

use std::sync::Arc;

use pellucid_cluster::derived::{Placed, Touched, is_counted};
use pellucid_cluster::{DerivedState, Given};
use pellucid_model::selector::LabelSelector;
use pellucid_model::{CowMap, Name, Node, NodeIdx, Object};

mod classes;
mod counts;
#[cfg(test)]
pub(super) mod testing;
mod text;
mod topology;

pub(super) use classes::{Class, Classes, insert, remove};
pub(super) use counts::NodeCounts;
pub(super) use text::{requirement_text, selector_text};
pub(super) use topology::{Column, HOSTNAME, NO_VALUE, Topology, ValueId, ZONE};

/// The Services of one namespace that have a selector, sorted by name.
type Services = Arc<Vec<(Name, LabelSelector)>>;

/// Holds the derived state; see the module documentation.
#[derive(Clone, Default)]
pub(super) struct Relations {
    pub(super) classes: Classes,
    pub(super) topology: Topology,
    services: CowMap<Name, Services>,
}

impl Relations {
    /// Returns the Services of a namespace that have a selector, sorted by name.
    pub(super) fn services(&self, namespace: &Name) -> &[(Name, LabelSelector)] {
        self.services.get(namespace).map_or(&[], |services| services)
    }

    fn count(&mut self, placed: &Placed<'_>, comes: bool) {
        let (node, pod) = (placed.node, placed.pod);
        if comes {
            self.classes.add(node, pod);
        } else {
            self.classes.remove(node, pod);
        }
        self.topology.count_users(&pod.spec, if comes { 1 } else { -1 });
    }

    fn set_service(&mut self, object: &Object, is_there: bool) {
        let Object::Service(service) = object else { return };
        let mut all = self.services.remove(&service.namespace).unwrap_or_default();
        let list = Arc::make_mut(&mut all);
        list.retain(|(name, _)| *name != service.name);
        if let Some(selector) = service.selector.as_ref().filter(|_| is_there) {
            let at = list.partition_point(|(name, _)| *name < service.name);
            list.insert(at, (service.name.clone(), selector.clone()));
        }
        if !list.is_empty() {
            self.services.insert(service.namespace.clone(), all);
        }
    }
}

impl DerivedState for Relations {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        if placed.counts() {
            self.count(placed, true);
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        if placed.counts() {
            self.count(placed, false);
        }
    }

    /// The pods that stand in a pod's room count in its stead, so that nothing is spread, or kept apart, twice.
    fn given_changed(&mut self, placed: &Placed<'_>, before: Option<&Given>) {
        if placed.counts() != is_counted(before) {
            self.count(placed, placed.counts());
        }
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let (before, after) = (old.map(|n| &n.labels), new.map(|n| &n.labels));
        if before.is_none() || before != after {
            self.topology.set(node, after);
        }
        Touched::Nothing
    }

    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) -> Touched {
        for (object, is_there) in [(old, false), (new, true)] {
            if let Some(object) = object {
                self.set_service(object, is_there);
            }
        }
        Touched::Nothing
    }
}
