//! Reading any file ends in a configuration or in problems, never in a panic.

use pellucid::config::{self, Configuration, Problems};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fakes::registry;

fn parse(text: &str) -> Result<Configuration, Problems> {
    config::parse(text, "random", &registry())
}

/// Names that have a meaning somewhere in a file.
const FIELDS: &[&str] = &[
    "parallelism",
    "leaderElection",
    "leaderElect",
    "leaseDuration",
    "renewDeadline",
    "retryPeriod",
    "clientConnection",
    "kubeconfig",
    "qps",
    "burst",
    "healthzBindAddress",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "extenders",
    "profiles",
    "schedulerName",
    "plugins",
    "pluginConfig",
    "multiPoint",
    "score",
    "filter",
    "preFilter",
    "queueSort",
    "enabled",
    "disabled",
    "name",
    "weight",
    "args",
    "notes",
    "shedulerName",
];

const TEXTS: &[&str] = &[
    "",
    "*",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "ImageLocality",
    "PrioritySort",
    "DefaultBinder",
    "NodePorts",
    "PodTopologySpread",
    "SelectorSpread",
    "Coscheduling",
    "unicore-gang-scheduler",
    "15s",
    "1m30s",
    "-1h",
    "leases",
    "a\nb: c",
    "éß\u{0}\u{feff}",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2i64..120).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
    ]
}

/// Generates any tree of these names.
fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 64, 6, |inner| {
        let name = proptest::sample::select(FIELDS).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn entry() -> impl Strategy<Value = Value> {
    let weight = prop_oneof![Just(Value::Null), (0i64..4).prop_map(Value::from)];
    let name = proptest::sample::select(&TEXTS[1..]);
    (name, weight).prop_map(|(name, weight)| json!({ "name": name, "weight": weight }))
}

fn set() -> impl Strategy<Value = Value> {
    let list = || prop::collection::vec(entry(), 0..4);
    (list(), list()).prop_map(|(enabled, disabled)| json!({ "enabled": enabled, "disabled": disabled }))
}

/// Generates profiles that are well formed, and often accepted.
fn profile() -> impl Strategy<Value = Value> {
    let point = proptest::sample::select(vec!["multiPoint", "filter", "score", "preScore", "queueSort"]);
    prop::collection::btree_map(point, set(), 0..4).prop_map(|plugins| json!({ "plugins": plugins }))
}

fn document() -> impl Strategy<Value = Value> {
    let version = proptest::sample::select(vec!["v1", "v1beta2", "v1beta3", "v1beta1"]);
    let profiles = prop_oneof![tree(), prop::collection::vec(profile(), 0..2).prop_map(Value::from)];
    let others = prop::collection::btree_map(proptest::sample::select(FIELDS), tree(), 0..3);
    (version, profiles, others).prop_map(|(version, profiles, others)| {
        let mut document = json!(others);
        document["apiVersion"] = format!("kubescheduler.config.k8s.io/{version}").into();
        document["kind"] = "KubeSchedulerConfiguration".into();
        document["profiles"] = profiles;
        document
    })
}

/// Checks that an accepted configuration is in force as shown, and that a rejected one says why.
fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Err(problems) => prop_assert!(!problems.problems.is_empty()),
        Ok(configuration) => {
            prop_assert!(!configuration.profiles.is_empty());
            let yaml = configuration.to_yaml().map_err(TestCaseError::fail)?;
            let again =
                parse(&yaml).map_err(|problems| TestCaseError::fail(format!("{problems}\n{yaml}")))?;
            prop_assert_eq!(configuration.effective, again.effective);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn random_yaml_is_read_without_a_panic(text in r#"([a-c]:|[-\[\]{}",:&*!|>#%? \n]|  |<<|&a|\*a|---|'){0,60}"#) {
        check(&text)?;
        check(&format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}"))?;
    }

    #[test]
    fn random_trees_are_read_without_a_panic(document in document()) {
        check(&document.to_string())?;
    }
}

/// A file cannot exhaust the stack or the memory of its reader.
#[test]
fn hostile_files_are_refused() {
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let block: String = (0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ('b'..='j').zip('a'..) {
        let list = vec![format!("*{before}"); 9].join(", ");
        laughs.push_str(&format!("{name}: &{name} [{list}]\n"));
    }
    let long = "x".repeat(1 << 20);
    for text in [nested("[", "]"), nested("{a: ", "}"), block, laughs, long.clone(), format!("{long}: 1")] {
        let problems = parse(&text).err().map(|problems| problems.problems);
        assert!(problems.is_some_and(|problems| !problems.is_empty()), "{:.80}", text);
    }
}
