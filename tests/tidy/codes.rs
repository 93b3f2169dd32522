//! Every code of a rejected request is registered, so that `GET /apis/v1/reasons` lists it.

use pellucid_api::reason::{REGISTRY, STATES};

use super::source::sources;

/// Text that precedes such a code where a request is rejected.
const MARKS: &[&str] = &["code: \"", "not_found(\"", "bad(\"", "unavailable(\""];

/// Returns the codes in a line of code.
fn codes(line: &str) -> Vec<&str> {
    let marked = MARKS.iter().filter_map(|mark| line.split_once(mark).map(|(_, rest)| rest));
    let failure =
        line.split_once("StatusCode::").and_then(|(_, rest)| rest.split_once(", \"")).map(|(_, rest)| rest);
    let until_quote = marked.chain(failure).filter_map(|rest| rest.split('"').next());
    until_quote
        .filter(|code| code.starts_with(|c: char| c.is_ascii_uppercase()) && !code.contains(' '))
        .collect()
}

#[test]
fn every_code_of_a_refused_request_is_registered() {
    let plugins = pellucid::plugins::registry();
    let is_known = |code: &str| {
        STATES.iter().any(|entry| entry.code == code)
            || REGISTRY.iter().any(|entry| entry.code.as_str() == code)
            || plugins.iter().flat_map(|factory| factory.reasons()).any(|reason| reason.code == code)
    };
    let mut seen = 0;
    for source in sources(&["src"]) {
        let is_answering =
            matches!(source.room(), Some("http" | "diagnosis" | "app" | "plugins" | "framework"));
        let lines = source.text.lines().zip(&source.is_test).enumerate();
        for (number, (line, is_test)) in lines.filter(|_| is_answering) {
            for code in codes(line).into_iter().filter(|_| !is_test) {
                seen += 1;
                assert!(
                    is_known(code),
                    "{}:{}: {code} is not in api/src/reason/states.rs",
                    source.path,
                    number + 1
                );
            }
        }
    }
    assert!(seen > 40, "only {seen} codes were found: the marks have changed");
}
