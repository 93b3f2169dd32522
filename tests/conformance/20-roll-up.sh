# How many wait for what, with sums that agree everywhere
#: curl -s "$S/apis/v1/summary/pending?by=code,queue"
# Our queue has no named parts: the dimensions are code, plugin, resource, resolver, namespace, profile, stage, gang,
# priority.
. "$(dirname "$0")/prelude.sh"

for i in 1 2 3; do pod "p$i" 600 '{"spec": {"nodeSelector": null}}'; done
for i in 1 2 3; do becomes "p$i" refused; done
agrees() {
  local total
  total=$(ask /apis/v1/summary/pending | jq .totalPending)
  check "/apis/v1/summary/pending?by=$1" '([.rows[].pods] | add) == .totalPending and .totalPending == $n' --argjson n "$total"
  check "/apis/v1/summary/pending?by=$1" '[.rows[] | .units <= .pods] | all'
  # The sum equals the API server's count of pods without a node: all pods of the demo are this scheduler's, of one
  # profile or another.
  [ "$(curl -sSf "$A/api/v1/pods?fieldSelector=status.phase=Pending,spec.nodeName=" | jq '.items | length')" = "$total" ]
  [ "$(ask /metrics | awk '/^pellucid_pending_reasons{/ { sum += $NF } END { print sum }')" = "$total" ]
}
for by in code code,stage resource,resolver plugin,namespace profile,gang,priority; do eventually agrees "$by"; done
check '/apis/v1/summary/pending?by=code,namespace,resource' '.rows[]
  | select(.namespace == "default" and .resource == "cpu") | .code == "InsufficientResource" and .pods == 3'
