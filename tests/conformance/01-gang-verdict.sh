# One GET says why a gang waits
#: curl -s $S/apis/v1/explain/gangs/default/g1
. "$(dirname "$0")/prelude.sh"
gang=/apis/v1/explain/gangs/default/g1

# Three of four pods exist: the gang is not planned.
node n1 3
pod_group g1 4
for i in 1 2 3; do pod "m$i" 1 "$(member_of g1)"; done
eventually check $gang '.verdict.code == "GangQuorumMissing" and .state == "Gated"
  and .counts.min == 4 and .counts.created == 3 and .counts.missing == 1'

# Four pods exist and three fit: one member represents the failure, with what it lacks.
pod m4 1 "$(member_of g1)"
eventually check $gang '.verdict.code == "GangInsufficientCapacity" and .rootCause.pod != null and .counts.placeable == 3'
check $gang '(.members | map(.state) | unique)
  - ["Gated", "Queued", "NotEvaluated", "Evaluated", "Failed", "Waiting", "Permitted", "Bound", "Finished"] == []'
check $gang '.counts | .created == .gated + .pending + .waiting + .permitted + .bound + .finished'
check $gang '[.rootCause.lacking[] | select(.resource == "cpu") | .shortfall == .requested - .available] == [true]'
check $gang '.held.cpuMilli == 0 and .nextRetry != null'

# A member that is refused for another reason than room has its own verdict code.
node n2 1 '{"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}'
delete_pod m4
pod m4 1 "$(member_of g1 | jq '. + {spec: {nodeSelector: {"kubernetes.io/hostname": "n2"}}}')"
eventually check $gang '.verdict.code == "GangMemberUnschedulable" and .rootCause.pod == "default/m4"'
