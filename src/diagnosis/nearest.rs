//! The nodes nearest to taking a pod, as the state is now: those whose refusals are easiest to mend.
//!
//! A cycle stops at the first plugin that refuses a node, so its largest node group is often the least
//! telling one. Here every plugin is asked about every node of a published root.

use crate::cluster::PodRecord;
use crate::cycle::Refusal;
use crate::cycle::decision::Group;
use crate::cycle::exhaustive::distances;
use crate::cycle::rows::Subject;
use crate::framework::View;
use crate::model::time::NoProbe;

use super::root::Root;

/// Finds them, as the part of a node group that they are. `None` when the pod was refused as a whole, or the state has moved on so far that no node of
/// the refusal's groups is among them.
pub(crate) fn nearest(root: &Root, record: &PodRecord, refusal: &Refusal) -> Option<Group> {
    let profile = root
        .profiles
        .iter()
        .find(|p| p.scheduler_name == record.pod.scheduler_name)
        .or(root.profiles.first())?;
    let view = View::new(&root.cluster);
    let of = Subject { profile, view, spec: &record.pod.spec, probe: &NoProbe };
    let distance = distances(&of)?;
    let refused = root.cluster.by_name().iter().filter(|n| distance[n.index()] > 0);
    let least = refused.clone().map(|n| distance[n.index()]).min()?;
    let mut rows = crate::cycle::Rows::default();
    let mut tally = vec![Default::default(); profile.plugins.len()];
    rows.sync(&of, false, &mut tally);
    rows.begin_attempt(&of, &mut tally);
    let mut best: Option<Group> = None;
    for group in refusal.groups.iter() {
        let of_group =
            refused.clone().filter(|n| distance[n.index()] == least && rows.cause(**n) == Some(&group.cause));
        let names: Vec<_> = of_group.map(|n| view.name(*n).clone()).collect();
        if names.len() > best.as_ref().map_or(0, |b| b.count) {
            let examples = names.iter().take(3).cloned().collect();
            best = Some(Group { count: names.len(), examples, ..group.clone() });
        }
    }
    best
}
