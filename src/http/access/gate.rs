//! The gate: decides about one request who sends it, whether it may pass, and whose names the answer may have.
//!
//! Whoever may use a path as a whole sees everything. Others may still read about namespaces in which they may get pods:
//! the request names those, in its path, in the parameter `namespace`, or in the header [`NAMESPACES`]. When the authority
//! does not answer, nothing passes but what is open to everybody.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName, StatusCode, header};
use pellucid_model::Viewer;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::access::cache::Cache;
use crate::access::credentials::token;
use crate::access::digest::Digest;
use crate::access::share::{Place, Share, Shares};
use crate::access::strangers::Strangers;
use crate::authority::{Authority, Certified, NoAnswer, Right, User};
use crate::error::{Failure, ReadError};
use crate::middleware::Peer;
use crate::registration::need::Need;
use crate::registration::operation::Operation;
use crate::registration::params::{Params, shortened};

/// Header with the namespaces that a request is about, with commas.
const NAMESPACES: HeaderName = HeaderName::from_static("x-pellucid-namespaces");
/// The parameter that does the same, where a route has it.
const NAMESPACE: &str = "namespace";
/// Largest number of namespaces that one request may name.
const MOST_NAMESPACES: usize = 16;
/// How long an answer of the authority is used, as kube-scheduler does.
const TRUST: Duration = Duration::from_secs(10);
/// How long a token counts as a user's after it came for the first time. Until then it has a place among the users when it
/// is asked about again.
const ACQUAINTED: Duration = Duration::from_secs(3600);
/// Largest number of answers of each kind that are remembered.
const MOST_ANSWERS: usize = 4096;
/// Largest number of questions about users to the authority at once. Those about unknown tokens have others (`strangers`).
const QUESTIONS: usize = 24;
/// How long a question about a user waits for its turn.
const TURN: Duration = Duration::from_secs(1);
/// Largest number of characters of a namespace, as of any DNS label.
const LONGEST_NAMESPACE: usize = 63;
/// Longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

pub(crate) struct Gate {
    authority: Arc<dyn Authority>,
    users: Cache<Digest, Arc<User>>,
    /// Tokens that were somebody's.
    acquainted: Cache<Digest, ()>,
    strangers: Strangers,
    rights: Cache<Digest, bool>,
    questions: Semaphore,
    shares: Arc<Shares>,
}

impl Gate {
    pub(crate) fn new(authority: Arc<dyn Authority>, share: Share) -> Self {
        Self {
            authority,
            users: Cache::new(TRUST, MOST_ANSWERS),
            acquainted: Cache::new(ACQUAINTED, MOST_ANSWERS),
            strangers: Strangers::new(TRUST),
            rights: Cache::new(TRUST, MOST_ANSWERS),
            questions: Semaphore::new(QUESTIONS),
            shares: Arc::new(Shares::new(share)),
        }
    }

    /// Returns who sends a request, with a place for it. Fails with 401 when nobody says so, 429 when the user has too many
    /// requests, 503 when the authority does not answer.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<(Arc<User>, Place), Failure> {
        let user = match (token(headers), extensions.get::<Certified>()) {
            (Some(token), _) => self.user_of(token, extensions.get::<Peer>().map(|peer| peer.0)).await?,
            (None, Some(certified)) => Some(Arc::clone(&certified.0)),
            (None, None) => None,
        };
        let user = user.ok_or_else(|| {
            let message = match token(headers) {
                Some(_) => "the token is not valid here: it is wrong, or has expired",
                None => "this needs a bearer token of the cluster, or a client certificate",
            };
            Failure::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
                .with(header::WWW_AUTHENTICATE, "Bearer")
        })?;
        let place = self.shares.take(&user.name)?;
        Ok((user, place))
    }

    /// Decides whether a user may use an operation on a path, and what of the answer the user may see. Fails with 403 when
    /// a right is missing, and with 503 when the authority does not answer.
    pub(crate) async fn authorize(
        &self,
        user: &Arc<User>,
        operation: &Operation,
        path: &str,
        params: &Params,
        headers: &HeaderMap,
    ) -> Result<Viewer, Failure> {
        let (verb, pods) = match operation.need {
            Need::Nothing | Need::User => return Ok(Viewer::All),
            Need::Verb(verb) => (verb, None),
            Need::VerbOrPods(verb, pods) => (verb, Some(pods)),
        };
        let everywhere = Right::Path { verb, path: path.to_owned() };
        if self.grants(user, &everywhere).await? {
            return Ok(Viewer::All);
        }
        let Some(pods) = pods else { return Err(forbidden(user, &everywhere.to_string())) };
        let namespaces = named(params, headers)?;
        if namespaces.is_empty() {
            let missing = format!(
                "{everywhere}; or name namespaces in which {} pods is granted, in the parameter `{NAMESPACE}` or the \
                 header {NAMESPACES}, to read about those",
                pods.join(" and "),
            );
            return Err(forbidden(user, &missing));
        }
        for namespace in &namespaces {
            for verb in pods {
                let right = Right::Pods { verb, namespace: namespace.clone() };
                if !self.grants(user, &right).await? {
                    return Err(forbidden(user, &format!("{everywhere}, or {right}")));
                }
            }
        }
        let viewer = Viewer::of(namespaces);
        check_texts(user, &viewer, params)?;
        Ok(viewer)
    }

    async fn user_of(&self, token: &str, peer: Option<IpAddr>) -> Result<Option<Arc<User>>, Failure> {
        if token.len() > LONGEST_TOKEN {
            return Ok(None);
        }
        let digest = Digest::of_token(token);
        if let Some(known) = self.users.get(&digest) {
            return Ok(Some(known));
        }
        if self.strangers.were_refused(&digest) {
            return Ok(None);
        }
        let user = match self.acquainted.get(&digest) {
            Some(()) => self.acquaintance(token).await?,
            None => self.stranger(token, peer).await?,
        };
        let Some(user) = user else {
            self.strangers.refuse(digest);
            self.acquainted.forget(&digest);
            return Ok(None);
        };
        let user = Arc::new(user);
        self.users.put(digest, Arc::clone(&user));
        if self.acquainted.get(&digest).is_none() {
            self.acquainted.put(digest, ());
        }
        Ok(Some(user))
    }

    /// Asks about a token that was somebody's not long ago.
    async fn acquaintance(&self, token: &str) -> Result<Option<User>, Failure> {
        let _turn = self.turn().await?;
        self.authority.user_of(token.to_owned()).await.map_err(|e| no_answer(&e))
    }

    /// Asks about a token that anybody may have made up.
    async fn stranger(&self, token: &str, peer: Option<IpAddr>) -> Result<Option<User>, Failure> {
        let turn = self.strangers.turn(peer).await?;
        let user = self.authority.user_of(token.to_owned()).await.map_err(|e| no_answer(&e))?;
        if user.is_some() {
            turn.was_good();
        }
        Ok(user)
    }

    async fn grants(&self, user: &Arc<User>, right: &Right) -> Result<bool, Failure> {
        let question = Digest::of_right(user, right);
        if let Some(known) = self.rights.get(&question) {
            return Ok(known);
        }
        let _turn = self.turn().await?;
        let granted = self.authority.grants(Arc::clone(user), right.clone()).await;
        let granted = granted.map_err(|e| no_answer(&e))?;
        self.rights.put(question, granted);
        Ok(granted)
    }

    /// Waits a moment for a turn of a question about a user. Connections bound how many wait.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let turn = timeout(TURN, self.questions.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let message = "too many requests wait for the API server to say what their users may";
            ReadError::TooMany("TooManyRequests", message.to_owned()).into()
        })
    }
}

/// Returns the namespaces that a request names, in order. Fails when there are too many, or one cannot be a namespace:
/// nothing else is asked about.
fn named(params: &Params, headers: &HeaderMap) -> Result<BTreeSet<String>, Failure> {
    let given = headers.get_all(&NAMESPACES).iter().filter_map(|value| value.to_str().ok());
    let in_headers = given.flat_map(words).map(|word| (word, true));
    let in_params = params.text(NAMESPACE).into_iter().flat_map(words).map(|word| (word, false));
    let mut namespaces = BTreeSet::new();
    for (word, is_header) in in_params.chain(in_headers) {
        if !is_namespace(word) {
            return Err(no_namespace(word, is_header).into());
        }
        namespaces.insert(word.to_owned());
        if namespaces.len() > MOST_NAMESPACES {
            let message = format!("more namespaces are named than the {MOST_NAMESPACES} that may be at once");
            return Err(ReadError::BadRequest("TooManyNamespaces", message).into());
        }
    }
    Ok(namespaces)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Returns whether a text is a DNS label, as every name of a namespace is.
fn is_namespace(text: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    text.len() <= LONGEST_NAMESPACE
        && text.as_bytes().iter().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn no_namespace(word: &str, is_header: bool) -> ReadError {
    let why = format!(
        "names `{}`, which no namespace can be called: at most {LONGEST_NAMESPACE} lower-case letters, digits and `-`, \
         with a letter or digit at both ends",
        shortened(word)
    );
    match is_header {
        true => ReadError::BadRequest("InvalidHeader", format!("header {NAMESPACES} {why}")),
        false => ReadError::BadRequest("InvalidParameter", format!("parameter `{NAMESPACE}` {why}")),
    }
}

/// Refuses parameters that name objects of other namespaces: an answer would say whether they exist.
fn check_texts(user: &User, viewer: &Viewer, params: &Params) -> Result<(), Failure> {
    for (name, text) in params.texts() {
        // `owner` is `Kind/name`, and keys of labels may have a prefix.
        if matches!(name, "owner" | "selector") {
            continue;
        }
        for word in text.split(',') {
            let foreign = word.trim().split_once('/').filter(|(namespace, _)| !viewer.sees(namespace));
            if let Some((namespace, _)) = foreign {
                let missing =
                    format!("get pods in namespace {}, which parameter `{name}` names", shortened(namespace));
                return Err(forbidden(user, &missing));
            }
        }
    }
    Ok(())
}

fn forbidden(user: &User, missing: &str) -> Failure {
    let message = format!("user {} may not do this; missing: {missing}", shortened(&user.name));
    Failure::new(StatusCode::FORBIDDEN, "Forbidden", message)
}

fn no_answer(NoAnswer(why): &NoAnswer) -> Failure {
    tracing::warn!(why, "no answer about a user");
    let message = "the API server does not say who asks and what they may, so nothing but health is answered; ask again"
        .to_owned();
    ReadError::Unavailable("AuthorityUnavailable", message).into()
}

#[cfg(test)]
mod tests;
