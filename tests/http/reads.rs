//! Reads: bodies, formats, errors, methods, panics.

use serde_json::{Value, json};

use crate::common::client::{raw, request, send};
use crate::common::openapi::{body_fits_openapi, check_body_against_openapi};
use crate::http::site::{Site, nodes};

#[test]
fn every_get_answers_as_the_document_says() {
    let site = Site::new();
    let paths = site.document["paths"].as_object().unwrap().clone();
    let mut checked = 0;
    let is_tried =
        |template: &str, item: &Value| !template.starts_with("/apis/v1/held") && item["get"].is_object();
    for (template, item) in paths.iter().filter(|(template, item)| is_tried(template, item)) {
        let mut target = template.clone();
        for param in
            item["get"]["parameters"].as_array().into_iter().flatten().filter(|param| param["in"] == "path")
        {
            let example = if template.contains("flags") { "s" } else { param["example"].as_str().unwrap() };
            target = target.replace(&format!("{{{}}}", param["name"].as_str().unwrap()), example);
        }
        let reply = site.get(&target);
        let expected = if template.contains("fail") { 429 } else { 200 };
        assert_eq!(reply.status, expected, "{target}: {}", String::from_utf8_lossy(&reply.body));
        let content_type = reply.header("content-type").split(';').next().unwrap().to_owned();
        if content_type == "application/json" {
            check_body_against_openapi(&site.document, &target, reply.status, &reply.json());
            checked += 1;
        }
        let described = &item["get"]["responses"][reply.status.to_string()]["content"][&content_type];
        assert!(!described.is_null(), "{template} answers {content_type}, which the document does not say");
    }
    assert!(checked >= 9, "only {checked} JSON bodies were checked");
    let missing = site.get("/apis/v1/nodes/n9");
    check_body_against_openapi(&site.document, "/apis/v1/nodes/n9", 404, &missing.json());
}

#[test]
fn a_body_that_lies_is_noticed() {
    let site = Site::new();
    let fits = |path: &str, status, body: Value| body_fits_openapi(&site.document, path, status, &body);
    fits("/apis/v1/nodes/n1", 200, json!({"name": "n1", "freeMilliCpu": 3})).unwrap();
    fits("/apis/v1/map", 200, json!({"n1": {"name": "n1", "freeMilliCpu": 3}})).unwrap();
    for (path, status, body) in [
        ("/apis/v1/nodes/n1", 200, json!({"name": "n1", "freeMilliCpu": "much"})),
        ("/apis/v1/nodes/n1", 200, json!({"name": "n1"})),
        ("/apis/v1/list", 200, json!([{"name": "n1"}])),
        ("/apis/v1/map", 200, json!({"n1": 3})),
        ("/apis/v1/nodes/n1", 404, json!({"message": "no code"})),
        ("/apis/v1/nodes/n1", 302, json!({})),
        ("/nowhere", 200, json!({})),
    ] {
        assert!(fits(path, status, body.clone()).is_err(), "{path} {status} {body}");
    }
}

#[test]
fn a_read_answers_json_a_table_and_csv() {
    let site = Site::new();
    let body = site.get("/apis/v1/nodes?limit=1");
    assert_eq!(body.json(), json!({"nodes": [nodes().remove(0)]}));
    assert_eq!(
        (body.header("content-type"), body.header("x-snapshot-generation")),
        ("application/json", "7")
    );
    let table = site.get("/apis/v1/nodes?format=table");
    assert_eq!(table.header("content-type"), "text/markdown; charset=utf-8");
    let lines: Vec<&str> = table.text().lines().collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(
        lines[0].contains("| Node") && lines[2].contains("a\\|b c,\"d\"") && lines[3].contains("-20"),
        "{lines:#?}"
    );
    let csv = site.get("/apis/v1/nodes?format=csv");
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(csv.text(), "Node,FreeMilliCPU,Note\nn1,1500,\"a|b\nc,\"\"d\"\"\"\nn2,-20,\n");
    let accepted = request(site.address, "GET", "/apis/v1/nodes", "Accept: text/csv, */*;q=0.1\r\n");
    assert_eq!(accepted.text(), csv.text());
}

#[test]
fn refusals_say_what_is_wrong() {
    let site = Site::new();
    for (target, status, code, says) in [
        ("/apis/v1/nodes/n9", 404, "NodeNotFound", "cannot find node n9"),
        ("/apis/v1/nodes/a%2Fb%00", 404, "NodeNotFound", "a/b\0"),
        ("/apis/v1/nothing", 404, "UnknownPath", "/apis/v1/__services__"),
        ("/apis/v1/nodes/", 404, "UnknownPath", "without the slash"),
        ("/apis/v1/nodes?limt=3", 400, "UnknownParameter", "`limt`"),
        ("/apis/v1/nodes?nodeName=3", 400, "UnknownParameter", "known: limit, detail, format, minGeneration"),
        ("/version?x", 400, "UnknownParameter", "known: none"),
        ("/apis/v1/nodes?limit=1&limit=2", 400, "RepeatedParameter", "`limit`"),
        ("/apis/v1/nodes?limit=-1", 400, "InvalidParameter", "parameter `limit` has the value `-1`"),
        ("/apis/v1/nodes?limit=", 400, "InvalidParameter", "`limit`"),
        ("/apis/v1/nodes?limit=99999999999999999999", 400, "InvalidParameter", "`limit`"),
        (
            "/apis/v1/nodes?detail=perhaps",
            400,
            "InvalidParameter",
            "parameter `detail` has the value `perhaps`",
        ),
        ("/apis/v1/nodes?minGeneration=soon", 400, "InvalidParameter", "`minGeneration`"),
        ("/apis/v1/nodes?format=xml", 400, "InvalidParameter", "one of json, table, csv"),
        ("/apis/v1/nodes/n1?format=table", 400, "NoTable", "format=json"),
        ("/apis/v1/nodes/%zz", 400, "MalformedUrl", "%zz"),
        ("/apis/v1/nodes/%ff", 400, "MalformedUrl", "%ff"),
        ("/nowhere/%", 400, "MalformedUrl", "percent-encoded"),
        ("/apis/v1/nodes?limit=%f", 400, "MalformedUrl", "limit=%f"),
        ("/apis/v1/fail/unprocessable", 422, "Test", "as asked"),
        ("/apis/v1/fail/many", 429, "Test", "as asked"),
        ("/apis/v1/fail/unavailable", 503, "Test", "as asked"),
        ("/debug/flags/none", 404, "FlagNotFound", "there are: s"),
        ("/docs/none.js", 404, "UnknownPath", "/docs/none.js"),
    ] {
        site.check_refused(&site.get(target), status, code, says);
    }
    let picky = request(site.address, "GET", "/apis/v1/nodes", "Accept: image/png\r\n");
    site.check_refused(&picky, 400, "NotAcceptable", "image/png");
    let long = site.get(&format!("/apis/v1/nodes?{}=1", "x".repeat(5000)));
    assert!(long.body.len() < 1000, "a refusal is as long as its question");
}

#[test]
fn bytes_that_are_no_request_do_no_harm() {
    let site = Site::new();
    for bytes in [
        &b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"[..],
        b"\x00\x01\x02\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
    ] {
        assert_eq!(raw(site.address, bytes).status, 400);
    }
    assert_eq!(site.get("/livez").status, 200);
}

#[test]
fn methods_that_are_not_possible_name_those_that_are() {
    let site = Site::new();
    for (method, target, allow) in [
        ("POST", "/apis/v1/nodes", "GET, HEAD"),
        ("DELETE", "/metrics", "GET, HEAD"),
        ("POST", "/debug/flags/s", "GET, HEAD, PUT"),
        ("OPTIONS", "/debug/flags", "GET, HEAD"),
        ("BREW", "/version", "GET, HEAD"),
    ] {
        let reply = request(site.address, method, target, "");
        assert_eq!(reply.header("allow"), allow, "{method} {target}");
        site.check_refused(&reply, 405, "MethodNotAllowed", allow);
    }
    for (target, status) in [("/apis/v1/nodes", 200), ("/version", 200), ("/apis/v1/nodes/n9", 404)] {
        let (head, full) = (request(site.address, "HEAD", target, ""), site.get(target));
        assert_eq!((head.status, head.body.len()), (status, 0), "{target}");
        let lengths = (head.header("content-length"), full.header("content-length"));
        assert!(status == 404 || lengths.0 == lengths.1, "{target}: {lengths:?}");
    }
}

#[test]
fn a_panic_is_a_500_and_the_server_goes_on() {
    let site = Site::new();
    for _ in 0..5 {
        let reply = site.get("/apis/v1/fail/badly");
        site.check_refused(&reply, 500, "InternalError", "request id");
        assert!(!reply.text().contains("secret"));
    }
    assert_eq!(site.get("/apis/v1/nodes").status, 200);
    assert_eq!(site.seen.lock().first(), Some(&("/apis/v1/fail/:how".to_owned(), 500)));
}

#[test]
fn request_ids_are_new_or_the_callers() {
    let site = Site::new();
    let (first, second) = (site.get("/livez"), site.get("/livez"));
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    let given = request(site.address, "GET", "/nowhere", "X-Request-Id: mine-1\r\n");
    assert_eq!(given.json()["requestId"], "mine-1");
    let hostile = request(site.address, "GET", "/nowhere", "X-Request-Id: a\tb\"c\r\n");
    assert!(!hostile.header("x-request-id").contains('"'));
    assert_eq!(hostile.header("x-content-type-options"), "nosniff");
}

#[test]
fn foreign_host_names_are_refused() {
    let site = Site::new();
    let with_host = |host: &str| {
        raw(
            site.address,
            format!("GET /version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    };
    site.check_refused(&with_host("evil.example:10251"), 400, "HostRefused", "evil.example");
    for host in ["localhost:10251", "127.0.0.1", "[::1]:10251"] {
        assert_eq!(with_host(host).status, 200, "{host}");
    }
}

#[test]
fn a_question_can_be_a_json_body() {
    let site = Site::new();
    let post = |kind: &str, body: &str| {
        send(site.address, "POST", "/apis/v1/simulate", &format!("Content-Type: {kind}\r\n"), body)
    };
    let node = json!({"name": "n3", "freeMilliCpu": 5, "note": null});
    let answer = post("application/json; charset=utf-8", &node.to_string());
    assert_eq!((answer.status, answer.json()), (200, node));
    site.check_refused(&post("application/json", "{"), 400, "MalformedJson", "line 1");
    site.check_refused(&post("application/json", ""), 400, "MalformedJson", "EOF");
    site.check_refused(&post("application/json", &"[".repeat(100_000)), 400, "MalformedJson", "EOF");
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    site.check_refused(&post("application/json", &nested), 400, "InvalidBody", "expected");
    site.check_refused(&post("application/json", "{\"name\": 3}"), 400, "InvalidBody", "expected a string");
    site.check_refused(&post("text/yaml", "{}"), 415, "UnsupportedMediaType", "send it as application/json");
    site.check_refused(&post("application/json", &" ".repeat(300_000)), 413, "BodyTooLarge", "262144 bytes");
    let reply = site.get("/apis/v1/simulate");
    assert_eq!(reply.header("allow"), "POST");
    let described = &site.document["paths"]["/apis/v1/simulate"]["post"];
    assert!(described["requestBody"]["content"]["application/json"]["schema"]["$ref"].is_string());
    assert!(described["responses"]["413"].is_object() && described["responses"]["415"].is_object());
}

#[test]
fn a_list_goes_on_with_the_state_that_it_began_with() {
    let site = Site::new();
    let generation = |target: &str| site.get(target).json()["meta"]["generation"].clone();
    let first = site.get("/apis/v1/pages").json();
    assert_eq!(first["meta"], json!({"generation": 7, "continue": "7"}));
    // Others begin lists of their own meanwhile; the one that is gone on with is kept.
    assert_eq!(generation("/apis/v1/pages?continue=7"), 7);
    for newer in 8..20 {
        site.publish(newer);
        assert_eq!(generation("/apis/v1/pages"), newer);
    }
    assert_eq!(generation("/apis/v1/pages?continue=7"), 7);
    assert_eq!(generation("/apis/v1/pages?continue=19"), 19);
    let gone = site.get("/apis/v1/pages?continue=8");
    site.check_refused(&gone, 410, "ContinueExpired", "begin again without `continue`");
    check_body_against_openapi(&site.document, "/apis/v1/pages", 410, &gone.json());
}
