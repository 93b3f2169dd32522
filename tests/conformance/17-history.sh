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

# It outlives the pod. (Deleting: marked for deletion, which takes it out of the state; Deleted: gone at once.)
send DELETE /api/v1/namespaces/default/pods/p1 <<<'{}'
eventually check $history '(.entries[-1].kind | IN("Deleting", "Deleted")) and ([.entries[].count] | add >= 6)'
[ "$(status /apis/v1/explain/pods/default/p1)" = 404 ]

# The feed: one JSON object on each line, ids that rise, and a place to go on from.
feed() { curl -sN --max-time "${2:-2}" "$S/apis/v1/events?since=$1" || [ $? = 28 ]; }
feed 0 >"$work/feed"
jq -es '[.[].id | numbers] as $i | ($i | length > 50) and $i == ($i | sort | unique)' "$work/feed" >/dev/null
jq -es 'map(select(.pod == "default/p1").kind) | .[0] == "Added" and (.[-1] | IN("Deleting", "Deleted"))' "$work/feed" >/dev/null
half=$(jq -s '[.[].id | numbers] | .[length / 2 | floor]' "$work/feed")
feed "$half" >"$work/rest"
jq -es --argjson half "$half" '[.[].id | numbers] | length > 0 and all(. > $half)' "$work/rest" >/dev/null
# The same as server-sent events, for browsers.
curl -sN --max-time 1 -H 'Accept: text/event-stream' "$S/apis/v1/events?since=$half" >"$work/sse" || [ $? = 28 ]
[ "$(sed -n 's/^data: *//p' "$work/sse" | jq -s '[.[].id | numbers] | min')" = "$(jq -s '[.[].id | numbers] | min' "$work/rest")" ]
