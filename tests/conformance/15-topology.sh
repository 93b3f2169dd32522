# Whether one rack has room for the whole gang
#: curl -s $S/apis/v1/explain/gangs/default/g1/topology
. "$(dirname "$0")/prelude.sh"
of=/apis/v1/explain/gangs/default/g1/topology

# A member of g1 that has to be in the same rack as the others.
member() {
  pod_json "$1" 1 "$(member_of g1)" | jq '. * {
    metadata: {labels: {job: "g1"}},
    spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
      {topologyKey: "rack", labelSelector: {matchLabels: {job: "g1"}}}
    ]}}}
  }' | send POST /api/v1/namespaces/default/pods
}
rack() { jq -nc --arg rack "$1" '{metadata: {labels: {rack: $rack}}}'; }

# Two racks of three places, and a gang of four that has to be in one.
node n1 2 "$(rack r1)"
node n2 1 "$(rack r1)"
node n3 3 "$(rack r2)"
pod_group g1 4
for i in 1 2 3 4; do member "m$i"; done
eventually check $of '.verdict.code == "TopologyFragmented" and ([.domains[].slots] | add) >= .required'
check $of '.key == "rack" and .required == 4 and .best.slots == 3 and .best.missing == 1'
check $of '(.domains | map(.slots) | max) == .best.slots and .best.missing == (.required - .best.slots)'
check $of '.domains | map({value, nodes, slots, cpu: .free.cpu}) | sort_by(.value) == [
  {value: "r1", nodes: 2, slots: 3, cpu: 3000}, {value: "r2", nodes: 1, slots: 3, cpu: 3000}]'
# Node by node, which nothing requires of this gang.
check "$of?key=kubernetes.io/hostname" '.domains | map({(.value): .slots}) | add | {n1, n2, n3} == {n1: 2, n2: 1, n3: 3}'

# A pod in each rack: not even all racks together have enough.
pod f1 1 '{"spec": {"nodeSelector": {"rack": "r1"}}}'
pod f2 1500m '{"spec": {"nodeSelector": {"rack": "r2"}}}'
eventually bound f1
eventually bound f2
eventually check $of '.verdict.code == "TopologyShort" and ([.domains[].slots] | add) < .required'
delete_pod f1
delete_pod f2

# What was missing is added to a rack: that one takes them all.
node n4 1 "$(rack r2)"
for i in 1 2 3 4; do eventually bound "m$i"; done
for i in 1 2 3 4; do node_of "m$i"; done | sort | uniq -c | awk '{print $2 "=" $1}' | paste -sd' ' >"$work/nodes"
[ "$(cat "$work/nodes")" = "n3=3 n4=1" ] || fail "the members are on: $(cat "$work/nodes")"
check $of '.required == 0'
[ "$(status /apis/v1/explain/gangs/default/none/topology)" = 404 ]
