# Functions shared by the checks. Each other script in this folder is one check. With a demo running,
#   pellucid demo &
#   bash tests/conformance/01-gang-verdict.sh
# runs one by hand. S is the scheduler's REST API, A the API server of the demo. Requires bash, curl and jq.
set -Eeuo pipefail
S=${S:-http://127.0.0.1:10251}
A=${A:-http://127.0.0.1:8001}
work=$(mktemp -d)
# A command that ends a check without a word is named.
trap 'echo "line $LINENO of $0: status $?: $BASH_COMMAND" >&2' ERR
trap 'rm -rf "$work"' EXIT

# Prints what the scheduler answers; fails unless the status is a success.
ask() { curl -sSf "$S$1"; }

# Prints only the status of an answer.
status() { curl -s -o "$work/body" -w '%{http_code}' "${2:-$S}$1"; }

# Checks a response with a jq filter: `check /apis/v1/queue '.units | length > 0'`. Further arguments go to jq.
check() {
  local path=$1 filter=$2
  shift 2
  curl -sSf "$S$path" >"$work/answer" || return 1
  if ! jq -e "$@" "$filter" "$work/answer" >"$work/result" 2>&1; then
    { echo "not so: $filter"; echo "of $path:"; head -c 3000 "$work/answer"; echo; tail -3 "$work/result"; } >&2
    return 1
  fi
}

# Repeats a command until it succeeds, for at most half a minute; prints its last output.
eventually() {
  local end=$((SECONDS + 30))
  until "$@" 2>"$work/why"; do
    if ((SECONDS > end)); then
      cat "$work/why" >&2
      echo "never came true: $*" >&2
      return 1
    fi
    sleep 0.05
  done
}

# Fails with a message.
fail() {
  echo "$*" >&2
  exit 1
}

# Sends JSON: `send POST /api/v1/nodes <<<'{...}'`.
send() {
  local kind=application/json
  [ "$1" = PATCH ] && kind=application/merge-patch+json
  curl -sS --fail-with-body -o "$work/sent" -X "$1" -H "Content-Type: $kind" --data-binary @- "${3:-$A}$2" || {
    cat "$work/sent" >&2
    return 1
  }
}

# Creates a node of the pool `checks`, which no other pods of the demo use: name, cores, further fields.
node() {
  jq -n --arg name "$1" --arg cpu "$2" --argjson more "${3:-"{}"}" '{
    apiVersion: "v1", kind: "Node",
    metadata: {name: $name, labels: {pool: "checks", "kubernetes.io/hostname": $name}},
    spec: {taints: [{key: "checks", effect: "NoSchedule"}]},
    status: {
      allocatable: {cpu: $cpu, memory: "16Gi", pods: "20"}, capacity: {cpu: $cpu, memory: "16Gi", pods: "20"},
      conditions: [{type: "Ready", status: "True"}]
    }
  } * $more' | send POST /api/v1/nodes
}

# Prints a pod for that pool: name, cores, further fields.
pod_json() {
  jq -n --arg name "$1" --arg cpu "$2" --argjson more "${3:-"{}"}" '{
    apiVersion: "v1", kind: "Pod", metadata: {name: $name, namespace: "default"},
    spec: {
      schedulerName: "pellucid", nodeSelector: {pool: "checks"},
      tolerations: [{key: "checks", operator: "Exists"}],
      containers: [{name: "c", image: "i", resources: {requests: {cpu: $cpu}}}]
    }
  } * $more'
}

# Creates such a pod.
pod() { pod_json "$@" | send POST /api/v1/namespaces/default/pods; }

# Creates a PodGroup: name, quorum, further fields of its spec.
pod_group() {
  jq -n --arg name "$1" --argjson min "$2" --argjson more "${3:-"{}"}" '{
    apiVersion: "scheduling.x-k8s.io/v1alpha1", kind: "PodGroup",
    metadata: {name: $name, namespace: "default"}, spec: ({minMember: $min} + $more)
  }' | send POST /apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups
}

# Prints the label that makes a pod a member of a PodGroup.
member_of() { jq -nc --arg gang "$1" '{metadata: {labels: {"scheduling.x-k8s.io/pod-group": $gang}}}'; }

# Deletes a pod and waits until the scheduler has forgotten it.
delete_pod() {
  send DELETE "/api/v1/namespaces/default/pods/$1" <<<'{"gracePeriodSeconds": 0}'
  eventually gone "$1"
}
gone() { [ "$(status "/apis/v1/explain/pods/default/$1")" = 404 ]; }

# Succeeds when the API server has bound the pod to a node, or to the given node.
bound() {
  curl -sSf "$A/api/v1/namespaces/default/pods/$1" |
    jq -e --arg node "${2:-}" '.spec.nodeName as $n | $n != null and ($node == "" or $n == $node)' >/dev/null
}

# Prints the pod's node.
node_of() { curl -sSf "$A/api/v1/namespaces/default/pods/$1" | jq -r .spec.nodeName; }

# Waits until the pod's last attempt had this outcome: `placed` or `refused`.
becomes() { eventually check "/apis/v1/explain/pods/default/$1" '.verdict == $v' --arg v "$2"; }

# Simulates the question on standard input, and checks the response.
simulate() {
  send POST /apis/v1/simulate "$S"
  jq -e "$@" "$work/sent" >"$work/result" || {
    { echo "not so: $*"; head -c 3000 "$work/sent"; } >&2
    return 1
  }
}
