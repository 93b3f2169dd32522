# Which gang holds what another one waits for, and who waits for each other
#: curl -s $S/apis/v1/gangs/interference
. "$(dirname "$0")/prelude.sh"
graph=/apis/v1/gangs/interference
gang() { echo "/apis/v1/explain/gangs/default/$1"; }

# A member of a NonStrict gang of two, which keeps its place while the other one is tried: gang, name, cores.
member() {
  pod_json "$2" "$3" "$(jq -nc --arg gang "$1" '{metadata: {annotations: {
    "gang.scheduling.koordinator.sh/name": $gang,
    "gang.scheduling.koordinator.sh/min-available": "2",
    "gang.scheduling.koordinator.sh/mode": "NonStrict",
    "gang.scheduling.koordinator.sh/waiting-time": "10m"
  }}}')" | send POST /api/v1/namespaces/default/pods
}
half() { eventually check "$(gang "$1")" '.counts.waiting == 1 and .counts.pending == 1'; }

# Either gang fits on the node, a with 2 + 2 cores and b with 1 + 2. While another pod has a core, each gets one place.
node n1 4
pod filler 1
eventually bound filler
member a a1 2
member a a2 2
half a
check $graph '.edges == [] and .cycles == []'
member b b1 1
member b b2 2
half b

# Each holds what the other one waits for, also when the other pod has left.
deadlock() {
  check $graph '(.cycles | length) >= 1 and ([.edges[] | .heldCpuMilli > 0] | all)' &&
    check $graph '.cycles | map(.gangs) == [["default/a", "default/b"]]' &&
    check $graph '.edges | map({holder, waiter, cpu: .held.cpu, nodes}) == [
      {holder: "default/a", waiter: "default/b", cpu: 2000, nodes: ["n1"]},
      {holder: "default/b", waiter: "default/a", cpu: 1000, nodes: ["n1"]}]'
}
eventually deadlock
check $graph '[.edges[] | .since != null] + [.cycles[] | .breaksAt != null] | all'
delete_pod filler
eventually check "/apis/v1/nodes/n1" '.free.cpu == 1000'
eventually deadlock
check "$(gang a)" '.blocker.kind == "holders" and .blocker.gangs == ["default/b"]'

# Without one of them, the other gets its places and nobody waits.
for pod in a1 a2; do delete_pod "$pod"; done
eventually check $graph '.cycles == []'
for pod in b1 b2; do eventually bound "$pod"; done
check $graph '.edges == []'
