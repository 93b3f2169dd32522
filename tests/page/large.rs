//! The page with 5,000 nodes, 10,000 pending pods and 500 gangs: the product's server with generated bodies, made
//! from the types of the REST API.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use pellucid::http::{Limits, Parts, Renderer, Route, Server, Version};
use pellucid::model::Published;
use pellucid::model::time::Now;
use pellucid_api::rest::explain::{NodeGroup, OwnerOf, PendingPod, PendingPods, PodExplanation, ReasonBody};
use pellucid_api::rest::gangs::{GangCounts, GangSummary};
use pellucid_api::rest::nodes::{NodeList, NodeSummary};
use pellucid_api::rest::{BodySchema, Meta};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::browser::{Browser, keys};

const NODES: usize = 5_000;
const PODS: usize = 10_000;
const GANGS: u32 = 500;

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

fn nodes() -> NodeList {
    let node = |n: usize| {
        let pool = ["compute", "memory", "gpu"][n * 3 / NODES];
        let busy = 25 * (n * 3 / NODES) + noise(n) % 50;
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
    NodeList { meta: Meta::default(), count: NODES, nodes: (0..NODES).map(node).collect() }
}

fn pending() -> PendingPods {
    const REASONS: [&str; 5] = [
        "HostPortConflict",
        "NodeAffinityMismatch",
        "UntoleratedTaint",
        "TooManyPods",
        "InsufficientResource",
    ];
    let pod = |n: usize| {
        PendingPod {
        namespace: format!("team-{}", n % 20),
        name: format!("job-{n:05}"),
        owner: Some(OwnerOf { kind: "Deployment".to_owned(), name: format!("web-{}", n % 30) }),
        priority: n as i32 % 3,
        created_at: "2026-01-02T03:04:05Z".to_owned(),
        stage: "unschedulable".to_owned(),
        attempts: 3,
        verdict: "refused".to_owned(),
        key_reason: REASONS[(noise(n) % 15).min(4)].to_owned(),
        outlook: "NotNow".to_owned(),
        reasons: vec![REASONS[(noise(n) % 15).min(4)].to_owned(), "NodeUnschedulable".to_owned()],
        message: "0/5000 nodes are available: 52 node(s) were unschedulable, 4948 Insufficient cpu. preemption: 0/5000 nodes are available".to_owned(),
        ..PendingPod::default()
    }
    };
    PendingPods { meta: Meta::default(), count: PODS, pods: (0..PODS).map(pod).collect() }
}

fn gangs() -> BTreeMap<String, GangSummary> {
    let gang = |n: u32| {
        let name = format!("team-{}/gang-{n:03}", n % 20);
        let counts = GangCounts { created: 8, pending: n % 9, bound: 8 - n % 9, ..GangCounts::default() };
        let state = if n.is_multiple_of(9) { "Running" } else { "Unschedulable" }.to_owned();
        (name.clone(), GangSummary { name, state, counts, min_required_number: 8, ..GangSummary::default() })
    };
    (0..GANGS).map(gang).collect()
}

/// Returns an explanation of a pod with forty node groups.
fn explanation() -> PodExplanation {
    let group = |n: usize| NodeGroup {
        plugin: "NodeResourcesFit".to_owned(),
        code: "Unschedulable".to_owned(),
        count: 120,
        reasons: vec![ReasonBody {
            code: "InsufficientResource".to_owned(),
            message: format!("Insufficient example.com/r{n}"),
            ..ReasonBody::default()
        }],
        shortfalls: Vec::new(),
        example_nodes: vec![format!("compute-{n:04}")],
        details: Vec::new(),
    };
    PodExplanation {
        namespace: "team-1".to_owned(),
        name: "job-00001".to_owned(),
        verdict: "refused".to_owned(),
        summary: "None of 5000 nodes fits.".to_owned(),
        total_nodes: NODES,
        not_evaluated: 200,
        node_groups: (0..40).map(group).collect(),
        ..PodExplanation::default()
    }
}

fn routes() -> Vec<Route<Cluster>> {
    let fixed = |path: &str, body: Value| {
        Route::get(path, "test", "Generated", BodySchema::any(), move |_: &Cluster, _, _| Ok(body.clone()))
    };
    vec![
        fixed("/apis/v1/nodes", json!(nodes())),
        fixed("/apis/v1/explain/pods", json!(pending())),
        fixed("/apis/v1/plugins/Coscheduling/gangs", json!(gangs())),
        fixed("/apis/v1/gangs/interference", json!({"edges": [], "cycles": []})),
        fixed("/apis/v1/reasons", json!({"reasons": []})),
        fixed("/apis/v1/explain/pods/team-1/job-00001", json!(explanation())),
    ]
}

/// Serves until the returned token is cancelled.
fn serve() -> (SocketAddr, CancellationToken, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let nothing = || Renderer::openmetrics(String::new);
    let (published, receiver) = watch::channel(1);
    let snapshot = Arc::new(Cluster);
    let server = Server::new(Parts {
        routes: routes(),
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
    });
    let bound = runtime
        .block_on(server.expect("the routes are valid").bind(([127, 0, 0, 1], 0).into()))
        .expect("a port");
    let (address, stop) = (bound.address(), CancellationToken::new());
    runtime.spawn(bound.serve(stop.clone()));
    (address, stop, runtime)
}

/// Records tasks that kept the page from responding.
const WATCH_TASKS: &str = "window.longest = 0; new PerformanceObserver((list) => { for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration); }).observe({ type: 'longtask', buffered: true })";

#[test]
fn five_thousand_nodes_are_drawn_at_once_and_hang_nothing() {
    let Some(browser) = Browser::start() else { return };
    let (address, stop, runtime) = serve();
    browser.prefer("light");
    browser.open(&format!("http://{address}/"));
    let drawn = browser.wait(
        "const is = document.querySelector('#nodes [data-part=box]').dataset.nodes === '5000' && document.querySelectorAll('.pending-group').length === 5 && document.querySelector('.gangs');
         return is && { at: performance.now(), elements: document.querySelectorAll('*').length }",
    );
    browser.run(WATCH_TASKS);
    let millis = drawn["at"].as_f64().expect("a number");
    assert!(millis < 2_000.0, "drawn after {millis} ms");
    assert!(drawn["elements"].as_u64() < Some(2_500), "{drawn}");
    let text = browser.run(
        "return document.querySelector('#pending').innerText + document.querySelector('#view').innerText",
    );
    let text = text.as_str().unwrap_or_default();
    assert!(text.contains("10,000 pods") && text.contains("and 440 more"), "{text}");

    let height = browser.run("return document.querySelector('#nodes canvas').clientHeight");
    assert!((100..260).contains(&height.as_u64().unwrap_or(0)), "{height}");
    browser.run("document.querySelector('#nodes [data-part=box]').focus()");
    browser.press(&[keys::END]);
    let option = browser.run("return document.querySelector('#strip-option').textContent");
    assert!(option.as_str().is_some_and(|text| text.starts_with("gpu-4999")), "{option}");
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        browser.screenshot(&format!("large-{theme}"));
    }

    browser.run("const filter = document.querySelector('.filter'); filter.value = 'job-0999'; filter.dispatchEvent(new Event('input'))");
    browser.wait("return document.querySelectorAll('.pending-group a').length === 10");
    browser.open(&format!("http://{address}/#/pods/team-1/job-00001"));
    let sums = browser.wait("const bar = document.querySelector('.adds-up'); return bar && [bar.dataset.sum, bar.querySelectorAll('.seg').length, document.querySelectorAll('.groups > li').length]");
    assert_eq!(sums, json!(["5000", 14, 40]));
    let longest = browser.run("return window.longest").as_f64().expect("a number");
    assert!(longest < 500.0, "a task of {longest} ms");
    stop.cancel();
    runtime.shutdown_background();
}
