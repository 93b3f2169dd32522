//! Admission webhooks: asks the registered webhooks about a write, as an API server does.
//!
//! Mutating webhooks come first, one after another in the order of their configurations' names, and once more those
//! that want it when a later one changed the object. Validating webhooks follow, all at once, on the final object. What
//! is asked about: creates, updates and deletes over HTTP with their subresources, and what the workload controllers
//! create and delete. Statuses that controllers and the kubelet write, and seeds ([`crate::Handle`]), are not.
//!
//! - `configured`: webhooks as the configurations state them; `matching`: whether one is asked about a request.
//! - `review`: the AdmissionReview that is sent, and what an answer means.
//! - `client`: the HTTPS calls; `address`: where a webhook listens.
//!
//! Operations run without awaiting, so a call blocks its thread: [`Api::run`] moves operations to a thread that may block
//! while any webhook is registered.

mod address;
mod client;
mod configured;
mod matching;
mod review;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::clock::Clock;
use crate::errors::{ApiError, ApiResult};
use crate::kinds::events;
use crate::kinds::meta::Identities;
use crate::kinds::registry::{Form, Kind};
use crate::kinds::webhooks::{MUTATING, VALIDATING};
use crate::options::{Options, Requester};
use crate::requests::patch::{self, PatchKind};
use crate::store::Key;
use crate::webhooks::client::Clients;
use crate::webhooks::configured::Webhook;
use crate::webhooks::review::Verdict;

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write that webhooks are asked about.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub kind: &'a Kind,
    /// The subresource, empty for the object itself.
    pub subresource: &'a str,
    pub operation: Operation,
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name, empty while the API server has not generated it.
    pub name: &'a str,
    pub dry_run: bool,
    pub requester: &'a Requester,
}

/// What calls of webhooks need.
pub(super) struct Webhooks {
    runtime: runtime::Handle,
    clock: Clock,
    clients: Clients,
    /// The source of uids of reviews, apart from those of objects.
    uids: Identities,
    shutdown: CancellationToken,
}

impl Webhooks {
    /// Returns the caller of webhooks on the current tokio runtime.
    pub(super) fn new(clock: Clock, seed: u64, shutdown: CancellationToken) -> Self {
        let (clients, uids) = (Clients::default(), Identities::new(!seed));
        Self { runtime: runtime::Handle::current(), clock, clients, uids, shutdown }
    }

    /// Runs a future to its end from any thread.
    fn block_on<F: Future + Send>(&self, future: F) -> F::Output
    where
        F::Output: Send,
    {
        // A thread of its own, because a runtime's thread must not enter a runtime again.
        std::thread::scope(|scope| {
            let call = scope.spawn(|| self.runtime.block_on(future));
            call.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Api {
    /// Returns whether any webhook is registered.
    fn has_webhooks(&self) -> bool {
        [MUTATING, VALIDATING].iter().any(|table| self.store.len(table) > 0)
    }

    /// Returns who asks for a write, if there are webhooks to be asked about it.
    pub(super) fn reviewed<'a>(&self, options: &'a Options) -> Option<&'a Requester> {
        options.requester.as_ref().filter(|_| self.has_webhooks())
    }

    /// Runs operations: on a thread that may block if any webhook is registered, otherwise here.
    pub(super) async fn run<T: Send + 'static>(&self, operations: impl FnOnce() -> T + Send + 'static) -> T {
        if !self.has_webhooks() {
            return operations();
        }
        match tokio::task::spawn_blocking(operations).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and with it this task.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Asks all webhooks about the body of a subresource, such as a Binding or a Scale. Returns the body that they want.
    pub(super) fn admit_body(
        &self,
        kind: &Kind,
        key: &Key,
        options: &Options,
        body: Value,
        old: Option<&Value>,
    ) -> ApiResult<Value> {
        let Some(requester) = self.reviewed(options) else { return Ok(body) };
        let write = Write {
            kind,
            subresource: &options.subresource,
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            namespace: &key.0,
            name: &key.1,
            dry_run: options.dry_run,
            requester,
        };
        let body = self.mutate(&write, Some(&body), old)?.unwrap_or(body);
        self.validate(&write, Some(&body), old)?;
        Ok(body)
    }

    /// Asks the mutating webhooks. Returns the object that they want instead, or `None` if they changed nothing.
    pub(super) fn mutate(
        &self,
        write: &Write<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> ApiResult<Option<Value>> {
        let webhooks = configured::read(&self.store, MUTATING);
        if webhooks.is_empty() {
            return Ok(None);
        }
        let mut object = object.map(|object| shown(write.kind, object));
        let old = old.map(|old| shown(write.kind, old));
        let mut is_changed = false;
        // Positions of webhooks that were called and may be called again, and of those that must be.
        let (mut called, mut again) = (BTreeSet::new(), BTreeSet::new());
        for is_second in [false, true] {
            for (position, webhook) in webhooks.iter().enumerate() {
                if is_second && !again.remove(&position) {
                    continue;
                }
                let Some(kind) = self.asked_as(webhook, write, object.as_ref(), old.as_ref()) else {
                    continue;
                };
                let verdict = self.call(webhook, write, &kind, [object.as_ref(), old.as_ref()]);
                let Some(patch) = self.judge(webhook, write, self.webhooks.block_on(verdict))? else {
                    continue;
                };
                let patched = patched(webhook, write, object.as_ref(), &patch)?;
                if object.as_ref() != Some(&patched) {
                    is_changed = true;
                    if !is_second {
                        again.append(&mut called);
                    }
                }
                object = Some(patched);
                if !is_second && webhook.may_be_reinvoked {
                    called.insert(position);
                }
            }
        }
        Ok(object.filter(|_| is_changed))
    }

    /// Asks the validating webhooks.
    pub(super) fn validate(
        &self,
        write: &Write<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        let webhooks = configured::read(&self.store, VALIDATING);
        if webhooks.is_empty() {
            return Ok(());
        }
        let object = object.map(|object| shown(write.kind, object));
        let old = old.map(|old| shown(write.kind, old));
        let asked: Vec<(&Webhook, Arc<Kind>)> = webhooks
            .iter()
            .filter_map(|webhook| {
                Some((webhook, self.asked_as(webhook, write, object.as_ref(), old.as_ref())?))
            })
            .collect();
        let calls = asked
            .iter()
            .map(|(webhook, kind)| self.call(webhook, write, kind, [object.as_ref(), old.as_ref()]));
        let verdicts = self.webhooks.block_on(join_all(calls));
        for ((webhook, _), verdict) in asked.iter().zip(verdicts) {
            if self.judge(webhook, write, verdict)?.is_some() {
                let why = "webhook (validating) returned response.patch";
                return self.failed(webhook, &format!("received invalid webhook response: {why}"));
            }
        }
        Ok(())
    }

    /// Sends the review of a write to a webhook. Fails with what went wrong.
    async fn call(
        &self,
        webhook: &Webhook,
        write: &Write<'_>,
        kind: &Kind,
        [object, old]: [Option<&Value>; 2],
    ) -> Result<Verdict, String> {
        let uid = self.webhooks.uids.uid();
        let typed = |value: Option<&Value>| value.map(|value| review::typed(write, kind, value));
        let body = review::request(&uid, write, kind, [typed(object), typed(old)]);
        let called = async {
            let target = address::of(self, &webhook.client_config)?;
            let answer = self.webhooks.clients.post(&target, webhook.timeout, &body);
            let limit = crate::clock::later(self.webhooks.clock.now(), webhook.timeout);
            tokio::select! {
                answer = answer => answer,
                () = self.webhooks.clock.wait_until(limit) => {
                    Err(format!("Post {:?}: context deadline exceeded", target.url(webhook.timeout)))
                }
                () = self.webhooks.shutdown.cancelled() => Err("the sandbox stops".to_owned()),
            }
        };
        let answer = called.await.map_err(|why| format!("failed to call webhook: {why}"))?;
        review::verdict(&uid, &answer).map_err(|why| format!("received invalid webhook response: {why}"))
    }

    /// Passes warnings on and denials up. Returns the patch of a webhook that allows the write. A failed call allows it
    /// if the failure policy says so.
    fn judge(
        &self,
        webhook: &Webhook,
        write: &Write<'_>,
        verdict: Result<Verdict, String>,
    ) -> ApiResult<Option<Value>> {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(why) => return self.failed(webhook, &why).map(|()| None),
        };
        write.requester.warn(verdict.warnings);
        match verdict.denial {
            Some(status) => Err(ApiError::denied(&webhook.name, &status)),
            None => Ok(verdict.patch),
        }
    }

    /// Applies the failure policy of a webhook whose call failed.
    fn failed(&self, webhook: &Webhook, why: &str) -> ApiResult<()> {
        if webhook.ignores_failures {
            tracing::warn!(webhook = %webhook.name, why, "failed calling webhook, failing open");
            return Ok(());
        }
        Err(ApiError::failed_webhook(&webhook.name, why))
    }
}

/// Returns an object in the form in which its kind is served.
fn shown(kind: &Kind, object: &Value) -> Value {
    let mut shown = object.clone();
    if kind.form == Form::Event {
        events::show(&mut shown);
    }
    shown
}

/// Returns an object with a webhook's patch applied.
fn patched(webhook: &Webhook, write: &Write<'_>, object: Option<&Value>, patch: &Value) -> ApiResult<Value> {
    let Some(object) = object else {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(ApiError::internal_error(&format!("admission webhook \"{}\" {why}", webhook.name)));
    };
    let mut patched = patch::apply(PatchKind::Json, &review::typed(write, write.kind, object), patch, false)
        .map_err(|error| ApiError::internal_error(&error.message))?;
    if let Some(fields) = patched.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    if write.kind.subresource(write.subresource).is_none_or(|found| found.kind.is_empty()) {
        (write.kind.defaults)(&mut patched);
    }
    Ok(patched)
}
