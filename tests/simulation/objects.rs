//! Writes of objects at the API server: of claims, notices and pods.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::effect::{ObjectRef, ObjectWrite, PodRef, Precondition, WriteOutcome};
use pellucid::model::{CustomKindRef, Name, merge_patch};
use serde_json::{Value, json};

use crate::api::{Api, FollowUp, Stream};
use crate::common::herald::{NOTICE, seen};
use crate::under_test::has_notice;

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn refused(status: u16, message: &str) -> WriteOutcome {
    WriteOutcome::Refused { status, message: message.into() }
}

fn conflict() -> WriteOutcome {
    refused(409, "it changed meanwhile")
}

fn key_of(object: &ObjectRef) -> (Name, Name) {
    (object.namespace.clone().unwrap_or_default(), object.name.clone())
}

impl Api {
    /// Carries out a write.
    pub(crate) fn write(&mut self, write: &ObjectWrite) -> WriteOutcome {
        match write {
            ObjectWrite::Patch { object, precondition, patch, .. } => match object.plural {
                "persistentvolumeclaims" => self.patch_claim(object, precondition, patch),
                "notices" => self.patch_notice(object, precondition, patch),
                // No volume waits for a claim here.
                _ => conflict(),
            },
            ObjectWrite::Create { object, body } => {
                if self.notices.contains_key(&key_of(object)) {
                    return WriteOutcome::AlreadyExists;
                }
                self.put_notice(key_of(object), (**body).clone());
                WriteOutcome::Written
            }
            ObjectWrite::Delete { object, .. } => {
                let key = key_of(object);
                if self.notices.remove(&key).is_some() {
                    self.told.push((Stream::Objects, Input::CustomDeleted(CustomKindRef(&NOTICE), key)));
                }
                WriteOutcome::Written
            }
            ObjectWrite::Evict { pod, .. } => {
                self.delete(pod);
                WriteOutcome::Written
            }
        }
    }

    /// Returns whether an object is as a write wants it.
    pub(crate) fn stands(&self, write: &ObjectWrite) -> bool {
        match write {
            ObjectWrite::Patch { object, patch, .. } if object.plural == "persistentvolumeclaims" => {
                let claim = self.claims.get(&key_of(object));
                let node = claim.and_then(|claim| claim.selected_node.as_ref());
                node.map(Name::as_str) == patch["metadata"]["annotations"][SELECTED_NODE].as_str()
            }
            ObjectWrite::Patch { object, patch: wanted, .. }
            | ObjectWrite::Create { object, body: wanted } => {
                self.notices.get(&key_of(object)).is_some_and(|known| merge_patch::stands_on(wanted, known))
            }
            ObjectWrite::Delete { .. } | ObjectWrite::Evict { .. } => true,
        }
    }

    fn patch_claim(
        &mut self,
        object: &ObjectRef,
        precondition: &Precondition,
        patch: &Value,
    ) -> WriteOutcome {
        let (namespace, name) = key_of(object);
        let known = self.claims.get(&(namespace.clone(), name.clone())).cloned();
        let fits = |version: &Arc<str>| {
            precondition.resource_version.as_ref().is_none_or(|wanted| wanted == version)
        };
        let Some(mut known) = known.filter(|claim| fits(&claim.resource_version)) else { return conflict() };
        known.selected_node = patch["metadata"]["annotations"][SELECTED_NODE].as_str().map(Name::new);
        self.put_claim(known);
        self.follow_ups.push(FollowUp::Provision(namespace, name));
        WriteOutcome::Written
    }

    fn patch_notice(
        &mut self,
        object: &ObjectRef,
        precondition: &Precondition,
        patch: &Value,
    ) -> WriteOutcome {
        let key = key_of(object);
        let Some(mut known) = self.notices.get(&key).cloned() else { return refused(404, "it is not there") };
        let version = known["metadata"]["resourceVersion"].as_str();
        if precondition.resource_version.as_ref().is_some_and(|wanted| version != Some(&**wanted)) {
            return conflict();
        }
        json_patch::merge(&mut known, patch);
        self.put_notice(key, known);
        WriteOutcome::Written
    }

    fn put_notice(&mut self, key: (Name, Name), mut manifest: Value) {
        manifest["metadata"]["resourceVersion"] = json!(&*self.next_version());
        self.told.push((Stream::Objects, Input::CustomApplied(seen(&manifest))));
        self.notices.insert(key, manifest);
    }

    /// Returns the complete list of notices.
    pub(crate) fn list_notices(&self) -> Input {
        let objects = self.notices.values().map(seen).collect();
        Input::CustomReset { kind: CustomKindRef(&NOTICE), objects, quarantined: Vec::new() }
    }

    /// Returns whether a pod has its notice, if it is to have one.
    pub(crate) fn is_announced(&self, pod: &PodRef) -> bool {
        !has_notice(&pod.uid) || self.notices.contains_key(&(pod.key.namespace.clone(), Name::new(&pod.uid)))
    }
}
