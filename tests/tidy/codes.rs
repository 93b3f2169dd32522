//! Every code that a body carries is registered once, with the status of the requests that are refused with it, so that
//! `GET /apis/v1/reasons` and docs/errors.md list it.

use std::collections::BTreeMap;

use pellucid_api::reason::{REGISTRY, STATES};

use super::source::{Source, sources};

/// Code that refuses a request, and its status. A code in a string follows within [`NEAR`] bytes.
const REFUSALS: &[(&str, u16)] = &[
    ("ReadError::NotFound", 404),
    ("ReadError::BadRequest", 400),
    ("ReadError::Unprocessable", 422),
    ("ReadError::TooMany", 429),
    ("ReadError::Unavailable", 503),
    (".not_found(", 404),
    ("bad(", 400),
    ("unavailable(", 503),
    ("StatusCode::BAD_REQUEST", 400),
    ("StatusCode::FORBIDDEN", 403),
    ("StatusCode::NOT_FOUND", 404),
    ("StatusCode::METHOD_NOT_ALLOWED", 405),
    ("StatusCode::PAYLOAD_TOO_LARGE", 413),
    ("StatusCode::UNSUPPORTED_MEDIA_TYPE", 415),
    ("StatusCode::TOO_MANY_REQUESTS", 429),
    ("StatusCode::INTERNAL_SERVER_ERROR", 500),
    ("StatusCode::SERVICE_UNAVAILABLE", 503),
];
/// How far behind such code the string with the code begins, at most.
const NEAR: usize = 40;
/// The one reason that also refuses requests.
const INTERNAL: (&str, u16) = ("InternalError", 500);
/// Rooms that answer requests.
const ANSWERING: [&str; 5] = ["http", "diagnosis", "app", "plugins", "framework"];

/// Returns every string literal that is a CamelCase word, with its position.
fn words(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |text: &str| {
        text.len() > 3
            && text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.contains(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_alphabetic())
    };
    let quotes = source.text.match_indices('"');
    quotes.filter_map(move |(at, _)| {
        let word = source.text[at + 1..].split('"').next()?;
        is_word(word).then_some((at, word))
    })
}

/// Returns the codes with which requests are refused, each with its statuses and where it stands.
fn refused() -> BTreeMap<String, BTreeMap<u16, String>> {
    let mut found: BTreeMap<String, BTreeMap<u16, String>> = BTreeMap::new();
    for source in sources(&["src"]) {
        if !source.room().is_some_and(|room| ANSWERING.contains(&room)) {
            continue;
        }
        for (at, code) in words(&source) {
            let line = source.text[..at].lines().count();
            let begin = (0..=at.saturating_sub(NEAR)).rev().find(|n| source.code.is_char_boundary(*n));
            // Comments and literals are blanked, so what is left between the two is punctuation.
            let before = source.code[begin.unwrap_or(0)..at].trim_end();
            let mut of = REFUSALS.iter().filter_map(|(mark, status)| {
                let behind = &before[before.rfind(mark)? + mark.len()..];
                let is_next = behind.chars().all(|c| c.is_whitespace() || "({:,".contains(c))
                    || behind.trim_start_matches([' ', '{', '\n']).trim() == "code:";
                is_next.then_some(*status)
            });
            if let Some(status) = of.next_back().filter(|_| !source.is_test[line - 1]) {
                let place = format!("{}:{line}", source.path);
                found.entry(code.to_owned()).or_default().entry(status).or_insert(place);
            }
        }
    }
    found
}

#[test]
fn every_code_of_a_refused_request_is_registered_with_its_one_status() {
    let found = refused();
    assert!(found.len() > 40, "only {} codes were found: the marks have changed", found.len());
    let registered = STATES.iter().filter_map(|entry| Some((entry.code, entry.status?)));
    let registered: BTreeMap<&str, u16> = registered.chain([INTERNAL]).collect();
    for (code, places) in &found {
        for (status, place) in places {
            let known = registered.get(code.as_str());
            assert_eq!(known, Some(status), "{place}: {code} is not in api/src/reason/states.rs like that");
        }
    }
    // Codes of pods that are not pending, and of two tables of actions, reach the answer through a variable.
    let all: String = sources(&["src"]).iter().map(|source| source.text.as_str()).collect();
    let gone = registered.keys().filter(|code| !all.contains(&format!("\"{code}\"")));
    assert_eq!(gone.collect::<Vec<_>>(), Vec::<&&str>::new(), "nothing gives these codes any more");
}

#[test]
fn every_code_has_one_meaning() {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    let states = STATES.iter().map(|entry| (entry.code, entry.meaning));
    for (code, meaning) in REGISTRY.iter().map(|entry| (entry.code.as_str(), entry.meaning)).chain(states) {
        assert_eq!(known.insert(code, meaning), None, "{code} is registered twice");
    }
}

/// Names of codes, in `const NAME: &str = "Code"`, in the room that makes the bodies.
#[test]
fn every_code_that_has_a_name_is_registered() {
    let mut seen = 0;
    for source in sources(&["src/diagnosis"]) {
        for (at, code) in words(&source) {
            let line = source.text[..at].lines().last().unwrap_or_default();
            let is_code = line.trim_start_matches("pub(crate) ").starts_with("const ")
                && !source.path.contains("/dump/");
            if !is_code {
                continue;
            }
            seen += 1;
            let is_known = STATES.iter().any(|entry| entry.code == code)
                || REGISTRY.iter().any(|entry| entry.code.as_str() == code);
            assert!(is_known, "{}: {code} is not in api/src/reason/states.rs", source.path);
        }
    }
    assert!(seen >= 6, "only {seen} codes have a name");
}
