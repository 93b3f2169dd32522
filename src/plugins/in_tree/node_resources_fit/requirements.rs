//! Every resource that a node lacks, and whether pods that leave would free enough of it; words for what is requested.

use std::cell::RefCell;
use std::rc::Rc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::columns::{PODS, ResourceColumn};
use pellucid_cluster::{PodRecord, ResourceIdx};
use pellucid_framework::whole_cause::staying_on;
use pellucid_framework::{EveryReason, NodeReason, Reason, View};
use pellucid_model::pages::PAGE;
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx};
use smallvec::SmallVec;

use super::NAME;
use super::column_requests::ColumnRequests;
use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, detail};
use pellucid_plugin_helper::scored::amount;

/// Returns whether a node has less of a resource than requested even when all pods have left that can.
fn is_fixed(view: View<'_>, node: NodeIdx, (resource, name): (ResourceIdx, &Name), wanted: i64) -> bool {
    let taken = |record: &PodRecord| match resource {
        PODS => 1,
        _ => amount(&record.pod.spec.requests.list, name),
    };
    let taken: i64 = staying_on(view, node).map(taken).sum();
    wanted > view.columns().allocatable(node, resource).saturating_sub(taken)
}

/// The columns of a page of nodes that a pod's requests are compared with. Nodes are asked about in order, so that most
/// find the page of the one before them.
struct PageColumns<'a> {
    number: usize,
    pods: &'a ResourceColumn,
    requested: SmallVec<[&'a ResourceColumn; 4]>,
}

impl<'a> PageColumns<'a> {
    fn of(view: View<'a>, wants: &ColumnRequests, node: NodeIdx) -> Self {
        let page = view.columns().page(node);
        let requested = wants.iter().map(|(resource, _)| page.resource(resource)).collect();
        Self { number: node.index() / PAGE, pods: page.resource(PODS), requested }
    }
}

/// Returns whether a node lacks an amount of a resource, and if so, whether it does without any pods.
fn lacks(column: &ResourceColumn, node: NodeIdx, wanted: i64) -> Option<bool> {
    let at = node.index() % PAGE;
    let allocatable = column.allocatable[at];
    (wanted > allocatable.saturating_sub(column.requested[at])).then_some(wanted > allocatable)
}

/// Returns what lists the resources that a node lacks. One is fixed when the request is larger than what the node has
/// without the pods that can leave.
pub(super) fn every_reason<'a>(view: View<'a>, wants: ColumnRequests) -> EveryReason<'a> {
    let pods = Name::new("pods");
    let too_many_pods = Rc::new(Reason::of(ReasonCode::TooManyPods));
    let lacking: Vec<Rc<Reason>> =
        wants.named().enumerate().map(|(i, _)| wants.reason(i, false).into()).collect();
    let page: RefCell<Option<PageColumns<'a>>> = RefCell::default();
    Box::new(move |node, reasons| {
        let mut page = page.borrow_mut();
        let page = match &mut *page {
            Some(page) if page.number == node.index() / PAGE => page,
            other => other.insert(PageColumns::of(view, &wants, node)),
        };
        if let Some(even_empty) = lacks(page.pods, node, 1) {
            let is_fixed = even_empty || is_fixed(view, node, (PODS, &pods), 1);
            reasons.push(NodeReason { reason: too_many_pods.clone(), is_fixed });
        }
        for (i, ((resource, name, wanted), column)) in wants.named().zip(&page.requested).enumerate() {
            let Some(even_empty) = lacks(column, node, wanted) else { continue };
            let is_fixed = even_empty || is_fixed(view, node, (resource, name), wanted);
            let is_left_out = wants.is_left_out(view, i, node);
            let reason = if is_left_out { wants.reason(i, true).into() } else { lacking[i].clone() };
            reasons.push(NodeReason { reason, is_fixed });
        }
    })
}

/// Describes each resource of which some refusing node lacks some.
pub(super) fn of(view: View<'_>, wants: &ColumnRequests, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let columns = view.columns();
    let mut all = Vec::new();
    if refused.iter().any(|node| columns.free(*node, PODS) < 1) {
        let mut of = detail(view, NAME, ReasonCode::TooManyPods, "room for one more pod");
        of.nodes = view.nodes().iter().filter(|node| columns.free(**node, PODS) >= 1).count();
        of.text = format!("room for one more pod: {} of {} nodes have it", of.nodes, of.total_nodes);
        all.push(of);
    }
    for (resource, name, wanted) in wants.named() {
        if refused.iter().all(|node| wanted <= columns.free(*node, resource)) {
            continue;
        }
        let of = detail(view, NAME, ReasonCode::InsufficientResource, format!("{name} request"));
        all.push(describe(view, (resource, name, wanted), of));
    }
    all.truncate(MAX_REQUIREMENTS);
    all
}

fn describe(
    view: View<'_>,
    (resource, name, wanted): (ResourceIdx, &Name, i64),
    of: RequirementDetail,
) -> RequirementDetail {
    let columns = view.columns();
    let free = |node: &NodeIdx| columns.free(*node, resource);
    let nodes = view.nodes().iter().filter(|node| wanted <= free(node)).count();
    let most = view
        .cluster()
        .by_name()
        .iter()
        .copied()
        .reduce(|best, other| if free(&other) > free(&best) { other } else { best });
    let fitting = view.nodes().iter().filter(|node| wanted <= columns.allocatable(**node, resource)).count();
    let most = most.map_or_else(String::new, |node| {
        format!(" (the most is {} on {})", format_amount(name, free(&node)), view.name(node))
    });
    let (shown, total) = (format_amount(name, wanted), of.total_nodes);
    let text = format!(
        "{name}: {shown} requested; {nodes} of {total} nodes have that free{most}, {fitting} offer that much at all"
    );
    let values = vec![shown];
    RequirementDetail { text, nodes, key: Some(name.to_string()), values, ..of }
}

#[cfg(test)]
mod tests {
    use pellucid_framework::plugin::Filter;
    use pellucid_model::PodSpec;
    use pellucid_model::requests::{PodRequests, ResourceList};

    use super::*;
    use crate::node_resources_fit::NodeResourcesFit;
    use crate::node_resources_fit::args::FitArgs;
    use crate::testing::{TestCluster, cluster_of, node};

    fn asking(milli_cpu: i64, memory: i64) -> PodSpec {
        let list = ResourceList { milli_cpu, memory, ..ResourceList::default() };
        PodSpec { requests: PodRequests { list, ..PodRequests::default() }, ..PodSpec::default() }
    }

    /// Returns subject and fixedness of each reason of a node.
    fn reasons(cluster: &TestCluster, spec: &PodSpec) -> Vec<(String, bool)> {
        let plugin = NodeResourcesFit { args: FitArgs::read(&serde_json::Value::Null).expect("valid") };
        let value: pellucid_framework::CycleValue = std::sync::Arc::new(());
        let every = plugin.every_reason(cluster.view(), spec, &value).expect("it lists them");
        let mut reasons = Vec::new();
        every(cluster.idx("n"), &mut reasons);
        let row = |r: NodeReason| {
            (r.reason.subject.as_ref().map(ToString::to_string).unwrap_or_default(), r.is_fixed)
        };
        reasons.into_iter().map(row).collect()
    }

    #[test]
    fn a_resource_is_fixed_on_its_own() {
        let mut cluster = cluster_of([node("n")]);
        cluster.place(asking(3000, 0), "n");
        assert_eq!(
            reasons(&cluster, &asking(2000, 1 << 40)),
            [("cpu".into(), false), ("memory".into(), true)]
        );
        cluster.place(PodSpec { is_daemon: true, ..asking(500, 0) }, "n");
        assert_eq!(reasons(&cluster, &asking(3500, 0)), [("cpu".into(), false)]);
        assert_eq!(reasons(&cluster, &asking(3600, 0)), [("cpu".into(), true)], "a DaemonSet keeps 500m");
    }

    #[test]
    fn a_request_is_compared_with_what_nodes_have() {
        let mut cluster = cluster_of([node("n"), node("m")]);
        cluster.place(asking(3000, 0), "n");
        cluster.place(asking(2500, 0), "m");
        let wants = ColumnRequests::of(cluster.view(), &asking(2000, 0), |_| false);
        let [of] = &of(cluster.view(), &wants, cluster.view().nodes())[..] else { panic!("cpu is lacking") };
        let want = "cpu: 2 requested; 0 of 2 nodes have that free (the most is 1500m on m), 2 offer that much at all";
        assert_eq!(of.text, want);
    }
}
