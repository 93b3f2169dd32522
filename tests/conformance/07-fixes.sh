# What contradicts what, and the least that would help
#: curl -s "$S/apis/v1/explain/pods/default/p1/suggestions?max=5"
. "$(dirname "$0")/prelude.sh"
path='/apis/v1/explain/pods/default/p1/suggestions?max=5'

# Only n1 belongs to the pool; it has a taint and is full.
node n1 2 '{"spec": {"taints": [{"key": "checks", "effect": "NoSchedule"}]}}'
pod filler 2
eventually bound filler
send PATCH /api/v1/nodes/n1 <<<'{"spec": {"taints": [{"key": "checks", "effect": "NoSchedule"}, {"key": "closed", "effect": "NoSchedule"}]}}'
eventually check /apis/v1/nodes/n1 '.taints | length == 2'
pod p1 1
becomes p1 refused
check "$path" '.fitsNow == false and (.conflicts | length) >= 1 and (.fixes | length) >= 1'
check "$path" '[.conflicts[].requirements | length >= 1] | all'
check "$path" '[.fixes[].verified] | all'
check "$path" '[.fixes[].cost] | . == sort'
check "$path" '[.fixes[] | .cost == ([.parts[].cost] | add) and .edits == [.parts[].edit]] | all'
ask "$path" >"$work/fixes"

# Each fix makes the pod fit when applied, and does not when a part of it is left out.
jq -c '.fixes[].edits' "$work/fixes" | while read -r edits; do
  jq -n --argjson edits "$edits" '{include: ["default/p1"], edits: $edits}' |
    simulate '[.placements[].pod] | index("default/p1") != null'
  for i in $(jq -n --argjson edits "$edits" '$edits | keys[]'); do
    jq -n --argjson edits "$edits" --argjson i "$i" '{include: ["default/p1"], edits: ($edits | del(.[$i]))}' |
      simulate '[.refused[].pod] == ["default/p1"]'
  done
done
# At least one fix has several parts: the taint is removed, and the pod in the way is deleted.
jq -e '[.fixes[] | select(.node == "n1") | [.edits[] | keys[0]] | sort] | index([["deletePod", "removeTaint"]]) != null' "$work/fixes" >/dev/null

# The cheapest fix that changes no pod has commands. Applied to the real cluster, the pod is bound.
jq -e '[.fixes[] | select([.parts[].recreate] | any | not)][0]' "$work/fixes" >"$work/fix"
jq -e '[.parts[].command | strings] | length >= 1' "$work/fix" >/dev/null
carry_out() {
  local subject
  subject=$(jq -r --argjson i "$1" '.edits[$i] | to_entries[0].value | .node? // .' "$work/fix" 2>/dev/null || true)
  case $(jq -r --argjson i "$1" '.edits[$i] | keys[0]' "$work/fix") in
    labelNode)
      jq --argjson i "$1" '.edits[$i].labelNode | {metadata: {labels: {(.key): .value}}}' "$work/fix" |
        send PATCH "/api/v1/nodes/$subject"
      ;;
    removeTaint)
      curl -sSf "$A/api/v1/nodes/$subject" |
        jq --slurpfile fix "$work/fix" --argjson i "$1" '$fix[0].edits[$i].removeTaint as $gone
          | {spec: {taints: [.spec.taints[]? | select(.key != $gone.key)]}}' |
        send PATCH "/api/v1/nodes/$subject"
      ;;
    uncordon) send PATCH "/api/v1/nodes/$subject" <<<'{"spec": {"unschedulable": false}}' ;;
    deletePod) send DELETE "/api/v1/namespaces/${subject%/*}/pods/${subject#*/}" <<<'{}' ;;
    *) fail "no idea how to do $(jq -c --argjson i "$1" '.edits[$i]' "$work/fix")" ;;
  esac
}
for i in $(jq '.edits | keys[]' "$work/fix"); do carry_out "$i"; done
eventually bound p1 "$(jq -r .node "$work/fix")"

# For a gang, fixes are counted in slots, and each gives the gang a quorum.
gang=/apis/v1/explain/gangs/demo/too-many-gpus/suggestions
check $gang '.slotsMissing >= 1 and (.fixes | length) >= 1 and ([.fixes[] | .verified and .slots >= .gang.min] | all)'
ask $gang | jq -c '.fixes[].edits' | while read -r edits; do
  jq -n --argjson edits "$edits" '{includeGangs: ["demo/too-many-gpus"], edits: $edits}' |
    simulate '.gangs[] | select(.gang == "demo/too-many-gpus") | .hasQuorum'
done
