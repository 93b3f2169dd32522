//! Whether one domain of a topology key, such as a zone or a rack, has places for all members that a gang's quorum needs.
//!
//! Each domain is tried: the group is planned on a copy of the state in which every pending member of the gang has the
//! domain in its `nodeSelector`. Anybody can do the same to see whether the numbers are true.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::nodes::Amounts;
use pellucid_api::rest::topology::{BestDomain, GangTopology, TopologyDomain, TopologyFit, TopologyVerdict};
use pellucid_cluster::{Cluster, ResourceIdx};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Name, Node, NodeIdx, Now, Pod, PodSpec, cancellation};

use super::gang_state::{block_of, gang_state};
use super::outlook::Look;
use super::status::GangStatus;
use crate::meta::of_snapshot;

/// Largest number of domains of a key that are planned and listed.
const MOST_DOMAINS: usize = 100;
/// Largest number of keys that are looked at.
const MOST_KEYS: usize = 4;
/// The keys for members whose terms name none.
const DEFAULT_KEYS: [&str; 2] = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"];

/// A topology key, and why it is looked at.
type Key = (Name, &'static str);

/// Reports the domains of the keys that matter to a gang, or of one key. Fails when the gang is unknown.
pub(crate) fn of_gang(
    snapshot: &Snapshot,
    key: &GangKey,
    asked: Option<&str>,
    now: Now,
) -> Result<GangTopology, ReadError> {
    let status = super::find(snapshot, key)?;
    let mut body = GangTopology {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        required: status.gang.need(),
        ..GangTopology::default()
    };
    let members = pending(snapshot, &status);
    let mut keys = asked.map_or_else(|| keys_of(&members), |key| vec![(key.into(), "asked")]);
    body.meta.truncated = keys.len() > MOST_KEYS;
    keys.truncate(MOST_KEYS);
    let look = Look::at(snapshot, key, now).filter(|_| block_of(snapshot, key).is_none());
    let mut fits = match &look {
        Some(look) => {
            let survey = Survey { look, status: &status, members, required: body.required };
            body.slots_now = Some(look.slots(&look.plan(Simulation::of(snapshot, now), false)));
            keys.iter().map(|key| survey.fit(key)).collect()
        }
        None => vec![not_planned(snapshot, &status, &keys, now)],
    };
    body.meta.truncated |= fits.iter().any(|fit| look.is_some() && fit.domain_count > fit.domains.len());
    body.first = if fits.is_empty() { TopologyFit::default() } else { fits.remove(0) };
    body.others = fits;
    Ok(body)
}

/// Returns the pending members of a gang, by name.
fn pending<'s>(snapshot: &'s Snapshot, status: &GangStatus<'s>) -> Vec<&'s Arc<Pod>> {
    let records = status.gang.members.keys().filter_map(|id| snapshot.cluster.pod(*id));
    let mut pods: Vec<&Arc<Pod>> = records.filter(|r| r.node.is_none()).map(|r| &r.pod).collect();
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods
}

/// Returns the keys of the terms that members must fulfil, those that pull together first.
fn keys_of(members: &[&Arc<Pod>]) -> Vec<Key> {
    let affinity = members.iter().flat_map(|pod| pod.spec.pod_affinity.required.iter());
    let anti = members.iter().flat_map(|pod| pod.spec.pod_anti_affinity.required.iter());
    let spread = members.iter().flat_map(|pod| pod.spec.spread.iter()).filter(|spread| spread.is_hard);
    let named = affinity
        .map(|term| (&term.topology_key, "podAffinity"))
        .chain(spread.map(|spread| (&spread.topology_key, "topologySpread")))
        .chain(anti.map(|term| (&term.topology_key, "podAntiAffinity")));
    let mut keys: Vec<Key> = Vec::new();
    for (key, origin) in named {
        if !keys.iter().any(|(known, _)| known == key) {
            keys.push((key.clone(), origin));
        }
    }
    if keys.is_empty() {
        keys.extend(DEFAULT_KEYS.map(|key| (key.into(), "default")));
    }
    keys
}

/// Returns the answer about a gang that needs no places or cannot be planned: its own verdict.
fn not_planned(snapshot: &Snapshot, status: &GangStatus<'_>, keys: &[Key], now: Now) -> TopologyFit {
    let said = gang_state(snapshot, status, now).verdict;
    let (key, origin) = keys.first().map(|(key, origin)| (key.to_string(), *origin)).unwrap_or_default();
    TopologyFit {
        verdict: TopologyVerdict { code: said.code, message: said.message },
        origin: origin.into(),
        key,
        ..TopologyFit::default()
    }
}

/// A gang whose members are planned domain by domain.
struct Survey<'a, 's> {
    look: &'a Look<'s>,
    status: &'a GangStatus<'s>,
    members: Vec<&'s Arc<Pod>>,
    required: u32,
}

impl Survey<'_, '_> {
    /// Plans the gang in each domain of a key.
    fn fit(&self, (key, origin): &Key) -> TopologyFit {
        let (mut domains, nodes_without) = self.domains(key);
        let domain_count = domains.len();
        domains.sort_by_cached_key(|domain| Reverse(domain.free.get("cpu").copied().unwrap_or_default()));
        domains.truncate(MOST_DOMAINS);
        let mut is_cut = domain_count > domains.len();
        for domain in &mut domains {
            cancellation::check();
            let value = Name::new(&domain.value);
            let edits: Vec<Edit> = self.members.iter().map(|pod| bound_to(pod, key, &value)).collect();
            match self.look.plan_with(&edits) {
                Some(plan) => {
                    domain.slots = self.look.slots(&plan);
                    is_cut |= self.look.is_cut(&plan);
                }
                None => is_cut = true,
            }
        }
        domains.sort_by(|a, b| (b.slots, &a.value).cmp(&(a.slots, &b.value)));
        let best = domains.first().map(|first| BestDomain {
            domain: first.value.clone(),
            slots: first.slots,
            missing: self.required.saturating_sub(first.slots),
        });
        TopologyFit {
            key: key.to_string(),
            origin: (*origin).into(),
            verdict: self.verdict(key, &domains, best.as_ref(), is_cut),
            best,
            domain_count,
            domains,
            nodes_without,
        }
    }

    /// Returns the domains of a key without their slots, by value, and the number of nodes that are in none.
    fn domains(&self, key: &Name) -> (Vec<TopologyDomain>, usize) {
        let cluster = &self.look.snapshot.cluster;
        let (mut domains, mut without) = (BTreeMap::<Name, TopologyDomain>::new(), 0);
        let nodes = cluster.by_name().iter().filter_map(|idx| Some((*idx, cluster.node(*idx)?)));
        for (idx, node) in nodes {
            cancellation::check();
            let Some(value) = node.labels.get(key) else {
                without += 1;
                continue;
            };
            let domain = domains.entry(value.clone()).or_default();
            domain.nodes += 1;
            add_free(&mut domain.free, cluster, idx);
        }
        for node in self.placed().filter_map(|idx| cluster.node(idx)) {
            let value = |node: &Node| node.labels.get(key).cloned();
            if let Some(domain) = value(node).and_then(|value| domains.get_mut(&value)) {
                domain.members += 1;
            }
        }
        let named =
            |(value, domain): (Name, TopologyDomain)| TopologyDomain { value: value.to_string(), ..domain };
        (domains.into_iter().map(named).collect(), without)
    }

    /// Iterates over the nodes of the placed members.
    fn placed(&self) -> impl Iterator<Item = NodeIdx> {
        let cluster = &self.look.snapshot.cluster;
        self.status.gang.members.keys().filter_map(|id| cluster.pod(*id)?.node)
    }

    fn verdict(
        &self,
        key: &Name,
        domains: &[TopologyDomain],
        best: Option<&BestDomain>,
        is_cut: bool,
    ) -> TopologyVerdict {
        let required = self.required;
        let total: u64 = domains.iter().map(|domain| u64::from(domain.slots)).sum();
        let condition = format!("if all required members ({required}) had to be in one domain of {key}");
        let Some(best) = best else {
            return said("TopologyShort", format!("{condition}: no node has that label"));
        };
        let (name, slots, missing) = (&best.domain, best.slots, best.missing);
        if missing == 0 {
            return said("TopologyFits", format!("{condition}: {name} has places for all of them"));
        }
        let most = match slots {
            0 => format!("{condition}: none has a place for any of them"),
            _ => format!("{condition}: {name} has the most places, {slots}, {missing} too few"),
        };
        let n = domains.len();
        if is_cut {
            return said("TopologyNotKnown", format!("{most}; not every domain or order could be tried out"));
        }
        match total >= u64::from(required) {
            true => said("TopologyFragmented", format!("{most}; the places of all {n} add up to {total}")),
            false => {
                said("TopologyShort", format!("{most}; even the places of all {n} add up to only {total}"))
            }
        }
    }
}

/// Returns the edit that adds a label to the `nodeSelector` of a pod.
fn bound_to(pod: &Pod, key: &Name, value: &Name) -> Edit {
    let mut spec = PodSpec::clone(&pod.spec);
    let pair = (key.clone(), value.clone());
    spec.affinity.selector = spec.affinity.selector.iter().cloned().chain([pair]).collect();
    Edit::ApplyPod(Arc::new(Pod { spec: Arc::new(spec), ..pod.clone() }))
}

/// Adds what a node has free of every resource that it offers or its pods request.
fn add_free(sum: &mut Amounts, cluster: &Cluster, node: NodeIdx) {
    let columns = cluster.columns();
    let is_there = |r: &ResourceIdx| columns.allocatable(node, *r) != 0 || columns.requested(node, *r) != 0;
    for resource in columns.offered().filter(is_there) {
        *sum.entry(columns.name(resource).to_string()).or_default() += columns.free(node, resource);
    }
}

fn said(code: &str, message: String) -> TopologyVerdict {
    TopologyVerdict { code: code.into(), message }
}
