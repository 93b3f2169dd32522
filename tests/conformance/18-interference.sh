# Which gang holds what another one waits for, and who waits for each other
#: curl -s $S/apis/v1/gangs/interference
. "$(dirname "$0")/prelude.sh"
graph=/apis/v1/gangs/interference

# A member of a NonStrict gang of two that may only be on one node, and keeps its place while it waits for the other one.
member() {
  pod_json "$2" 1 "$(jq -nc --arg gang "$1" --arg node "$3" '{
    metadata: {annotations: {
      "gang.scheduling.koordinator.sh/name": $gang,
      "gang.scheduling.koordinator.sh/min-available": "2",
      "gang.scheduling.koordinator.sh/mode": "NonStrict",
      "gang.scheduling.koordinator.sh/waiting-time": "10m"
    }},
    spec: {nodeSelector: {"kubernetes.io/hostname": $node}}
  }')" | send POST /api/v1/namespaces/default/pods
}

# Gang a has a place on n1 and waits for n2, which another pod has.
node n1 1
node n2 1
pod single 1 '{"spec": {"nodeSelector": {"kubernetes.io/hostname": "n2"}}}'
eventually bound single
member a a1 n1
member a a2 n2
eventually check /apis/v1/explain/gangs/default/a '.counts.waiting == 1 and .counts.pending == 1'
check $graph '.cycles == []'
