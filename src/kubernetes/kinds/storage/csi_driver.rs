//! CSIDrivers.

use pellucid_model::storage::CsiDriver;
use pellucid_model::{Object, ObjectKind};

use crate::decode::fields::flag;
use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static CSI_DRIVER: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("storage.k8s.io", "v1", "csidrivers") },
    read: |text| object(ObjectKind::CsiDriver, text, csi_driver),
};

wire_types! {
    struct CsiDriverBody {
        metadata: Lenient<Meta>,
        spec: Lenient<CsiDriverSpec>,
    }
    /// `spec` of a CSIDriver.
    struct CsiDriverSpec {
        storage_capacity: Lenient<bool>,
        prevent_pod_scheduling_if_missing: Lenient<bool>,
    }
}

bodies!(CsiDriverBody);

fn csi_driver(body: &CsiDriverBody, meta: &Meta) -> Result<Object, Fault> {
    let name = own_key(meta)?.1;
    body.spec.within("spec", |spec| {
        let tracks_capacity = flag(&spec.storage_capacity, "storageCapacity")?;
        let on_node = &spec.prevent_pod_scheduling_if_missing;
        let required_on_node = flag(on_node, "preventPodSchedulingIfMissing")?;
        Ok(Object::CsiDriver(CsiDriver { name, tracks_capacity, required_on_node }))
    })
}
