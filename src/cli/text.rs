//! Tables and other text for people.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use pellucid_model::quantity::format_amount;
use serde_json::Value;

/// How wide a table may become when the terminal does not say: fits most windows.
const WIDTH: u16 = 120;

/// Makes a table without lines. Long cells are wrapped; the lines below a row's first stand under their
/// column.
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

/// Sets the columns whose cells are numbers.
pub(super) fn right(table: &mut Table, columns: &[usize]) {
    for index in columns {
        if let Some(column) = table.column_mut(*index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Makes a cell of several lines. What came over the wire cannot move the cursor.
pub(super) fn cell<'a>(lines: impl IntoIterator<Item = &'a str>) -> Cell {
    let lines: Vec<String> = lines.into_iter().map(clean).collect();
    Cell::new(if lines.is_empty() { "-".to_owned() } else { lines.join("\n") })
}

/// Returns the text without control characters.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns `1 node`, `2 nodes`.
pub(super) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Returns an amount of a resource as people write it; what is no number of base units stays as it came.
pub(super) fn amount(resource: &str, amount: &Value) -> String {
    match (amount.as_i64(), amount.as_str()) {
        (Some(number), _) => format_amount(resource, number),
        (None, Some(text)) => clean(text),
        (None, None) => clean(&amount.to_string()),
    }
}
