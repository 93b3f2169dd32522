//! The rules of reading and writing objects, for HTTP requests and controllers alike.
//!
//! A write reads the object, computes the new state without a lock, and commits it if the object's revision is
//! unchanged; otherwise it starts again. The rules of a kind come from its [`Kind`]; the special rules of pods are in
//! `pods.rs`, deletion is in `delete.rs`. This module knows nothing of HTTP.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, seconds};
use crate::errors::{ApiError, ApiResult};
use crate::fields::copy;
use crate::kinds::catalog;
use crate::kinds::events;
use crate::kinds::groups;
use crate::kinds::meta::{self, Identities};
use crate::kinds::placement;
use crate::kinds::pods;
use crate::kinds::registry::{Form, Kind, Registry};
use crate::kinds::storage;
use crate::kinds::validate;
use crate::options::{FieldValidation, Options};
use crate::requests::patch::{self, PatchKind};
use crate::requests::render::json_size;
use crate::store::{Key, Object, Store};
use crate::webhooks::{Operation, Webhooks, Write};

/// Most bytes of an object: the limit of etcd.
const MAX_OBJECT: usize = 3 * 1024 * 1024 / 2;
/// Metadata that no update changes.
const PROTECTED: [&str; 9] = [
    "namespace",
    "name",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
const TOO_LARGE: &str = "etcdserver: request is too large";

/// The state of a sandbox and the operations on it.
pub(super) struct Api {
    /// Objects and history.
    pub store: Store,
    /// The kinds served now.
    pub kinds: ArcSwap<Registry>,
    pub clock: Clock,
    /// The source of uids and generated names.
    pub identities: Identities,
    /// Held while the set of served kinds changes.
    pub definitions: Mutex<()>,
    /// Calls admission webhooks.
    pub webhooks: Webhooks,
}

/// The result of a write.
pub(super) struct Written {
    pub object: Arc<Object>,
    pub is_new: bool,
    pub warnings: Vec<String>,
}

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status.
    Main,
    /// Only the status.
    Status,
}

impl Api {
    /// Returns an API with the built-in kinds and no objects.
    pub(super) fn new(
        clock: Clock,
        seed: u64,
        history: usize,
        has_gangs: bool,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            webhooks: Webhooks::new(clock.clone(), seed, shutdown),
            store: Store::new(clock.clone(), history),
            kinds: ArcSwap::from_pointee(catalog::registry(has_gangs)),
            clock,
            identities: Identities::new(seed),
            definitions: Mutex::new(()),
        }
    }

    /// Returns the kind whose objects are stored in a table.
    pub(super) fn kind_of(&self, storage: &str) -> Option<Arc<Kind>> {
        self.kinds.load().find_storage(storage).cloned()
    }

    /// Returns an object, or the NotFound error.
    pub(super) fn get(&self, kind: &Kind, key: &Key) -> ApiResult<Arc<Object>> {
        let found = self.store.get(&kind.storage, key);
        found.ok_or_else(|| ApiError::not_found(&kind.group, &kind.plural, &key.1))
    }

    /// Creates an object in a namespace. Fails as a real server would.
    pub(super) fn create(
        &self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        options: &Options,
    ) -> ApiResult<Written> {
        let (mut object, warnings) = self.read(kind, object, options)?;
        let is_named = !meta::text(&object, "name").is_empty();
        self.complete(kind, namespace, &mut object)?;
        let write = self.reviewed(options).map(|requester| Write {
            kind,
            subresource: "",
            operation: Operation::Create,
            namespace,
            name: "",
            dry_run: options.dry_run,
            requester,
        });
        if let Some(write) = write {
            let mut shown = object.clone();
            let fields = meta::metadata(&mut shown);
            fields.retain(|key, _| !["uid", "creationTimestamp"].contains(&key.as_str()));
            if !is_named {
                fields.remove("name");
            }
            let write = Write { name: meta::text(&shown, "name"), ..write };
            if let Some(mutated) = self.mutate(&write, Some(&shown), None)? {
                object = self.read(kind, mutated, &Options::patched())?.0;
                self.complete(kind, namespace, &mut object)?;
            }
        }
        self.check(kind, &object, None)?;
        if kind.namespaced {
            self.check_namespace(namespace)?;
        }
        if let Some(write) = write {
            self.validate(&Write { name: meta::text(&object, "name"), ..write }, Some(&object), None)?;
        }
        let key: Key = (namespace.into(), meta::text(&object, "name").into());
        let exists = || ApiError::already_exists(&kind.group, &kind.plural, &key.1);
        if options.dry_run {
            if self.store.get(&kind.storage, &key).is_some() {
                return Err(exists());
            }
            return Ok(Written { object: Arc::new(Object::unstored(kind, &object)), is_new: true, warnings });
        }
        let object = self.store.put(kind, None, object).ok_or_else(exists)?;
        self.after_write(kind, &object);
        Ok(Written { object, is_new: true, warnings })
    }

    /// Sets what the server itself sets in a new object: identity, defaults, and what admission adds.
    fn complete(&self, kind: &Kind, namespace: &str, object: &mut Value) -> ApiResult<()> {
        self.identify(kind, namespace, object)?;
        if kind.form == Form::Event {
            events::store(object);
        }
        // A status is written through its subresource. Only a node may bring its own.
        if kind.subresource("status").is_some() && &*kind.storage != "nodes" {
            object.as_object_mut().map(|fields| fields.remove("status"));
        }
        if pods::is_pod(kind) {
            pods::admit(self, object)?;
            placement::merge_label_keys(object);
            groups::drop_unserved(self, object);
        }
        storage::admit(self, kind, object);
        groups::admit(self, kind, object)?;
        if &*kind.storage == pods::PRIORITY_CLASSES {
            pods::only_default(self, object)?;
        }
        (kind.defaults)(object);
        if pods::is_pod(kind) {
            pods::gated_condition(object, &seconds(self.clock.now()));
        }
        Ok(())
    }

    /// Updates an object. `change` receives the stored object as the client sees it and returns the wanted one.
    pub(super) fn update(
        &self,
        kind: &Kind,
        key: &Key,
        part: Part,
        options: &Options,
        mut change: impl FnMut(&Value) -> ApiResult<Value>,
    ) -> ApiResult<Written> {
        loop {
            let current = self.get(kind, key)?;
            let old = current.value();
            let wanted = if kind.form == Form::Event {
                let mut shown = old.clone();
                events::show(&mut shown);
                change(&shown)?
            } else {
                change(&old)?
            };
            let (wanted, warnings) = self.read(kind, wanted, options)?;
            preconditions(kind, key, &old, &wanted)?;
            let new = self.admit_update(kind, key, part, &old, wanted, options)?;
            if new == old {
                return Ok(Written { object: current, is_new: false, warnings });
            }
            if options.dry_run {
                let object = Arc::new(Object::unstored(kind, &new));
                return Ok(Written { object, is_new: false, warnings });
            }
            // The object has moved, so start again. A client that sent a resourceVersion gets a conflict in `prepare`.
            if let Some(object) = self.replace(kind, current.revision, &old, new) {
                return Ok(Written { object, is_new: false, warnings });
            }
        }
    }

    /// Commits the next state of an object; one whose last finalizer went is removed. Returns `None` if the object is at
    /// another revision or gone.
    fn replace(&self, kind: &Kind, revision: u64, old: &Value, new: Value) -> Option<Arc<Object>> {
        let may_go = meta::is_deleting(&new) && !meta::has_finalizers(&new) && meta::has_finalizers(old);
        let object = if may_go && !pods::is_running_out(&new) {
            self.store.remove(kind, revision, new)
        } else {
            self.store.put(kind, Some(revision), new)
        }?;
        self.after_write(kind, &object);
        Some(object)
    }

    /// Changes an object on behalf of the sandbox itself, whose changes need no check. Returns `None` if it is gone or
    /// `change` fails.
    pub(super) fn edit(
        &self,
        kind: &Kind,
        key: &Key,
        change: impl Fn(&mut Value) -> ApiResult<()>,
    ) -> Option<Arc<Object>> {
        loop {
            let current = self.store.get(&kind.storage, key)?;
            let old = current.value();
            let mut new = old.clone();
            change(&mut new).ok()?;
            if new == old {
                return Some(current);
            }
            raise_generation(kind, &mut new, &old);
            if let Some(object) = self.replace(kind, current.revision, &old, new) {
                return Some(object);
            }
        }
    }

    /// Applies a patch. Server-side apply creates a missing object.
    pub(super) fn patch(
        &self,
        kind: &Kind,
        key: &Key,
        part: Part,
        (how, body): (PatchKind, &Value),
        options: &Options,
    ) -> ApiResult<Written> {
        let changed = self.update(kind, key, part, options, |old| {
            let mut body = body.clone();
            if how == PatchKind::Apply {
                meta::drop_type(&mut body);
            }
            patch::apply(how, old, &body, kind.is_custom())
        });
        match changed {
            Err(error) if error.code == 404 && how == PatchKind::Apply && part == Part::Main => {
                let mut object = body.clone();
                object["metadata"]["name"] = (*key.1).into();
                self.create(kind, &key.0, object, options)
            }
            other => other,
        }
    }

    /// Decodes a client's object: checks the kind and the types, and removes unknown fields.
    fn read(&self, kind: &Kind, mut object: Value, options: &Options) -> ApiResult<(Value, Vec<String>)> {
        let refuse = |why: String| {
            let (name, version) = (&kind.kind, kind.api_version());
            ApiError::bad_request(format!(
                "{name} in version \"{version}\" cannot be handled as a {name}: {why}"
            ))
        };
        if !object.is_object() {
            return Err(refuse("json: cannot unmarshal into an object".into()));
        }
        if object.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
            return Err(refuse("json: cannot unmarshal metadata into an object".into()));
        }
        meta::metadata(&mut object).remove("managedFields");
        let mut unknown = match kind.decode.filter(|_| !options.is_internal) {
            Some(decode) => {
                validate::quantities(&object).map_err(refuse)?;
                decode(&mut object).map_err(refuse)?
            }
            None => Vec::new(),
        };
        meta::drop_type(&mut object);
        if let Some(schema) = &kind.schema {
            schema.fill(&mut object);
            unknown.extend(schema.prune(&mut object));
        }
        let text: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        match options.validation {
            FieldValidation::Strict if !text.is_empty() => {
                Err(refuse(format!("strict decoding error: {}", text.join(", "))))
            }
            FieldValidation::Ignore => Ok((object, Vec::new())),
            _ => Ok((object, text)),
        }
    }

    /// Sets the name, uid and creation time of a new object.
    fn identify(&self, kind: &Kind, namespace: &str, object: &mut Value) -> ApiResult<()> {
        let stated = meta::text(object, "namespace");
        if !stated.is_empty() && stated != namespace {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        if !meta::text(object, "resourceVersion").is_empty() {
            return Err(ApiError::internal("resourceVersion should not be set on objects to be created"));
        }
        let prefix = meta::text(object, "generateName").to_owned();
        let fields = meta::metadata(object);
        if fields.get("name").is_none_or(|name| name.is_null() || name == "") && !prefix.is_empty() {
            fields.insert("name".into(), format!("{prefix}{}", self.identities.suffix()).into());
        }
        if kind.namespaced {
            fields.insert("namespace".into(), namespace.into());
        } else {
            fields.remove("namespace");
        }
        fields.insert("uid".into(), self.identities.uid().into());
        fields.insert("creationTimestamp".into(), seconds(self.clock.now()).into());
        for key in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "selfLink"]
        {
            fields.remove(key);
        }
        if kind.generation {
            fields.insert("generation".into(), 1.into());
        }
        meta::drop_empty(object);
        Ok(())
    }

    fn check(&self, kind: &Kind, object: &Value, old: Option<&Value>) -> ApiResult<()> {
        let mut errors = match old {
            None => validate::metadata(object, &*kind.storage == "namespaces"),
            Some(_) => Vec::new(),
        };
        errors.extend(validate::annotations(object));
        errors.extend((kind.validate)(object, old));
        if let Some(schema) = &kind.schema {
            errors.extend(schema.check(object));
        }
        if errors.is_empty() {
            return if json_size(object) > MAX_OBJECT { Err(ApiError::internal(TOO_LARGE)) } else { Ok(()) };
        }
        // Events of both APIs are one internal kind, in the core group.
        let group = if &*kind.storage == "events" { "" } else { &kind.group };
        Err(ApiError::invalid(group, &kind.kind, meta::text(object, "name"), &errors))
    }

    fn check_namespace(&self, namespace: &str) -> ApiResult<()> {
        let key: Key = ("".into(), namespace.into());
        match self.store.get("namespaces", &key) {
            None => Err(ApiError::not_found("", "namespaces", namespace)),
            Some(found) if found.is_deleting => Err(ApiError::terminating(namespace)),
            Some(_) => Ok(()),
        }
    }

    /// Returns the next state of an object for a client's wanted one, or why the change is refused.
    fn admit_update(
        &self,
        kind: &Kind,
        key: &Key,
        part: Part,
        old: &Value,
        wanted: Value,
        options: &Options,
    ) -> ApiResult<Value> {
        let mut new = shape(kind, part, old, wanted);
        let write = self.reviewed(options).map(|requester| Write {
            kind,
            subresource: &options.subresource,
            operation: Operation::Update,
            namespace: &key.0,
            name: &key.1,
            dry_run: options.dry_run,
            requester,
        });
        if let Some(write) = &write
            && let Some(mutated) = self.mutate(write, Some(&new), Some(old))?
        {
            new = shape(kind, part, old, self.read(kind, mutated, &Options::patched())?.0);
        }
        self.check(kind, &new, Some(old))?;
        raise_generation(kind, &mut new, old);
        if let Some(write) = &write {
            self.validate(write, Some(&new), Some(old))?;
        }
        Ok(new)
    }

    /// Runs the side effects of a committed write.
    fn after_write(&self, kind: &Kind, object: &Object) {
        if &*kind.plural == "customresourcedefinitions" && &*kind.group == "apiextensions.k8s.io" {
            self.serve_definition(kind, &object.key);
        }
    }

    /// Returns the Status for a successful write whose answer carries no object.
    pub(super) fn success(code: u16) -> Value {
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
    }
}

/// Returns the next state of an object before it is checked: the wanted one, with what its writer may not change taken from
/// the old one, and with defaults.
fn shape(kind: &Kind, part: Part, old: &Value, mut wanted: Value) -> Value {
    if kind.form == Form::Event {
        events::store(&mut wanted);
    }
    let has_status = kind.subresource("status").is_some();
    let mut new = match part {
        Part::Status => {
            let mut new = old.clone();
            copy(&wanted, &mut new, "status");
            new
        }
        Part::Main if has_status => {
            copy(old, &mut wanted, "status");
            wanted
        }
        _ => wanted,
    };
    for field in PROTECTED {
        copy(&old["metadata"], &mut new["metadata"], field);
    }
    meta::drop_empty(&mut new);
    groups::keep_priority(kind, &mut new, old);
    (kind.defaults)(&mut new);
    new
}

/// Fails if a client's wanted object has another name or uid than the stored one, or an outdated revision.
fn preconditions(kind: &Kind, key: &Key, old: &Value, wanted: &Value) -> ApiResult<()> {
    let revision = meta::text(wanted, "resourceVersion");
    if !revision.is_empty() && revision != meta::text(old, "resourceVersion") {
        return Err(ApiError::stale(&kind.group, &kind.plural, &key.1));
    }
    let name = meta::text(wanted, "name");
    if !name.is_empty() && name != &*key.1 {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", key.1);
        return Err(ApiError::bad_request(message));
    }
    let (uid, old_uid) = (meta::text(wanted, "uid"), meta::text(old, "uid"));
    if !uid.is_empty() && uid != old_uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}");
        return Err(ApiError::conflict(&kind.group, &kind.plural, &key.1, &why));
    }
    Ok(())
}

/// Counts a change of anything but metadata and status, for kinds that count them.
fn raise_generation(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.generation && !same_spec(new, old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        new["metadata"]["generation"] = generation.into();
    }
}

/// Returns whether two objects are equal apart from metadata and status.
fn same_spec(new: &Value, old: &Value) -> bool {
    fn rest(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(key, _)| *key != "metadata" && *key != "status")
    }
    rest(new).eq(rest(old))
}
