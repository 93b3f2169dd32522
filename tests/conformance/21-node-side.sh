# What a node refuses, and what of it nobody can use
#: curl -s $S/apis/v1/explain/nodes/n1
. "$(dirname "$0")/prelude.sh"
n1=/apis/v1/explain/nodes/n1

# All cores are used, four GPUs are idle, and pods request both.
node n1 2 '{"status": {"allocatable": {"nvidia.com/gpu": "4"}, "capacity": {"nvidia.com/gpu": "4"}}}'
node n2 1
pod filler 2
eventually bound filler n1
gpus='{"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]}}'
# More than the demo's own pods, which request GPUs and do not tolerate the taint.
for i in 1 2 3 4 5 6 7 8 9; do pod "p$i" 1 "$gpus"; done
for i in 1 2 3 4 5 6 7 8 9; do becomes "p$i" refused; done
check $n1 '(.accepts | length) + (.refuses | length) == .pendingConsidered and .pendingConsidered == .pendingTotal'
check $n1 '.stranded[] | select(.resource == "nvidia.com/gpu") | .blockedBy == "cpu" and .amount == 4 and .pods >= 6'
check $n1 '[.refuses[].pod] | index("default/p1") != null and index("default/p2") != null'

# For each pair, the reason equals that in the pod's own explanation of the node.
for node in n1 n2 tiny-01 gpu-01; do
  ask "/apis/v1/explain/nodes/$node" >"$work/node"
  for pod in $(jq -r '.refuses[] | select(.gang == null and .plugin != "SchedulingGates") | .pod' "$work/node"); do
    check "/apis/v1/explain/pods/$pod?refresh=true&versus=$node" '($in[0].refuses[] | select(.pod == $pod)) as $pair
      | .versus.reason | .plugin == $pair.plugin and [.reasons[].code] == [$pair.reasons[].code]' \
      --slurpfile in "$work/node" --arg pod "$pod"
  done
done

# Every node refuses a gated pod for its gates.
pod held 1 '{"spec": {"schedulingGates": [{"name": "later"}]}}'
eventually check /apis/v1/explain/nodes/n2 '.refuses[] | select(.pod == "default/held") | .reasons[0].code == "SchedulingGated"'
# A node accepts a pod that waits for another reason, here for the rest of its gang.
pod_group g21 2
pod m1 1 "$(member_of g21)"
eventually check /apis/v1/explain/nodes/n2 '[.accepts[].pod] | index("default/m1") != null'
check /apis/v1/explain/nodes/n2 '(.accepts | length) + (.refuses | length) == .pendingConsidered'

# Card by card: what is free of the demo's shared GPUs is of no use to pods that want whole ones, and adds up.
rig=/apis/v1/explain/nodes/rig-01
ask /apis/v1/plugins/DeviceShare/nodes/rig-01 >"$work/cards"
check $rig '[.stranded[] | select(.part // "" | startswith("gpu")) | {part, amount}]
  == [$cards[0].devices[] | select(.deviceType == "gpu" and .freePercent > 0) | {part: "gpu \(.minor)", amount: .freePercent}]' \
  --slurpfile cards "$work/cards"
check $rig '[.stranded[] | select(.part // "" | startswith("gpu"))] | length >= 2 and all(.[]; .blockedBy == "gpu-core" and .pods >= 3)'
# Those nodes refuse the pod card by card, and say so.
check /apis/v1/explain/pods/demo/whole-card/devices '.totalNodes == 3 and .acceptingNodes == 0
  and ([.nodes[] | .requests[0] | (.lacking | add) + .fitting == .devices] | all)'
# A pod that moves frees a card, as the fix says; for real.
fixes=/apis/v1/explain/pods/demo/whole-card/suggestions
check $fixes '.fixes[0] | .verified and (.text | test("^move pod demo/.* from gpu [0-9] of rig-0[0-9] to rig-0[0-9]$"))'
ask $fixes | jq '{include: ["demo/whole-card"], edits: .fixes[0].edits}' | simulate '(.placements | length) == 2'
