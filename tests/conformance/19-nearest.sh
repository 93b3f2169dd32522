# The nodes that come nearest, and who would have to leave
#: curl -s "$S/apis/v1/explain/pods/default/p1/nearest?k=5"
. "$(dirname "$0")/prelude.sh"
path='/apis/v1/explain/pods/default/p1/nearest?k=50'

node n1 4
node n2 2
node n3 4 '{"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}'
for i in 1 2 3; do
  pod "filler$i" 1 '{"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}'
  eventually bound "filler$i" n1
done
pod p1 3
becomes p1 refused
check "/apis/v1/explain/pods/default/p1/nearest?k=5" '.nodes | length == 5'
check "$path" '.feasibleNodes == 0 and ([.nodes[].distance] | . == sort)'
check "$path" '.nodes[0] | .node == "n1" and (.failed | map(.code)) == ["InsufficientResource"] and (.wouldFree | length) == 2
  and (.shortfalls[] | select(.resource == "cpu") | .shortfall == .requested - .available and .shortfall == 2000)'
# At equal distance, failures that removing pods can fix come before those that it cannot.
check "$path" '[.nodes[] | {distance, static: ([.failed[].static] | any)}] | . as $all
  | [range(1; length) | $all[. - 1].distance < $all[.].distance or ($all[. - 1].static | not) or $all[.].static] | all'

# The explanation and its summary name the same nodes.
ask "$path" | jq -c '[.nodes[].node]' >"$work/near"
check /apis/v1/explain/pods/default/p1 '.nearest.exampleNodes as $n | $n == $near[0][:$n | length] and (.nearest.count >= ($n | length))
  and (.summary | contains("Nearest is \($near[0][0]): "))' --slurpfile near "$work/near"

# Once those pods are gone the pod fits there; while one of them remains, it does not.
ask "$path" | jq '{include: ["default/p1"], edits: [.nodes[0].wouldFree[] | {deletePod: .}]}' >"$work/question"
simulate '.placements | map(select(.pod == "default/p1").node) == ["n1"]' <"$work/question"
jq 'del(.edits[0])' "$work/question" | simulate '[.refused[].pod] == ["default/p1"]'
