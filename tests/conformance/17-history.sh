# What happened to a pod, also when it is gone, and a feed of what happens to all
#: curl -s $S/apis/v1/history/pods/default/p1; curl -sN "$S/apis/v1/events?since=0"
. "$(dirname "$0")/prelude.sh"
history=/apis/v1/history/pods/default/p1
attempts() { check $history '[.entries[] | select(.kind == "Refused") | .count] | add >= $n' --argjson n "$1"; }

# A pod fails again each time its requests or the cluster change and it still does not fit.
pod p1 600 '{"spec": {"nodeSelector": null}}'
eventually attempts 1
for i in 2 3 4 5; do
  node "n$i" 1
  eventually attempts "$i"
done
check $history '[.entries[].count] | add >= 5'
check $history '[.entries[] | .first <= .last and .count >= 1 and .message != null] | all'
check $history '[.entries[].id] | . == unique'
check $history '.dropped >= 0 and .lowestId <= .highestId'
check $history '.entries[-1] | .kind == "Refused" and (.codes | index("InsufficientResource") != null) and (.decisionHash | length == 16)'

# The history outlives the pod: a finalizer holds the pod for a while after its deletion was requested.
hold() { send PATCH /api/v1/namespaces/default/pods/p1 <<<"{\"metadata\": {\"finalizers\": $1}}"; }
hold '["example.com/hold"]'
send DELETE /api/v1/namespaces/default/pods/p1 <<<'{}'
eventually check $history '.entries[-1].kind == "Deleting"'
hold '[]'
eventually check $history '(.entries[-2:] | map(.kind) == ["Deleting", "Deleted"]) and ([.entries[].count] | add >= 7)'
# The feed is ahead of the snapshot that explains, by as long as publishing takes.
gone() {
  [ "$(status /apis/v1/explain/pods/default/p1)" = 404 ] &&
    jq -e --arg path "$history" '.code == "PodDeleted" and (.message | contains($path))' "$work/body" >/dev/null
}
eventually gone
eventually check $history '.notPending.code == "PodDeleted"'

# The feed: one JSON object per line, increasing ids, and a cursor to continue from.
# curl ends a feed when its time is over, which is its status 28.
feed() {
  curl -sSN --max-time 2 "$S/apis/v1/events?since=$1" 2>"$work/said" || [ $? = 28 ] || {
    cat "$work/said" >&2
    return 1
  }
}
# What comes within a second or two depends on the machine, so a feed that is still short is read again.
whole() {
  feed 0 >"$work/feed"
  jq -es '[.[].id | numbers] as $i | ($i | length > 50) and $i == ($i | sort | unique)' "$work/feed" >/dev/null &&
    jq -es 'map(select(.pod == "default/p1").kind) | .[0] == "Added" and (.[-1] == "Deleted")' "$work/feed" >/dev/null
}
eventually whole
half=$(jq -s '[.[].id | numbers] | .[length / 2 | floor]' "$work/feed")
rest() {
  feed "$half" >"$work/rest"
  jq -es --argjson half "$half" '[.[].id | numbers] | length > 0 and all(. > $half)' "$work/rest" >/dev/null
}
eventually rest

# Gaps are reported. A cursor of an earlier process (with smaller ids) is recognized; then all entries of this process
# follow.
first=$(jq -s '[.[].id | numbers] | min' "$work/feed")
jq -es '.[0].kind != "Restarted"' "$work/feed" >/dev/null || fail "nothing is missing: $(head -1 "$work/feed")"
feed $((first - 5000)) >"$work/gap"
jq -es --argjson first "$first" '(.[0] | .kind == "Restarted" and .id == null and .from == $first - 4999 and .to == $first - 1
  and (.message | test("nobody knows how much"))) and .[1].id == $first' "$work/gap" >/dev/null || fail "no gap: $(head -2 "$work/gap")"
# The same as server-sent events, for browsers.
sse() {
  curl -sN --max-time 1 -H 'Accept: text/event-stream' "$S/apis/v1/events?since=$half" >"$work/sse" || [ $? = 28 ]
  # The last line may be cut off.
  [ "$(sed -n 's/^data: *//p' "$work/sse" | head -1 | jq .id)" = "$(jq -s '[.[].id | numbers] | min' "$work/rest")" ]
}
eventually sse

# Pushed-out entries and restarts are reported. A second scheduler on the same cluster, in shadow mode, with a small
# recorder.
pellucid=${PELLUCID:-pellucid}
jq -n --arg server "$A" '{apiVersion: "v1", kind: "Config", "current-context": "demo",
  clusters: [{name: "demo", cluster: {server: $server}}], users: [{name: "demo", user: {}}],
  contexts: [{name: "demo", context: {cluster: "demo", user: "demo"}}]}' >"$work/kubeconfig"
second() {
  # The log of the process before must be gone: the shell that starts this one may empty it only after it was read.
  rm -f "$work/log"
  "$pellucid" run --shadow --recorder-bytes 1000 --kubeconfig "$work/kubeconfig" --listen 127.0.0.1:0 >"$work/log" 2>&1 &
  other=$!
  trap 'kill "$other" 2>/dev/null; rm -rf "$work"' EXIT
  eventually grep -qs 'rest=http' "$work/log"
  S=$(grep -o 'rest=http://[0-9.:]*' "$work/log" | head -1 | cut -d= -f2)
  eventually feed_begins "$1"
}
feed_begins() {
  feed "${2:-0}" >"$work/feed"
  jq -es --arg kinds "$1" '[.[].kind] | .[:($kinds | split(" ") | length)] | join(" ") == $kinds' "$work/feed" >/dev/null || {
    head -3 "$work/feed" >&2
    return 1
  }
}
second Gap
jq -es '.[0].from <= .[0].to and .[0].to + 1 == .[1].id' "$work/feed" >/dev/null || fail "$(head -2 "$work/feed")"
last=$(jq -s '.[-1].id' "$work/feed")
kill "$other"
wait "$other" || true
second Gap
eventually feed_begins 'Restarted Gap' "$last"
jq -es --argjson last "$last" '.[0].from == $last + 1 and .[0].to + 1 == .[1].from' "$work/feed" >/dev/null || fail "$(head -2 "$work/feed")"
