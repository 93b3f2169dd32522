//! Output to the terminal. A reader that goes away (`pellucid explain pods | head`) is no error.

use std::io::{self, IsTerminal as _, Write as _};

pub(super) fn line(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a line to stderr. A failure cannot be reported anywhere.
pub(super) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Emphasis of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
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
pub(super) struct Paint {
    is_on: bool,
}

impl Paint {
    /// Returns colours if stdout is a terminal and `NO_COLOR` is not set.
    pub(super) fn for_stdout() -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: !is_refused && io::stdout().is_terminal() }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { is_on: false }
    }

    pub(super) fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Green => "1;32",
            Style::Yellow => "1;33",
            Style::Dim => "2",
        };
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
