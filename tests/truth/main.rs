//! Every claim is true when somebody tries it.
//!
//! Random clusters settle; then what any route says of them is tried on fresh copies: objects are changed by the test's
//! own code (`objects`, `edits`), and a scheduler is given them from scratch (`trial`), with an API server played by
//! hand. Nothing that makes claims is used to try them. Each kind of claim is a module of `claims` and a test here.
//! Clusters with Koordinator's plugins have quotas and queues, cards, CPUs and NUMA nodes, reports of usage and reservations,
//! some of which wait for a place themselves.
//! `causes` are compared with a model of the test's own (`model`), written from the documentation of Kubernetes.
//!
//! `PELLUCID_TRUTH_SEEDS=3000` tries more clusters, `PELLUCID_TRUTH_FROM=1000` later ones, `PELLUCID_TRUTH_PODS=50` more pods of each, `PELLUCID_TRUTH_SEED=17`
//! one cluster with its objects; `PELLUCID_TRUTH_REPORT=file` has the table written.

#[path = "../common/mod.rs"]
mod common;

mod case;
mod claims;
mod edits;
mod made;
mod model;
mod objects;
mod random;
mod report;
mod trial;
mod wire;

use std::sync::{Arc, OnceLock};

use case::Case;
use report::Tally;

/// Number of clusters when nobody says otherwise, and of those with Koordinator's plugins.
const SEEDS: usize = 300;
const KOORDINATOR_SEEDS: usize = 120;
/// Clusters that are kept between the kinds.
const KEPT: usize = 400;

static CASES: [OnceLock<Option<Arc<Case>>>; KEPT] = [const { OnceLock::new() }; KEPT];

/// Makes the case of a seed, if its cluster settles.
type Make = fn(usize) -> Option<Arc<Case>>;

fn number(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

fn case_of(seed: usize) -> Option<Arc<Case>> {
    let make = || Case::of(seed as u64).map(Arc::new);
    match CASES.get(seed) {
        Some(kept) => kept.get_or_init(make).clone(),
        None => make(),
    }
}

/// Tries one kind of claim on all clusters.
fn try_all(kind: &'static str, look: fn(&Case, usize, &mut Tally), pods: usize) {
    try_on(kind, (SEEDS, case_of), look, pods);
}

/// Tries claims on clusters, in two threads, and fails when one is not so.
#[expect(clippy::print_stdout, reason = "how much was tried, and one cluster's findings, are worth a look")]
fn try_on(
    kind: &'static str,
    (seeds, case_of): (usize, Make),
    look: fn(&Case, usize, &mut Tally),
    pods: usize,
) {
    let one = number("PELLUCID_TRUTH_SEED");
    let pods = number("PELLUCID_TRUTH_PODS").unwrap_or(if one.is_some() { 50 } else { pods });
    let from = number("PELLUCID_TRUTH_FROM").unwrap_or(0);
    let seeds: Vec<usize> = match one {
        Some(seed) => vec![seed],
        None => (from..from + number("PELLUCID_TRUTH_SEEDS").unwrap_or(seeds)).collect(),
    };
    let half = |part: usize| {
        let mut tally = Tally::default();
        for seed in seeds.iter().filter(|seed| **seed % 2 == part) {
            if let Some(case) = case_of(*seed) {
                look(&case, pods, &mut tally);
            }
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut tally = half(0);
        tally.merge(other.join().expect("the other half ended"));
        tally
    });
    report::publish(kind, &tally, seeds.len());
    let shown = tally.shown(kind, one.is_some());
    if tally.passes() {
        println!("{shown}");
    }
    assert!(one.is_some() || tally.tried >= seeds.len() / 4, "{kind}: only {} claims", tally.tried);
    assert!(tally.passes(), "{kind}: not all that is said is true\n{shown}");
}

#[test]
fn sums() {
    try_all("sums", claims::sums::look, 3);
}

#[test]
fn causes() {
    try_all("causes", claims::causes::look, 3);
}

#[test]
fn volumes() {
    try_all("volumes", claims::causes::look_at_volumes, 6);
}

#[test]
fn nearest() {
    try_all("nearest", claims::nearest::look, 2);
}

#[test]
fn would_free() {
    try_all("would_free", claims::nearest::look_at_would_free, 2);
}

#[test]
fn fixes() {
    try_all("fixes", claims::fixes::look, 1);
}

#[test]
fn outlook() {
    try_all("outlook", claims::outlook::look, 2);
}

#[test]
fn copies() {
    try_all("copies", claims::copies::look, 1);
}

#[test]
fn same_words() {
    try_all("same_words", claims::same_words::look, 3);
}

#[test]
fn simulations() {
    try_all("simulations", claims::simulations::look, 1);
}

#[test]
fn gangs() {
    try_all("gangs", claims::gangs::look, 1);
}

#[test]
fn preemption() {
    try_all("preemption", claims::preemption::look, 1);
}

#[test]
fn missed() {
    try_all("missed", claims::missed::look, 1);
}

/// What of Koordinator's plugins is claimed, beside all that the others claim.
#[test]
fn koordinator() {
    let case_of = |seed: usize| Case::of_koordinator(seed as u64).map(Arc::new);
    let look = |case: &Case, pods: usize, tally: &mut Tally| {
        claims::fixes::look(case, pods, tally);
        claims::missed::look(case, pods, tally);
        claims::outlook::look(case, pods, tally);
        claims::nearest::look(case, pods, tally);
        claims::nearest::look_at_would_free(case, pods, tally);
        claims::copies::look(case, pods, tally);
        claims::same_words::look(case, pods, tally);
        claims::simulations::look(case, pods, tally);
        claims::gangs::look(case, pods, tally);
        claims::preemption::look(case, pods, tally);
        claims::reservations::look(case, tally);
    };
    try_on("koordinator", (KOORDINATOR_SEEDS, case_of), look, 1);
}
