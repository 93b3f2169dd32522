//! Every read of the scheduler's own, as data: path, parameters, type, and how to answer from a root.
//!
//! Plugins' endpoints are turned into such reads here too, with the four that every plugin has. `http/`
//! makes routes, OpenAPI, tables and `__services__` of the list.

use std::sync::Arc;

use pellucid_api::rest::{
    BodySchema, debug, explain, history, nodes, pending, preemption, profiles, queue, scores, shadow, wakeups,
};

use super::gang_reads::gang_reads;
pub use super::root_read::{RootFn, RootRead, RowSpec, Spread};
pub(super) use super::root_read::{is_on, number, param, text};
use pellucid_framework::PluginFactory;
use pellucid_framework::endpoint::{Query, QueryKind, ReadContext};
use pellucid_framework::view::View;

use super::view_reads::view_reads;
use super::{debug_view, node_views, plugin_views, queue_view, score_views};
use super::{
    explain as explaining, history as recorded, pending as pending_views, preemption as preempting,
    wakeups as waking,
};

const POSITION: &[Query] = &[Query::new(
    "position",
    QueryKind::Text,
    "Key of a pod or gang, `namespace/name`: adds its position and who is ahead of it",
)];

const BY: &[Query] = &[Query::new(
    "by",
    QueryKind::Text,
    "Dimensions with commas, `code` without: code, plugin, resource, resolver, namespace, profile, stage, gang, priority",
)];

/// Nodes that an exhaustive answer lists at most.
const MOST_NODES: usize = 10_000;

const EXPLAIN: &[Query] = &[
    Query::new(
        "mode",
        QueryKind::Choice(&["verdict", "exhaustive"]),
        "`exhaustive` adds all that every node fails, as the state is now",
    ),
    Query::new("nodes", QueryKind::Integer, "How many nodes an exhaustive answer lists; 100 without it"),
    Query::new("refresh", QueryKind::Boolean, "Ask anew what a cycle would say of a waiting pod now"),
    Query::new(
        "versus",
        QueryKind::Text,
        "Name of a node to compare the pod's node with, or the one it would go to",
    ),
];

/// Returns every read, in the order of the documentation.
pub fn reads(registry: &[Box<dyn PluginFactory>]) -> Vec<RootRead> {
    let mut all = scheduler_reads();
    all.extend(gang_reads());
    all.extend(view_reads());
    all.extend(super::suggestion_reads::suggestion_reads());
    for factory in registry {
        all.extend(plugin_reads(&**factory));
    }
    all
}

fn scheduler_reads() -> Vec<RootRead> {
    vec![
        RootRead::new(
            "/apis/v1/plugins",
            "plugins",
            "Profiles, plugins, extension points, weights, and the plugins' endpoints",
            BodySchema::of::<profiles::Plugins>(),
            |root, _, now| Ok(plugin_views::plugins(root, now)),
        )
        .rows("/plugins", &[("Plugin", "/name"), ("What it decides", "/summary")]),
        RootRead::new(
            "/apis/v1/nodes",
            "cluster",
            "Every node: allocatable, requested, reserved, nominated, free, pods",
            BodySchema::of::<nodes::NodeList>(),
            |root, _, now| Ok(node_views::list(root, now)),
        )
        .rows(
            "/nodes",
            &[
                ("Node", "/name"),
                ("Ready", "/ready"),
                ("Unschedulable", "/unschedulable"),
                ("Pods", "/pods"),
                ("Free milli-CPU", "/free/cpu"),
                ("Free memory", "/free/memory"),
                ("Allocatable milli-CPU", "/allocatable/cpu"),
                ("Allocatable memory", "/allocatable/memory"),
            ],
        ),
        RootRead::new(
            "/apis/v1/nodes/:nodeName",
            "cluster",
            "One node: allocatable, requested, reserved, nominated, labels, taints, pods",
            BodySchema::of::<nodes::NodeDetail>(),
            |root, params, now| node_views::detail(root, param(params, "nodeName"), now),
        )
        .rows("/podsOnNode", &[])
        .not_found("NodeNotFound"),
        RootRead::new(
            "/apis/v1/queue",
            "queue",
            "Each pending unit in exactly one stage, in order; with `position`, who is ahead of one",
            BodySchema::of::<queue::Queue>(),
            |root, params, now| queue_view::queue(root, params.get("position").map(String::as_str), now),
        )
        .query(POSITION)
        .not_found("NotInQueue")
        .rows(
            "/units",
            &[
                ("Unit", "/key"),
                ("Stage", "/stage"),
                ("Position", "/position"),
                ("Priority", "/priority"),
                ("Attempts", "/attempts"),
                ("Backoff until", "/backoffUntil"),
                ("Message", "/message"),
            ],
        ),
        RootRead::new(
            "/apis/v1/scores",
            "scores",
            "Recorded score tables (flag s), the newest first",
            BodySchema::of::<scores::ScoreTables>(),
            |root, _, now| Ok(score_views::tables(root, now)),
        )
        .score_rows(RowSpec {
            array: "/tables",
            nested: Some("/rows"),
            columns: &[
                ("Namespace", "../namespace"),
                ("Pod", "../name"),
                ("Cycle", "../meta/cycleId"),
                ("Winner", "../winner"),
                ("#", "/rank"),
                ("Node", "/node"),
                ("Total", "/total"),
            ],
            spread: None,
        }),
        RootRead::new(
            "/apis/v1/scores/:namespace/:name",
            "scores",
            "The newest recorded score table of a pod (flag s)",
            BodySchema::of::<scores::ScoreTable>(),
            |root, params, now| {
                score_views::table(root, param(params, "namespace"), param(params, "name"), now)
            },
        )
        .score_rows(RowSpec {
            array: "/rows",
            columns: &[("#", "/rank"), ("Node", "/node"), ("Total", "/total")],
            ..RowSpec::default()
        })
        .not_found("ScoresNotRecorded"),
        RootRead::new(
            "/apis/v1/filter-failures",
            "scores",
            "Recorded refused nodes (flag f), the newest attempt first",
            BodySchema::of::<scores::FilterFailures>(),
            |root, _, now| Ok(score_views::failures(root, now)),
        )
        .rows("/failures", &[]),
        RootRead::new(
            "/apis/v1/explain/pods",
            "explain",
            "Every pending pod with its verdict",
            BodySchema::of::<explain::PendingPods>(),
            |root, _, now| Ok(explaining::pending(root, now)),
        )
        .rows(
            "/pods",
            &[
                ("Namespace", "/namespace"),
                ("Pod", "/name"),
                ("Verdict", "/verdict"),
                ("Message", "/message"),
            ],
        ),
        RootRead::new(
            "/apis/v1/explain/pods/:namespace/:name",
            "explain",
            "Why a pod is where it is, or nowhere: node groups that add up, numbers, remedies",
            BodySchema::of::<explain::PodExplanation>(),
            |root, params, now| {
                let (namespace, name) = (param(params, "namespace"), param(params, "name"));
                let versus = text(params, "versus")?;
                let wanted = explaining::Wanted { refresh: is_on(params, "refresh"), versus };
                let mut body = explaining::pod(root, (namespace, name), wanted, now)?;
                if params.get("mode").is_some_and(|mode| mode == "exhaustive") {
                    let listed = number(params, "nodes", 100).min(MOST_NODES);
                    body.exhaustive = super::requirements::of_pod(root, namespace, name, listed);
                }
                Ok(body)
            },
        )
        .query(EXPLAIN)
        .rows(
            "/nodeGroups",
            &[
                ("Plugin", "/plugin"),
                ("Nodes", "/count"),
                ("Reason", "/reasons/0/message"),
                ("Remedy", "/reasons/0/remedy"),
            ],
        )
        .not_found("PodNotFound"),
        RootRead::new(
            "/apis/v1/explain/pods/:namespace/:name/preemption",
            "explain",
            "Whom a pod evicted or could evict, whom it waits for, or who evicted it and by which rule",
            BodySchema::of::<preemption::PreemptionExplanation>(),
            |root, params, now| preempting::pod(root, param(params, "namespace"), param(params, "name"), now),
        )
        .rows(
            "/search/candidates",
            &[
                ("Rank", "/rank"),
                ("Node", "/node"),
                ("Victims", "/victimCount"),
                ("Budget violations", "/budgetViolations"),
                ("Highest priority", "/highestPriority"),
            ],
        )
        .not_found("PodNotFound"),
        RootRead::new(
            "/apis/v1/explain/pods/:namespace/:name/wakeups",
            "explain",
            "What a pod waits for, and the last events with each plugin's verdict (Queue or Skip)",
            BodySchema::of::<wakeups::PodWakeups>(),
            |root, params, now| waking::of_pod(root, param(params, "namespace"), param(params, "name"), now),
        )
        .rows(
            "/events",
            &[
                ("At", "/at"),
                ("Event", "/event"),
                ("Object", "/object"),
                ("Verdicts", "/verdicts"),
                ("Woke", "/woke"),
            ],
        )
        .not_found("PodNotFound"),
        RootRead::new(
            "/apis/v1/summary/pending",
            "explain",
            "How many pods wait, by what keeps them: each pod counts once, rows add up",
            BodySchema::of::<pending::PendingSummary>(),
            |root, params, now| pending_views::summary(root, text(params, "by")?, now),
        )
        .query(BY)
        .rows("/rows", &[]),
        RootRead::new(
            "/apis/v1/history/pods/:namespace/:name",
            "history",
            "What happened to a pod, also after it is gone: attempts by reason, places, bindings, evictions",
            BodySchema::of::<history::PodHistory>(),
            |root, params, now| {
                recorded::of_pod(root, param(params, "namespace"), param(params, "name"), now)
            },
        )
        .rows(
            "/entries",
            &[
                ("Id", "/id"),
                ("Kind", "/kind"),
                ("First", "/first"),
                ("Last", "/last"),
                ("Count", "/count"),
                ("Node", "/node"),
                ("Message", "/message"),
            ],
        )
        .not_found("HistoryNotFound"),
        RootRead::new(
            "/apis/v1/debug",
            "debug",
            "What is recorded, of which pods, by whom and until when; the last changes of switches; what it costs",
            BodySchema::of::<debug::Debug>(),
            |root, _, now| Ok(debug_view::debug(root, now)),
        )
        .rows(
            "/active",
            &[
                ("Id", "/id"),
                ("Flag", "/flag"),
                ("Value", "/value"),
                ("Scope", "/scope"),
                ("Owner", "/owner"),
                ("Set by", "/setBy"),
                ("Set at", "/setAt"),
                ("Expires at", "/expiresAt"),
                ("Records", "/records"),
                ("Left", "/recordsLeft"),
            ],
        ),
        RootRead::new(
            "/apis/v1/reasons",
            "explain",
            "The registry of reasons: code, meaning, remedy, who can resolve it",
            BodySchema::of::<profiles::Reasons>(),
            |_, _, _| Ok(plugin_views::reasons()),
        )
        .rows(
            "/reasons",
            &[
                ("Code", "/code"),
                ("Plugin", "/plugin"),
                ("Message", "/message"),
                ("Meaning", "/meaning"),
                ("Remedy", "/remedy"),
                ("Resolver", "/resolver"),
                ("Terminal for", "/terminalFor"),
                ("Example", "/example/message"),
            ],
        ),
        RootRead::new(
            "/apis/v1/quarantine",
            "cluster",
            "Objects the API server accepted but the scheduler cannot read",
            BodySchema::of::<nodes::Quarantine>(),
            |root, _, now| Ok(node_views::quarantine(root, now)),
        )
        .rows("/objects", &[]),
        RootRead::new(
            "/apis/v1/shadow",
            "explain",
            "How often the decisions agree with the shadowed scheduler's (run --shadow-of)",
            BodySchema::of::<shadow::Shadow>(),
            |root, _, now| plugin_views::shadow(root, now),
        )
        .rows("/examples", &[])
        .not_found("NotShadowing"),
    ]
}

fn plugin_reads(factory: &dyn PluginFactory) -> Vec<RootRead> {
    let name = factory.name();
    let path = |end: &str| format!("/apis/v1/plugins/{name}/{end}");
    let mut all = vec![
        RootRead::new(
            path("config"),
            "plugins",
            format!("Arguments of {name} in force, by profile"),
            BodySchema::of::<profiles::PluginConfig>(),
            move |root, _, now| Ok(plugin_views::config(root, name, now)),
        ),
        RootRead::new(
            path("stats"),
            "plugins",
            format!("What {name} did since the start, by profile"),
            BodySchema::of::<profiles::PluginStats>(),
            move |root, _, now| Ok(plugin_views::stats(root, name, now)),
        ),
        RootRead::new(
            path("schema"),
            "plugins",
            format!("Extension points and arguments of {name}"),
            BodySchema::of::<profiles::PluginSchema>(),
            move |root, _, _| plugin_views::schema(root, name),
        ),
    ];
    for endpoint in factory.endpoints() {
        let read = endpoint.read.clone();
        all.push(RootRead {
            path: path(endpoint.path),
            tag: "plugins",
            summary: format!("{name}: {}", endpoint.summary),
            body: endpoint.body,
            rows: endpoint.rows.map(|array| RowSpec { array, ..RowSpec::default() }),
            not_found: endpoint.path.contains(':').then_some("NotFound"),
            query: &[],
            is_long: false,
            read: Arc::new(move |root, params, now| {
                read(&ReadContext { view: View::new(&root.cluster), params, now })
            }),
        });
    }
    all
}
