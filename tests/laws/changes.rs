//! Laws of changes that the API server reports: the state that follows them equals one made from scratch, and a plugin
//! waits for each change that makes it accept a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::{Cluster, ClusterEvent};
use pellucid::framework::View;
use pellucid::framework::plugin::{Hint, Plugin};
use pellucid::model::{Name, Node, Object, ObjectKind, Pod, PodSpec};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::cluster::{
    World, any_node, config, empty_cluster, named_node, named_pod, node_name, object, pod, spec,
};
use crate::laws::{filter, plugins, seen};

/// A change that a watch reports; names come from a small pool.
#[derive(Clone, Debug)]
enum Change {
    Node(usize, Box<Node>),
    NodeGone(usize),
    Pod(usize, Option<usize>, Box<Pod>),
    PodGone(usize),
    Object(Object),
    ObjectGone(Object),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..6usize, any_node(0)).prop_map(|(i, node)| Change::Node(i, Box::new(node))),
        1 => (0..6usize).prop_map(Change::NodeGone),
        4 => (0..8usize, prop::option::weighted(0.7, 0..7usize), pod(0))
            .prop_map(|(i, on, pod)| Change::Pod(i, on, Box::new(pod))),
        1 => (0..8usize).prop_map(Change::PodGone),
        2 => object().prop_map(Change::Object),
        1 => object().prop_map(Change::ObjectGone),
    ]
}

/// The objects of the API server.
#[derive(Default)]
struct Held {
    nodes: BTreeMap<usize, Node>,
    pods: BTreeMap<usize, Pod>,
    objects: BTreeMap<(ObjectKind, (Name, Name)), Object>,
}

impl Held {
    /// Makes a change and applies it to a cluster. Returns the cluster's events.
    fn change(&mut self, change: Change, live: &mut Cluster) -> Vec<ClusterEvent> {
        let mut events = Vec::new();
        match change {
            Change::Node(i, node) => {
                let node = named_node(i, *node);
                live.apply_node(Arc::new(node.clone()), &mut events);
                self.nodes.insert(i, node);
            }
            Change::NodeGone(i) => {
                live.delete_node(&node_name(i), &mut events);
                self.nodes.remove(&i);
            }
            Change::Pod(i, on, pod) => {
                // A bound pod stays on its node.
                let on = self.pods.get(&i).and_then(|p| p.node_name.clone()).or(on.map(node_name));
                let pod = Pod { node_name: on, ..named_pod(&format!("p{i}"), *pod) };
                live.apply_pod(Arc::new(pod.clone()), &mut events);
                self.pods.insert(i, pod);
            }
            Change::PodGone(i) => {
                if let Some(pod) = self.pods.remove(&i) {
                    live.delete_pod(&pod.key, &mut events);
                }
            }
            Change::Object(object) => {
                live.apply_object(Arc::new(object.clone()), &mut events);
                self.objects.insert((object.kind(), object.key()), object);
            }
            Change::ObjectGone(object) => {
                live.delete_object(object.kind(), &object.key(), &mut events);
                self.objects.remove(&(object.kind(), object.key()));
            }
        }
        events
    }

    /// Restricts a change to what the API server allows: of an existing pod only labels, requests and the start of
    /// its deletion may change.
    fn as_allowed(&self, change: Change) -> Change {
        let Change::Pod(i, on, new) = change else { return change };
        let Some(known) = self.pods.get(&i) else { return Change::Pod(i, on, new) };
        let (labels, requests) = (new.spec.labels.clone(), new.spec.requests.clone());
        let spec = Arc::new(PodSpec { labels, requests, ..(*known.spec).clone() });
        Change::Pod(i, on, Box::new(Pod { deleting: known.deleting || new.deleting, spec, ..known.clone() }))
    }

    fn world(self) -> World {
        World {
            nodes: self.nodes.into_values().collect(),
            placed: self.pods.into_values().collect(),
            pending: Vec::new(),
            objects: self.objects.into_values().collect(),
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_changed_step_by_step_equals_what_is_made_from_scratch(
        changes in vec(change(), 1..30), specs in vec(spec(), 1),
    ) {
        let mut held = Held::default();
        let mut live = empty_cluster();
        let mut kept = Vec::new();
        for change in changes {
            held.change(change, &mut live);
            // Holds published snapshots while the state goes on changing.
            kept.push(live.fork());
        }
        let made = held.world();
        prop_assert_eq!(seen(&live, &specs), seen(&made.cluster(), &specs));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..config() })]

    #[test]
    fn what_makes_a_plugin_accept_a_node_is_welcome_to_it(
        changes in vec(change(), 1..20), waiting in pod(0),
    ) {
        let mut held = Held::default();
        let mut live = empty_cluster();
        let waiting = named_pod("waiting", Pod { deleting: false, ..waiting });
        live.apply_pod(Arc::new(waiting.clone()), &mut Vec::new());
        let plugins = plugins();
        for change in changes {
            let change = held.as_allowed(change);
            let before: Vec<_> = plugins.iter().map(|p| accepted(&**p, &live, &waiting)).collect();
            let text = format!("{change:?}");
            let events = held.change(change, &mut live);
            for (plugin, before) in plugins.iter().zip(before) {
                let after = accepted(&**plugin, &live, &waiting);
                // The plugin gained a node that it refused before, or a new node for a pod that it refused on some
                // node.
                let keeps_out = before.values().any(|accepts| !accepts);
                let gained = after.iter().filter(|(_, accepts)| **accepts).map(|(name, _)| name);
                let mut gained = gained.filter(|name| before.get(*name).map_or(keeps_out, |accepted| !accepted));
                let Some(node) = gained.next() else { continue };
                prop_assert!(
                    welcomes(&**plugin, &live, &waiting, &events),
                    "{} accepts {node} after {text}, which it does not wait for", plugin.name()
                );
            }
        }
    }
}

/// Returns which nodes a plugin's filter accepts for a pod.
fn accepted(plugin: &dyn Plugin, cluster: &Cluster, pod: &Pod) -> BTreeMap<Name, bool> {
    let (view, nodes) = (View::new(cluster), cluster.by_name());
    let spec = &record_of(cluster, pod).spec;
    let causes = filter(plugin, view, spec, nodes);
    nodes.iter().zip(causes).map(|(n, cause)| (view.name(*n).clone(), cause.is_none())).collect()
}

/// Returns whether one of the events makes a plugin queue a pod again.
fn welcomes(plugin: &dyn Plugin, cluster: &Cluster, pod: &Pod, events: &[ClusterEvent]) -> bool {
    let Some(hints) = plugin.hints() else { return true };
    let (view, pod) = (View::new(cluster), record_of(cluster, pod));
    let mut heard = events.iter().filter(|event| hints.events().any(event.kinds()));
    heard.any(|event| hints.hint(view, pod, event) == Hint::Queue)
}

/// Returns the pod as the state has it, with the labels that selectors read.
fn record_of<'a>(cluster: &'a Cluster, pod: &Pod) -> &'a Pod {
    let record = cluster.find_pod(&pod.key).and_then(|id| cluster.pod(id));
    &record.expect("it waits").pod
}
