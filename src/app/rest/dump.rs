//! Dumps as files, as `GET /apis/v1/snapshot` returns them and `pellucid replay --snapshot` reads them.
//!
//! A dump is one gzip file with the same bytes for the same snapshot. `diagnosis::dump` defines its content.

use std::io::{Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::dump::{Dump, Source};
use pellucid_http::{Kind, Param, Params, ReadError, Route};
use pellucid_model::cancellation;
use serde_json::Value;

/// Most bytes of an unpacked document that are read.
const LONGEST: u64 = 4 << 30;

/// Returns the route that serves a dump. `configuration` is the effective one.
pub fn route(configuration: Value) -> Route<Snapshot> {
    let read = move |snapshot: &Snapshot, params: &Params, _: &_| {
        let redact = params.boolean("redact")?.unwrap_or(true);
        let dump = Dump::of(&Source { snapshot, configuration: &configuration, redact });
        pack(&dump).map_err(|error| {
            ReadError::Unavailable("SnapshotFailed", format!("the snapshot could not be written: {error}"))
        })
    };
    Route::bytes(
        "/apis/v1/snapshot",
        "history",
        "All that decisions depend on, and what was decided, as one gzip file",
        "application/gzip",
        read,
    )
    .described(
        "Made of one published state: objects, those of plugins' kinds too, places, nominations, gangs, configuration, seed, queue, and verdicts with \
         the hashes of their decisions. `pellucid replay --snapshot FILE --pod NS/NAME` decides again. Environment, \
         commands, secrets and annotations that no plugin declares are not known here and therefore not in it.",
    )
    .param(
        Param::query(
            "redact",
            Kind::Boolean,
            "Leave out labels that nobody selects by, messages, and values that cannot be read; true unless said otherwise",
        )
        .example("true"),
    )
}

/// Packs a dump into the bytes of a file.
fn pack(dump: &Dump) -> std::io::Result<Vec<u8>> {
    // The gzip header carries no time and no name, so that the bytes depend on the dump alone.
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::fast());
    for piece in dump.to_json()?.chunks(1 << 20) {
        cancellation::check();
        gzip.write_all(piece)?;
    }
    gzip.finish()
}

/// Reads a dump from a file, gzipped or not.
pub fn read(path: &Path) -> anyhow::Result<Dump> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| anyhow::anyhow!("cannot read {name}: {error}"))?;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(&*bytes).take(LONGEST).read_to_end(&mut text);
        unpacked
            .map_err(|error| anyhow::anyhow!("{name} is a broken gzip file, or not a whole one: {error}"))?;
        text
    } else {
        bytes
    };
    Dump::from_json(&bytes).map_err(|error| anyhow::anyhow!("{name}: {error}"))
}
