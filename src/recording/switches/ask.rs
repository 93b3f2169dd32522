//! Parses the JSON form of a switch, field by field. An error names the field that cannot be used.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::selector::LabelSelector;
use pellucid_model::{GangKey, Name, PodKey};
use serde_json::{Map, Value};

use super::recording::{Flag, Scope};

/// Duration of a recording when the request names none.
pub const DEFAULT_TTL: Duration = Duration::from_secs(600);
/// Maximum duration of a recording.
pub const LONGEST_TTL: Duration = Duration::from_secs(24 * 3600);
/// Number of attempts that a recording covers when the request names none.
pub const DEFAULT_RECORDS: u64 = 100;
/// Maximum number of attempts that a recording covers.
pub const MOST_RECORDS: u64 = 100_000;

/// A request to change a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Sets the flag, for a scope and a time.
    Set(Order),
    /// Ends the recording with this number; without a number, the raw value.
    End(Option<u64>),
}

/// The recording that a request describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Value of the flag.
    pub value: Arc<str>,
    /// Number of rows to record of each score table; 0 for other flags.
    pub rows: usize,
    /// The pods whose attempts are recorded.
    pub scope: Scope,
    /// Duration of the recording.
    pub ttl: Duration,
    /// Maximum number of attempts to record.
    pub most: u64,
    /// Who wants the recording, if the request says so.
    pub owner: Option<Arc<str>>,
}

/// Parses the JSON form of a flag's value. The error names the field that cannot be used.
pub fn parse(flag: Flag, text: &str) -> Result<Ask, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("the body is not JSON: {e}"))?;
    let Value::Object(fields) = value else { return Err("the body is not a JSON object".into()) };
    let fields = Fields(fields);
    fields.check_known(flag)?;
    let id = fields.whole("id", 1, u64::MAX)?;
    let value = fields.value(flag)?;
    let is_off = fields.boolean("off")?.unwrap_or(false)
        || (flag.records() && value.as_ref().is_some_and(|(v, _)| matches!(&**v, "0" | "false")));
    if is_off {
        let scoped =
            fields.0.keys().find(|k| !matches!(k.as_str(), "id" | "off" | "value" | "topN" | "owner"));
        return match (scoped, id) {
            (Some(field), None) => Err(format!("`{field}` does not end a recording; name it by its `id`")),
            _ => Ok(Ask::End(id)),
        };
    }
    if id.is_some() {
        return Err(
            "`id` only ends a recording (with \"off\": true); the same flag, scope and owner renew one"
                .into(),
        );
    }
    let Some((value, rows)) = value else {
        return Err(match flag {
            Flag::Scores => "`value` (or `topN`) is missing: how many rows of each score table".into(),
            Flag::Failures => "`value` is missing: true".into(),
            Flag::Verbosity => "`value` is missing: the verbosity, a klog number".into(),
            Flag::Log => "`value` is missing: a log directive".into(),
        });
    };
    let ttl = fields.whole("ttlSeconds", 1, LONGEST_TTL.as_secs())?.map_or(DEFAULT_TTL, Duration::from_secs);
    let most = fields.whole("maxRecords", 1, MOST_RECORDS)?;
    let most = match (fields.boolean("oneShot")?.unwrap_or(false), most) {
        (true, Some(n)) if n > 1 => return Err(format!("`oneShot` records once, but `maxRecords` is {n}")),
        (true, _) => 1,
        (false, most) => most.unwrap_or(DEFAULT_RECORDS),
    };
    let owner = fields.word("owner")?.map(Into::into);
    Ok(Ask::Set(Order { value, rows, scope: fields.scope()?, ttl, most, owner }))
}

struct Fields(Map<String, Value>);

impl Fields {
    fn check_known(&self, flag: Flag) -> Result<(), String> {
        let everywhere = ["value", "ttlSeconds", "owner", "id", "off"];
        let recording = ["selector", "namespace", "pod", "gang", "profile", "maxRecords", "oneShot"];
        for field in self.0.keys() {
            let (name, flag_name) = (field.as_str(), flag.as_str());
            let is_known = everywhere.contains(&name)
                || (flag.records() && recording.contains(&name))
                || (flag == Flag::Scores && name == "topN");
            if !is_known {
                let mut known: Vec<&str> = everywhere.to_vec();
                known.extend(recording.iter().filter(|_| flag.records()));
                return Err(format!("flag {flag_name} has no field `{name}`; it has {}", known.join(", ")));
            }
        }
        Ok(())
    }

    /// Returns the value, and the number of table rows that it means.
    fn value(&self, flag: Flag) -> Result<Option<(Arc<str>, usize)>, String> {
        match flag {
            Flag::Scores => {
                if self.0.contains_key("topN") && self.0.contains_key("value") {
                    return Err("`topN` and `value` mean the same; give one of them".into());
                }
                let field = if self.0.contains_key("topN") { "topN" } else { "value" };
                let rows = self.whole(field, 0, 100_000)?;
                Ok(rows.map(|n| (n.to_string().into(), n as usize)))
            }
            Flag::Failures => Ok(self.boolean("value")?.map(|on| (on.to_string().into(), 0))),
            Flag::Verbosity => Ok(self.whole("value", 0, 10)?.map(|v| (v.to_string().into(), 0))),
            Flag::Log => Ok(self.word("value")?.map(|text| (text.into(), 0))),
        }
    }

    fn scope(&self) -> Result<Scope, String> {
        let selector = match self.word("selector")? {
            Some(text) => {
                let selector = LabelSelector::parse(text).map_err(|e| format!("`selector` {e}"))?;
                Some((text.into(), selector))
            }
            None => None,
        };
        let pair = |field| -> Result<Option<(&str, &str)>, String> {
            let Some(text) = self.word(field)? else { return Ok(None) };
            let pair =
                text.split_once('/').filter(|(a, b)| !a.is_empty() && !b.is_empty() && !b.contains('/'));
            pair.map(Some).ok_or_else(|| format!("`{field}` is {text:?}; want namespace/name"))
        };
        Ok(Scope {
            selector,
            namespace: self.word("namespace")?.map(Name::new),
            pod: pair("pod")?.map(|(namespace, name)| PodKey::new(namespace, name)),
            gang: pair("gang")?.map(|(namespace, name)| GangKey::new(namespace, name)),
            profile: self.word("profile")?.map(Name::new),
        })
    }

    fn word(&self, field: &str) -> Result<Option<&str>, String> {
        const LONGEST: usize = 1_024;
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if (1..=LONGEST).contains(&text.len()) => Ok(Some(text)),
            Some(Value::String(text)) => {
                Err(format!("`{field}` has {} characters; want 1 to {LONGEST}", text.len()))
            }
            Some(other) => Err(format!("`{field}` is {other}; want a text")),
        }
    }

    fn boolean(&self, field: &str) -> Result<Option<bool>, String> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(other) => Err(format!("`{field}` is {other}; want true or false")),
        }
    }

    fn whole(&self, field: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        let Some(value) = self.0.get(field).filter(|v| !v.is_null()) else { return Ok(None) };
        let number = value.as_u64().filter(|n| (least..=most).contains(n));
        number.map(Some).ok_or_else(|| match most {
            u64::MAX => format!("`{field}` is {value}; want an integer from {least}"),
            _ => format!("`{field}` is {value}; want an integer from {least} to {most}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read() {
        let text = r#"{"topN": 5, "selector": "app=x", "namespace": "ns", "pod": "ns/p", "gang": "ns/g",
            "profile": "default", "ttlSeconds": 60, "maxRecords": 7, "owner": "alice"}"#;
        let Ok(Ask::Set(order)) = parse(Flag::Scores, text) else { panic!("it can be read") };
        assert_eq!((&*order.value, order.rows, order.most), ("5", 5, 7));
        assert_eq!((order.ttl, order.owner.as_deref()), (Duration::from_secs(60), Some("alice")));
        assert_eq!(order.scope.pod, Some(PodKey::new("ns", "p")));
        assert_eq!(order.scope.gang, Some(GangKey::new("ns", "g")));
        let Ok(Ask::Set(order)) = parse(Flag::Failures, r#"{"value": true, "oneShot": true}"#) else {
            panic!("it can be read")
        };
        assert_eq!((order.most, order.ttl, order.scope), (1, DEFAULT_TTL, Scope::default()));
    }

    #[test]
    fn ends_are_read() {
        for (flag, text, id) in [
            (Flag::Scores, r#"{"id": 3, "off": true}"#, Some(3)),
            (Flag::Scores, r#"{"id": 3, "value": 0}"#, Some(3)),
            (Flag::Failures, r#"{"id": 4, "value": false}"#, Some(4)),
            (Flag::Failures, r#"{"off": true}"#, None),
            (Flag::Verbosity, r#"{"off": true}"#, None),
        ] {
            assert_eq!(parse(flag, text), Ok(Ask::End(id)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (flag, text, says) in [
            (Flag::Scores, "{", "not JSON"),
            (Flag::Scores, "{}", "`value` (or `topN`) is missing"),
            (Flag::Failures, "{}", "`value` is missing"),
            (Flag::Verbosity, "{}", "klog number"),
            (Flag::Log, "{}", "log directive"),
            (Flag::Scores, r#"{"value": "5"}"#, "`value` is \"5\"; want an integer"),
            (Flag::Scores, r#"{"value": 5, "topN": 5}"#, "mean the same"),
            (Flag::Scores, r#"{"value": -1}"#, "`value` is -1"),
            (Flag::Failures, r#"{"value": 1}"#, "`value` is 1; want true or false"),
            (
                Flag::Scores,
                r#"{"value": 5, "ttlSeconds": 0}"#,
                "`ttlSeconds` is 0; want an integer from 1 to 86400",
            ),
            (Flag::Scores, r#"{"value": 5, "maxRecords": 1.5}"#, "`maxRecords` is 1.5"),
            (Flag::Scores, r#"{"value": 5, "maxRecords": 5, "oneShot": true}"#, "`oneShot` records once"),
            (Flag::Scores, r#"{"value": 5, "pod": "p"}"#, "`pod` is \"p\"; want namespace/name"),
            (Flag::Scores, r#"{"value": 5, "gang": "a/b/c"}"#, "`gang`"),
            (Flag::Scores, r#"{"value": 5, "selector": "a in b"}"#, "`selector` has `b`"),
            (Flag::Scores, r#"{"value": 5, "owner": ""}"#, "`owner` has 0 characters"),
            (Flag::Scores, r#"{"value": 5, "namespace": 7}"#, "`namespace` is 7; want a text"),
            (Flag::Scores, r#"{"value": 5, "ttl": 7}"#, "no field `ttl`"),
            (Flag::Verbosity, r#"{"value": 5, "pod": "a/b"}"#, "no field `pod`"),
            (Flag::Scores, r#"{"value": 5, "id": 1}"#, "`id` only ends"),
            (Flag::Scores, r#"{"value": 0, "pod": "a/b"}"#, "`pod` does not end"),
        ] {
            let error = parse(flag, text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
