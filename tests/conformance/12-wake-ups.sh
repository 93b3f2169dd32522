# What would wake a pod, and what its plugins said of what happened
#: curl -s $S/apis/v1/explain/pods/default/p1/wakeups
. "$(dirname "$0")/prelude.sh"
path=/apis/v1/explain/pods/default/p1/wakeups

node n1 2
for i in 1 2; do
  pod "here$i" 1
  eventually bound "here$i" n1
done
pod p1 2
becomes p1 refused
check $path '.stage == "unschedulable" and (.refusedBy | index("NodeResourcesFit") != null)'
check $path '.waitsFor[] | select(.plugin == "NodeResourcesFit") | .events | index("Pod/Delete") != null'

# A label changes that the pod does not ask about: its plugin is asked, and does not welcome it.
send PATCH /api/v1/nodes/n1 <<<'{"metadata": {"labels": {"shelf": "3"}}}'
eventually check $path '.events[] | select(.object == "n1" and .event == "Node/UpdateNodeLabel" and .woke == false)
  | .verdicts == [{plugin: "NodeAffinity", verdict: "Skip"}]'

# A pod in the way goes: that is welcome, although it does not suffice.
delete_pod here1
eventually check $path '.wokenBy | .event == "Pod/Delete" and .object == "default/here1" and .woke
  and (.verdicts | map(select(.plugin == "NodeResourcesFit").verdict) == ["Queue"])'
# The other one goes too, and the pod fits.
delete_pod here2
eventually bound p1 n1
check $path '.stage == "bound" and .waitsFor == []'
