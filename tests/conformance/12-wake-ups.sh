# What would wake a pod, and what its plugins said of what happened
#: curl -s $S/apis/v1/explain/pods/default/p1/wakeups
. "$(dirname "$0")/prelude.sh"
path=/apis/v1/explain/pods/default/p2/wakeups

node n1 2
node n2 1
pod here 2
eventually bound here n1
pod there 1
eventually bound there n2
for i in 1 2; do pod "p$i" 2; done
for i in 1 2; do becomes "p$i" refused; done
check $path '.stage == "unschedulable" and (.refusedBy | index("NodeResourcesFit") != null)'
check $path '.waitsFor[] | select(.plugin == "NodeResourcesFit") | .events | index("Pod/Delete") != null'

# A label that the pod does not select changes: its plugin is asked and returns Skip.
send PATCH /api/v1/nodes/n1 <<<'{"metadata": {"labels": {"shelf": "3"}}}'
eventually check $path '.events[] | select(.object == "n1" and .event == "Node/UpdateNodeLabel" and .woke == false)
  | .verdicts == [{plugin: "NodeAffinity", verdict: "Skip"}]'

# A pod is deleted whose room does not suffice.
delete_pod there
eventually check $path '.events[] | select(.object == "default/there" and .event == "Pod/Delete" and .woke == false)
  | .verdicts == [{plugin: "NodeResourcesFit", verdict: "Skip"}]'

# The pod in the way is deleted, which wakes both. The first takes the room; the second is refused and shows what woke
# it.
delete_pod here
eventually bound p1 n1
eventually check $path '.wokenBy | .event == "Pod/Delete" and .object == "default/here" and .woke
  and (.verdicts | map(select(.plugin == "NodeResourcesFit").verdict) == ["Queue"])'
check /apis/v1/explain/pods/default/p1/wakeups '.stage == "bound" and .waitsFor == []
  and .wokenBy.object == "default/here"'
