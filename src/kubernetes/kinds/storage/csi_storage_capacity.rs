//! CSIStorageCapacities, which say how much room drivers have where.

use pellucid_model::storage::CsiStorageCapacity;
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{name, selector};
use crate::decode::lenient::{Fault, Lenient, QuantityText};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{LabelSelector, Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::storage::bytes;

pub(crate) static CSI_STORAGE_CAPACITY: BuiltIn = BuiltIn {
    resource: Resource::new("storage.k8s.io", "v1", "csistoragecapacities"),
    read: |text| object(ObjectKind::CsiStorageCapacity, text, csi_storage_capacity),
};

wire_types! {
    struct CapacityBody {
        metadata: Lenient<Meta>,
        storage_class_name: Lenient<Name>,
        capacity: Lenient<QuantityText>,
        maximum_volume_size: Lenient<QuantityText>,
        node_topology: Lenient<LabelSelector>,
    }
}

bodies!(CapacityBody);

fn csi_storage_capacity(body: &CapacityBody, meta: &Meta) -> Result<Object, Fault> {
    let (namespace, own_name) = own_key(meta)?;
    let largest = bytes(&body.maximum_volume_size, "maximumVolumeSize")?;
    let capacity = bytes(&body.capacity, "capacity")?;
    Ok(Object::CsiStorageCapacity(CsiStorageCapacity {
        namespace,
        name: own_name,
        class: name(&body.storage_class_name, "storageClassName")?,
        largest: largest.or(capacity),
        nodes: selector(&body.node_topology, "nodeTopology")?,
    }))
}
