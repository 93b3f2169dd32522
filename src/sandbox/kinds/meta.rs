//! Object metadata: uids, generated names, labels and owners.
//!
//! Uids and names come from a seeded counter, so two runs of a sandbox with the same seed produce the same ones.

use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::fields;

/// The characters of generated names.
pub(crate) const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of uids and name suffixes.
#[derive(Debug)]
pub(crate) struct Identities(Mutex<u64>);

impl Identities {
    /// Starts the sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    fn draw(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn uid(&self) -> String {
        let (high, low) = (self.draw(), self.draw());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns five random characters for a generated name.
    pub(crate) fn suffix(&self) -> String {
        let mut rest = self.draw();
        let mut letter = || {
            let at = (rest % LETTERS.len() as u64) as usize;
            rest /= LETTERS.len() as u64;
            char::from(LETTERS[at])
        };
        (0..5).map(|_| letter()).collect()
    }
}

/// Returns the FNV-1a hash of a text.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

pub(crate) fn labels(object: &Value) -> Vec<(Box<str>, Box<str>)> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(key, value)| (key.as_str().into(), fields::text(value).into())).collect()
}

/// Returns a string of the metadata, empty if absent.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

/// Returns the metadata for modification; creates it if missing.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"].as_object_mut().expect("metadata was just made an object")
}

/// Returns the uids of the owners, the controller first.
pub(crate) fn owners(object: &Value) -> Vec<Box<str>> {
    let mut references: Vec<&Value> = fields::list(&object["metadata"]["ownerReferences"]).iter().collect();
    references.sort_by_key(|r| r["controller"] != true);
    references.into_iter().filter_map(|r| r["uid"].as_str()).map(Into::into).collect()
}

/// Returns whether the object is marked for deletion.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns whether the object has finalizers, which delay its removal.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
}

/// Removes absent and empty fields from the metadata of an object, as a real server does.
pub(crate) fn drop_empty(object: &mut Value) {
    metadata(object).retain(|_, value| match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
}

/// Removes what says of which kind an object is, which the store knows by its table.
pub(crate) fn drop_type(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
}
