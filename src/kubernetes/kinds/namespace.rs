//! Namespaces, for the selectors of namespaces in pod affinity.

use pellucid_model::object::Namespace;
use pellucid_model::{Object, ObjectKind};

use crate::decode::fields::labels;
use crate::decode::lenient::Fault;
use crate::decode::objects::{object, own_name};
use crate::decode::wire::{Meta, NamedBody};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static NAMESPACE: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("", "v1", "namespaces") },
    read: |text| object(ObjectKind::Namespace, text, namespace),
};

fn namespace(_: &NamedBody, meta: &Meta) -> Result<Object, Fault> {
    let read = || Ok(Namespace { name: own_name(meta)?, labels: labels(meta)? });
    read().map(Object::Namespace).map_err(|f: Fault| f.under("metadata"))
}
