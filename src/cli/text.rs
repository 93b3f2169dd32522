//! Tables and other text for people.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use pellucid_model::quantity::format_amount;
use serde_json::Value;

/// Width of a table when the terminal's is unknown; fits most windows.
const WIDTH: u16 = 120;

/// Returns a table without borders. Long cells are wrapped within their column.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(columns.unwrap_or(WIDTH).max(60))
        .set_header(header);
    table
}

/// Aligns columns of numbers to the right.
pub(super) fn right(table: &mut Table, columns: &[usize]) {
    for index in columns {
        if let Some(column) = table.column_mut(*index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Returns a cell of several lines. Control characters from the server are removed.
pub(super) fn cell<'a>(lines: impl IntoIterator<Item = &'a str>) -> Cell {
    let lines: Vec<String> = lines.into_iter().map(clean).collect();
    Cell::new(if lines.is_empty() { "-".to_owned() } else { lines.join("\n") })
}

/// Replaces control characters by spaces.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns a number with its noun: `1 node`, `2 nodes`.
pub(super) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Formats an amount of a resource for people. An amount that is no number of base units stays unchanged.
pub(super) fn amount(resource: &str, amount: &Value) -> String {
    match (amount.as_i64(), amount.as_str()) {
        (Some(number), _) => format_amount(resource, number),
        (None, Some(text)) => clean(text),
        (None, None) => clean(&amount.to_string()),
    }
}
