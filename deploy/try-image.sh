#!/bin/sh
# Tries what the Dockerfile makes, without a Docker engine: builds the binary with the same script, puts it alone into an empty
# folder, and runs it there as the image's user.
#
# Needs root, for chroot, and the ports of the demo. Takes as long as a release build.
set -eu
cd "$(dirname "$0")/.."

binary="$(deploy/build-static.sh | tail -n 1)"
if ldd "$binary" 2>&1 | grep -q '=>'; then
    echo "$binary is not static:" >&2
    ldd "$binary" >&2
    exit 1
fi
image="$(mktemp -d)"
cp "$binary" "$image/pellucid"
chmod 755 "$image"

inside() {
    chroot --userspec=65532:65532 "$image" /pellucid "$@"
}

log="$image.log"
url=http://127.0.0.1:10251
# Not through the function: a shell of its own would be killed in place of the demo.
chroot --userspec=65532:65532 "$image" /pellucid demo >"$log" 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; rm -rf "$image" "$log"' EXIT
tries=0
until inside probe --url "$url/readyz" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ] || ! kill -0 "$demo" 2>/dev/null; then
        echo "the scheduler was not ready:" >&2
        cat "$log" >&2
        exit 1
    fi
    sleep 0.5
done
inside --version
echo "static, $(($(stat -c %s "$binary") / 1048576)) MiB, ready on its own at $url"
