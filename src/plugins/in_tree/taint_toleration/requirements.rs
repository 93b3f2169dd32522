//! Words for taints that a pod does not tolerate, and for tolerations that miss one by little.

use std::collections::BTreeMap;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::View;
use pellucid_model::similar::similar;
use pellucid_model::taint::{Taint, Toleration, TolerationOperator, tolerated};
use pellucid_model::{NodeIdx, PodSpec};

use super::{NAME, refuses};
use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, detail};

/// Iterates over the taints that keep a pod away.
pub(super) fn untolerated<'a>(spec: &'a PodSpec, taints: &'a [Taint]) -> impl Iterator<Item = &'a Taint> {
    taints.iter().filter(|taint| refuses(taint) && !tolerated(&spec.tolerations, taint))
}

/// Returns a taint as kubectl writes it: `key=value:effect`.
pub(super) fn text(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
    format!("{}{value}:{}", taint.key, taint.effect.as_str())
}

/// Describes each taint of the refusing nodes that the pod does not tolerate, the most frequent first.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let mut counts: BTreeMap<&Taint, usize> = BTreeMap::new();
    for node in refused {
        untolerated(spec, view.taints(*node)).for_each(|taint| *counts.entry(taint).or_default() += 1);
    }
    let mut all: Vec<(&Taint, usize)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let truncated = all.len() > MAX_REQUIREMENTS;
    let describe = |(taint, count): (&Taint, usize)| {
        let of = detail(view, NAME, ReasonCode::UntoleratedTaint, format!("toleration of {}", text(taint)));
        let near = near_miss(&spec.tolerations, taint).map_or_else(String::new, |near| format!("; {near}"));
        let total = of.total_nodes;
        RequirementDetail {
            text: format!("taint {}: on {count} of {total} nodes{near}", text(taint)),
            nodes: total - count,
            key: Some(taint.key.to_string()),
            operator: Some(taint.effect.as_str().into()),
            values: vec![taint.value.to_string()],
            truncated,
            ..of
        }
    };
    all.into_iter().take(MAX_REQUIREMENTS).map(describe).collect()
}

/// Describes the taints of one node that the pod does not tolerate.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let word = |taint: &Taint| {
        let near = near_miss(&spec.tolerations, taint).map_or_else(String::new, |near| format!(" ({near})"));
        format!("has taint {}{near}", text(taint))
    };
    let all: Vec<String> = untolerated(spec, view.taints(node)).take(MAX_REQUIREMENTS).map(word).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns a sentence on a toleration that nearly tolerates a taint: it has another value, another effect, an unknown
/// operator, or a similar key.
fn near_miss(tolerations: &[Toleration], taint: &Taint) -> Option<String> {
    let of_key = tolerations.iter().find(|t| t.key == taint.key);
    if let Some(toleration) = of_key {
        let is_unknown = toleration.operator == TolerationOperator::Unknown;
        let other_value = toleration.operator == TolerationOperator::Equal && toleration.value != taint.value;
        let other_effect = toleration.effect.is_some_and(|effect| effect != taint.effect);
        let mut differs = Vec::new();
        differs.extend(is_unknown.then(|| "has an operator that is not known here".to_owned()));
        differs.extend(other_value.then(|| format!("is for the value {:?}", toleration.value.as_str())));
        let effect = toleration.effect.filter(|_| other_effect);
        differs.extend(effect.map(|effect| format!("is for the effect {}", effect.as_str())));
        return Some(format!("the pod's toleration of {} {}", taint.key, differs.join(" and ")));
    }
    let keys = tolerations.iter().map(|t| t.key.as_str()).filter(|key| !key.is_empty());
    let key = similar(&taint.key, keys)?;
    Some(format!("the pod tolerates {key}; did you mean {}?", taint.key))
}

#[cfg(test)]
mod tests {
    use pellucid_model::Node;
    use pellucid_model::taint::TaintEffect;

    use super::*;
    use crate::testing::{cluster_of, node};

    fn texts(tolerations: &[(&str, &str, Option<TaintEffect>)]) -> Vec<String> {
        let taint = |key: &str, value: &str| Taint {
            key: key.into(),
            value: value.into(),
            effect: TaintEffect::NoSchedule,
        };
        let tainted = |name: &str, taints: &[Taint]| Node { taints: taints.into(), ..node(name) };
        let gpu = taint("dedicated", "gpu");
        let cluster =
            cluster_of([tainted("a", &[gpu.clone(), taint("team", "")]), tainted("b", &[gpu]), node("free")]);
        let tolerations = tolerations.iter().map(|(key, value, effect)| Toleration {
            key: (*key).into(),
            operator: TolerationOperator::Equal,
            value: (*value).into(),
            effect: *effect,
        });
        let spec = PodSpec { tolerations: tolerations.collect(), ..PodSpec::default() };
        let refused = [cluster.idx("a"), cluster.idx("b")];
        of(cluster.view(), &spec, &refused).into_iter().map(|of| of.text).collect()
    }

    #[test]
    fn each_taint_has_its_number_and_the_toleration_that_misses_it() {
        let team = "taint team:NoSchedule: on 1 of 3 nodes";
        let gpu = "taint dedicated=gpu:NoSchedule: on 2 of 3 nodes";
        assert_eq!(texts(&[]), [gpu, team]);
        let value = format!("{gpu}; the pod's toleration of dedicated is for the value \"cpu\"");
        assert_eq!(texts(&[("dedicated", "cpu", None)]), [&*value, team]);
        let effect = format!("{gpu}; the pod's toleration of dedicated is for the effect NoExecute");
        assert_eq!(texts(&[("dedicated", "gpu", Some(TaintEffect::NoExecute))]), [&*effect, team]);
        let key = format!("{gpu}; the pod tolerates dedicatd; did you mean dedicated?");
        assert_eq!(texts(&[("dedicatd", "gpu", None)]), [&*key, team]);
        assert_eq!(texts(&[("dedicated", "gpu", None)]), [team]);
    }
}
