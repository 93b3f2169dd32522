//! All objects, their revisions, and the history that watches read.
//!
//! Invariants: STORE-1 one counter numbers every change of every table, without gaps. STORE-2 an object is
//! serialised once per revision; lists and watches share the bytes. STORE-3 history is a ring per table;
//! who asks for more than it holds is told that it expired. STORE-4 no write costs more with more objects,
//! apart from the depth of a tree.
//!
//! The store knows nothing of HTTP or of what objects mean; kinds tell it how to index them.

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
    /// The object's uid.
    pub uid: Box<str>,
    /// The revision that wrote it.
    pub revision: u64,
    /// When that was.
    pub written: Timestamp,
    /// Labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Values of the kind's selectable fields.
    pub fields: Box<[Box<str>]>,
    /// Uids of the owners, the controller first.
    pub owners: Vec<Box<str>>,
    /// Whether deletion has begun.
    pub is_deleting: bool,
    /// Whether its `Ready` condition is true.
    pub is_ready: bool,
    /// The JSON without kind and apiVersion.
    pub body: Bytes,
}

impl Object {
    /// Reads the JSON.
    pub(super) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

/// One entry of the history.
#[derive(Debug)]
pub(super) struct Event {
    /// What happened.
    pub change: Change,
    /// The object after it; for a removal its last state under the revision of the removal.
    pub object: Arc<Object>,
    /// The object before it.
    pub previous: Option<Arc<Object>>,
}

/// Why a write did not happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The object is not at the expected revision.
    Moved,
    /// There is an object of that name.
    Exists,
}

/// A consistent list.
pub(super) struct Page {
    /// The objects, in key order.
    pub items: Vec<Arc<Object>>,
    /// The revision of the list.
    pub revision: u64,
}

/// What a watch reads next.
pub(super) enum Next {
    /// Entries after the cursor, oldest first; may be empty. The second is the revision they reach.
    Events(Vec<Arc<Event>>, u64),
    /// The cursor is older than the history, which starts after the given revision.
    Expired(u64),
}

/// The objects and their history.
pub(super) struct Store {
    inner: Mutex<Inner>,
    history: usize,
    clock: Clock,
}

struct Inner {
    revision: u64,
    /// Revisions up to this one are gone from every history.
    compacted: u64,
    tables: BTreeMap<Arc<str>, Table>,
    /// Owner uid → (table, key) of what it owns.
    owned: BTreeMap<Box<str>, BTreeSet<(Arc<str>, Key)>>,
    /// Uids of owners that went before what they own; kept only for a collector.
    garbage: Vec<Box<str>>,
    garbage_wake: Option<watch::Sender<usize>>,
}

struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    events: VecDeque<Arc<Event>>,
    /// The revision of the newest entry that fell out of the ring.
    dropped: u64,
    wake: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), events: VecDeque::new(), dropped: 0, wake: watch::Sender::new(0) }
    }
}

impl Store {
    /// Returns an empty store that keeps `history` changes per table.
    pub(super) fn new(clock: Clock, history: usize) -> Self {
        let inner = Inner {
            revision: 0,
            compacted: 0,
            tables: BTreeMap::new(),
            owned: BTreeMap::new(),
            garbage: Vec::new(),
            garbage_wake: None,
        };
        Self { inner: Mutex::new(inner), history: history.max(1), clock }
    }

    /// Returns the revision of the newest change.
    pub(super) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Returns an object.
    pub(super) fn get(&self, table: &str, key: &Key) -> Option<Arc<Object>> {
        self.inner.lock().tables.get(table)?.objects.get(key).cloned()
    }

    /// Returns how many objects a table has.
    pub(super) fn len(&self, table: &str) -> usize {
        self.inner.lock().tables.get(table).map_or(0, |t| t.objects.len())
    }

    /// Returns the objects of a namespace, or of all when it is empty.
    pub(super) fn list(&self, table: &str, namespace: &str) -> Page {
        let inner = self.inner.lock();
        let items = inner.tables.get(table).map_or_else(Vec::new, |t| t.within(namespace).cloned().collect());
        Page { items, revision: inner.revision }
    }

    /// Returns the objects as they were at a revision, or the first revision that is still kept.
    pub(super) fn list_at(&self, table: &str, namespace: &str, revision: u64) -> Result<Page, u64> {
        let inner = self.inner.lock();
        let oldest = inner.oldest(table);
        if revision < oldest {
            return Err(oldest);
        }
        let Some(table) = inner.tables.get(table) else { return Ok(Page { items: Vec::new(), revision }) };
        let mut objects: BTreeMap<&Key, &Arc<Object>> =
            table.within(namespace).map(|object| (&object.key, object)).collect();
        for event in table.events.iter().rev().take_while(|e| e.object.revision > revision) {
            if !namespace.is_empty() && *event.object.key.0 != *namespace {
                continue;
            }
            match &event.previous {
                Some(previous) => objects.insert(&previous.key, previous),
                None => objects.remove(&event.object.key),
            };
        }
        Ok(Page { items: objects.into_values().cloned().collect(), revision })
    }

    /// Returns what an object owns in a table.
    pub(super) fn owned(&self, table: &str, owner: &str) -> Vec<Arc<Object>> {
        let inner = self.inner.lock();
        let (Some(keys), Some(objects)) = (inner.owned.get(owner), inner.tables.get(table)) else {
            return Vec::new();
        };
        let here = keys.iter().filter(|(t, _)| **t == *table);
        here.filter_map(|(_, key)| objects.objects.get(key).cloned()).collect()
    }

    /// Returns the tables and keys of everything that an object owns.
    pub(super) fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Key)> {
        self.inner.lock().owned.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Writes an object: creates it when `expected` is `None`, else replaces that revision.
    pub(super) fn put(
        &self,
        kind: &Kind,
        expected: Option<u64>,
        mut value: Value,
    ) -> Result<Arc<Object>, Refused> {
        let key: Key = (meta::text(&value, "namespace").into(), meta::text(&value, "name").into());
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let table = inner.tables.entry(Arc::from(&*kind.storage)).or_default();
        let previous = table.objects.get(&key).cloned();
        match (&previous, expected) {
            (Some(_), None) => return Err(Refused::Exists),
            (None, Some(_)) => return Err(Refused::Moved),
            (Some(object), Some(expected)) if object.revision != expected => return Err(Refused::Moved),
            _ => {}
        }
        inner.revision += 1;
        let object = Arc::new(Object::new(kind, key.clone(), (inner.revision, self.clock.now()), &mut value));
        index(&mut inner.owned, &kind.storage, previous.as_deref(), Some(&object));
        table.objects.insert(key, object.clone());
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        table.record(Event { change, object: object.clone(), previous }, self.history);
        Ok(object)
    }

    /// Removes the expected revision of an object; `value` is its last state.
    pub(super) fn remove(
        &self,
        kind: &Kind,
        expected: u64,
        mut value: Value,
    ) -> Result<Arc<Object>, Refused> {
        let key: Key = (meta::text(&value, "namespace").into(), meta::text(&value, "name").into());
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(table) = inner.tables.get_mut(&*kind.storage) else { return Err(Refused::Moved) };
        let previous = table.objects.get(&key).cloned();
        if previous.as_ref().is_none_or(|object| object.revision != expected) {
            return Err(Refused::Moved);
        }
        inner.revision += 1;
        let object = Arc::new(Object::new(kind, key.clone(), (inner.revision, self.clock.now()), &mut value));
        index(&mut inner.owned, &kind.storage, previous.as_deref(), None);
        if let (Some(wake), true) = (&inner.garbage_wake, inner.owned.contains_key(&object.uid)) {
            inner.garbage.push(object.uid.clone());
            wake.send_modify(|count| *count += 1);
        }
        table.objects.remove(&key);
        let event = Event { change: Change::Deleted, object: object.clone(), previous };
        table.record(event, self.history);
        Ok(object)
    }

    /// Returns a signal that changes with every change of a table, and its present revision.
    pub(super) fn subscribe(&self, table: &str) -> (watch::Receiver<u64>, u64) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        (inner.tables.entry(Arc::from(table)).or_default().wake.subscribe(), revision)
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

    /// Begins to note owners that are gone; the signal changes with each.
    pub(super) fn watch_garbage(&self) -> watch::Receiver<usize> {
        let mut inner = self.inner.lock();
        inner.garbage_wake.get_or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Returns the owners that went since the last call.
    pub(super) fn take_garbage(&self) -> Vec<Box<str>> {
        std::mem::take(&mut self.inner.lock().garbage)
    }

    /// Drops all history and moves the counter to at least `revision`.
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
    /// Returns the revision after which a table's history is whole.
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

    /// Returns an object that was not written, as a dry run shows it.
    pub(super) fn unstored(kind: &Kind, value: &Value) -> Self {
        let mut copy = value.clone();
        let key = (meta::text(value, "namespace").into(), meta::text(value, "name").into());
        let body = serde_json::to_vec(value).unwrap_or_default().into();
        Self { body, ..Self::new(kind, key, (0, Timestamp::UNIX_EPOCH), &mut copy) }
    }

    /// Returns the value of a selectable field by its position.
    pub(super) fn field(&self, position: usize) -> &str {
        self.fields.get(position).map_or("", |value| value)
    }
}

impl Table {
    /// Returns the objects of a namespace, or of all when it is empty, in order.
    fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        let start: Bound<Key> = match namespace {
            "" => Bound::Unbounded,
            _ => Bound::Included((namespace.into(), "".into())),
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

/// Keeps the index of owners true.
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
