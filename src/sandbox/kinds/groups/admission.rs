//! Defaults and admission of native PodGroups and Workloads, and the protection of PodGroups in use.

use serde_json::{Value, json};

use super::{GROUP, POD_GROUPS, VERSION, WORKLOADS};
use crate::api::Api;
use crate::errors::{ApiError, ApiResult};
use crate::fields::{add, list, text};
use crate::kinds::defaults::set;
use crate::kinds::meta;
use crate::kinds::pods;
use crate::kinds::registry::Kind;
use crate::store::Key;

/// The finalizer of a PodGroup, which stays while pods use it.
const PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// Sets the defaults of a PodGroup: disruption per pod, and a template reference that is always shown.
pub(crate) fn pod_group_defaults(object: &mut Value) {
    add(object, "spec", json!({}));
    let spec = &mut object["spec"];
    add(spec, "podGroupTemplateRef", Value::Null);
    add(spec, "schedulingPolicy", json!({}));
    set(spec, "disruptionMode", "Pod");
    add(object, "status", json!({}));
}

/// Sets the defaults of a Workload's templates, whose constraints are always shown.
pub(crate) fn workload_defaults(object: &mut Value) {
    add(object, "spec", json!({}));
    for template in object["spec"]["podGroupTemplates"].as_array_mut().into_iter().flatten() {
        add(template, "schedulingPolicy", json!({}));
        add(template, "schedulingConstraints", Value::Null);
        set(template, "disruptionMode", "Pod");
    }
}

/// Adds the finalizer and the priority to a new native PodGroup. Rejects it if its Workload or template does not exist.
pub(crate) fn admit(api: &Api, kind: &Kind, object: &mut Value) -> ApiResult<()> {
    if &*kind.storage != POD_GROUPS {
        return Ok(());
    }
    let fields = meta::metadata(object);
    let finalizers = fields.entry("finalizers").or_insert(json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|f| f == PROTECTION)
    {
        list.push(PROTECTION.into());
    }
    priority(api, object)?;
    template(api, object)
}

/// Keeps the priority of an updated PodGroup if the client omits it.
pub(crate) fn keep_priority(kind: &Kind, object: &mut Value, old: &Value) {
    let priority = &old["spec"]["priority"];
    if &*kind.storage == POD_GROUPS && priority.is_i64() && object["spec"].is_object() {
        add(&mut object["spec"], "priority", priority.clone());
    }
}

fn refuse(object: &Value, why: &str) -> Box<ApiError> {
    ApiError::forbidden(GROUP, "podgroups", meta::text(object, "name"), why)
}

fn priority(api: &Api, object: &mut Value) -> ApiResult<()> {
    let name = text(&object["spec"]["priorityClassName"]);
    if name.is_empty() {
        return Ok(());
    }
    let Some(value) = pods::class_value(api, name) else {
        return Err(refuse(object, &format!("no PriorityClass with name {name} was found")));
    };
    if let Some(given) = object["spec"]["priority"].as_i64().filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod group spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        );
        return Err(refuse(object, &why));
    }
    object["spec"]["priority"] = value.into();
    Ok(())
}

fn template(api: &Api, object: &Value) -> ApiResult<()> {
    let reference = &object["spec"]["podGroupTemplateRef"]["workload"];
    // Validation rejects an empty name.
    let (workload, name) = (text(&reference["workloadName"]), text(&reference["podGroupTemplateName"]));
    if workload.is_empty() || name.is_empty() {
        return Ok(());
    }
    let key: Key = (meta::text(object, "namespace").into(), workload.into());
    let Some(found) = api.store.get(WORKLOADS, &key) else {
        return Err(refuse(object, &format!("workload \"{workload}\" not found")));
    };
    let found = found.value();
    if !list(&found["spec"]["podGroupTemplates"]).iter().any(|template| template["name"] == name) {
        let why = format!("workload \"{workload}\" has no pod group template \"{name}\"");
        return Err(refuse(object, &why));
    }
    Ok(())
}

/// Removes `schedulingGroup` from a new pod if native gangs are not served.
pub(crate) fn drop_unserved(api: &Api, pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut().filter(|spec| spec.contains_key("schedulingGroup")) else {
        return;
    };
    if !api.kinds.load().serves(GROUP, VERSION) {
        spec.remove("schedulingGroup");
    }
}

pub(crate) fn is_user(pod: &Value, group: &str) -> bool {
    pod["spec"]["schedulingGroup"]["podGroupName"] == group
}

/// Removes the protecting finalizer from a PodGroup.
pub(crate) fn unprotect(group: &mut Value) {
    if let Some(finalizers) = meta::metadata(group).get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != PROTECTION);
    }
}
