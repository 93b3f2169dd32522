//! What a pod requires and nodes do not have, term by term: the plugins that refuse nodes are asked which of the pod's
//! terms refuse, how many nodes each alone leaves, and what is there instead.

use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cycle::Snapshot;
use pellucid_framework::View;
use pellucid_model::{NodeIdx, PodId, cancellation};

use crate::requirements::nearest::Near;
use crate::requirements::{PodRequirements, ask};

/// Largest number of requirements in an answer.
const MOST: usize = 32;

/// Describes what nodes do not fulfil, for the plugins of the nearest nodes first. `order` has the nodes that refuse the
/// pod, the nearest first. Returns also whether there was more.
pub(crate) fn of(asked: &PodRequirements<'_>, order: &[Near]) -> (Vec<RequirementDetail>, bool) {
    let mut plugins: Vec<&str> = Vec::new();
    let mut seen = 0u64;
    for near in order.iter().filter(|near| near.mask != 0) {
        if near.mask & !seen != 0 {
            for (_, requirement) in asked.masks.requirements(near.mask & !seen) {
                if !plugins.contains(&requirement.plugin) {
                    plugins.push(requirement.plugin);
                }
            }
            seen |= near.mask;
        }
    }
    let mut all = Vec::new();
    for plugin in plugins {
        let of_plugin = asked.masks.requirements(u64::MAX).filter(|(_, r)| r.plugin == plugin);
        let bits = of_plugin.fold(0, |bits, (bit, _)| bits | 1 << bit);
        let refused: Vec<NodeIdx> = asked
            .cluster
            .by_name()
            .iter()
            .copied()
            .filter(|node| asked.masks.of(*node) & bits != 0)
            .collect();
        all.extend(of_plugin_on(asked, plugin, &refused));
    }
    let is_cut = all.len() > MOST || all.iter().any(|of| of.truncated);
    all.truncate(MOST);
    (all, is_cut)
}

/// Describes why a pod is refused as a whole.
pub(crate) fn of_whole(snapshot: &Snapshot, id: PodId) -> Vec<RequirementDetail> {
    let Some(asked) = ask(snapshot, id) else { return Vec::new() };
    let Some(cause) = &asked.masks.pod else { return Vec::new() };
    let mut all = of_plugin_on(&asked, cause.plugin, asked.cluster.by_name());
    all.truncate(MOST);
    all
}

fn of_plugin_on(asked: &PodRequirements<'_>, plugin: &str, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    cancellation::check();
    let enabled = asked.profile.filter.iter().find(|enabled| enabled.plugin.name() == plugin);
    let filter = enabled.and_then(|enabled| enabled.plugin.filter());
    let pod = &asked.record.pod;
    let (view, spec) = (View::new(&asked.cluster).for_pod(pod), &pod.spec);
    filter.map(|filter| filter.requirements(view, spec, refused)).unwrap_or_default()
}
