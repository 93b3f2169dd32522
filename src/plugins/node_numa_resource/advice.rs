//! What people are told of pods and NUMA nodes beyond single nodes: how many nodes give a pod what it asks for, and what would
//! help: pods that move, another policy of pod or node, a smaller request.
//!
//! Proposals are guesses by CPUs and NUMA nodes alone; the core plans each before anybody is told.

use std::cmp::Reverse;

use pellucid_framework::View;
use pellucid_framework::advice::{Advice, Change, PodMove, Proposal};
use pellucid_framework::merge::merge;
use pellucid_framework::topology::NumaPolicy;
use pellucid_model::{Name, NodeIdx, Now, PodSpec};
use serde_json::{Value, json};

use super::allocation::NodeRequest;
use super::amounts::CPU;
use super::on_node::{Holder, OnNode};
use super::resource_spec::PodRequest;
use super::{NodeNumaResource, check_room, detail, endpoints, keys};

/// Number of refusing nodes that are looked at, the nearest ones.
const MOST_NODES: usize = 16;
/// Number of pods of a node that are looked at.
const MOST_PODS: usize = 32;
/// Number of moves that are proposed.
const MOST_MOVES: usize = 6;
/// Number of smaller requests that are tried on a node.
const MOST_STEPS: usize = 256;
const MOVE: u32 = 50;
const POLICY_OF_POD: u32 = 35;
const POLICY_OF_NODE: u32 = 40;

impl Advice for NodeNumaResource {
    fn sentence(&self, view: View<'_>, spec: &PodSpec, _now: Now) -> Option<String> {
        let pod = PodRequest::of(spec, self.args.default_bind).ok()?;
        let known = self.known(view);
        let refusing: Vec<(NodeIdx, &OnNode)> =
            known.iter().copied().filter(|(_, on)| !self.takes(on, &pod)).collect();
        let (node, on) = self.nearest(&pod, refusing.clone()).into_iter().next()?;
        let asked = NodeRequest::unchecked(on, &pod, self.args.allocate_strategy());
        let words = detail::by_numa_node(view, &asked)?;
        let (total, giving) = (known.len(), known.len() - refusing.len());
        let count = if giving == 0 { "none".to_owned() } else { giving.to_string() };
        let give = if giving < 2 { "gives" } else { "give" };
        Some(format!(
            "{count} of {total} nodes with known CPUs {give} the pod its CPUs and NUMA nodes; on {}, the nearest of the \
             others, {words}",
            view.name(node)
        ))
    }

    fn proposals_on(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<Proposal> {
        let Ok(pod) = PodRequest::of(spec, self.args.default_bind) else { return Vec::new() };
        let lacks =
            |node: &NodeIdx| Some((*node, self.on(view, *node))).filter(|(_, on)| on.topology.is_some());
        let mut nodes = self.nearest(&pod, refused.iter().filter_map(lacks).collect());
        nodes.retain(|(_, on)| !self.takes(on, &pod));
        nodes.truncate(MOST_NODES);
        let mut all = self.moves(view, &pod, &nodes);
        all.extend(self.other_policies(view, spec, &pod, &nodes));
        all.extend(self.smaller(spec, &nodes));
        all
    }
}

impl NodeNumaResource {
    /// Returns the nodes whose CPUs or NUMA nodes are reported, by name.
    fn known<'a>(&self, view: View<'a>) -> Vec<(NodeIdx, &'a OnNode)> {
        let all = view.cluster().by_name().iter().map(|node| (*node, self.on(view, *node)));
        all.filter(|(_, on)| on.topology.is_some()).collect()
    }

    /// Returns whether a node gives a pod its CPUs and, as far as this plugin knows, an aligned set of NUMA nodes.
    fn takes(&self, on: &OnNode, pod: &PodRequest) -> bool {
        let Ok(asked) = NodeRequest::of(on, pod, self.args.allocate_strategy()) else { return false };
        if asked.check_machine().is_err() || check_room(&asked).is_err() {
            return false;
        }
        let Some(topology) = Self::topology_of(&asked) else { return true };
        let Ok(hints) = self.hints_of(&asked) else { return false };
        merge(&topology, &hints).is_some_and(|affinity| asked.allocate(Some(affinity.mask)).is_ok())
    }

    /// Sorts nodes by how much of the request one of their NUMA nodes has left, the most first; else by name.
    fn nearest<'a>(
        &self,
        pod: &PodRequest,
        mut nodes: Vec<(NodeIdx, &'a OnNode)>,
    ) -> Vec<(NodeIdx, &'a OnNode)> {
        let share = |on: &OnNode| {
            let left = NodeRequest::unchecked(on, pod, self.args.allocate_strategy()).left();
            let of_zone = |amounts: &super::amounts::Amounts| {
                let of = |(name, wanted): &(Name, i64)| Some(amounts.get(name)?.min(*wanted) * 1000 / wanted);
                pod.amounts.iter().filter_map(of).min().unwrap_or(0)
            };
            left.iter().map(|(_, amounts)| of_zone(amounts)).max().unwrap_or(0)
        };
        nodes.sort_by_cached_key(|(_, on)| Reverse(share(on)));
        nodes
    }

    /// Returns moves of single pods that let a node take the pod.
    fn moves(&self, view: View<'_>, pod: &PodRequest, nodes: &[(NodeIdx, &OnNode)]) -> Vec<Proposal> {
        let mut all = Vec::new();
        for (node, on) in nodes {
            let record = |holder: &Holder| view.cluster().pod(holder.id);
            let can_leave =
                |holder: &&Holder| record(holder).is_some_and(|r| !r.pod.deleting && r.pod.can_leave());
            let mut holders: Vec<&Holder> = on.holders.iter().filter(can_leave).collect();
            holders.sort_by_cached_key(|holder| {
                (record(holder).map(|r| r.pod.priority), holder.holding.cpus.len(), holder.key(view))
            });
            for holder in holders.into_iter().take(MOST_PODS) {
                let mut without = OnNode::clone(on);
                without.hold(holder.clone(), false);
                if !self.takes(&without, pod) {
                    continue;
                }
                let Some(to) = self.other_node(view, *node, holder) else { continue };
                let has = match holder.holding.cpus.is_empty() {
                    true => String::new(),
                    false => format!("CPUs {} of ", holder.holding.cpus),
                };
                let pod = holder.key(view);
                let text = format!("move pod {pod} from {has}{} to {to}", view.name(*node));
                let moves = vec![PodMove { pod, to, text }];
                all.push(Proposal { change: Change::Move(moves), text: String::new(), cost: MOVE });
                if all.len() == MOST_MOVES {
                    return all;
                }
            }
        }
        all
    }

    /// Returns the first other node that gives a pod what it asks for.
    fn other_node(&self, view: View<'_>, from: NodeIdx, holder: &Holder) -> Option<Name> {
        let spec = &view.cluster().pod(holder.id)?.pod.spec;
        let pod = PodRequest::of(spec, self.args.default_bind).ok()?;
        let list = &spec.requests.list;
        let has_room = |node: NodeIdx| {
            let columns = view.columns();
            let free = |(name, amount): (Name, i64)| {
                columns.find(&name).is_some_and(|r| columns.free(node, r) >= amount)
            };
            list.named().all(free)
        };
        let mut others = self.known(view).into_iter().filter(|(node, _)| *node != from);
        let found = others.find(|(node, on)| has_room(*node) && self.takes(on, &pod));
        found.map(|(node, _)| view.name(node).clone())
    }

    /// Returns other policies of the pod or of a node under which a node takes it.
    fn other_policies(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        pod: &PodRequest,
        nodes: &[(NodeIdx, &OnNode)],
    ) -> Vec<Proposal> {
        let takes = |key: &str, value: &Name| {
            let spec =
                PodSpec { annotations: spec.annotations.with(key.into(), value.clone()), ..spec.clone() };
            let pod = PodRequest::of(&spec, self.args.default_bind);
            pod.is_ok_and(|pod| nodes.iter().any(|(_, on)| self.takes(on, &pod)))
        };
        let annotated = |key: &str, value: Value, text: String| {
            let value = Name::new(&value.to_string());
            let change = Change::Annotation { key: key.into(), value: value.clone() };
            takes(key, &value).then_some(Proposal { change, text, cost: POLICY_OF_POD })
        };
        let mut all = Vec::new();
        if let Some(required) = pod.required {
            let (own, bind) = (read(spec, keys::RESOURCE_SPEC), required.as_str());
            let looser = with_field(&own, "preferredCPUBindPolicy", bind, "requiredCPUBindPolicy");
            let text = format!(
                "prefer {bind} instead of requiring it (preferredCPUBindPolicy in its resource-spec)"
            );
            all.extend(annotated(keys::RESOURCE_SPEC, looser, text));
        }
        let weaker = |policy: NumaPolicy| -> &'static [NumaPolicy] {
            match policy {
                NumaPolicy::SingleNumaNode => &[NumaPolicy::Restricted, NumaPolicy::BestEffort],
                NumaPolicy::Restricted => &[NumaPolicy::BestEffort],
                _ => &[],
            }
        };
        for policy in weaker(pod.policy) {
            let name = endpoints::policy_name(*policy);
            let own = read(spec, keys::NUMA_TOPOLOGY_SPEC);
            let text =
                format!("ask for NUMA policy {name} instead of {}", endpoints::policy_name(pod.policy));
            let changed = with_field(&own, "numaTopologyPolicy", name, "");
            all.extend(annotated(keys::NUMA_TOPOLOGY_SPEC, changed, text));
        }
        for (node, on) in nodes.iter().filter(|_| pod.policy == NumaPolicy::None) {
            let of_node = on.policy();
            let takes = |policy: &&NumaPolicy| self.takes(&on.with_policy(**policy), pod);
            let Some(policy) = weaker(of_node).iter().find(takes) else { continue };
            let (name, node) = (endpoints::policy_name(*policy), view.name(*node).clone());
            let text =
                format!("give node {node} NUMA policy {name} instead of {}", endpoints::policy_name(of_node));
            let (key, value) = (keys::NUMA_TOPOLOGY_POLICY.into(), name.into());
            let change = Change::NodeLabel { node, key, value };
            all.push(Proposal { change, text, cost: POLICY_OF_NODE });
            break;
        }
        all
    }

    /// Returns the largest request of fewer CPUs that a node takes.
    fn smaller(&self, spec: &PodSpec, nodes: &[(NodeIdx, &OnNode)]) -> Option<Proposal> {
        let whole = spec.requests.list.milli_cpu / 1000;
        let takes = |cpus: &i64| {
            let mut spec = spec.clone();
            spec.requests.list.milli_cpu = cpus * 1000;
            let pod = PodRequest::of(&spec, self.args.default_bind);
            pod.is_ok_and(|pod| nodes.iter().any(|(_, on)| self.takes(on, &pod)))
        };
        let most = if spec.requests.list.milli_cpu % 1000 == 0 { whole - 1 } else { whole };
        let cpus = (1..=most).rev().take(MOST_STEPS).find(takes)?;
        let change = Change::Request(vec![(CPU.into(), cpus * 1000)]);
        Some(Proposal { change, text: String::new(), cost: 0 })
    }
}

/// Returns the JSON object of an annotation, an empty one when it is absent.
fn read(spec: &PodSpec, key: &str) -> Value {
    let text = spec.annotations.text(key).unwrap_or("{}");
    serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// Returns an object with a field set, and another one left out.
fn with_field(object: &Value, field: &str, value: &str, without: &str) -> Value {
    let mut made = object.clone();
    made[field] = json!(value);
    if let Some(fields) = made.as_object_mut() {
        fields.remove(without);
    }
    made
}
