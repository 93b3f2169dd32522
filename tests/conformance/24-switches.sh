# Who records what and until when, what it costs, and that it changes no decision
#: curl -s $S/apis/v1/debug
. "$(dirname "$0")/prelude.sh"
debug=/apis/v1/debug
switch() { send PUT "/debug/flags/$1" "$S"; }

for i in 1 2 3 4; do node "n$i" $((i + 2)); done
# Decisions with every switch off, for comparison.
decide() {
  jq -n --argjson pod "$(pod_json asked 1)" '{pods: [$pod], scores: 4}' | simulate '.placements | length == 1'
  jq -S '{placements, refused, scores: [.scores[] | {rows, winner}]}' "$work/sent"
}
pod before 1
eventually bound before
node_of before >"$work/before"
delete_pod before
decide >"$work/off"

# On: with owner, expiry and scope, and an entry in the audit.
switch s <<<'{"value": 3, "namespace": "default", "ttlSeconds": 60, "owner": "checks"}'
switch f <<<'{"value": true, "namespace": "default", "ttlSeconds": 60, "owner": "checks"}'
eventually check $debug '.active | length == 2'
check $debug '[.active[] | .expiresAt != null and .setBy != null and .owner == "checks" and .scope == {namespace: "default"}] | all'
check $debug '[.audit[] | select(.why == "set") | .flag] | sort == ["f", "s"]'

# The same pod goes to the same node, and a simulated one would, with the same scores.
pod before 1
eventually bound before "$(cat "$work/before")"
eventually check /apis/v1/scores/default/before '.rows | length == 3'
delete_pod before
decide >"$work/on"
diff "$work/off" "$work/on"

# Switched off by its number, which the audit shows too.
for id in $(ask $debug | jq '.active[].id'); do
  switch "$(ask $debug | jq -r --argjson id "$id" '.active[] | select(.id == $id) | .flag')" <<<"{\"id\": $id, \"off\": true}"
done
eventually check $debug '.active == [] and ([.audit[] | select(.why == "ended")] | length == 2)'

# One shot: one record, then the switch is used up.
switch s <<<'{"value": 3, "selector": "app=shot", "oneShot": true, "owner": "checks"}'
for i in 1 2; do
  pod "shot$i" 1 '{"metadata": {"labels": {"app": "shot"}}}'
  eventually bound "shot$i"
done
eventually check /apis/v1/scores '[.tables[] | select(.name | test("^shot"))] | length == 1'
eventually check $debug '.active == [] and .audit[0].why == "used up"'

# It expires after its time.
switch s <<<'{"value": 3, "selector": "app=none", "ttlSeconds": 1, "owner": "checks"}'
eventually check $debug '.active == [] and .audit[0].why == "expired"'

# The meter: what is always on (L0) and what is recorded (L1), as a share of the time spent in attempts. The benches
# measure its limits on a release build.
check $debug '.cost | .cycleSeconds > 0 and .l0Seconds >= 0 and .l1Seconds > 0 and .budgetPercent > 0'
# Its metrics: each level once, in seconds; together less than the time of attempts, and never decreasing.
meter() {
  ask /metrics | awk '/^pellucid_(diagnosis|cycle)_seconds_total/ { print $1, $NF }' | LC_ALL=C sort >"$1"
  awk '{ if ($2 !~ /^[0-9.]+(e-?[0-9]+)?$/) bad = 1; of[$1] = $2 }
    END {
      all = of["pellucid_cycle_seconds_total"]; level = "pellucid_diagnosis_seconds_total{level=\"L"
      l0 = of[level "0\"}"]; l1 = of[level "1\"}"]; l2 = of[level "2\"}"]
      exit !(!bad && NR == 4 && l0 > 0 && l1 > 0 && l2 > 0 && l0 + l1 < all && all < 3600 && l2 < 3600)
    }' "$1" || fail "the meter: $(cat "$1")"
}
meter "$work/before.meter"
check $debug '.cost.l0Seconds >= $l0' --argjson l0 "$(awk '/L0/ { print $2 }' "$work/before.meter")"
pod after 1
eventually bound after
meter "$work/after.meter"
LC_ALL=C join "$work/before.meter" "$work/after.meter" | awk '$3 < $2 { exit 1 }' || fail "it fell: $(cat "$work/before.meter" "$work/after.meter")"
