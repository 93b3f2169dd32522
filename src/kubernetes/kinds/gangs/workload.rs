//! Native Workloads. The Workload of Kubernetes 1.35 (v1alpha1) contains its groups and is not supported.

use pellucid_model::{Object, ObjectKind};

use crate::decode::objects::object;
use crate::decode::wire::{Meta, NamedBody};
use crate::kinds::gangs::named;
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static WORKLOAD: BuiltIn = BuiltIn {
    resource: Resource { is_discovered: true, ..Resource::new("scheduling.k8s.io", "v1alpha2", "workloads") },
    read: |text| {
        object(ObjectKind::WorkloadNative, text, |_: &NamedBody, meta: &Meta| {
            named(meta).map(Object::WorkloadNative)
        })
    },
};
