//! The task that compares each kind and has the watch of one that drifts list again.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pellucid_api::rest::consistency::FieldDrift;
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::consistency::{Differences, ObjectName, differences};
use pellucid_kubernetes::kinds::Kind;
use pellucid_kubernetes::watches::inputs::Watches;
use pellucid_kubernetes::watches::lister::{Listed, Lister};
use pellucid_model::time::Probe;
use pellucid_recording::rfc3339;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Stopwatch};
use crate::consistency::ConsistencyConfig;
use crate::consistency::record::ConsistencyRecord;

/// Longest time for a watch to list its kind again.
const RELIST: Duration = Duration::from_secs(120);
/// Pause between two looks at whether a drift is gone.
const LOOK: Duration = Duration::from_millis(50);

/// Compares all kinds, again and again.
pub struct Sweeper {
    pub(crate) config: ConsistencyConfig,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) watches: Watches,
    pub(crate) lister: Lister,
    pub(crate) clock: Clock,
    pub(crate) record: ConsistencyRecord,
}

/// A list and what differs from it.
struct Compared {
    listed: Listed,
    found: Differences,
    seconds: f64,
}

impl Sweeper {
    /// Sweeps at the interval until `stop` is cancelled; not at all when the interval is zero.
    pub async fn run(self, stop: CancellationToken) {
        if self.config.interval.is_zero() {
            return;
        }
        let sweeps = async {
            loop {
                sleep(self.config.interval).await;
                self.sweep().await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = sweeps => {}
        }
    }

    /// Compares every kind whose watch has delivered a list.
    async fn sweep(&self) {
        for kind in self.watches.kinds() {
            if let Err(error) = self.check(kind).await {
                tracing::warn!(kind = kind.as_str(), error, "consistency: the kind was not compared");
                self.record.failed(kind.as_str(), error);
            }
        }
        self.record.swept();
    }

    /// Compares a kind, twice if the first look finds something, and repairs what drifts. Fails when it cannot be listed, and
    /// when its watch was broken in between: what that one has yet to bring is no drift.
    async fn check(&self, kind: Kind) -> Result<(), String> {
        let before = self.watches.report(kind).unwrap_or_default();
        let Some(first) = self.compare(kind).await? else { return Ok(()) };
        let (objects, name) = (first.listed.versions.len(), kind.as_str());
        if first.found.is_empty() {
            self.record.compared(name, &self.now(), (objects, first.seconds), &first.found);
            self.record.repaired(name, &self.now(), &first.found);
            return Ok(());
        }
        sleep(self.config.grace).await;
        let Some(second) = self.compare(kind).await? else { return Ok(()) };
        let drifts = lasting(&first, &second);
        let is_unbroken =
            || self.watches.report(kind).is_some_and(|report| report.is_unbroken_since(&before));
        if !drifts.is_empty() && !is_unbroken() {
            return Err(format!(
                "{} objects differ, and the watch was being opened anew meanwhile",
                drifts.len()
            ));
        }
        let cost = (objects, first.seconds + second.seconds);
        self.record.compared(name, &self.now(), cost, &drifts);
        if drifts.is_empty() {
            self.record.repaired(name, &self.now(), &drifts);
            return Ok(());
        }
        for ((namespace, object), fields) in &drifts {
            tracing::warn!(
                kind = name, %namespace, name = %object, ?fields,
                "consistency: an object differs from the API server's, listing the kind again"
            );
        }
        self.repair(kind, drifts).await
    }

    /// Has the watch list the kind again, and waits until the drifts are gone or the grace is over. They are looked for in a
    /// list made after that: an API server that answered from an old state may have been the one that was behind.
    async fn repair(&self, kind: Kind, drifts: Differences) -> Result<(), String> {
        let relisted = timeout(RELIST, self.watches.list_again(kind)).await;
        relisted.map_err(|_| format!("the watch did not list again within {} s", RELIST.as_secs()))?;
        let Some(listed) = self.lister.list(kind).await? else { return Ok(()) };
        let listed = Arc::new(listed);
        let (mut left, end) = (drifts, Instant::now() + self.config.grace);
        loop {
            let found = self.differences(listed.clone()).await?;
            // An object that differs in another way has changed since it was listed.
            left.retain(|key, fields| found.get(key) == Some(fields));
            if left.is_empty() || Instant::now() >= end {
                break;
            }
            sleep(LOOK).await;
        }
        self.record.repaired(kind.as_str(), &self.now(), &left);
        if !left.is_empty() {
            tracing::error!(
                kind = kind.as_str(),
                objects = left.len(),
                "consistency: listing again did not help"
            );
        }
        Ok(())
    }

    /// Lists a kind and compares it with the newest snapshot; `None` when the API server does not serve it.
    async fn compare(&self, kind: Kind) -> Result<Option<Compared>, String> {
        let stopwatch = Stopwatch::start();
        let Some(listed) = self.lister.list(kind).await? else { return Ok(None) };
        let listed = Arc::new(listed);
        let found = self.differences(listed.clone()).await?;
        let listed = Arc::into_inner(listed).ok_or("the comparison did not end")?;
        Ok(Some(Compared { listed, found, seconds: stopwatch.elapsed().as_secs_f64() }))
    }

    /// Compares a list with the newest snapshot, on a thread for long work. Fails when the comparison panics: then nothing is
    /// known, which is not the same as no difference.
    async fn differences(&self, listed: Arc<Listed>) -> Result<Differences, String> {
        let snapshot = self.snapshot.load_full();
        let compare = move || differences(&snapshot.cluster, &listed.list);
        tokio::task::spawn_blocking(compare).await.map_err(|error| format!("the comparison failed: {error}"))
    }

    fn now(&self) -> String {
        rfc3339((self.clock)().wall)
    }
}

/// Returns what differs in the same way in both lists of objects that did not change between them. What differs in another way
/// was an event on its way.
fn lasting(first: &Compared, second: &Compared) -> Differences {
    let version = |of: &Compared, key: &ObjectName| of.listed.versions.get(key).cloned();
    let is_lasting = |(key, fields): &(&ObjectName, &Vec<FieldDrift>)| {
        first.found.get(*key) == Some(*fields) && version(first, key) == version(second, key)
    };
    second.found.iter().filter(is_lasting).map(|(key, of)| (key.clone(), of.clone())).collect()
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::Input;
    use pellucid_model::Name;

    use super::*;

    /// A list in which pod `p` has this version and differs in this field.
    fn compared(version: &str, field: &str) -> Compared {
        let key: ObjectName = (Name::new("default"), "p".into());
        let drift = FieldDrift { field: field.to_owned(), ours: "1".to_owned(), theirs: "absent".to_owned() };
        let list = Input::PodsReset { pods: Vec::new(), quarantined: Vec::new() };
        let versions = [(key.clone(), version.into())].into_iter().collect();
        Compared { listed: Listed { list, versions }, found: [(key, vec![drift])].into(), seconds: 0.0 }
    }

    #[test]
    fn a_drift_differs_twice_in_the_same_way_without_a_change() {
        let first = compared("7", "spec.nodeName");
        assert_eq!(lasting(&first, &compared("7", "spec.nodeName")), first.found);
        assert!(lasting(&first, &compared("8", "spec.nodeName")).is_empty());
        // The pod was not known at first, and then bound while the second list was read.
        assert!(lasting(&compared("7", ""), &compared("7", "spec.nodeName")).is_empty());
    }
}
