# Why there and not on that other node
#: curl -s "$S/apis/v1/explain/placements/default/p1?versus=n2"
. "$(dirname "$0")/prelude.sh"
path=/apis/v1/explain/placements/default/p1

node n1 8
node n2 6
node n3 6 '{"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}'
eventually check /apis/v1/nodes/n3 .ready
# n1 has the most room, and the pod weakly prefers n2.
likes() {
  jq -nc '{spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution:
    [{weight: 1, preference: {matchExpressions: [{key: "kubernetes.io/hostname", operator: "In", values: ["n2"]}]}}]}}}}'
}
pod p1 1 "$(likes)"
eventually bound p1 n2
check "$path?versus=n1" '.chosen == "n2" and .outcome == "LowerScore" and .totalGap == .total.chosen - .total.versus'
check "$path?versus=n1" '([.plugins[].gap] | add) == .totalGap'
check "$path?versus=n1" '[.plugins[] | .gap == .weighted.chosen - .weighted.versus] | all'
check "$path?versus=n1" '(.decisive | index("NodeAffinity") != null) and (.opposing | index("NodeResourcesFit") != null)'
check "$path?versus=n3" '.outcome == "FilteredOut" and .reason.reasons[0].code == "UntoleratedTaint"'
for node in $(ask /apis/v1/nodes | jq -r '.nodes[].name | select(. != "n2")'); do
  check "$path?versus=$node" '.outcome | IN("FilteredOut", "LowerScore", "TieBreak", "NotSampled")'
done

# Without a decisive plugin, an equal pod goes elsewhere.
for plugin in $(ask "$path?versus=n1" | jq -r '.decisive[]'); do
  jq -n --argjson pod "$(pod_json p2 1 "$(likes)")" --arg plugin "$plugin" \
    '{pods: [$pod], edits: [{deletePod: "default/p1"}, {setWeight: {plugin: $plugin, weight: 0}}]}' |
    simulate '.placements[0] | .pod == "default/p2" and .node == "n1"'
done
# With all weights unchanged, it goes to the same node.
jq -n --argjson pod "$(pod_json p2 1 "$(likes)")" '{pods: [$pod], edits: [{deletePod: "default/p1"}]}' |
  simulate '.placements[0].node == "n2"'
