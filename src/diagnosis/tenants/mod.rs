//! Which names in a text belong to namespaces that a viewer does not see.
//!
//! This file collects the names of a snapshot; `foreign` looks through texts for those of others, and `own_words` says which
//! words stay whoever has an object of that name.

mod foreign;
mod own_words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pellucid_cycle::Snapshot;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, ObjectKind, Viewer};

pub use foreign::Foreign;
use own_words::is_own;

use crate::owner::owner;

/// Most bytes of a name that are looked for in texts.
const LONGEST: usize = 128;

/// The names of a snapshot with their namespaces.
#[derive(Default)]
pub(crate) struct Tenants {
    /// Namespaces that have an object of this name. A namespace itself is in its own.
    by_name: FxHashMap<Box<str>, BTreeSet<Name>>,
    /// What texts are looked through for of names that are not a word, as names of gangs from annotations may be.
    odd: BTreeMap<Box<str>, Odd>,
    /// Names that everybody may see: of objects without a namespace, of profiles and of plugins.
    shared: BTreeSet<Box<str>>,
}

/// Whose an odd name is.
#[derive(Default)]
struct Odd {
    namespaces: BTreeSet<Name>,
    /// Whether this is the beginning of longer names.
    is_beginning: bool,
}

impl Odd {
    fn is_foreign(&self, viewer: &Viewer) -> bool {
        let is_seen = |namespace: &Name| viewer.sees(namespace);
        match self.is_beginning {
            true => !self.namespaces.iter().all(is_seen),
            false => !self.namespaces.iter().any(is_seen),
        }
    }
}

impl Tenants {
    fn of(snapshot: &Snapshot) -> Self {
        let (cluster, mut all) = (&snapshot.cluster, Self::default());
        for (_, record) in cluster.pods() {
            let pod = &record.pod;
            let namespace = &pod.key.namespace;
            all.add(namespace, &pod.key.name);
            for claim in &*pod.spec.volumes.claims {
                all.add(namespace, &claim.claim);
            }
            if let Some(controller) = &pod.controller {
                all.add(namespace, &controller.name);
                if let Some(owner) = owner(cluster, pod) {
                    all.add(namespace, &owner.name);
                }
            }
        }
        for key in cluster.gangs().all().into_keys() {
            all.add(&key.namespace, &key.name);
        }
        for kind in ObjectKind::ALL {
            for object in cluster.objects().iter(kind) {
                let (namespace, name) = object.key();
                let namespace = if kind == ObjectKind::Namespace { &name } else { &namespace };
                all.add(namespace, &name);
            }
        }
        let custom = cluster.custom_objects();
        for object in custom.kinds().flat_map(|kind| custom.iter(kind)) {
            all.add(&object.namespace, &object.name);
        }
        for unread in cluster.quarantined() {
            all.add(&unread.namespace, &unread.name);
        }
        for node in cluster.present().iter().filter_map(|node| cluster.node(*node)) {
            all.shared.insert(node.name.as_str().into());
        }
        for profile in &*snapshot.profiles {
            all.shared.insert(profile.scheduler_name.as_str().into());
            all.shared.extend(profile.plugins.iter().map(|plugin| plugin.name().into()));
        }
        all
    }

    fn add(&mut self, namespace: &Name, name: &str) {
        if namespace.as_str().is_empty() {
            self.shared.insert(name.into());
            return;
        }
        for word in [name, namespace.as_str()] {
            let of = self.by_name.entry(word.into()).or_default();
            if of.insert(namespace.clone()) && !word.bytes().all(is_of_word) {
                self.add_odd(namespace, word);
            }
        }
    }

    /// Adds what texts are looked through for of a name that is not a word. Of one without a word that is not this program's
    /// own there is nothing: texts would lose their punctuation.
    fn add_odd(&mut self, namespace: &Name, name: &str) {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let Some(start) = name.find(char::is_alphanumeric).filter(|_| !words.into_iter().all(is_own)) else {
            return;
        };
        let whole = &name[start..];
        let part = &whole[..whole.floor_char_boundary(LONGEST)];
        let odd = self.odd.entry(part.into()).or_default();
        odd.namespaces.insert(namespace.clone());
        odd.is_beginning |= part.len() < whole.len();
    }

    /// Returns the longest odd name that a text begins with. Costs a few searches, however many names there are.
    fn odd_at(&self, text: &str) -> Option<(&str, &Odd)> {
        let mut begin = &text[..text.floor_char_boundary(LONGEST)];
        while !begin.is_empty() {
            // A name that `begin` begins with is this one, or a beginning of it.
            let before = (Bound::Unbounded, Bound::Included(begin));
            let (name, odd) = self.odd.range::<str, _>(before).next_back()?;
            let common = begin.chars().zip(name.chars()).take_while(|(left, right)| left == right);
            let n_common: usize = common.map(|(c, _)| c.len_utf8()).sum();
            if n_common == name.len() && ends(text, name) {
                return Some((name, odd));
            }
            let shorter = n_common.min(name.len() - name.chars().next_back().map_or(0, char::len_utf8));
            begin = &begin[..shorter];
        }
        None
    }

    /// Returns whether a word is the name of an object of other namespaces alone.
    fn is_foreign(&self, word: &str, viewer: &Viewer) -> bool {
        let Some(namespaces) = self.by_name.get(word) else { return false };
        !self.shared.contains(word)
            && !namespaces.iter().any(|namespace| viewer.sees(namespace))
            && !is_own(word)
    }

    fn has_namespace(&self, word: &str) -> bool {
        self.by_name
            .get(word)
            .is_some_and(|namespaces| namespaces.iter().any(|namespace| **namespace == *word))
    }
}

/// Returns whether a name at the beginning of a text ends with a word of it.
fn ends(text: &str, name: &str) -> bool {
    let goes_on = |part: Option<char>| part.is_some_and(char::is_alphanumeric);
    name.len() >= LONGEST - 3
        || !goes_on(name.chars().next_back())
        || !goes_on(text[name.len()..].chars().next())
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}
