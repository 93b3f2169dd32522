//! The chart's ValidatingAdmissionPolicy: every expression of it, evaluated by a CEL interpreter with Kubernetes' functions,
//! refuses what the webhook refuses, in its words.
//!
//! The policy is read from the template, without helm: nothing in its `spec` is filled in. Not here: that an API server
//! takes the rendered chart (tests/kubectl), and the rules that need other objects (`quotas`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use pellucid::plugins::elastic_quota::ElasticQuota;
use pellucid::plugins::elastic_quota::rules::{self, Gates, Known};
use serde_json::{Value, json};

use crate::webhook::quotas::{PREFIX, quota};

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/chart/templates/webhook-policy.yaml");

/// The policy, its expressions compiled.
struct Policy {
    /// In the order in which each may use those before it.
    variables: Vec<(String, Program)>,
    /// Each with the expression of its message.
    validations: Vec<(Program, Program)>,
}

impl Policy {
    /// Reads the `spec` of the policy as it stands in the template.
    fn read() -> Self {
        let template = std::fs::read_to_string(TEMPLATE).unwrap();
        let is_policy = |part: &&str| part.contains("kind: ValidatingAdmissionPolicy\n");
        let policy = template.split("---\n").find(is_policy).unwrap();
        let spec = &policy[policy.find("\nspec:").unwrap()..];
        assert!(!spec.contains("{{"), "helm fills in something of the spec, which is read without it here");
        let spec = serde_saphyr::from_str::<Value>(spec).unwrap()["spec"].take();
        assert_eq!(spec.get("matchConditions"), None, "the test does not evaluate them");
        let compiled = |of: &Value, field: &str| {
            let text = of[field].as_str().unwrap();
            Program::compile(text).unwrap_or_else(|e| panic!("{text}: {e}"))
        };
        let all = |field: &str| spec[field].as_array().unwrap().iter();
        let named = |of: &Value| (of["name"].as_str().unwrap().to_owned(), compiled(of, "expression"));
        let judged = |of: &Value| (compiled(of, "expression"), compiled(of, "messageExpression"));
        Self {
            variables: all("variables").map(named).collect(),
            validations: all("validations").map(judged).collect(),
        }
    }
}

/// Converts JSON as an API server does: whole numbers are `int`.
fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is) => Cel::Bool(*is),
        Value::Number(n) => n.as_i64().map_or_else(|| Cel::Float(n.as_f64().unwrap()), Cel::Int),
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(items) => Cel::from(items.iter().map(cel).collect::<Vec<_>>()),
        Value::Object(fields) => map(fields.iter().map(|(key, value)| (key.as_str(), cel(value)))),
    }
}

fn map<'k>(fields: impl IntoIterator<Item = (&'k str, Cel)>) -> Cel {
    let fields = fields.into_iter().map(|(key, value)| (Key::from(key), value));
    Cel::Map(Map { map: Arc::new(fields.collect()) })
}

/// A write of a quota; absent is null, as in a request.
struct Write<'w> {
    old: Option<&'w Value>,
    new: Option<&'w Value>,
}

impl Write<'_> {
    /// Returns the problems that the policy refuses the write for, none when it lets it through. Every expression is evaluated,
    /// in the order in which an API server does; one with an error fails the test.
    fn policy(&self, policy: &Policy) -> BTreeSet<String> {
        let mut context = Context::default().with_all();
        for (name, object) in [("object", self.new), ("oldObject", self.old)] {
            context.add_variable_from_value(name, object.map_or(Cel::Null, cel));
        }
        let mut variables = BTreeMap::new();
        let run = |program: &Program, name: &str, context: &Context<'_>| {
            program
                .execute(context)
                .unwrap_or_else(|e| panic!("{name}: {e} with {:?} {:?}", self.old, self.new))
        };
        for (name, program) in &policy.variables {
            let value = run(program, name, &context);
            variables.insert(name.as_str(), value);
            let known = variables.iter().map(|(name, value)| (*name, value.clone()));
            context.add_variable_from_value("variables", map(known));
        }
        let mut problems = BTreeSet::new();
        for (expression, message) in &policy.validations {
            let Cel::String(message) = run(message, "a message", &context) else {
                panic!("a message is no text")
            };
            let Cel::Bool(is_fine) = run(expression, "a validation", &context) else {
                panic!("no condition")
            };
            if !is_fine {
                problems.extend(message.split("; ").map(str::to_owned));
            }
        }
        problems
    }

    /// Returns the problems that the webhook refuses the write for, where there is no other quota.
    fn webhook(&self) -> BTreeSet<String> {
        let nobody = |_: &str| Vec::new();
        let known = Known::new([], &nobody, Gates::default());
        let read = |object: &Value| ElasticQuota::read(object).unwrap();
        let problems = match (self.old.map(read), self.new.map(read)) {
            (None, Some(new)) => rules::create(&known, &new),
            (Some(old), Some(new)) => rules::update(&known, &old, &new),
            (Some(old), None) => rules::delete(&known, &old),
            (None, None) => panic!("no write"),
        };
        problems.iter().map(rules::sentence).collect()
    }
}

/// Returns quotas by what is special about them, each with the number of rules of the policy that it breaks.
fn quotas() -> Vec<(&'static str, Value, usize)> {
    let of = |spec: Value| quota("n", json!({}), json!({}), spec);
    let spec = |min: Value, max: Value| of(json!({"min": min, "max": max}));
    let cpu = |min: Value, max: Value| spec(json!({"cpu": min}), json!({"cpu": max}));
    let mut without_spec = of(json!({}));
    without_spec.as_object_mut().unwrap().remove("spec");
    let mut bare = without_spec.clone();
    bare["metadata"] = json!({"name": "n", "namespace": "kube-system"});
    let strict = |max: Value, used: Value| {
        let keys = json!({"max-strict-check-resource-keys": "[\"memory\", \"cpu\"]"});
        let mut made = quota("n", json!({}), keys, json!({"max": {"cpu": max, "gpu": 1}}));
        made["status"] = json!({"used": {"cpu": used, "gpu": 2}});
        made
    };
    vec![
        ("whole", cpu(json!(2), json!(4)), 0),
        ("no spec", without_spec, 0),
        ("no labels and no annotations", bare, 0),
        ("an empty spec", of(json!({})), 0),
        ("no min", of(json!({"max": {"cpu": 4}})), 0),
        ("no max", of(json!({"min": {"cpu": 4}})), 1),
        ("min in a key that max has not", spec(json!({"cpu": 1, "memory": 5}), json!({"cpu": 1})), 1),
        ("zeros", cpu(json!(0), json!("0")), 0),
        (
            "equal in other notations",
            spec(json!({"cpu": "2000m", "memory": "1Gi"}), json!({"cpu": 2, "memory": 1_073_741_824})),
            0,
        ),
        ("decimals below and above", cpu(json!("0.5"), json!("1.5")), 0),
        ("decimal exponents", cpu(json!("2e3"), json!("2k")), 0),
        ("suffixes of ten and of two", spec(json!({"memory": "1G"}), json!({"memory": "1Gi"})), 0),
        ("above max by a suffix", spec(json!({"memory": "1Gi"}), json!({"memory": "1000M"})), 1),
        ("above max, as numbers", cpu(json!(12), json!(10)), 1),
        ("above max, where texts sort the other way", cpu(json!("9"), json!("10")), 0),
        ("above max, a number and a text", cpu(json!(12), json!("10")), 1),
        ("above max by a thousandth", cpu(json!("1001m"), json!(1)), 1),
        ("negative min", cpu(json!(-1), json!(1)), 1),
        ("negative min and max", cpu(json!(-2), json!("-1")), 2),
        ("negative max below min", cpu(json!(1), json!("-500m")), 2),
        (
            "several rules",
            spec(json!({"cpu": 3, "memory": "-1", "gpu": 1}), json!({"cpu": 2, "memory": 1})),
            3,
        ),
        ("max below what is used", strict(json!(1), json!("1500m")), 1),
        ("max at what is used", strict(json!("1500m"), json!("1.5")), 0),
    ]
}

/// Returns where each problem is, which does not depend on the notation of amounts.
fn fields(problems: &BTreeSet<String>) -> BTreeSet<&str> {
    problems.iter().map(|text| text.split(" \"").next().unwrap()).collect()
}

#[test]
fn policy_and_webhook_agree_about_every_write() {
    let (policy, quotas) = (Policy::read(), quotas());
    for (what, new, broken) in &quotas {
        let made = Write { old: None, new: Some(new) };
        let problems = made.policy(&policy);
        assert_eq!(
            (problems.len(), fields(&problems)),
            (*broken, fields(&made.webhook())),
            "{what}: {problems:?}"
        );
        // Broken or not, it may be deleted, and what is not in its spec may be written.
        let gone = Write { old: Some(new), new: None };
        assert_eq!((gone.policy(&policy), gone.webhook()), Default::default(), "{what} goes");
        let mut written = new.clone();
        written["metadata"]["annotations"][format!("{PREFIX}runtime")] = "{\"cpu\":\"1\"}".into();
        written["status"] = json!({"used": {"cpu": 9}});
        let accounted = Write { old: Some(new), new: Some(&written) };
        assert_eq!(
            (accounted.policy(&policy), accounted.webhook()),
            Default::default(),
            "{what} is accounted for"
        );
        for (before, old, _) in &quotas {
            let changed = Write { old: Some(old), new: Some(new) };
            let (said, wanted) = (changed.policy(&policy), changed.webhook());
            assert_eq!(fields(&said), fields(&wanted), "{before} becomes {what}");
        }
    }
}

#[test]
fn the_policy_speaks_as_the_webhook_does() {
    let policy = Policy::read();
    let amounts = |min: Value, max: Value| json!({"min": min, "max": max});
    let labelled = |tree: &str| quota("n", json!({"tree-id": tree}), json!({}), json!({"max": {"cpu": 1}}));
    let plain = quota("n", json!({}), json!({}), json!({"max": {"cpu": 1}}));
    let built_in = |max: i64| {
        quota(
            "koordinator-default-quota",
            json!({}),
            json!({}),
            amounts(json!({"gpu": 1}), json!({"cpu": max})),
        )
    };
    let bare = json!({"metadata": {"name": "koordinator-root-quota", "namespace": "kube-system"}});
    let strict = json!({"max-strict-check-resource-keys": "[\"cpu\"]"});
    let mut below = quota("n", json!({}), strict, json!({"max": {"cpu": 1}}));
    below["status"] = json!({"used": {"cpu": 2}});
    let all = quota(
        "n",
        json!({}),
        json!({}),
        amounts(json!({"cpu": 12, "memory": -5, "gpu": 1}), json!({"cpu": 10, "memory": -1})),
    );
    let cases: Vec<(Option<Value>, Option<Value>, &[&str])> = vec![
        (
            None,
            Some(all),
            &[
                "quota n: spec.max.memory \"-1\": it is below 0, which counts as 0",
                "quota n: spec.min.cpu \"12\": it is above max, 10, which limits requests",
                "quota n: spec.min.gpu \"1\": max does not have the resource, so it does not count",
                "quota n: spec.min.memory \"-5\": it is below 0, which counts as 0",
            ],
        ),
        (None, Some(below), &["quota n: spec.max.cpu \"1\": it is below what is used, 2"]),
        (
            Some(labelled("t")),
            Some(labelled("u")),
            &["quota n: metadata.labels.Q/tree-id \"u\": the tree of a quota cannot \
            change, and was \"t\""],
        ),
        (
            Some(labelled("t")),
            Some(plain.clone()),
            &["quota n: metadata.labels.Q/tree-id \"\": the tree of a quota cannot \
            change, and was \"t\""],
        ),
        (Some(plain), Some(labelled("t")), &[]),
        (None, Some(built_in(1)), &[]),
        (
            Some(bare.clone()),
            None,
            &["quota koordinator-root-quota: metadata.name \"koordinator-root-quota\": built-in quotas \
            cannot be deleted"],
        ),
        (Some(bare.clone()), Some(bare), &[]),
        (Some(built_in(1)), Some(built_in(1)), &[]),
        (
            Some(built_in(1)),
            Some(built_in(2)),
            &["quota koordinator-default-quota: metadata.name \
            \"koordinator-default-quota\": built-in quotas cannot be changed"],
        ),
        (
            Some(built_in(1)),
            None,
            &["quota koordinator-default-quota: metadata.name \"koordinator-default-quota\": built-in \
            quotas cannot be deleted"],
        ),
    ];
    for (old, new, expected) in cases {
        let write = Write { old: old.as_ref(), new: new.as_ref() };
        let expected: BTreeSet<String> = expected.iter().map(|text| text.replace("Q/", PREFIX)).collect();
        assert_eq!((write.policy(&policy), write.webhook()), (expected.clone(), expected), "{old:?} {new:?}");
    }
}
