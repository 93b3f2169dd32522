//! Switches, health, and the endpoints that list other endpoints.

use std::io::Write;

use pellucid::http::Limits;
use serde_json::{Value, json};

use crate::common::client::{connect, put, raw, read, request, send};
use crate::http::site::{Site, parts};

#[test]
fn a_switch_is_read_and_set_with_its_raw_value() {
    let site = Site::new();
    let set = put(site.address, "/debug/flags/s", " 100\n");
    assert_eq!((set.status, set.text()), (200, "successfully set debugTopNScores to 100\n"));
    assert_eq!(set.header("content-type"), "text/plain; charset=utf-8");
    for wrong in ["many", "-1", "", "  ", "5 6"] {
        let says = if wrong.trim().is_empty() { "empty" } else { "failed set debugTopNScores" };
        site.check_refused(&put(site.address, "/debug/flags/s", wrong), 400, "InvalidValue", says);
    }
    assert_eq!(site.get("/debug/flags/s").text(), "100\n");
    let listed = site.get("/debug/flags").json();
    assert_eq!(listed["flags"][0]["value"], "100");
    let body = "PUT /debug/flags/s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    for (header, says) in
        [("Content-Type: image/png\r\n", "image/png"), ("Content-Encoding: gzip\r\n", "compressed")]
    {
        let refused = send(site.address, "PUT", "/debug/flags/s", header, "5");
        site.check_refused(&refused, 415, "UnsupportedMediaType", says);
    }
    let binary = [body.as_bytes(), b"Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n\xff"].concat();
    site.check_refused(&raw(site.address, &binary), 400, "BodyNotText", "UTF-8");
    site.check_refused(&put(site.address, "/debug/flags/t", "1"), 404, "FlagNotFound", "`t`");
}

#[test]
fn pages_of_other_origins_change_nothing() {
    let site = Site::new();
    let own = site.address.to_string();
    let put = |host: &str, headers: &str, body: &str| {
        let head = format!("PUT /debug/flags/s HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}");
        raw(site.address, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    };
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    for (headers, says) in [
        ("Origin: http://evil.example\r\n".to_owned(), "origin `http://evil.example`"),
        ("Origin: null\r\n".to_owned(), "origin `null`"),
        ("Origin: http://127.0.0.1:1\r\n".to_owned(), "origin `http://127.0.0.1:1`"),
        ("Origin: http://localhost\r\nOrigin: http://evil.example\r\n".to_owned(), "origin `http://"),
        ("Sec-Fetch-Site: cross-site\r\n".to_owned(), "`cross-site`"),
        ("Sec-Fetch-Site: same-site\r\n".to_owned(), "`same-site`"),
    ] {
        site.check_refused(&put(&own, &format!("{form}{headers}"), "3"), 403, "OriginRefused", says);
        let head = "POST /apis/v1/simulate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        let post = raw(site.address, format!("{head}{headers}Content-Length: 0\r\n\r\n").as_bytes());
        site.check_refused(&post, 403, "OriginRefused", says);
        let get = request(site.address, "GET", "/apis/v1/list", &headers);
        assert_eq!(get.status, 200, "reading is left to the browser's rules: {headers}");
    }
    // What a web page can send without a preflight: a Blob body without a type.
    site.check_refused(&put(&own, "", "3"), 415, "UnsupportedMediaType", "no Content-Type");
    let chunked = format!("PUT /debug/flags/s HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n");
    let chunked = format!("{chunked}Transfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n");
    site.check_refused(
        &raw(site.address, chunked.as_bytes()),
        415,
        "UnsupportedMediaType",
        "no Content-Type",
    );
    assert_eq!(site.get("/debug/flags/s").text(), "0\n", "nothing was set");
    // curl, the command line, and this server's own page, which may be forwarded under another name.
    for (host, headers) in [
        (own.as_str(), String::new()),
        (own.as_str(), format!("Origin: http://{own}\r\nSec-Fetch-Site: same-origin\r\n")),
        ("localhost:8080", "Origin: http://LOCALHOST:8080\r\nSec-Fetch-Site: same-origin\r\n".to_owned()),
        (own.as_str(), "Sec-Fetch-Site: none\r\n".to_owned()),
    ] {
        assert_eq!(put(host, &format!("{form}{headers}"), "3").status, 200, "{headers}");
    }
}

#[test]
fn long_paths_and_heads_are_refused_and_long_tokens_are_not() {
    let site = Site::new();
    let path = |length: usize| format!("/apis/v1/nodes/{}", "x".repeat(length - "/apis/v1/nodes/".len()));
    site.check_refused(&site.get(&path(4096)), 404, "NodeNotFound", "cannot find node x");
    let refused = site.get(&path(4097));
    site.check_refused(&refused, 400, "MalformedUrl", "the path has 4097 bytes, more than 4096");
    assert!(refused.text().len() < 500, "it does not repeat all of it");
    let with = |header: &str, length: usize| {
        request(site.address, "GET", "/apis/v1/list", &format!("{header}: {}\r\n", "x".repeat(length))).status
    };
    assert_eq!(with("Authorization", 16 * 1024), 200, "as long as a token may be");
    assert_eq!(with("Cookie", 60_000), 200);
    // Nothing is left unread when the server gives up, so that its answer is not lost.
    let head = "GET /apis/v1/list HTTP/1.1\r\nHost: localhost\r\nX-Pellucid-Namespaces: ";
    let head = format!("{head}{}", "x".repeat(64 * 1024 - head.len()));
    assert_eq!(raw(site.address, head.as_bytes()).status, 431);
}

#[test]
fn a_body_that_is_too_long_is_refused_unread() {
    let site = Site::new();
    let head =
        "PUT /debug/flags/s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\n";
    // Announced by Content-Length: none of the body needs to be sent.
    let announced = raw(site.address, format!("{head}Content-Length: 100000000\r\n\r\n").as_bytes());
    site.check_refused(&announced, 413, "BodyTooLarge", "4096 bytes");
    let polite = format!("{head}Content-Length: 100000000\r\nExpect: 100-continue\r\n\r\n");
    site.check_refused(&raw(site.address, polite.as_bytes()), 413, "BodyTooLarge", "4096 bytes");
    // Not announced, and sent regardless: 100 MiB, of which the server accepts what the socket buffers.
    let mut stream = connect(site.address);
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    let chunk = format!("100000\r\n{}\r\n", "5".repeat(0x10_0000));
    let n_sent = (0..100).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(n_sent < 100, "the server read all of it");
    site.check_refused(&read(&mut stream), 413, "BodyTooLarge", "4096 bytes");
    assert_eq!(put(site.address, "/debug/flags/s", &" ".repeat(4095).replacen(' ', "5", 1)).status, 200);
    // A read ignores the request body.
    let get =
        raw(site.address, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n");
    assert_eq!(get.status, 200);
}

#[test]
fn health_tells_liveness_from_readiness() {
    let site = Site::new();
    assert_eq!((site.get("/readyz").status, site.get("/readyz").text()), (200, "ok"));
    let all = site.get("/readyz?verbose");
    assert_eq!(all.text(), "[+]ping ok\n[+]loop ok\n[+]watches-synced ok\nreadyz check passed\n");
    *site.sick.lock() = Some("pods: no list yet\n");
    let failed = site.get("/readyz");
    assert_eq!(failed.status, 503);
    assert_eq!(
        failed.text(),
        "[+]ping ok\n[+]loop ok\n[-]watches-synced failed: pods: no list yet \nreadyz check failed\n"
    );
    assert_eq!((site.get("/livez").status, site.get("/healthz").status), (200, 200));
    assert_eq!(site.get("/livez?verbose=true").text(), "[+]ping ok\n[+]loop ok\nlivez check passed\n");
}

#[test]
fn everything_served_is_listed() {
    let site = Site::new();
    let services = site.get("/apis/v1/__services__").json();
    let gets: Vec<&str> =
        services["GET"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(
        gets.is_sorted()
            && gets.contains(&"/apis/v1/nodes/:nodeName")
            && gets.contains(&"/metrics/resources")
    );
    assert_eq!(services["PUT"], json!(["/debug/flags/:flag"]));
    let described = site.document["paths"].as_object().unwrap();
    let listed: Vec<String> = gets.iter().map(|path| templated(path)).collect();
    let readable = described.iter().filter(|(_, item)| item["get"].is_object());
    let mut known: Vec<&String> = readable.map(|(path, _)| path).collect();
    known.sort_by_key(|path| listed.iter().position(|listed| listed == *path));
    assert_eq!(known, listed.iter().collect::<Vec<_>>());
    assert_eq!(services["POST"], json!(["/apis/v1/simulate"]));
    let index = site.get("/");
    assert_eq!(index.header("content-type"), "text/plain; charset=utf-8");
    for line in index.text().lines().filter(|line| line.starts_with("GET ")) {
        let path = line.split_whitespace().nth(1).unwrap();
        assert!(gets.contains(&path) && !path.contains(':'), "{line}");
    }
    assert!(index.text().contains("/apis/v1/nodes") && index.text().contains("/docs"));
    assert_eq!(site.get("/metrics").header("content-type"), pellucid::http::OPENMETRICS);
    assert_eq!(site.get("/version").json()["gitVersion"], "v0.1.0");
    assert_eq!(site.get("/configz").json()["kubescheduler.config.k8s.io"]["parallelism"], 16);
}

#[test]
fn a_browser_gets_a_page_and_everybody_else_the_list() {
    let site = Site::new();
    let browser = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";
    let page = request(site.address, "GET", "/", browser);
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text().starts_with("<!doctype html>"));
    for accept in ["", "Accept: */*\r\n", "Accept: text/html;q=0, */*\r\n"] {
        let list = request(site.address, "GET", "/", accept);
        assert_eq!(list.header("content-type"), "text/plain; charset=utf-8", "{accept}");
        assert_eq!((list.header("vary"), list.header("cache-control")), ("Accept", "no-store"));
    }
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!((page.header("vary"), page.header("cache-control")), ("Accept", "no-cache"));
    let parts: Vec<&str> =
        page.text().split("\"/ui/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(parts.len() > 3, "{parts:?}");
    for (part, kind) in parts.into_iter().map(|part| (part, part.rsplit('.').next())) {
        let reply = site.get(&format!("/ui/{part}"));
        let wanted = match kind {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!((reply.status, reply.header("content-type")), (200, wanted), "{part}");
        assert_eq!(reply.header("content-security-policy"), policy);
        let tag = reply.header("etag");
        assert!(tag.len() > 10 && tag.starts_with('"'), "{tag}");
        for known in [tag.to_owned(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let again =
                request(site.address, "GET", &format!("/ui/{part}"), &format!("If-None-Match: {known}\r\n"));
            assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, tag), "{known}");
        }
        let other = request(site.address, "GET", &format!("/ui/{part}"), "If-None-Match: \"other\"\r\n");
        assert_eq!(other.status, 200);
    }
    for path in ["/ui/mod.rs", "/ui/index.html", "/ui/..%2fmod.rs", "/ui/none.js"] {
        let refused = site.get(path);
        assert_eq!((refused.status, refused.json()["code"].as_str()), (404, Some("UnknownPath")), "{path}");
    }
}

fn templated(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => segment.to_owned(),
    });
    segments.collect::<Vec<String>>().join("/")
}

#[test]
fn the_document_needs_no_server_and_is_stable() {
    let site = Site::new();
    let (mut parts, ..) = parts(Limits::default());
    let alone = pellucid::http::openapi(&parts.routes, "v0.1.0").unwrap();
    parts.routes.reverse();
    let other = pellucid::http::openapi(&parts.routes, "v0.1.0").unwrap();
    assert_eq!(alone.to_pretty_json().unwrap(), other.to_pretty_json().unwrap());
    assert_eq!(serde_json::to_value(&alone).unwrap(), site.get("/openapi.json").json());
    let document = &site.document;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let one = &document["paths"]["/apis/v1/nodes/{nodeName}"]["get"];
    assert_eq!(one["operationId"], "getApisV1NodesNodeName");
    assert_eq!(one["parameters"][0]["name"], "nodeName");
    assert_eq!(one["responses"]["404"]["content"]["application/json"]["example"]["code"], "NodeNotFound");
    assert!(document["components"]["schemas"]["ErrorBody"]["properties"]["requestId"].is_object());
    let flag = &document["paths"]["/debug/flags/{flag}"];
    assert!(flag["get"].is_object() && flag["put"]["requestBody"].is_object(), "{flag:#}");
    let mut ids: Vec<&Value> = Vec::new();
    for item in document["paths"].as_object().unwrap().values() {
        ids.extend(item.as_object().unwrap().values().map(|operation| &operation["operationId"]));
    }
    let n_ids = ids.len();
    ids.sort_by_key(|id| id.to_string());
    ids.dedup();
    assert_eq!(ids.len(), n_ids);
}

#[test]
fn the_docs_page_comes_from_the_binary() {
    let site = Site::new();
    let page = site.get("/docs");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html"));
    assert!(page.text().contains("<base href=\"/docs/\">"));
    for part in ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-initializer.js"] {
        assert!(page.text().contains(part), "{part}");
        let part = site.get(&format!("/docs/{part}"));
        assert!(part.status == 200 && !part.body.is_empty());
    }
    let start = site.get("/docs/swagger-initializer.js");
    assert!(start.text().contains("/openapi.json") && !start.text().contains("https://"), "{}", start.text());
}
