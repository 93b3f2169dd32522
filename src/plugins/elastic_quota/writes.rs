//! What is written to quotas: annotations with their amounts, and `status.used`, about a second after they have changed.
//!
//! The scheduler is the only writer of these fields. What was ordered is remembered until the object comes back, so
//! nothing is written twice; a write that was refused is ordered again after a pause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_model::effect::{ObjectPart, ObjectRef, ObjectWrite, Precondition};
use pellucid_model::{Name, Now};
use serde_json::{Value, json};

use super::ELASTIC_QUOTA;
use super::objects::QuotaObject;
use super::quota::{Amounts, Written, resource_list};
use super::quotas::Quotas;
use super::tree::{Cell, Quota, QuotaIdx, Role, clamp};

/// Time from a change to its write, in which further changes are joined.
pub(super) const SETTLING: Duration = Duration::from_secs(1);
/// Time from a refused write to the next try.
const PAUSE: Duration = Duration::from_secs(5);
/// Most quotas written to at a time.
const AT_A_TIME: usize = 64;

/// When quotas are looked at for writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Look {
    /// Nothing has changed.
    #[default]
    Never,
    /// At this time, on the monotonic clock.
    At(Duration),
    /// Now.
    Due,
}

/// What was written and what is to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Sync {
    look: Look,
    /// The quotas as they were when they were last looked at, by name.
    seen: BTreeMap<Name, Arc<Quota>>,
    /// What was ordered for a quota and has not come back.
    ordered: BTreeMap<Name, Written>,
}

impl Sync {
    /// Notes that amounts have changed.
    pub(super) fn note(&mut self, now: Now) {
        if self.look == Look::Never {
            self.look = Look::At(now.monotonic + SETTLING);
        }
    }

    /// Returns when it becomes due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.look {
            Look::At(at) => Some(at),
            Look::Never | Look::Due => None,
        }
    }

    /// Handles its deadline.
    pub(super) fn expire(&mut self, now: Now) {
        if self.deadline().is_some_and(|at| at <= now.monotonic) {
            self.look = Look::Due;
        }
    }

    /// Handles an object that came back.
    pub(super) fn came_back(&mut self, name: &Name, now: Now) {
        if self.ordered.remove(name).is_some() {
            self.seen.remove(name);
            self.note(now);
        }
    }

    /// Handles a refused write.
    pub(super) fn refused(&mut self, name: &Name, now: Now) {
        self.ordered.remove(name);
        self.seen.remove(name);
        self.look = Look::At(now.monotonic + PAUSE);
    }
}

impl Quotas {
    /// Returns the writes of quotas that are due.
    pub(super) fn due_syncs(&mut self, now: Now) -> Vec<ObjectWrite> {
        if self.sync.look != Look::Due {
            return Vec::new();
        }
        self.sync.look = Look::Never;
        let mut all = Vec::new();
        for at in 0..self.tree.quotas.len() {
            if all.len() >= AT_A_TIME {
                self.sync.look = Look::At(now.monotonic);
                break;
            }
            let quota = self.tree.quotas[at].clone();
            if quota.role == Role::Root
                || self.sync.seen.get(&quota.name).is_some_and(|s| Arc::ptr_eq(s, &quota))
            {
                continue;
            }
            if let Some(object) = quota.object.as_ref().and_then(|object| self.objects.find(object)).cloned()
            {
                all.extend(self.sync_one(at, &object));
            }
            self.sync.seen.insert(quota.name.clone(), quota);
        }
        all
    }

    /// Returns the writes that bring a quota's object up to date.
    fn sync_one(&mut self, at: QuotaIdx, object: &QuotaObject) -> Vec<ObjectWrite> {
        let (name, wanted) = (object.quota.name.clone(), self.wanted(at));
        let known = self.sync.ordered.get(&name).unwrap_or(&object.quota.written);
        let mut parts = Vec::new();
        let annotations: serde_json::Map<String, Value> = wanted
            .annotations
            .iter()
            .filter(|(key, text)| known.annotations.get(*key).is_none_or(|old| !is_same(old, text)))
            .map(|(key, text)| ((*key).to_owned(), json!(text)))
            .collect();
        if !annotations.is_empty() {
            parts.push((ObjectPart::Main, json!({"metadata": {"annotations": annotations}})));
        }
        if known.used != wanted.used {
            // A resource that the quota no longer counts goes.
            let gone = known.used.keys().filter(|name| !wanted.used.contains_key(*name));
            let mut used = resource_list(&wanted.used);
            gone.for_each(|name| used[name.as_str()] = Value::Null);
            parts.push((ObjectPart::Status, json!({"status": {"used": used}})));
        }
        if !parts.is_empty() {
            self.sync.ordered.insert(name.clone(), wanted);
        }
        let patch = |(part, patch)| ObjectWrite::Patch {
            object: ObjectRef::custom(&ELASTIC_QUOTA, &object.quota.namespace, &name),
            part,
            precondition: Precondition::uid(object.uid.clone()),
            patch: Arc::new(patch),
        };
        parts.into_iter().map(patch).collect()
    }

    /// Returns what should stand on a quota.
    fn wanted(&self, at: QuotaIdx) -> Written {
        let quota = self.tree.get(at);
        let lends = self.tree.lends(quota);
        let list = |of: &dyn Fn(&Cell) -> i64| {
            let cells = quota.cells.iter().zip(self.tree.resources.iter());
            let counted = cells.filter(|(cell, _)| cell.max.is_some());
            counted.map(|(cell, name)| (name.clone(), of(cell))).collect::<Amounts>()
        };
        let text = |of: &dyn Fn(&Cell) -> i64| resource_list(&list(of)).to_string();
        let mut annotations = BTreeMap::from([
            (keys::REQUEST, text(&|cell| cell.request(lends))),
            (keys::CHILD_REQUEST, text(&|cell| clamp(cell.all.request))),
            (keys::NON_PREEMPTIBLE_REQUEST, text(&|cell| clamp(cell.all.fixed_request))),
            (keys::NON_PREEMPTIBLE_USED, text(&|cell| clamp(cell.all.fixed_used))),
        ]);
        if quota.role == Role::Ordinary {
            annotations.insert(keys::RUNTIME, text(&|cell| cell.runtime));
        }
        if self.args.guarantees_usage {
            annotations.insert(keys::ALLOCATED, text(&|cell| clamp(cell.allocated)));
            annotations.insert(keys::GUARANTEED, text(&|cell| cell.guaranteed()));
        }
        Written { annotations, used: list(&|cell| clamp(cell.all.used)) }
    }
}

/// Returns whether two annotations say the same, whatever the order of their keys.
fn is_same(a: &str, b: &str) -> bool {
    a == b || serde_json::from_str::<Value>(a).ok().is_some_and(|a| Some(a) == serde_json::from_str(b).ok())
}
