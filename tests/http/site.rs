//! The server under test and the example that it serves.
//!
//! Other tests cover what the product serves; here `Fleet` stands in for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pellucid::http::{
    HealthCheck, Kind, Limits, Param, Params, Parts, ReadError, Renderer, RequestInfo, Route, Server, Switch,
    Table, Version, openapi,
};
use pellucid::model::Published;
use pellucid::model::cancellation::check;
use pellucid::model::time::Now;
use pellucid_api::rest::BodySchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::common::client::{Reply, get};

pub(crate) struct Fleet {
    pub(crate) generation: u64,
}

impl Published for Fleet {
    fn generation(&self) -> u64 {
        self.generation
    }
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    name: String,
    free_milli_cpu: i64,
    note: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
}

pub(crate) fn nodes() -> Vec<Node> {
    let note = Some("a|b\nc,\"d\"".to_owned());
    vec![
        Node { name: "n1".to_owned(), free_milli_cpu: 1500, note },
        Node { name: "n2".to_owned(), free_milli_cpu: -20, note: None },
    ]
}

/// Lets a test hold a read in progress: the read signals its start and waits for permission to end.
pub(crate) struct Gate {
    began: mpsc::Sender<()>,
    may_end: Mutex<mpsc::Receiver<()>>,
}

pub(crate) fn routes(gate: Gate) -> Vec<Route<Fleet>> {
    let list = |_: &Fleet, params: &Params, _: &_| {
        let limit = params.integer("limit")?.unwrap_or(10);
        Ok(
            json!({"nodes": nodes().into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect::<Vec<_>>()}),
        )
    };
    let rows = |body: &Value, _: &Params| {
        let mut table = Table::new(["Node", "FreeMilliCPU", "Note"]);
        for node in body["nodes"].as_array().into_iter().flatten() {
            let text = |field: &str| node[field].as_str().unwrap_or_default().to_owned();
            table.push([text("name"), node["freeMilliCpu"].to_string(), text("note")]);
        }
        table
    };
    let one = |_: &Fleet, params: &Params, _: &_| {
        let name = params.required("nodeName")?;
        let node = nodes().into_iter().find(|node| node.name == name);
        let missing = || ReadError::NotFound("NodeNotFound", format!("cannot find node {name}"));
        let node = node.ok_or_else(missing)?;
        Ok(json!(node))
    };
    let fail = |_: &Fleet, params: &Params, _: &_| {
        let (code, message) = ("Test", "as asked".to_owned());
        match params.required("how")? {
            "unprocessable" => Err(ReadError::Unprocessable(code, message)),
            "unavailable" => Err(ReadError::Unavailable(code, message)),
            "many" => Err(ReadError::TooMany(code, message)),
            _ => panic!("the secret of the test"),
        }
    };
    let gate = Arc::new(Mutex::new(gate));
    let held = move |fleet: &Fleet, _: &Params, info: &RequestInfo| {
        let gate = gate.lock();
        gate.began.send(()).expect("the test waits for it");
        gate.may_end.lock().recv().expect("the test lets it end");
        Ok(json!({"generation": fleet.generation, "at": info.now.monotonic.as_secs()}))
    };
    let echo = |_: &Fleet, params: &Params, _: &_| {
        let node: Node = params.body()?;
        Ok(json!(node))
    };
    let page = |fleet: &Fleet, params: &Params, _: &_| {
        let of = fleet.generation;
        let next = if params.text("continue").is_none() { json!(of.to_string()) } else { Value::Null };
        let mut meta = json!({"generation": of});
        if !next.is_null() {
            meta["continue"] = next;
        }
        Ok(json!({"meta": meta}))
    };
    let node = BodySchema::of::<Node>();
    let mut shared =
        Route::get("/apis/v1/held/shared", "test", "Works a lot out", BodySchema::any(), held.clone());
    shared.is_shared = true;
    let mut pages = Route::get("/apis/v1/pages", "test", "Two pages", BodySchema::any(), page)
        .param(Param::query("continue", Kind::String, "The next page"));
    pages.page_of = Some(Arc::new(|params: &Params| params.integer("continue")));
    vec![
        pages,
        shared,
        Route::get("/apis/v1/nodes", "nodes", "All nodes", BodySchema::of::<Nodes>(), list)
            .param(Param::query("limit", Kind::Integer, "At most so many").example("2"))
            .param(Param::query("detail", Kind::Boolean, "Say more").example("true"))
            .rows(rows),
        Route::get("/apis/v1/nodes/:nodeName", "nodes", "One node", node, one)
            .described("What is free may be negative.")
            .param(Param::path("nodeName", "The name of the node").example("n1"))
            .not_found("NodeNotFound", "cannot find node n9"),
        Route::get("/apis/v1/fail/:how", "test", "Fails", BodySchema::any(), fail)
            .param(Param::path("how", "In which way").example("many")),
        Route::get("/apis/v1/simulate", "test", "What if", node, echo).asked_with(node),
        Route::get("/apis/v1/held", "test", "Waits", BodySchema::any(), held),
        Route::get("/apis/v1/big", "test", "More than fits into sockets", BodySchema::any(), |_, _, _| {
            Ok(json!("x".repeat(BIG)))
        }),
        Route::get("/apis/v1/list", "test", "A bare list", BodySchema::list_of::<Node>(), |_, _, _| {
            Ok(json!(nodes()))
        }),
        Route::get("/apis/v1/map", "test", "A bare map", BodySchema::map_of::<Node>(), |_, _, _| {
            Ok(nodes().into_iter().map(|node| (node.name.clone(), json!(node))).collect::<Value>())
        }),
    ]
}

/// Returns reads that do not end by themselves, and one that may take long. They signal their start.
fn endless_routes(began: mpsc::Sender<()>) -> Vec<Route<Fleet>> {
    let endless = move |_: &Fleet, _: &Params, _: &RequestInfo| {
        began.send(()).expect("the test waits for it");
        loop {
            check();
            std::thread::yield_now();
        }
    };
    let (any, node) = (BodySchema::any(), BodySchema::of::<Node>());
    vec![
        Route::get("/apis/v1/endless", "test", "Does not end by itself", any, endless.clone()),
        Route::get("/apis/v1/question", "test", "Does not either", node, endless).asked_with(node).long(),
        Route::get("/apis/v1/long", "test", "May take long", any, |_, _, _| Ok(json!({}))).long(),
    ]
}

/// Size of a body in bytes: more than the connection's buffers hold on both sides.
pub(crate) const BIG: usize = 32 << 20;

pub(crate) struct TopN(AtomicU64);

impl Switch for TopN {
    fn name(&self) -> &str {
        "s"
    }
    fn summary(&self) -> &str {
        "How many nodes a score table lists"
    }
    fn get(&self) -> String {
        self.0.load(Ordering::Relaxed).to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let number =
            value.parse().map_err(|error| format!("failed set debugTopNScores to {value}: {error}"))?;
        self.0.store(number, Ordering::Relaxed);
        Ok(format!("successfully set debugTopNScores to {number}"))
    }
}

// === the server under test ===

pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) document: Value,
    pub(crate) snapshot: Arc<ArcSwap<Fleet>>,
    pub(crate) published: watch::Sender<u64>,
    pub(crate) began: mpsc::Receiver<()>,
    pub(crate) let_end: mpsc::Sender<()>,
    pub(crate) sick: Arc<Mutex<Option<&'static str>>>,
    pub(crate) seen: Arc<Mutex<Vec<(String, u16)>>>,
    pub(crate) stop: CancellationToken,
    pub(crate) served: Option<JoinHandle<()>>,
    pub(crate) runtime: tokio::runtime::Runtime,
}

pub(crate) type Built =
    (Parts<Fleet>, Arc<ArcSwap<Fleet>>, watch::Sender<u64>, mpsc::Receiver<()>, mpsc::Sender<()>);

pub(crate) fn parts(limits: Limits) -> Built {
    parts_with(limits, |_| Vec::new())
}

fn parts_with(limits: Limits, more: impl FnOnce(mpsc::Sender<()>) -> Vec<Route<Fleet>>) -> Built {
    let snapshot = Arc::new(ArcSwap::from_pointee(Fleet { generation: 7 }));
    let (published, receiver) = watch::channel(7);
    let (began_sender, began) = mpsc::channel();
    let (let_end, may_end) = mpsc::channel();
    let load = Arc::clone(&snapshot);
    let ticks = AtomicU64::new(0);
    let now = move || {
        let monotonic = Duration::from_secs(ticks.fetch_add(1, Ordering::Relaxed));
        Now { monotonic, wall: Duration::from_secs(0x1234) + monotonic }
    };
    let more = more(began_sender.clone());
    let mut routes = routes(Gate { began: began_sender, may_end: Mutex::new(may_end) });
    routes.extend(more);
    let parts = Parts {
        routes,
        load: Arc::new(move || load.load_full()),
        published: receiver,
        switches: vec![Arc::new(TopN(AtomicU64::new(0)))],
        health: Vec::new(),
        metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        resource_metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        configz: Arc::new(|| json!({"kubescheduler.config.k8s.io": {"parallelism": 16}})),
        version: Version { git_version: "v0.1.0".to_owned(), ..Version::default() },
        now: Arc::new(now),
        observe: Arc::new(|_| ()),
        limits,
        authority: None,
        redact: Arc::new(|_, _| unreachable!("everybody sees all")),
    };
    (parts, snapshot, published, began, let_end)
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(Limits { generation_patience: Duration::from_millis(20), ..Limits::default() })
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::of(parts(limits))
    }

    /// Does the same with reads that do not end by themselves.
    pub(crate) fn endless(limits: Limits) -> Self {
        Self::of(parts_with(limits, endless_routes))
    }

    pub(crate) fn of((mut parts, snapshot, published, began, let_end): Built) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let sick = Arc::new(Mutex::new(None::<&'static str>));
        let look = Arc::clone(&sick);
        parts.health = vec![
            HealthCheck::live("loop", || Ok(())),
            HealthCheck::ready("watches-synced", move || {
                look.lock().map_or(Ok(()), |why| Err(why.to_owned()))
            }),
        ];
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        parts.observe = Arc::new(move |seen| record.lock().push((seen.template.to_owned(), seen.status)));
        let document = openapi(&parts.routes, &parts.version.git_version).unwrap();
        let document = serde_json::to_value(document).unwrap();
        let server = Server::new(parts).unwrap();
        let bound = runtime.block_on(server.bind(any_port())).unwrap();
        let address = bound.address();
        let stop = CancellationToken::new();
        let served = Some(runtime.spawn(bound.serve(stop.clone())));
        Self { address, document, snapshot, published, began, let_end, sick, seen, stop, served, runtime }
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        get(self.address, target)
    }

    pub(crate) fn publish(&self, generation: u64) {
        self.snapshot.store(Arc::new(Fleet { generation }));
        self.published.send(generation).unwrap();
    }

    /// Checks that an error has this status, code and message, fits the document and names its request.
    #[track_caller]
    pub(crate) fn check_refused(&self, reply: &Reply, status: u16, code: &str, says: &str) {
        let body = reply.json();
        assert_eq!((reply.status, body["code"].as_str()), (status, Some(code)), "{body}");
        assert!(body["message"].as_str().unwrap().contains(says), "{body} does not say {says:?}");
        assert_eq!(body["requestId"].as_str(), Some(reply.header("x-request-id")));
        assert_eq!(reply.header("content-type"), "application/json");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(served) = self.served.take() {
            let ended = self.runtime.block_on(served);
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}
