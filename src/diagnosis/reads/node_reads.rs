//! The reads that are evaluated on a copy of the snapshot: one node with its pending pods, and one node against
//! another.

use pellucid_api::rest::{BodySchema, contrast, node_explain};
use pellucid_framework::endpoint::{Query, QueryKind};

use crate::reads::{SnapshotRead, number, param, text};
use crate::what_if::contrast::placement;
use crate::what_if::node_explain::{PODS_ASKED, node};

const LIMIT: &[Query] = &[Query::new(
    "limit",
    QueryKind::Integer,
    "How many pending pods to ask about, those of the highest priority first; 1000 without, 10000 at most",
)];

const VERSUS: &[Query] =
    &[Query::new("versus", QueryKind::Text, "Name of the other node; without, the one that would be next")];

/// Returns the reads about a node and about a placement.
pub(crate) fn view_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/explain/nodes/:nodeName",
            "explain",
            "Which pending pods a node takes or refuses and why, and what of it none of them can use",
            BodySchema::of::<node_explain::NodeExplanation>(),
            |snapshot, params, now| node(snapshot, param(params, "nodeName"), number(params, "limit", PODS_ASKED), now),
        )
        .query(LIMIT)
        .rows("/refuses", &[("Pod", "/pod"), ("Plugin", "/plugin"), ("Code", "/code"), ("Message", "/message")])
        .not_found("NodeNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/placements/:namespace/:name",
            "explain",
            "Why a pod's node rather than another one: gaps by plugin, what is decisive, what speaks against it",
            BodySchema::of::<contrast::Contrast>(),
            |snapshot, params, now| {
                let pod = (param(params, "namespace"), param(params, "name"));
                placement(snapshot, pod, text(params, "versus")?, now)
            },
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
