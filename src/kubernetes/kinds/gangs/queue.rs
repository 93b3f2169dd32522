//! kube-batch's Queues, in the API groups of its earlier and later versions.

use pellucid_model::{Object, ObjectKind};

use crate::decode::objects::object;
use crate::decode::wire::{Meta, NamedBody};
use crate::kinds::gangs::named;
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static INCUBATOR: BuiltIn = BuiltIn {
    resource: Resource {
        is_namespaced: false,
        ..Resource::new("scheduling.incubator.k8s.io", "v1alpha1", "queues")
    },
    read: |text| {
        object(ObjectKind::QueueIncubator, text, |_: &NamedBody, meta: &Meta| {
            named(meta).map(Object::QueueIncubator)
        })
    },
};

pub(crate) static SIGS_DEV: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("scheduling.sigs.dev", "v1alpha2", "queues") },
    read: |text| {
        object(ObjectKind::QueueSigsDev, text, |_: &NamedBody, meta: &Meta| {
            named(meta).map(Object::QueueSigsDev)
        })
    },
};
