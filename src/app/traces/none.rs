//! The exporter of a binary that was built without the cargo feature `otel`: it cannot be started.

use super::Traces;

/// There is none.
#[derive(Debug)]
pub enum Exporter {}

impl Exporter {
    /// Says that there is none, and how to get one.
    pub fn start(endpoint: &str) -> anyhow::Result<(Traces, Self)> {
        anyhow::bail!(
            "--otlp-endpoint {endpoint}: this binary was built without traces; \
             `cargo build --release --features otel` builds one with them"
        )
    }

    /// Cannot be called.
    pub async fn stop(self) {
        match self {}
    }
}
