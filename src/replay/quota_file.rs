//! The quotas of a replay: ElasticQuotas as for `kubectl apply`, and whose jobs belong to which.
//!
//! A trace of training jobs names no users. The model that a job trains stands for its user: annotation [`USERS`] of a quota
//! without children lists models, separated by commas. The models that no quota lists are dealt to these quotas by turns, in
//! the order of their first jobs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::quantity::{ONE, parse};
use super::{GPU, GangJob};

/// The annotation with the users whose jobs belong to a quota.
pub const USERS: &str = "pellucid.dev/users";
/// The label with the name of a pod's quota, and of a quota's parent.
pub const QUOTA_NAME: &str = "quota.scheduling.koordinator.sh/name";
const PARENT: &str = "quota.scheduling.koordinator.sh/parent";

/// A quota without children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafQuota {
    /// Its name.
    pub name: String,
    /// GPUs of its min.
    pub min: u64,
    /// GPUs of its max; `None` without a limit.
    pub max: Option<u64>,
    users: Vec<String>,
}

/// The quotas of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaFile {
    /// All quotas as API objects to create, in the order of the file.
    pub objects: Vec<Value>,
    /// The quotas that take pods, by name.
    pub leaves: Vec<LeafQuota>,
}

impl QuotaFile {
    /// Reads the documents of a file. Fails with the quota, the field and what is wrong.
    pub fn read(documents: Vec<Value>) -> Result<Self, String> {
        let mut leaves = BTreeMap::new();
        for (at, object) in documents.iter().enumerate() {
            let name = text(object, "/metadata/name");
            if text(object, "/kind") != "ElasticQuota" || name.is_empty() {
                return Err(format!("document {}: is not an ElasticQuota with a name", at + 1));
            }
            let users = text(object, &format!("/metadata/annotations/{}", USERS.replace('/', "~1")));
            let leaf = LeafQuota {
                name: name.to_owned(),
                min: gpus(object, "min")?.unwrap_or(0),
                max: gpus(object, "max")?,
                users: users
                    .split(',')
                    .map(str::trim)
                    .filter(|user| !user.is_empty())
                    .map(Into::into)
                    .collect(),
            };
            if leaves.insert(name.to_owned(), leaf).is_some() {
                return Err(format!("quota {name}: the name stands there twice"));
            }
        }
        let parent = format!("/metadata/labels/{}", PARENT.replace('/', "~1"));
        for parent in documents.iter().map(|object| text(object, &parent)) {
            if let Some(named) = leaves.remove(parent).filter(|leaf| !leaf.users.is_empty()) {
                return Err(format!(
                    "quota {}: it has children, so no users of its own ({USERS})",
                    named.name
                ));
            }
        }
        if leaves.is_empty() {
            return Err("no quota without children".to_owned());
        }
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for leaf in leaves.values() {
            for user in &leaf.users {
                if let Some(other) = owners.insert(user, &leaf.name) {
                    return Err(format!("quota {}: user {user} belongs to quota {other} too", leaf.name));
                }
            }
        }
        Ok(Self { leaves: leaves.into_values().collect(), objects: documents })
    }

    /// Checks that each listed user has jobs in the trace. Fails with the first who has none.
    pub fn check_users(&self, jobs: &[GangJob]) -> Result<(), String> {
        let known: BTreeSet<&str> = jobs.iter().map(|job| job.model.as_str()).collect();
        for leaf in &self.leaves {
            if let Some(user) = leaf.users.iter().find(|user| !known.contains(user.as_str())) {
                return Err(format!("quota {}: {USERS}: no job of the trace has model {user:?}", leaf.name));
            }
        }
        Ok(())
    }

    /// Returns the quota of each user, as position in `leaves`. Fails for a job that its quota can never run.
    pub fn assign(&self, jobs: &[GangJob]) -> Result<BTreeMap<String, usize>, String> {
        let mut quotas: BTreeMap<String, usize> = BTreeMap::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            quotas.extend(leaf.users.iter().map(|user| (user.clone(), at)));
        }
        let mut dealt = 0;
        for job in jobs {
            let at = *quotas.entry(job.model.clone()).or_insert_with(|| {
                dealt += 1;
                (dealt - 1) % self.leaves.len()
            });
            let leaf = &self.leaves[at];
            if let Some(max) = leaf.max.filter(|max| job.workers as u64 > *max) {
                return Err(format!(
                    "quota {}: max has {max} GPUs, and {} of user {:?} needs {} at once",
                    leaf.name, job.name, job.model, job.workers
                ));
            }
        }
        Ok(quotas)
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// Reads the GPUs of `spec.min` or `spec.max`.
fn gpus(object: &Value, list: &str) -> Result<Option<u64>, String> {
    let Some(value) = object.pointer(&format!("/spec/{list}/{}", GPU.replace('/', "~1"))) else {
        return Ok(None);
    };
    let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let amount =
        parse(&written).filter(|n| *n >= 0 && n % ONE == 0).and_then(|n| u64::try_from(n / ONE).ok());
    let name = text(object, "/metadata/name");
    amount
        .map(Some)
        .ok_or_else(|| format!("quota {name}: spec.{list}.{GPU}: {written:?} is no number of GPUs"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn quota(name: &str, parent: &str, users: &str, max: u64) -> Value {
        json!({
            "kind": "ElasticQuota",
            "metadata": {"name": name, "labels": {PARENT: parent}, "annotations": {USERS: users}},
            "spec": {"min": {GPU: 2}, "max": {GPU: max.to_string()}},
        })
    }

    fn job(name: &str, model: &str, workers: usize) -> GangJob {
        let (submitted_at, runs_for) = (Duration::ZERO, Duration::ZERO);
        GangJob { name: name.into(), submitted_at, workers, runs_for, model: model.into() }
    }

    #[test]
    fn listed_users_have_their_quotas_and_the_others_are_dealt() {
        let documents = vec![quota("org", "", "", 9), quota("b", "org", "X, Y", 8), quota("a", "org", "", 4)];
        let file = QuotaFile::read(documents).expect("fine");
        let names: Vec<(&str, u64, Option<u64>)> =
            file.leaves.iter().map(|leaf| (leaf.name.as_str(), leaf.min, leaf.max)).collect();
        assert_eq!(names, [("a", 2, Some(4)), ("b", 2, Some(8))]);
        let jobs = [job("1", "N", 1), job("2", "X", 8), job("3", "M", 8), job("4", "N", 4)];
        let assigned = file.assign(&jobs).expect("fine");
        let expected = [("M", 1), ("N", 0), ("X", 1), ("Y", 1)].map(|(user, at)| (user.to_owned(), at));
        assert_eq!(assigned, expected.into());
        let problem = file.assign(&[job("big", "N", 5)]).unwrap_err();
        assert_eq!(problem, "quota a: max has 4 GPUs, and big of user \"N\" needs 5 at once");
        assert_eq!(file.check_users(&[job("5", "Y", 1), job("6", "X", 1)]), Ok(()));
        let problem = file.check_users(&jobs).unwrap_err();
        assert_eq!(problem, "quota b: pellucid.dev/users: no job of the trace has model \"Y\"");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |documents: &[Value]| QuotaFile::read(documents.to_vec()).unwrap_err();
        assert_eq!(wrong(&[]), "no quota without children");
        assert_eq!(wrong(&[json!({"kind": "Pod"})]), "document 1: is not an ElasticQuota with a name");
        let a = || quota("a", "", "X", 4);
        assert_eq!(wrong(&[a(), a()]), "quota a: the name stands there twice");
        assert_eq!(wrong(&[a(), quota("b", "", "X", 4)]), "quota b: user X belongs to quota a too");
        assert_eq!(
            wrong(&[a(), quota("b", "a", "", 4)]),
            "quota a: it has children, so no users of its own (pellucid.dev/users)"
        );
        let mut odd = a();
        odd["spec"]["min"][GPU] = json!("1500m");
        assert_eq!(wrong(&[odd]), "quota a: spec.min.nvidia.com/gpu: \"1500m\" is no number of GPUs");
    }
}
