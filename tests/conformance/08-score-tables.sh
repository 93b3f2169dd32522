# Score tables of some pods, for some time
#: curl -s -X PUT $S/debug/flags/s -d '{"topN": 5, "selector": "app=x", "ttlSeconds": 60, "maxRecords": 100}'; curl -s $S/apis/v1/scores/default/p1
. "$(dirname "$0")/prelude.sh"

for i in 1 2 3 4 5 6 7; do node "n$i" $((i + 2)); done
send PUT /debug/flags/s "$S" <<<'{"topN": 5, "selector": "app=x", "ttlSeconds": 60, "maxRecords": 100, "owner": "checks"}'
jq -e '.active and .owner == "checks" and .scope == {selector: "app=x"} and .recordsLeft == 100' "$work/sent" >/dev/null
pod other 1 '{"metadata": {"labels": {"app": "y"}}}'
pod p1 1 '{"metadata": {"labels": {"app": "x"}}}'
eventually bound p1
eventually bound other

table=/apis/v1/scores/default/p1
eventually check $table '.rows | length == 5'
check $table '.winner == .rows[0].node and .feasibleNodes == 7'
check $table '[.rows[] | ([.plugins[].weighted] | add) == .total] | all'
check $table '[.rows[].plugins[] | .skipped or .weighted == .weight * .normalized] | all'
check $table '[.rows[].total] | . == (sort | reverse)'
check $table '.winner == $node' --arg node "$(node_of p1)"
# A pod that the selector does not match has no table.
[ "$(status /apis/v1/scores/default/other)" = 404 ]
# The same as Markdown and as CSV: a header and five rows.
[ "$(ask "$table?format=table" | grep -c '^| *[0-9]')" = 5 ] || fail "$(ask "$table?format=table")"
[ "$(ask "$table?format=csv" | wc -l)" = 6 ] || fail "$(ask "$table?format=csv")"

# Exactly the requested number of records.
send PUT /debug/flags/s "$S" <<<'{"topN": 2, "selector": "app=z", "ttlSeconds": 60, "maxRecords": 1, "owner": "checks"}'
for i in 1 2; do
  pod "z$i" 1 '{"metadata": {"labels": {"app": "z"}}}'
  eventually bound "z$i"
done
eventually check /apis/v1/scores/default/z1 '.rows | length == 2'
[ "$(status /apis/v1/scores/default/z2)" = 404 ]

# The switch expires by itself.
send PUT /debug/flags/s "$S" <<<'{"topN": 5, "selector": "app=x", "ttlSeconds": 1, "owner": "checks"}'
eventually check /apis/v1/scores '.active == false'
eventually check /apis/v1/debug '[.active[] | select(.flag == "s")] == []'
