//! ElasticQuotaProfile (`quota.koordinator.sh/v1alpha1`): which nodes a tree of quotas has.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::Name;
use pellucid_model::selector::{LabelSelector, Operator, Requirement};
use serde_json::{Value, json};

use super::quota::{names, within};

/// Parts of a whole in which a ratio is kept.
const WHOLE: i128 = 1_000_000_000;

/// An ElasticQuotaProfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticQuotaProfile {
    /// `metadata.name`.
    pub name: Name,
    /// `metadata.namespace`.
    pub namespace: Name,
    /// `spec.quotaName`: the first quota of the tree.
    pub quota: Name,
    /// `spec.nodeSelector`; `None` selects no node.
    pub nodes: Option<LabelSelector>,
    /// `spec.resourceRatio`, in thousand-millionths.
    ratio: i128,
    /// The resources of the tree.
    pub resources: Vec<Name>,
}

impl ElasticQuotaProfile {
    /// Decodes a manifest. Fails with the first field that cannot be read.
    pub fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let (metadata, spec) = (root.get("metadata")?, root.get("spec")?);
        let name =
            |of: &Field<'_>, field| Ok::<Name, FieldError>(of.get(field)?.text()?.unwrap_or_default().into());
        let ratio = spec.get("resourceRatio")?;
        let keys = metadata.at(&["annotations", keys::RESOURCE_KEYS])?;
        let default = || vec!["cpu".into(), "memory".into()];
        Ok(Self {
            name: name(&metadata, "name")?,
            namespace: name(&metadata, "namespace")?,
            quota: name(&spec, "quotaName")?,
            nodes: spec.get("nodeSelector")?.selector()?,
            ratio: match ratio.text()?.filter(|text| !text.is_empty()) {
                None => WHOLE,
                Some(text) => parts(text).ok_or_else(|| ratio.error("must be a number from 0 to 1"))?,
            },
            resources: within(&keys, names)?.unwrap_or_else(default),
        })
    }

    /// Returns the part of an amount that the tree has, rounded down.
    pub fn part_of(&self, amount: i128) -> i128 {
        amount * self.ratio / WHOLE
    }

    /// Writes the manifest that [`Self::read`] reads alike.
    pub fn manifest(&self) -> Value {
        let expression = |r: &Requirement| json!({"key": r.key.as_str(), "operator": word(r.operator), "values": texts(&r.values)});
        let selector = self.nodes.as_ref().map(|nodes| {
            json!({"matchExpressions": nodes.requirements().iter().map(expression).collect::<Value>()})
        });
        json!({
            "metadata": {
                "name": self.name.as_str(),
                "namespace": self.namespace.as_str(),
                "annotations": {keys::RESOURCE_KEYS: texts(&self.resources).to_string()},
            },
            "spec": {
                "quotaName": self.quota.as_str(),
                "resourceRatio": format!("{}.{:09}", self.ratio / WHOLE, self.ratio % WHOLE),
                "nodeSelector": selector,
            },
        })
    }
}

fn texts(names: &[Name]) -> Value {
    names.iter().map(|name| json!(name.as_str())).collect()
}

const OPERATORS: [(Operator, &str); 4] = [
    (Operator::In, "In"),
    (Operator::NotIn, "NotIn"),
    (Operator::Exists, "Exists"),
    (Operator::DoesNotExist, "DoesNotExist"),
];

fn word(operator: Operator) -> &'static str {
    OPERATORS.iter().find(|(known, _)| *known == operator).map_or("", |(_, word)| word)
}

/// Parses a decimal number from 0 to 1 into thousand-millionths; digits beyond are cut.
fn parts(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let parts = whole.checked_mul(WHOLE)?.checked_add(digits.parse().ok()?)?;
    (parts <= WHOLE).then_some(parts)
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::Labels;

    use super::*;

    #[test]
    fn a_profile_selects_nodes_and_takes_a_part_of_them() {
        let manifest = json!({
            "metadata": {"name": "gpu", "namespace": "koordinator-system"},
            "spec": {
                "quotaName": "gpu-root", "resourceRatio": "0.9",
                "nodeSelector": {
                    "matchLabels": {"pool": "gpu"},
                    "matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}],
                },
            },
        });
        let read = ElasticQuotaProfile::read(&manifest).unwrap();
        assert_eq!(ElasticQuotaProfile::read(&read.manifest()), Ok(read.clone()));
        let labels =
            |pairs: &[(&str, &str)]| Labels::new(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())));
        let selector = read.nodes.as_ref().unwrap();
        assert!(selector.matches(&labels(&[("pool", "gpu")])));
        assert!(!selector.matches(&labels(&[("pool", "gpu"), ("spot", "")])));
        assert_eq!((read.part_of(105), read.resources.len()), (94, 2));
    }

    #[test]
    fn a_ratio_is_a_number_from_0_to_1() {
        assert_eq!(
            (parts("1"), parts("0.25"), parts(".5"), parts("1.0")),
            (Some(WHOLE), Some(WHOLE / 4), Some(WHOLE / 2), Some(WHOLE))
        );
        assert_eq!((parts("1.1"), parts("-1"), parts("half"), parts(".")), (None, None, None, None));
        let bad = json!({"spec": {"resourceRatio": "2"}});
        assert_eq!(ElasticQuotaProfile::read(&bad).unwrap_err().field, "spec.resourceRatio");
    }
}
