# How old an answer is, where it comes from, and what would be said now
#: curl -s "$S/apis/v1/explain/pods/default/p1?refresh=true"
. "$(dirname "$0")/prelude.sh"
p1=/apis/v1/explain/pods/default/p1

node n1 1
pod p1 4
becomes p1 refused
eventually check $p1 '.meta | .leader and .cycleId > 0 and .decidedAt <= .generatedAt and .costMicros >= 0'

# A label that no plugin waits for does not wake the pod; the node has changed nevertheless.
generation=$(ask $p1 | jq .meta.snapshotGeneration)
send PATCH /api/v1/nodes/n1 <<<'{"metadata": {"labels": {"shelf": "3"}}}'
eventually check $p1 '.meta | .stale and .refreshed == false and .inheritedFrom == null'
check "$p1?refresh=true" '.meta | .stale == false and .refreshed and .snapshotGeneration > $before' --argjson before "$generation"

# An equal pod that comes second inherits the results for the nodes.
inherited() {
  pod_json "$1" 4 '{"metadata": {"labels": {"twin": "yes"}}}' | jq '.metadata.name = "a\(.metadata.name)"' |
    send POST /api/v1/namespaces/default/pods
  pod "b$1" 4 '{"metadata": {"labels": {"twin": "yes"}}}'
  becomes "b$1" refused
  check "/apis/v1/explain/pods/default/b$1" '.meta.inheritedFrom == "default/a\($n)"' --arg n "$1"
}
# It does not if the demo's own job placed a pod in between.
inherited 1 || inherited 2 || inherited 3
