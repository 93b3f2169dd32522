//! Words for affinity and anti-affinity terms: how many pods match, where, what else the pods' labels say, and which
//! pods stand in the way.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::{PodOnNode, RequirementDetail};
use pellucid_cluster::PodRecord;
use pellucid_framework::View;
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::selector::{Labels, Operator};
use pellucid_model::{Name, NodeIdx, PodSpec, cancellation};

use super::super::relations::{NO_VALUE, Relations};
use super::NAME;
use super::filter::matching_all;
use super::terms::reaches;
use super::whole_cause::{TermPods, refusing};
use pellucid_plugin_helper::describing::{
    MAX_PODS, MAX_REQUIREMENTS, ask_meant, count, detail, first_by_name, meant, most_frequent, objects,
    pods_on, pods_text, tally, values_text,
};

/// Describes each term that some refusing node does not fulfil.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let Some(relations) = view.state::<Relations>() else { return Vec::new() };
    let near = spec.pod_affinity.required.iter().filter_map(|term| {
        cancellation::check();
        let of = TermPods::of_own(view, relations, spec, (ReasonCode::PodAffinityMismatch, term));
        refused.iter().any(|node| of.taken(*node).is_none()).then(|| required(view, spec, term, &of))
    });
    let mut all: Vec<RequirementDetail> = near.take(MAX_REQUIREMENTS).collect();
    all.extend(together(view, relations, spec, refused));
    let far = refusing(view, spec);
    let far = far.iter().filter(|of| refused.iter().any(|node| of.taken(*node).is_some()));
    all.extend(far.map(|of| avoided(view, of)));
    let is_cut = all.len() > MAX_REQUIREMENTS;
    all.truncate(MAX_REQUIREMENTS);
    all.iter_mut().for_each(|of| of.truncated |= is_cut);
    all
}

/// Describes several required terms together: one pod must match all of them.
fn together(
    view: View<'_>,
    relations: &Relations,
    spec: &PodSpec,
    refused: &[NodeIdx],
) -> Option<RequirementDetail> {
    let terms = &spec.pod_affinity.required;
    if terms.len() < 2 {
        return None;
    }
    let sums = matching_all(view, relations, spec, terms);
    let is_near = |node: &NodeIdx| sums.keys().iter().all(|key| key.on(*node).is_some_and(|pods| pods > 0));
    if refused.iter().all(is_near) {
        return None;
    }
    let what = format!("one pod that matches all {} terms of pod affinity", terms.len());
    let mut of = detail(view, NAME, ReasonCode::PodAffinityMismatch, what);
    of.nodes = view.nodes().iter().filter(|node| is_near(node)).count();
    of.text = format!("{}: near {} of {} nodes", of.requirement, of.nodes, of.total_nodes);
    Some(of)
}

/// Returns the beginning that the descriptions of all terms share.
fn begin(view: View<'_>, of: &TermPods<'_>, what: &str) -> RequirementDetail {
    let pods: u32 = of.on.iter().map(|(_, pods)| *pods).sum();
    RequirementDetail {
        matching_pods: Some(pods as usize),
        ..detail(view, NAME, of.code, format!("{what} {}", of.text))
    }
}

/// Describes a required affinity term.
fn required(
    view: View<'_>,
    spec: &PodSpec,
    term: &PodAffinityTerm,
    pods: &TermPods<'_>,
) -> RequirementDetail {
    let mut of = begin(view, pods, "pod affinity to");
    of.key = Some(term.topology_key.to_string());
    of.nodes = view.nodes().iter().filter(|node| pods.taken(**node).is_some()).count();
    let matching = of.matching_pods.unwrap_or(0);
    of.text = match matching {
        0 => format!("{}: no placed pod matches", of.requirement),
        n => {
            let (domains, nodes, total) = (pods.domains(), of.nodes, of.total_nodes);
            let (n, domains) = (count(n, "placed pod"), count(domains, "domain"));
            format!("{}: {n} in {domains}, which have {nodes} of {total} nodes", of.requirement)
        }
    };
    if matching == 0 {
        add_pods_that_are_there(&mut of, view, spec, term);
    }
    add_missing_label(&mut of, view, term.topology_key.as_str(), pods);
    ask_meant(&mut of.text, &of.did_you_mean);
    of
}

/// Adds how many nodes lack the topology key.
fn add_missing_label(of: &mut RequirementDetail, view: View<'_>, key: &str, pods: &TermPods<'_>) {
    let without = view.nodes().iter().filter(|node| pods.column.of(**node) == NO_VALUE).count();
    if without > 0 {
        of.text += &format!("; {without} of {} nodes have no label {key}", of.total_nodes);
    }
    if without == of.total_nodes {
        let keys = tally(objects(view).flat_map(|(_, node)| node.labels.iter().map(|(key, _)| key)));
        of.did_you_mean.extend(meant(key, &keys));
    }
}

/// Adds to a term that no placed pod matches: pending pods and pods of other namespaces that would, and the values that
/// pods have of the labels that it selects by.
fn add_pods_that_are_there(
    of: &mut RequirementDetail,
    view: View<'_>,
    spec: &PodSpec,
    term: &PodAffinityTerm,
) {
    let Some(selector) = &term.selector else { return };
    cancellation::check();
    let is_reached = |record: &PodRecord| reaches(view, term, &spec.namespace, &record.pod.spec.namespace);
    let (mut pending, mut elsewhere) = (0, BTreeSet::new());
    let mut there: Vec<&Labels> = Vec::new();
    for (_, record) in view.cluster().pods() {
        let is_matching = selector.matches(&record.pod.labels);
        match (is_reached(record), record.node.is_some()) {
            (true, true) => there.push(&record.pod.labels),
            (true, false) => pending += usize::from(is_matching),
            (false, true) if is_matching => drop(elsewhere.insert(&record.pod.spec.namespace)),
            (false, _) => {}
        }
    }
    if pending > 0 {
        of.text += &format!("; {} would", count(pending, "pending pod"));
    }
    if !elsewhere.is_empty() {
        let names: Vec<&str> = elsewhere.iter().take(MAX_PODS).map(|name| name.as_str()).collect();
        of.text += &format!("; pods match in other namespaces ({})", names.join(", "));
    }
    for requirement in selector.requirements().iter().filter(|r| r.operator == Operator::In) {
        let values = tally(there.iter().filter_map(|labels| labels.get(&requirement.key)));
        if requirement.values.iter().any(|value| values.contains_key(value.as_str())) {
            continue;
        }
        if values.is_empty() {
            of.text += &format!("; no pod there has the label {}", requirement.key);
            let keys = tally(there.iter().flat_map(|labels| labels.iter().map(|(key, _)| key)));
            of.did_you_mean.extend(meant(&requirement.key, &keys));
        } else {
            let asked = requirement.values.iter().take(MAX_REQUIREMENTS);
            of.did_you_mean.extend(asked.filter_map(|value| meant(value, &values)));
            add_values(of, &requirement.key, values);
        }
    }
}

fn add_values(of: &mut RequirementDetail, key: &Name, values: BTreeMap<&str, usize>) {
    let (found, is_cut) = most_frequent(values);
    of.text += &format!("; values of {key} there: {}", values_text(&found, is_cut));
    of.truncated |= is_cut;
    // The list is about the first label that no pod fulfils.
    if of.found.is_empty() {
        of.found = found;
    }
}

/// Describes an anti-affinity term, of the pod or of placed pods.
fn avoided(view: View<'_>, pods: &TermPods<'_>) -> RequirementDetail {
    let mut of = begin(view, pods, what(pods));
    let taken = || view.nodes().iter().copied().filter(|node| pods.taken(*node).is_some());
    let refused = taken().count();
    of.nodes = of.total_nodes - refused;
    for node in first_by_name(view, taken()) {
        let (found, is_cut) = in_the_way(view, pods, node);
        of.truncated |= is_cut;
        of.pods.extend(found);
    }
    of.pods.sort();
    of.pods.dedup();
    let (n, total) = (of.matching_pods.unwrap_or(0), of.total_nodes);
    let is_own = pods.code == ReasonCode::PodAntiAffinityConflict;
    let verb = match (is_own, n) {
        (true, 1) => "matches",
        (true, _) => "match",
        (false, 1) => "asks for it",
        (false, _) => "ask for it",
    };
    let (n, domains) = (count(n, "placed pod"), count(pods.domains(), "domain"));
    of.text = format!(
        "{}: {n} {verb}, in {domains} with {refused} of {total} nodes; {}",
        of.requirement,
        pods_text(&of.pods)
    );
    of
}

fn what(pods: &TermPods<'_>) -> &'static str {
    match pods.code {
        ReasonCode::PodAntiAffinityConflict => "pod anti-affinity to",
        _ => "anti-affinity of placed pods to",
    }
}

/// Returns the first pods by node and name that stand in the way on a node, and whether there are more.
fn in_the_way(view: View<'_>, pods: &TermPods<'_>, node: NodeIdx) -> (Vec<PodOnNode>, bool) {
    let Some(domain) = pods.taken(node) else { return (Vec::new(), false) };
    let mut nodes = pods.nodes_in(domain);
    nodes.sort_by(|a, b| (*a != node, view.name(*a)).cmp(&(*b != node, view.name(*b))));
    let mut found = Vec::new();
    for on in nodes {
        let (keys, n) = pods_on(view, on, &pods.is_meant);
        let left = MAX_PODS - found.len();
        let node = view.name(on).to_string();
        found.extend(keys.into_iter().take(left).map(|pod| PodOnNode { node: node.clone(), pod }));
        if n > left {
            return (found, true);
        }
    }
    (found, false)
}

/// Describes what refuses one node: the terms of affinity without a matching pod in its domain, and the pods that stand
/// in the way.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let relations = view.state::<Relations>()?;
    let near = spec.pod_affinity.required.iter().filter_map(|term| {
        let of = TermPods::of_own(view, relations, spec, (ReasonCode::PodAffinityMismatch, term));
        let key = &term.topology_key;
        if of.column.of(node) == NO_VALUE {
            return Some(format!("has no label {key}"));
        }
        of.taken(node).is_none().then(|| format!("no pod in its {key} matches {}", of.text))
    });
    let mut all: Vec<String> = near.take(MAX_REQUIREMENTS).collect();
    for of in refusing(view, spec).iter().take(MAX_REQUIREMENTS) {
        let (found, _) = in_the_way(view, of, node);
        if !found.is_empty() {
            all.push(format!("{} {}: {}", what(of), of.text, pods_text(&found)));
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use pellucid_model::Pod;
    use pellucid_model::relations::PodTerms;

    use super::*;
    use crate::relations::testing::{in_zone, labelled, zone_term};
    use crate::testing::{TestCluster, cluster_of};

    fn required(terms: &[PodAffinityTerm]) -> PodTerms {
        PodTerms { required: terms.into(), ..PodTerms::default() }
    }

    fn spec(near: &[PodAffinityTerm], far: &[PodAffinityTerm]) -> PodSpec {
        PodSpec {
            namespace: "d".into(),
            pod_affinity: required(near),
            pod_anti_affinity: required(far),
            ..PodSpec::default()
        }
    }

    /// Describes what a pending pod with this spec is refused for. It stays, so that its selectors are known.
    fn texts(cluster: &mut TestCluster, spec: &PodSpec) -> Vec<String> {
        let name = format!("asks-{}", cluster.cluster.pods().count());
        let pod = cluster.see(labelled(&name, &[("app", "web")], spec.clone()));
        of(cluster.view(), &pod.spec, cluster.view().nodes()).into_iter().map(|of| of.text).collect()
    }

    const ZONE: &str = "by topology.kubernetes.io/zone";

    #[test]
    fn affinity_says_how_many_pods_match_and_what_would() {
        let mut cluster = cluster_of([in_zone("a1", "za"), in_zone("a2", "za"), in_zone("b1", "zb")]);
        cluster.put(("app", "db"), &["a1"]);
        let db = format!("pod affinity to app=db {ZONE}");
        let want = format!("{db}: 1 placed pod in 1 domain, which have 2 of 3 nodes");
        assert_eq!(texts(&mut cluster, &spec(&[zone_term("app", "db")], &[])), [want]);
        let none =
            format!("pod affinity to app=bd {ZONE}: no placed pod matches; values of app there: db (1)");
        assert_eq!(texts(&mut cluster, &spec(&[zone_term("app", "bd")], &[])), std::slice::from_ref(&none));
        let key =
            format!("pod affinity to aps=db {ZONE}: no placed pod matches; no pod there has the label aps");
        assert_eq!(
            texts(&mut cluster, &spec(&[zone_term("aps", "db")], &[])),
            [format!("{key}; did you mean app?")]
        );
        cluster.see(labelled("waits", &[("app", "bd")], PodSpec::default()));
        cluster.see(Pod {
            key: pellucid_model::PodKey::new("e", "elsewhere"),
            node_name: Some("b1".into()),
            ..labelled("elsewhere", &[("app", "bd")], PodSpec { namespace: "e".into(), ..PodSpec::default() })
        });
        let all = texts(&mut cluster, &spec(&[zone_term("app", "bd")], &[]));
        let more = "1 pending pod would; pods match in other namespaces (e)";
        assert!(all[0].contains(more), "{all:?}");
        let both = spec(&[zone_term("app", "db"), zone_term("app", "bd")], &[]);
        let all = texts(&mut cluster, &both);
        assert_eq!(
            all.last().expect("some"),
            "one pod that matches all 2 terms of pod affinity: near 0 of 3 nodes"
        );
    }

    #[test]
    fn the_pods_in_the_way_are_named_on_both_sides() {
        let mut cluster = cluster_of([in_zone("a1", "za"), in_zone("a2", "za"), in_zone("b1", "zb")]);
        let avoiding = spec(&[], &[zone_term("app", "web")]);
        cluster.see(Pod { node_name: Some("a2".into()), ..labelled("f", &[("app", "db")], avoiding) });
        let asking = spec(&[], &[zone_term("app", "db")]);
        let n = "in 1 domain with 2 of 3 nodes; on a2 d/f";
        assert_eq!(
            texts(&mut cluster, &asking),
            [
                format!("pod anti-affinity to app=db {ZONE}: 1 placed pod matches, {n}"),
                format!("anti-affinity of placed pods to app=web {ZONE}: 1 placed pod asks for it, {n}"),
            ]
        );
        let asking = &cluster.see(labelled("p", &[("app", "web")], asking)).spec;
        let own = on_node(cluster.view(), asking, cluster.idx("a1")).expect("it is refused");
        assert!(
            own.starts_with(&format!("pod anti-affinity to app=db {ZONE}: on a2 d/f; anti-affinity of")),
            "{own}"
        );
        assert_eq!(on_node(cluster.view(), asking, cluster.idx("b1")), None);
    }
}
