//! Tests required and preferred affinity, candidates by name, the profile's own affinity, and wake-ups.

use pellucid_framework::PluginFactory;
use pellucid_model::selector::{Labels, PreferredTerm, Requirement};

use super::*;
use crate::testing::{TestCluster, cluster_of, filter_all, node, pod_with, pre_filter, raw_scores};

fn labelled(name: &str, labels: &[(&str, &str)]) -> Node {
    let labels = Labels::new(labels.iter().map(|(k, v)| (Name::new(k), Name::new(v))));
    Node { labels, ..node(name) }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement { key: key.into(), operator, values: values.iter().map(|v| Name::new(v)).collect() }
}

fn on_names(requirements: &[(Operator, &str)]) -> NodeSelectorTerm {
    let fields = requirements.iter().map(|(op, name)| requirement("metadata.name", *op, &[name])).collect();
    NodeSelectorTerm { fields, ..NodeSelectorTerm::default() }
}

fn with_key(key: &str) -> NodeSelectorTerm {
    let expressions = Box::new([requirement(key, Operator::Exists, &[])]);
    NodeSelectorTerm { expressions, ..NodeSelectorTerm::default() }
}

fn requiring(terms: &[NodeSelectorTerm]) -> PodSpec {
    let affinity = Affinity { required: Some(terms.into()), ..Affinity::default() };
    PodSpec { affinity, ..PodSpec::default() }
}

fn plain() -> NodeAffinity {
    NodeAffinity { added: Affinity::default(), given: Value::Null }
}

fn adding(args: Value) -> Arc<dyn Plugin> {
    registration().make(&json!({"addedAffinity": args})).expect("the arguments are valid")
}

#[test]
fn selector_and_terms_must_accept_the_node() {
    let cluster = cluster_of([
        labelled("a", &[("zone", "1"), ("disk", "ssd")]),
        labelled("b", &[("zone", "1")]),
        labelled("c", &[("disk", "ssd")]),
    ]);
    let mut spec = requiring(&[with_key("disk")]);
    spec.affinity.selector = Box::new([("zone".into(), "1".into())]);
    let refused = filter_all(&plain(), &cluster, &spec);
    assert_eq!(refused.keys().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(refused["b"], "node(s) didn't match Pod's node affinity/selector");
    assert!(matches!(pre_filter(&plain(), &cluster, &PodSpec::default()), Ok(None)));
    assert_eq!(filter_all(&plain(), &cluster, &requiring(&[])).len(), 3);
}

#[test]
fn terms_by_name_restrict_the_candidates() {
    use Operator::{In, NotIn};
    let cluster = cluster_of([node("a"), node("b"), node("c")]);
    let candidates = |terms: &[NodeSelectorTerm]| {
        let ready = pre_filter(&plain(), &cluster, &requiring(terms))?;
        let nodes = ready.expect("it has terms").1;
        Ok::<_, String>(
            nodes.map(|n| n.iter().map(|n| cluster.view().name(*n).to_string()).collect::<Vec<_>>()),
        )
    };
    let names = |names: &[&str]| Ok(Some(names.iter().map(|n| n.to_string()).collect()));
    assert_eq!(candidates(&[on_names(&[(In, "b")]), on_names(&[(In, "a")])]), names(&["a", "b"]));
    assert_eq!(candidates(&[on_names(&[(In, "gone")])]), names(&[]));
    assert_eq!(candidates(&[on_names(&[(In, "a")]), with_key("zone")]), Ok(None));
    assert_eq!(candidates(&[on_names(&[(NotIn, "a")])]), Ok(None));
    let conflict = on_names(&[(In, "a"), (In, "b")]);
    assert_eq!(candidates(std::slice::from_ref(&conflict)), Err("pod affinity terms conflict".to_owned()));
    assert_eq!(candidates(&[conflict, on_names(&[(In, "c")])]), names(&["c"]));
}

#[test]
fn nodes_that_are_named_and_missing_are_told() {
    use Operator::In;
    let cluster = cluster_of([node("a")]);
    let told = |names: &[&str]| {
        let terms: Vec<NodeSelectorTerm> = names.iter().map(|name| on_names(&[(In, name)])).collect();
        plain().sentence(cluster.view(), &requiring(&terms), Now::default())
    };
    let said = |text: &str| Some(format!("its node affinity names {text} in the cluster"));
    assert_eq!(told(&["gone"]), said("node gone alone, which is not"));
    assert_eq!(told(&["y", "x"]), said("nodes x, y alone, none of which is"));
    assert_eq!(told(&["v", "w", "x", "y", "z"]), said("nodes v, w, x and 2 more alone, none of which is"));
    assert_eq!(told(&["gone", "a"]), None);
    assert_eq!(plain().sentence(cluster.view(), &PodSpec::default(), Now::default()), None);
}

#[test]
fn preferred_terms_add_up() {
    let cluster =
        cluster_of([labelled("a", &[("x", ""), ("y", "")]), labelled("b", &[("y", "")]), node("c")]);
    let preferring = |terms: &[(i32, &str)]| {
        let terms = terms.iter().map(|(weight, key)| PreferredTerm { weight: *weight, term: with_key(key) });
        let affinity = Affinity { preferred: terms.collect(), ..Affinity::default() };
        PodSpec { affinity, ..PodSpec::default() }
    };
    assert_eq!(raw_scores(&plain(), &cluster, &preferring(&[(5, "x"), (7, "y")])), Some(vec![12, 7, 0]));
    assert_eq!(raw_scores(&plain(), &cluster, &PodSpec::default()), None);
    let term = json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]});
    let added = adding(json!({
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": term}]
    }));
    assert_eq!(raw_scores(&*added, &cluster, &preferring(&[(7, "y")])), Some(vec![10, 7, 0]));
    assert_eq!(raw_scores(&*added, &cluster, &PodSpec::default()), Some(vec![3, 0, 0]));
}

#[test]
fn the_profile_can_add_an_affinity() {
    let cluster = cluster_of([labelled("a", &[("x", "")]), node("b")]);
    let term = json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]});
    let plugin =
        adding(json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}));
    let refused = filter_all(&*plugin, &cluster, &PodSpec::default());
    assert_eq!(refused["b"], "node(s) didn't match scheduler-enforced node affinity");
    assert_eq!(refused.len(), 1);
    assert!(plugin.args()["addedAffinity"].is_object());
}

#[test]
fn arguments_are_checked_together() {
    let term = json!({
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "!", "operator": "Exists"},
            {"key": "a", "operator": "Near"},
            {"key": "a", "operator": "Gt", "values": ["x"]},
        ],
        "matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n"]}],
    });
    let args = json!({"addedAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": term}],
    }});
    let Err(problems) = registration().make(&args) else { panic!("they are wrong") };
    let path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
    let fields: Vec<_> = problems.iter().map(|p| p.field.strip_prefix(path).unwrap_or(&p.field)).collect();
    assert_eq!(
        fields,
        [
            ".weight",
            ".preference.matchExpressions[0].values",
            ".preference.matchExpressions[1].key",
            ".preference.matchExpressions[2].operator",
            ".preference.matchExpressions[3].values",
            ".preference.matchFields[0]",
        ]
    );
}

#[test]
fn a_node_that_comes_to_match_wakes_the_pod() {
    let mut cluster = cluster_of([node("a")]);
    let pod = pod_with(requiring(&[with_key("x")]));
    let hint = |cluster: &TestCluster, event: &ClusterEvent| plain().hint(cluster.view(), &pod, event);
    let added = ClusterEvent::NodeAdded(cluster.idx("a"));
    assert_eq!(hint(&cluster, &added), Hint::Skip);
    let events = cluster.apply(labelled("a", &[("x", "")]));
    assert_eq!(hint(&cluster, &events[0]), Hint::Queue);
    assert_eq!(hint(&cluster, &added), Hint::Queue);
    let events = cluster.apply(labelled("a", &[("x", ""), ("y", "")]));
    assert_eq!(hint(&cluster, &events[0]), Hint::Skip, "it matched before");
}
