//! The reads that are evaluated on a copy of the snapshot: a node with its pending pods, one node against another,
//! suggestions, nearest nodes, feasibility, and the hash of the state.

use pellucid_api::rest::ToSchema;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::{PathParams, Query, QueryKind, ReadError};
use pellucid_model::Now;
use serde::Serialize;

use crate::not_pending;
use crate::reads::{SnapshotRead, gang_key, number, param, pod_key, text};
use crate::requirements::nearest;
use crate::what_if::compare_nodes::compare_nodes;
use crate::what_if::feasibility::MOST_COPIES;
use crate::what_if::node_explain::{PODS_ASKED, PODS_MOST, node};
use crate::what_if::{feasibility, simulate, suggestions};

const LIMIT: &[Query] = &[Query::new(
    "limit",
    QueryKind::Range(0, PODS_MOST as u64),
    "How many pending pods to ask about, those of the highest priority first; 1000 without, 10000 at most",
)];

const VERSUS: &[Query] =
    &[Query::new("versus", QueryKind::Text, "Name of the other node; without, the one that would be next")];

/// A number that a read is asked for: its parameter, and the number without it.
type Amount = (&'static [Query], usize);

const MAX: Amount = (
    &[Query::new("max", QueryKind::Range(0, 20), "How many fixes to look for; 5 without it, at most 20")],
    5,
);
const NEAREST: Amount =
    (&[Query::new("k", QueryKind::Range(1, 100), "How many nodes to list; 5 without it, at most 100")], 5);
const COPIES: Amount = (
    &[Query::new(
        "copies",
        QueryKind::Range(1, MOST_COPIES as u64),
        "Count copies up to this many, 1 to 10000; 1000 without it",
    )],
    1_000,
);

const FIXES: &str = "Cost /cost, Fix /text, Node /node";

/// Returns the reads about a node and about a placement.
pub(crate) fn view_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/explain/nodes/:nodeName",
            "explain",
            "Which pending pods a node takes or refuses and why, and what of it none of them can use",
            |snapshot, params, now| {
                node(snapshot, param(params, "nodeName"), number(params, "limit", PODS_ASKED), now)
            },
        )
        .query(LIMIT)
        .rows("/refuses", "Pod /pod, Plugin /plugin, Code /code, Message /message")
        .not_found("NodeNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/placements/:namespace/:name",
            "explain",
            "Why a pod's node rather than another one: gaps by plugin, what is decisive, what speaks against it",
            |snapshot, params, now| compare_nodes(snapshot, &pod_key(params), text(params, "versus")?, now),
        )
        .query(VERSUS)
        .rows(
            "/plugins",
            "Plugin /plugin, Weight /weight, Chosen /weighted/chosen, Versus /weighted/versus, Gap /gap, \
             Decisive /decisive, Opposing /opposing",
        )
        .not_found("PodNotFound"),
    ]
}

/// Returns the reads that compute what would help, and the hash of the state.
pub(crate) fn suggestion_reads() -> Vec<SnapshotRead> {
    vec![
        tried(
            "/apis/v1/explain/pods/:namespace/:name/suggestions",
            "What would make a pod fit: minimal conflicts, and changes that were tried out",
            MAX,
            |snapshot, params, max, now| {
                let mut body = suggestions::of_pod(snapshot, &pod_key(params), max, now)?;
                body.not_pending = not_pending::of(snapshot, &pod_key(params));
                Ok(body)
            },
        )
        .rows("/fixes", FIXES)
        .not_found("PodNotFound"),
        tried(
            "/apis/v1/explain/gangs/:namespace/:name/suggestions",
            "What would give a gang its quorum: changes that were tried out for the whole group",
            MAX,
            |snapshot, params, max, now| suggestions::of_gang(snapshot, &gang_key(params), max, now),
        )
        .rows("/fixes", FIXES)
        .not_found("GangNotFound"),
        tried(
            "/apis/v1/explain/pods/:namespace/:name/nearest",
            "The nodes nearest to taking a pod, what each lacks, and the pods that would have to go",
            NEAREST,
            |snapshot, params, k, now| {
                let mut body = nearest::list(snapshot, &pod_key(params), k, now)?;
                body.not_pending = not_pending::of(snapshot, &pod_key(params));
                Ok(body)
            },
        )
        .rows("/nodes", "Node /node, Distance /distance, Fails /failed/0/message")
        .not_found("PodNotFound"),
        tried(
            "/apis/v1/explain/pods/:namespace/:name/feasibility",
            "Never or not now: how many copies of a pod fit now and on empty nodes, and the largest that fits",
            COPIES,
            |snapshot, params, copies, now| {
                let mut body = feasibility::of_pod(snapshot, &pod_key(params), copies, now)?;
                body.not_pending = not_pending::of(snapshot, &pod_key(params));
                Ok(body)
            },
        )
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/statehash",
            "simulate",
            "One number for the state: nodes, pods with their places, nominations",
            |snapshot, _, now| Ok(simulate::state_hash(snapshot, now)),
        ),
    ]
}

/// Returns a read that tries out so much that it takes long.
fn tried<T: Serialize + ToSchema + 'static>(
    path: &str,
    summary: &str,
    (query, without): Amount,
    read: impl Fn(&Snapshot, &PathParams, usize, Now) -> Result<T, ReadError> + Send + Sync + 'static,
) -> SnapshotRead {
    SnapshotRead::new(path, "explain", summary, move |snapshot, params, now| {
        read(snapshot, params, number(params, query[0].name, without), now)
    })
    .query(query)
    .long()
}
