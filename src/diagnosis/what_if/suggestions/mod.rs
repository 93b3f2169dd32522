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
use pellucid_cycle::what_if::edit::Target;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Now};

use crate::meta::of_snapshot;
use crate::what_if::requirements::asked_by_name;
use parts::Part;

/// Suggests changes for a pod. Fails when the pod is unknown or not ours to place.
pub(crate) fn of_pod(
    snapshot: &Snapshot,
    (namespace, name): (&str, &str),
    most: usize,
    now: Now,
) -> Result<Suggestions, ReadError> {
    let asked = asked_by_name(snapshot, namespace, name)?;
    let record = asked.record;
    let mut body = Suggestions {
        meta: of_snapshot(snapshot, now),
        namespace: namespace.into(),
        name: name.into(),
        fits_now: record.node.is_some(),
        ..Suggestions::default()
    };
    if body.fits_now {
        return Ok(body);
    }
    let (conflicts, is_cut) = conflicts::conflicts(&asked.masks, asked.cluster.present());
    body.conflicts = conflicts;
    let found = search::fixes(snapshot, &asked, most, now);
    body.meta.truncated = asked.masks.truncated || is_cut || found.truncated;
    body.fits_now = found.fits_now;
    body.fixes = found.fixes.into_iter().map(|fix| fix_body(fix.parts, fix.node, None)).collect();
    if body.fixes.is_empty() && !body.fits_now && most > 0 {
        body.note = Some(match &asked.masks.pod {
            _ if record.pod.member_of().is_some() => {
                let gang = record.pod.member_of().map(ToString::to_string).unwrap_or_default();
                format!("It is placed with its gang; see /apis/v1/explain/gangs/{gang}/suggestions.")
            }
            Some(cause) => {
                let remedy = cause.reasons.first().map_or("", |r| r.code.entry().remedy);
                format!("No change that can be tried out here helps: {}. {remedy}", cause.message())
            }
            None => "No change that can be tried out here helps; see the reasons' remedies.".into(),
        });
    }
    Ok(body)
}

/// Suggests changes for a gang. Fails when the gang is unknown.
pub(crate) fn of_gang(
    snapshot: &Snapshot,
    (namespace, name): (&str, &str),
    most: usize,
    now: Now,
) -> Result<Suggestions, ReadError> {
    let key = GangKey::new(namespace, name);
    let gang = snapshot.cluster.gangs().get(&key).ok_or_else(|| ReadError::NotFound {
        code: "GangNotFound",
        message: format!("cannot find gang {key}"),
    })?;
    let mut body = Suggestions {
        meta: of_snapshot(snapshot, now),
        namespace: namespace.into(),
        name: name.into(),
        fits_now: gang.is_satisfied(),
        slots_missing: Some(gang.need()),
        ..Suggestions::default()
    };
    if body.fits_now {
        return Ok(body);
    }
    let found = gangs::fixes(snapshot, &key, most, now);
    body.conflicts = found.conflicts;
    body.meta.truncated = found.truncated;
    body.fits_now = found.fits_now;
    body.fixes = found.fixes.into_iter().map(|fix| fix_body(fix.parts, fix.node, fix.slots)).collect();
    body.note = found.note;
    Ok(body)
}

fn fix_body(mut parts: Vec<Part>, node: Option<String>, slots: Option<u32>) -> Fix {
    parts.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| a.text.cmp(&b.text)));
    let times = |alike: &[Part]| match alike {
        [one] => one.text.clone(),
        all => format!("{} ({} times)", all[0].text, all.len()),
    };
    let texts: Vec<String> = parts.chunk_by(|a, b| a.text == b.text).map(times).collect();
    let text = texts.join(", and ");
    let edits: Vec<EditBody> = parts.iter().map(|part| part.body.clone()).collect();
    let cost = parts.iter().map(|part| part.cost).sum();
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

/// Returns the target as the `pod` and `gang` fields of an edit's body.
fn names_of(of: &Target) -> (Option<String>, Option<String>) {
    match of {
        Target::Pod(key) => (Some(key.to_string()), None),
        Target::Gang(key) => (None, Some(key.to_string())),
    }
}
