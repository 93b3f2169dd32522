//! Traces: what `run --otlp-endpoint` sends, read by a minimal receiver. Built with the cargo feature `otel`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod receiver;

use std::net::{SocketAddr, TcpListener};

use common::process::{self, Process};
use common::running::{node, pod};
use common::{client, kubeconfig};
use pellucid::sandbox::{Config, Handle, Sandbox};
use receiver::{Receiver, Span};

/// A scheduler as a separate process on a sandbox.
struct Running {
    process: Process,
    rest: SocketAddr,
    sandbox: Handle,
    _kubeconfig: tempfile::NamedTempFile,
}

async fn running(endpoint: &str) -> Running {
    let objects = vec![node("n1", "z", 4), pod("fits", 1000), pod("too-big", 100_000)];
    let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.unwrap();
    let file = kubeconfig(&sandbox.url());
    let path = file.path().to_str().unwrap();
    let args = ["run", "--kubeconfig", path, "--listen", "127.0.0.1:0", "--otlp-endpoint", endpoint];
    let process = Process::start(&args);
    let line = tokio::task::block_in_place(|| process.wait_for_stderr("scheduling rest="));
    Running { rest: client::address_in(&line), process, sandbox, _kubeconfig: file }
}

/// Returns a counter of `/metrics`.
fn counter(rest: SocketAddr, name: &str) -> u64 {
    let reply = client::get(rest, "/metrics");
    let line =
        reply.text().lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduled_pod_is_a_trace_of_its_attempt_and_its_binding() {
    let receiver = Receiver::start();
    let mut running = running(&receiver.url()).await;
    let of = |name: &'static str, pod: &'static str| {
        move |span: &Span| span.name == name && span.text("k8s.pod.name") == Some(pod)
    };
    let bind = receiver.wait_for("a binding", of("bind", "fits"));
    let attempt = receiver.wait_for("an attempt", of("schedule", "fits"));
    assert_eq!(
        (&bind.trace, &bind.parent),
        (&attempt.trace, &attempt.id),
        "the binding is the attempt's child"
    );
    assert!(attempt.parent.is_empty() && attempt.trace.len() == 16 && attempt.id.len() == 8);
    assert_eq!(
        (attempt.text("pellucid.outcome"), attempt.text("k8s.node.name")),
        (Some("placed"), Some("n1"))
    );
    assert_eq!((bind.text("pellucid.outcome"), bind.text("k8s.node.name")), (Some("bound"), Some("n1")));
    assert!(attempt.begin <= attempt.end && attempt.begin <= bind.begin && bind.begin < bind.end);
    assert_eq!(attempt.service, "pellucid");

    let refused = receiver.wait_for("a refusal", of("schedule", "too-big"));
    assert_ne!(refused.trace, attempt.trace);
    let message = refused.text("pellucid.message").unwrap();
    assert!(message.contains("0/1 nodes are available: 1 Insufficient cpu."), "{message}");

    assert_eq!(client::get(running.rest, "/apis/v1/explain/pods/default/none").status, 404);
    let template = "GET /apis/v1/explain/pods/:namespace/:name";
    let request = receiver.wait_for("a request", move |span| span.name == template);
    assert_eq!(request.number("http.response.status_code"), Some(404));
    assert!(counter(running.rest, "pellucid_trace_spans_exported_total") >= 4);
    assert_eq!(counter(running.rest, "pellucid_trace_spans_dropped_total"), 0);

    // Pending spans are sent before the process ends.
    assert_eq!(client::get(running.rest, "/version").status, 200);
    assert!(running.process.terminate().success());
    receiver.wait_for("the last request", |span| span.name == "GET /version");
    assert!(!receiver.has(|span| span.name == "GET /metrics"), "scrapes are not traced");
    running.sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_collector_spans_are_dropped_and_pods_are_bound() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = running(&format!("http://{nobody}")).await;
    tokio::task::block_in_place(|| {
        client::wait(running.rest, "/apis/v1/explain/pods/default/fits", "the pod is bound", |body| {
            body["placement"]["stage"] == "bound"
        })
    });
    let warning = tokio::task::block_in_place(|| running.process.wait_for_stderr("traces are not taken"));
    assert!(warning.contains(&nobody.to_string()), "{warning}");
    assert!(counter(running.rest, "pellucid_trace_spans_dropped_total") > 0);
    assert_eq!(counter(running.rest, "pellucid_trace_spans_exported_total"), 0);
    running.sandbox.stop().await;
}

#[test]
fn an_endpoint_that_makes_no_sense_is_refused() {
    let output = process::run(&["run", "--otlp-endpoint", "grpc://127.0.0.1:4317"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--otlp-endpoint \"grpc://127.0.0.1:4317\": it must be like http://127.0.0.1:4318"),
        "{said}"
    );
}
