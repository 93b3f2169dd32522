//! Wakes the refused units that an event could help, by asking the plugins that refused them.

use std::sync::Arc;

use pellucid_cluster::{Cluster, ClusterEvent};
use pellucid_framework::View;
use pellucid_framework::plugin::Hint;
use pellucid_framework::profile::Profile;
use pellucid_model::{NodeIdx, Now, Pod};
use pellucid_queue::{EventObject, Listening, QueueEvent, RefusedBy};

use crate::scheduler::Scheduler;

/// Returns for the queue which event kinds each plugin listens to.
pub(crate) fn listening(profiles: &[Arc<Profile>]) -> Listening {
    let kinds = |profile: &Arc<Profile>| {
        profile.plugins.iter().map(|p| p.hints().map_or(Listening::ALL, |h| h.events())).collect()
    };
    Listening::new(profiles.iter().map(kinds))
}

impl Scheduler {
    /// Asks the plugins that refused each group of units whether the event could help.
    pub(crate) fn wake(&mut self, event: &ClusterEvent, now: Now) {
        if let ClusterEvent::PodReleased { pod, node } = event {
            self.wake_nominees(pod, *node, now);
        }
        let (cluster, profiles) = (&self.cluster, &self.profiles.all);
        let view = View::new(cluster);
        let own = match event {
            ClusterEvent::PodReleased { pod, .. } | ClusterEvent::NominationEnded { pod, .. } => {
                cluster.find_pod(&pod.key).and_then(|id| self.queue.unit_of(id))
            }
            _ => None,
        };
        let object = || object(cluster, event);
        let queue_event = QueueEvent { kinds: event.kinds(), at: now.monotonic, object: &object, own };
        let mut lowest = None;
        self.queue.wake(queue_event, |group, pod, asked| {
            let Some(record) = cluster.pod(pod) else { return asked };
            let profile = &profiles[group.profile];
            let by = queueing_hints(profile, view, &record.pod, asked, event);
            if !by.is_empty() || profile.post_filter.is_empty() {
                return by;
            }
            let lowest = *lowest.get_or_insert_with(|| lowest_priority_beside(cluster, event));
            preemption_hint(profile, &record.pod, lowest)
        });
    }

    /// Asks about several events, in order.
    pub(crate) fn wake_all(&mut self, events: &[ClusterEvent], now: Now) {
        for event in events {
            self.wake(event, now);
        }
    }
}

/// Returns the plugins among `asked` whose queueing hint for the event is `Queue`.
pub(crate) fn queueing_hints(
    profile: &Profile,
    view: View<'_>,
    pod: &Pod,
    asked: RefusedBy,
    event: &ClusterEvent,
) -> RefusedBy {
    // A nomination reserves room only against pods of equal or lower priority.
    if let ClusterEvent::NominationEnded { pod: nominee, .. } = event {
        return if pod.priority <= nominee.priority { asked } else { RefusedBy::default() };
    }
    let mut by = RefusedBy::default();
    for bit in asked.iter() {
        // Bit 63 stands for plugin 63 and all after it.
        let beyond = if bit == 63 { profile.plugins.len() } else { bit + 1 };
        for plugin in profile.plugins.iter().take(beyond).skip(bit) {
            let says = plugin.hints().map_or(Hint::Queue, |h| h.hint(view, pod, event));
            if says == Hint::Queue {
                by.insert(bit);
            }
        }
    }
    by
}

/// Returns the first PostFilter plugin if preemption could help now. Freed room may be too little for a pod, yet enough
/// together with what the pod could preempt on the same node. The plugins that refused it cannot know, so profiles that
/// preempt ask here.
fn preemption_hint(profile: &Profile, pod: &Pod, lowest: Option<i32>) -> RefusedBy {
    let mut by = RefusedBy::default();
    if let Some(enabled) = profile.post_filter.first()
        && lowest.is_some_and(|lowest| lowest < pod.priority)
    {
        by.insert(enabled.index);
    }
    by
}

/// Returns the lowest priority of the pods on the node where an event freed room.
fn lowest_priority_beside(cluster: &Cluster, event: &ClusterEvent) -> Option<i32> {
    let node: NodeIdx = match event {
        ClusterEvent::PodReleased { node, .. } | ClusterEvent::PodShrunk { node, .. } => *node,
        ClusterEvent::NominationEnded { node, .. } => cluster.find_node(node)?,
        _ => return None,
    };
    cluster.node(node)?;
    let pods = cluster.slot(node).pods.iter();
    pods.filter_map(|id| cluster.pod(*id)).map(|record| record.pod.priority).min()
}

fn object(cluster: &Cluster, event: &ClusterEvent) -> EventObject {
    let pod = |id| cluster.pod(id).map_or(EventObject::Nothing, |r| EventObject::Pod(r.pod.key.clone()));
    match event {
        ClusterEvent::NodeAdded(node) | ClusterEvent::NodeUpdated { node, .. } => {
            EventObject::Node(cluster.node_name(*node).clone())
        }
        ClusterEvent::NodeRemoved(_, name) => EventObject::Node(name.clone()),
        ClusterEvent::PodBound { id, .. }
        | ClusterEvent::PodChanged { id, .. }
        | ClusterEvent::PendingAdded(id)
        | ClusterEvent::PendingUpdated { id, .. } => pod(*id),
        ClusterEvent::PodReleased { pod, .. }
        | ClusterEvent::PodShrunk { pod, .. }
        | ClusterEvent::NominationEnded { pod, .. }
        | ClusterEvent::PendingRemoved { pod, .. } => EventObject::Pod(pod.key.clone()),
        ClusterEvent::ObjectChanged { old, new } => {
            new.as_ref().or(old.as_ref()).map_or(EventObject::Nothing, |object| {
                let (namespace, name) = object.key();
                EventObject::Other(object.kind().as_str(), namespace, name)
            })
        }
        ClusterEvent::CustomChanged { old, new } => {
            new.as_ref().or(old.as_ref()).map_or(EventObject::Nothing, |object| {
                EventObject::Other(object.kind.0.qualified, object.namespace.clone(), object.name.clone())
            })
        }
        ClusterEvent::PluginStateChanged { .. } | ClusterEvent::PodForgotten { .. } => EventObject::Nothing,
    }
}
