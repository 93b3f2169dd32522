//! Reads from the body of a review what the rules look at, and passes over the rest.
//!
//! Whoever reaches the server may send it bodies: `[0,0,0,...]` takes 16 times its length as values. So nothing in an array is
//! kept, for no rule looks there, of a pod only its name and its labels are, and fields have a greatest number.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Greatest number of fields that are kept of a body. An object of an API server has some hundred.
const FIELDS: usize = 1 << 16;

/// What is kept of a value.
enum Wanted {
    /// All but the content of arrays.
    All,
    /// These fields.
    Fields(&'static [(&'static str, Wanted)]),
}
use Wanted::{All, Fields};

const POD: Wanted = Fields(&[("metadata", Fields(&[("name", All), ("generateName", All), ("labels", All)]))]);
const QUOTA: Wanted = Fields(&[
    (
        "metadata",
        Fields(&[
            ("name", All),
            ("namespace", All),
            ("creationTimestamp", All),
            ("labels", All),
            ("annotations", All),
        ]),
    ),
    ("spec", All),
    ("status", All),
]);

macro_rules! review {
    ($object:expr) => {
        Fields(&[
            ("apiVersion", All),
            ("kind", All),
            (
                "request",
                Fields(&[
                    ("uid", All),
                    ("operation", All),
                    ("resource", Fields(&[("resource", All)])),
                    ("object", $object),
                    ("oldObject", $object),
                ]),
            ),
        ])
    };
}

static OF_PODS: Wanted = review!(POD);
static OF_QUOTAS: Wanted = review!(QUOTA);

/// What is kept of a review of a pod.
pub(crate) struct OfPod(pub(crate) Value);
/// What is kept of a review of a quota.
pub(crate) struct OfQuota(pub(crate) Value);

impl<'de> Deserialize<'de> for OfPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kept(&OF_PODS, deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for OfQuota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kept(&OF_QUOTAS, deserializer).map(Self)
    }
}

fn kept<'de, D: Deserializer<'de>>(wanted: &Wanted, deserializer: D) -> Result<Value, D::Error> {
    Keep { wanted, left: &Cell::new(FIELDS) }.deserialize(deserializer)
}

#[derive(Clone, Copy)]
struct Keep<'w> {
    wanted: &'w Wanted,
    /// How many more fields may be kept.
    left: &'w Cell<usize>,
}

impl Keep<'_> {
    fn field(&self, name: &str) -> Option<Self> {
        let wanted = match self.wanted {
            All => Some(self.wanted),
            Fields(fields) => fields.iter().find(|(field, _)| *field == name).map(|(_, wanted)| wanted),
        };
        wanted.map(|wanted| Self { wanted, ..*self })
    }
}

impl<'de> DeserializeSeed<'de> for Keep<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, is: bool) -> Result<Value, E> {
        Ok(is.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let Some(keep) = self.field(&name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let left = self.left.get().checked_sub(1);
            self.left.set(left.ok_or_else(|| A::Error::custom(format!("it has more than {FIELDS} fields")))?);
            kept.insert(name, fields.next_value_seed(keep)?);
        }
        Ok(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(object: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "more": {"of": "it"},
            "request": {
                "uid": "u", "operation": "UPDATE", "resource": {"group": "", "resource": "pods"},
                "userInfo": {"groups": ["a"]}, "object": object, "oldObject": object,
            },
        })
    }

    fn kept_of(object: &Value, kept: &Value) -> Value {
        let mut review = review(object);
        let request = review["request"].as_object_mut().expect("an object");
        request.remove("userInfo");
        request.insert("resource".to_owned(), json!({"resource": "pods"}));
        request.insert("object".to_owned(), kept.clone());
        request.insert("oldObject".to_owned(), kept.clone());
        review.as_object_mut().expect("an object").remove("more");
        review
    }

    #[test]
    fn what_the_rules_look_at_is_kept() {
        let metadata = json!({"name": "q", "labels": {"a": "b", "c": null}, "managedFields": [{"f": {}}]});
        let object =
            json!({"metadata": metadata, "spec": {"max": {"cpu": 1, "x": -2.5, "y": true}, "all": [1, [2]]}});
        let OfQuota(quota) = serde_json::from_value(review(&object)).expect("a review");
        let metadata = json!({"name": "q", "labels": {"a": "b", "c": null}});
        let spec = json!({"max": {"cpu": 1, "x": -2.5, "y": true}, "all": []});
        assert_eq!(quota, kept_of(&object, &json!({"metadata": metadata, "spec": spec})));
        let OfPod(pod) = serde_json::from_value(review(&object)).expect("a review");
        assert_eq!(pod, kept_of(&object, &json!({"metadata": metadata})));
    }

    #[test]
    fn bodies_of_strangers_take_no_room() {
        let zeros = format!("[{}0]", "0,".repeat(2_000_000));
        let OfQuota(value) = serde_json::from_str(&zeros).expect("JSON");
        assert_eq!(value, json!([]));
        let fields: String = (0..=FIELDS).map(|n| format!("\"{n}\":0,")).collect();
        let within =
            |place: &str| format!("{{\"request\":{{\"object\":{{\"{place}\":{{{fields}\"a\":0}}}}}}}}");
        let error = serde_json::from_str::<OfQuota>(&within("spec")).err().expect("too many");
        assert!(error.to_string().starts_with("it has more than 65536 fields"), "{error}");
        let OfPod(pod) = serde_json::from_str(&within("spec")).expect("a pod's spec is passed over");
        assert_eq!(pod, json!({"request": {"object": {}}}));
    }
}
