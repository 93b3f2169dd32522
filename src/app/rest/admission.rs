//! Gives a simulated pod the priority that the API server's admission would.

use std::sync::Arc;

use pellucid_cycle::Snapshot;
use pellucid_http::ReadError;
use pellucid_model::priority_class::{PRIORITY_CLASS, PriorityClass};
use pellucid_model::{CustomKindRef, Name, Pod};
use serde_json::Value;

use crate::rest::names::{invalid, shown};

/// Sets the priority and the preemption policy from `priorityClassName`, or from the default class for a pod that states
/// no priority either. Fails where admission would refuse the pod, or when the class is not known.
pub(super) fn admit(
    snapshot: &Snapshot,
    pod: &mut Pod,
    manifest: &Value,
    field: &str,
) -> Result<(), ReadError> {
    let spec = &manifest["spec"];
    let given = spec["priority"].as_i64();
    let classes = snapshot.cluster.custom_objects();
    let kind = CustomKindRef(&PRIORITY_CLASS);
    let name = spec["priorityClassName"].as_str().unwrap_or_default();
    let known = match name {
        "" if given.is_some() => return Ok(()),
        "" => {
            let all = classes.iter(kind).filter_map(|object| object.get::<PriorityClass>());
            // Concurrent creates can leave two default classes; the lower one counts.
            let Some(default) = all.filter(|class| class.is_default).min_by_key(|class| class.value) else {
                return Ok(());
            };
            Some(default.clone())
        }
        name => {
            let object = classes.get(kind, &(Name::default(), Name::new(name)));
            let class = object.and_then(|object| object.get::<PriorityClass>()).cloned();
            class.or_else(|| PriorityClass::built_in(name))
        }
    };
    let at = format!("{field}.spec.priorityClassName");
    let Some(class) = known else {
        let problem =
            format!("no PriorityClass {} is known here; leave it out and give spec.priority", shown(name));
        return if given.is_some() { Ok(()) } else { Err(invalid(&at, &problem)) };
    };
    if given.is_some_and(|given| given != i64::from(class.value)) {
        let problem = format!("the class has priority {}; leave the pod's own out", class.value);
        return Err(invalid(&format!("{field}.spec.priority"), &problem));
    }
    pod.priority = class.value;
    Arc::make_mut(&mut pod.spec).priority = class.value;
    if spec["preemptionPolicy"].as_str().is_none() {
        pod.never_preempts = class.never_preempts;
    }
    Ok(())
}
