//! A source file as the checks see it: its code without comments and strings, and which lines only tests compile.

use std::fs;
use std::path::{Path, PathBuf};

/// One `.rs` file.
pub(crate) struct Source {
    /// Path relative to the root of the repository, with slashes.
    pub(crate) path: String,
    /// The unchanged text.
    pub(crate) text: String,
    /// The text with comments and literals blanked; it has the same length and lines.
    pub(crate) code: String,
    /// Per line, from 0: whether only tests compile it.
    pub(crate) is_test: Vec<bool>,
}

impl Source {
    /// Parses a text.
    pub(crate) fn new(path: &str, text: &str, is_test_file: bool) -> Self {
        let code = blank(text);
        let is_test = if is_test_file { vec![true; code.lines().count()] } else { test_lines(&code) };
        Self { path: path.to_owned(), text: text.to_owned(), code, is_test }
    }

    /// Returns whether only tests compile the whole file.
    pub(crate) fn is_test_file(&self) -> bool {
        self.is_test.iter().all(|t| *t)
    }

    /// Returns the room, which is the first folder or file below `src/`, or `None` outside.
    pub(crate) fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs"))
    }
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every file below some folders, sorted, as paths relative to the root.
pub(crate) fn files_below(folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|f| root().join(f)).collect();
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(relative(&path));
            }
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/")
}

/// Reads every Rust file below some folders.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let paths = files_below(folders).into_iter().filter(|p| p.ends_with(".rs"));
    let texts: Vec<(String, String)> =
        paths.map(|p| (p.clone(), fs::read_to_string(root().join(&p)).unwrap())).collect();
    let for_tests: Vec<String> = texts.iter().flat_map(|(p, text)| test_modules(p, text)).collect();
    let is_test = |path: &str| {
        let below = |m: &String| {
            path.strip_prefix(m.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        path.starts_with("tests/") || for_tests.iter().any(below)
    };
    texts.iter().map(|(path, text)| Source::new(path, text, is_test(path))).collect()
}

/// Returns the paths, without `.rs`, of module files that only tests compile.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let folder = match path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix("/lib.rs")) {
        Some(folder) => folder.to_owned(),
        None => path.trim_end_matches(".rs").to_owned(),
    };
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        let mut file = None;
        for line in lines.by_ref() {
            if let Some(named) = line.strip_prefix("#[path = \"") {
                file = named.split(".rs\"").next();
            } else if !line.starts_with("#[") {
                let Some(module) = line.strip_suffix(';').and_then(|l| l.split("mod ").nth(1)) else { break };
                let beside = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                found.push(match file {
                    Some(file) => format!("{beside}/{file}"),
                    None => format!("{folder}/{module}"),
                });
                break;
            }
        }
    }
    found
}

/// Returns which lines belong to inline modules and items under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<bool> {
    let lines: Vec<&str> = code.lines().collect();
    let mut marks = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim() != "#[cfg(test)]" {
            at += 1;
            continue;
        }
        let mut depth = 0i64;
        loop {
            marks[at] = true;
            depth += lines[at].matches('{').count() as i64 - lines[at].matches('}').count() as i64;
            let is_end = depth == 0 && (lines[at].contains('}') || lines[at].trim_end().ends_with(';'));
            at += 1;
            if is_end || at == lines.len() {
                break;
            }
        }
    }
    marks
}

/// Replaces comments and the insides of literals with spaces. Line breaks are preserved.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'/')) => text[at..].find('\n').map_or(bytes.len(), |n| at + n),
            (b'/', Some(b'*')) => text[at..].find("*/").map_or(bytes.len(), |n| at + n + 2),
            (b'r', Some(b'"' | b'#')) if !follows_word(bytes, at) => raw_string_end(text, at),
            (b'"', _) => string_end(bytes, at),
            (b'\'', _) => char_end(bytes, at),
            _ => at + 1,
        };
        if end > at + 1 {
            out[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        }
        at = end;
    }
    String::from_utf8(out).unwrap()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn raw_string_end(text: &str, at: usize) -> usize {
    let hashes = text[at + 1..].bytes().take_while(|b| *b == b'#').count();
    let open = at + 1 + hashes;
    if text.as_bytes().get(open) != Some(&b'"') {
        return at + 1;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    text[open + 1..].find(&close).map_or(text.len(), |n| open + 1 + n + close.len())
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

/// Returns the end of what a quote begins: a character (`'x'`, `'\n'`) or a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    let limit = bytes.len().min(at + 12);
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = (at + 3..limit).find(|i| bytes[*i] == b'\'');
        return close.map_or(at + 1, |i| i + 1);
    }
    let width = match bytes.get(at + 1) {
        Some(b) if b.is_ascii() => 1,
        Some(b) if *b >= 0xF0 => 4,
        Some(b) if *b >= 0xE0 => 3,
        _ => 2,
    };
    if bytes.get(at + 1 + width) == Some(&b'\'') { at + 2 + width } else { at + 1 }
}

#[test]
fn comments_and_literals_are_blanked() {
    let text = "a::b /* c::d */ \"e::f \\\" g\" 'h' '\\'' r#\"i::j\"# 'static x // k::l\nm";
    let code = blank(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a::b", "'static", "x", "m"]);
}

#[test]
fn code_for_tests_is_found() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    assert_eq!(Source::new("src/x.rs", text, false).is_test, [false, true, true, true, true, false]);
    let text = "#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;\n#[cfg(test)]\npub(crate) mod kit;\n";
    assert_eq!(test_modules("src/a/b.rs", text), ["src/a/b_tests", "src/a/b/kit"]);
    assert_eq!(test_modules("src/a/mod.rs", text), ["src/a/b_tests", "src/a/kit"]);
}
