# How many wait for what, with sums that agree everywhere
#: curl -s "$S/apis/v1/summary/pending?by=code,queue"
# The dimensions are code, plugin, resource, resolver, namespace, profile, stage, gang, priority, owner, shape, and the
# groups that plugins know: quota of ElasticQuota, queue of kube-batch.
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
for by in code code,stage resource,resolver plugin,namespace profile,gang,priority quota,code queue,quota,code; do eventually agrees "$by"; done
check '/apis/v1/summary/pending?by=code,namespace,resource' '.rows[]
  | select(.namespace == "default" and .resource == "cpu") | .code == "InsufficientResource" and .pods == 3'
# By quota: the three are of the default quota, and the demo's tree has one pod of each kind.
check '/apis/v1/summary/pending?by=quota,code' '[.rows[] | select(.groups.quota == "vision")]
  | length == 1 and .[0].code == "InsufficientQuota" and .[0].pods == 1'
check '/apis/v1/summary/pending?by=quota&namespace=default' '[.rows[].groups.quota] == ["koordinator-default-quota"]
  and .totalPending == 3'
check '/apis/v1/explain/pods?quota=vision,nlp,search' '[.pods[].name] == ["nlp-1", "search-1", "vision-5"]'
