//! `/apis/v1/explain/gangs`: every gang in a line, and which of them wait for each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::rest::gang_explain::{GangLine, GangList, InterferenceCycle};
use pellucid_cluster::gangs::Gang;
use pellucid_cycle::Snapshot;
use pellucid_framework::list::{Attribute, Facts, List};
use pellucid_model::{Now, Pod, cancellation};
use pellucid_recording::rfc3339;

use super::gang_state::{gang_state, planned_state};
use super::interference::interference;
use super::outlook::as_it_stands;
use super::status::GangStatus;
use crate::facts::{created, names_of};
use crate::meta::of_snapshot;
use crate::owner::owner;

/// What gangs are filtered and sorted by.
pub(crate) const OF_GANGS: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Reason,
    Attribute::Owner,
    Attribute::Node,
    Attribute::Stage,
    Attribute::Age,
    Attribute::Priority,
];

/// Number of controllers that a line names.
const MOST_OWNERS: usize = 3;

/// Lists gangs by namespace and name, unless the request sorts otherwise.
pub(crate) fn list(snapshot: &Snapshot, list: &List, now: Now) -> GangList {
    let page = list.page(snapshot.cluster.gangs().all(), |(_, gang)| facts(snapshot, gang, list, now));
    let deadlocks = interference(snapshot, now).cycles;
    let gangs = page.items.iter().map(|(_, gang)| line(snapshot, gang, &deadlocks, now)).collect();
    GangList { meta: page.meta(of_snapshot(snapshot, now)), count: page.total, deadlocks, gangs }
}

fn pods<'s>(snapshot: &'s Snapshot, gang: &'s Gang) -> impl Iterator<Item = &'s Arc<Pod>> + Clone {
    gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id)).map(|record| &record.pod)
}

/// Returns what the list knows of a gang. Its stage is its state, its owner that of its first member by name.
fn facts<'s>(snapshot: &'s Snapshot, gang: &'s Gang, list: &List, now: Now) -> Facts<'s> {
    let (namespace, name) = names_of(&gang.key);
    let mut facts = Facts {
        namespace,
        name,
        created: pods(snapshot, gang).map(|pod| created(pod)).min(),
        priority: pods(snapshot, gang).map(|pod| pod.priority).max(),
        ..Facts::default()
    };
    if list.reads(Attribute::Owner) {
        let first = pods(snapshot, gang).min_by_key(|pod| &pod.key);
        let owner = first.and_then(|pod| owner(&snapshot.cluster, pod));
        facts.owner = owner.map(|owner| (owner.kind, owner.name));
    }
    if list.reads(Attribute::Node) {
        let nodes = gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id)?.node);
        facts.nodes = nodes.map(|node| snapshot.cluster.node_name(node).as_str()).collect();
        facts.nodes.sort_unstable();
    }
    if list.reads(Attribute::Stage) || list.reads(Attribute::Reason) {
        let state = gang_state(snapshot, &GangStatus::of_gang(snapshot, gang), now);
        (facts.stage, facts.reasons) = (state.name, vec![state.verdict.code.into()]);
    }
    facts
}

fn line(snapshot: &Snapshot, gang: &Gang, deadlocks: &[InterferenceCycle], now: Now) -> GangLine {
    cancellation::check();
    let status = GangStatus::of_gang(snapshot, gang);
    let look = as_it_stands(snapshot, &gang.key, now);
    let state = planned_state(snapshot, &status, look.as_deref(), now);
    let key = gang.key.to_string();
    let owners: BTreeSet<String> = pods(snapshot, gang)
        .filter_map(|pod| owner(&snapshot.cluster, pod))
        .map(|owner| format!("{}/{}", owner.kind, owner.name))
        .collect();
    let deadlock = deadlocks.iter().find(|cycle| cycle.gangs.contains(&key));
    GangLine {
        namespace: gang.key.namespace.to_string(),
        name: gang.key.name.to_string(),
        state: state.name.into(),
        dialect: gang.definition.dialect.as_str().into(),
        mode: gang.definition.mode.as_str().into(),
        min: gang.definition.min,
        counts: status.counts,
        priority: pods(snapshot, gang).map(|pod| pod.priority).max(),
        created_at: pods(snapshot, gang).map(|pod| created(pod)).min().map(rfc3339),
        owners: owners.into_iter().take(MOST_OWNERS).collect(),
        code: state.verdict.code,
        message: state.verdict.message,
        remedy: state.verdict.remedy,
        outlook: look.map(|look| look.body.code.clone()).unwrap_or_default(),
        wait_ends: status.wait_ends().map(|at| rfc3339(now.wall_at(at))),
        deadlock: deadlock.map(|cycle| cycle.gangs.clone()).unwrap_or_default(),
    }
}
