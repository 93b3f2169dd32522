//! Turns facts into spans.
//!
//! All spans of a pod form one trace. The trace id is derived from the pod's uid, and the span id of an attempt from
//! the number of its cycle, so a Binding finds its parent without any stored state.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use pellucid_model::effect::{BindOrder, BindOutcome};
use pellucid_model::{GangKey, Name, Pod, PodKey};
use pellucid_recording::Outcome;

use super::{Fact, FactKind};
use crate::clock;

/// The parts of a span that depend on its kind.
struct Parts {
    name: Cow<'static, str>,
    kind: SpanKind,
    trace: TraceId,
    id: SpanId,
    parent: SpanId,
    attributes: Vec<KeyValue>,
    status: Status,
}

/// Turns a fact into a span.
pub(super) fn span(fact: Fact) -> SpanData {
    let Fact { began, took, kind } = fact;
    let parts = match kind {
        FactKind::Attempt { pod, gang, cycle, attempts, waited, outcome, node } => {
            attempt(&pod, gang.as_ref(), (cycle, attempts), waited, &outcome, node.as_ref())
        }
        FactKind::Binding { order, outcome } => binding(&order, outcome),
        FactKind::Request { method, template, status } => request(method, &template, status, began),
    };
    let start_time = clock::instant(began);
    SpanData {
        span_context: SpanContext::new(
            parts.trace,
            parts.id,
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        ),
        parent_span_id: parts.parent,
        parent_span_is_remote: false,
        span_kind: parts.kind,
        name: parts.name,
        start_time,
        end_time: start_time + took,
        attributes: parts.attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: parts.status,
        instrumentation_scope: InstrumentationScope::builder("pellucid").build(),
    }
}

/// Hashes the same way in every process.
fn hash(parts: &[&str], number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    number.hash(&mut hasher);
    // 0 is not a valid id.
    hasher.finish().max(1)
}

fn trace_of(parts: &[&str]) -> TraceId {
    TraceId::from((u128::from(hash(parts, 0)) << 64) | u128::from(hash(parts, 1)))
}

fn attempt_id(uid: &str, cycle: u64) -> SpanId {
    SpanId::from(hash(&["attempt", uid], cycle))
}

fn of_pod(key: &PodKey, uid: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("k8s.namespace.name", key.namespace.to_string()),
        KeyValue::new("k8s.pod.name", key.name.to_string()),
        KeyValue::new("k8s.pod.uid", uid.to_owned()),
    ]
}

fn attempt(
    pod: &Pod,
    gang: Option<&GangKey>,
    (cycle, attempts): (u64, u32),
    waited: Duration,
    outcome: &Outcome,
    node: Option<&Name>,
) -> Parts {
    let mut attributes = of_pod(&pod.key, &pod.uid);
    attributes.push(KeyValue::new("pellucid.cycle", cycle as i64));
    attributes.push(KeyValue::new("pellucid.attempts", i64::from(attempts)));
    attributes.push(KeyValue::new("pellucid.waited_seconds", waited.as_secs_f64()));
    attributes.extend(gang.map(|gang| KeyValue::new("pellucid.gang", gang.to_string())));
    let word = match outcome {
        Outcome::Placed(placement) => {
            attributes.extend(node.map(|node| KeyValue::new("k8s.node.name", node.to_string())));
            attributes.push(KeyValue::new("pellucid.feasible_nodes", i64::from(placement.feasible)));
            attributes.extend(placement.score.map(|score| KeyValue::new("pellucid.score", score)));
            "placed"
        }
        Outcome::Refused(refusal) | Outcome::Gated(refusal) => {
            attributes.push(KeyValue::new("pellucid.message", refusal.message().to_string()));
            if matches!(outcome, Outcome::Gated(_)) { "gated" } else { "refused" }
        }
    };
    attributes.push(KeyValue::new("pellucid.outcome", word));
    Parts {
        name: "schedule".into(),
        kind: SpanKind::Internal,
        trace: trace_of(&["pod", &pod.uid]),
        id: attempt_id(&pod.uid, cycle),
        parent: SpanId::INVALID,
        attributes,
        // A pod without a node is no failure of the scheduler.
        status: Status::Unset,
    }
}

fn binding(order: &BindOrder, outcome: BindOutcome) -> Parts {
    let uid = &order.pod.uid;
    let mut attributes = of_pod(&order.pod.key, uid);
    attributes.push(KeyValue::new("k8s.node.name", order.node.to_string()));
    let (word, status) = match outcome {
        BindOutcome::Bound => ("bound", Status::Ok),
        BindOutcome::BoundElsewhere { node } => {
            ("bound elsewhere", Status::error(format!("somebody else bound it to {node}")))
        }
        BindOutcome::Gone => ("gone", Status::Unset),
        BindOutcome::Refused { status, reason, message } => {
            ("refused", Status::error(format!("{status} {reason}: {message}")))
        }
    };
    attributes.push(KeyValue::new("pellucid.outcome", word));
    Parts {
        name: "bind".into(),
        kind: SpanKind::Client,
        trace: trace_of(&["pod", uid]),
        id: SpanId::from(hash(&["bind", uid], order.id.0)),
        parent: attempt_id(uid, order.attempt),
        attributes,
        status,
    }
}

/// Returns the span of a request, which is a trace of its own. Requests that are equal down to the nanosecond share an
/// id.
fn request(method: &'static str, template: &str, status: u16, began: Duration) -> Parts {
    let parts = ["request", method, template];
    let began = u64::try_from(began.as_nanos()).unwrap_or(u64::MAX);
    let id = hash(&parts, began);
    let name = if template.is_empty() { method.into() } else { format!("{method} {template}").into() };
    Parts {
        name,
        kind: SpanKind::Server,
        trace: TraceId::from((u128::from(id) << 64) | u128::from(began)),
        id: SpanId::from(id),
        parent: SpanId::INVALID,
        attributes: vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", template.to_owned()),
            KeyValue::new("http.response.status_code", i64::from(status)),
        ],
        status: if status >= 500 { Status::error("") } else { Status::Unset },
    }
}
