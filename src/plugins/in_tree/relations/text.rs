//! Formats selectors as users write them: `app=web,tier in (a,b),!canary`.

use pellucid_model::selector::{LabelSelector, Operator, Requirement};

/// Returns a selector in kubectl's notation; `<none>` for a selector that selects nothing, `<all>` for an empty one.
pub(crate) fn selector_text(selector: Option<&LabelSelector>) -> String {
    match selector {
        None => "<none>".to_owned(),
        Some(selector) if selector.is_empty() => "<all>".to_owned(),
        Some(selector) => {
            let all: Vec<String> = selector.requirements().iter().map(requirement_text).collect();
            all.join(",")
        }
    }
}

pub(crate) fn requirement_text(requirement: &Requirement) -> String {
    let values: Vec<&str> = requirement.values.iter().map(|v| v.as_str()).collect();
    let (key, values) = (&requirement.key, values.join(","));
    match requirement.operator {
        Operator::In if requirement.values.len() == 1 => format!("{key}={values}"),
        Operator::In => format!("{key} in ({values})"),
        Operator::NotIn => format!("{key} notin ({values})"),
        Operator::Exists => key.to_string(),
        Operator::DoesNotExist => format!("!{key}"),
        Operator::Gt => format!("{key}>{values}"),
        Operator::Lt => format!("{key}<{values}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_as_in_kubectl() {
        use Operator::*;
        let requirement = |key: &str, operator, values: &[&str]| Requirement {
            key: key.into(),
            operator,
            values: values.iter().map(|v| (*v).into()).collect(),
        };
        let selector = LabelSelector::new([
            requirement("a", In, &["1"]),
            requirement("b", In, &["1", "2"]),
            requirement("c", NotIn, &["3"]),
            requirement("d", Exists, &[]),
            requirement("e", DoesNotExist, &[]),
        ]);
        assert_eq!(selector_text(Some(&selector)), "a=1,b in (1,2),c notin (3),d,!e");
        assert_eq!(selector_text(None), "<none>");
        assert_eq!(selector_text(Some(&LabelSelector::default())), "<all>");
    }
}
