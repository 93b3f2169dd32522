//! Formats of a response body: its choice, and tables as Markdown or CSV.
//!
//! A table is built from the JSON body, so it never contradicts it.

use comfy_table::{ContentArrangement, presets};
use http::HeaderMap;
use http::header::ACCEPT;

use crate::error::ReadError;
use crate::registration::params::shortened;

/// A table of text cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Column headings.
    pub header: Vec<String>,
    /// Rows of cells. Output pads short rows with empty cells, and truncates long ones.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these headings.
    pub fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// Appends a row.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.to_vec());
    }

    /// Returns the table as Markdown. Cells are escaped, so they cannot break out of their row or column.
    pub fn to_markdown(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header.iter().map(|cell| markdown_cell(cell)));
        for row in self.even_rows() {
            table.add_row(row.map(markdown_cell));
        }
        let mut text = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
        if text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Returns the table as CSV (RFC 4180, with a header line).
    pub fn to_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.header)?;
        for row in self.even_rows() {
            writer.write_record(row)?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    /// Returns every row with exactly one cell per heading.
    fn even_rows(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.rows.iter().map(|row| {
            let filled = row.iter().map(String::as_str).chain(std::iter::repeat(""));
            filled.take(self.header.len())
        })
    }
}

fn markdown_cell(cell: &str) -> String {
    let one_line = cell.replace("\r\n", " ").replace(char::is_control, " ");
    one_line.replace('|', "\\|")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Table,
    Csv,
}

impl Format {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Table => "text/markdown; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    /// Chooses the format: by `?format=`, else by the `Accept` header, else JSON. Fails when the chosen one is unknown
    /// or needs rows that the body lacks.
    pub(crate) fn choose(
        asked: Option<&str>,
        headers: &HeaderMap,
        has_rows: bool,
    ) -> Result<Self, ReadError> {
        let format = match asked {
            Some("json") => Self::Json,
            Some("table") => Self::Table,
            Some("csv") => Self::Csv,
            None => return Self::from_accept(headers, has_rows),
            Some(other) => {
                let message = format!(
                    "parameter `format` has the value `{}`; known: json, table, csv",
                    shortened(other)
                );
                return Err(ReadError::BadRequest("UnknownFormat", message));
            }
        };
        if format != Self::Json && !has_rows {
            let message = "this endpoint has no rows; it answers format=json only".to_owned();
            return Err(ReadError::BadRequest("NoTable", message));
        }
        Ok(format)
    }

    fn from_accept(headers: &HeaderMap, has_rows: bool) -> Result<Self, ReadError> {
        let mut accepted: Vec<(u16, String)> = Vec::new();
        let mut asked = String::new();
        for value in headers.get_all(ACCEPT) {
            let text = value.to_str().map_err(|_| not_acceptable("(not text)"))?;
            accepted.extend(text.split(',').filter_map(media_range));
            asked += text;
        }
        if asked.trim().is_empty() {
            return Ok(Self::Json);
        }
        // Highest quality first. The sort is stable, so equal ones keep the order of the header.
        accepted.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
        let chosen = accepted.iter().find_map(|(_, range)| Self::for_range(range, has_rows));
        chosen.ok_or_else(|| not_acceptable(&asked))
    }

    fn for_range(range: &str, has_rows: bool) -> Option<Self> {
        match range {
            "application/json" | "application/*" | "*/*" => Some(Self::Json),
            "text/markdown" if has_rows => Some(Self::Table),
            "text/csv" if has_rows => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Parses one item of an `Accept` header into its quality in thousandths and its media range; `None` when it is empty
/// or unwanted (quality 0).
fn media_range(item: &str) -> Option<(u16, String)> {
    let mut parts = item.split(';').map(str::trim);
    let range = parts.next().filter(|range| !range.is_empty())?.to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
    let (whole, fraction) = quality.split_once('.').unwrap_or((quality, ""));
    let thousandths = format!("{whole}{fraction:0<3.3}").parse().unwrap_or(0);
    (thousandths > 0).then_some((thousandths, range))
}

fn not_acceptable(asked: &str) -> ReadError {
    let message = format!(
        "none of the accepted types `{}` can be given; there is application/json and, where there are rows, \
         text/markdown and text/csv",
        shortened(asked)
    );
    ReadError::BadRequest("NotAcceptable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_break_the_markdown_table() {
        let mut table = Table::new(["pod", "why"]);
        table.push(["a|b".to_owned(), "line one\nline two\u{1b}[31m".to_owned()]);
        table.rows.push(vec!["short".to_owned()]);
        let lines: Vec<String> = table.to_markdown().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines[2].contains("a\\|b") && lines[2].contains("line one line two [31m"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.starts_with('|') && line.ends_with('|')), "{lines:#?}");
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut table = Table::new(["pod", "why"]);
        table.push(["a,b".to_owned(), "say \"no\"\nplease".to_owned()]);
        let text = String::from_utf8(table.to_csv().unwrap()).unwrap();
        assert_eq!(text, "pod,why\n\"a,b\",\"say \"\"no\"\"\nplease\"\n");
    }

    #[test]
    fn the_form_follows_format_then_accept() {
        let accept = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            headers
        };
        for (asked, accepted, rows, expected) in [
            (None, "", true, Some(Format::Json)),
            (None, "text/html, */*;q=0.8", true, Some(Format::Json)),
            (None, "text/csv", true, Some(Format::Csv)),
            (None, "text/csv", false, None),
            (None, "application/json;q=0.5, text/markdown", true, Some(Format::Table)),
            (None, "application/json, text/markdown;q=0.9", true, Some(Format::Json)),
            (None, "application/json;q=0", true, None),
            (None, "text/html", true, None),
            (Some("csv"), "application/json", true, Some(Format::Csv)),
            (Some("table"), "", false, None),
            (Some("xml"), "", true, None),
        ] {
            let chosen = Format::choose(asked, &accept(accepted), rows);
            assert_eq!(chosen.as_ref().ok(), expected.as_ref(), "{asked:?} {accepted} {rows}: {chosen:?}");
        }
    }
}
