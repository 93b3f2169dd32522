//! Finds the paths that a file refers to: those of `use` trees, expanded, and those written in full.

use super::source::Source;

/// A path and its line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// Returns every path of two or more parts in code outside tests.
pub(crate) fn imports(source: &Source) -> Vec<Import> {
    let tokens = tokens(&source.code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (word, line) = tokens[at];
        // `impl Trait + use<'a>` imports nothing.
        if word == "use" && tokens.get(at + 1).is_some_and(|t| t.0 != "<") {
            at = expand(&tokens, at + 1, "", &mut found);
        } else if is_word(word) && tokens.get(at + 1).is_some_and(|t| t.0 == "::") {
            let begin = at;
            let mut path = word.to_owned();
            while tokens.get(at + 1).is_some_and(|t| t.0 == "::")
                && tokens.get(at + 2).is_some_and(|t| is_word(t.0))
            {
                path = format!("{path}::{}", tokens[at + 2].0);
                at += 2;
            }
            // `<T as Trait>::name` and `Vec::<u8>::new` continue after a token that is not a word.
            if begin == 0 || tokens[begin - 1].0 != "::" || begin == 1 || tokens[begin - 2].0 != ">" {
                found.push(Import { path, line });
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    found.retain(|i| !source.is_test.get(i.line - 1).copied().unwrap_or(false));
    found
}

/// Expands one branch of a `use` tree. Returns the index after it.
fn expand(tokens: &[(&str, usize)], mut at: usize, prefix: &str, found: &mut Vec<Import>) -> usize {
    let mut path = prefix.to_owned();
    let line = tokens.get(at).map_or(0, |t| t.1);
    while let Some((word, _)) = tokens.get(at) {
        match *word {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|t| t.0 != "}") {
                    at = expand(tokens, at, &path, found);
                    at += usize::from(tokens.get(at).is_some_and(|t| t.0 == ","));
                }
                return at + 1;
            }
            "}" | "," | ";" => break,
            "as" => at += 1,
            "::" => {}
            word if path.is_empty() => path = word.to_owned(),
            word => path = format!("{path}::{word}"),
        }
        at += 1;
    }
    found.push(Import { path, line });
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits code into words, `::` and single characters, each with its line.
fn tokens(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let length = if word > 0 {
                word
            } else if rest.starts_with("::") {
                2
            } else {
                first
            };
            found.push((&rest[..length], number + 1));
            rest = rest[length..].trim_start();
        }
    }
    found
}

#[test]
fn trees_and_full_paths_are_found() {
    let text = "use std::{fs, time::{Duration, Instant as I}};\nuse a::b::*;\nfn f() -> kube::Config { x::<u8>(); }\n\
                fn g() -> impl Copy + use<> { {} }\n\
                #[cfg(test)]\nmod tests {\n    use tokio::net;\n}\n";
    let found = imports(&Source::new("src/x.rs", text, false));
    let paths: Vec<(&str, usize)> = found.iter().map(|i| (i.path.as_str(), i.line)).collect();
    assert_eq!(
        paths,
        [
            ("std::fs", 1),
            ("std::time::Duration", 1),
            ("std::time::Instant", 1),
            ("a::b::*", 2),
            ("kube::Config", 3),
            ("x", 3),
        ]
    );
}
