//! Finds which gang holds what another one waits for.
//!
//! A gang waits for a holder when the holder's waiting or permitted members use a resource that the waiter's failed
//! member lacks, on nodes that the member could use otherwise. Bound members do not interfere: they run. The result
//! is a pure function of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::gang_explain::{Interference, InterferenceCycle, InterferenceEdge};
use pellucid_cluster::gangs::{Gang, LastTry};
use pellucid_cluster::{PodRecord, ShapeId, Stage};
use pellucid_cycle::attempt::node_result_cache::CycleContext;
use pellucid_cycle::{NodeResultCache, Snapshot};
use pellucid_framework::{Code, View};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, Name, NodeIdx, Now, cancellation};
use pellucid_recording::rfc3339;

use super::cycles::cycles;
use super::explain::refusal_of_group;
use super::retry::turn;
use super::status::{GangStatus, held, text_of};
use crate::meta::of_snapshot;

/// Largest number of edges listed. Cycles are computed from all edges.
const MAX_EDGES: usize = 1000;
/// Largest number of nodes named per edge.
const MAX_NODES: usize = 20;

/// Returns the edges and cycles between all gangs, and the gang that is planned next.
pub(crate) fn interference(snapshot: &Snapshot, now: Now) -> Interference {
    let (holders, mut lacks) = (holders(snapshot), Lacks::default());
    let gangs = snapshot.cluster.gangs().all().into_values();
    let mut edges: Vec<InterferenceEdge> =
        gangs.flat_map(|gang| edges_of(snapshot, gang, &holders, &mut lacks, now)).collect();
    edges.sort_by(|a, b| (&a.holder, &a.waiter).cmp(&(&b.holder, &b.waiter)));
    let cycles = cycles_of(snapshot, &edges, now);
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = edges.len() > MAX_EDGES;
    edges.truncate(MAX_EDGES);
    Interference { meta, edges, cycles, turn: turn(snapshot, now) }
}

/// Returns the edges to the gangs that hold what one gang waits for.
pub(super) fn edges_to(snapshot: &Snapshot, waiter: &GangKey, now: Now) -> Vec<InterferenceEdge> {
    let Some(gang) = snapshot.cluster.gangs().get(waiter) else { return Vec::new() };
    edges_of(snapshot, gang, &holders(snapshot), &mut Lacks::default(), now)
}

/// A gang whose members hold places without running.
struct Holder<'r> {
    gang: &'r Gang,
    pods: Vec<(NodeIdx, &'r PodRecord, Option<Now>)>,
}

fn holders(snapshot: &Snapshot) -> Vec<Holder<'_>> {
    let holding = snapshot.cluster.gangs().all().into_values();
    let holding = holding.filter(|g| g.counts.waiting + g.counts.permitted > 0);
    let holder = |gang: &'_ Arc<Gang>| -> Vec<_> {
        let records = gang.members.iter().filter_map(|(id, m)| Some((snapshot.cluster.pod(*id)?, m.since)));
        let held = records.filter(|(record, _)| record.stage.is_assumed());
        held.filter_map(|(record, since)| Some((record.node?, record, since))).collect()
    };
    holding.map(|gang| Holder { gang, pods: holder(gang) }).collect()
}

/// Resources that members lack, per node, by profile and shape. Members of equal shape lack the same.
type Lacks = FxHashMap<(usize, ShapeId), FxHashMap<NodeIdx, Vec<Name>>>;

/// Returns the nodes that a pod could use if they had room, each with the resources that it lacks there.
fn lacks_of(snapshot: &Snapshot, profile: usize, record: &PodRecord) -> FxHashMap<NodeIdx, Vec<Name>> {
    let Some(profile) = snapshot.profiles.get(profile) else { return FxHashMap::default() };
    let view = View::new(&snapshot.cluster);
    let ctx = CycleContext::new(profile, view, &record.pod.spec);
    let mut rows = NodeResultCache::default();
    let mut tally = vec![Default::default(); profile.plugins.len()];
    rows.run_filters(&ctx, false, &mut tally);
    rows.run_global_filters(&ctx, &mut tally);
    let mut lacks = FxHashMap::default();
    for node in view.nodes() {
        let Some(cause) = rows.cause(*node).filter(|cause| cause.code == Code::Unschedulable) else {
            continue;
        };
        let lacking = cause.reasons.iter().filter_map(|reason| match reason.code {
            ReasonCode::InsufficientResource => reason.subject.clone(),
            ReasonCode::TooManyPods => Some("pods".into()),
            _ => None,
        });
        let lacking: Vec<Name> = lacking.collect();
        if !lacking.is_empty() {
            lacks.insert(*node, lacking);
        }
    }
    lacks
}

/// Returns the member of a gang that found no room: the root cause of its last attempt if still pending, else the
/// first failed member by name.
fn failed_member<'r>(snapshot: &'r Snapshot, gang: &Gang) -> Option<&'r PodRecord> {
    let verdict = snapshot.gang_verdicts.get(&gang.key)?;
    let (named, _) = refusal_of_group(&verdict.outcome)?.root_cause.as_ref()?;
    let is_ours = |r: &&PodRecord| {
        r.stage == Stage::Pending && r.pod.gang.as_ref().is_some_and(|mark| mark.gang == gang.key)
    };
    let named = snapshot.find_pod(named).map(|(_, record)| record);
    named.filter(is_ours).or_else(|| {
        let failed = gang.members.iter().filter(|(_, m)| m.last == LastTry::Failed);
        failed.filter_map(|(id, _)| snapshot.cluster.pod(*id)).filter(is_ours).min_by_key(|r| &r.pod.key)
    })
}

fn edges_of(
    snapshot: &Snapshot,
    waiter: &Gang,
    holders: &[Holder<'_>],
    known: &mut Lacks,
    now: Now,
) -> Vec<InterferenceEdge> {
    if holders.is_empty() || waiter.is_satisfied() {
        return Vec::new();
    }
    let Some(record) = failed_member(snapshot, waiter) else { return Vec::new() };
    let profile = snapshot.profiles.iter().position(|p| p.scheduler_name == record.pod.scheduler_name);
    let Some(profile) = profile else { return Vec::new() };
    let lacks = &*known.entry((profile, record.shape)).or_insert_with(|| lacks_of(snapshot, profile, record));
    let group = snapshot.cluster.gangs().group_of(&waiter.key);
    let others = holders.iter().filter(|h| group.binary_search(&h.gang.key).is_err());
    others.filter_map(|holder| edge(snapshot, waiter, record, holder, lacks, now)).collect()
}

fn amount_of(record: &PodRecord, resource: &Name) -> i64 {
    match &**resource {
        "pods" => 1,
        _ => record.pod.spec.requests.list.named().find(|(n, _)| n == resource).map_or(0, |(_, v)| v),
    }
}

fn edge(
    snapshot: &Snapshot,
    waiter: &Gang,
    failed: &PodRecord,
    holder: &Holder<'_>,
    lacks: &FxHashMap<NodeIdx, Vec<Name>>,
    now: Now,
) -> Option<InterferenceEdge> {
    let mut amounts: BTreeMap<String, i64> = BTreeMap::new();
    cancellation::check();
    let (mut nodes, mut there, mut since) = (Vec::new(), Vec::new(), None);
    for (node, record, at) in &holder.pods {
        let lacking = lacks.get(node).into_iter().flatten();
        let taken: Vec<_> = lacking.map(|r| (r, amount_of(record, r))).filter(|(_, n)| *n > 0).collect();
        if taken.is_empty() {
            continue;
        }
        for (resource, amount) in taken {
            *amounts.entry(resource.to_string()).or_default() += amount;
        }
        nodes.push(snapshot.cluster.node_name(*node).to_string());
        there.push(*record);
        since = since.into_iter().chain(at.map(|at| at.monotonic)).min();
    }
    if there.is_empty() {
        return None;
    }
    nodes.sort();
    nodes.dedup();
    let node_count = nodes.len();
    nodes.truncate(MAX_NODES);
    let all = held(there.into_iter());
    Some(InterferenceEdge {
        holder: holder.gang.key.to_string(),
        waiter: waiter.key.to_string(),
        resources: amounts.keys().cloned().collect(),
        held_text: text_of(&amounts),
        held: amounts,
        held_cpu_milli: all.cpu_milli,
        held_memory_bytes: all.memory_bytes,
        holder_pods: all.pods,
        waiter_pod: failed.pod.key.to_string(),
        node_count,
        nodes,
        since: since.map(|at| rfc3339(now.wall_at(at))),
    })
}

/// Returns the sets of gangs that wait for each other. The gangs of a group wait as one.
fn cycles_of(snapshot: &Snapshot, edges: &[InterferenceEdge], now: Now) -> Vec<InterferenceCycle> {
    let gangs = snapshot.cluster.gangs();
    let keys: BTreeMap<String, &GangKey> = gangs.all().keys().map(|key| (key.to_string(), *key)).collect();
    let mut group: BTreeMap<&str, String> = BTreeMap::new();
    for name in edges.iter().flat_map(|edge| [&edge.holder, &edge.waiter]) {
        let first = || keys.get(name).and_then(|key| gangs.group_of(key).first().map(ToString::to_string));
        group.entry(name).or_insert_with(|| first().unwrap_or_else(|| name.clone()));
    }
    let pairs = edges.iter().map(|e| (group[&*e.holder].as_str(), group[&*e.waiter].as_str()));
    let of_set = |set: Vec<&str>| {
        let members = group.iter().filter(|(_, first)| set.contains(&first.as_str()));
        let named: Vec<String> = members.map(|(name, _)| (*name).to_owned()).collect();
        let statuses = named.iter().filter_map(|name| GangStatus::of(snapshot, keys.get(name)?));
        let breaks_at = statuses.filter_map(|s| s.wait_ends()).min();
        InterferenceCycle { gangs: named, breaks_at: breaks_at.map(|at| rfc3339(now.wall_at(at))) }
    };
    cycles(pairs.collect()).into_iter().map(of_set).collect()
}
