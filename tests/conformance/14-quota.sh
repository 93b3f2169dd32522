# Which quota from the root down refuses a pod, by how much, and what would change it
#: curl -s $S/apis/v1/explain/pods/default/p1/quota
. "$(dirname "$0")/prelude.sh"
of=/apis/v1/explain/pods/default/p1/quota
quotas=/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas
prefix=quota.scheduling.koordinator.sh

# Prints a quota: name, min and max of CPU, parent.
quota_json() {
  jq -n --arg name "$1" --arg min "$2" --arg max "$3" --arg parent "${4:-}" --arg prefix "$prefix" '{
    apiVersion: "scheduling.sigs.k8s.io/v1alpha1", kind: "ElasticQuota",
    metadata: {name: $name, namespace: "default", labels: ({($prefix + "/is-parent"): ($parent == "" | tostring)}
      + if $parent == "" then {} else {($prefix + "/parent"): $parent} end)},
    spec: {min: {cpu: $min}, max: {cpu: $max}}
  }'
}
member() { jq -nc --arg quota "$1" --arg prefix "$prefix" '{metadata: {labels: {($prefix + "/name"): $quota}}}'; }

node n1 10
quota_json dept 4 8 | send POST $quotas
quota_json team 2 4 dept | send POST $quotas
quota_json other 2 8 dept | send POST $quotas
eventually check /apis/v1/plugins/ElasticQuota/quotas 'has("team") and .other.parentName == "dept"'
pod p0 3 "$(member team)"
becomes p0 placed
pod p1 2 "$(member team)"
becomes p1 refused

# One level refuses, and its numbers add up.
check $of '[.path[].quota] == ["koordinator-root-quota", "dept", "team"] and .quota == "team"'
check $of '[.path[] | select(.blocking)] | length == 1'
check $of '.path[] | select(.blocking) | .quota == "team" and .resource == "cpu" and .shortfall == 1000
  and .shortfall == (.used + .requested - .limit) and .headroom == (.limit - .used)'
check $of '.path[2] | {min, max, used, runtime, request, borrowed}
  == {min: 2000, max: 4000, used: 3000, runtime: 4000, request: 5000, borrowed: 2000}'
check $of '.path[2].consumers == [{pod: "default/p0", used: 3000}]'
check $of '.code == "InsufficientQuota" and (.text | startswith("quota team: cpu used 3 + 2 > max 4"))'
check /apis/v1/explain/pods/default/p1 '.notes[0].more == $of and (.summary | contains("quota team: cpu used 3 + 2 > max 4"))' --arg of $of
check /apis/v1/explain/pods/default/p0/quota '.code == null and ([.path[] | select(.blocking)] == [])'

# Raised by what is missing it takes the pod, by less it does not.
for max in 5=1 4999m=0; do
  quota_json team 2 "${max%=*}" dept | jq '{include: ["default/p1"], edits: [{applyObject: .}]}' |
    simulate '(.placements | length) == $n' --argjson n "${max#*=}"
done

# What would help was tried: raising max by as much, another quota, a smaller request, and p0 gone.
fixes=/apis/v1/explain/pods/default/p1/suggestions
check $fixes '[.fixes[].verified] | all'
check $fixes '[.fixes[].text | split(" ")[0:3] | join(" ")] | sort
  == ["let pod default/p0", "move it to", "raise max of", "request 1 of"]'
check $fixes '.fixes[] | select(.text | startswith("raise")) | .parts[0].command
  | contains("patch elasticquotas.scheduling.sigs.k8s.io team --type=merge")'
ask $fixes | jq '.fixes[] | select(.text | startswith("raise")) | .parts[0].command
  | capture("-p .(?<patch>.*).$").patch | fromjson' | send PATCH $quotas/team
eventually bound p1 n1
check $of '.code == null'
[ "$(status /apis/v1/explain/pods/default/nobody/quota)" = 404 ]
