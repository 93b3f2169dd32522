//! What a pod says of the reservations that it wants, in labels and annotations.

use pellucid_api::keys::reservation as keys;
use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::selector::{LabelSelector, Labels, Operator, Requirement};
use pellucid_model::taint::{TaintEffect, Toleration, TolerationOperator};
use pellucid_model::{Name, PodSpec};
use serde_json::Value;

/// The wishes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    /// Which reservations may be used; `None`: any, and the pod may do without.
    pub(super) affinity: Option<Affinity>,
    /// Resources of which a reservation must hold just what the pod requests.
    pub(super) exact: Vec<Name>,
}

/// A reservation affinity. The pod needs a reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Affinity {
    /// Name of the reservation; `None`: of any name.
    pub(super) name: Option<Name>,
    /// Terms of which one must match; `None`: none is asked for.
    terms: Option<Vec<Term>>,
    /// Labels that the reservation must have.
    selector: LabelSelector,
    /// Tolerations of taints of reservations.
    pub(super) tolerations: Vec<Toleration>,
}

/// Requirements on labels and on the name of a reservation, as those of a node selector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

const TERMS: &str = "reservationSelectorTerms";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

impl Affinity {
    fn read(root: &Field<'_>) -> Result<Self, FieldError> {
        let required = root.get(REQUIRED)?;
        let terms = required.get(TERMS)?.elements()?;
        let terms = terms.iter().map(Term::read).collect::<Result<_, FieldError>>()?;
        let pairs = root.get("reservationSelector")?.entries()?.into_iter();
        let pairs = pairs.map(|(key, value)| Ok((key.into(), value.text()?.unwrap_or_default().into())));
        let pairs = pairs.collect::<Result<Vec<(Name, Name)>, FieldError>>()?;
        let name = root.get("name")?.text()?.filter(|name| !name.is_empty());
        let tolerations = root.get("tolerations")?.elements()?;
        Ok(Self {
            name: name.map(Name::new),
            terms: (!required.is_absent()).then_some(terms),
            selector: LabelSelector::of_pairs(&pairs),
            tolerations: tolerations.iter().map(toleration).collect::<Result<_, FieldError>>()?,
        })
    }

    /// Returns whether a reservation with this name, on a node with these labels, is selected. A label of the reservation
    /// counts before one of its node.
    pub(super) fn selects(&self, name: &Name, own: &Labels, of_node: Option<&Labels>) -> bool {
        let get = |key: &Name| own.get(key).or_else(|| of_node.and_then(|labels| labels.get(key)));
        let holds = |selector: &LabelSelector| selector.requirements().iter().all(|r| r.matches(get(&r.key)));
        // A field that no reservation has is empty.
        let nothing = Name::default();
        let named =
            |r: &Requirement| r.matches(Some(if &*r.key == "metadata.name" { name } else { &nothing }));
        let any = |term: &Term| {
            let is_empty = term.labels.is_empty() && term.fields.is_empty();
            !is_empty && term.labels.iter().all(|r| r.matches(get(&r.key))) && term.fields.iter().all(named)
        };
        holds(&self.selector) && self.terms.as_ref().is_none_or(|terms| terms.iter().any(any))
    }
}

impl Term {
    fn read(field: &Field<'_>) -> Result<Self, FieldError> {
        let list = |name| field.get(name)?.elements()?.iter().map(requirement).collect::<Result<Vec<_>, _>>();
        let (labels, fields) = (list("matchExpressions")?, list("matchFields")?);
        let is_field =
            |r: &Requirement| matches!(r.operator, Operator::In | Operator::NotIn) && r.values.len() == 1;
        if !fields.iter().all(is_field) {
            return Err(field.get("matchFields")?.error("must be In or NotIn with one value each"));
        }
        Ok(Self { labels, fields })
    }
}

/// Reads a requirement of a node selector.
fn requirement(field: &Field<'_>) -> Result<Requirement, FieldError> {
    let operator = field.get("operator")?;
    let read = match operator.text()? {
        Some("In") => Operator::In,
        Some("NotIn") => Operator::NotIn,
        Some("Exists") => Operator::Exists,
        Some("DoesNotExist") => Operator::DoesNotExist,
        Some("Gt") => Operator::Gt,
        Some("Lt") => Operator::Lt,
        _ => return Err(operator.error("must be In, NotIn, Exists, DoesNotExist, Gt or Lt")),
    };
    let list = field.get("values")?;
    let value = |field: &Field<'_>| Ok(Name::new(field.text()?.unwrap_or_default()));
    let values = list.elements()?.iter().map(value).collect::<Result<Box<[Name]>, FieldError>>()?;
    let (is_right, rule) = match read {
        Operator::In | Operator::NotIn => (!values.is_empty(), "must have a value"),
        Operator::Exists | Operator::DoesNotExist => (values.is_empty(), "must have no value"),
        Operator::Gt | Operator::Lt => {
            (matches!(&*values, [one] if one.parse::<i64>().is_ok()), "must be one integer")
        }
    };
    if !is_right {
        return Err(list.error(rule));
    }
    let key = field.get("key")?.text()?.unwrap_or_default().into();
    Ok(Requirement { key, operator: read, values })
}

fn toleration(field: &Field<'_>) -> Result<Toleration, FieldError> {
    let text = |name| Ok::<Name, FieldError>(field.get(name)?.text()?.unwrap_or_default().into());
    let operator = match &*text("operator")? {
        "" | "Equal" => TolerationOperator::Equal,
        "Exists" => TolerationOperator::Exists,
        _ => TolerationOperator::Unknown,
    };
    let effect = text("effect")?;
    let effect = TaintEffect::ALL.into_iter().find(|known| known.as_str() == &*effect);
    Ok(Toleration { key: text("key")?, operator, value: text("value")?, effect })
}

/// Returns whether a pod uses nodes as if there were no reservations.
pub(super) fn ignores_all(spec: &PodSpec) -> bool {
    spec.wide_labels.text(keys::RESERVATION_IGNORED) == Some("true")
}

/// Returns whether a pod says anything of reservations.
pub(super) fn says_anything(spec: &PodSpec) -> bool {
    let said = [keys::RESERVATION_AFFINITY, keys::EXACT_MATCH_RESERVATION];
    let (labels, annotations) = (&spec.wide_labels, &spec.annotations);
    !labels.is_empty() && labels.text(keys::RESERVATION_IGNORED).is_some()
        || !annotations.is_empty() && said.iter().any(|key| annotations.text(key).is_some())
}

/// Reads what a pod wants. Fails with the annotation, the field and what is wrong with it.
pub(super) fn wishes(spec: &PodSpec) -> Result<Wishes, String> {
    let text = |key| spec.annotations.text(key);
    // An empty text is an affinity without requirements, but no wish for equal amounts, as in Koordinator.
    let affinity = text(keys::RESERVATION_AFFINITY).map(|text| if text.is_empty() { "{}" } else { text });
    let affinity = read(affinity, keys::RESERVATION_AFFINITY, Affinity::read)?;
    let exact = text(keys::EXACT_MATCH_RESERVATION).filter(|text| !text.is_empty());
    let exact = read(exact, keys::EXACT_MATCH_RESERVATION, |root| {
        let names = root.get("resourceNames")?.elements()?;
        names.iter().map(|n| Ok(Name::new(n.text()?.unwrap_or_default()))).collect::<Result<_, FieldError>>()
    })?;
    Ok(Wishes { affinity, exact: exact.unwrap_or_default() })
}

fn read<T>(
    text: Option<&str>,
    key: &str,
    read: impl FnOnce(&Field<'_>) -> Result<T, FieldError>,
) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let value: Value = serde_json::from_str(text).map_err(|e| format!("annotation {key}: no JSON: {e}"))?;
    read(&Field::root(&value)).map(Some).map_err(|e| format!("annotation {key}: {e}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(key: &str, value: &Value) -> PodSpec {
        let annotations = Labels::new([(key.into(), Name::new(&value.to_string()))]);
        PodSpec { annotations, ..PodSpec::default() }
    }

    fn selects(affinity: &Value) -> bool {
        let affinity = wishes(&spec(keys::RESERVATION_AFFINITY, affinity)).expect("readable").affinity;
        let own = Labels::new([("pool".into(), "a".into()), ("gen".into(), "5".into())]);
        let of_node = Labels::new([("zone".into(), "z".into())]);
        affinity.expect("one").selects(&"r".into(), &own, Some(&of_node))
    }

    #[test]
    fn labels_of_reservation_and_node_and_the_name_are_selected_by() {
        let term = |term: Value| json!({REQUIRED: {TERMS: [term]}});
        let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
        for (affinity, is_selected) in [
            (json!({}), true),
            (json!({"reservationSelector": {"pool": "a"}}), true),
            (json!({"reservationSelector": {"pool": "b"}}), false),
            (term(json!({"matchExpressions": [is("zone", "z")]})), true),
            (term(json!({"matchExpressions": [is("zone", "y")]})), false),
            (term(json!({"matchFields": [is("metadata.name", "r")]})), true),
            (term(json!({"matchFields": [is("metadata.name", "q")]})), false),
            (term(json!({})), false),
            (term(json!({"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["4"]}]})), true),
            (term(json!({"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["5"]}]})), false),
            (term(json!({"matchExpressions": [{"key": "gen", "operator": "Lt", "values": ["6"]}]})), true),
            (term(json!({"matchExpressions": [{"key": "pool", "operator": "Lt", "values": ["6"]}]})), false),
            // A term of a node selector has no labels, and a reservation no other field than its name.
            (term(json!({"matchLabels": {"pool": "a"}})), false),
            (term(json!({"matchFields": [is("spec.ttl", "r")]})), false),
            // Terms that are asked for and not given select nothing.
            (json!({REQUIRED: {TERMS: []}}), false),
            (json!({REQUIRED: {}}), false),
            (json!({REQUIRED: null}), true),
        ] {
            assert_eq!(selects(&affinity), is_selected, "{affinity}");
        }
    }

    #[test]
    fn an_empty_text_is_an_affinity_and_no_wish_for_equal_amounts() {
        let said = [keys::RESERVATION_AFFINITY, keys::EXACT_MATCH_RESERVATION];
        let annotations = Labels::new(said.map(|key| (key.into(), Name::default())));
        let made = wishes(&PodSpec { annotations, ..PodSpec::default() });
        assert_eq!(made, Ok(Wishes { affinity: Some(Affinity::default()), exact: Vec::new() }));
    }

    #[test]
    fn a_term_that_no_node_selector_may_have_is_named() {
        let of = |list: &str, operator: &str, values: &[&str]| {
            let one = json!({"key": "metadata.name", "operator": operator, "values": values});
            let affinity = json!({REQUIRED: {TERMS: [{list: [one]}]}});
            wishes(&spec(keys::RESERVATION_AFFINITY, &affinity)).expect_err("unreadable")
        };
        for (list, operator, values, rule) in [
            ("matchExpressions", "Gt", &["x"][..], "must be one integer"),
            ("matchExpressions", "Lt", &["1", "2"], "must be one integer"),
            ("matchExpressions", "In", &[], "must have a value"),
            ("matchExpressions", "Exists", &["1"], "must have no value"),
            ("matchExpressions", "Near", &["1"], "must be In, NotIn, Exists, DoesNotExist, Gt or Lt"),
            ("matchFields", "In", &["q", "r"], "must be In or NotIn with one value each"),
            ("matchFields", "Gt", &["1"], "must be In or NotIn with one value each"),
        ] {
            let said = of(list, operator, values);
            assert!(said.contains(rule), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let wrong = spec(keys::EXACT_MATCH_RESERVATION, &json!({"resourceNames": [1]}));
        let said = wishes(&wrong).expect_err("a number is no name");
        assert_eq!(
            said,
            "annotation scheduling.koordinator.sh/exact-match-reservation: resourceNames[0]: not a text (1)"
        );
    }
}
