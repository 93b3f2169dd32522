//! StatefulSets: numbered pods with claims of their own, created one after the other or all at once.
//!
//! There is no history of revisions: pods of an older template are replaced, the highest number first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{BATCH, STATEFUL_SETS, from_template, hash, living, owner, set_status};
use crate::api::Api;
use crate::kinds::pods::{self, PHASE};
use crate::kinds::registry::Kind;
use crate::kinds::storage::CLAIMS;
use crate::options::{DeleteOptions, Options};
use crate::store::{Key, Object};

const REVISION: &str = "controller-revision-hash";
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// A StatefulSet during one reconciliation.
struct Set<'a> {
    api: &'a Api,
    kind: Arc<Kind>,
    pod_kind: Arc<Kind>,
    key: &'a Key,
    value: Value,
    revision: String,
    is_ordered: bool,
    /// How many more changes this reconciliation may make.
    left: usize,
}

/// Takes a StatefulSet one step closer to its spec.
pub(super) fn reconcile(api: &Api, key: &Key) {
    let Some((kind, object, value)) = living(api, STATEFUL_SETS, key) else { return };
    let Some(pod_kind) = api.kind_of("pods") else { return };
    let spec = &value["spec"];
    let first = spec["ordinals"]["start"].as_u64().unwrap_or_default();
    let end = first.saturating_add(spec["replicas"].as_u64().unwrap_or(1));
    let revision = format!("{}-{}", key.1, hash(&spec["template"]));
    let is_ordered = spec["podManagementPolicy"] != "Parallel";
    let mut set = Set { api, kind, pod_kind, key, value, revision, is_ordered, left: BATCH };
    let mut pods = set.pods(&object.uid);
    if set.fill(&mut pods, first, end) && set.shrink(&pods, first, end) {
        set.roll(&pods, first, end);
    }
    set_status(api, &set.kind, key, &set.status(&pods));
}

impl Set<'_> {
    /// Returns the pods of the set by number.
    fn pods(&self, uid: &str) -> BTreeMap<u64, Arc<Object>> {
        let number = |pod: &Object| pod.key.1.rsplit_once('-')?.1.parse().ok();
        let pods = self.api.store.owned("pods", uid);
        pods.into_iter().filter_map(|pod| Some((number(&pod)?, pod))).collect()
    }

    /// Creates the missing pods. Returns whether all exist, and are ready where that matters.
    fn fill(&mut self, pods: &mut BTreeMap<u64, Arc<Object>>, first: u64, end: u64) -> bool {
        for number in first..end {
            let is_good = match pods.get(&number) {
                Some(pod) if pod.is_deleting => false,
                Some(pod) if pods::is_finished(pod) => {
                    self.delete(pod);
                    false
                }
                Some(pod) => pod.is_ready,
                None => match self.create(number) {
                    Some(pod) => {
                        pods.insert(number, pod);
                        false
                    }
                    None => return false,
                },
            };
            if self.is_ordered && !is_good {
                return false;
            }
        }
        true
    }

    /// Creates a pod and its claims. Returns `None` if that fails or no more changes are allowed.
    fn create(&mut self, number: u64) -> Option<Arc<Object>> {
        self.left = self.left.checked_sub(1)?;
        let name = format!("{}-{number}", self.key.1);
        let pod = self.pod(&name, number);
        self.claims(&name)?;
        let written = self.api.create(&self.pod_kind, &self.key.0, pod, &Options::controller());
        // The name may be in use by another pod and become free later.
        written.ok().map(|written| written.object)
    }

    fn pod(&self, name: &str, number: u64) -> Value {
        let spec = &self.value["spec"];
        let mut pod = from_template(&spec["template"]);
        let metadata = &mut pod["metadata"];
        metadata["name"] = name.into();
        metadata["generateName"] = format!("{}-", self.key.1).into();
        metadata["ownerReferences"] = owner(&self.kind, &self.value);
        for (label, text) in
            [(POD_NAME, name), (POD_INDEX, number.to_string().as_str()), (REVISION, self.revision.as_str())]
        {
            metadata["labels"][label] = text.into();
        }
        pod["spec"]["hostname"] = name.into();
        if let Some(service) = spec["serviceName"].as_str().filter(|service| !service.is_empty()) {
            pod["spec"]["subdomain"] = service.into();
        }
        let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        for (template, claim) in self.claim_names(name) {
            volumes.retain(|volume| volume["name"] != *template);
            volumes.push(json!({"name": template, "persistentVolumeClaim": {"claimName": claim}}));
        }
        if !volumes.is_empty() {
            pod["spec"]["volumes"] = volumes.into();
        }
        pod
    }

    /// Returns the names of the claim templates, each with the name of a pod's claim.
    fn claim_names(&self, pod: &str) -> Vec<(String, String)> {
        let templates = self.value["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
        let names = templates.filter_map(|template| template["metadata"]["name"].as_str());
        names.map(|name| (name.to_owned(), format!("{name}-{pod}"))).collect()
    }

    /// Creates the missing claims of a pod. Returns `None` if one cannot be created.
    fn claims(&self, pod: &str) -> Option<()> {
        let kind = self.api.kind_of(CLAIMS)?;
        let templates = self.value["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
        for (template, (_, name)) in templates.zip(self.claim_names(pod)) {
            let key: Key = (self.key.0.clone(), name.as_str().into());
            if self.api.store.get(CLAIMS, &key).is_some() {
                continue;
            }
            let mut claim = from_template(template);
            claim["metadata"]["name"] = name.into();
            let labels = self.value["spec"]["selector"]["matchLabels"].as_object();
            for (label, value) in labels.into_iter().flatten() {
                claim["metadata"]["labels"][label] = value.clone();
            }
            self.api.create(&kind, &self.key.0, claim, &Options::controller()).ok()?;
        }
        Some(())
    }

    /// Deletes the surplus pods. Returns whether there were none.
    fn shrink(&mut self, pods: &BTreeMap<u64, Arc<Object>>, first: u64, end: u64) -> bool {
        let surplus = pods.iter().rev().filter(|(number, _)| !(first..end).contains(number));
        let mut is_clear = true;
        for (_, pod) in surplus {
            is_clear = false;
            self.delete(pod);
            if self.is_ordered {
                break;
            }
        }
        is_clear
    }

    /// Deletes the highest pod of an older template, to be replaced. Does nothing while a pod is being deleted or a
    /// higher one is not ready.
    fn roll(&mut self, pods: &BTreeMap<u64, Arc<Object>>, first: u64, end: u64) {
        let strategy = &self.value["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" || pods.values().any(|pod| pod.is_deleting) {
            return;
        }
        let least = strategy["rollingUpdate"]["partition"].as_u64().unwrap_or_default();
        for (number, pod) in pods.range(first..end).rev() {
            if *number >= first.saturating_add(least) && !self.is_new(pod) {
                self.delete(pod);
                return;
            }
            if !pod.is_ready {
                return;
            }
        }
    }

    fn is_new(&self, pod: &Object) -> bool {
        pod.labels.iter().any(|(key, value)| **key == *REVISION && **value == *self.revision)
    }

    fn delete(&mut self, pod: &Object) {
        if !pod.is_deleting && self.left > 0 {
            self.left -= 1;
            let how = DeleteOptions { uid: Some(pod.uid.to_string()), ..DeleteOptions::controller() };
            // It may be deleted already.
            let _ = self.api.delete(&self.pod_kind, &pod.key, &how);
        }
    }

    fn status(&self, pods: &BTreeMap<u64, Arc<Object>>) -> Value {
        let living: Vec<&Arc<Object>> = pods.values().filter(|pod| pod.field(PHASE) != "Failed").collect();
        let ready = living.iter().filter(|pod| pod.is_ready && !pod.is_deleting).count();
        let updated = living.iter().filter(|pod| self.is_new(pod)).count();
        let is_rolled = updated == living.len();
        let old = &self.value["status"]["currentRevision"];
        let current = if is_rolled || old.is_null() { json!(self.revision) } else { old.clone() };
        let mut status = json!({
            "observedGeneration": self.value["metadata"]["generation"], "replicas": living.len(),
            "availableReplicas": ready, "currentRevision": current, "updateRevision": self.revision,
            "collisionCount": 0
        });
        let of_current = if is_rolled { updated } else { living.len() - updated };
        for (key, count) in
            [("readyReplicas", ready), ("currentReplicas", of_current), ("updatedReplicas", updated)]
        {
            if count > 0 {
                status[key] = count.into();
            }
        }
        status
    }
}
