# A file of the whole state, and the decision made again from it
#: curl -s $S/apis/v1/snapshot -o s.gz; pellucid replay --snapshot s.gz --pod default/p1
. "$(dirname "$0")/prelude.sh"
pellucid=${PELLUCID:-pellucid}
# The replay gives the recorded hash.
same() {
  "$pellucid" replay --snapshot "$1" --pod "$2" -o json >"$work/replay"
  ask "/apis/v1/history/pods/$2" | jq '[.entries[].decisionHash | strings][-1]' >"$work/hash"
  jq -e '.equal and .decisionHash == $hash[0]' --slurpfile hash "$work/hash" "$work/replay" >/dev/null ||
    fail "$2: $(cat "$work/replay") and not $(cat "$work/hash")"
}

for i in 1 2 3; do node "n$i" $((i + 3)); done
for i in 1 2 3 4; do
  pod "placed$i" 1 '{"metadata": {"annotations": {"note": "hunter2"}}}'
  eventually bound "placed$i"
done
pod big 64 '{"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}],
  "envFrom": [{"secretRef": {"name": "hunter2"}}], "command": ["hunter2"], "resources": {"requests": {"cpu": "64"}}}]}}'
becomes big refused
known() { check "/apis/v1/history/pods/default/$1" '[.entries[].decisionHash | strings] | length > 0'; }
for pod in placed1 placed4 big; do eventually known "$pod"; done

# Redacted by default; whole or redacted, the decisions are the same.
curl -sSf "$S/apis/v1/snapshot" -o "$work/s.gz"
curl -sSf "$S/apis/v1/snapshot?redact=false" -o "$work/whole.gz"
for file in "$work/s.gz" "$work/whole.gz"; do
  for pod in default/placed1 default/placed4 default/big demo/needs-500-cores demo/gated demo/ranks-1; do same "$file" "$pod"; done
done
# Neither contains a pod's environment, secrets or commands.
for file in "$work/s.gz" "$work/whole.gz"; do
  gunzip -c "$file" >"$work/plain"
  grep -q big "$work/plain"
  ! grep -q hunter2 "$work/plain" || fail "a secret is in $file"
done
gunzip -c "$work/s.gz" | grep -q '"redacted":true'
