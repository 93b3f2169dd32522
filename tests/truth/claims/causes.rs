//! All causes of each node against the model: each that is listed is so, and none is left out.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::case::Case;
use crate::model::{Causes, Model, claims};
use crate::objects::{list, text};
use crate::report::Tally;

/// Looks at pods without volumes.
pub(crate) fn look(case: &Case, pods: usize, tally: &mut Tally) {
    look_at(case, pods, false, tally);
}

/// Looks at pods with volumes.
pub(crate) fn look_at_volumes(case: &Case, pods: usize, tally: &mut Tally) {
    look_at(case, pods, true, tally);
}

fn look_at(case: &Case, pods: usize, with_volumes: bool, tally: &mut Tally) {
    let has_volumes = |key: &String| claims(case.objects.pod(key)).next().is_some();
    let keys = case.sample(usize::MAX).into_iter().filter(|key| has_volumes(key) == with_volumes);
    for key in keys.take(pods) {
        one(case, &key, tally);
    }
}

fn one(case: &Case, key: &str, tally: &mut Tally) {
    let model = Model::new(&case.objects, key);
    let body = case.of_pod(key, "?mode=exhaustive&nodes=100");
    let all = &body["exhaustive"];
    if all["truncated"] == true {
        return tally.skip(case, "cut", || format!("{key}: exhaustive is cut"));
    }
    let of_whole = list(&all["podReasons"]).first().map(|reason| text(&reason["code"]));
    if let Some(code) = of_whole {
        // Every filter refuses a pod that is for no node; it may say so of the pod or of its nodes.
        let is_so = model.of_whole().contains(&code)
            || case.objects.nodes.keys().all(|node| model.causes(node).iter().any(|(own, _)| own == code))
            || code.starts_with("Gang");
        return tally.check(case, "of the whole pod", is_so, || {
            format!("{key}: {code}, the objects say {:?}", model.of_whole())
        });
    }
    for name in case.objects.nodes.keys() {
        let own = model.causes(name);
        let said = said(&all["nodes"][name]);
        let differ = |a: &Causes, b: &Causes| a.difference(b).cloned().collect::<Vec<_>>();
        let (missing, extra) = (differ(&own, &said), differ(&said, &own));
        let code = missing.first().or(extra.first()).map_or("", |(code, _)| code);
        let how = if missing.is_empty() { "too much" } else { "left out" };
        tally.check(case, &format!("{how}: {code}"), missing.is_empty() && extra.is_empty(), || {
            format!("{key} on {name}: left out {missing:?}, too much {extra:?}, of {said:?}")
        });
    }
    first_cause_is_listed(case, key, &body, tally);
    tally.agree(case, "feasible", count_feasible(case, &model) == all["feasibleNodes"], || {
        format!("{key}: {} nodes take it", all["feasibleNodes"])
    });
}

fn count_feasible(case: &Case, model: &Model<'_>) -> usize {
    case.objects.nodes.keys().filter(|node| model.causes(node).is_empty()).count()
}

fn said(node: &Value) -> Causes {
    let one = |failed: &Value| {
        let code = text(&failed["code"]);
        // Other subjects tell which term or port is meant; which causes there are is what is compared.
        let has_subject = matches!(code, "UntoleratedTaint" | "InsufficientResource");
        (code.to_owned(), if has_subject { text(&failed["subject"]).to_owned() } else { String::new() })
    };
    list(&node["failed"]).iter().map(one).collect()
}

/// What refused a node first is among all that refuses it.
fn first_cause_is_listed(case: &Case, key: &str, body: &Value, tally: &mut Tally) {
    if body["meta"]["stale"] == true || body["gang"].is_object() {
        return;
    }
    let nodes: BTreeMap<&str, Causes> = body["exhaustive"]["nodes"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, node)| (name.as_str(), said(node)))
        .collect();
    for group in list(&body["nodeGroups"]) {
        for (node, reason) in list(&group["exampleNodes"])
            .iter()
            .flat_map(|n| list(&group["reasons"]).iter().map(move |r| (n, r)))
        {
            let code = text(&reason["code"]);
            let is_listed =
                nodes.get(text(node)).is_some_and(|causes| causes.iter().any(|(own, _)| own == code));
            tally.agree(case, "first cause", is_listed, || {
                format!("{key}: {node} is refused for {code}, and all its causes are {:?}", nodes[text(node)])
            });
        }
    }
}
