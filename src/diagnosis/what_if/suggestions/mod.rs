//! Suggests changes that make a pending pod fit or give a gang its quorum. Every suggestion was simulated.
//!
//! For one pod, candidates relax the smallest sets of requirements that nodes fail (`search`). A candidate consists
//! of `parts`, is planned on a copy of the state, and loses every part that it does not need. `estimates` says in which
//! order nodes are tried, `labels` and `victims` make parts,
//! `advised` those that plugins propose; `commands` and `owners` say how they are done, `company` tries a fix with the other pending pods.
//! `conflicts` finds requirements that no node satisfies together. `gangs` searches for changes that place a quorum: `gang_nodes` for those of
//! nodes, `gang_terms` for those of what gangs declare, and `gang_advice` for those that plugins propose member by member. A reason
//! without a part, such as a missing volume or claim, has only the remedy in its text.

mod advised;
mod commands;
mod company;
mod conflicts;
mod estimates;
mod gang_advice;
mod gang_nodes;
mod gang_parts;
mod gang_terms;
mod gangs;
mod labels;
mod owners;
mod parts;
mod search;
mod victims;

use pellucid_api::rest::simulate::EditBody;
use pellucid_api::rest::suggestions::{Fix, FixPart, Suggestions};

use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Target;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::sentence::ended;
use pellucid_model::{GangKey, Now, PodKey};

use crate::gangs::outlook::{self, GangOutlook};
use crate::gangs::{member, not_found};
use crate::meta::of_snapshot;
use crate::requirements::asked_by_name;
use company::{Company, InCompany};
use gangs::Planned;
use parts::{Part, cost, put_in_order};
use search::{Candidate, Found, rank};

/// Suggests changes for a pod. Fails when the pod is unknown or not ours to place.
pub(crate) fn of_pod(
    snapshot: &Snapshot,
    key: &PodKey,
    most: usize,
    now: Now,
) -> Result<Suggestions, ReadError> {
    let asked = asked_by_name(snapshot, key)?;
    // A member is placed with its gang or not at all, so what helps it is what gives it a place beside the quorum.
    if let Some(gang) = asked.record.pod.member_of()
        && let Some((own, look)) = member::outlook(snapshot, (asked.id, asked.record), now)
    {
        let of = Planned { key: gang, look: &look, member: Some((asked.id, &own)) };
        let found = gangs::fixes(snapshot, of, most, now);
        let found = judged(snapshot, found, (gang, Some(key)), now);
        return Ok(with_gang(snapshot, (&key.namespace, &key.name), gang, (found, &look), now));
    }
    let mut found = match asked.record.node {
        Some(_) => Found { fits_now: true, ..Found::default() },
        None => search::fixes(snapshot, &asked, most, now),
    };
    if found.fixes.is_empty() && !found.fits_now && most > 0 {
        found.note = Some(match &asked.masks.pod {
            Some(cause) => {
                let remedy = cause.reasons.first().map_or("", |r| r.code.entry().remedy);
                format!("No change that can be tried out here helps: {} {remedy}", ended(cause.message()))
            }
            None => "No change that can be tried out here helps; see the reasons' remedies.".into(),
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
    snapshot.cluster.gangs().get(key).ok_or_else(|| not_found(key))?;
    let names = (&key.namespace, &*key.name);
    let Some(look) = outlook::as_it_stands(snapshot, key, now) else {
        let found = Found { fits_now: true, ..Found::default() };
        return Ok(Suggestions {
            gang: Some(key.to_string()),
            ..body(snapshot, (names.0, names.1), found, now)
        });
    };
    let found = gangs::fixes(snapshot, Planned { key, look: &look, member: None }, most, now);
    let found = judged(snapshot, found, (key, None), now);
    Ok(with_gang(snapshot, (names.0, names.1), key, (found, &look), now))
}

/// Tries the fixes of a gang, or of one of its members, in company.
fn judged(snapshot: &Snapshot, mut found: Found, of: (&GangKey, Option<&PodKey>), now: Now) -> Found {
    let (target, member) = (Target::Gang(of.0.clone()), of.1);
    let mut company = Company::new(snapshot, &target, now).with_member(member);
    for fix in &mut found.fixes {
        fix.company = Some(company.judge(&fix.parts, None));
    }
    found.truncated |= company.is_cut;
    found
}

/// Returns the body about a gang or one of its members.
fn with_gang(
    snapshot: &Snapshot,
    names: (&str, &str),
    gang: &GangKey,
    (found, look): (Found, &GangOutlook),
    now: Now,
) -> Suggestions {
    let mut body = body(snapshot, names, found, now);
    for fix in &mut body.fixes {
        fix.gang = gang_parts::effect(snapshot, gang, fix);
    }
    Suggestions { slots_missing: look.slots_missing(), gang: Some(gang.to_string()), ..body }
}

fn body(snapshot: &Snapshot, (namespace, name): (&str, &str), mut found: Found, now: Now) -> Suggestions {
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = found.truncated;
    found.fixes.sort_by_cached_key(|fix| {
        let (cost, edits) = rank(&fix.parts);
        (cost, !fix.company.as_ref().is_some_and(InCompany::holds), edits)
    });
    Suggestions {
        meta,
        namespace: namespace.into(),
        name: name.into(),
        fits_now: found.fits_now,
        conflicts: found.conflicts,
        fixes: found.fixes.into_iter().map(|fix| fix_body(snapshot, fix)).collect(),
        note: found.note,
        slots_missing: None,
        gang: None,
        not_pending: None,
    }
}

fn fix_body(snapshot: &Snapshot, fix: Candidate) -> Fix {
    let Candidate { mut parts, node, slots, company, widened } = fix;
    put_in_order(&mut parts);
    commands::add(snapshot, &mut parts);
    let times = |alike: &[Part]| match alike {
        [one] => one.text.clone(),
        all => format!("{} ({} times)", all[0].text, all.len()),
    };
    let texts: Vec<String> = parts.chunk_by(|a, b| a.text == b.text).map(times).collect();
    let text = texts.join(", and ");
    let edits: Vec<EditBody> = parts.iter().map(|part| part.body.clone()).collect();
    let cost = cost(&parts);
    let owner = parts.iter().find_map(|part| part.owner.clone());
    let in_company = company.as_ref().map(|company| company.as_str().to_owned());
    let node_in_company = match &company {
        Some(InCompany::Holds(node)) => node.as_ref().map(ToString::to_string),
        _ => None,
    };
    let taken_by = match company {
        Some(InCompany::Taken(pods)) => pods.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let parts = parts.into_iter().map(|part| FixPart {
        text: part.text,
        edit: part.body,
        command: part.command,
        recreate: part.recreate,
        resolver: part.resolver.as_str().into(),
        owner: part.owner,
        cost: part.cost,
    });
    Fix {
        text,
        cost,
        verified: true,
        node,
        slots,
        in_company,
        node_in_company,
        taken_by,
        widened,
        gang: None,
        owner,
        parts: parts.collect(),
        edits,
    }
}
