//! The reads about gangs.
//!
//! Two of them stand below the plugin's path, where Koordinator has them. They tell of queue stages and verdicts,
//! of which a plugin knows nothing, so they are registered here and not by the plugin.

use pellucid_api::rest::{BodySchema, gang_explain, gangs as bodies};

use super::gangs::{explain, interference, summary};
use super::reads::{RootRead, param};

/// Returns them, in the order of the documentation.
pub(super) fn gang_reads() -> Vec<RootRead> {
    vec![
        RootRead::new(
            "/apis/v1/explain/gangs/:namespace/:name",
            "explain",
            "Why a gang is where it is, or nowhere: numbers, root cause, who is in the way, when it is tried again",
            BodySchema::of::<gang_explain::GangExplanation>(),
            |root, params, now| explain::gang(root, param(params, "namespace"), param(params, "name"), now),
        )
        .rows(
            "/members",
            &[
                ("Pod", "/pod"),
                ("State", "/state"),
                ("Node", "/node"),
                ("Since", "/since"),
                ("Deadline", "/deadline"),
                ("Reason", "/reason"),
            ],
        )
        .not_found("GangNotFound"),
        RootRead::new(
            "/apis/v1/gangs/interference",
            "explain",
            "Which gang holds what another one waits for, gangs that wait for each other, and whose turn it is",
            BodySchema::of::<gang_explain::Interference>(),
            |root, _, now| Ok(interference::interference(root, now)),
        )
        .rows(
            "/edges",
            &[
                ("Holder", "/holder"),
                ("Waiter", "/waiter"),
                ("Resources", "/resources"),
                ("Held", "/heldText"),
                ("Nodes", "/nodeCount"),
                ("Since", "/since"),
            ],
        ),
        RootRead::new(
            "/apis/v1/plugins/Coscheduling/gangs",
            "plugins",
            "Coscheduling: every gang with its members by stage",
            BodySchema::map_of::<bodies::GangSummary>(),
            |root, _, now| Ok(summary::list(root, now)),
        )
        .rows(
            "",
            &[
                ("Gang", "/name"),
                ("State", "/state"),
                ("Dialect", "/dialect"),
                ("Mode", "/mode"),
                ("Min", "/minRequiredNumber"),
                ("Created", "/counts/created"),
                ("Gated", "/counts/gated"),
                ("Pending", "/counts/pending"),
                ("Waiting", "/counts/waiting"),
                ("Permitted", "/counts/permitted"),
                ("Bound", "/counts/bound"),
                ("Finished", "/counts/finished"),
            ],
        ),
        RootRead::new(
            "/apis/v1/plugins/Coscheduling/gang/:namespace/:name",
            "plugins",
            "Coscheduling: one gang with its members by stage",
            BodySchema::of::<bodies::GangSummary>(),
            |root, params, now| summary::one(root, param(params, "namespace"), param(params, "name"), now),
        )
        .not_found("GangNotFound"),
    ]
}
