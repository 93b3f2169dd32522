//! What plugins say of one pod: the sentence beside the cause of a refusal, notes of the others, and their reads about
//! pods.

use pellucid_api::rest::explain::PodNote;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::question::without_place;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::{Cause, Plugin, View};
use pellucid_model::{Now, PodId, PodKey};
use serde_json::Value;

use crate::not_pending;

/// Returns how a pending pod stands with the plugin that refuses it as a whole.
pub(crate) fn of_cause(snapshot: &Snapshot, id: PodId, cause: &Cause, now: Now) -> Option<String> {
    let record = snapshot.cluster.pod(id).filter(|record| record.node.is_none())?;
    let plugin = plugin_of(snapshot, record, cause.plugin)?;
    let view = View::new(&snapshot.cluster).for_pod(&record.pod);
    plugin.advice()?.sentence(view, &record.pod.spec, now)
}

/// Returns what the plugins of its profile say of a pending pod.
pub(crate) fn notes(snapshot: &Snapshot, record: &PodRecord, now: Now) -> Vec<PodNote> {
    let Some((_, profile)) = snapshot.profile_of(record).filter(|_| record.node.is_none()) else {
        return Vec::new();
    };
    let key = &record.pod.key;
    let note = |plugin: &dyn Plugin| {
        let view = View::new(&snapshot.cluster).for_pod(&record.pod);
        let text = plugin.advice()?.sentence(view, &record.pod.spec, now)?;
        let factory = snapshot.registry.iter().find(|factory| factory.name() == plugin.name());
        let read = factory.and_then(|factory| factory.pod_read());
        let more = read.map(|of| format!("/apis/v1/explain/pods/{}/{}/{}", key.namespace, key.name, of.path));
        Some(PodNote { plugin: plugin.name().to_owned(), text, more })
    };
    profile.plugins.iter().filter_map(|plugin| note(&**plugin)).collect()
}

/// Answers a plugin's read about a pod. A placed pod is looked at as if it had no place.
pub(crate) fn read(snapshot: &Snapshot, plugin: &str, key: &PodKey, now: Now) -> Result<Value, ReadError> {
    let known = snapshot.find_pod(key).filter(|(_, record)| snapshot.profile_of(record).is_some());
    let Some((id, record)) = known else { return Err(not_pending::error(snapshot, key)) };
    let advice = plugin_of(snapshot, record, plugin).and_then(Plugin::advice);
    let advice = advice.ok_or_else(|| ReadError::NotFound {
        code: "PluginNotEnabled",
        message: format!("profile {} does not enable {plugin}", record.pod.scheduler_name),
    })?;
    let cluster = without_place(&snapshot.cluster, id);
    Ok(advice.body(View::new(&cluster), &record.pod, now))
}

fn plugin_of<'s>(snapshot: &'s Snapshot, record: &PodRecord, name: &str) -> Option<&'s dyn Plugin> {
    let (_, profile) = snapshot.profile_of(record)?;
    let found = profile.plugins.iter().find(|plugin| plugin.name() == name)?;
    Some(&**found)
}
