# Who is before a pod in the queue
#: curl -s "$S/apis/v1/queue?position=default/p1"
. "$(dirname "$0")/prelude.sh"
queue=/apis/v1/queue

# Three pods for a pool that does not exist, with priorities that differ from their order of creation.
send POST /apis/scheduling.k8s.io/v1/priorityclasses <<<'{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
  "metadata": {"name": "first"}, "value": 100}'
pod p1 1
pod p2 1
pod p3 1 '{"spec": {"priorityClassName": "first"}}'
for i in 1 2 3; do becomes "p$i" refused; done
for i in 1 2 3; do
  check "$queue?position=default/p$i" '.position == (.ahead | length) and .unit == $unit' --arg unit "default/p$i"
done
# Sorted by priority, then by arrival.
check $queue '[.units[] | select(.key | startswith("default/"))] | [.[].key] == ["default/p3", "default/p1", "default/p2"]
  and ([.[].position] | . == sort)'
# A running queue cannot be stopped: while it processes a crowd, every response holds for one moment.
jq -n '{apiVersion: "batch/v1", kind: "Job", metadata: {name: "crowd", namespace: "default"},
  spec: {parallelism: 60, completions: 60, template: {spec: {restartPolicy: "Never", schedulerName: "pellucid",
  nodeSelector: {pool: "nobody-has"}, containers: [{name: "c", image: "i"}]}}}}' |
  send POST /apis/batch/v1/namespaces/default/jobs
for _ in 1 2 3 4 5 6 7 8 9 10; do
  check "$queue?position=default/p2" '.position == (.ahead | length) and ([.ahead[].priority] | . == (sort | reverse))'
done

# Each pending pod is in one stage, and every pod without a node is listed.
check $queue '[.units[].pods[]] | length == (unique | length)'
check $queue '[.units[].stage] - ["active", "backoff", "errorBackoff", "unschedulable", "gated", "inFlight"] == []'
all_there() {
  curl -sSf "$A/api/v1/pods?fieldSelector=status.phase=Pending,spec.nodeName=" |
    jq '[.items[].metadata | "\(.namespace)/\(.name)"]' >"$work/pending"
  ask /apis/v1/quarantine | jq '[.objects[] | "\(.namespace)/\(.name)"]' >"$work/quarantined"
  ask "/apis/v1/explain/gangs/demo/render" | jq '[.members[] | select(.state == "Waiting") | .pod]' >"$work/waiting"
  check $queue '($pending[0] - $quarantined[0] - $waiting[0] | sort) == ([.units[] | select(.stage != "inFlight") | .pods[]] | sort)' \
    --slurpfile pending "$work/pending" --slurpfile quarantined "$work/quarantined" --slurpfile waiting "$work/waiting"
}
eventually all_there

# Units are taken in that order: a node with room for one pod is added, and then another.
ask $queue | jq -r '.units[].key | select(test("^default/p[123]$"))' >"$work/order"
i=0
while read -r pod; do
  node "n$((i += 1))" 1
  eventually bound "${pod#*/}" "n$i"
done <"$work/order"
[ $i = 3 ]
