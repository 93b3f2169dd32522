//! Compares what a document shows with what a command says: by kind, not by value.
//!
//! JSON: every key that is shown is there, with a value of the same type; codes and other words in CamelCase are equal,
//! and so are the words of sentences. Text: the lines have the same words. Numbers, names, amounts and times are free.
//! A line `…` in the document stands for any further lines.

use serde_json::Value;

/// What stands for further lines in a document.
const MORE: &str = "…";

/// Returns how an output differs in kind from the lines of a document, or `None`.
pub(crate) fn difference(shown: &[&str], said: &str) -> Option<String> {
    let has_more = shown.iter().any(|line| line.trim() == MORE);
    let shown: Vec<&str> = shown.iter().copied().filter(|line| line.trim() != MORE).collect();
    let text = shown.join("\n");
    if shown.is_empty() || said.trim().is_empty() {
        let is_equal = text.trim().is_empty() == said.trim().is_empty() || has_more;
        return (!is_equal).then(|| "one of both is empty".to_owned());
    }
    match (values(&text), values(said)) {
        (Some(shown), Some(said)) => streams(&shown, &said, has_more),
        (None, None) => lines(&shown, said, has_more),
        (Some(_), None) => Some("JSON is shown and text was said".to_owned()),
        (None, Some(_)) => Some("text is shown and JSON was said".to_owned()),
    }
}

/// Returns the JSON values in a text that holds nothing else.
pub(crate) fn values(text: &str) -> Option<Vec<Value>> {
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
}

fn streams(shown: &[Value], said: &[Value], has_more: bool) -> Option<String> {
    for (index, value) in shown.iter().enumerate() {
        if !said.iter().any(|other| unlike(value, other, "").is_none()) {
            let like = said.get(index).or(said.last())?;
            return unlike(value, like, "").map(|why| format!("value {}: {why}", index + 1));
        }
    }
    let is_shown = |value: &&Value| shown.iter().any(|other| unlike(other, value, "").is_none());
    let hidden = said.iter().find(|value| !has_more && !is_shown(value));
    hidden.map(|value| format!("nothing like this is shown: {value}"))
}

/// Returns where and how a value differs in kind from the shown one.
fn unlike(shown: &Value, said: &Value, path: &str) -> Option<String> {
    match (shown, said) {
        (Value::Object(shown), Value::Object(said)) => shown.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match said.get(key) {
                Some(other) => unlike(value, other, &path),
                None => Some(format!("{path} is not there")),
            }
        }),
        (Value::Array(shown), Value::Array(said)) if shown.is_empty() != said.is_empty() => {
            Some(format!("{path}: {} values are shown, {} are there", shown.len(), said.len()))
        }
        (Value::Array(shown), Value::Array(said)) => shown.iter().enumerate().find_map(|(index, value)| {
            let is_there = said.iter().any(|other| unlike(value, other, path).is_none());
            let like = said.get(index).or(said.last())?;
            if is_there { None } else { unlike(value, like, &format!("{path}[{index}]")) }
        }),
        (Value::String(shown), Value::String(said)) => {
            let (one, other) = (word_or_sentence(shown), word_or_sentence(said));
            (one != other).then(|| format!("{path}: {shown:?} is shown, {said:?} is there"))
        }
        (Value::Null, Value::Null)
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_)) => None,
        _ => Some(format!("{path}: {shown} is shown, {said} is there")),
    }
}

/// Returns what must be equal of a string: its words when it is a sentence, all of it when it is a code, else nothing.
fn word_or_sentence(text: &str) -> String {
    let is_code = text.len() > 3
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphabetic());
    match text.contains(' ') || is_code {
        true => words(text),
        false => String::new(),
    }
}

fn lines(shown: &[&str], said: &str, has_more: bool) -> Option<String> {
    let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let find = |line: &str, among: &[&str]| among.iter().any(|other| words(other) == words(line));
    let shown: Vec<&str> = shown.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    if let Some(line) = shown.iter().find(|line| !find(line, &said)) {
        return Some(format!("no line has the words of {line:?}"));
    }
    let hidden = said.iter().find(|line| !has_more && !find(line, &shown));
    hidden.map(|line| format!("no shown line has the words of {line:?}"))
}

/// Returns the words of a line, with `#` for everything that depends on the cluster and the moment: whatever has a digit,
/// a hyphen or a slash in it. A path of the API stays.
fn words(line: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in line.split_whitespace().filter(|word| word.contains(|c: char| c.is_alphanumeric())) {
        let is_path = word.starts_with('/') && !word.contains(':');
        let is_value = word.contains(|c: char| c.is_ascii_digit() || matches!(c, '-' | '/'));
        let word = if is_value && !is_path { "#" } else { word };
        if word != "#" || kept.last() != Some(&"#") {
            kept.push(word);
        }
    }
    // How many nodes are nearest is a number too, and one node is told in the singular.
    kept.join(" ").replace("Nearest are # nodes, such as #", "Nearest is #")
}
