//! The quotas and pods that the watches have brought.
//!
//! One task writes; reviews read under a lock that nobody holds longer than one review takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use pellucid_api::keys::elastic_quota as keys;
use pellucid_cluster::input::Input;
use pellucid_elastic_quota::ElasticQuota;
use pellucid_model::{CustomObject, Name, Pod, PodKey, Published};

/// Quotas by name and namespace.
pub(crate) type Quotas = BTreeMap<(Name, Name), Arc<ElasticQuota>>;

/// Objects by their keys.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) quotas: Quotas,
    /// The quota that each pod names, empty if it names none. Ended pods are left out.
    pods: BTreeMap<PodKey, Name>,
    /// Pods by the quota that they name.
    by_quota: BTreeMap<Name, BTreeSet<PodKey>>,
    /// Pods that name no quota, by namespace.
    by_namespace: BTreeMap<Name, BTreeSet<PodKey>>,
}

/// Objects that reviews read while one task changes them.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    objects: RwLock<Objects>,
    generation: AtomicU64,
}

impl Published for Cache {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

impl Cache {
    /// Lets a review read.
    pub(crate) fn read<T>(&self, review: impl FnOnce(&Objects) -> T) -> T {
        review(&self.objects.read())
    }

    /// Takes over what a watch says.
    pub(crate) fn apply(&self, input: Input) {
        self.objects.write().apply(input);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Returns the quota that an object holds, under its key.
fn quota_of(object: &CustomObject) -> Option<((Name, Name), Arc<ElasticQuota>)> {
    let quota = object.shared::<ElasticQuota>()?;
    Some(((object.name.clone(), object.namespace.clone()), quota))
}

/// Returns the quotas of a list.
pub(crate) fn listed(list: &Input) -> Option<Quotas> {
    match list {
        Input::CustomReset { objects, .. } => Some(objects.iter().filter_map(|o| quota_of(o)).collect()),
        _ => None,
    }
}

impl Objects {
    fn apply(&mut self, input: Input) {
        match input {
            Input::CustomApplied(object) => self.quotas.extend(quota_of(&object)),
            Input::CustomDeleted(_, (namespace, name)) => drop(self.quotas.remove(&(name, namespace))),
            list @ Input::CustomReset { .. } => self.quotas = listed(&list).unwrap_or_default(),
            Input::PodApplied(pod) => self.put(&pod),
            Input::PodDeleted(key) => self.remove(&key),
            Input::PodsReset { pods, .. } => {
                (self.pods, self.by_quota, self.by_namespace) = Default::default();
                pods.iter().for_each(|pod| self.put(pod));
            }
            // A quota that cannot be read stays as it was, as in the scheduler. Other kinds are not watched.
            _ => {}
        }
    }

    fn put(&mut self, pod: &Pod) {
        self.remove(&pod.key);
        if pod.phase.is_terminal() {
            return;
        }
        let quota = pod.labels.get(&Name::new(keys::NAME)).cloned().unwrap_or_default();
        self.index(&quota, &pod.key).insert(pod.key.clone());
        self.pods.insert(pod.key.clone(), quota);
    }

    fn remove(&mut self, key: &PodKey) {
        if let Some(quota) = self.pods.remove(key) {
            self.index(&quota, key).remove(key);
        }
    }

    /// Returns the pods beside which a pod is found.
    fn index(&mut self, quota: &Name, key: &PodKey) -> &mut BTreeSet<PodKey> {
        match quota.is_empty() {
            true => self.by_namespace.entry(key.namespace.clone()).or_default(),
            false => self.by_quota.entry(quota.clone()).or_default(),
        }
    }

    /// Returns up to three pods of a quota: those that name it, and those in its namespaces that name none. Three tell
    /// that there are more than two.
    pub(crate) fn pods_of(&self, quotas: &Quotas, quota: &str) -> Vec<String> {
        let same =
            quotas.range((Name::new(quota), Name::default())..).take_while(|((name, _), _)| **name == *quota);
        let namespaces = same.flat_map(|((_, namespace), object)| {
            let own = (**namespace == *quota).then(|| namespace.clone());
            object.namespaces.iter().cloned().chain(own)
        });
        let unnamed = namespaces.filter_map(|namespace| self.by_namespace.get(&namespace)).flatten();
        let named = self.by_quota.get(&Name::new(quota)).into_iter().flatten();
        named.chain(unnamed).take(3).map(|key| format!("{}/{}", key.namespace, key.name)).collect()
    }
}
