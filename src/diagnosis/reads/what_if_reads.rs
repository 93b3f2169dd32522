//! The reads that are evaluated on a copy of the snapshot: a node with its pending pods, one node against another,
//! suggestions, nearest nodes, feasibility, and the hash of the state.

use pellucid_framework::endpoint::{Query, QueryKind};

use crate::not_pending;
use crate::reads::{SnapshotRead, gang_key, number, param, pod_key, text};
use crate::what_if::compare_nodes::compare_nodes;
use crate::what_if::node_explain::{PODS_ASKED, node};
use crate::what_if::{feasibility, nearest, simulate, suggestions};

const LIMIT: &[Query] = &[Query::new(
    "limit",
    QueryKind::Integer,
    "How many pending pods to ask about, those of the highest priority first; 1000 without, 10000 at most",
)];

const VERSUS: &[Query] =
    &[Query::new("versus", QueryKind::Text, "Name of the other node; without, the one that would be next")];

const MAX: &[Query] =
    &[Query::new("max", QueryKind::Integer, "How many fixes to look for; 5 without it, at most 20")];
const NEAREST: &[Query] =
    &[Query::new("k", QueryKind::Integer, "How many nodes to list; 5 without it, at most 100")];
const COPIES: &[Query] =
    &[Query::new("copies", QueryKind::Integer, "Count copies up to this many, 1 to 10000; 1000 without it")];

const FIXES: &[(&str, &str)] = &[("Cost", "/cost"), ("Fix", "/text"), ("Node", "/node")];

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
        .rows("/refuses", &[("Pod", "/pod"), ("Plugin", "/plugin"), ("Code", "/code"), ("Message", "/message")])
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
            &[
                ("Plugin", "/plugin"),
                ("Weight", "/weight"),
                ("Chosen", "/weighted/chosen"),
                ("Versus", "/weighted/versus"),
                ("Gap", "/gap"),
                ("Decisive", "/decisive"),
                ("Opposing", "/opposing"),
            ],
        )
        .not_found("PodNotFound"),
    ]
}

/// Returns the reads that compute what would help, and the hash of the state.
pub(crate) fn suggestion_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/suggestions",
            "explain",
            "What would make a pod fit: minimal conflicts, and changes that were tried out",
            |snapshot, params, now| {
                let key = pod_key(params);
                let mut body = suggestions::of_pod(snapshot, &key, number(params, "max", 5).min(20), now)?;
                body.not_pending = not_pending::of(snapshot, &key);
                Ok(body)
            },
        )
        .rows("/fixes", FIXES)
        .query(MAX)
        .long()
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/gangs/:namespace/:name/suggestions",
            "explain",
            "What would give a gang its quorum: changes that were tried out for the whole group",
            |snapshot, params, now| {
                suggestions::of_gang(snapshot, &gang_key(params), number(params, "max", 5).min(20), now)
            },
        )
        .rows("/fixes", FIXES)
        .query(MAX)
        .long()
        .not_found("GangNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/nearest",
            "explain",
            "The nodes nearest to taking a pod, what each lacks, and the pods that would have to go",
            |snapshot, params, now| {
                let key = pod_key(params);
                let mut body = nearest::list(snapshot, &key, number(params, "k", 5).min(100), now)?;
                body.not_pending = not_pending::of(snapshot, &key);
                Ok(body)
            },
        )
        .rows("/nodes", &[("Node", "/node"), ("Distance", "/distance"), ("Fails", "/failed/0/message")])
        .query(NEAREST)
        .long()
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/feasibility",
            "explain",
            "Never or not now: how many copies of a pod fit now and on empty nodes, and the largest that fits",
            |snapshot, params, now| {
                let key = pod_key(params);
                let mut body = feasibility::of_pod(snapshot, &key, number(params, "copies", 1_000), now)?;
                body.not_pending = not_pending::of(snapshot, &key);
                Ok(body)
            },
        )
        .query(COPIES)
        .long()
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/statehash",
            "simulate",
            "One number for the state: nodes, pods with their places, nominations",
            |snapshot, _, now| Ok(simulate::state_hash(snapshot, now)),
        ),
    ]
}
