//! Jobs: run pods until enough have succeeded or too many have failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{BATCH, JOBS, living, pod_of, set_status};
use crate::api::Api;
use crate::clock::seconds;
use crate::fields;
use crate::kinds::pods::{self, PHASE};
use crate::options::{DeleteOptions, Options};
use crate::store::{Key, Object};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Takes a Job one step closer to completion.
pub(super) fn reconcile(api: &Api, key: &Key) {
    let Some((kind, job, value)) = living(api, JOBS, key) else { return };
    let Some(pod_kind) = api.kind_of("pods") else { return };
    if is_over(&value) {
        return;
    }
    let all = api.store.owned("pods", &job.uid);
    let count = |phase: &str| all.iter().filter(|pod| pod.field(PHASE) == phase).count();
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    let is_active = |pod: &&Arc<Object>| !pod.is_deleting && !pods::is_finished(pod);
    let mut active: Vec<Arc<Object>> = all.iter().filter(is_active).cloned().collect();
    let spec = &value["spec"];
    let number = |key: &str| spec[key].as_u64().map(|n| n as usize);
    let (completions, parallelism) = (number("completions"), number("parallelism").unwrap_or(1));
    let end = if failed > number("backoffLimit").unwrap_or(6) {
        Some("Failed")
    } else if completions.map_or(succeeded > 0 && active.is_empty(), |wanted| succeeded >= wanted) {
        Some("Complete")
    } else {
        None
    };
    let wanted = match (end, completions) {
        _ if spec["suspend"] == true => 0,
        (Some(_), _) => 0,
        (None, Some(completions)) => parallelism.min(completions - succeeded),
        (None, None) if succeeded > 0 => active.len().min(parallelism),
        (None, None) => parallelism,
    };
    for pod in active.drain(wanted.min(active.len())..).take(BATCH) {
        // It may be deleted already.
        let _ = api.delete(&pod_kind, &pod.key, &DeleteOptions::controller());
    }
    let mut taken = indexes(&all);
    for _ in active.len()..wanted.min(active.len() + BATCH) {
        let mut pod = pod_of(&kind, &value);
        if spec["completionMode"] == "Indexed" {
            give_index(&mut pod, &mut taken);
        }
        match api.create(&pod_kind, &key.0, pod, &Options::controller()) {
            Ok(written) => active.push(written.object),
            Err(_) => break,
        }
    }
    let now = seconds(api.clock.now());
    let ready = active.iter().filter(|pod| pod.is_ready).count();
    set_status(api, &kind, key, &status(&value, end, [active.len(), ready, succeeded, failed], &now));
}

fn is_over(job: &Value) -> bool {
    pods::has_condition(job, "Complete") || pods::has_condition(job, "Failed")
}

/// Returns the completion indexes of pods that are active or have succeeded.
fn indexes(pods: &[Arc<Object>]) -> BTreeSet<usize> {
    let pods = pods.iter().filter(|pod| pod.field(PHASE) != "Failed" && !pod.is_deleting);
    let labels = pods.flat_map(|pod| pod.labels.iter());
    labels.filter(|(key, _)| **key == *INDEX).filter_map(|(_, index)| index.parse().ok()).collect()
}

/// Gives a pod the lowest free completion index.
fn give_index(pod: &mut Value, taken: &mut BTreeSet<usize>) {
    let index = (0..).find(|index| !taken.contains(index)).unwrap_or_default();
    taken.insert(index);
    let prefix = pod["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
    pod["metadata"]["generateName"] = format!("{prefix}{index}-").into();
    for map in ["labels", "annotations"] {
        pod["metadata"][map][INDEX] = index.to_string().into();
    }
}

fn status(job: &Value, end: Option<&str>, counts: [usize; 4], now: &str) -> Value {
    let mut status = json!({});
    let is_suspended = job["spec"]["suspend"] == true;
    if !is_suspended {
        status["startTime"] = job["status"]["startTime"].as_str().unwrap_or(now).into();
    }
    for (key, count) in ["active", "ready", "succeeded", "failed"].into_iter().zip(counts) {
        if count > 0 || key == "ready" {
            status[key] = count.into();
        }
    }
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "lastProbeTime": now, "lastTransitionTime": now});
    match end {
        Some("Complete") => {
            status["completionTime"] = now.into();
            let reason = "CompletionsReached";
            status["conditions"] =
                json!([condition("SuccessCriteriaMet", reason), condition("Complete", reason)]);
        }
        Some(_) => {
            let reason = "BackoffLimitExceeded";
            status["conditions"] = json!([condition("FailureTarget", reason), condition("Failed", reason)]);
        }
        None if is_suspended => {
            let old = fields::condition(job, "Suspended").cloned();
            status["conditions"] = json!([old.unwrap_or_else(|| condition("Suspended", "JobSuspended"))]);
        }
        None => {}
    }
    status
}
