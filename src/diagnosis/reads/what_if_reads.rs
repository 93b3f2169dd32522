//! The reads that compute: suggestions, nearest nodes, feasibility, and the hash of the state.

use pellucid_api::rest::{BodySchema, simulate, suggestions as bodies};
use pellucid_framework::endpoint::{PathParams, Query, QueryKind};

use crate::reads::{SnapshotRead, number, param};
use crate::what_if::feasibility;
use crate::what_if::nearest;
use crate::what_if::simulate as simulating;
use crate::what_if::suggestions;

const MAX: &[Query] =
    &[Query::new("max", QueryKind::Integer, "How many fixes to look for; 5 without it, at most 20")];
const NEAREST: &[Query] =
    &[Query::new("k", QueryKind::Integer, "How many nodes to list; 5 without it, at most 100")];
const COPIES: &[Query] =
    &[Query::new("copies", QueryKind::Integer, "Count copies up to this many, 1 to 10000; 1000 without it")];

fn namespaced(params: &PathParams) -> (&str, &str) {
    (param(params, "namespace"), param(params, "name"))
}

const FIXES: &[(&str, &str)] = &[("Cost", "/cost"), ("Fix", "/text"), ("Node", "/node")];

/// Returns the reads that compute.
pub(crate) fn suggestion_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/suggestions",
            "explain",
            "What would make a pod fit: minimal conflicts, and changes that were tried out",
            BodySchema::of::<bodies::Suggestions>(),
            |snapshot, params, now| {
                suggestions::of_pod(snapshot, namespaced(params), number(params, "max", 5).min(20), now)
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
            BodySchema::of::<bodies::Suggestions>(),
            |snapshot, params, now| {
                suggestions::of_gang(snapshot, namespaced(params), number(params, "max", 5).min(20), now)
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
            BodySchema::of::<bodies::Nearest>(),
            |snapshot, params, now| {
                nearest::list(snapshot, namespaced(params), number(params, "k", 5).min(100), now)
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
            BodySchema::of::<bodies::Feasibility>(),
            |snapshot, params, now| {
                let (namespace, name) = namespaced(params);
                feasibility::of_pod(snapshot, namespace, name, number(params, "copies", 1_000), now)
            },
        )
        .query(COPIES)
        .long()
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/statehash",
            "simulate",
            "One number for the state: nodes, pods with their places, nominations",
            BodySchema::of::<simulate::StateHash>(),
            |snapshot, _, now| Ok(simulating::state_hash(snapshot, now)),
        ),
    ]
}
