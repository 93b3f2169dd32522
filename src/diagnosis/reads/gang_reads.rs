//! The reads about gangs.
//!
//! Two of them are served below the plugin's path, as in Koordinator. They are registered here and not by the plugin,
//! because they report queue stages and verdicts, which a plugin does not know.

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::gang_explain::GangLine;
use pellucid_api::rest::gangs::GangSummary;
use pellucid_framework::endpoint::{Query, QueryKind};

use crate::gangs::{explain, feasibility, interference, list, summary, topology};
use crate::reads::{SnapshotRead, gang_key, text};

const KEY: &[Query] = &[Query::new(
    "key",
    QueryKind::Text,
    "Node label whose values are the domains; without it the keys of the members' required pod affinity and hard spread, \
     else zone and hostname",
)];

pub(crate) fn gang_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::list::<_, GangLine>(
            "/apis/v1/explain/gangs",
            "explain",
            "Every gang with its state, its members by stage and its verdict; gangs that wait for each other",
            ("gangs", list::OF_GANGS),
            |snapshot, _, list, now| Ok(list::list(snapshot, list, now)),
        )
        .rows(
            "/gangs",
            "Namespace /namespace, Gang /name, State /state, Min /min, Created /counts/created, \
             Pending /counts/pending, Bound /counts/bound, Outlook /outlook, Message /message",
        )
        .long(),
        SnapshotRead::new(
            "/apis/v1/explain/gangs/:namespace/:name",
            "explain",
            "Why a gang is where it is, or nowhere: numbers, root cause, who is in the way, when it is tried again",
            |snapshot, params, now| explain::gang(snapshot, &gang_key(params), now),
        )
        .rows(
            "/members",
            "Pod /pod, State /state, Node /node, Since /since, Deadline /deadline, Reason /reason",
        )
        .not_found("GangNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/gangs/:namespace/:name/feasibility",
            "explain",
            "Never or not now: how many members of a gang have places together now and on emptied nodes",
            |snapshot, params, now| feasibility::of_gang(snapshot, &gang_key(params), now),
        )
        .long()
        .not_found("GangNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/gangs/:namespace/:name/topology",
            "explain",
            "How many members of a gang each zone, rack or node has places for, and whether one has them for all",
            |snapshot, params, now| topology::of_gang(snapshot, &gang_key(params), text(params, "key")?, now),
        )
        .query(KEY)
        .rows("/domains", "Domain /value, Nodes /nodes, Members /members, Slots /slots")
        .long()
        .not_found("GangNotFound"),
        SnapshotRead::new(
            "/apis/v1/gangs/interference",
            "explain",
            "Which gang holds what another one waits for, gangs that wait for each other, and whose turn it is",
            |snapshot, _, now| Ok(interference::interference(snapshot, now)),
        )
        .rows(
            "/edges",
            "Holder /holder, Waiter /waiter, Resources /resources, Held /heldText, Nodes /nodeCount, \
             Since /since",
        ),
        SnapshotRead::new(
            "/apis/v1/plugins/Coscheduling/gangs",
            "plugins",
            "Coscheduling: every gang with its members by stage",
            |snapshot, _, now| Ok(summary::list(snapshot, now)),
        )
        .body(BodySchema::map_of::<GangSummary>())
        .rows(
            "",
            "Gang /name, State /state, Dialect /dialect, Mode /mode, Min /minRequiredNumber, \
             Created /counts/created, Gated /counts/gated, Pending /counts/pending, \
             Waiting /counts/waiting, Permitted /counts/permitted, Bound /counts/bound, \
             Finished /counts/finished",
        ),
        SnapshotRead::new(
            "/apis/v1/plugins/Coscheduling/gang/:namespace/:name",
            "plugins",
            "Coscheduling: one gang with its members by stage",
            |snapshot, params, now| summary::one(snapshot, &gang_key(params), now),
        )
        .not_found("GangNotFound"),
    ]
}
