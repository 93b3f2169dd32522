# Every code that is seen anywhere is registered
#: curl -s $S/apis/v1/reasons
. "$(dirname "$0")/prelude.sh"

# Some of each kind: refused pods, gangs, a preemption, fixes, errors. The demo has more.
node n1 2
node n2 1 '{"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}'
pod_group g25 2
pod m1 1 "$(member_of g25)"
for cpu in 1 2 8; do pod "p$cpu" "$cpu"; done
eventually bound p1 n1
becomes p8 refused
becomes p2 refused

ask /apis/v1/reasons >"$work/reasons"
jq -e '[.reasons[], .states[] | .code] | length == (unique | length)' "$work/reasons" >/dev/null || fail "the registry: $(head -c 600 "$work/reasons")"
jq -e '[.reasons[] | .code, .meaning, .plugin, .remedy, .resolver | type == "string" and length > 0] | all' "$work/reasons" >/dev/null || fail "the registry: $(head -c 600 "$work/reasons")"
jq -e '[.states[] | .code, .meaning, .whereSeen | type == "string" and length > 0] | all' "$work/reasons" >/dev/null || fail "the registry: $(head -c 600 "$work/reasons")"

jq -e '[.reasons[] | (.terminalFor | IN("node", "pod", "gang", "nothing")) and (.example.message | length > 0)] | all' "$work/reasons" >/dev/null || fail "the registry: $(head -c 600 "$work/reasons")"

# Each path, for each pod, gang and node, and for objects that do not exist.
ask /apis/v1/explain/pods | jq -r '.pods[] | "\(.namespace)/\(.name)"' >"$work/pods"
echo default/p1 >>"$work/pods"
ask /apis/v1/plugins/Coscheduling/gangs | jq -r 'keys[]' >"$work/gangs"
{
  ask /apis/v1/__services__ | jq -r '.GET[]' | grep '^/apis' | while read -r path; do
    case $path in
      */gang/:namespace/:name | */gangs/:namespace/:name*)
        while read -r gang; do echo "${path/:namespace\/:name/$gang}"; done <"$work/gangs"
        echo "${path/:namespace\/:name/none/none}"
        ;;
      */:namespace/:name*)
        while read -r pod; do echo "${path/:namespace\/:name/$pod}"; done <"$work/pods"
        echo "${path/:namespace\/:name/none/none}"
        ;;
      *:nodeName*) for node in n1 n2 tiny-01 none; do echo "${path/:nodeName/$node}"; done ;;
      */events | */snapshot) ;;
      *) echo "$path" ;;
    esac
  done
  while read -r pod; do echo "/apis/v1/explain/pods/$pod?mode=exhaustive&refresh=true&versus=n1"; done <"$work/pods"
  echo '/apis/v1/explain/pods?limit=nonsense'
  echo '/apis/v1/queue?position=none'
  echo '/apis/v1/summary/pending?by=nonsense'
  echo /apis/v1/nothing
} >"$work/paths"
[ "$(wc -l <"$work/paths")" -ge 150 ]
# One curl call for all of them.
sed "s|.*|url = \"$S&\"|" "$work/paths" | curl -s -K - >"$work/answers"
curl -sS "$S/apis/v1/simulate" -X POST -H 'Content-Type: application/json' -d '{"include": ["default/p8", "default/p2"]}' >>"$work/answers"
curl -sS "$S/apis/v1/simulate" -X POST -H 'Content-Type: application/json' -d '{"include": ["default/none"]}' >>"$work/answers"

jq -rs '[.[] | .. | objects | (.code?, .codes?, .failedCodes?) | strings, (arrays[] | strings), (objects | keys[])] | unique[]' \
  "$work/answers" >"$work/seen"
[ "$(wc -l <"$work/seen")" -ge 20 ]
jq -nR --slurpfile r "$work/reasons" '[inputs] - [$r[0].reasons[].code, $r[0].states[].code]' "$work/seen" >"$work/unknown"
jq -e '. == []' "$work/unknown" >/dev/null || fail "not registered: $(jq -c . "$work/unknown")"
