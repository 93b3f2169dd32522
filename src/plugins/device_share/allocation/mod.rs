//! What a pod has of a node's devices, and the annotation `device-allocated` that says so.
//!
//! The scheduler writes the annotation with the Binding and reads it back after a restart. Pods that another scheduler
//! placed count by it too. Entries that make no sense are problems, and the rest counts. Many pods have the same (`shared`).

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::Name;
use pellucid_model::effect::BindingMarks;
use pellucid_model::quantity::bytes_parts;
use serde_json::Value;
use smallvec::SmallVec;

use super::amounts::{Amounts, MEMORY, Resource};
use super::device::{Device, DeviceType};
use super::hints::Exclusive;

mod shared;

pub(super) use shared::SharedAllocations;

/// Annotation of a pod: the devices that it has.
pub(super) const DEVICE_ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// A device that a pod has a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) kind: DeviceType,
    pub(super) minor: i64,
    pub(super) amounts: Amounts,
    /// Virtual functions: minor and bus address.
    pub(super) functions: SmallVec<[(i64, Name); 1]>,
}

/// The devices of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allocation {
    /// By type; those of a type in the order in which they were chosen.
    pub(super) given: SmallVec<[Given; 1]>,
    /// What the pod does not share, by type.
    pub(super) exclusive: SmallVec<[(DeviceType, Exclusive); 1]>,
}

impl Allocation {
    /// Reads the annotation. Fails when it is no JSON object of lists; entries that cannot be read are left out and
    /// returned as problems.
    pub(super) fn read(text: &str) -> Result<(Self, Vec<FieldError>), FieldError> {
        let value: Value = serde_json::from_str(text).map_err(|e| FieldError {
            field: String::new(),
            value: text.to_owned(),
            problem: format!("not JSON: {e}"),
        })?;
        let (mut made, mut problems) = (Self::default(), Vec::new());
        for (kind, list) in Field::root(&value).entries()? {
            let kind = DeviceType::read(kind);
            for entry in list.elements()? {
                match given(&kind, &entry, &mut problems) {
                    Ok(given) => made.given.push(given),
                    Err(problem) => problems.push(problem),
                }
            }
        }
        made.given.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok((made, problems))
    }

    /// Writes the annotation, with the ids that a Device gives. It is written for every pod that gets devices, so the text is put
    /// together without JSON values in between.
    pub(super) fn text(&self, device: Option<&Device>) -> String {
        let mut kinds: SmallVec<[&DeviceType; 3]> = self.given.iter().map(|given| &given.kind).collect();
        kinds.sort_unstable_by_key(|kind| kind.as_str());
        kinds.dedup();
        let mut text = String::with_capacity(64 + 224 * self.given.len());
        for (n, kind) in kinds.into_iter().enumerate() {
            text.push(if n == 0 { '{' } else { ',' });
            quote(&mut text, kind.as_str());
            text.push(':');
            for (n, given) in self.given.iter().filter(|given| given.kind == *kind).enumerate() {
                text.push(if n == 0 { '[' } else { ',' });
                let info = device.and_then(|device| device.find(&given.kind, given.minor));
                given.write(info.map_or("", |info| &info.id), &mut text);
            }
            text.push(']');
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        text
    }

    /// Returns what is left beside parts of it that others have.
    pub(super) fn less(&self, others: &[&Self]) -> Self {
        let others = || others.iter().flat_map(|other| &other.given);
        let of = |given: &Given| {
            let mut left = given.clone();
            for other in others().filter(|other| other.minor == given.minor && other.kind == given.kind) {
                left.amounts = left.amounts.less(&other.amounts);
                left.functions.retain(|function| !other.functions.contains(function));
            }
            let is_there = left.amounts.iter().any(|(_, amount)| amount > 0);
            is_there.then_some(left)
        };
        Self { given: self.given.iter().filter_map(of).collect(), exclusive: self.exclusive.clone() }
    }

    /// Returns what the Binding adds to the pod. `device` is that of the node.
    pub(super) fn marks(&self, device: Option<&Device>) -> BindingMarks {
        static KEY: LazyLock<Arc<str>> = LazyLock::new(|| DEVICE_ALLOCATED.into());
        BindingMarks::annotation(KEY.clone(), self.text(device))
    }
}

impl Given {
    /// Writes the entry of the annotation; its fields are in the order of their names. `id` is empty when there is none.
    fn write(&self, id: &str, text: &mut String) {
        text.push('{');
        for (n, (minor, bus)) in self.functions.iter().enumerate() {
            text.push_str(if n == 0 { "\"extension\":{\"vfs\":[" } else { "," });
            text.push_str("{\"busID\":");
            quote(text, bus);
            text.push_str(",\"minor\":");
            number(text, *minor);
            text.push('}');
        }
        if !self.functions.is_empty() {
            text.push_str("]},");
        }
        if !id.is_empty() {
            text.push_str("\"id\":");
            quote(text, id);
            text.push(',');
        }
        text.push_str("\"minor\":");
        number(text, self.minor);
        text.push_str(",\"resources\":{");
        for (n, (resource, amount)) in self.amounts.by_name().enumerate() {
            text.push_str(if n == 0 { "\"" } else { ",\"" });
            text.push_str(resource.name());
            text.push_str("\":\"");
            let (amount, suffix) = if resource == MEMORY { bytes_parts(amount) } else { (amount, "") };
            number(text, amount);
            text.push_str(suffix);
            text.push('"');
        }
        text.push_str("}}");
    }
}

/// Writes a number; small ones without a detour.
fn number(text: &mut String, value: i64) {
    match value {
        0..=9 => text.push((b'0' + value as u8) as char),
        10..=999 => {
            number(text, value / 10);
            number(text, value % 10);
        }
        _ => _ = write!(text, "{value}"),
    }
}

/// Writes a JSON string.
fn quote(text: &mut String, value: &str) {
    let is_plain = |b: u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
    match value.bytes().all(is_plain) {
        true => {
            text.push('"');
            text.push_str(value);
            text.push('"');
        }
        false => text.push_str(&Value::from(value).to_string()),
    }
}

fn given(kind: &DeviceType, entry: &Field<'_>, problems: &mut Vec<FieldError>) -> Result<Given, FieldError> {
    let minor = entry.get("minor")?;
    let number = minor.integer()?.ok_or_else(|| minor.error("must be a number"))?;
    let mut amounts = Amounts::default();
    for (name, field) in entry.get("resources")?.entries()? {
        let amount = field.quantity(name)?.unwrap_or(0);
        if amount < 0 {
            problems.push(field.error("must not be negative; it counts as 0"));
        }
        if let Some(resource) = Resource::find(name) {
            amounts.set(resource, amount.max(0));
        }
    }
    let function = |field: Field<'_>| {
        Ok((
            field.get("minor")?.integer()?.unwrap_or(0),
            field.get("busID")?.text()?.unwrap_or_default().into(),
        ))
    };
    let functions = entry.at(&["extension", "vfs"])?.elements()?.into_iter().map(function);
    Ok(Given {
        kind: kind.clone(),
        minor: number,
        amounts,
        functions: functions.collect::<Result<_, FieldError>>()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use smallvec::smallvec;

    use super::super::amounts::CORE;
    use super::*;

    #[test]
    fn what_is_written_is_read_alike() {
        let given = |kind, minor, functions| Given {
            kind,
            minor,
            amounts: Amounts::of([(CORE, 50), (MEMORY, 8 << 30)]),
            functions,
        };
        let functions = SmallVec::from_iter([(1, "0000:20:01.0".into())]);
        let made = Allocation {
            given: smallvec![
                given(DeviceType::Gpu, 3, SmallVec::new()),
                given(DeviceType::Rdma, 0, functions)
            ],
            exclusive: SmallVec::new(),
        };
        let expected = "{\"gpu\":[{\"id\":\"GPU-3\",\"minor\":3,\"resources\":{\"koordinator.sh/gpu-core\":\"50\",\
             \"koordinator.sh/gpu-memory\":\"8Gi\"}}],\"rdma\":[{\"extension\":{\"vfs\":[{\"busID\":\"0000:20:01.0\",\"minor\":1}]},\
             \"id\":\"mlx5\\\"0\",\"minor\":0,\"resources\":{\"koordinator.sh/gpu-core\":\"50\",\"koordinator.sh/gpu-memory\":\"8Gi\"}}]}";
        let known = |kind: &str, minor: i64, id: &str| json!({"type": kind, "minor": minor, "id": id});
        let all = json!([known("rdma", 0, "mlx5\"0"), known("gpu", 4, "GPU-4"), known("gpu", 3, "GPU-3")]);
        let device = Device::read(&json!({"spec": {"devices": all}})).expect("a Device");
        assert_eq!(made.text(Some(&device)), expected);
        for device in [Some(&device), None] {
            assert_eq!(Allocation::read(&made.text(device)), Ok((made.clone(), Vec::new())));
        }
        assert_eq!(Allocation::default().text(None), "{}");
        let odd = Given {
            kind: DeviceType::Other("a\"b".into()),
            minor: 1,
            amounts: Amounts::default(),
            functions: SmallVec::new(),
        };
        let odd = Allocation { given: smallvec![odd], exclusive: SmallVec::new() };
        let all = json!([known("a\"b", 1, "\u{7}\\")]);
        let device = Device::read(&json!({"spec": {"devices": all}})).expect("a Device");
        assert_eq!(odd.text(Some(&device)), r#"{"a\"b":[{"id":"\u0007\\","minor":1,"resources":{}}]}"#);
        assert_eq!(Allocation::read(&odd.text(Some(&device))), Ok((odd, Vec::new())));
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_named() {
        let text = r#"{"gpu":[{"minor":0,"resources":{"kubernetes.io/gpu-core":"-5"}},{"resources":{}},{"minor":1}]}"#;
        let (read, problems) = Allocation::read(text).expect("it is an object of lists");
        assert_eq!(read.given.iter().map(|given| given.minor).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(read.given[0].amounts.iter().collect::<Vec<_>>(), [(CORE, 0)]);
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["gpu[0].resources.kubernetes.io/gpu-core", "gpu[1].minor"]);
        for broken in ["", "{", "[]", r#"{"gpu":{}}"#] {
            assert!(Allocation::read(broken).is_err(), "{broken}");
        }
    }
}
