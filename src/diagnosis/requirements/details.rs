//! What plugins say of single nodes that refuse a pod, with the numbers of each node.
//!
//! The texts are about the state that is looked at, so they are added only to what was worked out on that state, not to
//! recorded verdicts.

use std::sync::Arc;

use pellucid_api::rest::explain::{NodeGroup, NodeNote};
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, Code, View};
use pellucid_model::{Name, NodeIdx, Now, PodSpec};
use pellucid_recording::{Group, Refusal};

use crate::explain::group_body;

/// Whom to ask about a pod, and on which state.
#[derive(Clone, Copy)]
pub(crate) struct Details<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) view: View<'a>,
    pub(crate) spec: &'a PodSpec,
    /// The time of the reader.
    pub(crate) now: Now,
}

impl Details<'_> {
    /// Returns what the plugin of a cause says of a node.
    pub(crate) fn of(&self, cause: &Cause, node: NodeIdx) -> Option<String> {
        let enabled = self.profile.filter.iter().find(|enabled| enabled.plugin.name() == cause.plugin)?;
        enabled.plugin.filter()?.detail(self.view, self.spec, cause, node, self.now)
    }

    /// Returns what plugins say of a node that fails some requirements, one text per plugin.
    pub(crate) fn of_failed<'r>(
        &self,
        failed: impl Iterator<Item = (usize, &'r Requirement)>,
        node: NodeIdx,
    ) -> Vec<String> {
        let mut causes: Vec<Cause> = Vec::new();
        for (_, requirement) in failed {
            let (plugin, reason) = (requirement.plugin, requirement.reason.clone());
            match causes.iter_mut().find(|cause| cause.plugin == plugin) {
                Some(cause) => cause.reasons.push(reason),
                None => causes.push(Cause::new(plugin, Code::Unschedulable, reason)),
            }
        }
        causes.iter().filter_map(|cause| self.of(cause, node)).collect()
    }

    /// Returns the node groups of a refusal, with what plugins say of their example nodes.
    pub(crate) fn group_bodies(&self, refusal: &Refusal) -> Vec<NodeGroup> {
        let body = |group: &Arc<Group>| NodeGroup { details: self.of_examples(group), ..group_body(group) };
        refusal.groups.iter().map(body).collect()
    }

    /// Adds what plugins say of their example nodes to the bodies of a refusal's node groups.
    pub(crate) fn add_to(&self, bodies: &mut [NodeGroup], refusal: &Refusal) {
        for (body, group) in bodies.iter_mut().zip(refusal.groups.iter()) {
            body.details = self.of_examples(group);
        }
    }

    fn of_examples(&self, group: &Group) -> Vec<NodeNote> {
        let detail = |name: &Name| {
            let text = self.of(&group.cause, self.view.cluster().find_node(name)?)?;
            Some(NodeNote { node: name.to_string(), text })
        };
        group.examples.iter().filter_map(detail).collect()
    }
}
