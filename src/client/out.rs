//! Output to the terminal. A reader that goes away (`pellucid explain pods | head`) is no error.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;

use super::table::broken;

/// Columns of a terminal whose width is not known; fits most windows.
const WIDTH: usize = 120;
/// Columns below which tables are not made narrower.
const NARROWEST: usize = 60;

/// Returns the width of the terminal; where stdout is none that of `COLUMNS`, else 120.
pub(crate) fn width() -> usize {
    let terminal = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let told = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    terminal.or_else(told).unwrap_or(WIDTH).max(NARROWEST)
}

/// Writes a line. Nobody reading any more is no error.
///
/// # Errors
/// Standard output cannot be written.
pub fn line(text: &str) -> anyhow::Result<()> {
    feed(text).map(drop)
}

/// Writes a line of a feed. Breaks when nobody reads it any more.
pub(crate) fn feed(text: &str) -> anyhow::Result<ControlFlow<()>> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error.into()),
    }
}

/// Writes what a command says. On a terminal the lines of prose are broken between words; programs get them whole. Breaks
/// when nobody reads it any more.
pub(crate) fn page(text: &str, is_prose: bool) -> anyhow::Result<ControlFlow<()>> {
    match is_prose && io::stdout().is_terminal() {
        true => feed(&fitted(text.trim_end(), width())),
        false => feed(text.trim_end()),
    }
}

/// Clears the terminal, to write a page from its top. Where stdout is no terminal pages follow each other.
pub(crate) fn clear() -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        io::stdout().lock().write_all(b"\x1b[H\x1b[2J\x1b[3J")?;
    }
    Ok(())
}

/// Breaks the lines of a text between words. Commands, which begin with `$`, stay whole, to be copied.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let fitted = text.lines().flat_map(|line| {
        let rest = line.trim_start_matches(' ');
        let indent = &line[..line.len() - rest.len()];
        if rest.starts_with("$ ") || console::measure_text_width(line) <= width {
            return vec![line.to_owned()];
        }
        let lines = broken(rest, width.saturating_sub(indent.len()));
        lines.into_iter().map(|line| format!("{indent}{line}")).collect()
    });
    fitted.collect::<Vec<_>>().join("\n")
}

/// Writes a line to stderr. A failure cannot be reported anywhere.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Emphasis of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Headlines and verdicts.
    Bold,
    /// Success.
    Green,
    /// A problem.
    Yellow,
    /// Details of less importance.
    Dim,
}

/// Applies styles, or none where colours are off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    /// Returns colours if stdout is a terminal and `NO_COLOR` is not set.
    pub(crate) fn for_stdout() -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: !is_refused && io::stdout().is_terminal() }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { is_on: false }
    }

    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Green => "1;32",
            Style::Yellow => "1;33",
            Style::Dim => "2",
        };
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_commands_stay_whole() {
        let text = "a short line\n  one two three four\n   $ kubectl delete pod a-long-name";
        let expected = "a short line\n  one two\n  three four\n   $ kubectl delete pod a-long-name";
        assert_eq!(fitted(text, 13), expected);
    }
}
