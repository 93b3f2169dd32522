//! The main use end to end, through the binary: `pellucid demo` and `pellucid replay`, read over HTTP.

use serde_json::{Value, json};

use crate::common::PATIENCE;
use crate::common::client::{put, raw, request};
use crate::common::demo::Demo;
use crate::common::openapi::check_body_against_openapi;
use crate::common::process::{finish, run};

const ANY: &[&str] = &["--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"];

#[test]
fn a_machine_without_certificate_authorities_reaches_a_server_without_tls() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pellucid"));
    command.env("SSL_CERT_FILE", "/nonexistent").env("SSL_CERT_DIR", "/nonexistent");
    command.args([&["demo", "--exit-when-settled", "--v", "0"], ANY].concat());
    let output = finish(command, PATIENCE);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn demo_settles_and_names_every_reason_in_words() {
    let output = run(&[&["demo", "--exit-when-settled", "--v", "0"], ANY].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "gated Not placed: waiting for scheduling gates: [demo.example/approval]",
        "Insufficient nvidia.com/gpu (nvidia.com/gpu: requested 16, at most 8 free",
        "Insufficient cpu (cpu: requested 500,",
        "finance-01: node(s) had untolerated taint(s)",
        "edge-01: node(s) didn't have free ports for the requested pod ports",
        "tiny-01: Too many pods",
        "repair-01: node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "Quarantined: cannot read",
        "demo/urgent (priority 1000) evicted demo/sidekick-",
        "demo/ranks 4 bound; 4 make a quorum Has its quorum.",
        "Not tried: waiting for the pods of gang demo/crew: 2 of 3 are there.",
        "demo/too-many-gpus: 1 of 3 members that its quorum needs can be placed",
        "demo/render 2 waiting, 1 pending; 3 make a quorum",
        "demo/allreduce 2 bound; 2 make a quorum Has its quorum.",
        "demo/solver 6 bound; 6 make a quorum Has its quorum.",
        "demo/allgather: 0 of 2 members that its quorum needs can be placed",
        "node(s) were unschedulable",
        "node(s) cpu usage exceed threshold",
        "Not placed: quota vision: example.com/fpga used 16 + 4 > runtime 12 of max 20",
        "Settled: 55 pods placed, 25 pending",
    ] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }
}

#[test]
fn every_get_answers_and_matches_the_document() {
    let demo = Demo::start(&[]);
    assert!(put(demo.rest, "/debug/flags/s", "3").status == 200);
    assert!(put(demo.rest, "/debug/flags/f", "true").status == 200);
    demo.create_pod("seen", &json!({}));
    demo.wait("/apis/v1/scores", |body| body["tables"].as_array().is_some_and(|t| !t.is_empty()));
    let document = demo.get("/openapi.json").json();
    let services = demo.get("/apis/v1/__services__").json();
    let paths = services["GET"].as_array().expect("a list");
    assert!(paths.len() > 60, "{} services", paths.len());
    for template in paths.iter().filter_map(Value::as_str) {
        for (path, status) in concrete(template) {
            let reply = demo.get(&path);
            assert_eq!(reply.status, status, "{path}: {}", reply.text());
            if reply.header("content-type").starts_with("application/json") {
                check_body_against_openapi(&document, &path, status, &reply.json());
                sentences_end_once(&reply.json());
            }
            if status == 404 {
                assert!(reply.json()["code"].is_string(), "{path}");
            }
        }
    }
}

/// Returns the paths to try for a template, each with its expected status.
fn concrete(template: &str) -> Vec<(String, u16)> {
    let found = |path: &str| (path.to_string(), 200);
    if template == "/docs/:file" {
        return vec![found("/docs/swagger-ui.css"), ("/docs/none.css".into(), 404)];
    }
    if template == "/ui/:file" {
        return vec![found("/ui/app.css"), ("/ui/none.css".into(), 404)];
    }
    if template == "/debug/flags/:flag" {
        return ["v", "s", "f", "log", "reuse", "budget"]
            .map(|f| found(&format!("/debug/flags/{f}")))
            .to_vec();
    }
    // The demo shadows nobody, and has neither Queues nor Reservations.
    let ends = |ends: &[&str]| ends.iter().any(|end| template.ends_with(end));
    let of_none = ["/queues/:name", "/reservations/:name", "/history/objects/:kind/:name"];
    if template == "/apis/v1/shadow" || ends(&of_none) {
        return vec![(template.replace(":kind", "Reservation").replace(":name", "none"), 404)];
    }
    // The profile of this pod does without the plugin.
    if ends(&["/:name/reservations"]) {
        return vec![(template.replace(":namespace", "demo").replace(":name", "seen"), 404)];
    }
    if ends(&["/quota/:name", "/quotas/:name"]) {
        return vec![found(&template.replace(":name", "vision")), (template.replace(":name", "none"), 404)];
    }
    if template.ends_with("/nodeDeviceSummaries/:name") {
        return vec![found(&template.replace(":name", "rig-01")), (template.replace(":name", "none"), 404)];
    }
    if template.ends_with("/:name/devices") {
        let of = |name: &str| template.replace(":namespace", "demo").replace(":name", name);
        return vec![found(&of("whole-card")), (of("no-such-pod"), 404)];
    }
    if !template.contains(':') {
        return vec![found(template)];
    }
    let with = |node: &str, name: &str| {
        template.replace(":nodeName", node).replace(":namespace", "demo").replace(":name", name)
    };
    let name = if template.contains("/gang") { "ranks" } else { "seen" };
    vec![found(&with("edge-01", name)), (with("no-such-node", "no-such-pod"), 404)]
}

#[test]
fn node_groups_add_up_and_numbers_are_given() {
    let demo = Demo::start(&[]);
    let pending = demo.get("/apis/v1/explain/pods").json();
    let pods = pending["pods"].as_array().expect("a list");
    assert!(pods.len() >= 9, "{pending}");
    for pod in pods {
        let name = pod["name"].as_str().expect("a name");
        let body = demo.get(&format!("/apis/v1/explain/pods/demo/{name}")).json();
        sentences_end_once(&body);
        let groups = body["nodeGroups"].as_array().expect("groups");
        let counted: u64 = groups.iter().map(|g| g["count"].as_u64().expect("a count")).sum();
        let rest = body["notEvaluated"].as_u64().expect("a count");
        assert_eq!(counted + rest, body["totalNodes"].as_u64().expect("a count"), "{name}");
        assert!(groups.iter().all(|g| !g["exampleNodes"].as_array().expect("examples").is_empty()));
    }
    let body = demo.get("/apis/v1/explain/pods/demo/needs-500-cores").json();
    let lacking = &body["nearest"]["shortfalls"][0];
    assert_eq!((&lacking["resource"], &lacking["requested"]), (&json!("cpu"), &json!(500_000)));
    assert_eq!(
        lacking["shortfall"].as_i64().expect("a number"),
        500_000 - lacking["available"].as_i64().expect("a number")
    );
    assert_eq!(demo.get("/apis/v1/explain/pods/demo/unreadable").json()["verdict"], "quarantined");
    assert_eq!(demo.get("/apis/v1/explain/pods/demo/ingress-1").json()["verdict"], "placed");
}

/// Checks that no text has two full stops in a row, as one gets that ends a sentence with a whole one.
fn sentences_end_once(body: &Value) {
    match body {
        Value::String(text) => {
            let dots = text.replace("...", "");
            assert!(!dots.contains(".. ") && !dots.ends_with(".."), "{text}");
        }
        Value::Array(values) => values.iter().for_each(sentences_end_once),
        Value::Object(fields) => fields.values().for_each(sentences_end_once),
        _ => {}
    }
}

#[test]
fn what_a_node_uses_is_reported_and_keeps_pods_away() {
    let demo = Demo::start(&["--still"]);
    let stuck = demo.get("/apis/v1/explain/pods/demo/waits-for-a-calm-edge").json();
    let groups = stuck["nodeGroups"].as_array().expect("groups");
    let busy = groups.iter().find(|group| group["reasons"][0]["code"] == "UsageExceeded");
    assert_eq!(busy.expect("a group of busy nodes")["count"], 2, "{stuck}");
    // The pod of the node requests half a CPU, may use 4, and uses 3.6, as the first report after its start shows.
    let node = demo.wait("/apis/v1/plugins/LoadAwareScheduling/node/edge-01", |node| {
        node["prodUsage"]["cpu"] == "3600m"
    });
    assert_eq!(node["load"]["used"]["cpu"], "3700m", "{node}");
    assert_eq!(node["load"]["percent"]["cpu"], 93, "{node}");
    let all = demo.get("/apis/v1/plugins/LoadAwareScheduling/nodes").json();
    assert_eq!((&all["reported"], &all["exceeded"]), (&json!(33), &json!(2)), "{all}");
    demo.create_pod("aware", &json!({"schedulerName": "load-aware"}));
    demo.wait("/apis/v1/explain/pods/demo/aware", |pod| pod["verdict"] == "placed");
}

#[test]
fn flags_take_effect_at_once_and_refuse_nonsense() {
    let demo = Demo::start(&[]);
    let set = |flag: &str, value: &str| put(demo.rest, &format!("/debug/flags/{flag}"), value);
    assert_eq!(set("s", "5").text().trim(), "successfully set debugTopNScores to 5");
    assert_eq!(set("f", "true").text().trim(), "successfully set debugFilterFailure to true");
    assert_eq!(set("v", "5").text().trim(), "successfully set klog.logging.verbosity to 5");
    for (flag, wrong) in [("s", "-1"), ("s", "x"), ("f", "perhaps"), ("v", "loud"), ("log", "pellucid=loud")]
    {
        let before = demo.get(&format!("/debug/flags/{flag}")).text().to_string();
        assert_eq!(set(flag, wrong).status, 400, "{flag} {wrong}");
        assert_eq!(demo.get(&format!("/debug/flags/{flag}")).text(), before);
    }
    let post = request(demo.rest, "POST", "/debug/flags/s", "Content-Length: 0\r\n");
    assert_eq!(post.status, 405);
    assert!(post.header("allow").contains("PUT"), "{}", post.header("allow"));
    assert_eq!(demo.get("/debug/flags/s").text().trim(), "5");

    demo.create_pod("watched", &json!({}));
    let header = demo
        .process
        .wait_for_stderr("| # | Pod | Node | Score | ImageLocality | InterPodAffinity | NodeAffinity |");
    assert!(header.ends_with("| NodeResourcesFit | PodTopologySpread | TaintToleration |"), "{header}");
    demo.process.wait_for_stderr("| 4 | demo/watched |");
    demo.process.wait_for_stderr("filter failure pod=demo/watched");
    demo.process.wait_for_stderr("placed pod=demo/watched");
    let table =
        demo.wait("/apis/v1/scores/demo/watched", |t| t["rows"].as_array().is_some_and(|r| r.len() == 5));
    assert_eq!(table["rows"][0]["node"], table["chosen"]);

    assert_eq!(set("v", "0").status, 200);
    demo.create_pod("unwatched", &json!({}));
    demo.wait("/apis/v1/scores/demo/unwatched", |t| t["chosen"].is_string());
    assert_eq!(set("v", "2").status, 200);
    demo.create_pod("last", &json!({}));
    demo.process.wait_for_stderr("| 0 | demo/last |");
    let lines = demo.process.stderr_so_far();
    assert!(!lines.iter().any(|line| line.contains("unwatched")), "verbosity 0 still logged");
}

#[test]
fn health_metrics_and_odd_requests() {
    let demo = Demo::start(&[]);
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(demo.get(path).status, 200, "{path}");
    }
    let metrics = demo.get("/metrics");
    for name in [
        "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"pellucid\"}",
        "scheduler_pending_pods{queue=\"unschedulable\"} 19",
        "scheduler_pending_pods{queue=\"gated\"} 3",
        "scheduler_cache_size{type=\"nodes\"} 33",
        "pellucid_quarantined_objects 1",
    ] {
        assert!(metrics.text().contains(name), "{name} is missing in {}", metrics.text());
    }
    assert!(metrics.text().trim_end().ends_with("# EOF"));
    assert_eq!(metrics.text().matches("# EOF").count(), 1);
    assert!(demo.get("/metrics/resources").text().contains("kube_pod_resource_request{"));
    assert_eq!(demo.get("/apis/v1/nope").status, 404);
    assert_eq!(demo.get("/apis/v1/nodes/%zz").status, 400);
    let head = format!(
        "PUT /debug/flags/s HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\nContent-Length: 104857600\r\nConnection: close\r\n\r\n",
        demo.rest
    );
    assert_eq!(raw(demo.rest, head.as_bytes()).status, 413);
}

#[test]
fn a_port_in_use_is_said_so() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = run(&["demo", "--exit-when-settled", "--listen", &address, "--api-listen", "127.0.0.1:0"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(text.contains(&address) && text.to_lowercase().contains("in use"), "{text}");
}
