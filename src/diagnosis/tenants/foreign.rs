//! Takes the names of others out of texts.
//!
//! Texts are looked through word by word. A word is foreign when it is `namespace/name` in another namespace, known or not,
//! or the name of an object that only other namespaces have. This deliberately hides too much rather than too little:
//! a label key such as `team/x` goes too. Numbers and this program's own words stay, because a name like them says nothing
//! where no namespace stands beside it; fields beside a namespace are hidden by the server whatever they say.
//!
//! One pass over a text, whose cost does not grow with the number of names.

use std::sync::Arc;

use pellucid_cycle::Snapshot;
use pellucid_model::Viewer;

use super::own_words::is_number;
use super::{Tenants, is_of_word};
use crate::known::known;

/// What one viewer does not see of a snapshot.
pub struct Foreign {
    tenants: Arc<Tenants>,
    viewer: Viewer,
}

/// What stands at a place of a text.
enum Found {
    /// A foreign name that ends here.
    Foreign(usize),
    /// Something to be shown that ends here.
    Shown(usize),
}

impl Foreign {
    /// Returns what a viewer does not see of a snapshot. The first caller of a snapshot collects its names.
    pub fn of(snapshot: &Snapshot, viewer: &Viewer) -> Self {
        let tenants = known(snapshot).tenants(|| Tenants::of(snapshot));
        Self { tenants, viewer: viewer.clone() }
    }

    /// Returns a text with `hidden` for every foreign name, or `None` when it has none.
    pub fn hide(&self, text: &str, hidden: &str) -> Option<String> {
        if self.is_name(text) {
            return Some(hidden.to_owned());
        }
        let (mut shown, mut done, mut at) = (String::new(), 0, 0);
        while let Some(start) = text[at..].find(char::is_alphanumeric).map(|found| at + found) {
            match self.look(text, start) {
                Found::Shown(end) => at = end,
                Found::Foreign(end) => {
                    at = end;
                    shown.push_str(&text[done..start]);
                    shown.push_str(hidden);
                    done = end;
                }
            }
        }
        (done > 0).then(|| shown + &text[done..])
    }

    /// Returns whether a text as a whole can be nothing but a foreign name, although its words could stand in any text.
    fn is_name(&self, text: &str) -> bool {
        match text.split_once('/') {
            // `7/3` is a part of seven, unless there is such a namespace.
            Some((namespace, name)) if is_number(namespace) && is_number(name) => {
                self.tenants.has_namespace(namespace) && !self.viewer.sees(namespace)
            }
            _ => !text.contains(char::is_alphanumeric) && self.tenants.is_foreign(text, &self.viewer),
        }
    }

    /// Looks at what begins at a letter or digit of a text.
    fn look(&self, text: &str, start: usize) -> Found {
        let before = &text[..start];
        if !before.ends_with(char::is_alphanumeric)
            && let Some(found) = self.odd(text, start)
        {
            return found;
        }
        let Some(end) = end_of_word(text, start) else {
            return Found::Shown(
                text[start..].find(|c: char| c.is_ascii()).map_or(text.len(), |n| start + n),
            );
        };
        let word = &text[start..end];
        // Behind `/:` is a parameter of a path template.
        let is_inner = before.ends_with('/') || before.ends_with("/:");
        let is_first = !is_inner || OBJECTS.iter().any(|part| before.ends_with(part));
        match text[end..].strip_prefix('/').map(|_| end + 1) {
            Some(behind) if is_first && let Some(end) = self.end_of_key(text, word, behind) => {
                Found::Foreign(end)
            }
            _ if self.tenants.is_foreign(word, &self.viewer) => Found::Foreign(end),
            _ => Found::Shown(end),
        }
    }

    /// Looks for a name that is not a word.
    fn odd(&self, text: &str, start: usize) -> Option<Found> {
        let (name, odd) = self.tenants.odd_at(&text[start..])?;
        Some(match odd.is_foreign(&self.viewer) {
            // Where the name ends is not known.
            true if odd.is_beginning => Found::Foreign(text.len()),
            true => Found::Foreign(start + name.len()),
            false => Found::Shown(start + name.len()),
        })
    }

    /// Returns the end of `namespace/name` if that namespace is not seen.
    fn end_of_key(&self, text: &str, namespace: &str, behind: usize) -> Option<usize> {
        if let Some((name, odd)) =
            self.tenants.odd_at(&text[behind..]).filter(|_| self.is_foreign_namespace(namespace))
        {
            return Some(if odd.is_beginning { text.len() } else { behind + name.len() });
        }
        let end = end_of_word(text, behind)?;
        let is_share = is_number(namespace) && is_number(&text[behind..end]);
        (!is_share && self.is_foreign_namespace(namespace)).then_some(end)
    }

    /// Returns whether a word before a slash is a namespace that the viewer does not see. Prefixes of label keys and of
    /// resources have dots, which namespaces have not.
    fn is_foreign_namespace(&self, word: &str) -> bool {
        let is_label =
            word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let can_be = is_label && (!is_number(word) || self.tenants.has_namespace(word));
        can_be && !self.viewer.sees(word)
    }
}

/// Parts of paths of this API before a namespace. Behind any other slash a word is not the beginning of a name.
const OBJECTS: [&str; 5] = ["/pods/", "/gangs/", "/gang/", "/placements/", "/scores/"];

/// Returns the end of the word that begins at a byte, if one does. A full stop at its end is not part of it.
fn end_of_word(text: &str, start: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[start..];
    if !bytes.first()?.is_ascii_alphanumeric() {
        return None;
    }
    let length = bytes.iter().position(|byte| !is_of_word(*byte)).unwrap_or(bytes.len());
    Some(start + text[start..start + length].trim_end_matches(['.', '-', '_']).len())
}

#[cfg(test)]
mod tests {
    use pellucid_model::Name;

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
        let foreign = foreign(&[
            ("tenant-b", "große Gang, 2"),
            ("tenant-b", "große Gang"),
            ("tenant-b", "(a) b"),
            ("tenant-b", "批处理 1"),
            ("mine", "kleine Gang"),
            ("tenant-b", "Gang and more"),
        ]);
        for (text, shown) in [
            ("tenant-b/große Gang, 2 waits", Some("? waits")),
            ("große Gang, 3 waits", Some("?, 3 waits")),
            ("große Gangs wait", None),
            ("the gang \"(a) b\" waits", Some("the gang \"(?\" waits")),
            ("批处理 1。", Some("?。")),
            ("mine/kleine Gang waits", None),
            ("a Gang and more", Some("a ?")),
            ("a Gang and mor", None),
        ] {
            assert_eq!(foreign.hide(text, "?").as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn names_like_numbers_own_words_or_punctuation_spoil_no_text() {
        let names = [
            "0",
            "3",
            "10s",
            "2026-11-26t09",
            "pods",
            "pellucid",
            "Insufficient",
            " ",
            "/",
            "\"",
            "0/5 nodes",
            ": ",
        ];
        let mut all: Vec<_> = names.map(|name| ("tenant-b", name)).into();
        all.push(("7", "9"));
        let foreign = foreign(&all);
        for text in [
            "0/5 nodes are available: 3 Insufficient cpu",
            "2026-11-26T09:03:00Z",
            "pellucid",
            "3",
            "waits for 10s at 7/9 pods",
        ] {
            assert_eq!(foreign.hide(text, "?"), None, "{text}");
        }
        // As a whole value, or with the namespace, they are names.
        for text in ["tenant-b/3", "7/9", "7/web", " ", "/", "\"", ": ", "tenant-b/pods"] {
            assert_eq!(foreign.hide(text, "?").as_deref(), Some("?"), "{text:?}");
        }
    }

    #[test]
    fn long_names_hide_what_follows_and_many_names_cost_no_more() {
        let long = "x ".repeat(1000);
        let many: Vec<String> = (0..20_000).map(|n| format!("crew of {n}")).chain([long.clone()]).collect();
        let all: Vec<_> = many.iter().map(|name| ("tenant-b", &**name)).collect();
        let foreign = foreign(&all);
        assert_eq!(foreign.hide(&format!("the {long} waits"), "?").as_deref(), Some("the ?"));
        // 20,000 searches per word would take minutes.
        let text = "the crew of 77 and the crew of nobody wait. ".repeat(5_000);
        let shown = foreign.hide(&text, "?").expect("one is named");
        assert_eq!(shown, "the ? and the crew of nobody wait. ".repeat(5_000));
    }
}
