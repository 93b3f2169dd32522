//! Writing to the terminal. A reader that goes away (`pellucid explain pods | head`) is no failure.

use std::io::{self, IsTerminal as _, Write as _};

/// Writes a text and a line break to stdout.
pub fn line(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a text and a line break to stderr. There is nowhere to complain about a failure to complain.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A verdict.
    Bold,
    /// All is well.
    Green,
    /// Something is in the way.
    Yellow,
    /// Less important.
    Dim,
}

/// Colours, or their absence.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// Colours when stdout is a terminal and `NO_COLOR` is not set.
    pub fn for_stdout() -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: !is_refused && io::stdout().is_terminal() }
    }

    /// No colours.
    pub fn plain() -> Self {
        Self { is_on: false }
    }

    /// Returns the text in a style.
    pub fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Green => "1;32",
            Style::Yellow => "1;33",
            Style::Dim => "2",
        };
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
