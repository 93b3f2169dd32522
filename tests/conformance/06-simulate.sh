# What would be if, without doing it
#: curl -s -X POST $S/apis/v1/simulate -d @question.json
. "$(dirname "$0")/prelude.sh"

node n1 2
node n2 2
node n3 1
member=$(member_of g6)
group='{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
  "metadata": {"name": "g6", "namespace": "default"}, "spec": {"minMember": 4}}'
for i in 1 2 3 4; do pod_json "m$i" 1 "$member"; done | jq -s . >"$work/pods"
eventually check /apis/v1/nodes/n3 '.ready'

# The state is unchanged afterwards. (The demo's own job may change it between two requests: then the check repeats.)
unchanged() {
  local before
  before=$(ask /apis/v1/statehash | jq -r .hash)
  jq -n --argjson group "$group" --slurpfile pods "$work/pods" '{pods: $pods[0], podGroups: [$group], stateHash: true}' |
    simulate '(.placements | length) == 4 and .refused == [] and (.gangs[0] | .gang == "default/g6" and .hasQuorum)
      and .stateHash == $before' --arg before "$before" || return 1
  jq -c '[.placements[] | {pod, node}] | sort' "$work/sent" >"$work/simulated"
  [ "$(ask /apis/v1/statehash | jq -r .hash)" = "$before" ]
}
eventually unchanged

# Edits count: without n1 there is no quorum, and a copy of n1 restores it.
jq -n --argjson group "$group" --slurpfile pods "$work/pods" \
  '{pods: $pods[0], podGroups: [$group], edits: [{removeNode: "n1"}]}' |
  simulate '.placements == [] and (.refused | length) == 4 and .gangs[0].verdict.code == "GangInsufficientCapacity"'
jq -n --argjson group "$group" --slurpfile pods "$work/pods" \
  '{pods: $pods[0], podGroups: [$group], edits: [{copyNode: {node: "n1", name: "n4"}}, {removeNode: "n1"}]}' |
  simulate '[.placements[].node] | index("n4") != null and index("n1") == null'

# For real, every pod then goes where the simulation placed it.
send POST /apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups <<<"$group"
for i in 1 2 3 4; do pod "m$i" 1 "$member"; done
for i in 1 2 3 4; do eventually bound "m$i"; done
for i in 1 2 3 4; do jq -nc --arg p "default/m$i" --arg n "$(node_of "m$i")" '{pod: $p, node: $n}'; done |
  jq -sc sort >"$work/real"
diff "$work/simulated" "$work/real"

# An invalid question is rejected with the field and its value.
refused() {
  curl -sS -o "$work/sent" -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @- "$S/apis/v1/simulate"
}
[ "$(refused <<<'{"include": ["default/m1"], "edits": [{"copyNode": {"node": "n1", "name": "☃ x"}}]}')" = 400 ]
jq -e '.message | startswith("edits[0].copyNode.name: \"☃ x\" is not ")' "$work/sent" >/dev/null
