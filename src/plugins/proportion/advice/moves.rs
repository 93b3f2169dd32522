//! Other queues for a PodGroup whose queue refuses one of its pods.
//!
//! All pods of the group go with it, those that have places too. A group that declares more than its quorum and its queue is
//! not moved, because the object that the fix shows would lose the rest.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::advice::{Change, NewObject, ObjectChange, Proposal};
use pellucid_model::gang::PodGroup;
use pellucid_model::{GangKey, Name, Object};
use serde_json::{Value, json};

use super::super::endpoints::API_GROUPS;
use super::super::queues::{POD_GROUPS, Queues};
use super::proposals::VERSIONS;

/// Cost of a move, in the points of docs/diagnostics.md.
const MOVE: u32 = 36;
/// Number of queues that are tried, those of the greatest weight, and number that are proposed.
const MOST_TRIED: usize = 16;
const MOST_MOVES: usize = 2;

/// Returns moves of a group to other queues that help. `at` is the place of its API group in the order of precedence.
pub(super) fn proposals(
    queues: &Queues,
    view: View<'_>,
    (at, key): (usize, &GangKey),
    helps: impl Fn(&Queues) -> bool,
) -> Vec<Proposal> {
    let name = (key.namespace.clone(), key.name.clone());
    let Some(Object::PodGroup(group)) = view.cluster().objects().get(POD_GROUPS[at], &name).map(Arc::as_ref)
    else {
        return Vec::new();
    };
    if !is_known_whole(group) {
        return Vec::new();
    }
    let own = queues.jobs.get(key).and_then(|job| job.queue());
    // A PodGroup waits for a Queue of its own API group.
    let has_object = |queue: &Name| queues.declared.get(queue).is_some_and(|of| of.0[at].is_some());
    let is_open =
        |queue: &&Name| Some(*queue) != own && (*queue == queues.default_queue() || has_object(queue));
    let mut others: Vec<&Name> = queues.existing.iter().filter(is_open).collect();
    others.sort_by_key(|queue| Reverse(queues.weight(queue)));
    let moved = |queue: &Name| PodGroup { queue: queue.clone(), ..group.clone() };
    let is_enough = |group: &PodGroup| {
        let mut queues = queues.clone();
        let _ = queues.move_group(group, true);
        queues.settle();
        helps(&queues)
    };
    let groups = others.into_iter().take(MOST_TRIED).map(moved).filter(is_enough);
    groups.take(MOST_MOVES).map(|group| proposal_of(at, group)).collect()
}

/// Returns whether the quorum and the queue are all that a group declares.
fn is_known_whole(group: &PodGroup) -> bool {
    let declares_more = group.min_resources.is_some() || group.priority.is_some();
    !group.deleting && group.problems.is_empty() && !declares_more && group.terms.min.is_some()
}

fn proposal_of(at: usize, group: PodGroup) -> Proposal {
    let (key, queue) = (group.key.clone(), group.queue.clone());
    let patch = json!({"spec": {"queue": queue.as_str()}});
    let command = format!(
        "kubectl -n {} patch podgroups.{} {} --type=merge -p '{patch}'",
        key.namespace, API_GROUPS[at], key.name
    );
    let text = format!("move PodGroup {key} to queue {queue}");
    let object = NewObject::Known(Arc::new(Object::PodGroup(group.clone())), manifest(at, &group));
    let change = Change::Objects(vec![ObjectChange { object, text, command }]);
    Proposal { change, text: String::new(), cost: MOVE }
}

/// Returns a PodGroup as the API server takes it.
fn manifest(at: usize, group: &PodGroup) -> Value {
    json!({
        "apiVersion": format!("{}/{}", API_GROUPS[at], VERSIONS[at]),
        "kind": "PodGroup",
        "metadata": {"namespace": group.key.namespace.as_str(), "name": group.key.name.as_str()},
        "spec": {"minMember": group.terms.min, "queue": group.queue.as_str()},
    })
}
