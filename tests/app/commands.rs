//! The commands that query a scheduler, against a stub server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pellucid_api::rest::explain::PodExplanation;
use pellucid_api::rest::gang_explain::GangExplanation;

/// What became of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary without a server in its environment.
pub(crate) fn pellucid(args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_pellucid"))
        .args(args)
        .env_remove("PELLUCID_SERVER")
        .env_remove("KUBECONFIG")
        .env("COLUMNS", "160")
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the binary and expects a failure with this exit code and these parts in the message.
pub(crate) fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let ran = pellucid(args);
    assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "", "{args:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{args:?}: no {part:?} in\n{}", ran.stderr);
    }
    assert!(ran.stderr.matches("(os error").count() <= 1, "{args:?}: a cause twice in\n{}", ran.stderr);
}

/// Writes a file; returns its path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn response(status: &str, content: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Serves one request with this status line, type and body; returns the URL and the request.
fn stub(status: &str, content: &str, body: &str) -> (String, std::thread::JoinHandle<String>) {
    serve(vec![response(status, content, body)])
}

/// Serves as many requests as there are responses; returns the URL and the requests, one on each line.
fn serve(responses: Vec<String>) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |response: String| {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(response.as_bytes()).unwrap();
        format!("{} {}", line.trim(), String::from_utf8(body).unwrap())
    };
    let all = move || responses.into_iter().map(answer).collect::<Vec<_>>().join("\n");
    (url, std::thread::spawn(all))
}

const META: &str =
    r#""meta": {"generatedAt": "2026-01-02T03:04:05Z", "snapshotGeneration": 7, "leader": true}"#;

#[test]
fn a_server_that_is_not_there_is_said_to_be_missing() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for args in
        [vec!["explain", "web"], vec!["explain", "pods"], vec!["scores", "web"], vec!["queue"], vec!["flags"]]
    {
        let args = [args, vec!["--server", &url]].concat();
        fails(&args, 1, &[&format!("no scheduler answers at {url}"), "`pellucid run`"]);
        let said = pellucid(&args).stderr;
        let hint = "through the API server: --kubeconfig ~/.kube/config";
        assert!(said.trim_end().ends_with(hint), "the hint is not last: {said}");
    }
    fails(&["probe", "--url", &url], 1, &["no scheduler answers"]);
    fails(
        &["flags", "--server", "https://127.0.0.1:1"],
        1,
        &["no scheduler answers at https://127.0.0.1:1/"],
    );
    fails(&["flags", "--server", "ftp://127.0.0.1:1"], 1, &["only http and https are spoken"]);
}

#[test]
fn a_server_that_says_nothing_is_left_after_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    fails(&["flags", "--server", &url, "--timeout", "1"], 1, &["no answer from", "within 1 s"]);
}

#[test]
fn an_unknown_pod_shows_what_the_server_says() {
    let body = r#"{"code": "PodNotFound", "message": "there is no pod default/web", "requestId": "x"}"#;
    let (url, asked) = stub("404 Not Found", "application/json", body);
    fails(&["explain", "pod", "web", "--server", &url], 1, &["there is no pod default/web (404 Not Found"]);
    assert_eq!(asked.join().unwrap(), "GET /apis/v1/explain/pods/default/web HTTP/1.1 ");
    let (url, _) = stub("404 Not Found", "application/json", body);
    fails(&["scores", "a/web", "--server", &url], 1, &["`pellucid flags s 5`", "there is no pod"]);
}

#[test]
fn a_pending_pod_is_explained_from_verdict_to_remedy() {
    let body = format!(
        r#"{{{META}, "namespace": "default", "name": "web", "uid": "u", "profile": "pellucid",
        "verdict": "refused", "summary": "No node has room.", "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "queueStage": "backoff", "attempts": 3, "nextRetry": "2026-01-02T03:04:09Z", "wakesOn": ["Node/Add"],
        "totalNodes": 3, "notEvaluated": 0, "podReasons": [], "nodeGroups": [
          {{"plugin": "NodeResourcesFit", "code": "Unschedulable", "count": 3, "exampleNodes": ["n-1"],
            "reasons": [{{"code": "InsufficientResource", "message": "Insufficient cpu", "remedy": "Ask for less", "resolver": "pod owner"}}],
            "shortfalls": [{{"resource": "cpu", "requested": 4000, "available": 1500, "shortfall": 2500, "bestNode": "n-1", "text": "requested 4, available 1500m"}}]}}]}}"#
    );
    let (url, _) = stub("200 OK", "application/json", &body);
    let ran = pellucid(&["explain", "pod", "default/web", "--server", &url]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "default/web: refused\nNo node has room.\n",
        "NodeResourcesFit",
        "requested 4, available 1500m",
        "Ask for less",
        "3 of 3 nodes refused",
        "queue stage backoff; 3 attempts; next retry 2026-01-02T03:04:09Z",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "colours where there is no terminal");
    let (url, _) = stub("200 OK", "application/json", &body);
    let json = pellucid(&["explain", "pod", "web", "-o", "json", "--server", &url]).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["attempts"], 3);
}

#[test]
fn what_would_help_is_shown_with_its_commands() {
    let fix = r#"{"text": "let pod a/filler go", "cost": 60, "verified": true, "node": "n-1", "inCompany": "taken",
        "takenBy": ["a/ahead"], "edits": [], "parts": [{"text": "let pod a/filler go", "edit": {"deletePod": "a/filler"},
        "command": "kubectl -n a delete pod filler", "recreate": false, "resolver": "cluster operator", "cost": 60}]}"#;
    let pod = PodExplanation { name: "web".into(), verdict: "refused".into(), ..PodExplanation::default() };
    let gang =
        GangExplanation { name: "web".into(), state: "Unschedulable".into(), ..GangExplanation::default() };
    let explained = [("pod", serde_json::to_string(&pod)), ("gang", serde_json::to_string(&gang))];
    let help = format!(
        r#"{{{META}, "namespace": "a", "name": "web", "fitsNow": false, "conflicts": [], "fixes": [{fix}]}}"#
    );
    let shown = "What would help, each tried on a copy of the cluster:\n1. let pod a/filler go (cluster operator)\n   \
                 $ kubectl -n a delete pod filler\n   alone it goes to n-1; other pending pods take the room: a/ahead\n";
    for (what, explained) in explained {
        let explained = explained.unwrap();
        let ok = |body: &str| response("200 OK", "application/json", body);
        let (url, asked) = serve(vec![ok(&explained), ok(&help)]);
        let ran = pellucid(&["explain", what, "a/web", "--server", &url]);
        assert!(ran.code == 0 && ran.stdout.ends_with(shown), "{what}: {}{}", ran.stdout, ran.stderr);
        let asked = asked.join().unwrap();
        assert!(
            asked.contains(&format!("GET /apis/v1/explain/{what}s/a/web/suggestions?max=3 HTTP/1.1")),
            "{asked}"
        );
        // Without an answer to that there is still the explanation.
        let (url, _) = serve(vec![ok(&explained), response("404 Not Found", "text/plain", "no such path")]);
        let ran = pellucid(&["explain", what, "a/web", "--server", &url]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stdout.ends_with("\nWhat would help is not known: no such path (404 Not Found)\n"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn pending_pods_are_listed() {
    let body = format!(
        r#"{{{META}, "count": 1, "pods": [{{"namespace": "a", "name": "web", "verdict": "gated", "reasons": ["SchedulingGated"], "message": "waiting for gates"}}]}}"#
    );
    let (asked, text) = asked(&["explain", "pods", "--all", "-n", "a", "-l", "app in (x)"], &body);
    let path = "/apis/v1/explain/pods?namespace=a&selector=app%20in%20%28x%29&limit=500";
    assert_eq!(asked, format!("GET {path} HTTP/1.1 "));
    assert!(text.contains("a/web") && text.contains("1 pod pending.\n"), "{text}");
    assert!(text.ends_with("\npellucid explain pod a/web\n"), "{text}");
    let (url, _) = stub("200 OK", "text/html", "<html>");
    fails(&["explain", "pods", "--server", &url], 1, &["is not understood"]);
}

#[test]
fn switches_are_listed_read_and_set() {
    let body = r#"{"flags": [{"name": "v", "summary": "Verbosity", "value": "2"}]}"#;
    let (url, asked) = stub("200 OK", "application/json", body);
    let ran = pellucid(&["flags", "--server", &url]);
    assert!(ran.stdout.contains("Verbosity"), "{}", ran.stdout);
    assert_eq!(asked.join().unwrap(), "GET /debug/flags HTTP/1.1 ");

    let (url, _) = stub("200 OK", "text/plain", "2\n");
    assert_eq!(pellucid(&["flags", "v", "--server", &url]).stdout, "2\n");

    let (url, asked) = stub("200 OK", "text/plain", "successfully set klog.logging.verbosity to 5\n");
    let ran = pellucid(&["flags", "v", "5", "--server", &url]);
    assert_eq!(ran.stdout, "successfully set klog.logging.verbosity to 5\n");
    assert_eq!(asked.join().unwrap(), "PUT /debug/flags/v HTTP/1.1 5");

    let (url, asked) = stub("200 OK", "text/plain", "successfully set debugTopNScores to 5\n");
    let ran = pellucid(&["flags", "s", "5", "--server", &url]);
    let (said, when) = ran.stdout.split_once('\n').unwrap();
    assert_eq!(said, "successfully set debugTopNScores to 5");
    assert!(when.contains("next attempt"), "records of earlier attempts are expected in vain: {when}");
    assert_eq!(asked.join().unwrap(), "PUT /debug/flags/s HTTP/1.1 5");

    let refused = r#"{"code": "InvalidValue", "message": "v is 0 to 10", "requestId": "x"}"#;
    let (url, _) = stub("400 Bad Request", "application/json", refused);
    fails(&["flags", "v", "many", "--server", &url], 1, &["v is 0 to 10 (400 Bad Request, InvalidValue)"]);
}

/// Runs the binary against a stub with this body; returns the request and the output.
fn asked(args: &[&str], body: &str) -> (String, String) {
    let (url, asked) = stub("200 OK", "application/json", body);
    let ran = pellucid(&[args, &["--server", &url]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    (asked.join().unwrap(), ran.stdout)
}

#[test]
fn names_take_their_namespace_from_the_command_line() {
    let body = format!(r#"{{{META}, "namespace": "a", "name": "web"}}"#);
    let paths = [
        (vec!["explain", "web", "-o", "json"], "explain/pods/default/web"),
        (vec!["explain", "a/web", "-o", "json"], "explain/pods/a/web"),
        (vec!["explain", "pod", "web", "-n", "a", "-o", "json"], "explain/pods/a/web"),
        (vec!["explain", "gang", "web", "--namespace", "a", "-o", "json"], "explain/gangs/a/web"),
        (vec!["explain", "node", "n1"], "explain/nodes/n1"),
        (vec!["queue", "web", "-n", "a"], "queue?position=a/web&limit=1"),
        (vec!["gang", "web", "-n", "a", "-o", "json"], "explain/gangs/a/web"),
        (vec!["pod", "web", "-n", "a", "-o", "json"], "explain/pods/a/web"),
        (vec!["node", "n1"], "explain/nodes/n1"),
        (vec!["explain", "web", "--versus", "n1", "-o", "json"], "explain/pods/default/web?versus=n1"),
        (vec!["history", "web", "-o", "json"], "history/pods/default/web"),
        (vec!["wakeups", "a/web", "-o", "json"], "explain/pods/a/web/wakeups"),
        (vec!["suggestions", "gang", "a/web", "-o", "json"], "explain/gangs/a/web/suggestions?max=10"),
        (vec!["scores", "web", "-n", "a", "-o", "yaml"], "scores/a/web"),
    ];
    for (args, path) in paths {
        let (asked, _) = asked(&args, &body);
        assert_eq!(asked, format!("GET /apis/v1/{path} HTTP/1.1 "), "{args:?}");
    }
}

#[test]
fn lists_for_programs_are_walked_to_their_end() {
    let page = |name: &str, more: &str| {
        let body = format!(
            r#"{{"meta": {{"snapshotGeneration": 7{more}}}, "count": 2, "pods": [{{"namespace": "b", "name": "{name}"}}]}}"#
        );
        response("200 OK", "application/json", &body)
    };
    let pages = || vec![page("x", r#", "continue": "7-1", "remainingItemCount": 1"#), page("y", "")];
    let wanted = serde_json::json!({"meta": {"snapshotGeneration": 7}, "count": 2,
        "pods": [{"namespace": "b", "name": "x"}, {"namespace": "b", "name": "y"}]});
    for form in ["json", "yaml"] {
        let (url, asked) = serve(pages());
        let ran = pellucid(&["explain", "pods", "-n", "b", "-o", form, "--server", &url]);
        assert_eq!(
            serde_saphyr::from_str::<serde_json::Value>(&ran.stdout).unwrap(),
            wanted,
            "{}",
            ran.stderr
        );
        let path = "GET /apis/v1/explain/pods?namespace=b&limit=500";
        assert_eq!(asked.join().unwrap(), format!("{path} HTTP/1.1 \n{path}&continue=7-1 HTTP/1.1 "));
    }
    for (list, path) in [
        ("gangs", "explain/gangs"),
        ("queue", "queue"),
        ("nodes", "explain/nodes"),
        ("evictions", "evictions"),
    ] {
        let (question, _) = asked(&[list, "-o", "json", "--sort", "-age", "--limit", "3"], "{}");
        assert_eq!(question, format!("GET /apis/v1/{path}?sort=-age&limit=3 HTTP/1.1 "));
    }
}

#[test]
fn yaml_says_what_json_says() {
    let body = r#"{"a": "yes", "b": "1", "c": [null, true, 1.5, "x: y", "line\nline", "", "~", "0x1f", "n", "on", "1e3", "2026-01-02", "é"], "d": {}}"#;
    let (_, yaml) = asked(&["explain", "web", "-o", "yaml"], body);
    let wanted: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap(), wanted, "{yaml}");
}

#[test]
fn who_is_ahead_is_listed() {
    let body = format!(
        r#"{{{META}, "unit": "a/g", "stage": "active", "position": 1, "positionMeaning": "its turn is after one unit",
            "ahead": [{{"key": "a/x", "stage": "active", "priority": 9, "size": 3, "attempts": 0}}]}}"#
    );
    let (_, text) = asked(&["queue", "a/g"], &body);
    assert!(text.starts_with("a/g: position 1 in stage active, 1 unit ahead\nits turn is after"), "{text}");
    assert!(text.contains("a/x"), "{text}");
}

#[test]
fn manifests_are_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let manifests = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: two}\n";
    let file = write(folder.path(), "pods.yaml", manifests);
    let body = r#"{"placements": [{"pod": "a/one", "node": "n1"}], "refused": [{"pod": "a/two", "summary": "No room."}]}"#;
    let (url, asked) = stub("200 OK", "application/json", body);
    let ran = pellucid(&["simulate", "-f", &file, "-n", "a", "--server", &url]);
    assert_eq!((ran.code, ran.stderr.as_str()), (3, ""), "one of them would not fit");
    let (question, text) = (asked.join().unwrap(), ran.stdout);
    let (head, sent) = question.split_once(" HTTP/1.1 ").unwrap();
    assert_eq!(head, "POST /apis/v1/simulate");
    let sent: serde_json::Value = serde_json::from_str(sent).unwrap();
    assert_eq!(sent["pods"][1]["metadata"], serde_json::json!({"name": "two", "namespace": "a"}));
    assert!(
        text.contains("1 pod would get a place, 1 would not") && text.contains("a/two: No room."),
        "{text}"
    );

    let (url, asked) = stub("200 OK", "application/json", "{}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pellucid"))
        .args(["simulate", "-f", "-", "--server", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"include": ["a/b"]}"#).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(asked.join().unwrap(), r#"POST /apis/v1/simulate HTTP/1.1 {"include":["a/b"]}"#);

    let wrong = write(folder.path(), "wrong.yaml", "kind: Service\n");
    fails(&["simulate", "-f", &wrong], 1, &["wrong.yaml, document 1: kind Service cannot be simulated"]);
    fails(&["simulate", "-f", "/nonexistent"], 1, &["cannot read /nonexistent"]);
}

#[test]
fn under_the_plugins_name_it_is_kubectl_pellucid() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-pellucid");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pellucid"), &plugin).unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(&plugin).args(args).env_remove("PELLUCID_SERVER").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    assert!(help.contains("Usage: kubectl pellucid <COMMAND>"), "{help}");
    for command in ["explain", "pod", "gang", "gangs", "queue", "events", "scores", "simulate", "flags"] {
        assert!(help.contains(&format!("  {command} ")), "no {command} in\n{help}");
        let (_, help, _) = run(&[command, "--help"]);
        assert!(help.contains("\n  kubectl pellucid "), "no example in\n{help}");
    }
    for command in ["run", "demo", "sandbox", "probe"] {
        assert_eq!(run(&[command]).0, 2, "{command} is no command of the plugin");
    }
    let (url, _) = stub(
        "200 OK",
        "application/json",
        &format!(r#"{{{META}, "topN": 0, "active": false, "dropped": 0, "tables": []}}"#),
    );
    let (code, text, _) = run(&["scores", "--server", &url]);
    assert_eq!(code, 0);
    assert!(text.contains("`kubectl pellucid flags s 5`"), "{text}");
}

#[test]
fn a_probe_tells_ready_from_not_ready() {
    let (url, asked) = stub("200 OK", "text/plain", "ok");
    let ran = pellucid(&["probe", "--url", &format!("{url}/livez")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ok\n"));
    assert_eq!(asked.join().unwrap(), "GET /livez HTTP/1.1 ");
    let (url, _) = stub("503 Service Unavailable", "text/plain", "watches are not caught up");
    fails(&["probe", "--url", &url], 1, &["watches are not caught up"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (url, _) = stub("200 OK", "text/plain", &"long\n".repeat(100_000));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pellucid"))
        .args(["flags", "v", "--server", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_watched_page_is_drawn_once_for_each_change() {
    let ok = |body: String| response("200 OK", "application/json", &body);
    let state = |generation: u64| ok(format!(r#"{{"meta": {{"snapshotGeneration": {generation}}}}}"#));
    let page = |name: &str| {
        ok(format!(
            r#"{{{META}, "count": 1, "pods": [{{"namespace": "a", "name": "{name}", "verdict": "gated",
            "reasons": [], "message": ""}}]}}"#
        ))
    };
    let late = r#"{"code": "GenerationNotReached", "message": "not yet", "requestId": "x"}"#;
    let late = response("503 Service Unavailable", "application/json", late);
    let (url, asked) = serve(vec![state(7), page("one"), late, state(9), page("two")]);
    let ran = pellucid(&["explain", "pods", "--all", "--watch", "--server", &url]);
    let asked = asked.join().unwrap();
    assert_eq!(asked.matches("minGeneration=8").count(), 2, "{asked}");
    assert!(
        ran.stdout.matches("a/one").count() == 2 && ran.stdout.matches("a/two").count() == 2,
        "{}",
        ran.stdout
    );
    // The server is gone after that.
    assert!(ran.code == 1 && ran.stderr.contains("no scheduler answers"), "{}", ran.stderr);
}

#[test]
fn events_are_followed_from_the_last_one_that_is_recorded() {
    let event = |id: u64, kind: &str| {
        format!(r#"{{"id": {id}, "at": "2026-01-02T03:04:05Z", "kind": "{kind}", "pod": "a/web-{id}"}}"#)
            + "\n"
    };
    let recorded = (1..=5).map(|id| event(id, "Refused")).collect::<String>();
    let feed = |body: &str| response("200 OK", "application/x-ndjson", body);
    let (url, asked) = serve(vec![feed(&recorded), feed(&(event(6, "Placed") + &event(7, "Bound")))]);
    let ran = pellucid(&["events", "-f", "--tail", "2", "--kind", "Refused,Placed", "--server", &url]);
    let asked = asked.join().unwrap();
    assert!(asked.ends_with("GET /apis/v1/events?follow=true&since=5 HTTP/1.1 "), "{asked}");
    let pods: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(pods, ["a/web-4", "a/web-5", "a/web-6"], "{}", ran.stdout);
    assert!(ran.code == 1 && ran.stderr.contains("the feed has ended"), "{}", ran.stderr);
    let (url, _) = serve(vec![feed(&event(9, "Refused"))]);
    let json = pellucid(&["events", "-o", "json", "--server", &url]).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["id"], 9);
}
