//! Tables and other text for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use pellucid_api::rest::sharing::SharingRound;
use pellucid_model::quantity::format_amount;
use serde_json::Value;

use super::out::{fitted, width};
use super::program;
use super::table::{Cell, Table};

/// Returns a table whose long cells are wrapped. The columns of numbers are aligned to the right.
pub(crate) fn table(header: &[&str], numbers: impl IntoIterator<Item = usize>) -> Table {
    Table::new(header, numbers)
}

/// Returns a cell of several lines, `-` if there are none. Control characters from the server are removed.
pub(crate) fn cell(lines: impl IntoIterator<Item: AsRef<str>>) -> Cell {
    let lines: Vec<String> = lines.into_iter().map(|line| clean(line.as_ref())).collect();
    Cell::new(if lines.is_empty() { vec!["-".to_owned()] } else { lines })
}

/// Returns a cell of one line.
pub(crate) fn one(value: impl Display) -> Cell {
    cell([value.to_string()])
}

/// Appends what `render` makes of a list as a paragraph, if the list has items.
pub(crate) fn section<T>(out: &mut String, list: &[T], render: impl FnOnce(&[T]) -> String) {
    if !list.is_empty() {
        *out += &format!("\n{}\n", render(list));
    }
}

/// Amounts by resource, as quantities.
pub(crate) type Amounts = BTreeMap<String, String>;

/// Returns the resources that any of these has an amount of, cpu and memory first; `-` alone if there are none.
pub(crate) fn resource_names<'a>(all: impl IntoIterator<Item = &'a Amounts>) -> Vec<&'a str> {
    let names: BTreeSet<&str> =
        all.into_iter().flat_map(|amounts| amounts.keys().map(String::as_str)).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| (*name != "cpu", *name != "memory"));
    if names.is_empty() { vec!["-"] } else { names }
}

/// Returns a sentence per round in which an amount is shared out.
pub(crate) fn rounds(all: &[SharingRound]) -> String {
    let of = |(n, round): (usize, &SharingRound)| {
        let shares: Vec<String> = round.shares.iter().map(|(name, n)| format!("{name} {n}")).collect();
        let back = format!("taken back {}", round.excess);
        let said = format!("Round {}: {} by weight: {}; {back}.", n + 1, round.amount, shares.join(", "));
        fitted(&clean(&said), width())
    };
    all.iter().enumerate().map(of).collect::<Vec<_>>().join("\n")
}

/// Replaces control characters by spaces.
pub(crate) fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Returns a remedy with who can apply it.
pub(crate) fn remedy(remedy: &str, resolver: &str) -> String {
    match resolver.is_empty() {
        true => remedy.to_owned(),
        false => format!("{} ({resolver})", remedy.trim_end_matches('.')),
    }
}

/// Returns the last line of a table: the command to type next.
pub(crate) fn next(command: &str) -> String {
    clean(&format!("{} {command}", program()))
}

/// Returns a number with its noun: `1 node`, `2 nodes`.
#[must_use]
pub fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Formats an amount of a resource for people. An amount that is no number of base units stays unchanged.
pub(crate) fn amount(resource: &str, amount: &Value) -> String {
    match (amount.as_i64(), amount.as_str()) {
        (Some(number), _) => format_amount(resource, number),
        (None, Some(text)) => clean(text),
        (None, None) => clean(&amount.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    /// Checks that a text has all of some parts, in this order.
    pub(crate) fn assert_in_order(text: &str, parts: &[&str]) {
        let mut from = 0;
        for part in parts {
            let at =
                text[from..].find(part).unwrap_or_else(|| panic!("{part:?} not after {from} in\n{text}"));
            from += at + part.len();
        }
    }
}
