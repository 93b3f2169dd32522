//! Tests of decoding what pods say about gangs.

use std::time::Duration;

use pellucid_api::keys::{coscheduling, koordinator, kube_batch, unicore};
use pellucid_model::gang::{
    Controller, Dialect, GangDeclaration, GangMode, GangProblem, GangTerms, MatchPolicy,
};
use pellucid_model::{GangKey, Pod};
use serde_json::{Map, Value, json};

use crate::decode::Decoder;

const X: &str = coscheduling::POD_GROUP;
const SIGS: &str = coscheduling::POD_GROUP_SIGS;
const BATCH: &str = kube_batch::GROUP_NAME;
const KOORD: (&str, &str) = (koordinator::NAME, "g");

pub(super) type Pairs<'a> = &'a [(&'a str, &'a str)];

pub(super) fn pairs(all: Pairs<'_>) -> Value {
    Value::Object(all.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<Map<_, _>>())
}

fn manifest(labels: Pairs<'_>, annotations: Pairs<'_>, spec: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u",
        "labels": pairs(labels), "annotations": pairs(annotations)}, "spec": spec})
}

fn pod(labels: Pairs<'_>, annotations: Pairs<'_>, spec: Value) -> Pod {
    Decoder::default().pod(&manifest(labels, annotations, spec)).expect("readable")
}

fn mark(labels: Pairs<'_>, annotations: Pairs<'_>) -> GangDeclaration {
    let pod = pod(labels, annotations, json!({}));
    assert_eq!(pod.gang_warning, None);
    GangDeclaration::clone(&pod.gang.expect("a gang"))
}

/// Formats each problem as one line: severity, field, value and problem.
pub(super) fn lines(problems: &[GangProblem]) -> Vec<String> {
    problems.iter().map(|p| format!("{}{p}", if p.is_fatal { "" } else { "warning: " })).collect()
}

fn native(name: &str) -> Value {
    json!({"schedulingGroup": {"podGroupName": name}})
}

#[test]
fn a_gang_is_named_in_five_dialects() {
    use Dialect::{Coscheduling, Koordinator, KubeBatch, Native, Unicore};
    let uni = [(unicore::NAME, "g"), (unicore::AVAILABLE_COUNT, "2")];
    let oldest = [(coscheduling::NAME, "g"), (coscheduling::MIN_AVAILABLE, "3")];
    let of_kube_batch = json!({"schedulerName": "kube-batch"});
    for (labels, annotations, spec, dialect, needs_group, min) in [
        (&uni[..], &[][..], json!({}), Unicore, false, Some(2)),
        (&[(X, "g")], &[], json!({}), Coscheduling, true, None),
        (&[(SIGS, "g")], &[], json!({}), Coscheduling, true, None),
        (&oldest, &[], json!({}), Coscheduling, false, Some(3)),
        (&oldest[..1], &[], json!({}), Coscheduling, true, None),
        (&[], &[KOORD, (koordinator::MIN_AVAILABLE, "4")], json!({}), Koordinator, false, Some(4)),
        (&[], &[(BATCH, "g")], of_kube_batch, KubeBatch, true, None),
        (&[], &[], native("g"), Native, true, None),
    ] {
        let pod = pod(labels, annotations, spec);
        let want = GangDeclaration {
            gang: GangKey::new("ns", "g"),
            dialect,
            needs_group,
            is_shadow: false,
            names_two: false,
            terms: GangTerms { min, ..GangTerms::default() },
            problems: Box::default(),
        };
        let got = (pod.gang.as_deref(), &pod.gang_warning);
        assert_eq!(got, (Some(&want), &None), "{labels:?} {annotations:?}");
    }
}

#[test]
fn other_pods_are_in_no_gang() {
    for (labels, annotations, spec) in [
        (&[("app", "web")][..], &[("note", "x")][..], json!({})),
        (&[(X, ""), (SIGS, "")], &[(koordinator::NAME, ""), (BATCH, "")], native("")),
        (
            &[(coscheduling::MIN_AVAILABLE, "3")],
            &[(koordinator::MIN_AVAILABLE, "3")],
            json!({"schedulingGroup": null}),
        ),
    ] {
        let pod = pod(labels, annotations, spec);
        assert_eq!((pod.gang, pod.gang_warning), (None, None), "{labels:?}");
    }
}

#[test]
fn half_a_unicore_gang_is_a_warning() {
    let name = "metadata.labels[gang.unicore.mcyou.cn/name]";
    let count = "metadata.labels[gang.unicore.mcyou.cn/available-count]";
    for (labels, field, problem) in [
        (&[(unicore::NAME, "g")][..], count, "missing, so the pod is in no gang"),
        (&[(unicore::AVAILABLE_COUNT, "2")], name, "missing, so the pod is in no gang"),
        (&[(unicore::NAME, ""), (unicore::AVAILABLE_COUNT, "2")], name, "empty, so the pod is in no gang"),
    ] {
        let pod = pod(labels, &[], json!({}));
        let warning = pod.gang_warning.expect("a warning");
        assert_eq!((&*warning.field, &*warning.problem, warning.is_fatal), (field, problem, false));
        assert_eq!(pod.gang, None);
    }
    // Another, complete gang on the pod stays usable.
    let both = pod(&[(unicore::NAME, "g"), (X, "h")], &[], json!({}));
    assert!(both.gang_warning.is_some());
    assert_eq!(both.gang.expect("a gang").problems.len(), 0);
}

#[test]
fn a_quorum_that_is_no_number_is_fatal_where_there_is_no_group() {
    for count in ["three", "0", "-1", "", "1.5", "99999999999"] {
        let mark = mark(&[(unicore::NAME, "g"), (unicore::AVAILABLE_COUNT, count)], &[]);
        let got = if count.is_empty() { String::new() } else { format!(", got {count}") };
        let want = format!(
            "metadata.labels[gang.unicore.mcyou.cn/available-count]: not a number of members above zero{got}"
        );
        assert_eq!((lines(&mark.problems), mark.terms.min), (vec![want], None));
    }
    let field = "metadata.annotations[gang.scheduling.koordinator.sh/min-available]";
    for (annotations, problem) in [
        (&[KOORD][..], "missing, so the gang has no quorum"),
        (&[KOORD, (koordinator::MIN_AVAILABLE, "two")], "not a number of members, got two"),
        (&[KOORD, (koordinator::MIN_AVAILABLE, "-2")], "not a number of members, got -2"),
    ] {
        let mark = mark(&[], annotations);
        assert_eq!(lines(&mark.problems), [format!("{field}: {problem}")]);
        assert_eq!((mark.terms.min, mark.needs_group), (None, false));
    }
    let none = mark(&[], &[KOORD, (koordinator::MIN_AVAILABLE, "0")]);
    assert_eq!((none.terms.min, none.problems.len()), (Some(0), 0));
    let oldest = mark(&[(coscheduling::NAME, "g"), (coscheduling::MIN_AVAILABLE, "many")], &[]);
    let label = "metadata.labels[pod-group.scheduling.sigs.k8s.io/min-available]";
    assert_eq!(lines(&oldest.problems), [format!("{label}: not a number of members, got many")]);
    assert!(!oldest.needs_group);
    let of_group = mark(&[(X, "g")], &[(koordinator::MIN_AVAILABLE, "two")]);
    let problem = "not a number of members, the PodGroup's is taken, got two";
    assert_eq!(lines(&of_group.problems), [format!("warning: {field}: {problem}")]);
}

#[test]
fn labels_and_koordinator_annotations_that_name_one_gang_are_one() {
    let mark = mark(
        &[(SIGS, "g"), (X, "g"), (coscheduling::NAME, "g")],
        &[
            KOORD,
            (koordinator::MIN_AVAILABLE, "3"),
            (koordinator::TOTAL_NUMBER, "5"),
            (koordinator::MODE, "NonStrict"),
            (koordinator::MATCH_POLICY_ALIAS, "only-waiting"),
            (koordinator::WAITING_TIME, "1m30s"),
            (koordinator::GROUPS, r#"["ns/g", "other/h", "a/b", "a/b"]"#),
        ],
    );
    assert_eq!((mark.dialect, mark.needs_group, mark.problems.len()), (Dialect::Coscheduling, true, 0));
    let groups = [GangKey::new("a", "b"), GangKey::new("ns", "g"), GangKey::new("other", "h")];
    let want = GangTerms {
        min: Some(3),
        total: Some(5),
        mode: Some(GangMode::NonStrict),
        policy: Some(MatchPolicy::OnlyWaiting),
        wait: Some(Duration::from_secs(90)),
        groups: groups.into(),
    };
    assert_eq!(mark.terms, want);
}

#[test]
fn two_keys_that_do_not_name_one_gang_contradict_each_other() {
    let uni = [(unicore::NAME, "g"), (unicore::AVAILABLE_COUNT, "2")];
    let label = |key: &str| format!("metadata.labels[{key}]");
    let annotation = |key: &str| format!("metadata.annotations[{key}]");
    let (gang, dialect) = ("another gang", "a gang of another dialect");
    let field = "spec.schedulingGroup.podGroupName".to_owned();
    for (labels, annotations, spec, at, problem, other, name) in [
        (&[(X, "g"), (SIGS, "h")][..], &[][..], json!({}), label(X), gang, label(SIGS), "h"),
        (&[(SIGS, "g")], &[(koordinator::NAME, "h")], json!({}), label(SIGS), gang, annotation(KOORD.0), "h"),
        (&[(X, "g"), uni[0], uni[1]], &[], json!({}), label(X), dialect, label(unicore::NAME), "g"),
        (&uni, &[(BATCH, "h")], json!({}), label(unicore::NAME), gang, annotation(BATCH), "h"),
        (&[], &[(BATCH, "g")], native("g"), annotation(BATCH), dialect, field, "g"),
    ] {
        let line = format!("{at}: {problem} is named as well, by {other}: {name}, got g");
        let mark = pod(labels, annotations, spec).gang.expect("a gang");
        assert_eq!(lines(&mark.problems), [line]);
        assert_eq!(&*mark.gang.name, "g");
    }
}

#[test]
fn koordinator_terms_that_cannot_be_used_are_warnings() {
    let field = |key: &str| format!("metadata.annotations[{key}]");
    for (key, value, problem) in [
        (koordinator::TOTAL_NUMBER, "all", "not a number of members, the quorum is taken"),
        (koordinator::TOTAL_NUMBER, "1", "below the quorum of 2, which is taken"),
        (koordinator::MODE, "strict", "neither Strict nor NonStrict, Strict is taken"),
        (koordinator::WAITING_TIME, "0s", "not a duration above zero, the default is taken"),
        (koordinator::WAITING_TIME, "-5s", "not a duration above zero, the default is taken"),
        (koordinator::WAITING_TIME, "soon", "not a duration above zero, the default is taken"),
        (
            koordinator::MATCH_POLICY,
            "all",
            "none of only-waiting, waiting-and-running, once-satisfied; the default is taken",
        ),
        (koordinator::GROUPS, "ns/g", "not a JSON list of \"namespace/name\", the gang stands alone"),
        (koordinator::GROUPS, r#"["g"]"#, "not a JSON list of \"namespace/name\", the gang stands alone"),
        (koordinator::GROUPS, r#"["a/b/c"]"#, "not a JSON list of \"namespace/name\", the gang stands alone"),
    ] {
        let mark = mark(&[], &[KOORD, (koordinator::MIN_AVAILABLE, "2"), (key, value)]);
        assert_eq!(lines(&mark.problems), [format!("warning: {}: {problem}, got {value}", field(key))]);
        let total = (key == koordinator::TOTAL_NUMBER).then_some(2);
        assert_eq!(mark.terms, GangTerms { min: Some(2), total, ..GangTerms::default() });
    }
    for groups in ["[]", r#"["ns/g"]"#] {
        let mark = mark(&[(X, "g")], &[(koordinator::GROUPS, groups)]);
        assert_eq!((mark.terms, mark.problems.len()), (GangTerms::default(), 0), "{groups}");
    }
}

#[test]
fn a_pod_of_kube_batch_without_a_group_has_one_of_its_own() {
    let shadow = |owner: Value, annotations: Pairs<'_>| {
        let mut object = manifest(&[], annotations, json!({"schedulerName": "kube-batch"}));
        object["metadata"]["ownerReferences"] = owner;
        let pod = Decoder::default().pod(&object).expect("readable");
        assert!(pod.spec.has_shadow_group);
        GangDeclaration::clone(&pod.gang.expect("a gang"))
    };
    let named = manifest(&[], &[(BATCH, "g")], json!({"schedulerName": "kube-batch"}));
    assert!(!Decoder::default().pod(&named).expect("readable").spec.has_shadow_group);
    let owner = json!([{"kind": "Node", "name": "n", "uid": "x"},
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-uid", "controller": true}]);
    let of_job = shadow(owner, &[(kube_batch::GROUP_MIN_MEMBER, "3")]);
    assert_eq!((of_job.gang, of_job.is_shadow), (GangKey::new("ns", "job-uid"), true));
    assert_eq!((of_job.terms.min, of_job.needs_group, of_job.problems.len()), (Some(3), false, 0));
    let alone = shadow(json!([]), &[]);
    assert_eq!((alone.gang, alone.terms.min), (GangKey::new("ns", "u"), Some(1)));
    let bad = shadow(json!([]), &[(kube_batch::GROUP_MIN_MEMBER, "0")]);
    let line = "warning: metadata.annotations[scheduling.k8s.io/group-min-member]: \
        not a number of members above zero, 1 is taken, got 0";
    assert_eq!((lines(&bad.problems), bad.terms.min), (vec![line.to_owned()], Some(1)));
}

#[test]
fn any_controller_is_read() {
    let with = |references: Value| {
        let mut object = manifest(&[], &[], json!({}));
        object["metadata"]["ownerReferences"] = references;
        Decoder::default().pod(&object).expect("readable").controller
    };
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true});
    let want = Controller { uid: "ju".into(), kind: "Job".into(), name: "j".into() };
    assert_eq!(with(json!([{"kind": "Node", "name": "n", "uid": "nu"}, job])), Some(want));
    assert_eq!(with(json!([{"kind": "Node", "name": "n", "uid": "nu"}])), None);
}

#[test]
fn words_that_are_no_texts_are_faults_of_the_pod() {
    let mut object = manifest(&[], &[], json!({}));
    object["metadata"]["annotations"][koordinator::MODE] = json!(7);
    let fault = Decoder::default().pod(&object).expect_err("unreadable");
    assert_eq!(&*fault.field, "metadata.annotations[gang.scheduling.koordinator.sh/mode]");
    let object = manifest(&[], &[], json!({"schedulingGroup": {"podGroupName": []}}));
    let fault = Decoder::default().pod(&object).expect_err("unreadable");
    assert_eq!((&*fault.field, &*fault.problem), ("spec.schedulingGroup.podGroupName", "not a text"));
}
