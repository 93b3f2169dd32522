//! The endpoints: CPUs and NUMA nodes of each node, in Koordinator's shape of today and of 0.7.

use std::collections::BTreeMap;

use pellucid_api::rest::numa::{
    AvailableCpus, CpuDetail, CpuSharedPool, CpuTopologyBody, CpuTopologyOptions, KubeletCpuPolicy, NumaNode,
    NumaNodeDetail, NumaNodeResource, NumaPod, NumaProblem, NumaState,
};
use pellucid_api::rest::{BodySchema, Meta};
use pellucid_framework::View;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::list::{Attribute, Facts, List};
use pellucid_framework::topology::NumaPolicy;
use pellucid_model::{NodeIdx, PodKey};
use serde_json::{Value, json};

use super::amounts::Amounts;
use super::cpus::accumulator::{BindPolicy, ExclusivePolicy};
use super::cpus::set::CpuSet;
use super::cpus::topology::CpuTopology;
use super::holding::Holding;
use super::keys;
use super::node_topology::Problem;
use super::numa_nodes::NumaNodes;
use super::on_node::{Holder, MAX_REF_COUNT, OnNode};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut, node_of};

/// What nodes are filtered and sorted by.
const OF_NODES: &[Attribute] = &[Attribute::Name, Attribute::Labels];

pub(super) fn all() -> Vec<Endpoint> {
    let body = BodySchema::of::<NumaState>;
    vec![
        Endpoint::new(
            "state",
            "CPUs and NUMA nodes of nodes that report them, the first thousand",
            body(),
            |cx| read_nodes(cx, &List::first(MAX_ROWS)),
        )
        .with_rows("nodes"),
        Endpoint::new("nodes", "CPUs and NUMA nodes of all nodes that report them, in pages", body(), |cx| {
            read_nodes(cx, cx.list)
        })
        .with_pages::<NumaNode>("nodes", OF_NODES),
        Endpoint::of::<NumaNodeDetail>(
            "nodes/:nodeName",
            "The CPUs and NUMA nodes of a node, who has them, and what is wrong with them",
            |cx| Ok(json!(detail(cx.view, node_of(cx)?))),
        ),
        Endpoint::of::<CpuTopologyOptions>(
            "cpuTopologyOptions/:nodeName",
            "What a node reports of its CPUs, as in Koordinator 0.7",
            |cx| Ok(json!(options(on(cx.view, node_of(cx)?)))),
        ),
        Endpoint::of::<AvailableCpus>(
            "availableCPUs/:nodeName",
            "The CPUs of a node that can be given, as in Koordinator 0.7",
            |cx| {
                let on = on(cx.view, node_of(cx)?);
                Ok(json!(AvailableCpus { available_cpus: on.free.to_string(), allocated: allocated(on) }))
            },
        ),
    ]
}

fn on(view: View<'_>, node: NodeIdx) -> &OnNode {
    static EMPTY: std::sync::LazyLock<OnNode> = std::sync::LazyLock::new(OnNode::default);
    view.state::<NumaNodes>().and_then(|state| state.on(node)).unwrap_or(&EMPTY)
}

/// Returns Koordinator's name of a policy.
pub(super) fn policy_name(policy: NumaPolicy) -> &'static str {
    match policy {
        NumaPolicy::None => "",
        NumaPolicy::BestEffort => "BestEffort",
        NumaPolicy::Restricted => "Restricted",
        NumaPolicy::SingleNumaNode => "SingleNUMANode",
    }
}

fn problems(on: &OnNode) -> impl Iterator<Item = &Problem> {
    let of_node = on.settings.iter().flat_map(|settings| &settings.problems);
    of_node.chain(on.topology.iter().flat_map(|topology| &topology.problems))
}

fn read_nodes(cx: &ReadContext<'_>, list: &List) -> Result<Value, ReadError> {
    let Some(state) = cx.view.state::<NumaNodes>() else { return Ok(json!(NumaState::default())) };
    let cluster = cx.view.cluster();
    let mut body = NumaState::default();
    let mut known = Vec::new();
    for node in cluster.by_name() {
        let on = on(cx.view, *node);
        body.unreported += usize::from(on.topology.is_none());
        let has_problems = problems(on).next().is_some();
        body.with_problems += usize::from(has_problems);
        if on.topology.is_some() || !on.holders.is_empty() || has_problems {
            known.push(*node);
        }
    }
    let mut without: Vec<String> = Vec::new();
    for (name, _) in state.topologies() {
        body.topologies += 1;
        if cluster.find_node(name).is_none_or(|node| cluster.node(node).is_none()) {
            without.push(name.to_string());
        }
    }
    without.sort();
    (body.without_node, _) = cut(without, MAX_ROWS);
    let page = list.page(known, |node| {
        let labels = cluster.node(*node).map(|node| &node.labels);
        Facts { name: cx.view.name(*node), labels, ..Facts::default() }
    });
    body.nodes = page.items.iter().map(|node| row(cx.view, *node)).collect();
    body.meta = page.meta(Meta::default());
    body.truncated = page.is_cut();
    Ok(json!(body))
}

fn row(view: View<'_>, node: NodeIdx) -> NumaNode {
    let on = on(view, node);
    NumaNode {
        node_name: view.name(node).to_string(),
        cpus: on.machine().map_or(0, |machine| machine.cpus.len()),
        reserved_cpus: on.machine().map_or(0, |machine| machine.cpus.count_in(&on.reserved.get())),
        allocated_cpus: on.taken.len(),
        available_cpus: on.free.len(),
        numa_nodes: on.zones.len(),
        numa_topology_policy: policy_name(on.policy()).to_owned(),
        cpu_bind_policy: on.forced_bind().map(BindPolicy::as_str).unwrap_or_default().to_owned(),
        pods: on.holders.len(),
        problems: problems(on).count(),
    }
}

fn details(
    machine: &CpuTopology,
    cpus: &CpuSet,
    of: impl Fn(usize) -> (u16, &'static str),
) -> BTreeMap<String, CpuDetail> {
    let detail = |(cpu, core): (usize, &super::cpus::topology::Core)| {
        let (ref_count, exclusive_policy) = of(cpu);
        let detail = CpuDetail {
            cpu_id: cpu,
            core_id: core.id,
            node_id: machine.nodes[usize::from(core.node)].id,
            socket_id: machine.sockets[usize::from(core.socket)].id,
            ref_count,
            exclusive_policy: exclusive_policy.to_owned(),
        };
        (cpu.to_string(), detail)
    };
    machine.details().filter(|(cpu, _)| cpus.contains(*cpu)).map(detail).collect()
}

/// Returns the CPUs that pods have. Of CPUs that the machine does not have nothing but the id is known.
fn allocated(on: &OnNode) -> BTreeMap<String, CpuDetail> {
    let of = |cpu: usize| {
        let holders = on.holders.iter().filter(|holder| holder.holding.cpus.get().contains(cpu));
        let exclusive = holders.clone().next_back().and_then(|holder| holder.holding.exclusive);
        (holders.count() as u16, exclusive.map(ExclusivePolicy::as_str).unwrap_or_default())
    };
    let mut all = on.machine().map(|machine| details(machine, &on.taken.get(), of)).unwrap_or_default();
    for cpu in on.taken.get().iter() {
        let unknown = || CpuDetail { cpu_id: cpu, ref_count: of(cpu).0, ..CpuDetail::default() };
        all.entry(cpu.to_string()).or_insert_with(unknown);
    }
    all
}

fn options(on: &OnNode) -> CpuTopologyOptions {
    let topology = |machine: &CpuTopology| CpuTopologyBody {
        num_cpus: machine.cpus.len(),
        num_cores: machine.cores.len(),
        num_nodes: machine.n_nodes,
        num_sockets: machine.sockets.len(),
        cpu_details: details(machine, &machine.cpus, |_| (0, "")),
    };
    let kubelet = on.topology.as_deref().map(|topology| KubeletCpuPolicy {
        policy: topology.kubelet.policy.clone(),
        options: topology.kubelet.options.clone(),
        reserved_cpus: topology.kubelet.reserved_text.clone(),
    });
    CpuTopologyOptions {
        cpu_topology: on.machine().map(topology),
        reserved_cpus: on.reserved.to_string(),
        max_ref_count: MAX_REF_COUNT,
        policy: kubelet,
        numa_topology_policy: policy_name(on.policy()).to_owned(),
        numa_node_resources: on.zones.iter().map(|zone| resource(zone.node, &zone.amounts)).collect(),
        amplification_ratios: on
            .ratios()
            .map(|ratios| ratios.iter().map(|(name, ratio)| (name.to_owned(), ratio)).collect())
            .unwrap_or_default(),
    }
}

fn resource(node: u16, amounts: &Amounts) -> NumaNodeResource {
    NumaNodeResource { node, resources: amounts.quantities() }
}

fn detail(view: View<'_>, node: NodeIdx) -> NumaNodeDetail {
    let on = on(view, node);
    let pools = |pools: &[(u16, u16, CpuSet)]| {
        let pool = |(socket, node, cpus): &(u16, u16, CpuSet)| CpuSharedPool {
            socket: *socket,
            node: *node,
            cpuset: cpus.to_string(),
        };
        pools.iter().map(pool).collect()
    };
    let topology = on.topology.as_deref();
    let mut pods: Vec<NumaPod> = on.holders.iter().map(|holder| pod(view, holder)).collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let allocated_of =
        |zone: &super::node_topology::Zone| on.used_of(zone.node).map(|used| resource(zone.node, &used));
    NumaNodeDetail {
        name: view.name(node).to_string(),
        options: options(on),
        remaining_numa_node_resources: on
            .zones
            .iter()
            .map(|zone| resource(zone.node, &on.left_of(zone)))
            .collect(),
        allocated_numa_node_resources: on.zones.iter().filter_map(allocated_of).collect(),
        available_cpus: on.free.to_string(),
        allocated_cpus: allocated(on),
        allocated_pods: pods,
        kubelet_pods: topology.map(kubelet_pods).unwrap_or_default(),
        shared_pools: topology.map(|topology| pools(&topology.shared_pools)).unwrap_or_default(),
        be_shared_pools: topology.map(|topology| pools(&topology.be_shared_pools)).unwrap_or_default(),
        problems: problems(on).map(problem).chain(of_pods(view, node, on)).collect(),
    }
}

/// Returns what is wrong with what stands on the pods of a node: annotations that cannot be read, and CPUs of several
/// pods, or of a pod and the system.
fn of_pods(view: View<'_>, node: NodeIdx, on: &OnNode) -> Vec<NumaProblem> {
    let cluster = view.cluster();
    let pods = cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id));
    let unread = pods.filter_map(|record| {
        let problem = Holding::read(&record.pod).err()?;
        let problem = format!("{problem}; the pod counts as holding nothing");
        Some(problem_of_pod(&record.pod.key, record.pod.marks.text(keys::RESOURCE_STATUS)?, problem))
    });
    let mut all: Vec<NumaProblem> = unread.collect();
    let mut seen = CpuSet::default();
    let mut holders: Vec<(PodKey, &Holder)> =
        on.holders.iter().map(|holder| (holder.key(view), holder)).collect();
    holders.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (key, holder) in holders {
        let cpus = &holder.holding.cpus.get();
        for (others, whose) in [(seen, "another pod has"), (on.reserved.get(), "the system has")] {
            let both = others.and(cpus);
            if !both.is_empty() {
                all.push(problem_of_pod(&key, &cpus.to_string(), format!("{whose} its CPUs {both} too")));
            }
        }
        seen = seen.or(cpus);
    }
    all.sort_by(|a, b| (&a.field, &a.problem).cmp(&(&b.field, &b.problem)));
    all
}

fn problem_of_pod(key: &PodKey, value: &str, problem: String) -> NumaProblem {
    let field = format!("{} of pod {key}", keys::RESOURCE_STATUS);
    NumaProblem { field, value: value.to_owned(), problem }
}

fn pod(view: View<'_>, holder: &Holder) -> NumaPod {
    let Holding { cpus, exclusive, zones } = &*holder.holding;
    let PodKey { namespace, name } = holder.key(view);
    NumaPod {
        uid: holder.pod(view).map(|pod| pod.uid.to_string()).unwrap_or_default(),
        namespace: namespace.to_string(),
        name: name.to_string(),
        cpuset: cpus.to_string(),
        cpu_exclusive_policy: exclusive.map(ExclusivePolicy::as_str).unwrap_or_default().to_owned(),
        numa_node_resources: zones.iter().map(|(node, amounts)| resource(*node, amounts)).collect(),
    }
}

fn kubelet_pods(topology: &super::node_topology::NodeTopology) -> Vec<NumaPod> {
    let pods = topology.allocs.iter().filter(|pod| pod.by_kubelet);
    let pod = |pod: &super::node_topology::PodCpus| NumaPod {
        uid: pod.uid.clone(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        cpuset: pod.cpus.to_string(),
        ..NumaPod::default()
    };
    pods.map(pod).collect()
}

fn problem(of: &Problem) -> NumaProblem {
    NumaProblem { field: of.field.clone(), value: of.value.clone(), problem: of.problem.clone() }
}
