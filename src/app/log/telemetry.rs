//! The log. Its level can be changed at run time, and writing never blocks the scheduling thread.
//!
//! Lines go through a bounded buffer to their own thread; lines that do not fit are dropped and counted. `fields`
//! formats the fields.
//!
//! Lines of the audit ([`AUDIT_TARGET`]) pass whatever the level is, or else whoever sets the level could do so unseen. They
//! have a buffer and a thread of their own, so that a flood of other lines does not push them out.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use pellucid_http::AUDIT_TARGET;
use tracing::{Metadata, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::Handle;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::log::fields::EscapedFields;

/// Capacity of each buffer, in lines.
const LINES_WAITING: usize = 16_384;

/// Why a log setting was rejected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LogError(String);

/// The log's settings, which can be changed at run time.
pub struct LogControl {
    handle: Handle<EnvFilter, Registry>,
    directive: Mutex<Directive>,
    /// Of the buffer of each writer.
    dropped: [ErrorCounter; 2],
}

/// Keeps the threads of the log alive; on drop, buffered lines are written.
pub struct LogGuard {
    _lines: WorkerGuard,
    _audit: WorkerGuard,
}

#[derive(Clone)]
struct Directive {
    verbosity: u8,
    text: String,
}

/// Starts the log at a klog verbosity. Fails when a log is already set up.
pub fn init(verbosity: u8) -> Result<(Arc<LogControl>, LogGuard), LogError> {
    let text = directive_of(verbosity);
    let (filter, handle) = reload::Layer::new(parse(&text)?);
    let writer =
        || NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_WAITING).finish(io::stderr());
    let ((writer, lines), (audit_writer, audit)) = (writer(), writer());
    let dropped = [writer.error_counter(), audit_writer.error_counter()];
    log_to(filter, writer, audit_writer)
        .try_init()
        .map_err(|e| LogError(format!("the log is set up already: {e}")))?;
    let directive = Mutex::new(Directive { verbosity, text });
    let guard = LogGuard { _lines: lines, _audit: audit };
    Ok((Arc::new(LogControl { handle, directive, dropped }), guard))
}

/// Returns the log: what the filter admits goes to `writer`, and the audit to `audit`.
fn log_to<W, A>(filter: reload::Layer<EnvFilter, Registry>, writer: W, audit: A) -> impl Subscriber
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    A: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let is_audit = |metadata: &Metadata<'_>| metadata.target() == AUDIT_TARGET;
    let writer = audit.with_filter(is_audit).or_else(writer);
    tracing_subscriber::registry().with(filter).with(lines(writer))
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
        self.dropped.iter().map(ErrorCounter::dropped_lines).sum()
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

/// Parses a directive from outside, and adds that the audit passes. Regular expressions are off, and every part must be
/// valid.
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
    // Of two directives the one with the longer target holds, so nothing but this target could stand above the added one.
    if text.contains(AUDIT_TARGET) {
        return Err(LogError(format!(
            "{text:?} is not a log directive: {AUDIT_TARGET} is always written and cannot be set; leave it out"
        )));
    }
    let failed = |e: ParseError| LogError(format!("{text:?} is not a log directive: {e}"));
    let filter = EnvFilter::builder().with_regex(false).parse(text).map_err(failed)?;
    Ok(filter.add_directive(format!("{AUDIT_TARGET}=info").parse().map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::fields::tests::Written;

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
        for text in ["pellucid::audit=off", "info, pellucid::audit[{user}]=off", "pellucid::audit"] {
            let refused = parse(text).map(drop).unwrap_err().to_string();
            assert!(refused.contains("pellucid::audit is always written"), "{refused}");
        }
    }

    /// Writes a line of the audit and one that is not.
    fn two_lines() {
        tracing::info!(target: AUDIT_TARGET, user = "root", verb = "update", "audit");
        tracing::error!("something else");
    }

    #[test]
    fn the_audit_passes_whatever_the_log_is_set_to_and_has_a_writer_of_its_own() {
        let n_lines = |written: &Written| String::from_utf8_lossy(&written.0.lock()).lines().count();
        let (lines, audit) = (Written::default(), Written::default());
        let (to_lines, to_audit) = (lines.clone(), audit.clone());
        let (filter, handle) = reload::Layer::new(parse("info").unwrap());
        let log = log_to(filter, move || to_lines.clone(), move || to_audit.clone());
        tracing::subscriber::with_default(log, || {
            two_lines();
            assert_eq!((n_lines(&audit), n_lines(&lines)), (1, 1));
            let silent =
                ["off", "pellucid=off", "off,[{user}]=off", "pellucid[{user}]=off", "pellucid::audi=off"];
            for (n, text) in silent.into_iter().enumerate() {
                handle.reload(parse(text).unwrap()).unwrap();
                two_lines();
                assert_eq!((n_lines(&audit), n_lines(&lines)), (n + 2, 1), "{text}");
            }
            handle.reload(parse(&directive_of(0)).unwrap()).unwrap();
            two_lines();
            assert_eq!((n_lines(&audit), n_lines(&lines)), (silent.len() + 2, 2), "verbosity 0 shows errors");
        });
        assert!(String::from_utf8_lossy(&audit.0.lock()).contains("audit user=\"root\" verb=\"update\""));
    }
}
