//! What a Lease says about its holder, and how that is read from and written to the object.
//!
//! Fields that this file does not know stay as they were, such as labels and `spec.strategy`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

/// The part of a Lease's spec that the election reads. Times are texts, because they are only compared for equality:
/// they come from the clock of another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `holderIdentity`; empty when nobody holds the Lease.
    pub holder: String,
    /// `leaseDurationSeconds`, if it is a positive number.
    pub duration: Option<Duration>,
    /// `leaseTransitions`: how often the Lease went to another holder.
    pub transitions: i64,
    /// `acquireTime`.
    pub acquired: String,
    /// `renewTime`.
    pub renewed: String,
}

impl Record {
    /// Reads the record of a Lease. What is missing or of another type counts as absent.
    pub fn read(lease: &Value) -> Self {
        let spec = &lease["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let seconds = spec["leaseDurationSeconds"].as_u64().filter(|seconds| *seconds > 0);
        Self {
            holder: text("holderIdentity"),
            duration: seconds.map(Duration::from_secs),
            transitions: spec["leaseTransitions"].as_i64().unwrap_or(0),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
        }
    }

    /// Puts the record into a Lease, which may be `null`, at a version: an update that another change refuses, or a
    /// creation when there is no version.
    pub(crate) fn write(
        &self,
        mut lease: Value,
        (namespace, name): (&str, &str),
        version: Option<&str>,
    ) -> Value {
        lease["apiVersion"] = "coordination.k8s.io/v1".into();
        lease["kind"] = "Lease".into();
        match version {
            Some(version) => lease["metadata"]["resourceVersion"] = version.into(),
            None => lease["metadata"] = json!({"namespace": namespace, "name": name}),
        }
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = self.holder.as_str().into();
        spec["leaseDurationSeconds"] = self.duration.map_or(1, whole_seconds).into();
        spec["leaseTransitions"] = self.transitions.into();
        spec["acquireTime"] = self.acquired.as_str().into();
        spec["renewTime"] = self.renewed.as_str().into();
        lease
    }
}

/// Returns a duration in whole seconds, rounded up, and at least one: a holder must never promise less than it uses.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

/// Returns a time as the API's MicroTime.
pub(crate) fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_as_it_was_written_and_other_fields_stay() {
        let record = Record {
            holder: "a_1".into(),
            duration: Some(Duration::from_secs(15)),
            transitions: 3,
            acquired: micro_time(Timestamp::UNIX_EPOCH),
            renewed: "1970-01-01T00:00:01.000001Z".into(),
        };
        let made = record.write(Value::Null, ("ns", "pellucid"), None);
        assert_eq!(made["metadata"], json!({"namespace": "ns", "name": "pellucid"}));
        assert_eq!(made["spec"]["acquireTime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(Record::read(&made), record);
        let known = json!({"metadata": {"uid": "u", "labels": {"a": "b"}}, "spec": {"strategy": "OldestEmulationVersion"}});
        let updated = record.write(known, ("ns", "pellucid"), Some("7"));
        assert_eq!(updated["metadata"], json!({"uid": "u", "labels": {"a": "b"}, "resourceVersion": "7"}));
        assert_eq!(updated["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(Record::read(&updated), record);
    }

    #[test]
    fn what_is_missing_or_strange_counts_as_absent() {
        assert_eq!(Record::read(&json!({})), Record::default());
        let strange =
            json!({"spec": {"holderIdentity": 7, "leaseDurationSeconds": -1, "leaseTransitions": "x"}});
        assert_eq!(Record::read(&strange), Record::default());
    }

    #[test]
    fn a_promise_is_never_shorter_than_what_is_used() {
        let of = |millis| whole_seconds(Duration::from_millis(millis));
        assert_eq!([of(0), of(200), of(1000), of(1001), of(15_000)], [1, 1, 1, 2, 15]);
    }
}
