//! Starts the watches and the HTTPS server, and routes reviews to their rules.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pellucid_api::rest::BodySchema;
use pellucid_cluster::input::Input;
use pellucid_elastic_quota::ELASTIC_QUOTA;
use pellucid_elastic_quota::rules::Gates;
use pellucid_http::{
    HealthCheck, Kind as ParamKind, Limits, Names, Observation, Param, Params, Parts, ReadError, Renderer,
    RequestInfo, Route, Server, Tls, Version,
};
use pellucid_kubernetes::decode::Decoder;
use pellucid_kubernetes::kinds::Kind;
use pellucid_kubernetes::watches::lister::Lister;
use pellucid_kubernetes::{Clock, Connection, Observer, WatchLimits};
use pellucid_model::{CustomKindRef, Viewer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cache::{Cache, Objects, Quotas, listed};
use crate::kept::{OfPod, OfQuota};
use crate::review::{self, Review};
use crate::{MUTATE_QUOTA, VALIDATE_POD, VALIDATE_QUOTA, pods, quotas};

/// Most inputs between the watches and the cache.
const INPUTS: usize = 4096;
/// Most bytes of a review: two objects of an API server's greatest size, and the rest.
const REVIEW: usize = 4 << 20;
/// Most bytes of all reviews that arrive or are answered. Nobody is asked who he is, so this holds for strangers too.
const REVIEWS: usize = 32 << 20;
/// Longest wait for a fresh list of quotas before a refusal. Below the 10 s that an API server waits.
const FRESH: Duration = Duration::from_secs(3);

/// Returns the kinds that the webhook watches.
pub fn watched() -> [Kind; 2] {
    [Kind::Pod, Kind::Custom(CustomKindRef(&ELASTIC_QUOTA))]
}

/// Configuration for [`Webhook::start`].
pub struct WebhookConfig {
    /// Clients of the API server.
    pub connection: Connection,
    /// Address to listen on; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Certificate of the server.
    pub tls: Tls,
    /// Settings of the rules.
    pub gates: Gates,
    /// The current time.
    pub clock: Clock,
    /// Body of `/version`.
    pub version: Version,
}

/// A running webhook.
pub struct Webhook {
    /// The bound address.
    pub address: SocketAddr,
    observer: Observer,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Webhook {
    /// Starts watches and server on the current runtime. Fails when the address cannot be listened on. Until the watches
    /// have listed quotas and pods, `/readyz` and all reviews say so.
    pub fn start(
        config: WebhookConfig,
    ) -> BoxFuture<'static, Result<Self, Box<dyn std::error::Error + Send + Sync>>> {
        Box::pin(Self::start_inner(config))
    }

    async fn start_inner(config: WebhookConfig) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let (inputs, received) = mpsc::channel(INPUTS);
        let observer = Observer::start(
            &config.connection,
            config.clock.clone(),
            WatchLimits::default(),
            (Decoder::default(), &watched()),
            &inputs,
        );
        let cache = Arc::new(Cache::default());
        let (filled, is_filled) = watch::channel(0);
        let stop = CancellationToken::new();
        let filling = tokio::spawn(fill(cache.clone(), received, filled));
        let reviewer = Arc::new(Reviewer {
            lister: observer.lister.clone(),
            runtime: tokio::runtime::Handle::current(),
            gates: config.gates,
            filled: is_filled,
        });
        let server = Server::new(parts(&reviewer, cache, config.clock, config.version))?;
        let bound = server.bind_tls_for_all(config.listen, config.tls).await?;
        let address = bound.address();
        let serving = tokio::spawn(bound.serve(stop.clone()));
        Ok(Self { address, observer, stop, tasks: vec![serving, filling] })
    }

    /// Waits until a part ends, which none does by itself. Returns which, or why it failed.
    pub async fn ended(&mut self) -> String {
        self.observer.ended().await
    }

    /// Stops the server, which finishes the reviews in flight, and the watches.
    pub async fn stop(mut self) {
        self.stop.cancel();
        drop(self.observer);
        for task in self.tasks.drain(..) {
            // A panic has been logged already.
            let _ = task.await;
        }
    }
}

/// Takes over what the watches say until they end. `filled` counts the kinds that were listed.
async fn fill(cache: Arc<Cache>, mut inputs: mpsc::Receiver<Input>, filled: watch::Sender<u64>) {
    let (mut has_pods, mut has_quotas) = (false, false);
    while let Some(input) = inputs.recv().await {
        has_pods |= matches!(input, Input::PodsReset { .. });
        has_quotas |= matches!(input, Input::CustomReset { .. });
        cache.apply(input);
        filled.send_replace(u64::from(has_pods) + u64::from(has_quotas));
    }
}

struct Reviewer {
    lister: Lister,
    runtime: tokio::runtime::Handle,
    gates: Gates,
    /// Number of kinds that were listed.
    filled: watch::Receiver<u64>,
}

impl Reviewer {
    fn check_filled(&self) -> Result<(), String> {
        match *self.filled.borrow() {
            2.. => Ok(()),
            _ => Err("ElasticQuotas and pods have not been listed yet".to_owned()),
        }
    }

    fn read<'a>(&self, body: &'a Value, plural: &str) -> Result<Review<'a>, ReadError> {
        self.check_filled().map_err(|why| ReadError::Unavailable("NotReady", why))?;
        let review = review::read(body)?;
        if review.resource != plural {
            let why = format!("{:?} are not reviewed at this path, only {plural:?}", review.resource);
            return Err(ReadError::BadRequest("WrongResource", why));
        }
        Ok(review)
    }

    /// Judges from the cache. Before a refusal, judges again with the quotas that the API server has now, because the
    /// watch may not have brought a parent that was created a moment ago. Without an answer the first judgement stands.
    fn judge(
        &self,
        review: &Review<'_>,
        cache: &Cache,
        rules: impl Fn(&Objects, &Quotas) -> Vec<String>,
    ) -> Value {
        let problems = cache.read(|objects| rules(objects, &objects.quotas));
        if problems.is_empty() {
            return review.allow(&[]);
        }
        let quotas = self.fresh();
        let again = quotas.map(|quotas| cache.read(|objects| rules(objects, &quotas)));
        review.judge(&again.unwrap_or(problems))
    }

    fn fresh(&self) -> Option<Quotas> {
        let list = self.lister.list(Kind::Custom(CustomKindRef(&ELASTIC_QUOTA)));
        let listed_now = self.runtime.block_on(async { tokio::time::timeout(FRESH, list).await });
        match listed_now {
            Ok(Ok(list)) => list.as_ref().and_then(|list| listed(&list.list)),
            Ok(Err(problem)) => {
                tracing::warn!(problem, "quotas not listed anew before a refusal");
                None
            }
            Err(_) => {
                tracing::warn!("quotas not listed anew in time before a refusal");
                None
            }
        }
    }

    fn mutate_quota(&self, cache: &Cache, body: &Value) -> Result<Value, ReadError> {
        let review = self.read(body, "elasticquotas")?;
        Ok(match review.operation {
            "DELETE" => review.allow(&[]),
            _ => {
                let is_known = cache.read(|objects| quotas::has_parent(&review, &objects.quotas));
                let fresh = if is_known { None } else { self.fresh() };
                cache.read(|objects| {
                    quotas::mutate(&review, fresh.as_ref().unwrap_or(&objects.quotas), self.gates)
                })
            }
        })
    }

    fn validate_quota(&self, cache: &Cache, body: &Value) -> Result<Value, ReadError> {
        let review = self.read(body, "elasticquotas")?;
        let rules = |objects: &Objects, known: &Quotas| quotas::validate(&review, objects, known, self.gates);
        Ok(self.judge(&review, cache, rules))
    }

    fn validate_pod(&self, cache: &Cache, body: &Value) -> Result<Value, ReadError> {
        let review = self.read(body, "pods")?;
        Ok(self.judge(&review, cache, |_, known| pods::validate(&review, known, self.gates)))
    }
}

/// One way to answer a review.
type Answer = fn(&Reviewer, &Cache, &Value) -> Result<Value, ReadError>;
/// Reads what a way to answer looks at.
type Kept = fn(&Params) -> Result<Value, ReadError>;

fn of_quota(params: &Params) -> Result<Value, ReadError> {
    params.body().map(|OfQuota(value)| value)
}

fn of_pod(params: &Params) -> Result<Value, ReadError> {
    params.body().map(|OfPod(value)| value)
}

fn parts(reviewer: &Arc<Reviewer>, cache: Arc<Cache>, now: Clock, version: Version) -> Parts<Cache> {
    let paths: [(&str, &str, Kept, Answer); 3] = [
        (MUTATE_QUOTA, "Fill in what an ElasticQuota lacks", of_quota, Reviewer::mutate_quota),
        (VALIDATE_QUOTA, "Judge an ElasticQuota", of_quota, Reviewer::validate_quota),
        (VALIDATE_POD, "Judge the quota labels of a pod", of_pod, Reviewer::validate_pod),
    ];
    let route = |(path, summary, kept, answer): (&str, &str, Kept, Answer)| {
        let reviewer = reviewer.clone();
        let read =
            move |cache: &Cache, params: &Params, _: &RequestInfo| answer(&reviewer, cache, &kept(params)?);
        Route::get(path, "webhooks", summary, BodySchema::any(), read)
            .asked_with(BodySchema::any())
            .param(Param::query("timeout", ParamKind::String, "How long the API server waits; not used."))
    };
    let ready = reviewer.clone();
    Parts {
        routes: paths.map(route).into(),
        load: Arc::new(move || cache.clone()),
        published: watch::channel(0).1,
        switches: Vec::new(),
        health: vec![
            HealthCheck::live("ping", || Ok(())),
            HealthCheck::ready("caches", move || ready.check_filled()),
        ],
        metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        resource_metrics: Renderer::openmetrics(|| "# EOF\n".to_owned()),
        configz: Arc::new(|| json!({})),
        version,
        now,
        observe: Arc::new(|_: Observation<'_>| {}),
        limits: Limits { reads: 4, question_body: REVIEW, question_bytes: REVIEWS, ..Limits::default() },
        authority: None,
        redact: Arc::new(|_: &Cache, _: &Viewer| -> Arc<dyn Names> { Arc::new(Everything) }),
    }
}

/// Whoever reaches the server sees all names: a refusal is for the API server, which passes it on.
struct Everything;

impl Names for Everything {
    fn without(&self, _: &str) -> Option<String> {
        None
    }
}
