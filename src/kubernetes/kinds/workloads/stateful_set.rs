//! StatefulSets.

use pellucid_model::{Object, ObjectKind};

use crate::decode::objects::object;
use crate::decode::wire::Meta;
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::workloads::{SetBody, by_selector};

pub(crate) static STATEFUL_SET: BuiltIn = BuiltIn {
    resource: Resource::new("apps", "v1", "statefulsets"),
    read: |text| {
        object(ObjectKind::StatefulSet, text, |body: &SetBody, meta: &Meta| {
            by_selector(body, meta).map(Object::StatefulSet)
        })
    },
};
