//! What a pod uses. The sandbox runs no containers, so this is what the pod's annotation says, or a share of its
//! requests.

use std::collections::BTreeMap;

use pellucid_model::quantity;
use serde_json::Value;

use crate::errors::FieldError;
use crate::fields::list;
use crate::kinds::validate::NOT_NEGATIVE;

/// Annotation with the amounts that a pod uses while it runs, such as `cpu=1500m,memory=2Gi`.
const USAGE: &str = "sandbox.pellucid.dev/usage";
/// Resources that every running pod uses.
const ALWAYS_USED: [&str; 2] = ["cpu", "memory"];
/// Percent of its requests that a pod uses of the resources that its annotation does not name.
const SHARE: i128 = 60;

/// Amounts by resource: CPU in thousandths of a core, the rest in units.
pub(crate) type Amounts = BTreeMap<String, i64>;

/// Returns the error for an annotation that cannot be read.
pub(crate) fn invalid(pod: &Value) -> Option<FieldError> {
    let value = &pod["metadata"]["annotations"][USAGE];
    let why = read(value.as_str()?).err()?;
    Some(FieldError::invalid(format!("metadata.annotations[{USAGE}]"), value, &why))
}

/// Returns what a pod uses while it runs.
pub(crate) fn of(pod: &Value) -> Amounts {
    let stated = pod["metadata"]["annotations"][USAGE].as_str().and_then(|text| read(text).ok());
    let mut used = stated.unwrap_or_default();
    for resource in ALWAYS_USED {
        used.entry(resource.to_owned()).or_insert_with(|| share(requested(pod, resource)));
    }
    used
}

/// Adds amounts to others.
pub(crate) fn add(to: &mut Amounts, amounts: &Amounts) {
    for (resource, amount) in amounts {
        let sum = to.entry(resource.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn share(amount: i64) -> i64 {
    (i128::from(amount) * SHARE / 100) as i64
}

/// Returns what the containers of a pod request together.
fn requested(pod: &Value, resource: &str) -> i64 {
    let requests = list(&pod["spec"]["containers"]).iter().map(|c| &c["resources"]["requests"][resource]);
    let amounts = requests.filter_map(|request| match request {
        Value::String(text) => parse(resource, text).ok(),
        Value::Number(number) => parse(resource, &number.to_string()).ok(),
        _ => None,
    });
    amounts.fold(0, i64::saturating_add)
}

fn parse(resource: &str, text: &str) -> Result<i64, quantity::QuantityError> {
    if resource == "cpu" { quantity::milli(text) } else { quantity::units(text) }
}

/// Reads the annotation. Fails with what is wrong.
fn read(text: &str) -> Result<Amounts, String> {
    let mut amounts = Amounts::new();
    for part in text.split(',').map(str::trim) {
        let named = part.split_once('=').filter(|(resource, _)| !resource.is_empty());
        let (resource, amount) =
            named.ok_or_else(|| format!("{part:?} is not an amount such as cpu=1500m"))?;
        let amount = parse(resource, amount).map_err(|error| error.to_string())?;
        if amount < 0 {
            return Err(format!("{part:?} {NOT_NEGATIVE}"));
        }
        if amounts.insert(resource.to_owned(), amount).is_some() {
            return Err(format!("{resource:?} stands there twice"));
        }
    }
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(usage: Option<&str>) -> Value {
        json!({
            "metadata": {"annotations": {USAGE: usage}},
            "spec": {"containers": [
                {"resources": {"requests": {"cpu": "500m", "memory": "1000"}}},
                {"resources": {"requests": {"cpu": 2}}},
                {},
            ]},
        })
    }

    fn used(usage: Option<&str>) -> Vec<(String, i64)> {
        of(&pod(usage)).into_iter().collect()
    }

    #[test]
    fn the_annotation_comes_before_a_share_of_the_requests() {
        let amount = |name: &str, amount| (name.to_owned(), amount);
        assert_eq!(used(None), [amount("cpu", 1500), amount("memory", 600)]);
        assert_eq!(used(Some("cpu=3")), [amount("cpu", 3000), amount("memory", 600)]);
        let all = [amount("cpu", 1500), amount("example.com/gpu", 2), amount("memory", 2 << 30)];
        assert_eq!(used(Some("memory=2Gi, example.com/gpu=2")), all);
        assert_eq!(used(Some("cpu=lots")), used(None));
        let mut sum = of(&pod(None));
        add(&mut sum, &of(&pod(Some("cpu=1,disk=7"))));
        assert_eq!((sum["cpu"], sum["disk"], sum["memory"]), (2500, 7, 1200));
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_named_with_its_value() {
        for good in ["cpu=1", "cpu=1500m,memory=2Gi", " memory=0 , cpu=0.1"] {
            assert!(invalid(&pod(Some(good))).is_none(), "{good}");
        }
        assert!(invalid(&pod(None)).is_none());
        for (bad, words) in [
            ("", "is not an amount"),
            ("cpu", "is not an amount"),
            ("=1", "is not an amount"),
            ("cpu=1,", "is not an amount"),
            ("cpu=lots", "\"lots\" is not a quantity"),
            ("cpu=-1", "must be greater than or equal to 0"),
            ("cpu=1,cpu=2", "twice"),
        ] {
            let error = invalid(&pod(Some(bad))).expect("refused");
            assert_eq!(error.field, "metadata.annotations[sandbox.pellucid.dev/usage]");
            assert!(error.message.contains(words) && error.message.contains(&format!("{bad:?}")), "{bad}");
        }
    }
}
