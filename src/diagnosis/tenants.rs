//! Which names in a text belong to namespaces that a viewer does not see.
//!
//! Texts are looked through word by word. A word is foreign when it is `namespace/name` in another namespace, known or not,
//! or the name of an object that only other namespaces have. This deliberately hides too much rather than too little:
//! a label key such as `team/x` goes too. Words of this program's own texts stay, because a name like them says nothing
//! where no namespace stands beside it; fields beside a namespace are hidden by the server whatever they say.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use pellucid_api::reason::{REGISTRY, STATES};
use pellucid_cycle::Snapshot;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, ObjectKind, Viewer};

use crate::known::known;
use crate::owner::owner;

/// The names of a snapshot with their namespaces.
#[derive(Default)]
pub(crate) struct Tenants {
    /// Namespaces that have an object of this name. A namespace itself is in its own.
    by_name: FxHashMap<Box<str>, BTreeSet<Name>>,
    /// Names that are not a word, as names of gangs from annotations may be.
    odd: Vec<(Name, Box<str>)>,
    /// Names of objects without a namespace, which everybody may see.
    shared: BTreeSet<Box<str>>,
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
                self.odd.push((namespace.clone(), word.into()));
            }
        }
    }

    /// Returns whether a word is the name of an object of other namespaces alone.
    fn is_foreign(&self, word: &str, viewer: &Viewer) -> bool {
        let Some(namespaces) = self.by_name.get(word) else { return false };
        !self.shared.contains(word)
            && !namespaces.iter().any(|namespace| viewer.sees(namespace))
            && !vocabulary().contains(word)
    }
}

/// What one viewer does not see of a snapshot.
pub struct Foreign {
    tenants: Arc<Tenants>,
    viewer: Viewer,
}

impl Foreign {
    /// Returns what a viewer does not see of a snapshot. The first caller of a snapshot collects its names.
    pub fn of(snapshot: &Snapshot, viewer: &Viewer) -> Self {
        let tenants = known(snapshot).tenants(|| Tenants::of(snapshot));
        Self { tenants, viewer: viewer.clone() }
    }

    /// Returns a text with `hidden` for every foreign name, or `None` when it has none.
    pub fn hide(&self, text: &str, hidden: &str) -> Option<String> {
        let mut shown = None;
        for (namespace, name) in &self.tenants.odd {
            if !self.viewer.sees(namespace) && !name.is_empty() && text.contains(&**name) {
                let text = shown.get_or_insert_with(|| text.to_owned());
                *text = text.replace(&format!("{namespace}/{name}"), hidden).replace(&**name, hidden);
            }
        }
        let words = self.hide_words(shown.as_deref().unwrap_or(text), hidden);
        words.or(shown)
    }

    fn hide_words(&self, text: &str, hidden: &str) -> Option<String> {
        let (mut shown, mut done, mut at) = (String::new(), 0, 0);
        while let Some((start, end)) = next_word(text, at) {
            at = end;
            let word = &text[start..end];
            let after =
                text[end..].strip_prefix('/').and_then(|rest| next_word(rest, 0)).filter(|w| w.0 == 0);
            let before = &text[..start];
            // Behind `/:` is a parameter of a path template.
            let is_inner = before.ends_with('/') || before.ends_with("/:");
            let is_first = !is_inner || OBJECTS.iter().any(|part| before.ends_with(part));
            let end = match after {
                Some((_, length)) if is_first && self.is_foreign_namespace(word) => end + 1 + length,
                _ if self.tenants.is_foreign(word, &self.viewer) => end,
                _ => continue,
            };
            at = end;
            shown.push_str(&text[done..start]);
            shown.push_str(hidden);
            done = end;
        }
        (done > 0).then(|| shown + &text[done..])
    }

    /// Returns whether a word before a slash is a namespace that the viewer does not see. Prefixes of label keys and of
    /// resources have dots, which namespaces have not.
    fn is_foreign_namespace(&self, word: &str) -> bool {
        let is_label =
            word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let has_letter = word.bytes().any(|byte| byte.is_ascii_lowercase());
        is_label && (has_letter || self.tenants.by_name.contains_key(word)) && !self.viewer.sees(word)
    }
}

/// Parts of paths of this API before a namespace. Behind any other slash a word is not the beginning of a name.
const OBJECTS: [&str; 5] = ["/pods/", "/gangs/", "/gang/", "/placements/", "/scores/"];

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// Returns the place of the next word from a byte on. A full stop at its end is not part of it.
fn next_word(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let start = from + bytes[from..].iter().position(|byte| byte.is_ascii_alphanumeric())?;
    let length = bytes[start..].iter().position(|byte| !is_of_word(*byte)).unwrap_or(bytes.len() - start);
    let word = text[start..start + length].trim_end_matches(['.', '-', '_']);
    Some((start, start + word.len()))
}

/// Words that bodies have as values of their own, besides those of reasons.
const WORDS: &str = "active backoff unschedulable gated inflight in-flight pending waiting permitted bound finished placed \
     created cpu memory pods pod gang gangs node nodes queue true false none now never later user admin time json table \
     csv low high strict owner name namespace default before after up down ours theirs on off all new old first last";

/// Returns the words of this program's own texts.
fn vocabulary() -> &'static BTreeSet<&'static str> {
    static WORDS_OF_TEXTS: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    WORDS_OF_TEXTS.get_or_init(|| {
        let reasons = REGISTRY.iter().flat_map(|entry| [entry.message, entry.meaning, entry.remedy]);
        let states = STATES.iter().map(|entry| entry.meaning);
        let words = reasons.chain(states).chain([WORDS]).flat_map(|text| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty())
        });
        words.filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(names: &[(&str, &str)]) -> Foreign {
        let mut tenants = Tenants::default();
        for (namespace, name) in names {
            tenants.add(&Name::new(namespace), name);
        }
        Foreign { tenants: Arc::new(tenants), viewer: Viewer::of(["mine"]) }
    }

    #[test]
    fn foreign_names_go_and_everything_else_stays() {
        let names = [
            ("mine", "web-0"),
            ("tenant-b", "web-0"),
            ("tenant-b", "db-0"),
            ("tenant-b", "node"),
            ("", "n1"),
        ];
        let foreign = foreign(&names);
        for (text, shown) in [
            ("tenant-b/db-0 waits", Some("? waits")),
            ("behind db-0.", Some("behind ?.")),
            ("in tenant-b: db-0, db-0x", Some("in ?: ?, db-0x")),
            ("gone-tenant/gone-pod left", Some("? left")),
            ("`tenant-b/db-0` before mine/web-0", Some("`?` before mine/web-0")),
            ("ReplicaSet/db-0", Some("ReplicaSet/?")),
            ("see /apis/v1/history/pods/gone-tenant/gone-pod", Some("see /apis/v1/history/pods/?")),
            ("pod:gone-tenant/gone-pod", Some("pod:?")),
            ("/apis/v1/explain/pods/:namespace/:name/nearest", None),
            ("mine/web-0 on n1: 3/8 nodes lack nvidia.com/gpu", None),
            ("the node n1 has no room; see /apis/v1/reasons", None),
            ("web-0 is one of mine", None),
        ] {
            assert_eq!(foreign.hide(text, "?").as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn names_with_any_letters_are_found() {
        let foreign = foreign(&[("tenant-b", "große Gang, 2"), ("mine", "kleine Gang")]);
        assert_eq!(foreign.hide("tenant-b/große Gang, 2 waits", "?").as_deref(), Some("? waits"));
        assert_eq!(foreign.hide("mine/kleine Gang waits", "?"), None);
    }
}
