//! ReplicationControllers.

use pellucid_model::{Object, ObjectKind};

use crate::decode::objects::object;
use crate::decode::wire::Meta;
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::workloads::{PairsBody, by_pairs};

pub(crate) static REPLICATION_CONTROLLER: BuiltIn = BuiltIn {
    resource: Resource::new("", "v1", "replicationcontrollers"),
    read: |text| {
        object(ObjectKind::ReplicationController, text, |body: &PairsBody, meta: &Meta| {
            by_pairs(body, meta).map(Object::ReplicationController)
        })
    },
};
