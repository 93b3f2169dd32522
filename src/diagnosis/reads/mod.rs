//! Every read of the scheduler as data: path, parameters, body type, and the function that answers from a snapshot.
//!
//! Start with [`reads`]. It also turns plugins' endpoints into reads and adds those that every plugin has (`config`,
//! `stats`, `schema`). `http/` derives routes, OpenAPI, tables and `__services__` from the list.

pub(crate) mod gang_reads;
pub(crate) mod plugin_views;
mod snapshot_read;
pub(crate) mod what_if_reads;

use std::sync::Arc;

use pellucid_api::rest::evictions::Eviction;
use pellucid_api::rest::explain::PendingPod;
use pellucid_api::rest::node_explain::NodeLine;
use pellucid_api::rest::nodes::{NodeSummary, QuarantinedBody};
use pellucid_api::rest::pending::PendingRow;
use pellucid_api::rest::queue::QueuedUnit;
use pellucid_api::rest::shadow::ShadowDisagreement;

use crate::facts::{OF_PODS, OF_UNITS};
use crate::reads::gang_reads::gang_reads;
pub use crate::reads::snapshot_read::{RowSpec, SnapshotFn, SnapshotRead, Spread, stamp};
pub(crate) use crate::reads::snapshot_read::{gang_key, in_pages, is_on, number, param, pod_key, text};
use pellucid_cycle::Snapshot;
use pellucid_framework::PluginFactory;
use pellucid_framework::advice::PodRead;
use pellucid_framework::endpoint::{Endpoint, PathParams, Query, QueryKind, ReadContext};
use pellucid_framework::list::params::queries as list_queries;
use pellucid_framework::list::{Attribute, List};
use pellucid_framework::view::View;
use pellucid_model::Viewer;

use crate::reads::what_if_reads::{suggestion_reads, view_reads};
use crate::requirements::{asked_by_name, exhaustive};
use crate::views::{
    debug_view, evictions, node_views, preemption, queue_view, score_views, shadow_view, summary, wakeups,
};
use crate::{advice, explain, history, lists};

const POSITION: &[Query] = &[Query::new(
    "position",
    QueryKind::Text,
    "Key of a pod or gang, `namespace/name`: adds its position and who is ahead of it",
)];

/// A parameter that no request can have: the namespaces, with commas, whose names the reader may see; absent for readers who
/// see all. The server adds it to lists, so that the order of what is hidden tells no names.
pub const SEEN: &str = "seenNamespaces";

const BY: &[Query] = &[Query::new("by", QueryKind::Text, summary::BY)];

const LIKE: &[Query] = &[Query::new(
    "like",
    QueryKind::Text,
    "`namespace/name` of a pod: only pods of its controller and namespace, or of its shape when it has no controller",
)];

/// Largest number of nodes that an exhaustive answer lists.
const MOST_NODES: usize = 10_000;

const EXPLAIN: &[Query] = &[
    Query::new(
        "mode",
        QueryKind::Choice(&["verdict", "exhaustive"]),
        "`exhaustive` adds all that every node fails, as the state is now",
    ),
    Query::new(
        "nodes",
        QueryKind::Range(0, MOST_NODES as u64),
        "How many nodes an exhaustive answer lists; 100 without it, at most 10000",
    ),
    Query::new("refresh", QueryKind::Boolean, "Ask anew what a cycle would say of a waiting pod now"),
    Query::new(
        "versus",
        QueryKind::Text,
        "Name of a node to compare the pod's node with, or the one it would go to",
    ),
];

const HISTORY: &str =
    "Id /id, Kind /kind, First /first, Last /last, Count /count, Node /node, Message /message";

const EVICTIONS: &str = "At /at, Victim /victim, Node /node, Preemptor /preemptor, Lacked /lacked/text, \
                         Violates budget /violatesBudget, State /state, End /end";

/// Returns every read, in the order of the documentation.
pub fn reads(registry: &[Box<dyn PluginFactory>]) -> Vec<SnapshotRead> {
    let groupings: Vec<Attribute> =
        registry.iter().filter_map(|factory| factory.groups()).map(Attribute::Group).collect();
    let own = [
        cluster_reads(&groupings),
        score_reads(),
        pod_reads(&groupings),
        pending_reads(&groupings),
        own_reads(),
        gang_reads(),
        view_reads(),
        suggestion_reads(),
    ];
    let all = own.into_iter().chain(registry.iter().map(|factory| plugin_reads(&**factory))).flatten();
    all.map(SnapshotRead::with_meta).collect()
}

/// Returns the reads about profiles, nodes and the queue.
fn cluster_reads(groupings: &[Attribute]) -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/plugins",
            "plugins",
            "Profiles, plugins, extension points, weights, and the plugins' endpoints",
            |snapshot, _, now| Ok(plugin_views::plugins(snapshot, now)),
        )
        .rows("/plugins", "Plugin /name, What it decides /summary"),
        SnapshotRead::list::<_, NodeSummary>(
            "/apis/v1/nodes",
            "cluster",
            "Every node: allocatable, requested, reserved, nominated, free, pods",
            ("nodes", node_views::OF_NODES),
            |snapshot, _, list, now| Ok(node_views::list(snapshot, list, now)),
        )
        .rows(
            "/nodes",
            "Node /name, Ready /ready, Unschedulable /unschedulable, Pods /pods, Free milli-CPU /free/cpu, \
             Free memory /free/memory, Allocatable milli-CPU /allocatable/cpu, \
             Allocatable memory /allocatable/memory",
        ),
        SnapshotRead::new(
            "/apis/v1/nodes/:nodeName",
            "cluster",
            "One node: allocatable, requested, reserved, nominated, labels, taints, pods",
            |snapshot, params, now| node_views::detail(snapshot, param(params, "nodeName"), now),
        )
        .rows("/podsOnNode", "")
        .not_found("NodeNotFound"),
        SnapshotRead::list::<_, QueuedUnit>(
            "/apis/v1/queue",
            "queue",
            "Each pending unit in exactly one stage, in order; with `position`, who is ahead of one",
            ("units", &[OF_UNITS, groupings].concat()),
            |snapshot, params, list, now| {
                queue_view::queue(snapshot, params.get("position").map(String::as_str), list, now)
            },
        )
        .query(POSITION)
        .not_found("NotInQueue")
        .rows(
            "/units",
            "Unit /key, Stage /stage, Position /position, Priority /priority, Attempts /attempts, \
             Backoff until /backoffUntil, Message /message",
        ),
    ]
}

/// Returns the reads about what flags `s` and `f` recorded.
fn score_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/scores",
            "scores",
            "Recorded score tables (flag s), the newest first",
            |snapshot, _, now| Ok(score_views::tables(snapshot, now)),
        )
        .score_rows(RowSpec {
            array: "/tables",
            nested: Some("/rows"),
            columns: "Namespace ../namespace, Pod ../name, Cycle ../meta/cycleId, Winner ../winner, \
                      # /rank, Node /node, Total /total",
            spread: None,
        }),
        SnapshotRead::new(
            "/apis/v1/scores/:namespace/:name",
            "scores",
            "The newest recorded score table of a pod (flag s)",
            |snapshot, params, now| score_views::table(snapshot, &pod_key(params), now),
        )
        .score_rows(RowSpec {
            array: "/rows",
            columns: "# /rank, Node /node, Total /total",
            ..RowSpec::default()
        })
        .not_found("ScoresNotRecorded"),
        SnapshotRead::new(
            "/apis/v1/filter-failures",
            "scores",
            "Recorded refused nodes (flag f), the newest attempt first",
            |snapshot, _, now| Ok(score_views::failures(snapshot, now)),
        )
        .rows("/failures", ""),
    ]
}

fn pod_reads(groupings: &[Attribute]) -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::list::<_, PendingPod>(
            "/apis/v1/explain/pods",
            "explain",
            "Every pending pod with its verdict",
            ("pods", &[OF_PODS, groupings].concat()),
            |snapshot, params, list, now| lists::pods::pending(snapshot, text(params, "like")?, list, now),
        )
        .query(LIKE)
        .not_found("PodNotFound")
        .shared()
        .rows("/pods", "Namespace /namespace, Pod /name, Verdict /verdict, Message /message"),
        SnapshotRead::list::<_, NodeLine>(
            "/apis/v1/explain/nodes",
            "explain",
            "Every node: how many of the pending pods it would take, and for which reasons it refuses the others",
            ("nodes", node_views::OF_NODES),
            |snapshot, _, list, now| Ok(lists::nodes::list(snapshot, list, now)),
        )
        .rows(
            "/nodes",
            "Node /name, Ready /ready, Unschedulable /unschedulable, Pods /pods, Free CPU /free/cpu, \
             Free memory /free/memory, Takes /takes, Refuses /refuses, Refused for /refusedFor",
        )
        .long(),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name",
            "explain",
            "Why a pod is where it is, or nowhere: node groups that add up, numbers, remedies",
            |snapshot, params, now| {
                let (key, versus) = (pod_key(params), text(params, "versus")?);
                let mut body = explain::pod(snapshot, &key, is_on(params, "refresh"), versus, now)?;
                if params.get("mode").is_some_and(|mode| mode == "exhaustive") {
                    let listed = number(params, "nodes", 100);
                    let asked = asked_by_name(snapshot, &key).ok();
                    body.exhaustive = asked.map(|asked| exhaustive(snapshot, &asked, listed, now));
                }
                Ok(body)
            },
        )
        .query(EXPLAIN)
        .rows(
            "/nodeGroups",
            "Plugin /plugin, Nodes /count, Reason /reasons/0/message, Remedy /reasons/0/remedy",
        )
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/preemption",
            "explain",
            "Whom a pod evicted or could evict, whom it waits for, or who evicted it and by which rule",
            |snapshot, params, now| preemption::pod(snapshot, &pod_key(params), now),
        )
        .rows(
            "/search/candidates",
            "Rank /rank, Node /node, Victims /victimCount, Budget violations /budgetViolations, \
             Highest priority /highestPriority",
        )
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/evictions",
            "explain",
            "For whom a pod was evicted, for what, when, from which node, and what became of it",
            |snapshot, params, now| evictions::of_pod(snapshot, &pod_key(params), now),
        )
        .rows("/events", EVICTIONS)
        .not_found("PodNotFound"),
        SnapshotRead::new(
            "/apis/v1/explain/pods/:namespace/:name/wakeups",
            "explain",
            "What a pod waits for, and the last events with each plugin's verdict (Queue or Skip)",
            |snapshot, params, now| wakeups::of_pod(snapshot, &pod_key(params), now),
        )
        .rows("/events", "At /at, Event /event, Object /object, Verdicts /verdicts, Woke /woke")
        .not_found("PodNotFound"),
    ]
}

/// Returns the reads about what waits, and what happened to a pod.
fn pending_reads(groupings: &[Attribute]) -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::list::<_, Eviction>(
            "/apis/v1/evictions",
            "history",
            "Who was evicted for whom, for what, when, from which node, and what became of it; the newest first",
            ("evictions", evictions::OF_EVICTIONS),
            |snapshot, _, list, now| Ok(evictions::list(snapshot, list, now)),
        )
        .rows("/evictions", EVICTIONS),
        SnapshotRead::list::<_, PendingRow>(
            "/apis/v1/summary/pending",
            "explain",
            "How many pods wait, by what keeps them: each pod counts once, rows add up",
            ("rows", &[OF_UNITS, groupings].concat()),
            |snapshot, params, list, now| {
                summary::summary(snapshot, text(params, "by")?, &viewer(params), list, now)
            },
        )
        .query(BY)
        .shared()
        .rows("/rows", ""),
        SnapshotRead::new(
            "/apis/v1/history/pods/:namespace/:name",
            "history",
            "What happened to a pod, also after it is gone: attempts by reason, places, bindings, evictions",
            |snapshot, params, now| history::of_pod(snapshot, &pod_key(params), now),
        )
        .rows("/entries", HISTORY)
        .not_found("HistoryNotFound"),
        SnapshotRead::new(
            "/apis/v1/history/objects/:kind/:name",
            "history",
            "What happened to an object that is scheduled as a pod is, such as a Reservation, also after it is gone",
            |snapshot, params, now| {
                let of = |name| params.get(name).map_or("", String::as_str);
                history::of_object(snapshot, (of("kind"), of("name")), now)
            },
        )
        .rows("/entries", HISTORY)
        .not_found("HistoryNotFound"),
    ]
}

/// Returns the reads about the scheduler itself: switches, reasons, unreadable objects, shadow mode.
fn own_reads() -> Vec<SnapshotRead> {
    vec![
        SnapshotRead::new(
            "/apis/v1/debug",
            "debug",
            "What is recorded, of which pods, by whom and until when; the last changes of switches; what it costs",
            |snapshot, _, now| Ok(debug_view::debug(snapshot, now)),
        )
        .rows(
            "/active",
            "Id /id, Flag /flag, Value /value, Scope /scope, Owner /owner, Set by /setBy, Set at /setAt, \
             Expires at /expiresAt, Records /records, Left /recordsLeft",
        ),
        SnapshotRead::new(
            "/apis/v1/reasons",
            "explain",
            "The registry of reasons: code, meaning, remedy, who can resolve it",
            |snapshot, _, _| Ok(plugin_views::reasons(snapshot)),
        )
        .rows(
            "/reasons",
            "Code /code, Plugin /plugin, Message /message, Meaning /meaning, Remedy /remedy, \
             Resolver /resolver, Terminal for /terminalFor, Example /example/message",
        ),
        SnapshotRead::list::<_, QuarantinedBody>(
            "/apis/v1/quarantine",
            "cluster",
            "Objects the API server accepted but the scheduler cannot read",
            ("objects", node_views::OF_OBJECTS),
            |snapshot, _, list, now| Ok(node_views::quarantine(snapshot, list, now)),
        )
        .rows("/objects", ""),
        SnapshotRead::list::<_, ShadowDisagreement>(
            "/apis/v1/shadow",
            "explain",
            "How the shadowed scheduler's decisions compare with ours, and those that do not (run --shadow-of)",
            ("disagreements", shadow_view::OF_DISAGREEMENTS),
            |snapshot, _, list, now| shadow_view::shadow(snapshot, list, now),
        )
        .rows(
            "/disagreements",
            "Pod /pod, At /at, Judgement /judgement, Theirs /theirs, Ours /ours, Their total /theirTotal, \
             Best total /bestTotal, Better nodes /better, Feasible nodes /feasible, Within sampling /withinSampling",
        )
        .not_found("NotShadowing"),
    ]
}

/// Returns whose names the reader of a list may see.
fn viewer(params: &PathParams) -> Viewer {
    params.get(SEEN).map_or(Viewer::All, |seen| Viewer::of(seen.split(',')))
}

fn plugin_reads(factory: &dyn PluginFactory) -> Vec<SnapshotRead> {
    let name = factory.name();
    let path = |end: &str| format!("/apis/v1/plugins/{name}/{end}");
    let mut all = vec![
        SnapshotRead::new(
            path("config"),
            "plugins",
            format!("Arguments of {name} in force, by profile"),
            move |snapshot, _, now| Ok(plugin_views::config(snapshot, name, now)),
        ),
        SnapshotRead::new(
            path("stats"),
            "plugins",
            format!("What {name} did since the start, by profile"),
            move |snapshot, _, now| Ok(plugin_views::stats(snapshot, name, now)),
        ),
        SnapshotRead::new(
            path("schema"),
            "plugins",
            format!("Extension points and arguments of {name}"),
            move |snapshot, _, _| plugin_views::schema(snapshot, name),
        ),
    ];
    all.extend(factory.endpoints().into_iter().map(|endpoint| {
        let at = match endpoint.explains {
            true => format!("/apis/v1/explain/{}", endpoint.path),
            false => path(endpoint.path),
        };
        plugin_read(name, at, endpoint)
    }));
    all.extend(factory.pod_read().map(|read| pod_read(name, read)));
    all
}

/// Returns the read about one pod that a plugin answers.
fn pod_read(name: &'static str, of: PodRead) -> SnapshotRead {
    let path = format!("/apis/v1/explain/pods/:namespace/:name/{}", of.path);
    SnapshotRead::new(path, "explain", format!("{name}: {}", of.summary), move |snapshot, params, now| {
        advice::read(snapshot, name, &pod_key(params), now)
    })
    .body(of.body)
    .rows(of.rows, "")
    .not_found("PodNotFound")
}

/// Returns the read of an endpoint that a plugin registered.
fn plugin_read(name: &str, path: String, endpoint: Endpoint) -> SnapshotRead {
    let Endpoint { summary, body, rows, list, query, read, .. } = endpoint;
    let answer = move |snapshot: &Snapshot, params: &PathParams, list: &List, now| {
        read(&ReadContext { view: View::new(&snapshot.cluster), params, now, list })
    };
    let (mut queries, read): (_, SnapshotFn) = match list {
        Some(spec) => (list_queries(&spec.attributes), in_pages(spec, answer)),
        None => {
            let all = List::default();
            (Vec::new(), Arc::new(move |snapshot, params, now| answer(snapshot, params, &all, now)))
        }
    };
    queries.extend(query);
    let not_found = path.contains(':').then_some("NotFound");
    SnapshotRead {
        path,
        tag: "plugins",
        summary: format!("{name}: {summary}"),
        body,
        rows: rows.map(|array| RowSpec { array, ..RowSpec::default() }),
        not_found,
        query: queries,
        is_long: false,
        is_shared: false,
        read,
    }
}
