//! The gate with an authority of the test, which counts what it is asked and answers when it may.

use std::net::Ipv4Addr;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::*;
use crate::authority::Asked;
use crate::registration::operation::Content;

/// Knows tokens that begin with `good`, and grants rights to pods of `mine`. Of other tokens it says nothing until it may.
#[derive(Default)]
struct Counting {
    tokens: Mutex<Vec<String>>,
    rights: Mutex<Vec<Right>>,
    strangers_wait: bool,
    may_answer: Arc<Notify>,
}

impl Authority for Counting {
    fn user_of(&self, token: String) -> Asked<Option<User>> {
        let is_good = token.starts_with("good");
        self.tokens.lock().push(token.clone());
        let (waits, may_answer) = (self.strangers_wait && !is_good, Arc::clone(&self.may_answer));
        Box::pin(async move {
            if waits {
                may_answer.notified().await;
            }
            Ok(is_good.then(|| User { name: token, ..User::default() }))
        })
    }

    fn grants(&self, _: Arc<User>, right: Right) -> Asked<bool> {
        let granted = matches!(&right, Right::Pods { namespace, .. } if namespace == "mine");
        self.rights.lock().push(right);
        Box::pin(async move { Ok(granted) })
    }
}

fn gate(strangers_wait: bool) -> (Arc<Counting>, Arc<Gate>) {
    let authority = Arc::new(Counting { strangers_wait, ..Counting::default() });
    let gate = Gate::new(Arc::clone(&authority) as Arc<dyn Authority>, Share::default());
    (authority, Arc::new(gate))
}

/// Asks who sends a request with a token from an address, and returns the status of a refusal.
async fn identify(gate: &Gate, token: &str, peer: u32) -> Result<Arc<User>, u16> {
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]);
    let mut extensions = Extensions::new();
    extensions.insert(Peer(IpAddr::V4(Ipv4Addr::from_bits(peer))));
    match gate.identify(&headers, &extensions).await {
        Ok((user, _)) => Ok(user),
        Err(failure) => Err(failure.respond("r").status().as_u16()),
    }
}

/// Asks for a read of pods with this header of namespaces, and returns status and code of a refusal.
async fn authorize(gate: &Gate, user: &Arc<User>, namespaces: &str) -> Result<Viewer, (u16, String)> {
    let operation =
        Operation::standard("/p", "t", "s", Content::PLAIN).needing(Need::VerbOrPods("get", &["get"]));
    let headers = HeaderMap::from_iter([(NAMESPACES, namespaces.parse().unwrap())]);
    let answer = gate.authorize(user, &operation, "/p", &Params::default(), &headers).await;
    match answer {
        Ok(viewer) => Ok(viewer),
        Err(failure) => {
            let response = failure.respond("r");
            let status = response.status().as_u16();
            let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            Err((
                status,
                format!("{}: {}", body["code"].as_str().unwrap(), body["message"].as_str().unwrap()),
            ))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_take_no_place_and_no_answer_from_users() {
    let (authority, gate) = gate(true);
    let good = identify(&gate, "good-1", 1).await.unwrap();
    // 40 strangers from as many addresses are asked about at once, or wait for that.
    let strangers = (0..40).map(|n| {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { identify(&gate, &format!("bad-{n}"), 100 + n).await })
    });
    let strangers: Vec<_> = strangers.collect();
    tokio::task::yield_now().await;
    while authority.tokens.lock().len() < 9 {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();
    assert!(authorize(&gate, &good, "mine").await.is_ok());
    assert!(authorize(&gate, &good, "theirs").await.is_err());
    assert_eq!(began.elapsed(), Duration::ZERO, "a known user does not wait behind strangers");
    assert_eq!(authority.tokens.lock().len(), 9, "the good one and eight strangers at once");
    // Once the answer about the user is too old it is asked for again, on a place of the users.
    tokio::time::advance(TRUST).await;
    assert_eq!(identify(&gate, "good-1", 1).await.unwrap(), good);
    let waited = join_all(strangers);
    authority.may_answer.notify_waiters();
    let outcomes: Vec<u16> = waited.await.into_iter().map(|done| done.unwrap().unwrap_err()).collect();
    let count = |status| outcomes.iter().filter(|one| **one == status).count();
    assert_eq!((count(401), count(429)), (8, 32), "who had no turn is told to come back");
}

#[tokio::test(start_paused = true)]
async fn random_tokens_are_asked_about_at_a_rate_and_push_no_user_out() {
    let (authority, gate) = gate(false);
    assert!(identify(&gate, "good-1", 1).await.is_ok());
    let n_asked = || authority.tokens.lock().len();
    let mut outcomes = Vec::new();
    for n in 0..5000 {
        outcomes.push(identify(&gate, &format!("bad-{n}"), n % 100).await.unwrap_err());
    }
    assert_eq!(n_asked(), 201, "200 of all strangers and the user");
    assert_eq!(outcomes.iter().filter(|status| **status == 401).count(), 200);
    assert!(outcomes[200..].iter().all(|status| *status == 429));
    assert_eq!(identify(&gate, "bad-0", 0).await.unwrap_err(), 401, "what is refused is remembered");
    assert!(identify(&gate, "good-1", 1).await.is_ok());
    assert_eq!(n_asked(), 201, "the answer about the user is remembered too");
    tokio::time::advance(TRUST).await;
    for n in 0..1000 {
        let _ = identify(&gate, &format!("worse-{n}"), n % 100).await;
    }
    assert!(identify(&gate, "good-1", 1).await.is_ok(), "a user that is known needs nothing of the rate");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_taken_back_is_a_stranger_again() {
    let (authority, gate) = gate(false);
    let digest = Digest::of_token("bad");
    gate.acquainted.put(digest, ());
    assert_eq!(identify(&gate, "bad", 1).await.unwrap_err(), 401);
    assert_eq!(gate.acquainted.get(&digest), None);
    assert_eq!(identify(&gate, "bad", 1).await.unwrap_err(), 401);
    assert_eq!(authority.tokens.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_about_what_cannot_be_a_namespace() {
    let (authority, gate) = gate(false);
    let user = identify(&gate, "good-1", 1).await.unwrap();
    let longest = "x".repeat(63);
    for wrong in ["x".repeat(64), "x".repeat(60_000), "Mine".into(), "-x".into(), "x-".into(), "a/b".into()] {
        let (status, said) = authorize(&gate, &user, &format!("mine,{wrong}")).await.unwrap_err();
        assert_eq!(status, 400, "{said}");
        assert!(said.starts_with("InvalidHeader: header x-pellucid-namespaces names `"), "{said}");
        assert!(said.len() < 1000);
    }
    let many: Vec<String> = (0..17).map(|n| format!("n{n}")).collect();
    let (status, said) = authorize(&gate, &user, &many.join(",")).await.unwrap_err();
    assert_eq!(status, 400);
    assert!(said.starts_with("TooManyNamespaces: "), "{said}");
    let about_pods = |right: &&Right| matches!(right, Right::Pods { .. });
    assert_eq!(authority.rights.lock().iter().filter(about_pods).count(), 0);
    assert_eq!(authorize(&gate, &user, &longest).await.unwrap_err().0, 403);
    assert!(authorize(&gate, &user, " mine, ").await.is_ok());
    let path = |right: &&Right| matches!(right, Right::Path { .. });
    assert_eq!(authority.rights.lock().iter().filter(path).count(), 1, "answers are remembered");
}
