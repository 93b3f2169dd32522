#!/usr/bin/env bash
# Prints how long builds take, from nothing and after a change. Uses a target folder of its own, which it removes.
#
#   benches/build-times.sh          # everything: about 20 minutes on two cores
#   benches/build-times.sh release  # only the release build from nothing and after a change in one plugin
#
# The downloads of dependencies are not in the numbers: they are fetched first.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
export CARGO_TARGET_DIR=$target
plugin=src/plugins/in_tree/node_name/mod.rs

cargo fetch --locked --quiet

# timed NAME COMMAND...: prints wall and CPU time of a command that must succeed.
timed() {
    local name=$1 log=$target/log
    shift
    TIMEFORMAT='%0R %0U %0S'
    local took
    took=$({ time "$@" >"$log" 2>&1; } 2>&1) || { cat "$log" >&2; exit 1; }
    awk -v name="$name" '{ printf "| %-58s | %5d s | %5d s |\n", name, $1, $2 + $3 }' <<<"$took"
}

printf '%s, %s cores, %s\n\n' "$(rustc --version)" "$(nproc)" "$(git describe --always --dirty)"
printf '| %-58s | %7s | %7s |\n' "what" "wall" "CPU"
printf '|%s|%s|%s|\n' "$(printf -- '-%.0s' {1..60})" "--------:" "--------:"
timed "cargo build --release, from nothing" cargo build --release --locked
touch "$plugin"
timed "cargo build --release, after a change in one plugin" cargo build --release --locked
[ "${1:-all}" = release ] && exit 0
timed "cargo check, from nothing" cargo check --locked
touch "$plugin"
timed "cargo check, after a change in one plugin" cargo check --locked
rm -rf "$target"/debug
timed "cargo test --workspace --locked, from nothing" cargo test --workspace --locked
