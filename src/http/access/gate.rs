//! The gate: decides about one request who sends it, whether it may pass, and whose names the answer may have.
//!
//! Whoever may use a path as a whole sees everything. Others may still read about namespaces in which they may get pods:
//! the request names those, in its path, in the parameter `namespace`, or in the header [`NAMESPACES`]. When the authority
//! does not answer, nothing passes but what is open to everybody.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName, StatusCode, header};
use pellucid_model::Viewer;
use tokio::sync::Semaphore;

use crate::access::cache::Cache;
use crate::access::credentials::{TokenDigest, token};
use crate::access::share::{Place, Share, Shares};
use crate::authority::{Authority, Certified, NoAnswer, Right, User};
use crate::error::{Failure, ReadError};
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
/// Largest number of answers of each kind that are remembered.
const MOST_ANSWERS: usize = 4096;
/// Largest number of questions to the authority at once.
const QUESTIONS: usize = 32;
/// Longest token that is looked at, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

pub(crate) struct Gate {
    authority: Arc<dyn Authority>,
    users: Cache<TokenDigest, Option<Arc<User>>>,
    rights: Cache<(Arc<User>, Right), bool>,
    questions: Semaphore,
    shares: Arc<Shares>,
}

impl Gate {
    pub(crate) fn new(authority: Arc<dyn Authority>, share: Share) -> Self {
        Self {
            authority,
            users: Cache::new(TRUST, MOST_ANSWERS),
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
            (Some(token), _) => self.user_of(token).await?,
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

    async fn user_of(&self, token: &str) -> Result<Option<Arc<User>>, Failure> {
        if token.len() > LONGEST_TOKEN {
            return Ok(None);
        }
        let digest = TokenDigest::of(token);
        if let Some(known) = self.users.get(&digest) {
            return Ok(known);
        }
        let _turn = self.turn()?;
        let user = self.authority.user_of(token.to_owned()).await.map_err(|e| no_answer(&e))?;
        let user = user.map(Arc::new);
        self.users.put(digest, user.clone());
        Ok(user)
    }

    async fn grants(&self, user: &Arc<User>, right: &Right) -> Result<bool, Failure> {
        let question = (Arc::clone(user), right.clone());
        if let Some(known) = self.rights.get(&question) {
            return Ok(known);
        }
        let _turn = self.turn()?;
        let granted = self.authority.grants(Arc::clone(user), right.clone()).await;
        let granted = granted.map_err(|e| no_answer(&e))?;
        self.rights.put(question, granted);
        Ok(granted)
    }

    fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Failure> {
        self.questions.try_acquire().map_err(|_| {
            let message = "too many requests wait for the API server to say who their users are";
            ReadError::TooMany("TooManyRequests", message.to_owned()).into()
        })
    }
}

/// Returns the namespaces that a request names, in order. Fails when there are too many.
fn named(params: &Params, headers: &HeaderMap) -> Result<BTreeSet<String>, Failure> {
    let given = headers.get_all(&NAMESPACES).iter().filter_map(|value| value.to_str().ok());
    let texts = params.text(NAMESPACE).into_iter().chain(given);
    let words = texts.flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty());
    let namespaces: BTreeSet<String> = words.map(str::to_owned).collect();
    if namespaces.len() > MOST_NAMESPACES {
        let message =
            format!("{} namespaces are too many at once; at most {MOST_NAMESPACES}", namespaces.len());
        return Err(ReadError::BadRequest("TooManyNamespaces", message).into());
    }
    Ok(namespaces)
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
