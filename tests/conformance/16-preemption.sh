# Who had to go for whom, told by both sides
#: curl -s $S/apis/v1/explain/pods/default/high/preemption
. "$(dirname "$0")/prelude.sh"
of() { echo "/apis/v1/explain/pods/default/$1/preemption"; }
class() {
  jq -n --arg name "$1" --argjson value "$2" --arg policy "$3" '{apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass",
    metadata: {name: $name}, value: $value, preemptionPolicy: $policy}' | send POST /apis/scheduling.k8s.io/v1/priorityclasses
}
class high 1000 PreemptLowerPriority
class polite 1000 Never

# Two nodes with one pod each, one of them under a budget that allows no disruption.
node n1 2
node n2 2
pod low 2 '{"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}'
pod guarded 2 '{"metadata": {"labels": {"app": "guarded"}}, "spec": {"nodeSelector": {"kubernetes.io/hostname": "n2"}}}'
send POST /apis/policy/v1/namespaces/default/poddisruptionbudgets <<<'{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
  "metadata": {"name": "guarded", "namespace": "default"},
  "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}'
eventually bound low n1
eventually bound guarded n2
counted() {
  curl -sSf "$A/apis/policy/v1/namespaces/default/poddisruptionbudgets/guarded" |
    jq -e '.status.currentHealthy == 1 and .status.disruptionsAllowed == 0' >/dev/null
}
eventually counted
uid=$(curl -sSf "$A/api/v1/namespaces/default/pods/low" | jq -r .metadata.uid)

# A pod that may not preempt waits, and its message says so.
pod polite 2 '{"spec": {"priorityClassName": "polite"}}'
becomes polite refused
check /apis/v1/explain/pods/default/polite '.message | test("Never|not eligible")'
check "$(of polite)" '.nomination == null and .preemption == null and (.message | test("not eligible|Never"))'

# A pod that may preempt takes the room of the pod without a budget.
pod high 2 '{"spec": {"priorityClassName": "high"}}'
eventually bound high n1
eventually check "$(of high)" '.ended[0] | .node == "n1" and .end == "bound" and [.victims[].uid] == [$uid]
  and ([.victims[].violatesBudget] | any | not)' --arg uid "$uid"
bound guarded n2
# The search compared both nodes and shows what decided.
check "$(of high)" '.search == null or (.search.candidates[0].node == "n1" and .search.decidedBy != null)'
# The victim shows who evicted it and by which rule.
check "$(of low)" '.asVictim | .preemption.name == "high" and .victim.uid == $uid and (.rule | length > 0)' --arg uid "$uid"
check /apis/v1/explain/pods/default/low/evictions '.events[0] | .preemptor == "default/high" and .type == "Preemption" and .state == "gone"
  and .end == "bound" and .violatesBudget == false and (.lacked.reasons | map(.code) | index("InsufficientResource") != null)'
check /apis/v1/evictions '.count >= 1 and (.evictions | map(select(.victim == "default/low"))[0].node == "n1")'
check /apis/v1/history/pods/default/low '.entries | map(select(.kind == "Evicted"))[0] | .by == "default/high" and (.message | test("lacked"))'
check /apis/v1/history/pods/default/high '.entries | map(select(.kind == "PreemptionEnded"))[0] | .victims == ["default/low"]'
# What was compared is still there after it happened.
check "$(of high)" '(.chosen.victims | map(.uid) | length) >= 1 and .verdict.code == "Preempted"
  and (.search.candidates[1].passedOver | test("budget"))'
# Its policy forbids it, and so says the verdict.
check "$(of polite)" '.verdict.code == "PreemptionNotAllowed"'
