//! Reading reservations: the endpoints (those of a node in Koordinator's form, all, one, and the state in short), who could
//! use one, gauges, and what happens to one (`story`).

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid_api::rest::reservation::{
    AssignedReservationPod, NodeReservation, NodeReservations, PodReservations, ReservationDetail,
    ReservationList, ReservationRow, ReservationState, ReservedAmounts,
};
use pellucid_api::rest::{BodySchema, Meta};
use pellucid_framework::advice::PodRead;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::list::{Attribute, Facts};
use pellucid_framework::manifest::format_moment;
use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use serde_json::{Value, json};

use super::RESERVATION;
use super::entry::{Entry, Known, Owner};
use super::object::{Amounts, Phase, named};
use super::reservations::Reservations;
use pellucid_plugin_helper::listing::{MAX_ROWS, node_of};

/// What reservations are filtered and sorted by; their stage is the phase.
const OF_RESERVATIONS: &[Attribute] =
    &[Attribute::Name, Attribute::Stage, Attribute::Node, Attribute::Labels, Attribute::Age];

pub(super) mod candidates;
pub(super) mod gauges;
pub(super) mod story;

pub(super) const POD_READ: PodRead = PodRead {
    path: "reservations",
    summary: "The reservations that have a pending pod as an owner, and what keeps the pod from each",
    body: BodySchema::of::<PodReservations>(),
    rows: "/rows",
};

pub(super) fn all() -> Vec<Endpoint> {
    let state =
        "How many reservations there are, what they hold, and which cannot be placed as they are written";
    let one = "A reservation: what is left of it, who uses it, and why it is pending";
    vec![
        Endpoint::of::<ReservationState>("state", state, read_state),
        Endpoint::of::<NodeReservations>(
            "nodeReservations/:nodeName",
            "The available reservations of a node",
            read_node,
        )
        .with_rows("items"),
        Endpoint::of::<ReservationList>("reservations", "All reservations", read_all)
            .with_pages::<ReservationRow>("items", OF_RESERVATIONS),
        Endpoint::of::<ReservationDetail>("reservations/:name", one, read_one),
    ]
}

type Quantities = BTreeMap<String, String>;

fn quantities(amounts: &Amounts) -> Quantities {
    amounts.iter().map(|(name, amount)| (name.to_string(), format_amount(name, *amount))).collect()
}

/// Returns the amounts of resources that `of` gives for what a reservation holds.
fn amounts(entry: &Entry, of: impl Fn(&Name) -> i64) -> Amounts {
    entry.allocatable().keys().map(|name| (name.clone(), of(name))).collect()
}

fn pods(entry: &Entry) -> Vec<AssignedReservationPod> {
    let mut all: Vec<_> = entry.owners().collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let pod = |owner: &Owner| AssignedReservationPod {
        namespace: owner.key.namespace.to_string(),
        name: owner.key.name.to_string(),
        uid: owner.uid.to_string(),
        requests: quantities(&named(&owner.requests.list)),
    };
    all.into_iter().map(pod).collect()
}

fn reserved(amounts: &Amounts) -> ReservedAmounts {
    let get = |name: &str| amounts.get(&Name::new(name)).copied().unwrap_or(0);
    let fixed = ["cpu", "memory", "ephemeral-storage"];
    let others = amounts.iter().filter(|(name, _)| !fixed.contains(&name.as_str()));
    let others: BTreeMap<String, i64> = others.map(|(name, amount)| (name.to_string(), *amount)).collect();
    ReservedAmounts {
        milli_cpu: get("cpu"),
        memory: get("memory"),
        ephemeral_storage: get("ephemeral-storage"),
        allowed_pod_number: 0,
        scalar_resources: if others.is_empty() { Value::Null } else { json!(others) },
    }
}

fn item(name: &Name, entry: &Entry, known: &Known) -> NodeReservation {
    let spec = &known.spec;
    let mut allocated = amounts(entry, |name| entry.used(name));
    allocated.retain(|name, amount| *amount != 0 && spec.covers(entry.allocatable(), name));
    NodeReservation {
        name: name.to_string(),
        uid: known.uid.to_string(),
        kind: if known.is_pod { "Pod" } else { "Reservation" }.into(),
        available: entry.available().is_some(),
        allocate_once: spec.once,
        allocatable: quantities(entry.allocatable()),
        available_resource: reserved(&amounts(entry, |name| entry.usable(name))),
        allocated_resource: reserved(&allocated),
        allocated: quantities(&allocated),
        owners: spec.owners_as_written(),
        allocate_policy: spec.policy.as_str().into(),
        assigned_pods: pods(entry),
    }
}

fn read_node(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let node = cx.view.name(node_of(cx)?).clone();
    let Some(all) = cx.view.state::<Reservations>() else { return Ok(json!(NodeReservations::default())) };
    let known = all.on_node(&node).filter(|_| all.nodes.get(&node).is_some());
    let known = known.filter_map(|(name, entry)| Some((name, entry, entry.known.as_ref()?)));
    let items = known.filter(|(_, entry, _)| !entry.is_expired).take(MAX_ROWS);
    Ok(json!(NodeReservations {
        items: items.map(|(name, entry, known)| item(name, entry, known)).collect()
    }))
}

fn row(name: &Name, entry: &Entry, known: &Known) -> ReservationRow {
    let (spec, status) = (&known.spec, &known.spec.status);
    let is_open = status.phase == Phase::Available;
    let is_pending = matches!(status.phase, Phase::New | Phase::Pending);
    let message = known.problem.as_ref().or(entry.refused.as_ref()).filter(|_| is_pending);
    ReservationRow {
        name: name.to_string(),
        phase: status.phase.as_str().into(),
        node: status.node.as_ref().map(ToString::to_string),
        allocatable: quantities(entry.allocatable()),
        left: if is_open { quantities(&amounts(entry, |name| entry.left(name))) } else { Quantities::new() },
        owners: entry.owners().count(),
        expires: spec.expires.map(format_moment),
        message: message.map(ToString::to_string),
    }
}

fn read_all(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let Some(all) = cx.view.state::<Reservations>() else { return Ok(json!(ReservationList::default())) };
    let mut known: Vec<_> = all.iter().collect();
    known.sort_by_key(|(name, ..)| (*name).clone());
    let page = cx.list.page(known, |(name, _, known)| Facts {
        name,
        stage: known.spec.status.phase.as_str(),
        nodes: known.spec.status.node.iter().map(|node| &**node).collect(),
        labels: Some(&known.spec.labels),
        created: u64::try_from(known.spec.created).ok().map(Duration::from_secs),
        ..Facts::default()
    });
    let items = page.items.iter().map(|(name, entry, known)| row(name, entry, known)).collect();
    Ok(json!(ReservationList { items, meta: page.meta(Meta::default()), truncated: page.is_cut() }))
}

fn read_one(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let text = cx.params.get("name").map_or("", String::as_str);
    let name = Name::new(text);
    let all = cx.view.state::<Reservations>();
    let found = all.and_then(|all| all.get(&name)).and_then(|entry| Some((entry, entry.known.as_ref()?)));
    let Some((entry, known)) = found else {
        let message = format!("there is no reservation {text:?}");
        return Err(ReadError::NotFound { code: "ReservationNotFound", message });
    };
    let pod = entry.stand_in.as_ref().and_then(|pod| cx.view.cluster().pod(pod.id));
    let pending = pod.filter(|record| record.node.is_none());
    let (candidates, candidates_truncated) = candidates::of(cx.view, (&name, entry, known));
    let path = |key: &pellucid_model::PodKey| format!("/apis/v1/explain/pods/{}/{}", key.namespace, key.name);
    Ok(json!(ReservationDetail {
        row: row(&name, entry, known),
        uid: known.uid.to_string(),
        allocate_once: known.spec.once,
        allocate_policy: known.spec.policy.as_str().into(),
        owner_terms: known.spec.owners_as_written(),
        current_owners: pods(entry),
        candidates,
        candidates_truncated,
        explanation: pending.map(|record| path(&record.pod.key)),
        history: history(&name, known),
    }))
}

/// Returns where the history of a reservation is, or of the pod that it is.
fn history(name: &Name, known: &Known) -> String {
    match known.is_pod {
        true => format!("/apis/v1/history/pods/{name}"),
        false => format!("/apis/v1/history/objects/{}/{name}", RESERVATION.kind),
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut body = ReservationState::default();
    let Some(all) = cx.view.state::<Reservations>() else { return Ok(json!(body)) };
    let (mut holds, mut left) = (Amounts::new(), Amounts::new());
    let mut problems = BTreeMap::new();
    for (name, entry, known) in all.iter() {
        *body.phases.entry(known.spec.status.phase.as_str().into()).or_insert(0) += 1;
        body.owners += entry.owners().count();
        if let Some(problem) = &known.problem {
            problems.insert(name.to_string(), problem.to_string());
        }
        if known.spec.status.phase != Phase::Available {
            continue;
        }
        for (resource, amount) in entry.allocatable() {
            let free = entry.left(resource);
            for (sums, amount) in [(&mut holds, *amount), (&mut left, free)] {
                let sum = sums.entry(resource.clone()).or_insert(0);
                *sum = sum.saturating_add(amount);
            }
        }
    }
    (body.allocatable, body.left) = (quantities(&holds), quantities(&left));
    body.problems = problems.into_iter().take(MAX_ROWS).collect();
    Ok(json!(body))
}
