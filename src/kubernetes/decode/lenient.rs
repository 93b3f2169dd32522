//! Values whose deserialisation cannot fail: a value of the wrong shape becomes [`Lenient::Bad`].
//!
//! A list item or a watch event is one JSON document. With plain serde, one field of an unexpected type would reject
//! the whole document, without naming the object or the field. Types made of `Lenient` reject only malformed JSON;
//! `decode` validates them afterwards and names the exact field.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use pellucid_api::keys::{koordinator, kube_batch};
use pellucid_model::Name;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::decode::decoder;

/// A field that is absent (or null), has the expected shape, or has another one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Lenient<T> {
    /// The field is absent or null.
    #[default]
    Absent,
    /// The value has the expected shape.
    Good(T),
    /// The value has another shape. Holds its text, or `(object)` or `(list)`.
    Bad(Box<str>),
}

/// A problem with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Path relative to where the fault was found; callers prepend theirs.
    pub(crate) field: String,
    /// The value as text; empty if there is none.
    pub(crate) value: String,
    /// What is wrong, such as `missing` or `not an integer`.
    pub(crate) problem: String,
}

impl Fault {
    pub(crate) fn new(field: &str, value: &str, problem: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.into(), problem: problem.into() }
    }

    /// The value has another shape than the wanted one.
    fn other_shape(field: &str, value: &str, wanted: &str) -> Self {
        Self::new(field, value, format!("not {wanted}"))
    }

    /// Prepends the path of the enclosing field.
    pub(crate) fn under(mut self, prefix: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{prefix}{dot}{}", self.field);
        self
    }

    /// Prepends the path of the enclosing item of a list.
    fn in_list(self, list: &str, index: usize) -> Self {
        self.under(&format!("{list}[{index}]"))
    }
}

impl<T: Shape> Lenient<T> {
    /// Returns the value, or `None` when absent. Fails on a value of another shape.
    pub(crate) fn read(&self, field: &str) -> Result<Option<&T>, Fault> {
        match self {
            Self::Absent => Ok(None),
            Self::Good(value) => Ok(Some(value)),
            Self::Bad(text) => Err(Fault::other_shape(field, text, T::WANTED)),
        }
    }

    /// Applies `read` to the value; `None` when absent. Faults get the path of the field.
    pub(crate) fn if_present<U>(
        &self,
        field: &str,
        read: impl FnOnce(&T) -> Result<U, Fault>,
    ) -> Result<Option<U>, Fault> {
        self.read(field)?.map(read).transpose().map_err(|fault| fault.under(field))
    }

    /// Applies `read` to the value, or to the default when absent. Faults get the path of the field.
    pub(crate) fn within<U>(&self, field: &str, read: impl FnOnce(&T) -> Result<U, Fault>) -> Result<U, Fault>
    where
        T: Default,
    {
        let read = match self.read(field)? {
            Some(value) => read(value),
            None => read(&T::default()),
        };
        read.map_err(|fault| fault.under(field))
    }

    /// Returns the value if it is present and has the expected shape.
    pub(crate) fn good(&self) -> Option<&T> {
        if let Self::Good(value) = self { Some(value) } else { None }
    }
}

/// A list of lenient items.
pub(crate) type List<T> = Lenient<Vec<Lenient<T>>>;
/// An object used as a map, in the order of the document.
pub(crate) type Map<T> = Lenient<Vec<(Name, Lenient<T>)>>;

impl<T: Shape> Lenient<Vec<Lenient<T>>> {
    /// Converts every item. Faults contain the index of the item.
    pub(crate) fn each<'a, U>(
        &'a self,
        field: &str,
        mut convert: impl FnMut(&'a T) -> Result<U, Fault>,
    ) -> Result<Vec<U>, Fault> {
        let items = self.read(field)?.map_or(&[][..], Vec::as_slice);
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let converted = match item.read("") {
                Ok(Some(item)) => convert(item),
                Ok(None) => Err(Fault::other_shape("", "null", T::WANTED)),
                Err(fault) => Err(fault),
            };
            match converted {
                Ok(converted) => all.push(converted),
                Err(fault) => return Err(fault.in_list(field, index)),
            }
        }
        Ok(all)
    }
}

impl<T: Shape> Lenient<Vec<(Name, Lenient<T>)>> {
    /// Converts every non-null entry. Faults contain the key.
    pub(crate) fn entries<U>(
        &self,
        field: &str,
        mut convert: impl FnMut(&Name, &T) -> Result<U, Fault>,
    ) -> Result<Vec<(Name, U)>, Fault> {
        let entries = self.read(field)?.map_or(&[][..], Vec::as_slice);
        let mut all = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let converted = match value.read("") {
                Ok(Some(value)) => convert(key, value),
                Ok(None) => continue,
                Err(fault) => Err(fault),
            };
            all.push((key.clone(), converted.map_err(|f| f.under(key).under(field))?));
        }
        Ok(all)
    }
}

/// A type that JSON values convert to. A kind of JSON value is rejected unless its method is overridden.
pub(crate) trait Shape: Sized {
    /// Name of the expected shape for error messages, such as `a text`.
    const WANTED: &'static str;
    /// Converts a string.
    fn text(_: &str) -> Option<Self> {
        None
    }
    /// Converts an integer.
    fn integer(_: i64) -> Option<Self> {
        None
    }
    /// Converts the printed form of a number that is no signed 64-bit integer.
    fn number(_: &str) -> Option<Self> {
        None
    }
    /// Converts a boolean.
    fn boolean(_: bool) -> Option<Self> {
        None
    }
    /// Converts an object. Implementations must read it to its end.
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    /// Converts a list. Implementations must read it to its end.
    fn seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: Shape> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Shape> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Lenient::Absent)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(keep(T::boolean(value), &value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(keep(T::integer(value), &value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        match i64::try_from(value) {
            Ok(small) => Ok(keep(T::integer(small), &small)),
            Err(_) => Ok(keep(T::number(&text(&value)), &value)),
        }
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(keep(T::number(&text(&value)), &value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(keep(T::text(value), &value))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(keep(T::map(map)?, &"(object)"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(keep(T::seq(seq)?, &"(list)"))
    }
}

/// Compiled once per type, of which there are a hundred, and not once per type and kind of value.
fn keep<T>(made: Option<T>, value: &dyn fmt::Display) -> Lenient<T> {
    match made {
        Some(made) => Lenient::Good(made),
        None => Lenient::Bad(text(value)),
    }
}

fn text(value: &dyn fmt::Display) -> Box<str> {
    value.to_string().into()
}

impl Shape for Name {
    const WANTED: &'static str = "a text";
    fn text(text: &str) -> Option<Self> {
        Some(Self::new(text))
    }
}

impl Shape for Arc<str> {
    const WANTED: &'static str = "a text";
    fn text(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

impl Shape for i64 {
    const WANTED: &'static str = "an integer";
    fn integer(value: i64) -> Option<Self> {
        Some(value)
    }
}

impl Shape for bool {
    const WANTED: &'static str = "true or false";
    fn boolean(value: bool) -> Option<Self> {
        Some(value)
    }
}

/// The text of a quantity. A bare number is accepted as well.
#[derive(Clone, Debug)]
pub(crate) struct QuantityText(pub(crate) Name);

impl Shape for QuantityText {
    const WANTED: &'static str = "a quantity";
    fn text(text: &str) -> Option<Self> {
        Some(Self(Name::new(text)))
    }
    fn integer(value: i64) -> Option<Self> {
        Some(Self(Name::new(&value.to_string())))
    }
    fn number(text: &str) -> Option<Self> {
        Some(Self(Name::new(text)))
    }
}

/// A point in time, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) i64);

impl Shape for Moment {
    const WANTED: &'static str = "a point in time";
    fn text(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_second()))
    }
}

impl<T: Shape> Shape for Vec<Lenient<T>> {
    const WANTED: &'static str = "a list";
    fn seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = seq.next_element()? {
            all.push(item);
        }
        Ok(Some(all))
    }
}

impl<T: Shape> Shape for Vec<(Name, Lenient<T>)> {
    const WANTED: &'static str = "an object";
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut all = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            all.push((key, map.next_value()?));
        }
        Ok(Some(all))
    }
}

/// The annotations that the scheduler reads. All others are skipped.
#[derive(Clone, Debug)]
pub(crate) struct KnownAnnotations {
    /// Whether `kubernetes.io/config.mirror` is present: the kubelet created the pod from a file.
    pub(crate) is_mirror: bool,
    /// Value of `volume.kubernetes.io/selected-node`.
    pub(crate) selected_node: Lenient<Name>,
    /// Whether `pv.kubernetes.io/bind-completed` is present.
    pub(crate) bind_completed: bool,
    /// Value of `volume.beta.kubernetes.io/storage-class`.
    pub(crate) class: Lenient<Name>,
    /// Value of `storage.alpha.kubernetes.io/migrated-plugins`.
    pub(crate) migrated_plugins: Lenient<Name>,
    /// Annotations about gangs ([`GANG_KEYS`]), with their keys.
    pub(crate) gang: Vec<(&'static str, Lenient<Arc<str>>)>,
    /// Annotations that plugins declare ([`decoder`](super::decoder)), with their keys.
    pub(crate) declared: Vec<(Name, Lenient<Name>)>,
}

impl KnownAnnotations {
    /// The value for an object without annotations.
    pub(crate) const NONE: Self = Self {
        is_mirror: false,
        selected_node: Lenient::Absent,
        bind_completed: false,
        class: Lenient::Absent,
        migrated_plugins: Lenient::Absent,
        gang: Vec::new(),
        declared: Vec::new(),
    };
}

impl Shape for KnownAnnotations {
    const WANTED: &'static str = "an object";
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut known = Self::NONE;
        while let Some(mark) = map.next_key()? {
            match mark {
                KnownAnnotation::SelectedNode => known.selected_node = map.next_value()?,
                KnownAnnotation::Class => known.class = map.next_value()?,
                KnownAnnotation::MigratedPlugins => known.migrated_plugins = map.next_value()?,
                KnownAnnotation::Gang(key) => {
                    let value: Lenient<Arc<str>> = map.next_value()?;
                    // A plugin may read it too. What is no text is a problem of the gang alone.
                    if let Some(text) = value.good().filter(|_| decoder::is_declared(key)) {
                        known.declared.push((Name::new(key), Lenient::Good(Name::new(text))));
                    }
                    known.gang.push((key, value));
                }
                KnownAnnotation::Declared(key) => known.declared.push((key, map.next_value()?)),
                KnownAnnotation::Mirror | KnownAnnotation::BindCompleted | KnownAnnotation::Other => {
                    known.is_mirror |= matches!(mark, KnownAnnotation::Mirror);
                    known.bind_completed |= matches!(mark, KnownAnnotation::BindCompleted);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Some(known))
    }
}

/// A map key, interned without an intermediate copy.
struct Key(Name);

/// The annotation that a key names.
enum KnownAnnotation {
    Mirror,
    SelectedNode,
    BindCompleted,
    Class,
    MigratedPlugins,
    Gang(&'static str),
    Declared(Name),
    Other,
}

/// The annotations about gangs.
const GANG_KEYS: [&str; 10] = [
    koordinator::NAME,
    koordinator::MIN_AVAILABLE,
    koordinator::TOTAL_NUMBER,
    koordinator::MODE,
    koordinator::MATCH_POLICY,
    koordinator::MATCH_POLICY_ALIAS,
    koordinator::WAITING_TIME,
    koordinator::GROUPS,
    kube_batch::GROUP_NAME,
    kube_batch::GROUP_MIN_MEMBER,
];

struct KeyVisitor<T>(fn(&str) -> T);

impl<T> Visitor<'_> for KeyVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<T, E> {
        Ok((self.0)(key))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor(|key| Self(Name::new(key))))
    }
}

impl<'de> Deserialize<'de> for KnownAnnotation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor(|key| match key {
            "kubernetes.io/config.mirror" => Self::Mirror,
            "volume.kubernetes.io/selected-node" => Self::SelectedNode,
            "pv.kubernetes.io/bind-completed" => Self::BindCompleted,
            "volume.beta.kubernetes.io/storage-class" => Self::Class,
            "storage.alpha.kubernetes.io/migrated-plugins" => Self::MigratedPlugins,
            other => match GANG_KEYS.iter().find(|key| **key == other) {
                Some(key) => Self::Gang(key),
                None if decoder::is_declared(other) => Self::Declared(Name::new(other)),
                None => Self::Other,
            },
        }))
    }
}
