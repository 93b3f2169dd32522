//! The writes of the volume controller: bind volumes and claims to each other, and undo that when a claim goes.
//!
//! Each write reads the object again and does nothing if it is no longer what the decision was based on; the change
//! that made it so triggers the next decision.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::clock::seconds;
use crate::errors::{ApiError, ApiResult};
use crate::kinds::meta;
use crate::kinds::storage::{BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIMS, VOLUMES};
use crate::options::DeleteOptions;
use crate::store::{Key, Object};

/// Binds a volume and a claim to each other. Returns the volume after the write.
pub(super) fn bind(api: &Api, volume: &str, key: &Key, claim: &Value) -> Option<Arc<Object>> {
    let uid = meta::text(claim, "uid");
    let bound = write(api, VOLUMES, &("".into(), volume.into()), |volume| {
        let reference = &volume["spec"]["claimRef"];
        let is_ours = reference["namespace"] == *key.0 && reference["name"] == *key.1;
        match reference["uid"].as_str().filter(|uid| !uid.is_empty()) {
            _ if reference.is_null() => annotate(volume, BOUND_BY_CONTROLLER),
            Some(other) if !is_ours || other != uid => return Err(moved()),
            None if !is_ours => return Err(moved()),
            _ => {}
        }
        if volume["spec"]["claimRef"]["uid"] != uid {
            volume["spec"]["claimRef"] = json!({
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": &*key.0, "name": &*key.1,
                "uid": uid, "resourceVersion": meta::text(claim, "resourceVersion")
            });
        }
        enter(api, volume, "Bound");
        Ok(())
    })?;
    let spec = bound.value()["spec"].clone();
    write(api, CLAIMS, key, |claim| {
        let named = claim["spec"]["volumeName"].as_str().unwrap_or_default();
        if meta::text(claim, "uid") != uid || !named.is_empty() && named != volume {
            return Err(moved());
        }
        if named.is_empty() {
            claim["spec"]["volumeName"] = volume.into();
            annotate(claim, BOUND_BY_CONTROLLER);
        }
        annotate(claim, BIND_COMPLETED);
        for key in ["accessModes", "capacity"] {
            claim["status"][key] = spec[key].clone();
        }
        claim["status"]["phase"] = "Bound".into();
        Ok(())
    });
    Some(bound)
}

/// Releases a volume that names a claim which is bound to another volume. Returns the volume after the write.
pub(super) fn unbind(api: &Api, volume: &str) -> Option<Arc<Object>> {
    write(api, VOLUMES, &("".into(), volume.into()), |volume| {
        let annotations = volume["metadata"]["annotations"].as_object_mut();
        let by_controller = annotations.is_some_and(|all| all.remove(BOUND_BY_CONTROLLER).is_some());
        if by_controller {
            volume["spec"].as_object_mut().map(|spec| spec.remove("claimRef"));
        } else if let Some(reference) = volume["spec"]["claimRef"].as_object_mut() {
            // The user named the claim, so its name stays.
            reference.remove("uid");
        }
        enter(api, volume, "Available");
        Ok(())
    })
}

/// Sets the phase of a volume. Returns the volume after the write.
pub(super) fn set_phase(api: &Api, volume: &str, phase: &str) -> Option<Arc<Object>> {
    write(api, VOLUMES, &("".into(), volume.into()), |volume| {
        enter(api, volume, phase);
        Ok(())
    })
}

/// Deletes a volume whose claim is gone.
pub(super) fn remove(api: &Api, volume: &str) {
    if let Some(kind) = api.kind_of(VOLUMES) {
        // It may be deleted already.
        let _ = api.delete(&kind, &("".into(), volume.into()), &DeleteOptions::default());
    }
}

/// Marks a claim as lost, because its volume is gone.
pub(super) fn lose(api: &Api, key: &Key) {
    write(api, CLAIMS, key, |claim| {
        claim["status"]["phase"] = "Lost".into();
        Ok(())
    });
}

/// Sets annotations of a claim, or removes those with `None`.
pub(super) fn annotate_claim(api: &Api, key: &Key, uid: &str, annotations: &[(&str, Option<&str>)]) {
    write(api, CLAIMS, key, |claim| {
        if meta::text(claim, "uid") != uid {
            return Err(moved());
        }
        for (name, text) in annotations {
            match text {
                Some(text) => claim["metadata"]["annotations"][*name] = (*text).into(),
                None => _ = claim["metadata"]["annotations"].as_object_mut().map(|all| all.remove(*name)),
            }
        }
        Ok(())
    });
}

fn enter(api: &Api, volume: &mut Value, phase: &str) {
    if volume["status"]["phase"] != phase || volume["status"]["lastPhaseTransitionTime"].is_null() {
        volume["status"]["phase"] = phase.into();
        volume["status"]["lastPhaseTransitionTime"] = seconds(api.clock.now()).into();
    }
}

fn annotate(object: &mut Value, annotation: &str) {
    object["metadata"]["annotations"][annotation] = "yes".into();
}

/// Returns the error that ends a write whose basis has changed. Nobody sees it.
fn moved() -> Box<ApiError> {
    ApiError::stale("", VOLUMES, "")
}

fn write(
    api: &Api,
    table: &str,
    key: &Key,
    change: impl Fn(&mut Value) -> ApiResult<()>,
) -> Option<Arc<Object>> {
    // Nothing to do if the object is gone or has changed.
    let kind = api.kind_of(table)?;
    api.edit(&kind, key, change)
}
