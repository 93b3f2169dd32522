//! Every read of the scheduler's own, as data: path, parameters, type, and how to answer from a root.
//!
//! Plugins' endpoints are turned into such reads here too, with the four that every plugin has. `http/`
//! makes routes, OpenAPI, tables and `__services__` of the list.

use std::sync::Arc;

use pellucid_api::rest::{
    BodySchema, debug, explain, history, nodes, pending, preemption, profiles, queue, scores, shadow, wakeups,
};
use serde_json::Value;

use super::gang_reads::gang_reads;
use super::root::Root;
use super::view_reads::view_reads;
use super::{debug_view, flight, node_views, plugin_views, queue_view, score_views};
use super::{explain as explaining, pending as pending_views, preemption as preempting, wakeups as waking};
use crate::framework::PluginFactory;
use crate::framework::endpoint::{PathParams, Query, QueryKind, ReadContext, ReadError};
use crate::framework::view::View;
use crate::model::Now;

/// Answers a read from a root.
pub type RootFn = Arc<dyn Fn(&Root, &PathParams, Now) -> Result<Value, ReadError> + Send + Sync>;

/// How to lay a body out as rows: an array of the body, and per column a heading and a JSON pointer.
#[derive(Clone, Debug, Default)]
pub struct RowSpec {
    /// JSON pointer to the array; empty: the values of the body, a map.
    pub array: &'static str,
    /// JSON pointer to an array in each object, whose elements are the rows. Pointers of columns that begin with
    /// `..` are those of the object.
    pub nested: Option<&'static str>,
    /// Columns; none means: the fields of the first object.
    pub columns: &'static [(&'static str, &'static str)],
    /// Columns that come from the data, after the others.
    pub spread: Option<Spread>,
}

/// Columns for each element of an array in the row, such as one plugin's part in a score.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// JSON pointer to the array in the row.
    pub array: &'static str,
    /// Pointer to the name of an element, with which its headings begin.
    pub name: &'static str,
    /// Per element the columns: what the heading ends with, and a pointer.
    pub columns: &'static [(&'static str, &'static str)],
}

/// What each plugin gave a node.
const SHARES: Spread = Spread {
    array: "/plugins",
    name: "/plugin",
    columns: &[
        ("raw", "/raw"),
        ("normalized", "/normalized"),
        ("weight", "/weight"),
        ("weighted", "/weighted"),
    ],
};

/// One read.
#[derive(Clone)]
pub struct RootRead {
    /// Full path with `:name` parameters.
    pub path: String,
    /// Group in the documentation.
    pub tag: &'static str,
    /// One sentence.
    pub summary: String,
    /// Type of the body.
    pub body: BodySchema,
    /// Rows for tables.
    pub rows: Option<RowSpec>,
    /// Code of the 404, when the path names an object.
    pub not_found: Option<&'static str>,
    /// Query parameters.
    pub query: &'static [Query],
    /// Answers.
    pub read: RootFn,
}

impl RootRead {
    pub(super) fn new<T: serde::Serialize>(
        path: impl Into<String>,
        tag: &'static str,
        summary: impl Into<String>,
        body: BodySchema,
        read: impl Fn(&Root, &PathParams, Now) -> Result<T, ReadError> + Send + Sync + 'static,
    ) -> Self {
        let read =
            move |root: &Root, params: &PathParams, now: Now| Ok(serde_json::json!(read(root, params, now)?));
        let (path, summary) = (path.into(), summary.into());
        Self { path, tag, summary, body, rows: None, not_found: None, query: &[], read: Arc::new(read) }
    }

    pub(super) fn rows(
        mut self,
        array: &'static str,
        columns: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.rows = Some(RowSpec { array, columns, ..RowSpec::default() });
        self
    }

    fn score_rows(mut self, rows: RowSpec) -> Self {
        self.rows = Some(RowSpec { spread: Some(SHARES), ..rows });
        self
    }

    pub(super) fn not_found(mut self, code: &'static str) -> Self {
        self.not_found = Some(code);
        self
    }

    pub(super) fn query(mut self, query: &'static [Query]) -> Self {
        self.query = query;
        self
    }
}

/// Returns a path parameter.
pub(super) fn param<'p>(params: &'p PathParams, name: &str) -> &'p str {
    params.get(name).map_or("", String::as_str)
}

/// Whether a boolean query parameter is on. The bare name means yes.
pub(super) fn is_on(params: &PathParams, name: &str) -> bool {
    params.get(name).is_some_and(|value| value != "false" && value != "0")
}

/// Returns a number of the query, or what it is without one.
pub(super) fn number(params: &PathParams, name: &str, default: usize) -> usize {
    params.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
}

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
            "Every node: allocatable, requested, free, pods",
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
                let versus = params.get("versus").map(String::as_str);
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
            |root, params, now| pending_views::summary(root, params.get("by").map(String::as_str), now),
        )
        .query(BY)
        .rows("/rows", &[]),
        RootRead::new(
            "/apis/v1/history/pods/:namespace/:name",
            "history",
            "What happened to a pod, also after it is gone: attempts by reason, places, bindings, evictions",
            BodySchema::of::<history::PodHistory>(),
            |root, params, now| {
                flight::views::of_pod(root, param(params, "namespace"), param(params, "name"), now)
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
            read: Arc::new(move |root, params, now| {
                read(&ReadContext { view: View::new(&root.cluster), params, now })
            }),
        });
    }
    all
}
