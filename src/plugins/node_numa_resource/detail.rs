//! What explanations say of one refused node: which NUMA node lacks what, for people.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::plugin::Measure;
use pellucid_framework::topology::NumaPolicy;
use pellucid_framework::{Cause, View};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::allocation::NodeRequest;
use super::amounts::{CPU, amplify};
use super::cpus::accumulator::BindPolicy;
use super::cpus::set::CpuSet;
use super::cpus::topology::{CpuTopology, Domain};
use super::on_node::OnNode;
use super::resource_spec::PodRequest;
use super::{NodeNumaResource, amplified, endpoints, keys, reasons};

/// Returns whether a cause gives a reason of this plugin.
fn is_about(cause: &Cause, reason: &'static pellucid_api::reason::PluginReason) -> bool {
    cause.reasons.iter().any(|given| given.code == ReasonCode::Plugin(reason))
}

impl NodeNumaResource {
    /// Returns the numbers behind a refusal, over the nodes refused with it.
    pub(super) fn measures(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        nodes: &[NodeIdx],
    ) -> Vec<Measure> {
        let Ok(pod) = PodRequest::of(spec, self.args.default_bind) else { return Vec::new() };
        let asked = |node: &NodeIdx| {
            let asked = NodeRequest::of(self.on(view, *node), &pod, self.args.allocate_strategy()).ok()?;
            Some((*node, asked))
        };
        // Of equal nodes the first by name.
        let best = |all: Vec<(i64, i64, NodeIdx)>| {
            all.into_iter()
                .min_by(|a, b| (a.0 - a.1).cmp(&(b.0 - b.1)).then_with(|| view.name(a.2).cmp(view.name(b.2))))
        };
        let measure = |resource: &str, found: Option<(i64, i64, NodeIdx)>| {
            let (requested, available, best_node) = found?;
            Some(Measure { resource: resource.into(), requested, available, best_node })
        };
        if is_about(cause, &reasons::AMPLIFIED_CPU) {
            let of = |(node, asked): (NodeIdx, NodeRequest<'_>)| {
                let ratio = asked.on.settings.as_deref()?.ratios.of(CPU);
                let (requested, free) = amplified(view, &asked, node, ratio);
                Some((requested, free, node))
            };
            let all = nodes.iter().filter_map(asked).filter_map(of).collect();
            return measure("amplified cpu free", best(all)).into_iter().collect();
        }
        if is_about(cause, &reasons::NOT_ENOUGH_CPUS) {
            let of = |(node, asked): (NodeIdx, NodeRequest<'_>)| {
                (pod.n_cpus() as i64, asked.usable().len() as i64, node)
            };
            let all = nodes.iter().filter_map(asked).map(of).collect();
            return measure("CPUs of its own free", best(all)).into_iter().collect();
        }
        let short = cause.reasons.iter().filter(|reason| {
            [&reasons::SHORT, &reasons::UNSATISFIED].iter().any(|of| reason.code == ReasonCode::Plugin(of))
        });
        let names = short.filter_map(|reason| reason.subject.as_ref());
        let of_name = |name: &Name| {
            let requested =
                pod.amounts.iter().find(|(known, _)| known == name).map_or(0, |(_, amount)| *amount);
            let of = |(node, asked): (NodeIdx, NodeRequest<'_>)| {
                let left = asked.left().into_iter().filter_map(|(_, left)| left.get(name));
                // A pod on one NUMA node alone has what the best of them has left.
                let most: i64 = match asked.policy {
                    NumaPolicy::SingleNumaNode => left.max().unwrap_or(0),
                    _ => super::score::total(left),
                };
                (requested, most, node)
            };
            measure(&format!("NUMA {name} free"), best(nodes.iter().filter_map(asked).map(of).collect()))
        };
        names.filter_map(of_name).collect()
    }

    /// Returns why a node refuses a pod for a cause, if it does.
    pub(super) fn words(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        node: NodeIdx,
    ) -> Option<String> {
        let pod = PodRequest::of(spec, self.args.default_bind).ok()?;
        let on = self.on(view, node);
        if is_about(cause, &reasons::POLICY_MISMATCH) {
            let (of_node, own) = (endpoints::policy_name(on.policy()), endpoints::policy_name(pod.policy));
            return NodeRequest::of(on, &pod, self.args.allocate_strategy())
                .is_err()
                .then(|| format!("its NUMA topology policy is {of_node}, and the pod asks for {own}"));
        }
        if is_about(cause, &reasons::NOT_INTEGER) {
            let forced = on.forced_bind()?.as_str();
            return Some(format!("it forces {forced}, and the pod requests {}", cores(pod.milli_cpu)));
        }
        if is_about(cause, &reasons::BAD_TOPOLOGY) {
            return on.machine().is_none().then(|| bad_topology(on));
        }
        let asked = NodeRequest::of(on, &pod, self.args.allocate_strategy()).ok()?;
        if is_about(cause, &reasons::AMPLIFIED_CPU) {
            let ratio = on.settings.as_deref()?.ratios.of(CPU);
            let (requested, free) = amplified(view, &asked, node, ratio);
            return (requested > free).then(|| {
                let own = if asked.bind.is_some() { " of its own" } else { "" };
                let pinned = on.taken.len() as i64 * 1000;
                let (asks, counts) = (cores(pod.milli_cpu), cores(requested));
                format!(
                    "amplified by {ratio}, {} are left; the pod asks for {asks}{own}, which count as {counts}; {} that \
                     pods have of their own count as {}",
                    cores(free),
                    cores(pinned),
                    cores(amplify(pinned, ratio))
                )
            });
        }
        if is_about(cause, &reasons::BIND_CONFLICT) {
            let (own, forced) = (pod.required?.as_str(), on.forced_bind()?.as_str());
            return Some(format!("it forces {forced}, and the pod requires {own}"));
        }
        let machine = on.machine();
        if is_about(cause, &reasons::NOT_WHOLE_CORES) {
            let threads = machine?.cpus_per_core;
            return Some(format!(
                "its cores have {threads} threads, and the pod asks for {}",
                cores(pod.milli_cpu)
            ));
        }
        if is_about(cause, &reasons::NOT_ENOUGH_CPUS) {
            return Some(domains(view, &asked, machine?));
        }
        let is_numa = [&reasons::SHORT, &reasons::UNSATISFIED].iter().any(|reason| is_about(cause, reason))
            || cause.reasons.iter().any(|reason| reason.code == ReasonCode::NumaTopologyMismatch);
        is_numa.then(|| by_numa_node(view, &asked)).flatten()
    }
}

/// Formats thousandths of a CPU, with up to three decimals.
fn cores(milli: i64) -> String {
    let (sign, whole) = (if milli < 0 { "-" } else { "" }, milli.unsigned_abs() / 1000);
    let decimals = format!("{:03}", milli.unsigned_abs() % 1000);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    let unit = if milli == 1000 { "CPU" } else { "CPUs" };
    format!("{sign}{whole}{point}{decimals} {unit}")
}

fn bad_topology(on: &OnNode) -> String {
    let Some(topology) = on.topology.as_deref() else {
        return "it has no NodeResourceTopology".to_owned();
    };
    let problem = topology.problems.iter().find(|problem| problem.field == keys::CPU_TOPOLOGY);
    match problem {
        Some(problem) => {
            format!("annotation {} of its NodeResourceTopology: {}", keys::CPU_TOPOLOGY, problem.problem)
        }
        None => format!("its NodeResourceTopology has no annotation {}", keys::CPU_TOPOLOGY),
    }
}

/// Says of each NUMA node what is free for a pod with CPUs of its own, and who is in the way of whole cores.
fn domains(view: View<'_>, asked: &NodeRequest<'_>, machine: &CpuTopology) -> String {
    let wants = match asked.bind {
        Some(bind) if asked.is_required => format!(" under {}", bind.as_str()),
        _ => String::new(),
    };
    format!("the pod asks for {}{wants}; {}", cores(asked.pod.milli_cpu), cores_by_node(view, asked, machine))
}

fn domain(
    view: View<'_>,
    asked: &NodeRequest<'_>,
    machine: &CpuTopology,
    node: &Domain,
    free: &CpuSet,
) -> String {
    let (own, threads) = (free.and(&node.cpus), machine.cpus_per_core);
    let n_cores = machine.one_of_each_core(&node.cpus).len();
    let whole = machine.whole_cores(&own);
    if threads == 1 || !asked.is_required {
        return format!("{} of {} CPUs free", own.len(), node.cpus.len());
    }
    if asked.bind == Some(BindPolicy::SpreadByPcpus) {
        let usable = machine.one_of_each_core(&own).len();
        return format!("{usable} of {n_cores} cores have a free CPU");
    }
    let mut text = format!("{} of {n_cores} cores free in whole", whole.len() / threads.max(1));
    let halves = machine.one_of_each_core(&own.without(&whole));
    if !halves.is_empty() {
        text.push_str(&format!(
            ", {} half used{}",
            count(halves.len(), "core"),
            by_whom(view, asked.on, machine, &halves)
        ));
    }
    text
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Names the pods with a CPU of some cores, the first three by name.
fn by_whom(view: View<'_>, on: &OnNode, machine: &CpuTopology, cores: &CpuSet) -> String {
    let core_ids: Vec<Option<usize>> = cores.iter().map(|cpu| machine.core_of(cpu)).collect();
    let holds = |cpus: &CpuSet| cpus.iter().any(|cpu| core_ids.contains(&machine.core_of(cpu)));
    let holders = on.holders.iter().filter(|holder| holds(&holder.holding.cpus.get()));
    let mut names: Vec<String> = holders.map(|holder| holder.key(view).name.to_string()).collect();
    if holds(&on.reserved.get()) {
        names.push("the system".to_owned());
    }
    names.sort();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" by {}", names.join(", ")),
        (false, more) => format!(" by {} and {more} more", names.join(", ")),
    }
}

/// Says of each NUMA node what it has for a pod: whole cores and who is in their way, what is left of each resource under a
/// NUMA policy. `None` for a pod that gets no CPUs of its own on a node without a policy.
pub(super) fn by_numa_node(view: View<'_>, asked: &NodeRequest<'_>) -> Option<String> {
    match (asked.bind, asked.policy, asked.on.machine()) {
        (Some(_), NumaPolicy::None, Some(machine)) => Some(domains(view, asked, machine)),
        (_, NumaPolicy::None, _) => None,
        _ => Some(zones(view, asked)),
    }
}

/// Says of each NUMA node how many of its cores are free in whole, and who is in the way.
fn cores_by_node(view: View<'_>, asked: &NodeRequest<'_>, machine: &CpuTopology) -> String {
    let free = asked.on.free.get();
    let texts = machine
        .nodes
        .iter()
        .map(|node| format!("NUMA {}: {}", node.id, domain(view, asked, machine, node, &free)));
    texts.collect::<Vec<_>>().join("; ")
}

/// Says how many cores of a NUMA node are free for a pod that must have whole ones, or a CPU of each.
fn own_cores(view: View<'_>, asked: &NodeRequest<'_>, node: u16) -> Option<String> {
    let machine = asked.on.machine().filter(|_| asked.bind.is_some() && asked.is_required)?;
    let domain_of = machine.nodes.iter().find(|known| known.id == node)?;
    Some(domain(view, asked, machine, domain_of, &asked.on.free.get()))
}

/// Says of each NUMA node what is left of each resource that the pod requests.
fn zones(view: View<'_>, asked: &NodeRequest<'_>) -> String {
    let left = asked.left();
    let mut texts = Vec::new();
    for ((node, left), zone) in left.iter().zip(&asked.on.zones) {
        let mut parts: BTreeMap<&str, String> = BTreeMap::new();
        for (name, requested) in &asked.pod.amounts {
            let (Some(left), Some(all)) = (left.get(name), zone.amounts.get(name)) else { continue };
            let lacks = if left < *requested { ", too little alone" } else { "" };
            let amount = |amount| format_amount(name, amount);
            parts.insert(name, format!("{} of {} {name}{lacks}", amount(left), amount(all)));
        }
        let mut parts: Vec<String> = parts.into_values().collect();
        parts.extend(own_cores(view, asked, *node));
        texts.push(format!("NUMA {node}: {}", parts.join(", ")));
    }
    let asks: Vec<String> = asked
        .pod
        .amounts
        .iter()
        .filter(|(name, _)| left.iter().any(|(_, left)| left.get(name).is_some()))
        .map(|(name, amount)| format!("{} {name}", format_amount(name, *amount)))
        .collect();
    let policy = endpoints::policy_name(asked.policy);
    format!("under {policy} the pod asks for {}; {}", asks.join(" and "), texts.join("; "))
}
