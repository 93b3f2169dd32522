//! The controllers: pods for workloads, counts for disruption budgets, garbage collection.
//!
//! One task runs them. A change in the store queues the affected objects as work, each at most once, and each is
//! reconciled with its spec. Controllers use the same operations as HTTP clients. Volumes have their own task
//! (`volumes.rs`).

mod binding;
mod budget;
mod claims;
mod deployment;
mod garbage;
mod job;
mod pod_groups;
mod provisioner;
mod replica_set;
mod stateful_set;
mod volume_book;
pub(super) mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::select_all;
use serde_json::{Value, json};

use crate::api::Api;
use crate::follow::Follower;
use crate::kinds::groups::POD_GROUPS;
use crate::kinds::meta::{self, LETTERS};
use crate::kinds::pods::PHASE;
use crate::kinds::registry::Kind;
use crate::requests::server::Server;
use crate::store::{Change, Event, Key, Object};

const DEPLOYMENTS: &str = "deployments.apps";
const REPLICA_SETS: &str = "replicasets.apps";
const REPLICATION_CONTROLLERS: &str = "replicationcontrollers";
const STATEFUL_SETS: &str = "statefulsets.apps";
const JOBS: &str = "jobs.batch";
const BUDGETS: &str = "poddisruptionbudgets.policy";

/// Most pods that one reconciliation creates or deletes. The resulting changes trigger the next one.
const BATCH: usize = 500;

/// An object to reconcile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Deployment(Key),
    ReplicaSet(Key),
    ReplicationController(Key),
    StatefulSet(Key),
    Job(Key),
    /// The claims of a pod's ephemeral volumes.
    Claims(Key),
    /// The disruption budgets of a namespace.
    Budgets(Arc<str>),
    /// The deleted native PodGroups of a namespace.
    PodGroups(Arc<str>),
    /// A deleted namespace.
    Namespace(Arc<str>),
}

struct Controllers {
    server: Arc<Server>,
    work: BTreeSet<Work>,
    /// Owner uid → the work that a change of its dependents queues.
    owners: BTreeMap<Box<str>, Work>,
    /// Namespaces with disruption budgets.
    budgeted: BTreeSet<Arc<str>>,
    /// Namespaces with deleted native PodGroups that still exist.
    released: BTreeSet<Arc<str>>,
    /// Deleted namespaces that still exist.
    leaving: BTreeSet<Arc<str>>,
}

/// Runs until the sandbox stops.
pub(super) async fn run(server: Arc<Server>) {
    let tables = [
        DEPLOYMENTS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        STATEFUL_SETS,
        JOBS,
        BUDGETS,
        POD_GROUPS,
        "namespaces",
        "pods",
    ];
    let mut followers = tables.map(|table| (table, Follower::new(&server, table)));
    let mut garbage = server.api.store.watch_garbage();
    let mut controllers = Controllers {
        server: server.clone(),
        work: BTreeSet::new(),
        owners: BTreeMap::new(),
        budgeted: BTreeSet::new(),
        released: BTreeSet::new(),
        leaving: BTreeSet::new(),
    };
    loop {
        garbage.borrow_and_update();
        let mut is_idle;
        (controllers, is_idle) = within(&server, controllers, Controllers::collect_garbage).await;
        for (table, follower) in &mut followers {
            let news = follower.take();
            news.events.iter().for_each(|event| controllers.notice(table, event));
            is_idle &= news.is_empty();
        }
        is_idle &= controllers.work.is_empty();
        (controllers, ()) = within(&server, controllers, Controllers::turn).await;
        if !is_idle {
            tokio::task::yield_now().await;
            continue;
        }
        let news = followers.iter_mut().map(|(_, follower)| Box::pin(follower.changed()));
        tokio::select! {
            _ = select_all(news) => {}
            changed = garbage.changed() => if changed.is_err() { return },
            () = server.shutdown.cancelled() => return,
        }
    }
}

/// Lets the controllers do something that may wait for webhooks.
async fn within<T: Send + 'static>(
    server: &Server,
    mut controllers: Controllers,
    work: fn(&mut Controllers) -> T,
) -> (Controllers, T) {
    let work = move || {
        let done = work(&mut controllers);
        (controllers, done)
    };
    server.api.run(work).await
}

impl Controllers {
    /// Queues the work that a change of a table requires.
    fn notice(&mut self, table: &str, event: &Event) {
        let (object, change) = (&event.object, event.change);
        let key = object.key.clone();
        if change == Change::Deleted && self.leaving.contains(&key.0) {
            self.work.insert(Work::Namespace(key.0.clone()));
        }
        let own = match table {
            DEPLOYMENTS => Some(Work::Deployment(key)),
            REPLICA_SETS => Some(Work::ReplicaSet(key)),
            REPLICATION_CONTROLLERS => Some(Work::ReplicationController(key)),
            STATEFUL_SETS => Some(Work::StatefulSet(key)),
            JOBS => Some(Work::Job(key)),
            BUDGETS => {
                self.budgeted.insert(key.0.clone());
                Some(Work::Budgets(key.0))
            }
            POD_GROUPS => {
                if object.is_deleting && change != Change::Deleted {
                    self.released.insert(key.0.clone());
                    self.work.insert(Work::PodGroups(key.0));
                }
                None
            }
            "namespaces" if !object.is_deleting => None,
            "namespaces" => {
                self.leaving.insert(key.1.clone());
                Some(Work::Namespace(key.1))
            }
            _ if is_immaterial(event) => return,
            _ => {
                self.notice_pod(object, change);
                None
            }
        };
        if let Some(work) = own {
            if change == Change::Deleted {
                self.owners.remove(&object.uid);
                if let Work::Namespace(name) = &work {
                    self.leaving.remove(name);
                }
            } else {
                self.owners.insert(object.uid.clone(), work.clone());
                self.work.insert(work);
            }
        }
        let owners = object.owners.iter().filter_map(|uid| self.owners.get(uid)).cloned();
        self.work.extend(owners);
    }

    fn notice_pod(&mut self, pod: &Object, change: Change) {
        if change == Change::Added && claims::may_have(pod) {
            self.work.insert(Work::Claims(pod.key.clone()));
        }
        let namespace = &pod.key.0;
        if self.released.contains(namespace) {
            self.work.insert(Work::PodGroups(namespace.clone()));
        }
        if self.budgeted.contains(namespace) {
            self.work.insert(Work::Budgets(namespace.clone()));
        }
    }

    /// Does all queued work once.
    fn turn(&mut self) {
        let api = &self.server.api;
        for work in std::mem::take(&mut self.work) {
            match &work {
                Work::Deployment(key) => deployment::reconcile(api, key),
                Work::ReplicaSet(key) => replica_set::reconcile(api, REPLICA_SETS, key),
                Work::ReplicationController(key) => {
                    replica_set::reconcile(api, REPLICATION_CONTROLLERS, key);
                }
                Work::StatefulSet(key) => stateful_set::reconcile(api, key),
                Work::Claims(key) => claims::reconcile(api, key),
                Work::Job(key) => job::reconcile(api, key),
                Work::Budgets(namespace) => budget::reconcile(api, namespace),
                Work::PodGroups(namespace) => {
                    if pod_groups::release(api, namespace) {
                        self.released.remove(namespace);
                    }
                }
                Work::Namespace(name) => garbage::empty(api, name),
            }
        }
    }

    /// Deletes the dependents of deleted owners. Returns whether there were none.
    fn collect_garbage(&mut self) -> bool {
        let gone = self.server.api.store.take_garbage();
        gone.iter().for_each(|uid| garbage::collect(&self.server.api, uid));
        gone.is_empty()
    }
}

/// Returns whether a change of a pod matters neither to its owners nor to budgets.
fn is_immaterial(event: &Event) -> bool {
    let facts =
        |pod: &Object| (pod.field(PHASE).to_owned(), pod.is_ready, pod.is_deleting, pod.owners.clone());
    let is_same = |old: &Arc<Object>| facts(old) == facts(&event.object) && old.labels == event.object.labels;
    event.change == Change::Modified && event.previous.as_ref().is_some_and(is_same)
}

/// Returns an object with its kind, unless it is gone or being deleted.
fn living(api: &Api, table: &str, key: &Key) -> Option<(Arc<Kind>, Arc<Object>, Value)> {
    let object = api.store.get(table, key).filter(|object| !object.is_deleting)?;
    let value = object.value();
    Some((api.kind_of(table)?, object, value))
}

/// Replaces the status of an object.
fn set_status(api: &Api, kind: &Kind, key: &Key, status: &Value) {
    // An object that is gone needs no status.
    api.edit(kind, key, |object| {
        object["status"] = status.clone();
        Ok(())
    });
}

/// How a percentage of pods is rounded.
enum Rounding {
    Up,
    Down,
}

/// Returns a number, or a percentage of `whole`.
fn share(value: &Value, whole: i64, rounding: Rounding) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match (percent, rounding) {
        (None, _) => value.as_i64().unwrap_or_default(),
        (Some(percent), Rounding::Up) => (whole * percent + 99) / 100,
        (Some(percent), Rounding::Down) => whole * percent / 100,
    }
}

/// Returns a short hash of a template.
fn hash(template: &Value) -> String {
    let hash = meta::hash(&template.to_string());
    (0..10).map(|at| char::from(LETTERS[((hash >> (at * 6)) % LETTERS.len() as u64) as usize])).collect()
}

/// Returns the owner references for the dependents of an object.
fn owner(kind: &Kind, object: &Value) -> Value {
    json!([{
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true
    }])
}

/// Returns an object with the metadata and the spec of a template.
fn from_template(template: &Value) -> Value {
    let mut object = json!({"metadata": template["metadata"], "spec": template["spec"]});
    // This creates missing metadata.
    meta::metadata(&mut object);
    object
}

/// Returns a pod from a workload's template, with `generateName`.
fn pod_of(kind: &Kind, workload: &Value) -> Value {
    let mut pod = from_template(&workload["spec"]["template"]);
    let metadata = meta::metadata(&mut pod);
    // A template may have a name, but pods are named after their workload.
    metadata.remove("name");
    metadata.remove("namespace");
    metadata.insert("generateName".into(), format!("{}-", meta::text(workload, "name")).into());
    metadata.insert("ownerReferences".into(), owner(kind, workload));
    pod
}
