# Every reason of every node, not only the first
#: curl -s "$S/apis/v1/explain/pods/default/p1?mode=exhaustive"
. "$(dirname "$0")/prelude.sh"
path='/apis/v1/explain/pods/default/p1?mode=exhaustive'
taint='{"spec": {"taints": [{"key": "checks", "effect": "NoSchedule"}, {"key": "closed", "effect": "NoSchedule"}]}}'

node n1 1 "$taint"
pod p1 2
becomes p1 refused
# The node is tainted and too small; a cycle stops at the taint, exhaustive mode does not.
check $path '.exhaustive.nodes.n1.failed | map(.code) | index("UntoleratedTaint") != null and index("InsufficientResource") != null'
check $path '[.nodeGroups[].reasons[].code] | index("UntoleratedTaint") != null and index("InsufficientResource") == null'
check $path '.exhaustive | ([.groups[].count] | add) + .feasibleNodes == .totalNodes'
check $path '.exhaustive.codes.UntoleratedTaint | .nodesBlocked >= 1 and .soleBlockerNodes == 0'
check $path '.exhaustive.codes.NodeAffinityMismatch.nodesBlocked == .exhaustive.totalNodes - 1'
open='{"spec": {"taints": [{"key": "checks", "effect": "NoSchedule"}]}}'
# The taint is no node's only reason, so removing it makes no node feasible.
send PATCH /api/v1/nodes/n1 <<<"$open"
eventually check $path '.exhaustive.feasibleNodes == 0 and (.exhaustive.nodes.n1.failed | map(.code)) == ["InsufficientResource"]'
check $path '.exhaustive.codes.InsufficientResource.soleBlockerNodes == 1'

# On a node that is large enough the taint is the only reason, so removing it makes that node feasible.
node n2 4 "$taint"
eventually check $path '.exhaustive.nodes.n2 != null and .exhaustive.codes.UntoleratedTaint.soleBlockerNodes == 1'
send PATCH /api/v1/nodes/n2 <<<"$open"
eventually bound p1 n2
