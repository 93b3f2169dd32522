//! Compares columns with a model while resources come and go and pods are placed, undone and released. Forks must keep
//! what they saw.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{Name, Node, NodeIdx, Pod, PodKey, PodSpec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::event::{ClusterEvent, NodeChange};
use crate::stage::Stage;
use crate::state::Cluster;
use crate::{Columns, ResourceIdx};

const RESOURCES: usize = 6;
/// Column limit, smaller than the number of resources.
const MOST: usize = 3;

fn resource(i: usize) -> Name {
    Name::new(&format!("example.com/r{i}"))
}

fn list(amounts: &[i64; RESOURCES]) -> ResourceList {
    let scalars = amounts.iter().enumerate().filter(|(_, n)| **n >= 0).map(|(i, n)| (resource(i), *n));
    ResourceList { milli_cpu: 1000, pods: 110, scalars: scalars.collect(), ..ResourceList::default() }
}

#[derive(Clone, Debug)]
enum Happening {
    /// A node offers these amounts; -1 means that it does not name the resource.
    Node(usize, [i64; RESOURCES]),
    NodeGone(usize),
    /// A pod is bound to a node, or pending.
    Pod(usize, Option<usize>, [i64; RESOURCES]),
    PodGone(usize),
    /// A pending pod is placed in an overlay that is rolled back.
    Trial(usize, usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    let amounts = || prop::array::uniform6(prop_oneof![3 => Just(-1i64), 1 => Just(0i64), 3 => 1..9i64]);
    prop_oneof![
        4 => (0..70usize, amounts()).prop_map(|(n, a)| Node(n % 5 * 17, a)),
        3 => (0..5usize).prop_map(|n| NodeGone(n * 17)),
        4 => (0..6usize, prop::option::of(0..5usize), amounts()).prop_map(|(p, n, a)| Pod(p, n.map(|n| n * 17), a)),
        2 => (0..6usize).prop_map(PodGone),
        2 => (0..6usize, 0..5usize).prop_map(|(p, n)| Trial(p, n * 17)),
    ]
}

#[derive(Clone, Default)]
struct Model {
    nodes: BTreeMap<usize, [i64; RESOURCES]>,
    pods: BTreeMap<usize, (Option<usize>, [i64; RESOURCES])>,
}

fn node_name(n: usize) -> Name {
    Name::new(&format!("n{n}"))
}

fn happen(cluster: &mut Cluster, model: &mut Model, what: &Happening) -> Vec<ClusterEvent> {
    let mut out = Vec::new();
    match what {
        Happening::Node(n, amounts) => {
            let node =
                Node { name: node_name(*n), allocatable: list(amounts), ready: true, ..Node::default() };
            cluster.apply_node(Arc::new(node), &mut out);
            model.nodes.insert(*n, *amounts);
        }
        Happening::NodeGone(n) => {
            cluster.delete_node(&node_name(*n), &mut out);
            model.nodes.remove(n);
        }
        Happening::Pod(p, n, amounts) => {
            let requests = PodRequests { list: list(amounts), ..PodRequests::default() };
            let pod = Pod {
                key: PodKey::new("ns", &format!("p{p}")),
                // The bound pod and the pending one have different uids, so a bound name may become pending again.
                uid: format!("{p} {n:?}").into(),
                scheduler_name: "ours".into(),
                spec: Arc::new(PodSpec { requests, ..PodSpec::default() }),
                node_name: n.map(node_name),
                ..Pod::default()
            };
            cluster.apply_pod(Arc::new(pod), &mut out);
            model.pods.insert(*p, (*n, *amounts));
        }
        Happening::PodGone(p) => {
            cluster.delete_pod(&PodKey::new("ns", &format!("p{p}")), &mut out);
            model.pods.remove(p);
        }
        Happening::Trial(p, n) => {
            let id = cluster.find_pod(&PodKey::new("ns", &format!("p{p}")));
            let waits = id.filter(|id| cluster.pod(*id).is_some_and(|r| r.node.is_none()));
            if let (Some(id), Some(node)) = (waits, cluster.find_node(&node_name(*n))) {
                let overlay = cluster.begin();
                cluster.place(id, node, Stage::Reserved);
                cluster.rollback(overlay);
            }
        }
    }
    out
}

fn check(cluster: &Cluster, model: &Model) -> Result<(), TestCaseError> {
    let columns = cluster.columns();
    let offered = |r: usize| model.nodes.values().filter(|a| a[r] > 0).count();
    let wanted: Vec<usize> = (0..RESOURCES).filter(|r| offered(*r) > 0).collect();
    prop_assert_eq!(columns.numbers(), (wanted.len(), wanted.len().min(MOST)));
    for r in 0..RESOURCES {
        let name = resource(r);
        let column = columns.find(&name);
        prop_assert!(offered(r) > 0 || (column.is_none() && !columns.is_left_out(&name)));
        prop_assert!(offered(r) == 0 || column.is_some() != columns.is_left_out(&name));
        let Some(column) = column else { continue };
        prop_assert_eq!(columns.name(column), name);
        for n in (0..5).map(|n| n * 17) {
            let Some(node) = cluster.find_node(&node_name(n)) else { continue };
            let has = model.nodes.get(&n).map_or(0, |a| a[r].max(0));
            let taken = model.pods.values().filter(|(on, _)| *on == Some(n)).map(|(_, a)| a[r].max(0));
            prop_assert_eq!(columns.allocatable(node, column), has, "{} on {}", r, n);
            prop_assert_eq!(columns.requested(node, column), taken.sum::<i64>(), "{} on {}", r, n);
        }
    }
    // Columns without a name hold zeros.
    for number in 4..columns.n_resources() {
        let resource = ResourceIdx(number as u16);
        if columns.name(resource).is_empty() {
            for node in (0..cluster.n_slots()).map(|n| NodeIdx(n as u32)) {
                let amounts = (columns.allocatable(node, resource), columns.requested(node, resource));
                prop_assert_eq!(amounts, (0, 0));
            }
        }
    }
    Ok(())
}

/// Returns the name of each resource's column, if it has one.
fn names(columns: &Columns) -> Vec<Option<Name>> {
    (0..RESOURCES).map(|r| columns.find(&resource(r)).map(|column| columns.name(column))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default()
    })]

    #[test]
    fn columns_are_what_is_offered_and_requested_whatever_came_before(
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut cluster = Cluster::new(1, [Name::new("ours")], Vec::new());
        cluster.columns.limit(MOST);
        let mut model = Model::default();
        // Enough nodes for several pages.
        for n in 0..70 {
            happen(&mut cluster, &mut model, &Happening::Node(n, [-1; RESOURCES]));
        }
        let mut copies: Vec<(Cluster, Model)> = Vec::new();
        for (i, what) in happenings.iter().enumerate() {
            let (before, head) = (cluster.columns.version(), cluster.changes().head());
            let seen = names(&cluster.columns);
            happen(&mut cluster, &mut model, what);
            check(&cluster, &model)?;
            // The version and the change log invalidate results cached before.
            if seen != names(&cluster.columns) {
                prop_assert!(cluster.columns.version() != before);
                prop_assert!(cluster.changes().since(head).is_none(), "{:?}", what);
            }
            if i % 7 == 0 {
                copies.push((cluster.fork(), model.clone()));
            }
        }
        for (copy, model) in &copies {
            check(copy, model)?;
        }
    }
}

#[test]
fn what_was_left_out_is_counted_and_told_when_a_column_is_free() {
    let mut cluster = Cluster::new(1, [Name::new("ours")], Vec::new());
    cluster.columns.limit(1);
    let mut model = Model::default();
    let only = |r: usize| std::array::from_fn(|i| if i == r { 8 } else { -1 });
    happen(&mut cluster, &mut model, &Happening::Node(0, only(0)));
    happen(&mut cluster, &mut model, &Happening::Pod(0, Some(1), only(1)));
    happen(&mut cluster, &mut model, &Happening::Node(1, only(1)));
    assert_eq!(cluster.columns().left_out().collect::<Vec<_>>(), [&resource(1)]);
    let events = happen(&mut cluster, &mut model, &Happening::NodeGone(0));
    let told = events.iter().any(|event| {
        matches!(event, ClusterEvent::NodeUpdated { change, old, .. }
            if change.any(NodeChange::ALLOCATABLE) && old.allocatable.scalar(&resource(1)) == 0)
    });
    assert!(told, "{events:?}");
    let node = cluster.find_node(&node_name(1)).expect("it is there");
    let column = cluster.columns().find(&resource(1)).expect("it has a column");
    assert_eq!((cluster.columns().allocatable(node, column), cluster.columns().free(node, column)), (8, 0));
    assert_eq!(cluster.columns().left_out().count(), 0);
}
