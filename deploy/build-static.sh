#!/bin/sh
# Builds the binary that the image holds: linked statically with musl, so that it needs nothing beside itself.
#
# The Dockerfile and try-image.sh both run this. Needs a Rust toolchain with rustup, and a C compiler for musl: it is installed
# when it is missing and this is root on a machine with apt. Prints the path of the binary as the last line.
set -eu
cd "$(dirname "$0")/.."

target="$(uname -m)-unknown-linux-musl"
if ! command -v musl-gcc >/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends musl-tools >&2
fi
rustup target add "$target" >&2
cargo build --release --locked --bin pellucid --target "$target" >&2
echo "${CARGO_TARGET_DIR:-target}/$target/release/pellucid"
