# Every plugin shows its config, state, stats and schema
#: curl -s $S/apis/v1/plugins
. "$(dirname "$0")/prelude.sh"
plugins=/apis/v1/plugins

check $plugins '([.profiles[].points[][].name] | unique) - ([.plugins[].name] | unique) == []'
ask /openapi.json >"$work/openapi"
ask $plugins >"$work/plugins"
jq -r '.plugins[].name' "$work/plugins" >"$work/names"
[ "$(wc -l <"$work/names")" -ge 20 ]
while read -r name; do
  check "$plugins/$name/config" '.plugin == $name' --arg name "$name"
  check "$plugins/$name/stats" '.plugin == $name' --arg name "$name"
  check "$plugins/$name/schema" '.plugin == $name and .args.type == "object" and (.points | length) >= 1' --arg name "$name"
  check "$plugins/$name/schema" '. as {$points} | $all[0].profiles
    | [.[].points | to_entries[] | select([.value[].name] | index($name)) | .key] - $points == []' \
    --slurpfile all "$work/plugins" --arg name "$name"
  # Each profile that enables the plugin shows its arguments and counters, with no argument that the schema lacks.
  jq --arg name "$name" '[.profiles[] | select([.points[][].name] | index($name)) | .schedulerName] | sort' \
    "$work/plugins" >"$work/profiles"
  check "$plugins/$name/config" '(.profiles | keys) == $in[0]' --slurpfile in "$work/profiles"
  check "$plugins/$name/stats" '(.profiles | keys) == $in[0]' --slurpfile in "$work/profiles"
  ask "$plugins/$name/schema" >"$work/schema"
  check "$plugins/$name/config" '[.profiles[] | keys[]] - ($schema[0].args.properties // {} | keys) == []' \
    --slurpfile schema "$work/schema"
  # The state has the fields that the OpenAPI document requires, and no undocumented ones.
  check "$plugins/$name/state" '. as $body | $openapi[0] as $o
    | $o.paths["/apis/v1/plugins/\($name)/state"].get.responses["200"].content["application/json"].schema
    | [(.allOf // [.])[] | if has("$ref") then $o.components.schemas[."$ref" | split("/")[-1]] else . end]
    | (map(.required // []) | add) - ($body | keys) == []
      and ($body | keys) - (map(.properties | keys) | add) == []' \
    --slurpfile openapi "$work/openapi" --arg name "$name"
done <"$work/names"

# Everywhere, what does not exist is a 404 with a code and a message.
ask /apis/v1/__services__ | jq -r '.GET[] | select(test(":nodeName|:namespace"))' |
  sed 's/:nodeName/none/; s/:namespace/default/; s/:name/none/' >"$work/paths"
[ "$(wc -l <"$work/paths")" -ge 10 ]
while read -r path; do
  [ "$(status "$path")" = 404 ] || fail "$path: $(cat "$work/body")"
  jq -e '(.code | type) == "string" and (.message | type) == "string"' "$work/body" >/dev/null || fail "$path"
done <"$work/paths"
