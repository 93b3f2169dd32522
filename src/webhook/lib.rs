//! Admission webhooks: answers an API server that asks about ElasticQuotas and pods before it stores them.
//!
//! The rules are the plugin's (`pellucid_elastic_quota::rules`), the watches are `kubernetes`', the server is
//! `http`'s. Here: what is known (`cache`), and the conversation (`kept`, `review`, `quotas`, `pods`). *Invariant:* it writes
//! nothing, and decides nothing that the rules do not.
//!
//! A review is answered from what the watches have brought, which may be older than what the API server stores. So before
//! anything is refused, the quotas are listed anew and judged again; what is allowed from an older state is judged by the
//! scheduler as it stands, and shown as a problem of its quota.
//!
//! Start with [`Webhook::start`].

mod cache;
mod kept;
mod pods;
mod quotas;
mod review;
mod server;

pub use pellucid_elastic_quota::rules::Gates;
pub use server::{Webhook, WebhookConfig, watched};

/// Path of the mutating webhook of ElasticQuotas.
pub const MUTATE_QUOTA: &str = "/mutate-elasticquota";
/// Path of the validating webhook of ElasticQuotas.
pub const VALIDATE_QUOTA: &str = "/validate-elasticquota";
/// Path of the validating webhook of pods.
pub const VALIDATE_POD: &str = "/validate-pod";
