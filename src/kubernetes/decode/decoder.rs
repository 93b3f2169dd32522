//! What plugins add to decoding: annotations that they read, kinds that they bring, and names of resources.
//!
//! The types of `wire` are deserialised without a context, so the keys of the [`Decoder`] at work are known to the
//! thread while it reads an object.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_framework::profile::Profile;
use pellucid_framework::{Controller, PluginFactory};
use pellucid_model::custom::CustomKind;
use pellucid_model::{CustomKindRef, Name};

/// Annotation keys, and names of resources. A key that ends in `*` stands for all that begin so.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// Those that plugins read.
    read: Arc<[&'static str]>,
    /// Those that Bindings add to pods.
    marks: Arc<[&'static str]>,
    /// Old names of resources, with the names that count instead.
    aliases: Arc<[(&'static str, &'static str)]>,
}

thread_local! {
    /// The keys of the decoder at work.
    static DECLARED: RefCell<Keys> = RefCell::default();
}

fn has(keys: &[&str], key: &str) -> bool {
    keys.iter().any(|declared| match declared.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => *declared == key,
    })
}

/// Returns whether the decoder at work keeps an annotation.
pub(super) fn is_declared(key: &str) -> bool {
    DECLARED.with_borrow(|keys| has(&keys.read, key) || has(&keys.marks, key))
}

/// Returns whether an annotation is one that Bindings add to pods.
pub(super) fn is_mark(key: &str) -> bool {
    DECLARED.with_borrow(|keys| has(&keys.marks, key))
}

/// Gives resources the names that plugins declare to count. Of two with one name, the one that had it stays.
pub(super) fn rename_resources<T>(amounts: &mut Vec<(Name, T)>) {
    DECLARED.with_borrow(|keys| {
        if keys.aliases.is_empty() {
            return;
        }
        let new =
            |name: &str| keys.aliases.iter().find(|(old, _)| *old == name).map(|(_, new)| Name::new(new));
        let renamed: Vec<(Name, T)> = amounts.extract_if(.., |(name, _)| new(name).is_some()).collect();
        for (name, amount) in renamed {
            let Some(name) = new(&name) else { continue };
            if !amounts.iter().any(|(known, _)| *known == name) {
                amounts.push((name, amount));
            }
        }
    });
}

/// Reads objects, with what plugins declare. How it decodes a manifest is in [`kinds`](crate::kinds).
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    declared: Keys,
    kinds: Arc<[CustomKindRef]>,
}

impl Decoder {
    /// Makes a decoder for the plugins that some profile enables, and for what controllers must see.
    pub fn in_use_with<'a>(
        registry: &[Box<dyn PluginFactory>],
        profiles: impl IntoIterator<Item = &'a Profile>,
        controllers: &[&'static Controller],
    ) -> Self {
        let mut made = Self::in_use(registry, profiles);
        let seen = controllers.iter().flat_map(|controller| controller.kinds);
        let mut kinds: Vec<CustomKindRef> = made.kinds.to_vec();
        kinds.extend(seen.map(|kind| CustomKindRef(kind)));
        kinds.sort();
        kinds.dedup();
        made.kinds = kinds.into();
        made
    }

    /// Makes a decoder for the plugins that some profile enables.
    pub fn in_use<'a>(
        registry: &[Box<dyn PluginFactory>],
        profiles: impl IntoIterator<Item = &'a Profile>,
    ) -> Self {
        let plugins = profiles.into_iter().flat_map(|profile| &profile.plugins);
        let enabled: BTreeSet<&str> = plugins.map(|plugin| plugin.name()).collect();
        Self::of(registry.iter().filter(|factory| enabled.contains(factory.name())))
    }

    /// Makes a decoder for these plugins.
    pub fn of<'a>(plugins: impl IntoIterator<Item = &'a Box<dyn PluginFactory>>) -> Self {
        let (mut read, mut marks): (Vec<&'static str>, Vec<&'static str>) = Default::default();
        let mut kinds: Vec<&'static CustomKind> = Vec::new();
        let mut aliases: Vec<(&'static str, &'static str)> = Vec::new();
        for plugin in plugins {
            let keys = plugin.keys();
            read.extend(keys.annotations_of_pods().chain(keys.node_annotations));
            marks.extend(keys.binding_annotations);
            aliases.extend(plugin.resource_aliases());
            kinds.extend(plugin.kinds());
        }
        for keys in [&mut read, &mut marks] {
            keys.sort_unstable();
            keys.dedup();
        }
        let mut kinds: Vec<CustomKindRef> = kinds.into_iter().map(CustomKindRef).collect();
        kinds.sort();
        kinds.dedup();
        aliases.sort_unstable();
        aliases.dedup();
        let declared = Keys { read: read.into(), marks: marks.into(), aliases: aliases.into() };
        Self { declared, kinds: kinds.into() }
    }

    /// Returns the kinds that plugins bring.
    pub fn kinds(&self) -> &[CustomKindRef] {
        &self.kinds
    }

    /// Runs `read` with what plugins declare.
    pub(crate) fn with<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = DECLARED.replace(self.declared.clone());
        let made = read();
        DECLARED.set(before);
        made
    }
}
