//! A server with generated bodies, made from the types of the REST API: nodes, pending pods of a few controllers, gangs,
//! and a feed of events. Lists heed `limit`, `name` and `like`, and count the items that they are asked for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pellucid::http::{Kind, Limits, Lines, Param, Params, Parts, Renderer, Route, Server, Version};
use pellucid::model::Published;
use pellucid::model::time::Now;
use pellucid_api::rest::explain::{NodeGroup, OwnerOf, PendingPod, PendingPods, PodExplanation, ReasonBody};
use pellucid_api::rest::gang_explain::{
    GangExplanation, GangLine, GangList, Interference, InterferenceCycle, InterferenceEdge,
};
use pellucid_api::rest::gangs::GangCounts;
use pellucid_api::rest::nodes::{NodeList, NodeSummary};
use pellucid_api::rest::pending::{PendingRow, PendingSummary};
use pellucid_api::rest::trends::{TrendReason, TrendSample, Trends};
use pellucid_api::rest::{BodySchema, Meta};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How much there is of everything.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    pub(crate) gangs: u32,
    /// Pods of one controller.
    pub(crate) of_one: usize,
    /// Events that the feed has more at each request.
    pub(crate) events: u64,
    /// Samples of trends.
    pub(crate) samples: usize,
}

/// The running server.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    /// The most pending pods, or gangs, that one answer had.
    pub(crate) most_items: Arc<AtomicUsize>,
    stop: CancellationToken,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Cluster;

impl Published for Cluster {
    fn generation(&self) -> u64 {
        1
    }
}

/// Returns a deterministic pseudo-random number.
fn noise(n: usize) -> usize {
    let mixed = (n as u64 ^ 0x9e37_79b9).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 33) as usize
}

fn nodes(size: Size) -> NodeList {
    let node = |n: usize| {
        let third = n * 3 / size.nodes;
        let pool = ["compute", "memory", "gpu"][third];
        let busy = 25 * third + noise(n) % 50;
        let offered = BTreeMap::from([("cpu", 64_000), ("memory", 256 << 30), ("pods", 110)]);
        let of = |share: fn(i64, i64) -> i64| {
            offered.iter().map(|(name, all)| ((*name).to_owned(), share(*all, busy as i64))).collect()
        };
        NodeSummary {
            name: format!("{pool}-{n:04}"),
            ready: !n.is_multiple_of(401),
            unschedulable: n.is_multiple_of(97),
            pods: busy / 4,
            allocatable: of(|all, _| all),
            requested: of(|all, busy| all * busy / 100),
            free: of(|all, busy| all - all * busy / 100),
            ..NodeSummary::default()
        }
    };
    NodeList { meta: Meta::default(), count: size.nodes, nodes: (0..size.nodes).map(node).collect() }
}

const REASONS: [&str; 5] =
    ["HostPortConflict", "NodeAffinityMismatch", "UntoleratedTaint", "TooManyPods", "InsufficientResource"];

fn reason(group: usize) -> String {
    REASONS[(noise(group) % 15).min(4)].to_owned()
}

/// Returns all pending pods. Those of one controller stand together.
fn pending(size: Size) -> Vec<PendingPod> {
    let pod = |n: usize| {
        let group = n / size.of_one;
        PendingPod {
            namespace: format!("team-{}", group % 20),
            name: format!("job-{group:03}-{n:05}"),
            owner: Some(OwnerOf { kind: "Job".to_owned(), name: format!("job-{group:03}") }),
            priority: 10,
            created_at: "2026-01-01T00:00:00.000Z".to_owned(),
            requests: BTreeMap::from([("cpu".to_owned(), "4".to_owned())]),
            stage: "unschedulable".to_owned(),
            verdict: "refused".to_owned(),
            key_reason: reason(group),
            outlook: "NotNow".to_owned(),
            reasons: vec![reason(group), "NodeUnschedulable".to_owned()],
            ..PendingPod::default()
        }
    };
    (0..size.pods).map(pod).collect()
}

fn owner_of(pod: &PendingPod) -> String {
    pod.owner.as_ref().map(|owner| format!("{}/{}", owner.kind, owner.name)).unwrap_or_default()
}

/// Counts pods by controller, by reason, or by who can resolve it.
fn summary(pods: &[PendingPod], params: &Params) -> PendingSummary {
    let (by_code, by_resolver) = (params.text("by") == Some("code"), params.text("by") == Some("resolver"));
    let name = params.text("name").unwrap_or_default();
    let mut rows: BTreeMap<String, PendingRow> = BTreeMap::new();
    let found: Vec<&PendingPod> = pods.iter().filter(|pod| pod.name.starts_with(name)).collect();
    for pod in &found {
        let resolver = if pod.key_reason == "InsufficientResource" { "time" } else { "pod owner" };
        let key = match (by_code, by_resolver) {
            (true, _) => pod.key_reason.clone(),
            (_, true) => resolver.to_owned(),
            _ => owner_of(pod),
        };
        let row = rows.entry(key.clone()).or_insert_with(|| PendingRow {
            code: by_code.then(|| key.clone()),
            resolver: by_resolver.then(|| key.clone()),
            owner: (!by_code && !by_resolver).then_some(key),
            namespace: Some(pod.namespace.clone()),
            oldest: pod.created_at.clone(),
            requests: Some(pod.requests.clone()),
            example: format!("{}/{}", pod.namespace, pod.name),
            key_reason: pod.key_reason.clone(),
            outlook: pod.outlook.clone(),
            min_priority: pod.priority,
            max_priority: pod.priority,
            ..PendingRow::default()
        });
        row.pods += 1;
    }
    let mut rows: Vec<PendingRow> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.pods));
    let count = rows.len();
    rows.truncate(limit(params));
    PendingSummary { meta: Meta::default(), by: Vec::new(), count, total_pending: found.len(), rows }
}

fn limit(params: &Params) -> usize {
    let limit = params.integer("limit").ok().flatten().unwrap_or(500);
    if limit == 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) }
}

fn listed(pods: &[PendingPod], params: &Params) -> PendingPods {
    let name = params.text("name").unwrap_or_default();
    let like = params.text("like").and_then(|like| pods.iter().find(|pod| like.ends_with(&pod.name)));
    let is_asked = |pod: &&PendingPod| {
        pod.name.starts_with(name) && like.is_none_or(|like| owner_of(like) == owner_of(pod))
    };
    let found: Vec<&PendingPod> = pods.iter().filter(is_asked).collect();
    let pods = found.iter().take(limit(params)).map(|pod| (*pod).clone()).collect();
    PendingPods { meta: Meta::default(), count: found.len(), pods }
}

/// Lists gangs of the states that are asked for. One of nine runs.
fn gangs(size: Size, params: &Params) -> GangList {
    let gang = |n: u32| GangLine {
        namespace: format!("team-{}", n % 20),
        name: format!("gang-{n:03}"),
        state: if n.is_multiple_of(9) { "Running" } else { "Unschedulable" }.to_owned(),
        counts: GangCounts { created: 8, pending: n % 9, bound: 8 - n % 9, ..GangCounts::default() },
        min: 8,
        ..GangLine::default()
    };
    let stages: Vec<&str> = params.text("stage").unwrap_or("Running,Unschedulable").split(',').collect();
    let found: Vec<GangLine> =
        (0..size.gangs).map(gang).filter(|gang| stages.contains(&&*gang.state)).collect();
    let count = found.len();
    GangList { count, gangs: found.into_iter().take(limit(params)).collect(), ..GangList::default() }
}

/// Returns samples every ten seconds. Nothing was placed at every fourth.
fn trends(size: Size) -> Trends {
    let sample = |n: usize| {
        let second = n * 10;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let wave = (n as f64 / 25.0).sin();
        let lacking = 400 + (100.0 * wave) as usize;
        let reasons =
            [("InsufficientResource", lacking), ("UntoleratedTaint", 40 + n / 20), ("TooManyPods", 7)];
        TrendSample {
            at: format!("2026-01-01T{hour:02}:{minute:02}:{second:02}.000Z"),
            seconds: (n > 0).then_some(10.0),
            pending: reasons.iter().map(|(_, pods)| pods).sum(),
            reasons: Some(
                reasons
                    .iter()
                    .map(|(code, pods)| TrendReason { code: (*code).to_owned(), pods: *pods })
                    .collect(),
            ),
            binds_per_second: (n > 0).then(|| 12.0 + (noise(n) % 60) as f64 / 10.0),
            attempts_per_second: (n > 0).then_some(30.0 + 20.0 * wave),
            wait_p99_seconds: (!n.is_multiple_of(4)).then(|| 0.02 + (noise(n) % 100) as f64 / 1000.0),
            ..TrendSample::default()
        }
    };
    Trends {
        every_seconds: 10,
        most_samples: 360,
        samples: (0..size.samples).map(sample).collect(),
        ..Trends::default()
    }
}

/// Returns two gangs of which each holds what the other one lacks.
fn deadlock() -> Interference {
    let edge = |holder: &str, waiter: &str| InterferenceEdge {
        holder: holder.to_owned(),
        waiter: waiter.to_owned(),
        resources: vec!["nvidia.com/gpu".to_owned()],
        held_text: BTreeMap::from([("nvidia.com/gpu".to_owned(), "8".to_owned())]),
        ..InterferenceEdge::default()
    };
    let (one, two) = ("team-1/gang-001", "team-2/gang-002");
    let cycle = InterferenceCycle { gangs: vec![one.to_owned(), two.to_owned()], breaks_at: None };
    Interference {
        edges: vec![edge(one, two), edge(two, one)],
        cycles: vec![cycle],
        ..Interference::default()
    }
}

fn in_deadlock() -> GangExplanation {
    GangExplanation {
        namespace: "team-1".to_owned(),
        name: "gang-001".to_owned(),
        state: "Waiting".to_owned(),
        ..GangExplanation::default()
    }
}

/// Returns an explanation of a pod with forty node groups.
fn explanation(size: Size, pod: &PendingPod) -> PodExplanation {
    let group = |n: usize| NodeGroup {
        plugin: "NodeResourcesFit".to_owned(),
        code: "Unschedulable".to_owned(),
        count: size.nodes / 50,
        reasons: vec![ReasonBody {
            code: "InsufficientResource".to_owned(),
            message: format!("Insufficient example.com/r{n}"),
            ..ReasonBody::default()
        }],
        example_nodes: vec![format!("compute-{n:04}")],
        ..NodeGroup::default()
    };
    PodExplanation {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        owner: pod.owner.clone(),
        verdict: "refused".to_owned(),
        summary: "None of the nodes fits.".to_owned(),
        total_nodes: size.nodes,
        not_evaluated: size.nodes - 40 * (size.nodes / 50),
        node_groups: (0..40).map(group).collect(),
        ..PodExplanation::default()
    }
}

/// Returns the events after a cursor up to `newest`: refusals of pods in turn.
fn events(pods: &[PendingPod], newest: u64, cursor: u64, at_most: usize) -> Lines {
    let line = |id: u64| {
        let pod = &pods[usize::try_from(id).unwrap_or(0) % pods.len()];
        let event = json!({
            "id": id, "at": "2026-01-01T00:00:00.000Z", "kind": "Refused", "count": 1, "codes": [pod.key_reason],
            "pod": format!("{}/{}", pod.namespace, pod.name), "message": "no node takes it",
        });
        (id, event.to_string())
    };
    let last = newest.min(cursor + at_most as u64).max(cursor);
    Lines { lines: (cursor + 1..=last).map(line).collect(), cursor: last, is_more: last < newest }
}

fn routes(size: Size, most: &Arc<AtomicUsize>) -> Vec<Route<Cluster>> {
    let fixed = |path: &str, body: Value| {
        let read = move |_: &Cluster, _: &Params, _: &_| Ok(body.clone());
        with_queries(Route::get(path, "test", "Generated", BodySchema::any(), read))
    };
    let pods = Arc::new(pending(size));
    let first = pods.first().cloned().unwrap_or_default();
    let explained = format!("/apis/v1/explain/pods/{}/{}", first.namespace, first.name);
    let counted = Arc::clone(most);
    let (of_rows, of_pods, of_feed) = (Arc::clone(&pods), Arc::clone(&pods), pods);
    let rows = Route::get(
        "/apis/v1/summary/pending",
        "test",
        "Generated",
        BodySchema::any(),
        move |_: &Cluster, params: &Params, _: &_| Ok(json!(summary(&of_rows, params))),
    );
    let list = Route::get(
        "/apis/v1/explain/pods",
        "test",
        "Generated",
        BodySchema::any(),
        move |_: &Cluster, params: &Params, _: &_| {
            let body = listed(&of_pods, params);
            counted.fetch_max(body.pods.len(), Ordering::Relaxed);
            Ok(json!(body))
        },
    );
    let counted = Arc::clone(most);
    let of_gangs = with_queries(Route::get(
        "/apis/v1/explain/gangs",
        "test",
        "Generated",
        BodySchema::any(),
        move |_: &Cluster, params: &Params, _: &_| {
            let body = gangs(size, params);
            counted.fetch_max(body.gangs.len(), Ordering::Relaxed);
            Ok(json!(body))
        },
    ));
    let feed = Route::lines(
        "/apis/v1/events",
        "test",
        "Generated",
        BodySchema::any(),
        move |_: &Cluster, params: &Params, cursor, at_most| {
            let since = params.integer("since").ok().flatten().unwrap_or(0);
            events(&of_feed, since + size.events, cursor, at_most)
        },
    );
    vec![
        fixed("/apis/v1/nodes", json!(nodes(size))),
        with_queries(rows),
        with_queries(list),
        feed,
        of_gangs,
        fixed("/apis/v1/trends", json!(trends(size))),
        fixed("/apis/v1/gangs/interference", json!(deadlock())),
        fixed("/apis/v1/explain/gangs/team-1/gang-001", json!(in_deadlock())),
        fixed("/apis/v1/reasons", json!({"reasons": []})),
        fixed(&explained, json!(explanation(size, &first))),
    ]
}

/// Declares the parameters of lists.
fn with_queries(mut route: Route<Cluster>) -> Route<Cluster> {
    for name in ["by", "sort", "name", "namespace", "reason", "fields", "like", "continue", "stage"] {
        route = route.param(Param::query(name, Kind::String, "A parameter of lists"));
    }
    route.param(Param::query("limit", Kind::Integer, "Items on a page"))
}

/// Serves until the fixture is dropped.
pub(crate) fn serve(size: Size) -> Fixture {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let nothing = || Renderer::openmetrics(String::new);
    let (published, receiver) = watch::channel(1);
    let (snapshot, most_items) = (Arc::new(Cluster), Arc::new(AtomicUsize::new(0)));
    let server = Server::new(Parts {
        routes: routes(size, &most_items),
        load: Arc::new(move || {
            let _kept = &published;
            Arc::clone(&snapshot)
        }),
        published: receiver,
        switches: Vec::new(),
        health: Vec::new(),
        metrics: nothing(),
        resource_metrics: nothing(),
        configz: Arc::new(|| Value::Null),
        version: Version::default(),
        now: Arc::new(Now::default),
        observe: Arc::new(|_| ()),
        limits: Limits::default(),
        authority: None,
        redact: Arc::new(|_, _| unreachable!("everybody sees all")),
    });
    let bound = runtime
        .block_on(server.expect("the routes are valid").bind(([127, 0, 0, 1], 0).into()))
        .expect("a port");
    let (address, stop) = (bound.address(), CancellationToken::new());
    runtime.spawn(bound.serve(stop.clone()));
    Fixture { address, most_items, stop, runtime: Some(runtime) }
}
