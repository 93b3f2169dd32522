//! Reads CSV files with a fixed header row by row, and reports the exact problem of an invalid row.
//!
//! The formats ([`super::openb`], [`super::philly`]) define the columns and their meaning.

use std::fs::File;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord};
use pellucid_model::collections::HashMap;
use pellucid_model::naming::is_label_value;

use super::TraceError;

/// Upper limit of amounts: a million terabytes, or a thousand million cores. More is a mistake, and the limit keeps
/// sums far from overflow.
pub(super) const MOST: u64 = 1 << 40;
/// Upper limit for the number of GPUs per node.
pub(super) const MOST_GPUS: u64 = 1024;

/// Reads a file, all or nothing. The first column is the row's name and must be unique.
pub(super) fn read<T>(
    path: &Path,
    columns: &'static [&'static str],
    parse: impl Fn(&Row<'_>) -> Result<T, String>,
) -> Result<Vec<T>, TraceError> {
    let file = path.display();
    let opened = File::open(path).map_err(|error| TraceError(format!("{file}: {error}")))?;
    let at = |line: u64, problem: String| TraceError(format!("{file}:{line}: {problem}"));
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(opened);
    let mut names: HashMap<String, u64> = HashMap::default();
    let mut items = Vec::new();
    let mut has_header = false;
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(path, error))?;
        let line = record.position().map_or(0, csv::Position::line);
        if !has_header {
            check_header(&record, columns).map_err(|problem| at(line, problem))?;
            has_header = true;
            continue;
        }
        if record.len() != columns.len() {
            return Err(at(line, format!("{} columns, expected {}", record.len(), columns.len())));
        }
        let row = Row { columns, record: &record };
        items.push(parse(&row).map_err(|problem| at(line, problem))?);
        if let Some(earlier) = names.insert(record[0].to_owned(), line) {
            return Err(at(line, row.wrong(columns[0], &format!("stands on line {earlier} already"))));
        }
    }
    if !has_header {
        return Err(at(1, format!("empty, expected the header {}", columns.join(","))));
    }
    Ok(items)
}

fn unreadable(path: &Path, error: csv::Error) -> TraceError {
    let (file, line) = (path.display(), error.position().map_or(0, csv::Position::line));
    TraceError(match error.into_kind() {
        csv::ErrorKind::Io(error) => format!("{file}: {error}"),
        csv::ErrorKind::Utf8 { .. } => format!("{file}:{line}: is not UTF-8 text"),
        other => format!("{file}:{line}: {other:?}"),
    })
}

fn check_header(record: &StringRecord, columns: &[&str]) -> Result<(), String> {
    let given: Vec<&str> = record.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
    if given == columns {
        return Ok(());
    }
    Err(format!("the header is {:?}, expected {:?}", given.join(","), columns.join(",")))
}

/// A line with access by column name.
pub(super) struct Row<'a> {
    columns: &'static [&'static str],
    record: &'a StringRecord,
}

impl Row<'_> {
    /// Returns the text of a column.
    pub(super) fn text(&self, column: &str) -> &str {
        let index = self.columns.iter().position(|name| *name == column);
        index.and_then(|index| self.record.get(index)).unwrap_or("")
    }

    /// Describes a problem with the value of a column.
    pub(super) fn wrong(&self, column: &str, problem: &str) -> String {
        format!("column {column}: {:?} {problem}", self.text(column))
    }

    /// Parses an integer from 0 to `most`.
    pub(super) fn amount(&self, column: &str, most: u64) -> Result<u64, String> {
        match self.integer(column)? {
            ..0 => Err(self.wrong(column, "is below 0")),
            value if value.unsigned_abs() > most => Err(self.wrong(column, &format!("is more than {most}"))),
            value => Ok(value.unsigned_abs()),
        }
    }

    /// Checks that the text is a time in seconds, or empty, as for pods that never ran.
    pub(super) fn seconds(&self, column: &str) -> Result<(), String> {
        if self.text(column).is_empty() { Ok(()) } else { self.integer(column).map(|_| ()) }
    }

    fn integer(&self, column: &str) -> Result<i64, String> {
        self.text(column).parse().map_err(|error: std::num::ParseIntError| match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                self.wrong(column, "is out of range")
            }
            _ => self.wrong(column, "is not an integer"),
        })
    }

    /// Returns the text if it is a valid name for a Kubernetes object.
    pub(super) fn object_name(&self, column: &str) -> Result<String, String> {
        let name = self.text(column);
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let is_outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_valid = !name.is_empty()
            && name.len() <= 253
            && name.chars().all(is_inner)
            && name.starts_with(is_outer)
            && name.ends_with(is_outer)
            && !name.contains("..");
        match is_valid {
            true => Ok(name.to_owned()),
            false => Err(self.wrong(column, "is not a name a Kubernetes object can have")),
        }
    }

    /// Checks that the text is a valid label value.
    pub(super) fn label_value(&self, column: &str) -> Result<(), String> {
        match is_label_value(self.text(column)) {
            true => Ok(()),
            false => Err(self.wrong(column, "is not a value a Kubernetes label can have")),
        }
    }

    /// Parses GPU models separated by `|`.
    pub(super) fn models(&self, column: &str) -> Result<Vec<String>, String> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let models: Vec<String> = text.split('|').map(str::to_owned).collect();
        match models.iter().all(|model| !model.is_empty() && is_label_value(model)) {
            true => Ok(models),
            false => Err(self.wrong(column, "is not a list of GPU models separated by |")),
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use std::io::Write as _;

    use super::*;

    /// Reads a text as a file. Returns its rows, or the error without the file's name.
    pub(crate) fn read_text<T>(
        read: fn(&Path) -> Result<Vec<T>, TraceError>,
        text: &str,
    ) -> Result<Vec<T>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let name = file.path().display().to_string();
        read(file.path()).map_err(|error| error.to_string().strip_prefix(&name).unwrap().to_owned())
    }
}
