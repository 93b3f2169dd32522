//! What plugins add to decoding: annotations that they read, and kinds that they bring.
//!
//! The types of `wire` are deserialised without a context, so the keys of the [`Decoder`] at work are known to the
//! thread while it reads an object.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_framework::PluginFactory;
use pellucid_framework::profile::Profile;
use pellucid_model::CustomKindRef;
use pellucid_model::custom::CustomKind;

/// Annotation keys. One that ends in `*` stands for all that begin so.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// Those that plugins read.
    read: Arc<[&'static str]>,
    /// Those that Bindings add to pods.
    marks: Arc<[&'static str]>,
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

/// Reads objects, with what plugins declare. How it decodes a manifest is in [`kinds`](crate::kinds).
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    annotations: Keys,
    kinds: Arc<[CustomKindRef]>,
}

impl Decoder {
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
        for plugin in plugins {
            let keys = plugin.keys();
            read.extend(keys.annotations_of_pods().chain(keys.node_annotations));
            marks.extend(keys.binding_annotations);
            kinds.extend(plugin.kinds());
        }
        for keys in [&mut read, &mut marks] {
            keys.sort_unstable();
            keys.dedup();
        }
        let mut kinds: Vec<CustomKindRef> = kinds.into_iter().map(CustomKindRef).collect();
        kinds.sort();
        kinds.dedup();
        Self { annotations: Keys { read: read.into(), marks: marks.into() }, kinds: kinds.into() }
    }

    /// Returns the kinds that plugins bring.
    pub fn kinds(&self) -> &[CustomKindRef] {
        &self.kinds
    }

    /// Runs `read` with the declared annotations.
    pub(crate) fn with<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = DECLARED.replace(self.annotations.clone());
        let made = read();
        DECLARED.set(before);
        made
    }
}
