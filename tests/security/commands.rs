//! The command line as a client: with an authority or a fingerprint, with a token, and through an API server's proxy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crate::common::process::run;
use crate::common::running::{node, pod};
use crate::security::authority::{MINE, Secure, asking, start};

/// Path of the Service at an API server.
const SERVICE: &str = "/api/v1/namespaces/pellucid/services/https:pellucid:https/proxy";

/// Runs a command; returns whether it succeeded, and what it said.
fn said(args: &[&str]) -> (bool, String) {
    let output = run(args);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Starts a cluster with one pod that does not fit.
pub(crate) async fn cluster() -> Secure {
    let mut own = pod("own", 9_000);
    own["metadata"]["namespace"] = MINE.into();
    let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MINE}});
    let secure = start(vec![namespace, node("n0", "z", 4), own]).await;
    let root = secure.user("root");
    let waiting = tokio::task::spawn_blocking(move || {
        root.wait(&format!("/apis/v1/explain/pods/{MINE}/own"), "it is decided", |body| {
            !body["message"].is_null()
        });
    });
    waiting.await.expect("decided");
    secure
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_asks_over_tls_with_a_token() {
    asking(cluster().await, |secure| {
        let url = secure.instance.url();
        assert!(url.starts_with("https://"), "{url}");
        let file = secure.folder.path().join("ca.crt");
        std::fs::write(&file, &secure.ca.pem).unwrap();
        let (file, fingerprint) = (file.display().to_string(), secure.instance.fingerprint.clone().unwrap());
        let pod = ["pod", "own", "-n", MINE, "--server", &url];
        let ask = |more: &[&str]| said(&[&pod[..], more].concat());
        for trust in [["--certificate-authority", &file], ["--fingerprint", &fingerprint]] {
            let (ok, text) = ask(&[&trust[..], &["--token", "t-ann"]].concat());
            assert!(ok && text.contains("own"), "{text}");
        }
        let trusted = |token: &str| ask(&["--fingerprint", &fingerprint, "--token", token]);
        let (ok, text) = trusted("t-bob");
        assert!(
            !ok && text.contains("403 Forbidden") && text.contains("get pods in namespace team-a"),
            "{text}"
        );
        assert!(trusted("wrong").1.contains("401 Unauthorized"));
        let other = "00:".repeat(31) + "00";
        let (ok, text) = ask(&["--fingerprint", &other, "--token", "t-ann"]);
        assert!(!ok && text.contains("another fingerprint"), "{text}");
        let (ok, text) = ask(&["--token", "t-ann"]);
        assert!(!ok && text.contains("--certificate-authority"), "{text}");
        let (ok, text) = said(&["pod", "own", "--server", "http://127.0.0.1:1", "--token", "t-ann"]);
        assert!(!ok && text.contains("https addresses only"), "{text}");
        let (ok, text) = said(&["probe", "--url", &format!("{url}/livez")]);
        assert!(ok && text.contains("ok"), "{text}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_goes_through_an_api_server() {
    asking(cluster().await, |secure| {
        let (address, heads) = proxy(secure);
        let kubeconfig = secure.folder.path().join("kubeconfig");
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], users: [{{name: u, user: {{token: t-ann}}}}]}}"
        );
        std::fs::write(&kubeconfig, text).unwrap();
        let file = kubeconfig.display().to_string();
        let (ok, text) = said(&["pod", "own", "-n", MINE, "--kubeconfig", &file]);
        assert!(ok && text.contains("own"), "{text}");
        let head = heads.recv().unwrap().to_lowercase();
        assert!(head.contains("\nauthorization: bearer t-ann\r"), "for the API server: {head}");
        let (ok, text) = said(&["pod", "own", "-n", MINE, "--kubeconfig", &file, "--token", "t-bob"]);
        assert!(!ok && text.contains("403 Forbidden"), "the given token is asked about: {text}");
        let (ok, text) = said(&["events", "-n", MINE, "--kubeconfig", &file]);
        assert!(ok && text.contains("own"), "{text}");
        let (ok, text) = said(&["pod", "own", "--kubeconfig", &file, "--service", "nonsense"]);
        assert!(!ok && text.contains("NAMESPACE/NAME:PORT"), "{text}");
    })
    .await;
}

/// Starts what an API server's Service proxy does: it takes `Authorization`, forwards the rest over TLS, and says nothing of
/// the user. Returns its address and the heads that arrive.
fn proxy(secure: &Secure) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, seen) = channel();
    let caller = Arc::new(secure.caller());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let caller = Arc::clone(&caller);
            let heads = heads.clone();
            std::thread::spawn(move || {
                let Some(head) = head(&stream) else { return };
                // The test may have ended.
                let _ = heads.send(head.clone());
                let mut lines = head.lines();
                let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
                let target = first[1].strip_prefix(SERVICE).expect("the path of the Service");
                let passed = ["x-pellucid-", "accept"];
                let kept =
                    lines.filter(|line| passed.iter().any(|name| line.to_lowercase().starts_with(name)));
                let headers: String = kept.map(|line| format!("{line}\r\n")).collect();
                let reply = caller.send(first[0], target, &headers, "");
                let mut answer = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", reply.status);
                for (name, value) in &reply.headers {
                    if !name.eq_ignore_ascii_case("connection") {
                        answer += &format!("{name}: {value}\r\n");
                    }
                }
                answer += "\r\n";
                let mut stream = &stream;
                let _ = stream.write_all(&[answer.as_bytes(), &reply.body].concat());
            });
        }
    });
    (address, seen)
}

/// Reads the head of a request without a body.
fn head(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.take(64 * 1024));
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    Some(text)
}
