//! The exporter of a binary without the cargo feature `otel`. It cannot be started.

use super::Traces;

/// The missing exporter; it has no values.
#[derive(Debug)]
pub enum Exporter {}

impl Exporter {
    /// Fails with a message on how to build with traces.
    pub fn start(endpoint: &str) -> anyhow::Result<(Traces, Self)> {
        anyhow::bail!(
            "--otlp-endpoint {endpoint}: this binary was built without traces; \
             `cargo build --release --features otel` builds one with them"
        )
    }

    /// Cannot be called, since no value exists.
    pub async fn stop(self) {
        match self {}
    }
}
