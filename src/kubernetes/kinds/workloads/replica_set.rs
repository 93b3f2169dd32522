//! ReplicaSets.

use pellucid_model::{Object, ObjectKind};

use crate::decode::objects::object;
use crate::decode::wire::Meta;
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::workloads::{SetBody, by_selector};

pub(crate) static REPLICA_SET: BuiltIn = BuiltIn {
    resource: Resource::new("apps", "v1", "replicasets"),
    read: |text| {
        object(ObjectKind::ReplicaSet, text, |body: &SetBody, meta: &Meta| {
            by_selector(body, meta).map(Object::ReplicaSet)
        })
    },
};
