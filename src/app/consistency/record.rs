//! What comparisons found: per kind the last one, and the newest drifts. Written by the sweeper, read by routes and metrics.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use pellucid_api::rest::consistency::{Drift, KindConsistency};
use pellucid_diagnosis::consistency::Differences;

/// Most drifts that are kept; the oldest go first.
pub const DRIFTS: usize = 1_000;

/// What is counted of a kind since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Drifts found.
    pub found: u64,
    /// Drifts that were gone after the kind was listed again.
    pub repaired: u64,
    /// Lists that were given up.
    pub failed: u64,
}

/// All that is kept.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Complete sweeps over all kinds.
    pub sweeps: u64,
    /// The last comparison of each kind.
    pub kinds: BTreeMap<&'static str, (KindConsistency, Counts)>,
    /// The newest drifts, the oldest first.
    pub drifts: VecDeque<Drift>,
}

/// The record that the sweeper writes and readers share.
#[derive(Clone, Default)]
pub struct ConsistencyRecord(Arc<Mutex<Recorded>>);

impl ConsistencyRecord {
    /// Returns a copy of all that is kept.
    pub fn read(&self) -> Recorded {
        self.0.lock().clone()
    }

    /// Counts a complete sweep.
    pub(super) fn swept(&self) {
        self.0.lock().sweeps += 1;
    }

    /// Records that a kind could not be listed.
    pub(super) fn failed(&self, kind: &'static str, error: String) {
        let mut all = self.0.lock();
        let (last, counts) = all.kinds.entry(kind).or_default();
        (last.kind, last.error) = (kind.into(), Some(error));
        counts.failed += 1;
    }

    /// Records the comparison of a kind, at this time, RFC 3339: the number of objects listed, the seconds that it took and the
    /// drifts. A drift that is open already is not found again.
    pub(super) fn compared(
        &self,
        kind: &'static str,
        at: &str,
        (objects, seconds): (usize, f64),
        drifts: &Differences,
    ) {
        let mut all = self.0.lock();
        let Recorded { kinds, drifts: kept, .. } = &mut *all;
        let (last, counts) = kinds.entry(kind).or_default();
        for ((namespace, name), fields) in drifts {
            let is_it = |drift: &&mut Drift| {
                drift.repaired_at.is_none()
                    && (&*drift.kind, &*drift.namespace, &*drift.name) == (kind, namespace.as_str(), &**name)
            };
            if let Some(open) = kept.iter_mut().find(is_it) {
                open.fields.clone_from(fields);
                continue;
            }
            counts.found += 1;
            if kept.len() == DRIFTS {
                kept.pop_front();
            }
            kept.push_back(Drift {
                kind: kind.into(),
                namespace: namespace.to_string(),
                name: name.to_string(),
                fields: fields.clone(),
                found_at: at.into(),
                repaired_at: None,
            });
        }
        *last = KindConsistency {
            kind: kind.into(),
            compared_at: Some(at.into()),
            objects,
            seconds,
            drifts: counts.found,
            error: None,
        };
    }

    /// Records that the open drifts of a kind are gone, but for those of `left`.
    pub(super) fn repaired(&self, kind: &'static str, at: &str, left: &Differences) {
        let mut all = self.0.lock();
        let Recorded { kinds, drifts, .. } = &mut *all;
        let (_, counts) = kinds.entry(kind).or_default();
        let is_left = |drift: &Drift| {
            left.keys()
                .any(|(namespace, name)| namespace.as_str() == drift.namespace && **name == *drift.name)
        };
        for drift in drifts.iter_mut().filter(|drift| drift.kind == kind && drift.repaired_at.is_none()) {
            if !is_left(drift) {
                drift.repaired_at = Some(at.into());
                counts.repaired += 1;
            }
        }
    }
}

impl Recorded {
    /// Returns the number of drifts that are not repaired.
    pub fn open(&self) -> usize {
        self.drifts.iter().filter(|drift| drift.repaired_at.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::consistency::FieldDrift;

    use super::*;

    fn of(names: &[&str]) -> Differences {
        let field =
            FieldDrift { field: "spec.nodeName".into(), ours: "absent".into(), theirs: "\"n\"".into() };
        names.iter().map(|name| (("default".into(), (*name).into()), vec![field.clone()])).collect()
    }

    #[test]
    fn a_drift_is_counted_once_until_it_is_repaired() {
        let record = ConsistencyRecord::default();
        record.compared("Pod", "t1", (10, 0.5), &of(&["a", "b"]));
        record.repaired("Pod", "t2", &of(&["b"]));
        record.compared("Pod", "t3", (10, 0.5), &of(&["b"]));
        let all = record.read();
        assert_eq!(all.kinds["Pod"].1, Counts { found: 2, repaired: 1, failed: 0 });
        assert_eq!((all.drifts.len(), all.open()), (2, 1));
        assert_eq!(all.drifts[0].repaired_at.as_deref(), Some("t2"));
        record.repaired("Pod", "t4", &of(&[]));
        record.compared("Pod", "t5", (10, 0.5), &of(&["a"]));
        assert_eq!(record.read().kinds["Pod"].1, Counts { found: 3, repaired: 2, failed: 0 }, "it came back");
    }

    #[test]
    fn the_oldest_drifts_go_when_there_are_too_many() {
        let record = ConsistencyRecord::default();
        let names: Vec<String> = (0..DRIFTS + 2).map(|n| format!("p{n:05}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        record.compared("Pod", "t", (1, 0.0), &of(&names));
        let all = record.read();
        assert_eq!((all.drifts.len(), all.drifts[0].name.as_str()), (DRIFTS, "p00002"));
        assert_eq!(all.kinds["Pod"].1.found, DRIFTS as u64 + 2);
    }

    #[test]
    fn a_list_that_fails_leaves_the_last_comparison_with_the_error() {
        let record = ConsistencyRecord::default();
        record.compared("Node", "t1", (3, 0.1), &of(&[]));
        record.failed("Node", "503".into());
        let (last, counts) = record.read().kinds["Node"].clone();
        assert_eq!((last.objects, last.error.as_deref(), counts.failed), (3, Some("503"), 1));
    }
}
