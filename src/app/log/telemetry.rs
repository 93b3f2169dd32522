//! The log. Its level can be changed at run time, and writing never blocks the scheduling thread.
//!
//! Lines go through a bounded buffer to their own thread; lines that do not fit are dropped and counted. `fields`
//! formats the fields.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Subscriber;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::Handle;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::log::fields::EscapedFields;

/// Capacity of the buffer, in lines.
const LINES_WAITING: usize = 16_384;

/// Why a log setting was rejected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LogError(String);

/// The log's settings, which can be changed at run time.
pub struct LogControl {
    handle: Handle<EnvFilter, Registry>,
    directive: Mutex<Directive>,
    dropped: ErrorCounter,
}

#[derive(Clone)]
struct Directive {
    verbosity: u8,
    text: String,
}

/// Starts the log at a klog verbosity. Fails when a log is already set up. The guard keeps the log's thread alive; on
/// drop, buffered lines are written.
pub fn init(verbosity: u8) -> Result<(Arc<LogControl>, WorkerGuard), LogError> {
    let text = directive_of(verbosity);
    let filter = parse(&text)?;
    let (writer, worker) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_WAITING).finish(io::stderr());
    let dropped = writer.error_counter();
    let (filter, handle) = reload::Layer::new(filter);
    tracing_subscriber::registry()
        .with(filter)
        .with(lines(writer))
        .try_init()
        .map_err(|e| LogError(format!("the log is set up already: {e}")))?;
    let directive = Mutex::new(Directive { verbosity, text });
    Ok((Arc::new(LogControl { handle, directive, dropped }), worker))
}

/// Returns the layer that formats and writes lines.
pub(crate) fn lines<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false).with_target(false);
    layer.fmt_fields(EscapedFields)
}

impl LogControl {
    /// Returns the last klog verbosity that was set.
    pub fn verbosity(&self) -> u8 {
        self.directive.lock().verbosity
    }

    /// Returns the current directive.
    pub fn directive(&self) -> String {
        self.directive.lock().text.clone()
    }

    /// Returns how many lines were dropped because the writer could not keep up.
    pub fn dropped(&self) -> usize {
        self.dropped.dropped_lines()
    }

    /// Sets the klog verbosity: 0 warn, 1 and 2 info, 3 to 5 debug, 6 and up trace of our crates, whose names begin
    /// with `pellucid`.
    pub fn set_verbosity(&self, verbosity: u8) -> Result<(), LogError> {
        self.set(Directive { verbosity, text: directive_of(verbosity) })
    }

    /// Sets a full directive, such as `info,pellucid_kubernetes=trace`.
    pub fn set_directive(&self, text: &str) -> Result<(), LogError> {
        let verbosity = self.verbosity();
        self.set(Directive { verbosity, text: text.to_string() })
    }

    /// Restores an earlier verbosity and directive.
    pub fn restore(&self, verbosity: u8, directive: &str) -> Result<(), LogError> {
        self.set(Directive { verbosity, text: directive.to_string() })
    }

    fn set(&self, directive: Directive) -> Result<(), LogError> {
        let filter = parse(&directive.text)?;
        self.handle.reload(filter).map_err(|e| LogError(e.to_string()))?;
        *self.directive.lock() = directive;
        Ok(())
    }
}

/// Returns the directive for a klog verbosity. Crates whose names do not begin with
/// `pellucid` stay at warn.
///
/// kube's crates are off: they log failures without naming the object, and their callers log the same failures with
/// context. A full directive can turn them on.
fn directive_of(verbosity: u8) -> String {
    let level = match verbosity {
        0 => "warn",
        1 | 2 => "info",
        3..=5 => "debug",
        _ => "trace",
    };
    format!("warn,kube_client=off,kube_runtime=off,pellucid={level}")
}

/// Parses a directive from outside. Regular expressions are off, and every part must be valid.
fn parse(text: &str) -> Result<EnvFilter, LogError> {
    if text.trim().is_empty() {
        return Err(LogError("the directive is empty; an example is info,pellucid=debug".into()));
    }
    // tracing takes a number that is no level for the name of a crate, and every line would be gone.
    let is_level = |part: &str| part.len() == 1 && part <= "5";
    let mut parts = text.split(',').map(str::trim);
    if let Some(part) = parts.find(|part| part.starts_with(|c: char| c.is_ascii_digit()) && !is_level(part)) {
        let message = format!("{text:?} is not a log directive: {part:?} is neither a level nor a crate");
        return Err(LogError(message));
    }
    let parsed = EnvFilter::builder().with_regex(false).parse(text);
    parsed.map_err(|e| LogError(format!("{text:?} is not a log directive: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_numbers_map_to_levels() {
        for (level, mut verbosities) in
            [("warn", 0..=0), ("info", 1..=2), ("debug", 3..=5), ("trace", 6..=10)]
        {
            let directive = format!("warn,kube_client=off,kube_runtime=off,pellucid={level}");
            assert!(parse(&directive).is_ok());
            assert!(verbosities.all(|v| directive_of(v) == directive), "{level}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "  ", "pellucid=loud", "a=b=c", "6", "info,99999999999999999999", "1e3"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
