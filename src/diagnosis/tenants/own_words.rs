//! Words that texts have of their own, so that an object with such a name does not take them out of everybody's answers.
//!
//! A name like them says nothing where no namespace stands beside it. What is by its place a name of an object is hidden by
//! the server whatever word it is.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use pellucid_api::reason::{REGISTRY, STATES};

/// Words that bodies and samples have as values of their own, besides those of reasons.
const WORDS: &str = "active backoff unschedulable gated inflight in-flight pending waiting permitted bound finished placed \
     created cpu memory pods pod gang gangs node nodes queue true false none now never later user admin time json table \
     csv low high strict owner name namespace default before after up down ours theirs on off all new old first last \
     scheduled error success skip wait Inf NaN PreEnqueue QueueSort PreFilter Filter PostFilter PreScore Score Reserve \
     Permit PreBind Bind PostBind pellucid";

/// Units that stand behind a number without a space.
const UNITS: [&str; 29] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "KiB", "MiB", "GiB",
    "TiB", "ns", "us", "ms", "s", "min", "h", "d", "x", "th",
];

/// Returns whether a word is one of this program's own, or a number, whoever has an object of that name.
pub(super) fn is_own(word: &str) -> bool {
    is_number(word) || vocabulary().contains(word)
}

/// Returns whether a word is an amount, a date or a time.
pub(super) fn is_number(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | 'T' | 'Z');
    word.starts_with(|c: char| c.is_ascii_digit())
        && (word.chars().all(is_part) || UNITS.contains(&word.trim_start_matches(is_part)))
}

/// Returns the words of this program's own texts.
fn vocabulary() -> &'static BTreeSet<&'static str> {
    static WORDS_OF_TEXTS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    WORDS_OF_TEXTS.get_or_init(|| {
        let reasons = REGISTRY
            .iter()
            .flat_map(|entry| [entry.code.as_str(), entry.message, entry.meaning, entry.remedy]);
        let states = STATES.iter().flat_map(|entry| [entry.code, entry.meaning]);
        let words = reasons.chain(states).chain([WORDS]).flat_map(|text| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty())
        });
        words.filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_numbers_and_names_with_digits_are_not() {
        for number in ["0", "42", "1.5", "500m", "2Gi", "10s", "2026-11-26T09", "00Z", "7-8"] {
            assert!(is_number(number), "{number}");
        }
        for name in ["", "a", "web-0", "0a", "5f7d9", "x86", "-", "Gi"] {
            assert!(!is_number(name), "{name}");
        }
    }
}
