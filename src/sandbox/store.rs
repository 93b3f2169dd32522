//! All objects, their revisions, and the history that watches read.
//!
//! *Invariants:* STORE-1: one counter numbers every change of every table, without gaps. STORE-2: an object is
//! serialised once per revision; lists and watches share the bytes. STORE-3: the history is a ring per table; a read
//! from before its start gets an expired error. STORE-4: the cost of a write does not grow with the number of objects,
//! apart from the depth of a tree.
//!
//! The store knows nothing of HTTP or of the meaning of objects; kinds define how objects are indexed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::kinds::meta;
use crate::kinds::registry::Kind;

/// Namespace and name; the namespace is empty for cluster-scoped objects.
pub(super) type Key = (Arc<str>, Arc<str>);

/// One revision of one object.
#[derive(Debug)]
pub(super) struct Object {
    /// Namespace and name.
    pub key: Key,
    pub uid: Box<str>,
    /// The revision of the change that wrote this state.
    pub revision: u64,
    /// When this state was written.
    pub written: Timestamp,
    /// Labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Values of the kind's selectable fields, in the kind's order.
    pub fields: Box<[Box<str>]>,
    /// Uids of the owners, the controller first.
    pub owners: Vec<Box<str>>,
    pub is_deleting: bool,
    /// Whether the `Ready` condition is true.
    pub is_ready: bool,
    /// The JSON without `kind` and `apiVersion`.
    pub body: Bytes,
}

impl Object {
    pub(super) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns whether a text that JSON does not escape occurs anywhere in the object.
    pub(super) fn mentions(&self, text: &str) -> bool {
        std::str::from_utf8(&self.body).is_ok_and(|body| body.contains(text))
    }
}

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change in the history.
#[derive(Debug)]
pub(super) struct Event {
    pub change: Change,
    /// The object after the change. For a deletion: its last state, with the revision of the deletion.
    pub object: Arc<Object>,
    /// The object before the change.
    pub previous: Option<Arc<Object>>,
}

/// A consistent list of objects.
pub(super) struct Page {
    /// The objects, in key order.
    pub items: Vec<Arc<Object>>,
    /// The revision of the list.
    pub revision: u64,
}

/// What a watch reads next.
pub(super) enum Next {
    /// Changes after the cursor, oldest first, possibly none; and the revision up to which the watch has now read.
    Events(Vec<Arc<Event>>, u64),
    /// The cursor is older than the history, which starts after the given revision.
    Expired(u64),
}

/// All objects and their history.
pub(super) struct Store {
    inner: Mutex<Inner>,
    history: usize,
    clock: Clock,
}

#[derive(Default)]
struct Inner {
    revision: u64,
    /// Revisions up to this one are dropped from the history of every table.
    compacted: u64,
    tables: BTreeMap<Arc<str>, Table>,
    /// Owner uid → (table, key) of its dependents.
    owned: BTreeMap<Box<str>, BTreeSet<(Arc<str>, Key)>>,
    /// Uids of deleted owners that still have dependents; recorded only once a collector subscribes.
    garbage: Vec<Box<str>>,
    garbage_wake: Option<watch::Sender<usize>>,
}

#[derive(Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    events: VecDeque<Arc<Event>>,
    /// Revision of the newest event that was dropped from the ring.
    dropped: u64,
    wake: watch::Sender<u64>,
}

impl Store {
    /// Returns an empty store that holds the last `history` changes of each table.
    pub(super) fn new(clock: Clock, history: usize) -> Self {
        Self { inner: Mutex::default(), history: history.max(1), clock }
    }

    /// Returns the revision of the newest change.
    pub(super) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    pub(super) fn get(&self, table: &str, key: &Key) -> Option<Arc<Object>> {
        self.inner.lock().tables.get(table)?.objects.get(key).cloned()
    }

    /// Returns the number of objects in a table.
    pub(super) fn len(&self, table: &str) -> usize {
        self.inner.lock().tables.get(table).map_or(0, |t| t.objects.len())
    }

    /// Returns the objects of a namespace, or of all namespaces if it is empty.
    pub(super) fn list(&self, table: &str, namespace: &str) -> Page {
        let inner = self.inner.lock();
        let items =
            inner.tables.get(table).map_or_else(Vec::new, |t| t.within(namespace, None).cloned().collect());
        Page { items, revision: inner.revision }
    }

    /// Returns the objects as they were at a revision, from the first one behind a key; `None` if the history begins later.
    pub(super) fn list_at(
        &self,
        table: &str,
        namespace: &str,
        revision: u64,
        after: Option<&Key>,
    ) -> Option<Page> {
        let inner = self.inner.lock();
        if revision < inner.oldest(table) {
            return None;
        }
        let Some(table) = inner.tables.get(table) else { return Some(Page { items: Vec::new(), revision }) };
        let is_wanted = |key: &Key| {
            after.is_none_or(|after| key > after) && (namespace.is_empty() || *key.0 == *namespace)
        };
        // What has changed since, as it was.
        let mut before: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        let since = table.events.iter().rev().take_while(|event| event.object.revision > revision);
        for event in since.filter(|event| is_wanted(&event.object.key)) {
            before.insert(&event.object.key, event.previous.as_ref());
        }
        let now = table.within(namespace, after).filter(|object| !before.contains_key(&object.key));
        let mut items: Vec<Arc<Object>> = now.chain(before.values().copied().flatten()).cloned().collect();
        if !before.is_empty() {
            items.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Some(Page { items, revision })
    }

    /// Returns the objects of a table that an owner owns.
    pub(super) fn owned(&self, table: &str, owner: &str) -> Vec<Arc<Object>> {
        let inner = self.inner.lock();
        let (Some(keys), Some(objects)) = (inner.owned.get(owner), inner.tables.get(table)) else {
            return Vec::new();
        };
        let here = keys.iter().filter(|(t, _)| **t == *table);
        here.filter_map(|(_, key)| objects.objects.get(key).cloned()).collect()
    }

    /// Returns table and key of everything that an owner owns.
    pub(super) fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Key)> {
        self.inner.lock().owned.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Commits an object: creates it if `expected` is `None`, otherwise replaces that revision. Returns `None` if there
    /// is another revision, or none.
    pub(super) fn put(&self, kind: &Kind, expected: Option<u64>, value: Value) -> Option<Arc<Object>> {
        self.commit(kind, expected, value, false)
    }

    /// Deletes an object at the expected revision; `value` is its last state. Returns `None` if it is at another one or
    /// gone.
    pub(super) fn remove(&self, kind: &Kind, expected: u64, value: Value) -> Option<Arc<Object>> {
        self.commit(kind, Some(expected), value, true)
    }

    fn commit(
        &self,
        kind: &Kind,
        expected: Option<u64>,
        mut value: Value,
        is_end: bool,
    ) -> Option<Arc<Object>> {
        let key: Key = (meta::text(&value, "namespace").into(), meta::text(&value, "name").into());
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let table = inner.tables.entry(Arc::from(&*kind.storage)).or_default();
        let previous = table.objects.get(&key).cloned();
        if previous.as_ref().map(|object| object.revision) != expected {
            return None;
        }
        inner.revision += 1;
        let object = Arc::new(Object::new(kind, key.clone(), (inner.revision, self.clock.now()), &mut value));
        let next = (!is_end).then_some(&*object);
        index(&mut inner.owned, &kind.storage, previous.as_deref(), next);
        let change = match &previous {
            _ if is_end => Change::Deleted,
            Some(_) => Change::Modified,
            None => Change::Added,
        };
        if is_end {
            if let (Some(wake), true) = (&inner.garbage_wake, inner.owned.contains_key(&object.uid)) {
                inner.garbage.push(object.uid.clone());
                wake.send_modify(|count| *count += 1);
            }
            table.objects.remove(&key);
        } else {
            table.objects.insert(key, object.clone());
        }
        table.record(Event { change, object: object.clone(), previous }, self.history);
        Some(object)
    }

    /// Returns a signal that fires on every change of a table.
    pub(super) fn subscribe(&self, table: &str) -> watch::Receiver<u64> {
        self.inner.lock().tables.entry(Arc::from(table)).or_default().wake.subscribe()
    }

    /// Returns up to `most` changes of a table after a revision.
    pub(super) fn after(&self, table: &str, revision: u64, most: usize) -> Next {
        let inner = self.inner.lock();
        let oldest = inner.oldest(table);
        if revision < oldest {
            return Next::Expired(oldest);
        }
        let Some(table) = inner.tables.get(table) else { return Next::Events(Vec::new(), inner.revision) };
        let start = table.events.partition_point(|e| e.object.revision <= revision);
        let events: Vec<_> = table.events.range(start..).take(most).cloned().collect();
        let is_all = start + events.len() == table.events.len();
        let last = events.last().map(|e| e.object.revision);
        let reached = if is_all { inner.revision } else { last.unwrap_or(revision) };
        Next::Events(events, reached)
    }

    /// Starts recording deleted owners. The returned signal fires for each.
    pub(super) fn watch_garbage(&self) -> watch::Receiver<usize> {
        let mut inner = self.inner.lock();
        inner.garbage_wake.get_or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Returns the owners deleted since the last call.
    pub(super) fn take_garbage(&self) -> Vec<Box<str>> {
        std::mem::take(&mut self.inner.lock().garbage)
    }

    /// Drops all history and raises the revision to at least `revision`.
    pub(super) fn compact(&self, revision: u64) {
        let mut inner = self.inner.lock();
        inner.revision = inner.revision.max(revision);
        inner.compacted = inner.revision;
        let now = inner.revision;
        for table in inner.tables.values_mut() {
            table.events.clear();
            table.wake.send_replace(now);
        }
    }
}

impl Inner {
    /// Returns the revision after which a table's history is complete.
    fn oldest(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |t| t.dropped).max(self.compacted)
    }
}

impl Object {
    fn new(kind: &Kind, key: Key, (revision, written): (u64, Timestamp), value: &mut Value) -> Self {
        meta::metadata(value).insert("resourceVersion".into(), revision.to_string().into());
        Self {
            key,
            uid: meta::text(value, "uid").into(),
            revision,
            written,
            labels: meta::labels(value),
            fields: kind.field_values(value),
            owners: meta::owners(value),
            is_deleting: meta::is_deleting(value),
            is_ready: crate::kinds::pods::has_condition(value, "Ready"),
            body: serde_json::to_vec(value).unwrap_or_default().into(),
        }
    }

    /// Returns an object that is not stored, for dry runs and watches.
    pub(super) fn unstored(kind: &Kind, value: &Value) -> Self {
        let mut copy = value.clone();
        let key = (meta::text(value, "namespace").into(), meta::text(value, "name").into());
        let body = serde_json::to_vec(value).unwrap_or_default().into();
        Self { body, ..Self::new(kind, key, (0, Timestamp::UNIX_EPOCH), &mut copy) }
    }

    /// Returns the value of a selectable field by its position, empty if there is none.
    pub(super) fn field(&self, position: usize) -> &str {
        self.fields.get(position).map_or("", |value| value)
    }
}

impl Table {
    /// Returns the objects of a namespace, or of all namespaces if it is empty, in key order.
    fn within<'a>(
        &'a self,
        namespace: &'a str,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let first: Key = (namespace.into(), "".into());
        let start = match after.filter(|after| **after > first) {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Included(first),
        };
        let objects = self.objects.range((start, Bound::Unbounded));
        objects.map(|(_, object)| object).take_while(move |o| namespace.is_empty() || *o.key.0 == *namespace)
    }

    fn record(&mut self, event: Event, most: usize) {
        let revision = event.object.revision;
        self.events.push_back(Arc::new(event));
        while self.events.len() > most {
            self.dropped = self.events.pop_front().map_or(self.dropped, |e| e.object.revision);
        }
        self.wake.send_replace(revision);
    }
}

/// Updates the index of owners for a change of an object.
fn index(
    owned: &mut BTreeMap<Box<str>, BTreeSet<(Arc<str>, Key)>>,
    table: &str,
    old: Option<&Object>,
    new: Option<&Object>,
) {
    if old.map(|o| &o.owners) == new.map(|o| &o.owners) {
        return;
    }
    let table: Arc<str> = table.into();
    for (object, owner) in old.into_iter().flat_map(|o| o.owners.iter().map(move |owner| (o, owner))) {
        if let Some(keys) = owned.get_mut(owner) {
            keys.remove(&(table.clone(), object.key.clone()));
            if keys.is_empty() {
                owned.remove(owner);
            }
        }
    }
    for (object, owner) in new.into_iter().flat_map(|o| o.owners.iter().map(move |owner| (o, owner))) {
        owned.entry(owner.clone()).or_default().insert((table.clone(), object.key.clone()));
    }
}
