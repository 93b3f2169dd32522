//! Who passes: no credentials 401, no rights 403 and nothing changed, an authority that is away 503, health always.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use pellucid::sandbox::{Fault, Match};
use serde_json::{Value, json};

use crate::common::client::Reply;
use crate::security::authority::{Ca, MINE, asking, start};
use crate::security::caller::Caller;

const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

fn code(reply: &Reply) -> (u16, String) {
    (reply.status, reply.json()["code"].as_str().unwrap_or_default().to_owned())
}

/// Returns a path template as OpenAPI writes it: `:name` as `{name}`.
fn braced(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_credentials_only_health_and_the_empty_page_are_served() {
    asking(start(Vec::new()).await, |secure| {
        let nobody = secure.caller();
        for path in HEALTH {
            assert!(matches!(nobody.get(path).status, 200 | 503), "{path}");
        }
        for path in ["/", "/ui/app.js"] {
            assert_eq!(nobody.get(path).status, 200, "{path}");
        }
        let services = secure.user("root").get("/apis/v1/__services__").json();
        let document = secure.user("root").get("/openapi.json").json();
        let mut asked = 0;
        for path in services["GET"].as_array().unwrap() {
            let path = path.as_str().unwrap();
            let documented = &document["paths"][braced(path)]["get"];
            let is_documented = documented["responses"].get("401").is_some();
            let ways = documented["security"].as_array().map_or(0, Vec::len);
            if HEALTH.contains(&path) || path == "/" || path.starts_with("/ui/") {
                assert!(!is_documented && ways == 1, "{path}: {documented}");
                continue;
            }
            assert!(is_documented && ways == 3, "{path}: {documented}");
            let path = path.replace(':', "x");
            for caller in
                [nobody.clone(), nobody.with_token("wrong"), nobody.with_header("Authorization: Basic eA==")]
            {
                let reply = caller.get(&path);
                assert_eq!(code(&reply), (401, "Unauthorized".into()), "{path}");
                assert_eq!(reply.header("www-authenticate"), "Bearer");
            }
            asked += 1;
        }
        assert!(asked > 40, "{asked} paths");
        assert_eq!(nobody.get("/nowhere").status, 401);
        assert_eq!(nobody.put("/debug/flags/v", "5").status, 401);
        assert_eq!(nobody.post("/apis/v1/simulate", &json!({})).status, 401);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_nothing_is_read_and_nothing_changes() {
    asking(start(Vec::new()).await, |secure| {
        let (root, bob, reader) = (secure.user("root"), secure.user("bob"), secure.user("reader"));
        let before = root.get("/debug/flags").text().to_owned();
        let services = root.get("/apis/v1/__services__").json();
        let open = [
            "/",
            "/ui/",
            "/healthz",
            "/livez",
            "/readyz",
            "/docs",
            "/version",
            "/openapi.json",
            "/apis/v1/__services__",
        ];
        for path in services["GET"].as_array().unwrap() {
            let path = path.as_str().unwrap();
            if open.iter().any(|one| path == *one || one.len() > 1 && path.starts_with(one)) {
                continue;
            }
            let reply = bob.get(&path.replace(':', "x"));
            assert_eq!(code(&reply), (403, "Forbidden".into()), "{path}");
            assert!(reply.json()["message"].as_str().unwrap().contains("missing: "), "{path}");
        }
        let question =
            json!({"pods": [{"metadata": {"name": "p", "namespace": MINE}, "spec": {"containers": []}}]});
        for who in [&bob, &reader] {
            assert_eq!(who.put("/debug/flags/v", "5").status, 403);
            assert_eq!(who.post("/apis/v1/simulate", &question).status, 403);
            assert_eq!(who.get("/apis/v1/snapshot").status, 403, "dumps are a verb of their own");
        }
        let said = bob.put("/debug/flags/v", "5").json()["message"].as_str().unwrap().to_owned();
        assert!(said.contains("update on nonResourceURL /debug/flags/v"), "{said}");
        assert_eq!(root.get("/debug/flags").text(), before);
        assert_eq!(reader.get("/apis/v1/queue").status, 200);
        assert_eq!(root.get("/apis/v1/snapshot").status, 200);
        assert_eq!(root.put("/debug/flags/s", "3").status, 200);
        assert_ne!(root.get("/debug/flags").text(), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_reads_about_namespaces_with_a_right_to_pods() {
    asking(start(Vec::new()).await, |secure| {
        let ann = secure.user("ann");
        assert_eq!(ann.get("/apis/v1/queue").status, 403, "no namespace is named");
        assert_eq!(ann.get(&format!("/apis/v1/queue?namespace={MINE}")).status, 200);
        let named = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        assert_eq!(named.get("/apis/v1/queue").status, 200);
        assert_eq!(named.get("/apis/v1/queue?namespace=other").status, 403);
        assert_eq!(ann.get(&format!("/apis/v1/queue?namespace={MINE},other")).status, 403);
        let missing = ann.get(&format!("/apis/v1/explain/pods/{MINE}/nobody"));
        assert_eq!(code(&missing), (404, "PodNotFound".into()), "it is told what is not there");
        assert_eq!(ann.get("/apis/v1/explain/pods/other/nobody").status, 403);
        assert_eq!(named.get("/apis/v1/explain/pods/other/nobody").status, 403);
        assert_eq!(
            named.get("/apis/v1/queue?position=other/nobody").status,
            403,
            "that would say whether it exists"
        );
        assert_eq!(named.get("/apis/v1/snapshot").status, 403);
        assert_eq!(named.put("/debug/flags/v", "5").status, 403);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_clients_name_their_users() {
    asking(start(Vec::new()).await, |secure| {
        let with = |ca: &Ca, user: &str| {
            let (certificate, key) = ca.sign(user, &[]);
            Caller::new(secure.instance.address, &secure.ca.pem, Some((&certificate, &key)))
        };
        assert_eq!(with(&secure.ca, "cert").get("/apis/v1/queue").status, 200);
        assert_eq!(with(&secure.ca, "bob").get("/apis/v1/queue").status, 403);
        // With TLS 1.3 the client learns of the refusal when it reads.
        let stranger = with(&Ca::new(), "cert");
        let refused = match stranger.connect() {
            Err(_) => true,
            Ok(mut stream) => std::io::Read::read(&mut stream, &mut [0]).is_err(),
        };
        assert!(refused, "an authority that nobody knows");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_needs_no_restart() {
    let secure = start(Vec::new()).await;
    let (first, stranger) = (secure.instance.fingerprint.clone(), Ca::new());
    let (certificate, key) = stranger.sign("pellucid", &["127.0.0.1"]);
    std::fs::write(secure.folder.path().join("tls.key"), key).unwrap();
    std::fs::write(secure.folder.path().join("tls.crt"), certificate).unwrap();
    assert!(first.is_some_and(|text| text.len() == 95), "SHA-256 as 32 bytes");
    asking(secure, move |secure| {
        let renewed = Caller::new(secure.instance.address, &stranger.pem, None);
        crate::common::until("the new certificate is served", || renewed.connect().is_ok());
        assert!(secure.caller().connect().is_err(), "the old one is not served any more");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_of_the_api_server_only_health_is_served() {
    asking(start(Vec::new()).await, |secure| {
        let root = secure.user("root");
        let away = |path| secure.sandbox.faults().times(Match::new("POST", path), Fault::Status(500), 100);
        away("/apis/authentication.k8s.io");
        assert_eq!(code(&root.get("/apis/v1/queue")), (503, "AuthorityUnavailable".into()));
        assert!(matches!(root.get("/livez").status, 200 | 503));
        secure.sandbox.faults().clear();
        assert_eq!(root.get("/apis/v1/queue").status, 200);
        away("/apis/authorization.k8s.io");
        assert_eq!(root.get("/apis/v1/queue").status, 200, "the answer is remembered");
        assert_eq!(code(&root.get("/apis/v1/nodes")), (503, "AuthorityUnavailable".into()));
    })
    .await;
}

/// What this process logs.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    let of_it = log.clone();
    tracing_subscriber::fmt().json().with_writer(move || of_it.clone()).init();
    log
});

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// Returns the fields of the audit lines of a request.
    fn audit(&self, request_id: &str) -> Vec<Value> {
        let lines: Vec<Value> =
            self.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let lines =
            lines.into_iter().filter(|line| line["target"] == "pellucid::audit").map(|l| l["fields"].clone());
        lines.filter(|fields| fields["request_id"] == request_id).collect()
    }
}

/// Returns a caller whose next request has an id of its own: schedulers that start within one second give out the same.
fn with_id(caller: &Caller) -> Caller {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    caller.with_header(&format!("X-Request-Id: audited-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_has_its_audit_line_and_no_line_a_token() {
    LazyLock::force(&LOG);
    asking(start(Vec::new()).await, |secure| {
        let line = |who: &Caller, ask: &dyn Fn(&Caller) -> Reply| {
            let reply = ask(&with_id(who));
            let [line] = &LOG.audit(reply.header("x-request-id"))[..] else { return (reply.status, None) };
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            assert_eq!(line["status"], reply.status);
            let said = ["user", "groups", "verb", "path"].map(text).join(" ");
            (reply.status, Some(said))
        };
        let (root, bob, ann) = (secure.user("root"), secure.user("bob"), secure.user("ann"));
        let set = |who: &Caller| who.put("/debug/flags/s", "3");
        let said = "root admins,system:authenticated update /debug/flags/s".to_owned();
        assert_eq!(line(&root, &set), (200, Some(said)));
        assert_eq!(
            line(&bob, &set),
            (403, Some("bob system:authenticated update /debug/flags/s".into()))
        );
        assert_eq!(
            line(&secure.caller(), &set),
            (401, Some("system:unauthenticated  update /debug/flags/s".into()))
        );
        let simulate = |who: &Caller| {
            let pod = json!({"metadata": {"name": "p", "namespace": MINE}, "spec": {"containers": [{"name": "c"}]}});
            who.with_header(&format!("X-Pellucid-Namespaces: {MINE}")).post("/apis/v1/simulate", &json!({"pods": [pod]}))
        };
        let said = "ann system:authenticated create /apis/v1/simulate".to_owned();
        assert_eq!(line(&ann, &simulate), (200, Some(said)));
        assert_eq!(line(&root, &|who| who.get("/apis/v1/queue")), (200, None), "a read is no write");
        let log = LOG.text();
        assert!(["t-root", "t-bob", "t-ann"].iter().all(|token| !log.contains(token)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reaches_no_endpoint_has_its_audit_line_too() {
    LazyLock::force(&LOG);
    asking(start(Vec::new()).await, |secure| {
        let line = |reply: &Reply| {
            let [line] = &LOG.audit(reply.header("x-request-id"))[..] else {
                panic!("not one line: {}", reply.text())
            };
            assert_eq!(line["status"], reply.status);
            let said =
                ["user", "verb", "path"].map(|field| line[field].as_str().unwrap().to_owned()).join(" ");
            (reply.status, said)
        };
        let (root, nobody) = (secure.user("root"), "system:unauthenticated");
        let evil = with_id(&root).with_header("Origin: https://evil.example");
        let set = "update /debug/flags/s";
        assert_eq!(line(&evil.put("/debug/flags/s", "3")), (403, format!("{nobody} {set}")));
        assert_eq!(line(&with_id(&root).put("/nowhere", "3")), (404, "root update /nowhere".into()));
        assert_eq!(
            line(&with_id(&secure.caller()).put("/nowhere", "3")),
            (401, format!("{nobody} update /nowhere"))
        );
        let wrong = with_id(&root).post("/debug/flags/s", &json!(3));
        assert_eq!(line(&wrong), (405, format!("{nobody} create /debug/flags/s")));
        assert_eq!(line(&with_id(&root).put("/apis/v1/queue", "3")).0, 405);
        let (status, said) = line(&with_id(&root).put(&format!("/{}", "x".repeat(5000)), "3"));
        assert_eq!(status, 400);
        assert!(said.len() < 300, "{said}");
        assert_eq!(
            line(&with_id(&root).put("/debug/flags/none", "3")),
            (404, "root update /debug/flags/none".into())
        );
        // Who leaves before the answer is in the log as well.
        let head = root.with_header("X-Request-Id: left-early").head(
            "PUT",
            "/debug/flags/s",
            "Content-Type: text/plain\r\n",
            1,
        );
        let mut stream = root.connect().unwrap();
        io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        drop(stream);
        crate::common::until("the line of who left", || !LOG.audit("left-early").is_empty());
        let [left] = &LOG.audit("left-early")[..] else { panic!("one line") };
        assert_eq!((&left["user"], &left["path"]), (&json!("root"), &json!("/debug/flags/s")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_cannot_take_all() {
    asking(start(Vec::new()).await, |secure| {
        let (reader, root) = (secure.user("reader"), secure.user("root"));
        let followed: Vec<_> = (0..16).map(|_| follow(&reader)).collect();
        let refused = reader.get("/apis/v1/queue");
        assert_eq!(code(&refused), (429, "TooManyOfUser".into()));
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(root.get("/apis/v1/queue").status, 200, "another one is not concerned");
        drop(followed);
        crate::common::until("places come back", || reader.get("/apis/v1/queue").status == 200);
    })
    .await;
}

/// Follows the feed without reading further than its head.
fn follow(caller: &Caller) -> impl Sized {
    let mut stream = caller.connect().unwrap();
    let head = caller.head("GET", "/apis/v1/events?follow=true&limit=1000000", "", 0);
    io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut first = [0; 12];
    io::Read::read_exact(&mut stream, &mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}
