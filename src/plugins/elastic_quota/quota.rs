//! ElasticQuota (`scheduling.sigs.k8s.io/v1alpha1`): one object, as it is written.
//!
//! Labels and annotations that cannot be read leave their default in force and are a [`problem`](ElasticQuota::problems).
//! Not here: what quotas mean together. Values that contradict each other or other quotas, such as a min above max, are
//! taken as they are; `rules` judges them.

use std::collections::BTreeMap;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use serde_json::{Map, Value, json};

/// Amounts by resource, in the model's units: thousandths for `cpu`, whole units for the rest. A resource that is named
/// with 0 differs from one that is not named.
pub type Amounts = BTreeMap<Name, i64>;

/// What the scheduler last wrote to a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The annotations of [`WRITTEN_KEYS`] that are there, as they stand.
    pub annotations: BTreeMap<&'static str, String>,
    /// `status.used`.
    pub used: Amounts,
}

/// Annotations that the scheduler writes.
pub const WRITTEN_KEYS: [&str; 7] = [
    keys::RUNTIME,
    keys::REQUEST,
    keys::CHILD_REQUEST,
    keys::GUARANTEED,
    keys::ALLOCATED,
    keys::NON_PREEMPTIBLE_REQUEST,
    keys::NON_PREEMPTIBLE_USED,
];

/// An ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElasticQuota {
    /// `metadata.name`. Names count across namespaces.
    pub name: Name,
    /// `metadata.namespace`.
    pub namespace: Name,
    /// `metadata.creationTimestamp`, in seconds since 1970; of two quotas with one name the older one counts.
    pub created: i64,
    /// Name of the parent; `None` for a child of the root.
    pub parent: Option<Name>,
    /// Whether it may have children.
    pub is_parent: bool,
    /// Whether others may use what it does not request of its min.
    pub lends: bool,
    /// The tree it names; `None` is the default tree.
    pub tree: Option<Name>,
    /// Whether it is the root of a tree of its own.
    pub is_tree_root: bool,
    /// Whether its tree's total stays in the default tree as well.
    pub ignores_default_tree: bool,
    /// Name of the ElasticQuotaProfile that fills its total.
    pub profile: Option<Name>,
    /// Whether admission rules let it be changed by force.
    pub allows_force_update: bool,
    /// `spec.min`: what it gets whatever others request.
    pub min: Amounts,
    /// `spec.max`: what it never exceeds. Resources without a max are not counted.
    pub max: Amounts,
    /// Its weight; `None` is max.
    pub shared_weight: Option<Amounts>,
    /// Namespaces whose pods belong to it.
    pub namespaces: Vec<Name>,
    /// What the tree has of which it is the root.
    pub total_resource: Option<Amounts>,
    /// The part of `total_resource` on nodes that take no pods.
    pub unschedulable_resource: Option<Amounts>,
    /// What its pods may request when they are created.
    pub admission: Option<Amounts>,
    /// Resources of which max may not be set below what is used.
    pub max_strict_check_resource_keys: Vec<Name>,
    /// What the scheduler last wrote.
    pub written: Written,
    /// Labels and annotations that cannot be read; their defaults are in force.
    pub problems: Vec<FieldError>,
}

impl ElasticQuota {
    /// Decodes a manifest. Fails with the first field of `metadata`, `spec` or `status` that cannot be read; labels and
    /// annotations become [`Self::problems`] instead.
    pub fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let metadata = root.get("metadata")?;
        let name = |field| Ok::<Name, FieldError>(metadata.get(field)?.text()?.unwrap_or_default().into());
        let (labels, annotations) = (metadata.get("labels")?, metadata.get("annotations")?);
        let mut made = Self {
            name: name("name")?,
            namespace: name("namespace")?,
            created: metadata.get("creationTimestamp")?.moment()?.unwrap_or(0),
            min: amounts(&root.at(&["spec", "min"])?)?,
            max: amounts(&root.at(&["spec", "max"])?)?,
            lends: true,
            ..Self::default()
        };
        made.written.used = amounts(&root.at(&["status", "used"])?)?;
        made.read_labels(&labels)?;
        made.read_annotations(&annotations)?;
        Ok(made)
    }

    fn read_labels(&mut self, labels: &Field<'_>) -> Result<(), FieldError> {
        let named = |key| Ok(labels.get(key)?.text()?.filter(|text| !text.is_empty()).map(Name::new));
        self.parent = named(keys::PARENT)?;
        self.tree = named(keys::TREE_ID)?;
        self.profile = named(keys::PROFILE)?;
        for (key, switch) in [
            (keys::IS_PARENT, &mut self.is_parent),
            (keys::ALLOW_LENT_RESOURCE, &mut self.lends),
            (keys::IS_ROOT, &mut self.is_tree_root),
            (keys::IGNORE_DEFAULT_TREE, &mut self.ignores_default_tree),
            (keys::ALLOW_FORCE_UPDATE, &mut self.allows_force_update),
        ] {
            let field = labels.get(key)?;
            match field.text()? {
                None | Some("") => {}
                Some("true") => *switch = true,
                Some("false") => *switch = false,
                Some(_) => self.problems.push(field.error("must be \"true\" or \"false\"")),
            }
        }
        Ok(())
    }

    fn read_annotations(&mut self, annotations: &Field<'_>) -> Result<(), FieldError> {
        for (key, list) in [
            (keys::SHARED_WEIGHT, &mut self.shared_weight),
            (keys::TOTAL_RESOURCE, &mut self.total_resource),
            (keys::UNSCHEDULABLE_RESOURCE, &mut self.unschedulable_resource),
            (keys::ADMISSION, &mut self.admission),
        ] {
            match within(&annotations.get(key)?, amounts) {
                Ok(read) => *list = read,
                Err(problem) => self.problems.push(problem),
            }
        }
        for (key, list) in [
            (keys::NAMESPACES, &mut self.namespaces),
            (keys::MAX_STRICT_CHECK_RESOURCE_KEYS, &mut self.max_strict_check_resource_keys),
        ] {
            match within(&annotations.get(key)?, names) {
                Ok(read) => *list = read.unwrap_or_default(),
                Err(problem) => self.problems.push(problem),
            }
        }
        for key in WRITTEN_KEYS {
            if let Some(text) = annotations.get(key)?.text()? {
                self.written.annotations.insert(key, text.to_owned());
            }
        }
        Ok(())
    }

    /// Returns its weight per resource: the annotation, or max where there is none or nothing but zeros in it.
    pub fn weight(&self) -> &Amounts {
        self.shared_weight.as_ref().filter(|weights| weights.values().any(|w| *w > 0)).unwrap_or(&self.max)
    }

    /// Returns what the scheduler last wrote as guaranteed; nothing if there is no such annotation, or no resource list in it.
    pub(super) fn guaranteed(&self) -> Amounts {
        let text = self.written.annotations.get(keys::GUARANTEED);
        let value: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        amounts(&Field::root(&value)).unwrap_or_default()
    }

    /// Returns whether another version says the same, but for what the scheduler wrote.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let mut same = self.clone();
        same.written.clone_from(&other.written);
        same == *other
    }

    /// Writes the manifest that [`Self::read`] reads alike. Labels and annotations that could not be read are written as
    /// they stood.
    pub fn manifest(&self) -> Value {
        let switch = |on: bool| Some(if on { "true" } else { "false" }.to_owned());
        let named = |name: &Option<Name>| name.as_ref().map(Name::to_string);
        let list = |list: &Option<Amounts>| list.as_ref().map(|list| resource_list(list).to_string());
        let texts = |names: &[Name]| {
            let texts: Vec<&str> = names.iter().map(Name::as_str).collect();
            (!texts.is_empty()).then(|| json!(texts).to_string())
        };
        let labels = [
            (keys::PARENT, named(&self.parent)),
            (keys::TREE_ID, named(&self.tree)),
            (keys::PROFILE, named(&self.profile)),
            (keys::IS_PARENT, switch(self.is_parent)),
            (keys::ALLOW_LENT_RESOURCE, switch(self.lends)),
            (keys::IS_ROOT, switch(self.is_tree_root)),
            (keys::IGNORE_DEFAULT_TREE, switch(self.ignores_default_tree)),
            (keys::ALLOW_FORCE_UPDATE, switch(self.allows_force_update)),
        ];
        let annotations = [
            (keys::SHARED_WEIGHT, list(&self.shared_weight)),
            (keys::TOTAL_RESOURCE, list(&self.total_resource)),
            (keys::UNSCHEDULABLE_RESOURCE, list(&self.unschedulable_resource)),
            (keys::ADMISSION, list(&self.admission)),
            (keys::NAMESPACES, texts(&self.namespaces)),
            (keys::MAX_STRICT_CHECK_RESOURCE_KEYS, texts(&self.max_strict_check_resource_keys)),
        ];
        let written = self.written.annotations.iter().map(|(key, text)| (*key, Some(text.clone())));
        let of = |kind: &str, known: Vec<(&str, Option<String>)>| {
            let mut all: Map<String, Value> =
                known.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text?)))).collect();
            let prefix = format!("metadata.{kind}.");
            for problem in &self.problems {
                let Some(key) = problem.field.strip_prefix(&prefix) else { continue };
                all.insert(key.to_owned(), serde_json::from_str(&problem.value).unwrap_or_default());
            }
            all
        };
        json!({
            "metadata": {
                "name": self.name.as_str(),
                "namespace": self.namespace.as_str(),
                "creationTimestamp": pellucid_framework::manifest::format_moment(self.created),
                "labels": of("labels", labels.into()),
                "annotations": of("annotations", annotations.into_iter().chain(written).collect()),
            },
            "spec": {"min": resource_list(&self.min), "max": resource_list(&self.max)},
            "status": {"used": resource_list(&self.written.used)},
        })
    }
}

/// Writes a resource list.
pub fn resource_list(amounts: &Amounts) -> Value {
    let named = amounts.iter().map(|(name, amount)| (name.to_string(), json!(format_amount(name, *amount))));
    Value::Object(named.collect())
}

/// Reads a resource list, which is empty when absent.
pub(super) fn amounts(field: &Field<'_>) -> Result<Amounts, FieldError> {
    let read = |(name, field): (&str, Field<'_>)| Ok((name.into(), field.quantity(name)?.unwrap_or(0)));
    field.entries()?.into_iter().map(read).collect()
}

/// Reads a list of names.
pub(super) fn names(field: &Field<'_>) -> Result<Vec<Name>, FieldError> {
    let read = |field: Field<'_>| Ok(field.text()?.unwrap_or_default().into());
    field.elements()?.into_iter().map(read).collect()
}

/// Reads JSON that stands as text in an annotation; `None` when the annotation is absent or empty. Fails with the
/// annotation as a whole.
pub(super) fn within<T>(
    annotation: &Field<'_>,
    read: impl FnOnce(&Field<'_>) -> Result<T, FieldError>,
) -> Result<Option<T>, FieldError> {
    let Some(text) = annotation.text()?.filter(|text| !text.is_empty()) else { return Ok(None) };
    let value: Value =
        serde_json::from_str(text).map_err(|e| annotation.error(format_args!("not JSON: {e}")))?;
    let of = |inner: FieldError| match inner.field.is_empty() {
        true => annotation.error(inner.problem),
        false => annotation.error(format_args!("{}: {} ({})", inner.field, inner.problem, inner.value)),
    };
    read(&Field::root(&value)).map(Some).map_err(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota() -> Value {
        json!({
            "metadata": {
                "name": "team-a", "namespace": "koordinator-system", "creationTimestamp": "1970-01-01T00:01:00Z",
                "labels": {
                    keys::PARENT: "org", keys::IS_PARENT: "false", keys::ALLOW_LENT_RESOURCE: "false",
                    keys::TREE_ID: "gpu", "other": "label",
                },
                "annotations": {
                    keys::SHARED_WEIGHT: "{\"cpu\": \"40\", \"memory\": 1024}",
                    keys::NAMESPACES: "[\"a\", \"b\"]",
                    keys::RUNTIME: "{\"cpu\":\"3\"}",
                },
            },
            "spec": {"min": {"cpu": 10}, "max": {"cpu": "40", "memory": "200Gi"}},
            "status": {"used": {"cpu": "2500m"}},
        })
    }

    #[test]
    fn a_quota_is_read_and_written_alike() {
        let read = ElasticQuota::read(&quota()).unwrap();
        assert_eq!((read.name.as_str(), read.parent.as_deref(), read.created), ("team-a", Some("org"), 60));
        assert_eq!((read.tree.as_deref(), read.is_parent, read.lends), (Some("gpu"), false, false));
        assert_eq!(read.min, Amounts::from([("cpu".into(), 10_000)]));
        assert_eq!(read.max[&Name::new("memory")], 200 << 30);
        assert_eq!(read.weight(), &Amounts::from([("cpu".into(), 40_000), ("memory".into(), 1024)]));
        assert_eq!(read.namespaces, ["a".into(), "b".into()]);
        assert_eq!(read.written.used, Amounts::from([("cpu".into(), 2500)]));
        assert_eq!(read.problems, []);
        assert_eq!(ElasticQuota::read(&read.manifest()), Ok(read));
    }

    #[test]
    fn defaults_are_koordinators() {
        let read = ElasticQuota::read(&json!({"spec": {"max": {"cpu": 4}}})).unwrap();
        assert!(read.lends && !read.is_parent && read.parent.is_none() && read.tree.is_none());
        assert_eq!(read.weight(), &read.max);
        let zeros = json!({
            "metadata": {"annotations": {keys::SHARED_WEIGHT: "{\"cpu\": 0}"}},
            "spec": {"max": {"cpu": 4}},
        });
        assert_eq!(ElasticQuota::read(&zeros).unwrap().weight()[&Name::new("cpu")], 4000);
    }

    #[test]
    fn keys_that_cannot_be_read_leave_the_default_and_are_problems() {
        let mut bad = quota();
        bad["metadata"]["labels"][keys::ALLOW_LENT_RESOURCE] = json!("no");
        bad["metadata"]["annotations"][keys::SHARED_WEIGHT] = json!("{\"cpu\": \"much\"}");
        bad["metadata"]["annotations"][keys::NAMESPACES] = json!("a,b");
        let read = ElasticQuota::read(&bad).unwrap();
        assert!(read.lends && read.shared_weight.is_none() && read.namespaces.is_empty());
        let fields: Vec<&str> = read.problems.iter().map(|p| p.field.as_str()).collect();
        let annotation = |key| format!("metadata.annotations.{key}");
        assert_eq!(
            fields,
            [
                &*format!("metadata.labels.{}", keys::ALLOW_LENT_RESOURCE),
                &annotation(keys::SHARED_WEIGHT),
                &annotation(keys::NAMESPACES),
            ]
        );
        assert!(read.problems[1].problem.starts_with("cpu: not a quantity"), "{:?}", read.problems[1]);
        assert_eq!(ElasticQuota::read(&read.manifest()), Ok(read));
    }

    #[test]
    fn fields_of_the_spec_that_cannot_be_read_refuse_the_object() {
        let mut bad = quota();
        bad["spec"]["max"]["memory"] = json!("big");
        assert_eq!(ElasticQuota::read(&bad).unwrap_err().field, "spec.max.memory");
        let negative = ElasticQuota::read(&json!({"spec": {"min": {"cpu": "-1"}}})).unwrap();
        assert_eq!(negative.min[&Name::new("cpu")], -1000);
    }
}
