# Who of a gang has a place, since when and until when
#: curl -s $S/apis/v1/plugins/Coscheduling/gang/default/g3
# Members wait with a place only in mode NonStrict; here they are `waiting`, where other schedulers say permitted.
. "$(dirname "$0")/prelude.sh"
gang=/apis/v1/plugins/Coscheduling/gang/default/g3
held() { ask /apis/v1/plugins/Coscheduling/gangs | jq '[.[].held.cpuMilli] | add'; }
reserved() {
  ask /apis/v1/nodes | jq -r '.nodes[].name' | while read -r node; do ask "/apis/v1/nodes/$node"; done |
    jq -s '[.[].reserved.cpu // 0] | add'
}
as_much_as_is_reserved() { [ "$(held)" = "$(reserved)" ]; }

eventually as_much_as_is_reserved
before=$(held)

node n1 2
more='{"metadata": {"annotations": {"gang.scheduling.koordinator.sh/name": "g3",
  "gang.scheduling.koordinator.sh/min-available": "3", "gang.scheduling.koordinator.sh/mode": "NonStrict",
  "gang.scheduling.koordinator.sh/waiting-time": "12s"}}}'
for i in 1 2 3; do pod "m$i" 1 "$more"; done

# Two members find a place and wait for the third.
eventually check $gang '.counts.waiting == 2 and (.waitingForBindChildren | length) == 2'
check $gang '[.waitingForBindChildren[] | .stage == "waiting" and .node == "n1" and .deadline > .since] | all'
check $gang '.held.cpuMilli == 2000 and .state == "Waiting" and .timeouts == 0'
check /apis/v1/nodes/n1 '.reserved.cpu == 2000 and .free.cpu == 0'
check /apis/v1/nodes '.nodes[] | select(.name == "n1") | .reserved.cpu == 2000 and .reserved.pods > 0 and .nominated == {}'
# The sum of what all gangs hold equals what is reserved on all nodes.
eventually as_much_as_is_reserved
[ "$(held)" = $((before + 2000)) ] || fail "$(held) held, $before before"

# The deadline releases all members.
eventually check $gang '.timeouts >= 1 and .lastRelease.code == "GangWaitTimeout" and .lastRelease.members == 2'
