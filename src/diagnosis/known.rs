//! What is worked out of a snapshot once for all readers: the verdicts on all pending pods, the outlooks of gangs, the
//! counts of its pods, the cluster without the pods that can leave, and which names are whose.
//!
//! It lies in the snapshot's memo. Nothing is worked out before a reader asks for it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use pellucid_cluster::Cluster;
use pellucid_cycle::Snapshot;
use pellucid_model::GangKey;

use crate::called::leavers;
use crate::gangs::outlook::GangOutlook;
use crate::population::Population;
use crate::tenants::Tenants;
use crate::verdict::Verdicts;

/// The answers that readers share.
pub(crate) struct Known {
    verdicts: OnceLock<Arc<Verdicts>>,
    outlooks: BTreeMap<GangKey, OnceLock<Arc<GangOutlook>>>,
    emptied: OnceLock<Cluster>,
    /// The pods of the snapshot, counted.
    pub(crate) population: Population,
    tenants: OnceLock<Arc<Tenants>>,
    leavers: OnceLock<String>,
}

/// Returns what readers share of a snapshot.
pub(crate) fn known(snapshot: &Snapshot) -> Arc<Known> {
    snapshot.memo.get_or_init(|| {
        let gangs = snapshot.cluster.gangs().all().into_keys();
        let outlooks = gangs.map(|key| (key.clone(), OnceLock::new())).collect();
        Known {
            verdicts: OnceLock::new(),
            outlooks,
            emptied: OnceLock::new(),
            population: Population::default(),
            tenants: OnceLock::new(),
            leavers: OnceLock::new(),
        }
    })
}

impl Known {
    /// Returns the verdicts on all pending pods; the first reader works them out.
    pub(crate) fn verdicts(&self, make: impl FnOnce() -> Verdicts) -> Arc<Verdicts> {
        self.verdicts.get_or_init(|| Arc::new(make())).clone()
    }

    /// Returns the cluster without the pods that can leave; the first reader makes it.
    pub(crate) fn emptied(&self, make: impl FnOnce() -> Cluster) -> &Cluster {
        self.emptied.get_or_init(make)
    }

    /// Returns what leaves when all pods do that can, in words; the first reader looks for it.
    pub(crate) fn leavers(&self, cluster: &Cluster) -> &str {
        self.leavers.get_or_init(|| leavers(cluster))
    }

    /// Returns the names with their namespaces; the first reader with limits collects them.
    pub(crate) fn tenants(&self, make: impl FnOnce() -> Tenants) -> Arc<Tenants> {
        self.tenants.get_or_init(|| Arc::new(make())).clone()
    }

    /// Returns the outlook of a gang; the first reader works it out.
    pub(crate) fn outlook_of_gang(
        &self,
        key: &GangKey,
        make: impl FnOnce() -> Arc<GangOutlook>,
    ) -> Arc<GangOutlook> {
        match self.outlooks.get(key) {
            Some(kept) => kept.get_or_init(make).clone(),
            None => make(),
        }
    }
}
