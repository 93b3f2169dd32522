//! Formats the fields of log lines as `tracing_subscriber` does, and escapes everything that could end a line or
//! control a terminal.
//!
//! Fields often hold text from outside: names, unreadable values, messages of the API server. The exception is the
//! field [`LINES`], our own text of several lines: it follows below the line and is escaped line by line.

use std::error::Error;
use std::fmt::{self, Debug};

use pellucid_model::escape::escaped;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The field whose text has several lines. Its producer escapes the names in it.
const LINES: &str = "table";

/// Formats fields with their values escaped.
pub(crate) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line { writer, is_empty: true, below: String::new(), result: Ok(()) };
        fields.record(&mut line);
        line.end()
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    is_empty: bool,
    /// The text that follows below the line.
    below: String,
    result: fmt::Result,
}

impl Line<'_> {
    fn write(&mut self, name: &str, text: &str) {
        if self.result.is_err() || name.starts_with("log.") {
            return;
        }
        let space = if std::mem::replace(&mut self.is_empty, false) { "" } else { " " };
        let text = escaped(text);
        self.result = match name {
            "message" => write!(self.writer, "{space}{text}"),
            name => write!(self.writer, "{space}{}={text}", name.trim_start_matches("r#")),
        };
    }

    fn end(mut self) -> fmt::Result {
        self.result?;
        self.below.lines().try_for_each(|line| write!(self.writer, "\n{}", escaped(line)))
    }
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        if field.name() == LINES {
            self.below = text;
        } else {
            self.write(field.name(), &text);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.write("message", value)
        } else {
            self.record_debug(field, &value)
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.write(field.name(), &value.to_string());
        let sources: Vec<String> = std::iter::successors(value.source(), |error| (*error).source())
            .map(ToString::to_string)
            .collect();
        if !sources.is_empty() {
            self.write(&format!("{}.sources", field.name()), &format!("[{}]", sources.join(", ")));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::layer::SubscriberExt;

    use super::super::telemetry::lines;

    #[derive(Clone, Default)]
    pub(in crate::log) struct Written(pub(in crate::log) Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the logged lines without their times.
    fn logged(log: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::registry().with(lines(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(written.0.lock().clone()).expect("text");
        let without_time = |line: &str| match line.split_once("Z ") {
            Some((_, rest)) => rest.trim_start().to_owned(),
            None => line.to_owned(),
        };
        text.split_terminator('\n').map(without_time).collect()
    }

    const EVIL: &str = "x\n2026-11-22T00:00:00Z  INFO all is well\u{1b}[2J\u{9b}\u{202e}";
    const TAME: &str = "x\\n2026-11-22T00:00:00Z  INFO all is well\\u{1b}[2J\\u{9b}\\u{202e}";

    #[test]
    fn no_field_ends_a_line_or_drives_a_terminal() {
        let error = anyhow::anyhow!("{EVIL}").context(EVIL);
        let lines = logged(|| {
            tracing::warn!(value = EVIL, problem = %EVIL, pod = ?EVIL, "cannot read {EVIL}");
            let span = tracing::error_span!("http", path = %EVIL);
            span.in_scope(|| {
                tracing::info!(error = error.as_ref() as &(dyn std::error::Error + 'static), "failed")
            });
            tracing::info!(message = EVIL);
        });
        let quoted = format!("\"{TAME}\"");
        let expected = [
            format!("WARN cannot read {TAME} value={quoted} problem={TAME} pod={quoted}"),
            format!("INFO http{{path={TAME}}}: failed error={TAME} error.sources=[{TAME}]"),
            format!("INFO {TAME}"),
        ];
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert_eq!(*line, expected);
        }
    }

    #[test]
    fn a_table_keeps_its_lines() {
        let table = "| # | Node |\n| 0 | n\u{1b}1 |";
        let lines = logged(|| tracing::info!(table = %table, pod = "a", "Top1 scores"));
        assert_eq!(lines, ["INFO Top1 scores pod=\"a\"", "| # | Node |", "| 0 | n\\u{1b}1 |"]);
    }
}
