# A pod's verdict, with numbers that add up
#: curl -s $S/apis/v1/explain/pods/default/p1
. "$(dirname "$0")/prelude.sh"
adds_up='([.nodeGroups[].count] | add) + .notEvaluated == .totalNodes'
lacks='[.nodeGroups[].shortfalls[] | .requested - .available == .shortfall] | length > 0 and all'

node n1 2
node n2 4 '{"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}'
pod p1 3
becomes p1 refused
check /apis/v1/explain/pods/default/p1 "$adds_up"
check /apis/v1/explain/pods/default/p1 "$lacks"
check /apis/v1/explain/pods/default/p1 '.nodeGroups[] | select(.exampleNodes == ["n1"])
  | .plugin == "NodeResourcesFit" and .count == 1 and [.reasons[].code] == ["InsufficientResource"]
    and (.shortfalls[] | select(.resource == "cpu") | [.requested, .available, .shortfall] == [3000, 2000, 1000])'
check /apis/v1/explain/pods/default/p1 '.nodeGroups | map(.reasons[].code) | index("UntoleratedTaint") != null'

# The same holds for every pending pod, whatever it waits for.
ask /apis/v1/explain/pods | jq -r '.pods[] | select(.verdict == "refused") | "\(.namespace)/\(.name)"' >"$work/pods"
[ "$(wc -l <"$work/pods")" -ge 9 ]
while read -r pod; do
  check "/apis/v1/explain/pods/$pod" "(.nodeGroups == []) or ($adds_up)"
  check "/apis/v1/explain/pods/$pod" '[.nodeGroups[].shortfalls[] | .requested - .available == .shortfall] | all'
done <"$work/pods"
