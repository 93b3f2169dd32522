//! Suggests changes that make a pending pod fit or give a gang its quorum. Every suggestion was simulated.
//!
//! For one pod, candidates relax the smallest sets of requirements that nodes fail (`search`). A candidate consists
//! of `parts`, is planned on a copy of the state, and loses every part that it does not need. `conflicts` finds
//! requirements that no node satisfies together, and `gangs` searches for changes that place a quorum. A reason
//! without a part, such as a missing volume or claim, has only the remedy in its text.

mod conflicts;
mod gangs;
mod parts;
mod search;

use pellucid_api::rest::simulate::EditBody;
use pellucid_api::rest::suggestions::{Fix, FixPart, Suggestions};

pub(super) use parts::{exact, victims_on};

use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Now, PodKey};

use crate::gangs::not_found;
use crate::meta::of_snapshot;
use crate::what_if::requirements::asked_by_name;
use parts::Part;
use search::{Candidate, Found, cost, rank};

/// Suggests changes for a pod. Fails when the pod is unknown or not ours to place.
pub(crate) fn of_pod(
    snapshot: &Snapshot,
    key: &PodKey,
    most: usize,
    now: Now,
) -> Result<Suggestions, ReadError> {
    let asked = asked_by_name(snapshot, key)?;
    let mut found = match asked.record.node {
        Some(_) => Found { fits_now: true, ..Found::default() },
        None => search::fixes(snapshot, &asked, most, now),
    };
    if found.fixes.is_empty() && !found.fits_now && most > 0 {
        found.note = Some(match (asked.record.pod.member_of(), &asked.masks.pod) {
            (Some(gang), _) => {
                format!("It is placed with its gang; see /apis/v1/explain/gangs/{gang}/suggestions.")
            }
            (None, Some(cause)) => {
                let remedy = cause.reasons.first().map_or("", |r| r.code.entry().remedy);
                format!("No change that can be tried out here helps: {}. {remedy}", cause.message())
            }
            (None, None) => "No change that can be tried out here helps; see the reasons' remedies.".into(),
        });
    }
    Ok(body(snapshot, (&key.namespace, &key.name), found, now))
}

/// Suggests changes for a gang. Fails when the gang is unknown.
pub(crate) fn of_gang(
    snapshot: &Snapshot,
    key: &GangKey,
    most: usize,
    now: Now,
) -> Result<Suggestions, ReadError> {
    let gang = snapshot.cluster.gangs().get(key).ok_or_else(|| not_found(key))?;
    let found = match gang.is_satisfied() {
        true => Found { fits_now: true, ..Found::default() },
        false => gangs::fixes(snapshot, key, most, now),
    };
    let body = body(snapshot, (&key.namespace, &key.name), found, now);
    Ok(Suggestions { slots_missing: Some(gang.need()), ..body })
}

fn body(snapshot: &Snapshot, (namespace, name): (&str, &str), mut found: Found, now: Now) -> Suggestions {
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = found.truncated;
    found.fixes.sort_by_cached_key(|fix| rank(&fix.parts));
    Suggestions {
        meta,
        namespace: namespace.into(),
        name: name.into(),
        fits_now: found.fits_now,
        conflicts: found.conflicts,
        fixes: found.fixes.into_iter().map(fix_body).collect(),
        note: found.note,
        slots_missing: None,
        not_pending: None,
    }
}

fn fix_body(Candidate { mut parts, node, slots }: Candidate) -> Fix {
    parts.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| a.text.cmp(&b.text)));
    let times = |alike: &[Part]| match alike {
        [one] => one.text.clone(),
        all => format!("{} ({} times)", all[0].text, all.len()),
    };
    let texts: Vec<String> = parts.chunk_by(|a, b| a.text == b.text).map(times).collect();
    let text = texts.join(", and ");
    let edits: Vec<EditBody> = parts.iter().map(|part| part.body.clone()).collect();
    let cost = cost(&parts);
    let parts = parts.into_iter().map(|part| FixPart {
        text: part.text,
        edit: part.body,
        command: part.command,
        recreate: part.recreate,
        resolver: part.resolver.as_str().into(),
        cost: part.cost,
    });
    Fix { text, cost, verified: true, node, slots, parts: parts.collect(), edits }
}
